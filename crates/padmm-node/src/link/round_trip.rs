//! How long to wait for something before it is taken for lost, by how long it has taken so far.

use std::time::Duration;

/// Before anything was measured.
const UNKNOWN: Duration = Duration::from_secs(1);
/// Nothing is asked for again sooner than this, however short the way is.
const SOONEST: Duration = Duration::from_millis(100);
/// Nor later, the first time: by then asking costs nothing, and something may be wrong with what was measured.
const LATEST: Duration = Duration::from_secs(10);

/// Smoothed time and variation of something that is waited for again and again, as by RFC 6298. Whatever belongs to the wait is in it:
/// the way there and back, the transfer of a long frame, the neighbour's disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrip {
    /// Smoothed time and variation, once there is a measurement.
    known: Option<(Duration, Duration)>,
}

impl RoundTrip {
    /// Takes in a measurement. What had to be asked for a second time must not be measured: nobody knows which of the two was answered.
    pub fn measure(&mut self, time: Duration) {
        self.known = Some(match self.known {
            None => (time, time / 2),
            Some((smoothed, variation)) => {
                let variation = (3 * variation + smoothed.abs_diff(time)) / 4;
                ((7 * smoothed + time) / 8, variation)
            }
        });
    }

    /// How long to wait before asking again.
    pub fn patience(&self) -> Duration {
        self.known.map_or(UNKNOWN, |(smoothed, variation)| {
            // A round that is a little slower than all others is no loss either.
            (smoothed + (4 * variation).max(smoothed / 2)).clamp(SOONEST, LATEST)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn patience_follows_what_was_measured() {
        let mut way = RoundTrip::default();
        assert_eq!(way.patience(), UNKNOWN);
        way.measure(ms(400));
        assert_eq!(way.patience(), ms(400 + 4 * 200), "the first measurement says little");
        (0..50).for_each(|_| way.measure(ms(400)));
        assert_eq!(way.patience(), ms(600), "a steady time leaves half of itself");
        (0..50).for_each(|_| way.measure(ms(1)));
        assert_eq!(way.patience(), SOONEST);
        (0..50).for_each(|_| way.measure(ms(100_000)));
        assert_eq!(way.patience(), LATEST);
    }

    #[test]
    fn a_wait_that_varies_is_given_more_time() {
        let (mut steady, mut varying) = (RoundTrip::default(), RoundTrip::default());
        for k in 0..100 {
            steady.measure(ms(300));
            varying.measure(ms(if k % 2 == 0 { 100 } else { 500 }));
        }
        assert!(varying.patience() > ms(500), "longer than the longest: {:?}", varying.patience());
        assert!(steady.patience() < ms(500), "{:?}", steady.patience());
    }
}
