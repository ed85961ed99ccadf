//! Why an agent stops, or does not use a message.

use padmm_privacy::PrivacyError;

use crate::message::{SiteIndex, Turn};

/// Why an agent stops. Nothing has left it that was not charged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum AgentError {
    /// The gate refused the round: out of budget, out of order, or without a sufficient certificate.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// The local solve found no certificate; the round stops. The residual is computed from records: for the site's own log.
    #[error(
        "round {round}: the local solve reached a residual of {residual:.3e}, not the {tolerance:.3e} that the sensitivity was derived with; nothing was released. Use a larger `penalty` or, where noise is added to the result, a looser `tolerance` (it enters the noise)"
    )]
    ToleranceNotReached {
        /// The round that stays charged.
        round: u32,
        /// Norm of the gradient that the solver stopped at.
        residual: f64,
        /// The norm that the sensitivity was derived with.
        tolerance: f64,
    },
    /// Models have become too large to compute with; decided from public numbers before the round was charged.
    #[error(
        "round {round} was not begun: with the models that were sent so far its result could be as long as {radius:.3e}, where rounding takes {ratio:.3} of the solver's tolerance or the release's grid ends. Nothing was charged or released for it, and any other records would have stopped it too. A neighbour sent something enormous; if all are honest, use a larger `penalty` or a looser `tolerance`"
    )]
    TooLarge {
        /// The round that was not begun.
        round: u32,
        /// How long the result could be.
        radius: f64,
        /// The part of the tolerance that rounding takes then.
        ratio: f64,
    },
    /// A message that is longer than the plan allows.
    #[error(
        "site {from} sent a model of length {length:.3e}, and this plan allows {limit:.3e}; it was not used"
    )]
    TooLong {
        from: SiteIndex,
        /// Its Euclidean length, rounded up.
        length: f64,
        limit: f64,
    },
    /// A message from somebody who is no neighbour.
    #[error("a message came from site {from}, which is not a neighbour of site {site}; it was not used")]
    NotANeighbour { site: SiteIndex, from: SiteIndex },
    /// A message from a turn that cannot be on its way yet.
    #[error("site {from} sent {turn} while site {site} is in {current}; it was not used")]
    WrongTurn {
        site: SiteIndex,
        from: SiteIndex,
        /// The turn that the message names.
        turn: Turn,
        /// The turn that the receiver is in.
        current: Turn,
    },
    /// A message with more or fewer coefficients than the run's models.
    #[error(
        "site {from} sent a model of {found} coefficients where {expected} are expected; it was not used"
    )]
    WrongLength { from: SiteIndex, found: usize, expected: usize },
}
