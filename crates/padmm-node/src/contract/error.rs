//! What can be wrong with a contract, or with somebody's word on one.

use std::path::PathBuf;

use padmm_core::algorithm::AlgorithmKind;
use padmm_core::calibration::CalibrationError;
use padmm_core::graph::GraphError;
use padmm_core::plan::PlanError;

use super::MAX_SITES;
use crate::identity::{Fingerprint, IdentityError, SiteName};

/// Why a plan, an acceptance or a card for a plan is refused.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum ContractError {
    #[error("cannot read {}: {problem}", path.display())]
    Read { path: PathBuf, problem: std::io::Error },
    #[error("{}{}: {problem}", path.display(), line.map(|l| format!(", line {l}")).unwrap_or_default())]
    Text {
        path: PathBuf,
        /// The line, where it is known.
        line: Option<usize>,
        /// What is wrong with it, in words.
        problem: String,
    },
    /// A plan or acceptance of another kind.
    #[error(
        "the file has format {found}, and this program reads format {known}: use the same version of padmm at all sites"
    )]
    Format {
        found: u32,
        /// The newest format that this program reads.
        known: u32,
    },
    /// A plan for another version of the program.
    #[error(
        "the plan is for padmm {found}, and this is padmm {here}: all sites of a run use the plan's version"
    )]
    Program {
        /// The version that the plan states.
        found: String,
        here: &'static str,
    },
    /// The schema is not the one whose hash the plan states.
    #[error(
        "the plan's schema does not have the hash that the plan states ({stated}, it has {found}): somebody changed one of them; make a new plan with `padmm-site plan new`"
    )]
    SchemaHash {
        /// The hash that the plan states.
        stated: String,
        /// The hash that its schema has.
        found: String,
    },
    /// A setting of the plan is out of range, or contradicts another.
    #[error("[settings]: {0}")]
    Settings(#[from] PlanError),
    /// A plan that leaves the penalty open.
    #[error(
        "[settings] has no `penalty`: all sites must use the same number; `padmm-site plan new` derives one and writes it down"
    )]
    NoPenalty,
    /// Noise that is not exact on a computer.
    #[error(
        "`algorithm = {algorithm}` has no guarantee for the bytes that leave a site, so it is for simulation only: use {}",
        AlgorithmKind::names_between_sites()
    )]
    NotExact {
        /// By the name that plans use.
        algorithm: &'static str,
    },
    /// A server or a token, which sites cannot have between them so far.
    #[error(
        "`algorithm = {algorithm}` has a server or a token, which sites cannot run between them, so it is for simulation only: use {}",
        AlgorithmKind::names_between_sites()
    )]
    NotBetweenSites {
        /// By the name that plans use.
        algorithm: &'static str,
    },
    /// A sensitivity that is for comparison only.
    #[error("[settings] has `sensitivity = \"paper\"`, which is proved for nothing real: use \"record\"")]
    Sensitivity,
    /// A loss for another kind of label.
    #[error(
        "the loss {loss} needs a {needed} label, and the schema has another kind: change `loss` or the schema"
    )]
    Label {
        /// By the name that plans use.
        loss: String,
        /// The kind of label that the loss needs.
        needed: &'static str,
    },
    /// A plan states what its noise was derived from, and the cap of counts is part of that.
    #[error(
        "the plan's loss, {loss}, does not say up to which count: make the plan with `padmm-site plan new`, which takes it from the schema"
    )]
    NoCap {
        /// By the name that plans use.
        loss: String,
    },
    /// One site, or none, has nobody to exchange models with.
    #[error("the plan has {found} sites: it needs at least two")]
    TooFewSites { found: usize },
    /// More sites than anybody has tried.
    #[error("the plan has {found} sites, and at most {MAX_SITES} are supported")]
    TooManySites { found: usize },
    /// Names are how sites know each other, and two are the same.
    #[error("two sites of the plan are called {name}: site names must differ")]
    RepeatedSite {
        /// As the plan or the flag has it.
        name: SiteName,
    },
    /// Two entries of the plan would be one site.
    #[error("{first} and {second} have the same fingerprint in the plan: every site has its own identity")]
    RepeatedFingerprint {
        /// The site that is listed first.
        first: SiteName,
        /// The site that is listed after it.
        second: SiteName,
    },
    /// A site that has nothing to learn from.
    #[error("{site} has 0 records in the plan: a site takes part with at least one")]
    NoRecords { site: SiteName },
    /// The edges do not make a connected graph over the sites.
    #[error("`edges`: {0}")]
    Graph(#[from] GraphError),
    /// No noise, tolerance or penalty follows from the settings.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// A pause of the network would be taken for a loss.
    #[error(
        "[silence] has after-seconds = {found}, but it must be at least {least}: a pause of the network is no loss"
    )]
    Silence { found: u32, least: u32 },
    /// The authority of the plan, or a card, is refused.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A site that takes no part.
    #[error("{name} takes no part in the plan; its sites are {}", known.join(", "))]
    UnknownSite {
        /// As the plan or the flag has it.
        name: String,
        known: Vec<String>,
    },
    /// A card or key with another fingerprint than the plan's.
    #[error(
        "the plan names {site} by the fingerprint {planned}, and this card or key has {found}: it is another identity; ask {site} for its card, or make a new plan"
    )]
    OtherFingerprint {
        site: SiteName,
        /// The fingerprint that the plan states.
        planned: Fingerprint,
        found: Fingerprint,
    },
    /// The signature may be genuine, but it is for another plan.
    #[error(
        "{site} accepted another plan ({accepted}, this one is {here}): `padmm-site plan diff` shows where two plans differ"
    )]
    OtherPlan {
        /// The site whose acceptance it is.
        site: SiteName,
        /// Hash of the plan that was accepted.
        accepted: String,
        here: String,
    },
    /// An acceptance that its site did not sign.
    #[error("the acceptance of {site} is not signed by {site}'s identity key: ask {site} for it again")]
    AcceptanceSignature {
        /// Who is said to have accepted.
        site: SiteName,
    },
}
