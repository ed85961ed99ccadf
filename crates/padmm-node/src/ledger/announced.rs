//! What neighbours have announced: that a release of theirs is in their ledger and is about to leave. It is kept here, on disk,
//! before they get a receipt and let the release go, so that an earlier state of their ledger is noticed whatever crashes.
//!
//! Of each neighbour and run the newest announcement is enough: its entry has the hash of all entries before it. The table is beside
//! the chain: what it holds carries its own signature.

use std::path::Path;

use super::chain::Digest;
use super::error::LedgerError;
use super::site::SiteLedger;
use super::sqlite::SqliteStore;
use super::store::{Batch, LedgerStore};
use crate::fault::Point;

/// A neighbour's announcement, as it is kept in the table beside the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// Hash of the run's contract, in hexadecimal digits.
    pub run: String,
    /// The neighbour's name in the plan.
    pub sender: String,
    /// The first entry of the sender's ledger.
    pub ledger: Digest,
    /// Number of the entry in the sender's ledger.
    pub entry: u64,
    /// The frame, with the sender's signature.
    pub bytes: Vec<u8>,
}

impl SiteLedger {
    /// Writes announcements, each in place of the one before it of the same sender and run. They are on the disk when it returns.
    pub fn keep_announced(&mut self, announced: &[Announced]) -> Result<(), LedgerError> {
        if announced.is_empty() {
            return Ok(());
        }
        let batch = Batch { announced, ..Batch::default() };
        self.commit(&batch, Some((Point::AnnouncedBeforeCommit, Point::AnnouncedAfterCommit)))
    }

    /// The newest announcement of every run of a neighbour, the one that was written last first.
    pub fn announced_by(&self, sender: &str) -> Result<Vec<Announced>, LedgerError> {
        self.store.announced_by(sender)
    }

    /// The same from a ledger that is not open, such as that of other records; nothing if it was never written there.
    pub fn announced_in(path: &Path, sender: &str) -> Result<Vec<Announced>, LedgerError> {
        let store = SqliteStore::read(path)?;
        if store.has_announced()? { store.announced_by(sender) } else { Ok(vec![]) }
    }
}
