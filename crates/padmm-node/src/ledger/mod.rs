//! What a site has spent and released: one durable record a data set, across runs and versions of the program.
//!
//! A ledger is an SQLite file that is only ever appended to. Every entry carries the hash of the one before it, and the last
//! hash is kept beside the file as well, so that a changed, missing, reordered or cut ledger is noticed and named before
//! anything else leaves the site. An older copy that is restored together with its own head file looks like a ledger
//! that never continued; only the neighbours, whose envelopes name the position and hash they were sent at, can tell.
//!
//! | question | file |
//! |---|---|
//! | what is written down | `entry` |
//! | how entries are tied to one another | `chain` |
//! | what follows from them: cap, spending, runs | `state` |
//! | where they lie | `store`: in a file by `sqlite`, with the lock and the head beside it, `head` |
//! | what a running site may do with its ledger | `site`, `runs`, `append`, and through the gate: `gate_ledger` |
//! | what neighbours have said of their ledgers | `announced` |
//! | which words of others outlive a crash | `words` |
//! | what a review board does with it | `verify`, `export` |

mod announced;
mod append;
mod chain;
mod entry;
mod error;
mod export;
mod gate_ledger;
mod head;
mod runs;
mod site;
mod sqlite;
mod state;
mod store;
mod verify;
mod words;

pub use announced::Announced;
pub use append::Received;
pub use chain::{Digest, Row, StoredEntry};
pub use entry::{
    CapChanged, DataChanged, Entry, Forfeited, HeadRestored, NeighbourLost, Opened, Released, RunFinished,
    RunStarted,
};
pub use error::LedgerError;
pub use export::{Decoder, to_csv, to_json};
pub use gate_ledger::{GateLedger, Opener, Sealer};
pub use head::Head;
pub use runs::{PlannedRelease, RunStart, SealRequest};
pub use site::{Opening, SiteLedger};
pub use state::{Charge, Loss, RunState, State};
pub use store::{Batch, LedgerStore};
pub use verify::{LedgerView, Verified, verify};
pub use words::Word;

/// The format that this program writes, and the newest that it reads. Format 2 has a random id in its first entry; files of format 1
/// are read and continued as they are.
pub const FORMAT: u32 = 2;
