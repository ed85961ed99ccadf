//! The one error type of this crate.

use thiserror::Error;

/// Why a privacy computation or a release was refused.
///
/// No message contains a number that was computed from records: errors end up in logs, and logs travel. The residual
/// of a failed solve, or the coordinate that was not finite, is for the solver to show to the site that owns the data.
#[derive(Debug, Clone, PartialEq, Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
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
    /// A name that is not one of the choices.
    #[error("{found:?} is not a known {what}; choose one of: {known}")]
    UnknownName {
        /// The kind of name that was expected, as in "accountant".
        what: &'static str,
        found: String,
        /// The choices, separated by commas.
        known: &'static str,
    },
    /// The variance decays so fast that the later charges are astronomically larger than the first.
    #[error(
        "over {rounds} rounds a variance decay of {rate} makes the last charge overwhelm the first; \
         use fewer rounds or a decay nearer to 1"
    )]
    DecayTooSteep { rounds: u32, rate: f64 },
    /// An event without any privacy was handed to an accountant or to a capped ledger.
    #[error(
        "{by} cannot account for a release without noise; run it in the simulator, or choose a private mechanism"
    )]
    NotPrivate {
        /// Which accountant or ledger refused.
        by: &'static str,
    },
    /// An accountant for Gaussian noise was handed another kind of event.
    #[error(
        "the {accountant} accountant knows Gaussian noise only; use the zCDP accountant for this mechanism"
    )]
    NotGaussian { accountant: &'static str },
    /// An accountant for pure differential privacy was handed Gaussian noise.
    #[error(
        "the {accountant} accountant knows pure differential privacy (delta = 0) only; \
         use the exact or the paper's accountant for Gaussian noise"
    )]
    NotPure { accountant: &'static str },
    /// The part of objective perturbation that no noise can lower is as large as the budget.
    #[error(
        "the Jacobian part of {rounds} private rounds alone spends epsilon = {spent}, and the budget is {epsilon}; \
         use a larger penalty, fewer rounds or a larger epsilon"
    )]
    JacobianSpendsBudget {
        /// Only those that use data.
        rounds: u32,
        /// What they cost with unlimited noise.
        spent: f64,
        epsilon: f64,
    },
    /// A release was asked for in a round in which the site uses no data.
    #[error(
        "round {round} uses no data and was not paid for, so nothing may be released in it; pass the round instead"
    )]
    FreeRound { round: u32 },
    /// A mechanism for points was given a sum, or one for sums something else.
    #[error("what was computed is not of the kind, length or unit that the mechanism adds noise to")]
    WrongKind,
    /// The ledger's cap would be exceeded.
    #[error(
        "this release costs rho = {charge}, but {spent} of the allowed {cap} is already spent; \
         the site has to raise its cap before anything more may leave"
    )]
    BudgetExceeded { spent: f64, charge: f64, cap: f64 },
    /// A second debit for a round that was already paid for.
    #[error(
        "round {round} of run {run:?} at site {site:?} was already charged; a round is released at most once"
    )]
    AlreadyCharged { run: String, site: String, round: u32 },
    /// The ledger could not record a debit.
    #[error("the ledger could not record the charge ({reason}); nothing was drawn or released")]
    LedgerFailed { reason: String },
    /// A round was repeated or skipped.
    #[error(
        "round {found} was asked for, but round {expected} is next; rounds are released once each and in order"
    )]
    RoundOutOfOrder {
        /// The only round that may be released now.
        expected: u32,
        /// The round that was asked for.
        found: u32,
    },
    /// The noise was calibrated for fewer rounds.
    #[error(
        "round {round} was asked for, but the noise is calibrated for rounds 1 to {rounds}; calibrate for more"
    )]
    RoundOutsideSchedule {
        /// The round that was asked for.
        round: u32,
        rounds: u32,
    },
    /// Noise drawn for one round was offered for another, or by another kind of mechanism.
    #[error(
        "the noise offered for round {round} was not drawn for it; draw and seal with the same mechanism and round"
    )]
    ForeignNoise {
        /// The round that was to be sealed.
        round: u32,
    },
    /// The local solve came without a usable certificate.
    #[error(
        "the local solve returned no certificate (its residual is not a number >= 0); nothing was released"
    )]
    CertificateMissing,
    /// The local solve did not reach the tolerance that the sensitivity assumes.
    #[error(
        "the local solve did not reach the tolerance {tolerance}; nothing was released, let the solver iterate longer"
    )]
    ResidualTooLarge {
        /// The tolerance that the sensitivity was derived with.
        tolerance: f64,
    },
    /// A mechanism was asked to accept weaker certificates than its sensitivity was derived with.
    #[error(
        "the mechanism would accept {name} = {required}, but the sensitivity was derived with {derived}; \
         derive both from the same numbers"
    )]
    CertificateMismatch {
        /// Either `tolerance` or `modulus`.
        name: &'static str,
        required: f64,
        derived: f64,
    },
    /// A vector of the wrong length.
    #[error(
        "the vector has {found} coordinates, but {expected} are expected; check the schema of the sender"
    )]
    WrongLength { expected: usize, found: usize },
    /// The point to be released contains NaN or infinity.
    #[error("the local model is not finite; nothing was released")]
    NotFinite,
    /// The value does not fit the integers that doubles can hold exactly.
    #[error("the value does not fit the release grid (2^53 steps of 2^{exponent}); nothing was released")]
    BeyondGrid {
        /// Binary exponent of the grid's step.
        exponent: i32,
    },
    /// The source of randomness, or the sampler on top of it, reported an error.
    #[error("no noise could be drawn ({reason}); nothing was released")]
    NoiseFailed { reason: String },
}

/// Refuses a value unless `ok`; NaN fails every comparison and so is refused as well.
pub fn require(ok: bool, name: &'static str, value: f64, allowed: &'static str) -> Result<(), PrivacyError> {
    if ok { Ok(()) } else { Err(PrivacyError::OutOfRange { name, value, allowed }) }
}
