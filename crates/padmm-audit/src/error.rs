//! What can go wrong with an audit itself; a broken guarantee is a verdict and no error.

use padmm_core::agent::AgentError;
use padmm_core::calibration::CalibrationError;
use padmm_core::plan::PlanError;
use padmm_node::ledger::LedgerError;
use padmm_privacy::PrivacyError;

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The algorithm promises nothing about the bytes that leave, so there is no claim to attack.
    #[error(
        "{algorithm} gives no guarantee for the bytes that leave, so there is nothing to audit: choose one of {known}"
    )]
    NoCanary {
        /// By the name that plans use.
        algorithm: &'static str,
        /// Those that have one.
        known: String,
    },
    /// A number outside its range.
    #[error("--{setting} is {value}, but it must be {rule}")]
    OutOfRange {
        /// The flag's name without its dashes.
        setting: &'static str,
        /// As it was given.
        value: f64,
        /// What is allowed instead.
        rule: &'static str,
    },
    /// The plan of the audit is none.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// No terms follow from it.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The privacy core refuses.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// The audited site stopped, although its neighbour was polite.
    #[error("the audited site stopped in an ordinary run: {0}")]
    Agent(#[from] AgentError),
    /// The ledger of the restart check.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The audited site did not do what a round asks of it.
    #[error("the audited site {0}")]
    Protocol(String),
    /// A file of the audit's own.
    #[error("the audit's temporary folder cannot be used: {0}")]
    Folder(#[from] std::io::Error),
}

/// An error that names the setting unless `ok`.
pub(crate) fn require(
    setting: &'static str,
    value: f64,
    ok: bool,
    rule: &'static str,
) -> Result<(), AuditError> {
    if ok { Ok(()) } else { Err(AuditError::OutOfRange { setting, value, rule }) }
}
