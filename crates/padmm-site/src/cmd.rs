//! One file a subcommand: its arguments, and `run`.

pub(crate) mod audit;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod ledger;
pub(crate) mod plan;
pub(crate) mod site;
