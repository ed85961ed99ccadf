//! Why a session stops.

use padmm_core::agent::AgentError;
use padmm_privacy::PrivacyError;

use crate::journal::EgressError;
use crate::ledger::LedgerError;

/// Why a session ends before its run does.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum SessionError {
    /// The agent refused to compute, or the gate to release.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The ledger could not be written, or does not allow what was to be written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The list of what left could not be written.
    #[error(transparent)]
    Egress(#[from] EgressError),
    /// A neighbour has accepted a plan that differs from this site's.
    #[error("{site} holds another plan: {}. Nothing was spent; agree on one plan, accept it everywhere, and start again", differences.join("; "))]
    OtherPlan {
        /// The neighbour with the other plan.
        site: String,
        /// In what the plans differ, field by field.
        differences: Vec<String>,
    },
    /// The ledger is older than what a neighbour has seen of it.
    #[error(
        "{site} shows release number {entry} of this ledger, signed with this site's own key, and the ledger here does not have it: it was put back from a backup, or changed, or it is a ledger of other data that was moved away. Nothing more may leave. Bring back the newest ledger file; if it is lost, this data set's budget must count as spent"
    )]
    OldLedger {
        site: String,
        /// Number of the ledger entry that is missing here.
        entry: u64,
    },
    /// Every neighbour has been lost, and a run needs at least one.
    #[error(
        "no neighbour is left in {place}: {who}. What was released so far stays charged; result.json says how far the run came, and there is no model of it"
    )]
    Alone {
        /// The turn in which the last one was lost, in words.
        place: String,
        who: String,
    },
    /// The others began without this site.
    #[error(
        "{who} did not hear this site for as long as the plan waits, and began without it. Nothing was charged here; \
         make a new plan with the others, or ask them to start this one again together if they have stopped too"
    )]
    LeftBehind { who: String },
    /// A round failed in an earlier process, after its charge.
    #[error(
        "round {round} of this run failed earlier and stays charged; the run cannot continue from there. Make a new plan with a larger penalty or a looser tolerance"
    )]
    Forfeited {
        /// The round that was charged and never released.
        round: u32,
    },
    /// The stored messages do not fit the run.
    #[error(
        "what the ledger holds of this run does not fit it ({reason}): verify the ledger with `padmm-site ledger verify`"
    )]
    Stored {
        /// What does not fit, in words.
        reason: String,
    },
}

impl From<PrivacyError> for SessionError {
    fn from(error: PrivacyError) -> Self {
        Self::Agent(error.into())
    }
}
