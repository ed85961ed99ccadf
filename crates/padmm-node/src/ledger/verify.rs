//! Reading a ledger without writing to it: for a review board, also while a run is going.

use std::path::{Path, PathBuf};

use super::chain::{Digest, StoredEntry};
use super::error::LedgerError;
use super::head::{Head, head_path};
use super::site::SiteLedger;
use super::sqlite::{self, SqliteStore};
use super::state::State;
use super::store;

/// A ledger as it was at one moment.
#[derive(Debug)]
pub struct LedgerView {
    path: PathBuf,
    state: State,
    entries: Vec<StoredEntry>,
    head: Head,
}

impl SiteLedger {
    /// Which ledger the file at `path` is or was, by the hash that its first entry has; nothing else about it is believed or
    /// checked, so that a damaged copy, or one without its head file, is known as a copy too. `None` if it is no ledger.
    pub fn genesis_at(path: &Path) -> Option<Digest> {
        SqliteStore::read(path).ok()?.first_hash()
    }

    /// Reads a ledger and checks its chain and its head, without the lock and without changing anything.
    pub fn read(path: &Path) -> Result<LedgerView, LedgerError> {
        view(path, false)
    }
}

fn view(path: &Path, is_thorough: bool) -> Result<LedgerView, LedgerError> {
    sqlite::exists(path)?;
    // In this order: a process that writes brings an entry to the disk first and its head after.
    let head = Head::read(path)?;
    let store = SqliteStore::read(path)?;
    if is_thorough && let Some(reason) = store.complaint()? {
        // What the chain finds says more than what SQLite finds, so it is asked first if both complain.
        store::follow(&store, path, head, drop)?;
        return Err(LedgerError::Damaged { path: path.to_owned(), reason });
    }
    let mut entries = Vec::new();
    let (state, last) = store::follow(&store, path, head, |entry| entries.push(entry))?;
    if head.is_none() {
        return Err(LedgerError::HeadMissing { head: head_path(path), entries: last.seq });
    }
    Ok(LedgerView { path: path.to_owned(), state, entries, head: last })
}

impl LedgerView {
    /// The ledger's file, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the entries amounted to at that moment.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// All entries at that moment, oldest first.
    pub fn entries(&self) -> &[StoredEntry] {
        &self.entries
    }

    /// Number and hash of the newest entry.
    pub fn head(&self) -> Head {
        self.head
    }
}

/// What a ledger that was verified holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// How many entries the chain has.
    pub entries: u64,
    /// Number and hash of the last of them.
    pub head: Head,
    /// How many runs were started, finished or not.
    pub runs: usize,
    /// How many releases left, over all runs.
    pub releases: usize,
    /// Rounds that were charged and in which nothing left.
    pub forfeited: usize,
    /// What all of it costs, as epsilon at the cap's delta.
    pub epsilon_spent: f64,
}

/// Checks everything that can be checked without a key: the database itself, every link of the chain, the sense of every entry, one
/// payload a round, the lengths of payloads, and the head file.
pub fn verify(path: &Path) -> Result<Verified, LedgerError> {
    let view = view(path, true)?;
    let state = view.state();
    Ok(Verified {
        entries: view.head.seq,
        head: view.head,
        runs: state.runs().count(),
        releases: state.runs().map(|run| run.n_released()).sum(),
        forfeited: state.runs().map(|run| run.forfeited().len()).sum(),
        epsilon_spent: state.epsilon_spent().value(),
    })
}
