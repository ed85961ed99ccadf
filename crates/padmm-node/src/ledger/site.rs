//! The ledger of a running site: opened once, locked, appended to.

use padmm_privacy::{Budget, Epsilon, Spending};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::FORMAT;
use super::append::{MessageKey, Received};
use super::chain::{Digest, Row};
use super::entry::{CapChanged, DataChanged, Entry, HeadRestored, Opened};
use super::error::LedgerError;
use super::head::{Head, HeadFile, head_path};
use super::runs::PlannedRelease;
use super::sqlite::{self, SqliteStore};
use super::state::State;
use super::store::{self, Batch, LedgerStore};
use crate::identity::to_hex;

/// What a new ledger is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// The site's name for the data set.
    pub data_set: String,
    /// Keyed fingerprint of the records, in hexadecimal digits.
    pub fingerprint: String,
    /// What all runs together may spend.
    pub cap: Budget,
}

/// A site's ledger, open for writing.
pub struct SiteLedger {
    pub(super) path: PathBuf,
    pub(super) store: Box<dyn LedgerStore>,
    pub(super) state: State,
    pub(super) head: Head,
    pub(super) staged: BTreeMap<(String, MessageKey), Received>,
    /// Rounds charged in memory, whose release is not written yet.
    pub(super) reserved: BTreeMap<(String, u32), PlannedRelease>,
    /// Spending that was found to be within the cap.
    pub(super) within_cap: Option<Spending>,
    /// Set while a write is under way and left set by a failed one: what is on the disk is then for the next start to find out.
    pub(super) is_stopped: bool,
    /// The last entry, if it is a release: it is about to be sent.
    pub(super) newest: Option<(u64, Vec<u8>)>,
    /// Set while the disk is waited for.
    pub(super) is_writing: Arc<AtomicBool>,
}

impl SiteLedger {
    /// Makes a new ledger and opens it. Nothing that exists is overwritten.
    pub fn create(path: &Path, opening: Opening) -> Result<Self, LedgerError> {
        let lock = sqlite::lock(path)?;
        if path.symlink_metadata().is_ok() {
            return Err(LedgerError::AlreadyExists { path: path.to_owned() });
        }
        // A head of one entry is what a creation leaves that was cut off; nothing was spent by then.
        if let Some(head) = Head::read(path)?.filter(|head| head.seq > 1) {
            return Err(LedgerError::OrphanHead { head: head_path(path), entries: head.seq });
        }
        let first = first_row(path, opening)?;
        HeadFile::make(path, Head { seq: 1, hash: first.digest() })?;
        sqlite::make_file(path, &first)?;
        Self::open_locked(path, lock)
    }

