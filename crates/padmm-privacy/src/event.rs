//! What happened, as data: mechanisms describe, accountants judge.

use serde::{Deserialize, Serialize};

use crate::budget::ZcdpRho;
use crate::error::{PrivacyError, require};
use crate::outward::{div_up, mul_up};

/// One use of private data. A list of events is all that an accountant needs, and all that a ledger keeps.
///
/// Real sites have Gaussian events only. The others are those of the compared methods: they are written down in records of simulations,
/// and their charges are in `padmm-baselines`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// Gaussian noise of standard deviation `noise_std` on every coordinate of a vector with this L2 sensitivity.
    Gaussian {
        /// L2 sensitivity, the grid's share included.
        sensitivity: f64,
        /// Standard deviation of the noise on each coordinate.
        noise_std: f64,
    },
    /// Any mechanism that is epsilon-differentially private with delta = 0.
    PureDp {
        /// The mechanism's epsilon, which holds at delta = 0.
        epsilon: f64,
    },
    /// The minimiser of an objective whose linear term carries Gaussian noise.
    GaussianObjective {
        /// How far one record moves the gradient, in standard deviations of the noise: `2B/(n noise_std)`.
        shift: f64,
        /// Logarithm of the largest ratio of Jacobian determinants, `ln(1 + c1 S^2/(n m))`.
        jacobian: f64,
    },
    /// A release without noise. No accountant accepts it.
    NonPrivate,
}

impl Event {
    /// The charge of a Gaussian event in zCDP, rounded up (the paper's Theorem 2):
    ///
    /// ```text
    /// rho = sensitivity^2 / (2 noise_std^2)
    /// ```
    ///
    /// It holds for the continuous Gaussian and, with the same parameters, for the discrete one on a grid (Canonne, Kamath, Steinke
    /// 2020). NaN, negative numbers and every other event are errors, never a charge.
    pub fn rho(&self) -> Result<ZcdpRho, PrivacyError> {
        let Self::Gaussian { sensitivity, noise_std } = *self else {
            return Err(PrivacyError::NotGaussian { by: "the accounting of real sites" });
        };
        let is_length = sensitivity >= 0.0 && sensitivity.is_finite();
        require(is_length, "sensitivity", sensitivity, "finite and >= 0")?;
        require(noise_std > 0.0 && noise_std.is_finite(), "noise_std", noise_std, "finite and above 0")?;
        let ratio = div_up(sensitivity, noise_std);
        // Halving rounds too where the square is subnormal, hence upward as well: no use of data is free.
        ZcdpRho::new(mul_up(0.5, mul_up(ratio, ratio)))
    }
}
