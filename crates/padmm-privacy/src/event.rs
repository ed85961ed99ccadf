//! What happened, as data: mechanisms describe, accountants judge.

use serde::{Deserialize, Serialize};

use crate::budget::ZcdpRho;
use crate::error::{PrivacyError, require};
use crate::outward::{add_up, div_up, mul_up, sqrt_up};

/// One use of private data. A list of events is all that an accountant needs, and all that a ledger keeps.
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
    /// The minimiser of an objective whose linear term carries Gaussian noise (the experimental method of `padmm-baselines`, which has the proof).
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
    /// The charge in zCDP, rounded up.
    ///
    /// ```text
    /// Gaussian:  rho = sensitivity^2 / (2 noise_std^2)        (the paper's Theorem 2)
    /// PureDp:    rho = epsilon^2 / 2                          (Bun, Steinke 2016)
    /// GaussianObjective:  rho = jacobian + shift sqrt(2/pi) + shift^2 / 2
    /// ```
    ///
    /// The first holds for the continuous Gaussian and, with the same parameters, for the discrete one on a grid
    /// (Canonne, Kamath, Steinke 2020). NaN, negative numbers and [`Event::NonPrivate`] are errors, never a charge.
    ///
    /// Proof of the third. With s the shift, the divergence of order a > 1 is at most
    /// `jacobian + a s^2/2 + ln(2 Phi((a-1) s))/(a-1)` (proved in `padmm-baselines`). `ln(2 Phi(t))` is concave in t, as Phi is
    /// log-concave, vanishes at t = 0 and has the slope `phi(0)/Phi(0) = sqrt(2/pi)` there, so it is at most `t sqrt(2/pi)` for
    /// t >= 0. Hence the divergence is at most `jacobian + s sqrt(2/pi) + a s^2/2`, and since a >= 1 that is at most a times
    /// the charge. Unlike the other two this charge is linear in s: many small steps are cheaper by Renyi divergences.
    pub fn rho(&self) -> Result<ZcdpRho, PrivacyError> {
        let ratio = match *self {
            Self::Gaussian { sensitivity, noise_std } => {
                require(
                    sensitivity >= 0.0 && sensitivity.is_finite(),
                    "sensitivity",
                    sensitivity,
                    "finite and >= 0",
                )?;
                require(
                    noise_std > 0.0 && noise_std.is_finite(),
                    "noise_std",
                    noise_std,
                    "finite and above 0",
                )?;
                div_up(sensitivity, noise_std)
            }
            Self::PureDp { epsilon } => {
                require(epsilon >= 0.0 && epsilon.is_finite(), "epsilon", epsilon, "finite and >= 0")?;
                epsilon
            }
            Self::GaussianObjective { shift, jacobian } => {
                require(shift >= 0.0 && shift.is_finite(), "shift", shift, "finite and >= 0")?;
                require(jacobian >= 0.0 && jacobian.is_finite(), "jacobian", jacobian, "finite and >= 0")?;
                let square = mul_up(0.5, mul_up(shift, shift));
                return ZcdpRho::new(add_up(add_up(jacobian, folded_mean_up(shift)), square));
            }
            Self::NonPrivate => return Err(PrivacyError::NotPrivate { by: "a privacy accountant" }),
        };
        // Halving rounds too where the square is subnormal, hence upward as well: no use of data is free.
        ZcdpRho::new(mul_up(0.5, mul_up(ratio, ratio)))
    }
}

/// `s sqrt(2/pi)`, rounded up: the mean of the absolute value of a Gaussian with standard deviation s.
pub fn folded_mean_up(shift: f64) -> f64 {
    mul_up(shift, sqrt_up(div_up(2.0, std::f64::consts::PI)))
}