    /// Opens a ledger, which no other process may use meanwhile, and continues only if all of it is as it was written.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        sqlite::exists(path)?;
        Self::open_locked(path, sqlite::lock(path)?)
    }

    fn open_locked(path: &Path, lock: File) -> Result<Self, LedgerError> {
        let head = Head::read(path)?;
        let mut store = SqliteStore::open(path, lock)?;
        let (state, last) = store::follow(&store, path, head, drop)?;
        if head.is_none() {
            return Err(LedgerError::HeadMissing { head: head_path(path), entries: last.seq });
        }
        store.keep_head(last)?;
        Ok(Self::new(path.to_owned(), Box::new(store), state, last))
    }

    /// Opens a ledger whose head file is missing, writes a new head file and an entry that says so. For the site to do by hand when
    /// it knows that no entry is missing at the end; a head file that disagrees is never accepted.
    pub fn restore_head(path: &Path) -> Result<Self, LedgerError> {
        sqlite::exists(path)?;
        let lock = sqlite::lock(path)?;
        if Head::read(path)?.is_none() {
            let store = SqliteStore::open(path, lock)?;
            let (_, last) = store::follow(&store, path, None, drop)?;
            HeadFile::make(path, last)?;
            let mut ledger = Self::open_locked(path, store.into_lock())?;
            ledger.append(Entry::HeadRestored(HeadRestored { entries: last.seq }), None, None)?;
            return Ok(ledger);
        }
        Self::open_locked(path, lock)
    }

    /// A ledger that ends with its process, for tests and measurements.
    pub fn in_memory(opening: Opening) -> Result<Self, LedgerError> {
        let path = PathBuf::from(":memory:");
        let store = SqliteStore::in_memory(&path, &first_row(&path, opening)?)?;
        let (state, last) = store::follow(&store, &path, None, drop)?;
        Ok(Self::new(path, Box::new(store), state, last))
    }

    /// Begins a ledger in a store that is empty. `path` is what messages call it.
    pub fn begin_in(
        path: &Path,
        mut store: Box<dyn LedgerStore>,
        opening: Opening,
    ) -> Result<Self, LedgerError> {
        let first = first_row(path, opening)?;
        store.commit(&Batch { entry: Some(&first), ..Batch::default() }, &mut || ())?;
        let (state, last) = store::follow(&*store, path, None, drop)?;
        store.write_head(last)?;
        Ok(Self::new(path.to_owned(), store, state, last))
    }

    /// Continues the ledger in a store, if all of it is as it was written and reaches as far as `head`, which was found beside it.
    pub fn open_in(path: &Path, mut store: Box<dyn LedgerStore>, head: Head) -> Result<Self, LedgerError> {
        let (state, last) = store::follow(&*store, path, Some(head), drop)?;
        store.write_head(last)?;
        Ok(Self::new(path.to_owned(), store, state, last))
    }

    fn new(path: PathBuf, store: Box<dyn LedgerStore>, state: State, head: Head) -> Self {
        Self {
            path,
            store,
            state,
            head,
            staged: BTreeMap::new(),
            reserved: BTreeMap::new(),
            within_cap: None,
            is_stopped: false,
            newest: None,
            is_writing: Arc::default(),
        }
    }

    /// The ledger's file, as it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number and hash of the newest entry.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Whether the disk is waited for at this moment; for those that cannot wait for the ledger to know.
    pub fn is_writing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_writing)
    }

    /// What all entries amount to, kept up to date as entries are added.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What all runs together may spend.
    pub fn cap(&self) -> Budget {
        self.state.cap()
    }

    /// The hash of the first entry, by which a ledger and its copies are known.
    pub fn genesis(&self) -> Digest {
        self.state.genesis()
    }

    /// Keyed fingerprint of the records that the ledger is about now.
    pub fn fingerprint(&self) -> &str {
        self.state.fingerprint()
    }

    /// What all runs together have spent, forfeited rounds included.
    pub fn spending(&self) -> Spending {
        self.state.spending()
    }

    /// The same as epsilon at the cap's delta.
    pub fn epsilon_spent(&self) -> Epsilon {
        self.state.epsilon_spent()
    }

    /// Sets another cap. One below what was spent forbids everything from now on.
    pub fn change_cap(&mut self, to: Budget) -> Result<(), LedgerError> {
        let from = self.cap();
        if from == to {
            return Ok(());
        }
        self.within_cap = None;
        self.append(Entry::CapChanged(CapChanged { from, to }), None, None)
    }

    /// Notes that the records are others now. What was spent stays spent: most of them are likely the same.
    pub fn change_data(&mut self, fingerprint: &str) -> Result<(), LedgerError> {
        if self.fingerprint() == fingerprint {
            return Ok(());
        }
        let fingerprint = fingerprint.to_owned();
        self.append(Entry::DataChanged(DataChanged { fingerprint }), None, None)
    }

    /// Lets the file grow to this many pages of 4096 bytes and no further, as a full disk would. For tests; it ends with this handle.
    pub fn limit_pages(&mut self, pages: u32) -> Result<(), LedgerError> {
        self.store.limit_pages(pages)
    }
}

fn first_row(path: &Path, opening: Opening) -> Result<Row, LedgerError> {
    let Opening { data_set, fingerprint, cap } = opening;
    let program = concat!("padmm ", env!("CARGO_PKG_VERSION")).to_owned();
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| LedgerError::Failed {
        path: path.to_owned(),
        reason: format!("the system gives no random numbers: {error}"),
    })?;
    let opened = Opened { format: FORMAT, data_set, fingerprint, cap, program, id: to_hex(&id) };
    Ok(Row::new(1, &Entry::Opened(opened), None, Digest::NOTHING))
}

impl fmt::Debug for SiteLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SiteLedger({}, {} entries)", self.path.display(), self.head.seq)
    }
}
