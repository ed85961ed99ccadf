//! Noise for the next release, drawn while the site waits for its neighbours.

use std::collections::VecDeque;
use std::thread::JoinHandle;

use padmm_privacy::{NoiseSource, PrivacyError, Schedule};

/// How much noise one release takes: the scale of its integers, and how many they are.
type Draw = (f64, usize);

/// The draws of a schedule from `round` on. A free round has none.
pub(super) fn draws(schedule: &dyn Schedule, round: u32) -> impl Iterator<Item = Draw> {
    (round..=schedule.rounds()).filter_map(|round| {
        // The step of a grid is a power of two, so this is the scale that the gate asks for, to the bit.
        let step = 2f64.powi(schedule.grid_exponent(round)?);
        Some((schedule.noise_std(round)? / step, schedule.n_coordinates(round)))
    })
}

/// A source that is one draw ahead of whoever asks it.
///
/// Exact noise on a wide model takes longer than the model's way to the next hospital. It depends on the plan alone, so it can be drawn
/// before it is needed: it is in memory only, is handed out once, and is gone if nobody comes for it.
pub(super) struct NoiseAhead {
    /// Of the source, which may be in the other thread.
    description: &'static str,
    is_secure: bool,
    upcoming: VecDeque<Draw>,
    state: State,
}

/// The source, and what it drew.
type Drawn = (Box<dyn NoiseSource>, Result<Vec<i64>, PrivacyError>);

enum State {
    /// Nothing is expected.
    Idle(Box<dyn NoiseSource>),
    Drawing(Draw, JoinHandle<Drawn>),
    /// A thread took the source with it.
    Lost,
}

impl NoiseAhead {
    /// Begins with the first of the `upcoming` draws at once.
    pub(super) fn new(source: Box<dyn NoiseSource>, upcoming: impl Iterator<Item = Draw>) -> Self {
        let (description, is_secure) = (source.description(), source.is_secure());
        let mut ahead = Self { description, is_secure, upcoming: upcoming.collect(), state: State::Lost };
        ahead.draw_next(source);
        ahead
    }

    fn draw_next(&mut self, mut source: Box<dyn NoiseSource>) {
        let Some(draw) = self.upcoming.pop_front() else {
            self.state = State::Idle(source);
            return;
        };
        let (scale, n) = draw;
        let thread = std::thread::spawn(move || {
            let mut noise = vec![0; n];
            let filled = source.fill(scale, &mut noise);
            (source, filled.map(|()| noise))
        });
        self.state = State::Drawing(draw, thread);
    }
}

