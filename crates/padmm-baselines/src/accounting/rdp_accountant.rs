//! Renyi differential privacy: divergences add up order by order, and the best order is chosen at the end.

use padmm_privacy::{Delta, Epsilon, Event, PrivacyError, ZcdpRho};

use super::Accountant;
use crate::accounting::renyi::RenyiCurve;

/// The Renyi accountant, for every event that has a charge.
///
/// Guarantee: holds for continuous and discrete Gaussian noise, for pure differential privacy and for Gaussian objective
/// perturbation, in any mixture, adaptively chosen or not.
#[derive(Debug, Clone, Default)]
pub struct RdpAccountant {
    curve: RenyiCurve,
}

impl RdpAccountant {
    /// An accountant to which nothing has been charged.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Accountant for RdpAccountant {
    fn compose(&mut self, event: &Event) -> Result<(), PrivacyError> {
        self.curve.add(event)
    }

    fn rho(&self) -> ZcdpRho {
        self.curve.rho()
    }

    fn epsilon(&self, delta: Delta) -> Epsilon {
        Epsilon::new(self.curve.epsilon(delta)).expect("bounded by the paper's conversion")
    }

    fn name(&self) -> &'static str {
        "Renyi, best order"
    }
}
