//! Zero-concentrated differential privacy: charges add up, conversion at the end.

use padmm_privacy::outward::add_up;
use padmm_privacy::{Delta, Epsilon, Event, PrivacyError, ZcdpRho, paper_epsilon, zcdp_epsilon};

use super::{Accountant, charge};

/// How a sum of zCDP charges becomes an epsilon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZcdpConversion {
    /// `rho + 2 sqrt(rho ln(1/delta))`, as in the paper.
    Paper,
    /// The best Renyi order; never larger, and valid for the same mechanisms.
    OptimalOrder,
}

/// The accountant of the paper's Theorem 3, `rho = sum of rho(k)`, for any event that has a charge.
///
/// Guarantee: holds for continuous and discrete Gaussian noise alike, for pure differential privacy and for Gaussian
/// objective perturbation.
#[derive(Debug, Clone)]
pub struct ZcdpAccountant {
    rho: ZcdpRho,
    conversion: ZcdpConversion,
}

impl ZcdpAccountant {
    /// An accountant to which nothing has been charged, and which will convert its sum by `conversion`.
    pub fn new(conversion: ZcdpConversion) -> Self {
        Self { rho: ZcdpRho::ZERO, conversion }
    }
}

impl Accountant for ZcdpAccountant {
    fn compose(&mut self, event: &Event) -> Result<(), PrivacyError> {
        self.rho = ZcdpRho::new(add_up(self.rho.value(), charge(event)?.value()))?;
        Ok(())
    }

    fn rho(&self) -> ZcdpRho {
        self.rho
    }

    fn epsilon(&self, delta: Delta) -> Epsilon {
        match self.conversion {
            ZcdpConversion::Paper => paper_epsilon(self.rho, delta),
            ZcdpConversion::OptimalOrder => zcdp_epsilon(self.rho, delta),
        }
    }

    fn name(&self) -> &'static str {
        match self.conversion {
            ZcdpConversion::Paper => "zCDP, the paper's conversion",
            ZcdpConversion::OptimalOrder => "zCDP, optimal order",
        }
    }
}
