//! When to dial a neighbour: soon after a connection is lost, more patiently while nobody is there, and hardly ever while it says that
//! it does not know us.

use std::time::Duration;

use padmm_core::graph::PublicSeed;

/// The first wait after a call that came to nothing; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait for one that cannot be reached: a line that is mended is used within two seconds, with the call's own time.
const SLOWEST_CALL: Duration = Duration::from_millis(500);
/// The longest wait for one that has refused us.
const SLOWEST_REFUSED: Duration = Duration::from_secs(60);
/// By how much the end that dials first is ahead of the other, so that there is one connection and not two.
const HEAD_START: Duration = Duration::from_millis(500);
/// How long a call may take. The packet that starts a handshake is repeated after 0.3 s, 0.9 s, 2.1 s, 4.5 s: more and more slowly, so
/// that a line that is mended in the middle of a long call is found late, and a short call that is followed by another finds it sooner.
/// Every third is for a way there and back of up to a second, and now and then one is for a longer one.
const SHORT_CALL: Duration = Duration::from_secs(1);
const LONG_CALL: Duration = Duration::from_secs(3);
const LONGEST_CALL: Duration = Duration::from_secs(8);

/// The calls to one neighbour.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    dials_first: bool,
    is_calling: bool,
    next: Duration,
    n_begun: u64,
    /// Calls that came to nothing since a frame of the neighbour's was believed.
    n_failed: u32,
    /// Connections that it closed because it does not know our key, since then.
    n_refused: u64,
    random: PublicSeed,
}

impl Calls {
    pub(super) fn new(dials_first: bool, seed: u64, now: Duration) -> Self {
        let next = if dials_first { now } else { now + HEAD_START };
        Self {
            dials_first,
            is_calling: false,
            next,
            n_begun: 0,
            n_failed: 0,
            n_refused: 0,
            random: PublicSeed::new(seed),
        }
    }

    /// When the next call is due, unless one is under way.
    pub(super) fn next(&self) -> Option<Duration> {
        (!self.is_calling).then_some(self.next)
    }

    /// A call begins. Gives how long it may take.
    pub(super) fn begin(&mut self) -> Duration {
        self.is_calling = true;
        self.n_begun += 1;
        match self.n_begun {
            n if n.is_multiple_of(24) => LONGEST_CALL,
            n if n.is_multiple_of(3) => LONG_CALL,
            _ => SHORT_CALL,
        }
    }

    /// The call got through, which says nothing about what the neighbour thinks of us.
    pub(super) fn connected(&mut self) {
        self.is_calling = false;
    }

    /// The call came to nothing.
    pub(super) fn failed(&mut self, now: Duration) {
        self.is_calling = false;
        self.dropped(now);
    }

    /// What a call led to ended before anything was believed.
    pub(super) fn dropped(&mut self, now: Duration) {
        self.n_failed = self.n_failed.saturating_add(1);
        self.wait(now);
    }

    /// The neighbour does not know our key. Gives how often it has said so, each time that has doubled.
    pub(super) fn refused(&mut self, now: Duration) -> Option<u64> {
        self.n_refused += 1;
        self.wait(now);
        self.n_refused.is_power_of_two().then_some(self.n_refused)
    }

    /// A connection that worked is lost.
    pub(super) fn lost(&mut self, now: Duration) {
        let head_start = if self.dials_first { Duration::ZERO } else { HEAD_START };
        self.next = now + head_start;
    }

    /// A signed frame of the neighbour's has arrived: it knows us.
    pub(super) fn believed(&mut self) {
        (self.n_failed, self.n_refused) = (0, 0);
    }

    fn wait(&mut self, now: Duration) {
        let after = |n: u64, longest: Duration| match n {
            0 => Duration::ZERO,
            n => FIRST_WAIT.saturating_mul(1 << (n - 1).min(16)).min(longest),
        };
        let wait = after(self.n_failed.into(), SLOWEST_CALL).max(after(self.n_refused, SLOWEST_REFUSED));
        // Two ends that were cut off at once do not dial at once for ever.
        self.next = now + wait.mul_f64(0.75 + 0.5 * self.random.unit());
    }
}
