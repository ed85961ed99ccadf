//! Optimal composition of pure mechanisms.

use padmm_privacy::outward::add_up;
use padmm_privacy::{Delta, Epsilon, Event, PrivacyError, ZcdpRho};

use super::Accountant;
use super::charge::pure_epsilon;
use crate::accounting::composition::{best, compose_pure};

/// The smallest epsilon that a list of pure events allows (see [`compose_pure`]), for pure events only.
#[derive(Debug, Clone, Default)]
pub struct PureAccountant {
    epsilons: Vec<f64>,
    rho: f64,
}

impl PureAccountant {
    /// An accountant to which nothing has been charged.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Accountant for PureAccountant {
    fn compose(&mut self, event: &Event) -> Result<(), PrivacyError> {
        let (epsilon, charge) = pure_epsilon(event, self.name())?;
        self.rho = ZcdpRho::new(add_up(self.rho, charge))?.value();
        self.epsilons.push(epsilon);
        Ok(())
    }

    fn rho(&self) -> ZcdpRho {
        ZcdpRho::new(self.rho).expect("checked when the last event was added")
    }

    fn epsilon(&self, delta: Delta) -> Epsilon {
        let compositions =
            compose_pure(&self.epsilons, delta).expect("every epsilon was checked when it was added");
        Epsilon::new(best(&compositions)).expect("bounded by the paper's conversion")
    }

    fn name(&self) -> &'static str {
        "optimal composition"
    }
}
