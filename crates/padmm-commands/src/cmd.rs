//! One file a subcommand: its arguments, and `run`. And the list of those that two programs have.

pub mod account;
pub mod advise;
pub mod data;
pub mod evaluate;
pub mod own;
pub mod predict;
pub mod schema;

pub use padmm_core::schema::OWN_EYES;

/// What both `padmm` and `padmm-site` can be asked for.
#[derive(clap::Subcommand)]
pub enum Shared {
    /// From noise to epsilon and back, without data
    Account(account::Args),
    /// What a network may be expected to come to, before anybody signs: from public facts, without records
    Advise(Box<advise::Args>),
    /// List, describe or export the data sets that are built in
    Data(data::Args),
    /// Draft a schema for a file, or check a file against one
    Schema(schema::Args),
    /// Apply a saved model to a file
    Predict(predict::Args),
    /// Score a saved model on a file with labels
    Evaluate(evaluate::Args),
    /// Fit a model for use inside this site alone, from the joint model and the site's own records
    Own(own::Args),
}

/// Does what is asked for.
///
/// # Errors
/// Those of the subcommand.
pub fn run(command: Shared) -> anyhow::Result<()> {
    match command {
        Shared::Account(args) => account::run(&args),
        Shared::Advise(args) => advise::run(*args),
        Shared::Data(args) => data::run(args),
        Shared::Schema(args) => schema::run(args),
        Shared::Predict(args) => predict::run(args),
        Shared::Evaluate(args) => evaluate::run(args),
        Shared::Own(args) => own::run(&args),
    }
}
