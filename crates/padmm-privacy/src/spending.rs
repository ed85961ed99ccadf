//! What all runs on one data set have cost together, whatever their noise and grids were.

use serde::Serialize;

use crate::budget::{Delta, Epsilon, ZcdpRho};
use crate::convert::{gdp_epsilon, rho_to_mu, zcdp_epsilon};
use crate::error::PrivacyError;
use crate::event::Event;
use crate::outward::{add_up, div_up, mul_up, sub_down};

/// The sum of releases by discrete Gaussian noise on grids, over any number of runs.
///
/// ```text
/// rho = sum of Delta^2 / (2 sigma^2),      swap = sum of p / (12 s^2),      s = sigma / step
/// ```
///
/// `rho` is a zCDP bound for the discrete noise as it is. `swap` bounds the total variation between the discrete noise
/// of all releases and rounded true Gaussian noise, for which the exact conversion holds (EQUATIONS §5).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spending {
    rho: ZcdpRho,
    swap: f64,
}

impl Default for Spending {
    /// Of a data set that has never been used.
    fn default() -> Self {
        Self { rho: ZcdpRho::ZERO, swap: 0.0 }
    }
}

/// EQUATIONS §5 bounds the distance of the two kinds of noise from this scale on.
const LEAST_SCALE: f64 = 10.0;

impl Spending {
    /// Adds one release of `n_features` integers on the grid with step `2^exponent`, rounded up.
    ///
    /// Refuses events that are not Gaussian: their sum would need another rule.
    pub fn add(&mut self, event: &Event, n_features: usize, exponent: i32) -> Result<(), PrivacyError> {
        let Event::Gaussian { noise_std, .. } = *event else {
            return Err(PrivacyError::NotGaussian { by: "the sum over runs" });
        };
        let rho = ZcdpRho::new(add_up(self.rho.value(), event.rho()?.value()))?;
        // A power of two only shifts the exponent.
        let scale = libm::scalbn(noise_std, -exponent);
        let swap = if scale.is_finite() && scale >= LEAST_SCALE {
            div_up(div_up(div_up(n_features as f64, 12.0), scale), scale)
        } else {
            f64::INFINITY
        };
        self.rho = rho;
        self.swap = add_up(self.swap, swap);
        Ok(())
    }

    /// Sum of all releases' zCDP charges, rounded up; it holds for the discrete noise as it is.
    pub fn rho(&self) -> ZcdpRho {
        self.rho
    }

    /// Whether no more was spent than `other`, by either measure; its epsilon is then no larger.
    pub fn is_at_most(&self, other: &Self) -> bool {
        self.rho.value() <= other.rho.value() && self.swap <= other.swap
    }

    /// Epsilon at `delta`, rounded up: the smaller of the two valid conversions.
    ///
    /// With `slack(e) = (1 + exp(e)) swap`, every `e` with `gdp_delta(e) + slack(e) <= delta` is valid. A guess that is a
    /// little large gives a slack that is a little large, and the exact epsilon at what it leaves of delta is valid if it is at
    /// most the guess.
    pub fn epsilon(&self, delta: Delta) -> Epsilon {
        let by_zcdp = zcdp_epsilon(self.rho, delta);
        if self.rho.value() == 0.0 {
            return by_zcdp;
        }
        let mu = rho_to_mu(self.rho);
        let mut guess = gdp_epsilon(mu, delta).value();
        for _ in 0..40 {
            guess = mul_up(guess, 1.0001);
            let slack = mul_up(add_up(1.0, mul_up(libm::exp(guess), 1.0 + 1e-14)), self.swap);
            let left = sub_down(delta.value(), slack);
            let Ok(left) = Delta::new(left) else { break };
            let exact = gdp_epsilon(mu, left);
            if exact.value() <= guess {
                return if exact.value() < by_zcdp.value() { exact } else { by_zcdp };
            }
            guess = exact.value();
        }
        by_zcdp
    }
}
