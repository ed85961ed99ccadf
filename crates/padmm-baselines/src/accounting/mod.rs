//! Accounting that only the compared methods need: composition of pure mechanisms, and Renyi divergences.

mod basic_accountant;
pub(crate) mod composition;
pub(crate) mod privacy_loss;
mod pure_accountant;
mod rdp_accountant;
pub(crate) mod renyi;

pub use basic_accountant::BasicAccountant;
pub use composition::{CompositionRule, compose_pure, per_step_epsilon};
pub use pure_accountant::PureAccountant;
pub use rdp_accountant::RdpAccountant;

use padmm_privacy::{AccountantKind, Event, PrivacyError};

/// How pure mechanisms are composed when a plan names this accountant: by the best rule, or as published.
pub fn composition_rule(accountant: AccountantKind) -> CompositionRule {
    match accountant {
        AccountantKind::Exact => CompositionRule::Best,
        AccountantKind::Paper | AccountantKind::Basic => CompositionRule::Basic,
    }
}

/// The epsilon of a pure event with its charge in zCDP, for accountants that know no other.
fn pure_epsilon(event: &Event, accountant: &'static str) -> Result<(f64, f64), PrivacyError> {
    match *event {
        Event::PureDp { epsilon } => Ok((epsilon, event.rho()?.value())),
        Event::NonPrivate => event.rho().map(|rho| (rho.value(), rho.value())),
        Event::Gaussian { .. } | Event::GaussianObjective { .. } => Err(PrivacyError::NotPure { accountant }),
    }
}