impl NoiseSource for NoiseAhead {
    fn fill(&mut self, scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        let lost = || PrivacyError::NoiseFailed { reason: "the thread that draws it has stopped".to_owned() };
        let mut source = match std::mem::replace(&mut self.state, State::Lost) {
            State::Lost => return Err(lost()),
            State::Idle(source) => source,
            State::Drawing((drawn_scale, n), thread) => {
                let (source, noise) = thread.join().map_err(|_| lost())?;
                if drawn_scale.to_bits() == scale.to_bits() && n == out.len() {
                    self.draw_next(source);
                    out.copy_from_slice(&noise?);
                    return Ok(());
                }
                // Not what was expected: that noise is never used.
                source
            }
        };
        let filled = source.fill(scale, out);
        self.draw_next(source);
        filled
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn is_secure(&self) -> bool {
        self.is_secure
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use padmm_privacy::{
        Budget, Conversion, Decay, NoiseRequest, NoiseSchedule, RequiredCertificate, Sensitivity,
        SensitivityInputs, SumRound, Terms,
    };

    use super::*;

    /// Counts up, says what it was asked for, and fails at a scale of 13.
    struct Counting(i64, Sender<Draw>);

    impl NoiseSource for Counting {
        fn fill(&mut self, scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
            self.1.send((scale, out.len())).expect("the test listens");
            if scale.to_bits() == 13f64.to_bits() {
                return Err(PrivacyError::NoiseFailed { reason: "thirteen".to_owned() });
            }
            assert!(scale.to_bits() != 17f64.to_bits(), "a thread that panics");
            for slot in out {
                self.0 += 1;
                *slot = self.0;
            }
            Ok(())
        }

        fn description(&self) -> &'static str {
            "counting"
        }

        fn is_secure(&self) -> bool {
            false
        }
    }

    fn ahead(upcoming: &[Draw]) -> (NoiseAhead, Receiver<Draw>) {
        let (asked, heard) = channel();
        (NoiseAhead::new(Box::new(Counting(0, asked)), upcoming.iter().copied()), heard)
    }

    fn fill(noise: &mut NoiseAhead, scale: f64, n: usize) -> Result<Vec<i64>, PrivacyError> {
        let mut out = vec![0; n];
        noise.fill(scale, &mut out).map(|()| out)
    }

    #[test]
    fn noise_is_drawn_before_it_is_asked_for_and_handed_out_once() {
        let (mut noise, heard) = ahead(&[(2.0, 3), (3.0, 2)]);
        assert_eq!(heard.recv().expect("nobody has asked yet"), (2.0, 3));
        assert_eq!(fill(&mut noise, 2.0, 3).expect("it is there"), [1, 2, 3]);
        assert_eq!(heard.recv().expect("nobody has asked yet"), (3.0, 2));
        assert_eq!(fill(&mut noise, 3.0, 2).expect("it is there"), [4, 5]);
        // Nothing is expected any longer, and what is asked for all the same is drawn then.
        assert_eq!(fill(&mut noise, 3.0, 2).expect("drawn"), [6, 7]);
        assert_eq!((noise.description(), noise.is_secure()), ("counting", false));
    }

    #[test]
    fn noise_of_another_scale_or_length_than_asked_for_is_never_used() {
        let (mut noise, _heard) = ahead(&[(2.0, 3), (4.0, 1)]);
        assert_eq!(fill(&mut noise, 5.0, 3).expect("drawn"), [4, 5, 6], "of the wrong scale were 1, 2, 3");
        assert_eq!(fill(&mut noise, 4.0, 2).expect("drawn"), [8, 9], "too short was 7");
    }

    #[test]
    fn what_fails_ahead_of_time_fails_when_it_is_asked_for() {
        let (mut noise, _heard) = ahead(&[(13.0, 1), (2.0, 1), (17.0, 1)]);
        assert!(fill(&mut noise, 13.0, 1).unwrap_err().to_string().contains("thirteen"));
        assert_eq!(fill(&mut noise, 2.0, 1).expect("the source is as it was"), [1]);
        // A source that panicked is not asked again.
        assert!(fill(&mut noise, 17.0, 1).unwrap_err().to_string().contains("stopped"));
        assert!(fill(&mut noise, 2.0, 1).unwrap_err().to_string().contains("stopped"));
    }

    /// The scales and lengths that a gate asks for.
    fn asked(schedule: &dyn Schedule, required: RequiredCertificate) -> Vec<Draw> {
        let mechanism = schedule.mechanism(required).expect("it fits");
        let (asked, heard) = channel();
        let mut source = Counting(0, asked);
        (1..=schedule.rounds()).for_each(|round| drop(mechanism.draw(round, &mut source)));
        heard.try_iter().collect()
    }

    #[test]
    fn draws_are_those_that_a_gate_asks_for() {
        let (modulus, tolerance) = (0.1, 1e-9);
        let inputs = SensitivityInputs { gradient_bound: 1.0, n_records: 500, tolerance, modulus };
        let points = NoiseSchedule::calibrate(&NoiseRequest {
            budget: Budget::new(1.0, 1e-6).expect("a budget"),
            conversion: Conversion::Exact,
            decay: Decay::new(4, 0.9).expect("a decay"),
            sensitivity: Sensitivity::per_record(&inputs).expect("a bound"),
            n_features: 3,
            scales: None,
        })
        .expect("a schedule");
        let sum = |terms, n_coordinates, share| SumRound { terms, n_coordinates, share };
        let rounds =
            [sum(Terms::NonNegative, 9, 0.2), sum(Terms::Signed, 4, 0.3), sum(Terms::Signed, 4, 0.5)];
        let sums = NoiseSchedule::for_sums(Budget::new(1.0, 1e-6).expect("a budget"), 500, &rounds)
            .expect("a schedule");
        for schedule in [points, sums] {
            let all = asked(&schedule, RequiredCertificate { modulus, tolerance });
            assert_eq!(draws(&schedule, 1).collect::<Vec<_>>(), all);
            assert_eq!(draws(&schedule, 3).collect::<Vec<_>>(), all[2..], "two rounds have left already");
        }
    }
}
