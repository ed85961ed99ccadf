//! What must always be so.

use std::fmt;

/// An invariant, with what was found in its place.
#[derive(Debug, Clone, PartialEq)]
pub enum Invariant {
    /// For each site and round one payload leaves.
    OnePayload {
        /// Whose round it is.
        site: &'static str,
        /// Counted from 1.
        round: u32,
    },
    /// A release is on its site's disk before it is on the wire.
    ChargedBeforeSent {
        /// Whose release it is.
        site: &'static str,
        /// Counted from 1.
        round: u32,
    },
    /// Nobody begins before all others are ready, but for those that it knows to be left behind.
    AllWereReady {
        /// Who began.
        site: &'static str,
        /// Who was not ready.
        missing: &'static str,
    },
    /// A ledger never shows more than the plan allows.
    WithinBudget {
        /// Whose ledger it is.
        site: &'static str,
        /// What it shows.
        epsilon: f64,
    },
    /// A site stops for a reason that the schedule gave it.
    NoOtherStop {
        /// Which one stopped.
        site: &'static str,
        /// Its words.
        error: String,
    },
    /// A process can continue from what a crash left.
    Continues {
        /// Whose process it is.
        site: &'static str,
        /// Its words.
        error: String,
    },
    /// When the troubles are over, the run ends.
    Ends {
        /// What the sites wait for.
        waiting: String,
    },
    /// An edge that is given up is given up at both ends.
    SameDepartures {
        /// The site that knows of a departure that another does not.
        site: &'static str,
    },
    /// Every edge has opposite duals at its ends.
    OppositeDuals {
        /// One end.
        site: &'static str,
        /// The other.
        neighbour: &'static str,
    },
    /// Who gets no answer asks again more and more patiently.
    BacksOff {
        /// Who asks.
        site: &'static str,
        /// Who is asked.
        neighbour: &'static str,
    },
    /// What was sent is not sent again and again.
    FewCopies {
        /// How often a byte was sent on average.
        copies: f64,
    },
    /// Sites that averaged over the same sites have the same model.
    SameModel {
        /// One of them.
        site: &'static str,
        /// Another.
        other: &'static str,
    },
    /// A site has one model, however often it is started.
    OneModel {
        /// Whose model changed.
        site: &'static str,
    },
    /// A link that has a connection over which something comes is not left on one over which nothing comes.
    LiveReplacesDead {
        /// Who writes to a dead connection.
        site: &'static str,
        /// To whom it writes.
        neighbour: &'static str,
    },
    /// Nobody is dialled again and again.
    NoStorm {
        /// Who dials.
        site: &'static str,
        /// Who is dialled.
        neighbour: &'static str,
        /// How often, since the process was started.
        calls: u64,
    },
    /// Soon after the troubles are over, all are connected.
    Reconnected {
        /// Who writes to nobody.
        site: &'static str,
        /// Who is there and is not written to.
        neighbour: &'static str,
    },
    /// Two processes that are connected stay with what they have.
    FewConnections {
        /// One of them.
        site: &'static str,
        /// The other.
        neighbour: &'static str,
        /// How many connections both hold.
        live: usize,
    },
    /// Where nobody was lost and no old ledger put back, the model is that of a quiet run.
    AsIfQuiet {
        /// Whose model is another.
        site: &'static str,
    },
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnePayload { site, round } => write!(f, "two payloads of {site} left in round {round}"),
            Self::ChargedBeforeSent { site, round } => {
                write!(f, "round {round} of {site} is on the wire and not on its disk")
            }
            Self::AllWereReady { site, missing } => write!(f, "{site} began before {missing} was ready"),
            Self::WithinBudget { site, epsilon } => {
                write!(f, "the ledger of {site} shows an epsilon of {epsilon}")
            }
            Self::NoOtherStop { site, error } => write!(f, "{site} stopped: {error}"),
            Self::Continues { site, error } => write!(f, "{site} cannot be started again: {error}"),
            Self::Ends { waiting } => write!(f, "the run does not end: {waiting}"),
            Self::SameDepartures { site } => write!(f, "only {site} knows of a departure"),
            Self::OppositeDuals { site, neighbour } => {
                write!(f, "the duals of {site} and {neighbour} are not opposite")
            }
            Self::BacksOff { site, neighbour } => {
                write!(f, "{site} asks {neighbour} again and again without waiting for an answer")
            }
            Self::FewCopies { copies } => write!(f, "every byte was sent {copies:.1} times on average"),
            Self::SameModel { site, other } => write!(f, "{site} and {other} kept different models"),
            Self::OneModel { site } => write!(f, "{site} has two models"),
            Self::LiveReplacesDead { site, neighbour } => {
                write!(f, "{site} writes to a dead connection of {neighbour}, and has a live one")
            }
            Self::NoStorm { site, neighbour, calls } => {
                write!(f, "{site} has dialled {neighbour} {calls} times")
            }
            Self::Reconnected { site, neighbour } => {
                write!(f, "{site} is not connected to {neighbour} again")
            }
            Self::FewConnections { site, neighbour, live } => {
                write!(f, "{site} and {neighbour} keep {live} connections")
            }
            Self::AsIfQuiet { site } => write!(f, "the model of {site} is not that of a quiet run"),
        }
    }
}
