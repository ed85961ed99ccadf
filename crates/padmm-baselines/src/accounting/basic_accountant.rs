//! Basic composition: epsilons add up, and delta stays zero.

use padmm_privacy::outward::add_up;
use padmm_privacy::{Delta, Epsilon, Event, PrivacyError, ZcdpRho};

use super::Accountant;
use super::charge::pure_epsilon;

/// The accountant of the published pure methods: `epsilon = sum of epsilon(k)`, for pure events only.
///
/// Guarantee: holds at delta = 0, so whatever delta is asked with, the answer is the same.
#[derive(Debug, Clone, Default)]
pub struct BasicAccountant {
    epsilon: f64,
    rho: f64,
}

impl BasicAccountant {
    /// An accountant to which nothing has been charged.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Accountant for BasicAccountant {
    fn compose(&mut self, event: &Event) -> Result<(), PrivacyError> {
        let (epsilon, charge) = pure_epsilon(event, self.name())?;
        let rho = ZcdpRho::new(add_up(self.rho, charge))?;
        self.epsilon = Epsilon::new(add_up(self.epsilon, epsilon))?.value();
        self.rho = rho.value();
        Ok(())
    }

    fn rho(&self) -> ZcdpRho {
        ZcdpRho::new(self.rho).expect("checked when the last event was added")
    }

    fn epsilon(&self, _delta: Delta) -> Epsilon {
        Epsilon::new(self.epsilon).expect("checked when the last event was added")
    }

    fn name(&self) -> &'static str {
        "basic"
    }
}
