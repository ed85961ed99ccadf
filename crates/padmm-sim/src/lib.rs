//! All agents in one process: the same agents as between real sites, with messages handed over in memory, noise from a
//! seed, and metrics that see all data.

#![warn(clippy::unwrap_used)]

mod builder;
mod kept;
pub mod metrics;
pub mod noise;
mod optimum;
pub mod own;
pub mod record;
mod settings;
mod simulation;
mod spent;
pub mod split;

pub use builder::{Finished, Privacy, Simulation, Topology};
pub use kept::Kept;
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

/// Why a simulation cannot run, or stopped.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum SimError {
    /// A setting that is not known, or a value that it cannot have.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Somebody did not want to wait for the rest.
    #[error("the simulation was stopped before its last round")]
    Stopped,
    /// A split that is not known.
    #[error(
        "`split = {text}` is not known: use even, site, label-skew:ALPHA, size-skew:ALPHA or graded:RATIO with a number above 0, or sizes: and a list such as 4000,3x20"
    )]
    UnknownSplit { text: String },
    /// A holdout that is not known.
    #[error(
        "`holdout = {text}` is not known: use a fraction above 0 and below 1, 'stratified:' and a fraction, 'official', or 'none'"
    )]
    UnknownHoldout { text: String },
    /// A holdout that takes all or nothing.
    #[error("`holdout = {fraction}` of {records} records leaves nothing to train on, or sets nothing aside")]
    HoldoutLeavesNothing { fraction: f64, records: usize },
    /// There is no published test file.
    #[error(
        "`holdout = official` needs a data set that was published with a test file (adult has one): use a fraction"
    )]
    NoOfficialTest,
    /// The records are to stay where they come from, and the schema does not say where that is.
    #[error(
        "`split = site` needs a site column, and the schema has none: add [site] column = \"…\" to the schema"
    )]
    NoSiteColumn,
    /// The number of agents contradicts the sites.
    #[error(
        "`agents = {agents}` contradicts the {sites} sites of the site column: leave `agents` out, or use another `split`"
    )]
    AgentsAreSites {
        /// As many as were asked for, or as the given graph has.
        agents: usize,
        /// As many as the data has.
        sites: usize,
    },
    /// The number of agents contradicts the list of sizes.
    #[error("`agents = {agents}` contradicts the {sizes} sizes of `split`: leave `agents` out")]
    AgentsAreSizes { agents: usize, sizes: usize },
    /// A list of sizes for which there are not enough records.
    #[error(
        "the sizes of `split` add up to {wanted} records, and there are {records} to train on: ask for fewer, or set fewer aside"
    )]
    SizesTooLarge { wanted: usize, records: usize },
    /// No record of a site is left to train on, after incomplete ones and the holdout.
    #[error(
        "site '{site}' has no complete record to train on: remove it from the file, or fill its missing values from a public constant (missing = \"fill\" in the schema)"
    )]
    EmptySite { site: String },
    /// Somebody would have nothing to train on.
    #[error("`agents = {agents}` cannot share {records} training records: every agent needs at least one")]
    TooManyAgents {
        agents: usize,
        /// Records that are left after the holdout.
        records: usize,
    },
    /// A skewed split that keeps leaving somebody with nothing.
    #[error(
        "`split = {split}` leaves one of {agents} agents without records in every draw: use a larger ALPHA or fewer agents"
    )]
    SplitLeavesEmpty { split: String, agents: usize },
    /// Labels that do not fit the loss.
    #[error("`loss = {loss}` needs {needed} labels, but the schema's label is {found}")]
    LabelKind { loss: String, needed: &'static str, found: &'static str },
    /// The pooled problem has no certified solution.
    #[error(
        "the pooled optimum was not found to {tolerance:.1e} (residual {residual:.1e}): use some `regularization`"
    )]
    NoOptimum { tolerance: f64, residual: f64 },
    /// A mean over no runs was asked for.
    #[error("`runs` must be at least 1")]
    NoRuns,
    /// The graph cannot be built for these sites.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The plan contradicts itself or leaves its ranges.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Tolerances, sensitivities or noise cannot be derived from the plan.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The coefficients do not make a model of this schema.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A budget or a schedule that the privacy core refuses.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// A site could not take its turn, and the run ends for all.
    #[error("site '{site}' stopped: {problem}")]
    Agent { site: String, problem: AgentError },
}
