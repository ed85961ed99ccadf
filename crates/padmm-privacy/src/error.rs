//! The one error type of this crate.

use thiserror::Error;

/// Why a privacy computation or a release was refused.
///
/// No message contains a number that was computed from records: errors end up in logs, and logs travel. The residual
/// of a failed solve, or the coordinate that was not finite, is for the solver to show to the site that owns the data.
#[derive(Debug, Clone, PartialEq, Error)]
#[expect(missing_docs, reason = "the message of a variant says what it is about")]
pub enum PrivacyError {
    /// A public parameter lies outside the range in which the guarantee is proved.
    #[error("{name} is {value}, but it must be {allowed}; change the plan")]
    OutOfRange {
        /// The parameter, in the words of the plan.
        name: &'static str,
        value: f64,
        /// What would be accepted, as the end of a sentence: "a finite number above 0".
        allowed: &'static str,
    },
    /// The variance decays so fast that the later charges are astronomically larger than the first.
    #[error(
        "over {rounds} rounds a variance decay of {rate} makes the last charge overwhelm the first; \
         use fewer rounds or a decay nearer to 1"
    )]
    DecayTooSteep { rounds: u32, rate: f64 },
    /// A release by anything but Gaussian noise on the output, or by no noise at all.
    #[error(
        "{by} can account for Gaussian noise on what is released, and for nothing else; \
         run this method in the simulator, or choose one with such noise"
    )]
    NotGaussian { by: &'static str },
    /// What a method for comparison refuses, in its own words; `is_budget` if the budget is too small for it.
    #[error("{reason}")]
    Compared { reason: String, is_budget: bool },
    #[error("what was computed is not of the kind, length or unit that the mechanism adds noise to")]
    WrongKind,
    #[error(
        "round {round} of run {run:?} at site {site:?} was already charged; a round is released at most once"
    )]
    AlreadyCharged { run: String, site: String, round: u32 },
    #[error("the ledger could not record the charge ({reason}); nothing was drawn or released")]
    LedgerFailed { reason: String },
    #[error(
        "round {found} was asked for, but round {expected} is next; rounds are released once each and in order"
    )]
    RoundOutOfOrder { expected: u32, found: u32 },
    /// The noise was calibrated for fewer rounds.
    #[error(
        "round {round} was asked for, but the noise is calibrated for rounds 1 to {rounds}; calibrate for more"
    )]
    RoundOutsideSchedule { round: u32, rounds: u32 },
    /// Noise drawn for one round was offered for another, or by another kind of mechanism.
    #[error(
        "the noise offered for round {round} was not drawn for it; draw and seal with the same mechanism and round"
    )]
    ForeignNoise { round: u32 },
    /// The local solve came without a usable certificate.
    #[error(
        "the local solve returned no certificate (its residual is not a number >= 0); nothing was released"
    )]
    CertificateMissing,
    /// The local solve did not reach the tolerance that the sensitivity assumes.
    #[error(
        "the local solve did not reach the tolerance {tolerance}; nothing was released, let the solver iterate longer"
    )]
    ResidualTooLarge { tolerance: f64 },
    /// A mechanism was asked to accept weaker certificates than its sensitivity was derived with.
    #[error(
        "the mechanism would accept {name} = {required}, but the sensitivity was derived with {derived}; \
         derive both from the same numbers"
    )]
    CertificateMismatch { name: &'static str, required: f64, derived: f64 },
    #[error(
        "the vector has {found} coordinates, but {expected} are expected; check the schema of the sender"
    )]
    WrongLength { expected: usize, found: usize },
    #[error("the local model is not finite; nothing was released")]
    NotFinite,
    #[error("the value does not fit the release grid (2^53 steps of 2^{exponent}); nothing was released")]
    BeyondGrid { exponent: i32 },
    /// The source of randomness, or the sampler on top of it, reported an error.
    #[error("no noise could be drawn ({reason}); nothing was released")]
    NoiseFailed { reason: String },
}

/// Refuses a value unless `ok`; NaN fails every comparison and so is refused as well.
pub fn require(ok: bool, name: &'static str, value: f64, allowed: &'static str) -> Result<(), PrivacyError> {
    if ok { Ok(()) } else { Err(PrivacyError::OutOfRange { name, value, allowed }) }
}
