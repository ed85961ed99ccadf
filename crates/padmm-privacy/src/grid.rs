//! The release grid: how fine it is, what rounding to it adds to the sensitivity, and what discrete noise costs in delta.

use crate::budget::Delta;
use crate::error::{PrivacyError, require};
use crate::outward::{add_up, div_up, exp_up, mul_up, sqrt_up, sub_down};

/// Coarsest grid: a step is at most 2^-24 of the noise.
pub(crate) const FEWEST_BITS: u32 = 24;
/// Finest grid: below this, doubles leave too little room for the value itself.
pub(crate) const MOST_BITS: u32 = 40;
/// Rounding to the grid may add this fraction to the sensitivity at most, else the grid is made finer.
const LARGEST_SHARE: f64 = 1.0 / 1024.0;
/// Discreteness may use up this fraction of delta at most.
pub(crate) const LARGEST_SLACK_FRACTION: f64 = 0.01;
/// Steps outside these exponents would leave the range in which `integer * step` is an exact double.
const EXPONENTS: std::ops::RangeInclusive<i32> = -1022..=970;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grid {
    /// Steps are `2^(floor(log2 noise_std) - bits)`.
    pub bits: u32,
    /// What discreteness takes from delta, or `None` if no grid within reach makes that small enough.
    pub slack: Option<f64>,
}

impl Grid {
    /// The coarsest grid of 24 to 40 bits on which rounding adds at most 1/1024 to the sensitivity and discreteness costs
    /// at most a hundredth of delta at `epsilon`.
    pub(crate) fn choose(
        epsilon: f64,
        delta: Delta,
        multiplier: f64,
        n_features: usize,
        rounds: u32,
    ) -> Result<Self, PrivacyError> {
        let coarsest =
            (FEWEST_BITS..=MOST_BITS).find(|&bits| share(multiplier, n_features, bits) <= LARGEST_SHARE);
        let Some(coarsest) = coarsest else {
            let allowed = "small enough for a grid of 40 bits; raise epsilon or use fewer rounds";
            return Err(PrivacyError::OutOfRange { name: "noise multiplier", value: multiplier, allowed });
        };
        let affordable = LARGEST_SLACK_FRACTION * delta.value();
        let slack_at = |bits| discreteness_slack(epsilon, n_features, rounds, bits);
        Ok(match (coarsest..=MOST_BITS).find(|&bits| slack_at(bits) <= affordable) {
            Some(bits) => Self { bits, slack: Some(slack_at(bits)) },
            None => Self { bits: coarsest, slack: None },
        })
    }

    /// Noise and enlarged sensitivity of the first round, both rounded up, with `noise_std = multiplier * sensitivity`:
    ///
    /// ```text
    /// enlarged = sensitivity + step * sqrt(p),   step <= noise_std * 2^-bits
    /// so enlarged = sensitivity / (1 - multiplier * 2^-bits * sqrt(p))
    /// ```
    ///
    /// Rounding moves each of the two neighbouring points by at most step/2 a coordinate. The first round has the widest
    /// step, and one enlarged sensitivity serves all rounds, so that the charges stay exactly geometric.
    pub(crate) fn enlarge(
        &self,
        sensitivity: f64,
        multiplier: f64,
        n_features: usize,
    ) -> Result<(f64, f64), PrivacyError> {
        let mut enlarged = div_up(sensitivity, sub_down(1.0, share(multiplier, n_features, self.bits)));
        loop {
            let noise_std = mul_up(multiplier, enlarged);
            self.check(noise_std)?;
            let step = libm::scalbn(noise_std, -(self.bits as i32));
            // The closed form misses by the rounding of noise_std at most; the check is what is relied on.
            if add_up(sensitivity, mul_up(step, sqrt_up(n_features as f64))) <= enlarged {
                return Ok((noise_std, enlarged));
            }
            enlarged = enlarged.next_up();
        }
    }

    /// Exponent of the step for noise of this standard deviation: `floor(log2 noise_std) - bits`.
    pub(crate) fn exponent(&self, noise_std: f64) -> i32 {
        libm::ilogb(noise_std) - self.bits as i32
    }

    /// Refuses noise whose grid does not fit into doubles.
    pub(crate) fn check(&self, noise_std: f64) -> Result<(), PrivacyError> {
        let fits = noise_std.is_normal() && is_exact_exponent(self.exponent(noise_std));
        require(fits, "noise_std", noise_std, "between about 1e-295 and 1e290; rescale the data")
    }
}

/// Whether integers below 2^53 times `2^exponent` are exact doubles.
pub(crate) fn is_exact_exponent(exponent: i32) -> bool {
    EXPONENTS.contains(&exponent)
}

/// The fraction of the enlarged sensitivity that rounding to the grid makes up, rounded up.
fn share(multiplier: f64, n_features: usize, bits: u32) -> f64 {
    libm::scalbn(mul_up(multiplier, sqrt_up(n_features as f64)), -(bits as i32))
}

/// The part of delta that the discreteness of the noise costs, rounded up:
///
/// ```text
/// slack = (1 + e^epsilon) * p * K / (12 * 4^bits)
/// ```
///
/// Rounded true Gaussian noise and discrete Gaussian noise of scale s differ by at most `1/(12 s^2)` in total variation
/// per coordinate (s >= 10), and here `s >= 2^bits`. Over p coordinates and K rounds, adaptively, that adds up to
/// `t = pK/(12 s^2)`; swapping the two on both sides of `P <= e^epsilon P' + delta` costs `t + e^epsilon t`.
pub(crate) fn discreteness_slack(epsilon: f64, n_features: usize, rounds: u32, bits: u32) -> f64 {
    let releases = mul_up(n_features as f64, f64::from(rounds));
    let factor = add_up(1.0, exp_up(epsilon));
    libm::scalbn(div_up(mul_up(factor, releases), 12.0), -2 * bits as i32)
}
