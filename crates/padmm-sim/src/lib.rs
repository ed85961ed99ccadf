//! All agents in one process: the same agents as between real sites, with messages handed over in memory, noise from a
//! seed, and metrics that see all data.

#![warn(clippy::unwrap_used)]

mod builder;
pub mod metrics;
pub mod noise;
mod optimum;
pub mod record;
mod settings;
mod simulation;
mod spent;
pub mod split;

pub use builder::{Finished, Privacy, Simulation, Topology};
pub use noise::InsecureSeededNoise;
pub use padmm_core::settings::Settings;
pub use record::Record;
pub use settings::{simulation_settings, source_settings};
pub use simulation::{NoiseKind, PreparedSimulation, Progress, Run, RunOptions, SimulationPlan, simulate};
pub use split::{Holdout, Split};

use padmm_core::agent::AgentError;
use padmm_core::calibration::CalibrationError;
use padmm_core::graph::GraphError;
use padmm_core::model::ModelError;
use padmm_core::plan::PlanError;
use padmm_core::settings::SettingsError;
use padmm_privacy::PrivacyError;

/// Why a simulation cannot run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A setting that is not known, or a value that it cannot have.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Somebody did not want to wait for the rest.
    #[error("the simulation was stopped before its last round")]
    Stopped,
    /// A split that is not known.
    #[error(
        "`split = {text}` is not known: use even, site, label-skew:ALPHA or size-skew:ALPHA with ALPHA above 0"
    )]
    UnknownSplit {
        /// What was given.
        text: String,
    },
    /// A holdout that is not known.
    #[error(
        "`holdout = {text}` is not known: use a fraction above 0 and below 1, 'stratified:' and a fraction, 'official', or 'none'"
    )]
    UnknownHoldout {
        /// What was given.
        text: String,
    },
    /// A holdout that takes all or nothing.
    #[error("`holdout = {fraction}` of {records} records leaves nothing to train on, or sets nothing aside")]
    HoldoutLeavesNothing {
        /// The fraction.
        fraction: f64,
        /// All records.
        records: usize,
    },
    /// There is no published test file.
    #[error(
        "`holdout = official` needs a data set that was published with a test file (adult has one): use a fraction"
    )]
    NoOfficialTest,
    /// There is no site column.
    #[error(
        "`split = site` needs a site column, and the schema has none: add [site] column = \"…\" to the schema"
    )]
    NoSiteColumn,
    /// The number of agents contradicts the sites.
    #[error(
        "`agents = {agents}` contradicts the {sites} sites of the site column: leave `agents` out, or use another `split`"
    )]
    AgentsAreSites {
        /// Asked for.
        agents: usize,
        /// In the data.
        sites: usize,
    },
    /// A site without records.
    #[error(
        "site '{site}' has no complete record to train on: remove it from the file, or fill its missing values from a public constant (missing = \"fill\" in the schema)"
    )]
    EmptySite {
        /// Its name.
        site: String,
    },
    /// More agents than records.
    #[error("`agents = {agents}` cannot share {records} training records: every agent needs at least one")]
    TooManyAgents {
        /// Asked for.
        agents: usize,
        /// Records that train.
        records: usize,
    },
    /// A skewed split that keeps leaving somebody with nothing.
    #[error(
        "`split = {split}` leaves one of {agents} agents without records in every draw: use a larger ALPHA or fewer agents"
    )]
    SplitLeavesEmpty {
        /// The split.
        split: String,
        /// Agents.
        agents: usize,
    },
    /// Labels that do not fit the loss.
    #[error("`loss = {loss}` needs {needed} labels, but the schema's label is {found}")]
    LabelKind {
        /// The loss.
        loss: String,
        /// What it needs.
        needed: &'static str,
        /// What there is.
        found: &'static str,
    },
    /// The pooled problem has no certified solution.
    #[error(
        "the pooled optimum was not found to {tolerance:.1e} (residual {residual:.1e}): use some `regularization`"
    )]
    NoOptimum {
        /// Wanted.
        tolerance: f64,
        /// Reached.
        residual: f64,
    },
    /// The number of runs.
    #[error("`runs` must be at least 1")]
    NoRuns,
    /// The graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The terms.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// Coefficients that are no model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The privacy core.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// An agent stopped.
    #[error("site '{site}' stopped: {problem}")]
    Agent {
        /// Its name.
        site: String,
        /// Why.
        problem: AgentError,
    },
}
