//! The variance decay of the paper.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use crate::error::{PrivacyError, require};
use crate::outward::{add_up, div_up, pow_up};

/// Schedules longer than this would make the sums below slow, and no plan needs them.
const MOST_ROUNDS: u32 = 1_000_000;
/// Beyond this the first round is all but free and the last one takes the whole budget.
const LARGEST_SUM: f64 = 1e100;

/// How the noise fades: over `rounds` rounds the variance is multiplied by `rate` each round.
///
/// ```text
/// noise_var(k + 1) = rate * noise_var(k),   0 < rate <= 1
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decay {
    rounds: u32,
    rate: f64,
}

impl Decay {
    /// Checks that there are rounds, that the variance does not grow, and that the charges can be added up.
    pub fn new(rounds: u32, rate: f64) -> Result<Self, PrivacyError> {
        require((1..=MOST_ROUNDS).contains(&rounds), "rounds", f64::from(rounds), "between 1 and 1000000")?;
        require(rate > 0.0 && rate <= 1.0, "variance decay", rate, "above 0 and at most 1")?;
        let decay = Self { rounds, rate };
        // NaN cannot occur, infinity can: both fail this comparison.
        if decay.sum_of_charges() <= LARGEST_SUM {
            Ok(decay)
        } else {
            Err(PrivacyError::DecayTooSteep { rounds, rate })
        }
    }

    /// The paper's K, at least 1.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The paper's R, by which the variance is multiplied from one round to the next; above 0 and at most 1.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The paper's Theorem 3 divided by its first charge, rounded up:
    ///
    /// ```text
    /// sum over k < K of R^-k = (1 - R^K) / (R^(K-1) - R^K),   and K for R = 1
    /// ```
    ///
    /// Summed from the inside, `1 + (1 + ...)/R`, which has no cancellation near R = 1.
    pub fn sum_of_charges(&self) -> f64 {
        if self.rate == 1.0 {
            return f64::from(self.rounds);
        }
        (1..self.rounds).fold(1.0, |sum, _| add_up(1.0, div_up(sum, self.rate)))
    }

    /// Standard deviation of round `round` relative to the first: `R^((round-1)/2)`, rounded up but never above 1.
    pub(crate) fn std_ratio(&self, round: u32) -> f64 {
        pow_up(self.rate, 0.5 * f64::from(round - 1)).min(1.0)
    }
}
