//! What a ledger says: one type for each kind of entry.
//!
//! An entry is stored as its kind, a body in JSON, and for releases the bytes that left. Nothing in it is computed from
//! records, except what went through the gate and the fingerprint, which is keyed.

use padmm_core::message::{Stage, Turn};
use padmm_privacy::{Budget, Delta, Epsilon, Event, ZcdpRho};
use serde::{Deserialize, Serialize};

macro_rules! entries {
    ($($(#[$doc:meta])* $variant:ident($body:ty) => $kind:literal,)*) => {
        /// What one entry of a ledger says. These kinds are all that there are.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Entry {
            $($(#[$doc])* $variant($body),)*
        }

        impl Entry {
            /// Its kind, as it is stored.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Entry::$variant(_) => $kind,)*
                }
            }

            /// Its body, as it is stored.
            pub(super) fn body(&self) -> String {
                match self {
                    $(Entry::$variant(body) => serde_json::to_string(body),)*
                }
                .expect("entries are plain numbers and text")
            }

            /// The entry of this kind and body; `None` if there is no such kind.
            pub(super) fn parse(kind: &str, body: &str) -> Option<Result<Self, serde_json::Error>> {
                match kind {
                    $($kind => Some(serde_json::from_str(body).map(Entry::$variant)),)*
                    _ => None,
                }
            }
        }
    };
}

entries! {
    /// The first entry, and never another one.
    Opened(Opened) => "opened",
    /// The records are others than before; what was spent stays spent.
    DataChanged(DataChanged) => "data-changed",
    /// The site set another limit on what may be spent.
    CapChanged(CapChanged) => "cap-changed",
    /// A run that the site agreed to.
    RunStarted(RunStarted) => "run-started",
    /// Something that left, with its charge.
    Released(Released) => "release",
    /// A charge for which nothing left.
    Forfeited(Forfeited) => "forfeited",
    /// A neighbour that a run continues without.
    NeighbourLost(NeighbourLost) => "neighbour-lost",
    /// A run came to its end, and nothing is added to it any more.
    RunFinished(RunFinished) => "run-finished",
    /// The head file was missing and someone vouched for the ledger without it.
    HeadRestored(HeadRestored) => "head-restored",
}

/// The first entry: which data set the ledger is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opened {
    /// Format of the ledger, which decides how its entries are read.
    pub format: u32,
    /// The site's name for the data set.
    pub data_set: String,
    /// Keyed fingerprint of the records, in hexadecimal digits.
    pub fingerprint: String,
    /// What all runs together may spend.
    pub cap: Budget,
    /// The program that opened the ledger.
    pub program: String,
    /// Random digits: two ledgers with the same first entry are copies of one. Ledgers of earlier versions have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
}

/// From here on the ledger is about other records; their predecessors' cost stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataChanged {
    /// Keyed fingerprint of the new records.
    pub fingerprint: String,
}

/// From here on another limit holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapChanged {
    /// The cap that held until now.
    pub from: Budget,
    /// The cap that holds from now on.
    pub to: Budget,
}

/// A run begins, which the site agreed to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunStarted {
    /// Hash of the contract, in hexadecimal digits.
    pub run: String,
    /// What people call the plan; two runs may share it.
    pub plan_name: String,
    /// The site's name in the plan.
    pub site: String,
    /// Private rounds of the plan.
    pub rounds: u32,
    /// What the whole run is planned to cost by itself.
    pub epsilon_exact: Epsilon,
    /// The delta at which `epsilon_exact` holds.
    pub delta: Delta,
    /// Where the noise comes from, in words.
    pub noise: String,
}

/// One release; the bytes that left are stored with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Released {
    /// Hash of the run's contract, in hexadecimal digits.
    pub run: String,
    /// The site's name in that contract.
    pub site: String,
    /// Counted from 1; a round is in the ledger at most once.
    pub round: u32,
    /// What was done to the data.
    pub event: Event,
    /// What it costs in zCDP, rounded up.
    pub rho: ZcdpRho,
    /// Integers in the release, one for each coefficient.
    pub n_features: usize,
    /// The grid's step is two to this power.
    pub exponent: i32,
    /// How many bytes left.
    pub bytes: u64,
}

/// A round that was charged and in which nothing left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forfeited {
    /// Hash of the run's contract, in hexadecimal digits.
    pub run: String,
    /// The site's name in that contract.
    pub site: String,
    /// Counted from 1; a round is in the ledger at most once.
    pub round: u32,
    /// What was, or could have been, done to the data.
    pub event: Event,
    /// What it costs in zCDP, rounded up, although nothing left.
    pub rho: ZcdpRho,
    /// Integers that the release would have had.
    pub n_features: usize,
    /// The grid's step is two to this power.
    pub exponent: i32,
    /// Why nothing left, in words without any number computed from records.
    pub reason: String,
}

/// A neighbour that the run continues without.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeighbourLost {
    /// Hash of the run's contract, in hexadecimal digits.
    pub run: String,
    /// The neighbour's name in that contract.
    pub neighbour: String,
    /// [`Stage::number`] of the stage whose message did not come.
    pub stage: u32,
    /// The first turn of that stage without it, from 1.
    pub turn: u32,
}

impl NeighbourLost {
    /// The first turn without the neighbour; none if no run has such a stage.
    pub fn turn(&self) -> Option<Turn> {
        Stage::from_number(self.stage).map(|stage| Turn { stage, number: self.turn })
    }
}

/// A run came to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunFinished {
    /// Hash of the run's contract, in hexadecimal digits.
    pub run: String,
    /// What the run cost by itself, forfeited rounds included.
    pub epsilon_exact: Epsilon,
    /// The delta of that, the cap's.
    pub delta: Delta,
}

/// The head file was missing here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadRestored {
    /// Entries in the ledger when someone vouched for it.
    pub entries: u64,
}
