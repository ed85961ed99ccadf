//! What can go wrong with an audit itself; a broken guarantee is a verdict and no error.

use padmm_core::agent::AgentError;
use padmm_core::calibration::CalibrationError;
use padmm_core::plan::PlanError;
use padmm_node::ledger::LedgerError;
use padmm_privacy::PrivacyError;

/// Why an audit ended without a verdict.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum AuditError {
    /// The algorithm promises nothing about the bytes that leave, so there is no claim to attack.
    #[error(
        "{algorithm} gives no guarantee for the bytes that leave, so there is nothing to audit: choose one of {known}"
    )]
    NoCanary {
        /// By the name that plans use.
        algorithm: &'static str,
        /// The algorithms that can be audited, separated by commas.
        known: String,
    },
    /// A setting of the audit lies outside its range.
    #[error("`{setting}` is {value}, but it must be {rule}")]
    OutOfRange {
        /// As flags and files name it, without dashes.
        setting: &'static str,
        value: f64,
        rule: &'static str,
    },
    /// The plan of the audit is none.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Tolerances, sensitivities or noise cannot be derived from the plan.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// A budget or a schedule that the privacy core refuses.
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
