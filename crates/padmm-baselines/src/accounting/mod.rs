//! Accounting that a real site's guarantee does not rest on: accountants to which events can be replayed, composition of pure mechanisms,
//! and Renyi divergences.

mod accountant;
mod basic_accountant;
mod charge;
pub(crate) mod composition;
mod gdp_accountant;
pub(crate) mod privacy_loss;
mod pure_accountant;
mod rdp_accountant;
pub(crate) mod renyi;
mod zcdp_accountant;

pub use accountant::Accountant;
pub use basic_accountant::BasicAccountant;
pub use charge::charge;
pub use composition::{CompositionRule, compose_pure, per_step_epsilon};
pub use gdp_accountant::GdpAccountant;
pub use pure_accountant::PureAccountant;
pub use rdp_accountant::RdpAccountant;
pub use zcdp_accountant::{ZcdpAccountant, ZcdpConversion};

use padmm_core::plan::AccountantKind;

/// How pure mechanisms are composed when a plan names this accountant: by the best rule, or as published.
pub fn composition_rule(accountant: AccountantKind) -> CompositionRule {
    match accountant {
        AccountantKind::Exact => CompositionRule::Best,
        AccountantKind::Paper | AccountantKind::Basic => CompositionRule::Basic,
    }
}
