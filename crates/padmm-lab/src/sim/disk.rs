//! A disk that keeps what was committed, and of the rest what a crash leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use padmm_core::message::Turn;
use padmm_node::ledger::{Announced, Batch, Digest, Head, LedgerError, LedgerStore, Received, Row, Word};

use super::bug::Bug;

/// What a file would hold.
#[derive(Clone, Default)]
pub(super) struct Content {
    rows: Vec<Row>,
    received: BTreeMap<(String, Turn, String), Vec<u8>>,
    /// In the order in which they were written last.
    announced: Vec<Announced>,
    words: Vec<Word>,
    head: Option<Head>,
}

/// What becomes of the next commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskFault {
    /// There is no room, until somebody makes some.
    Full,
    /// The commit fails, and nothing of it is there.
    Lost,
    /// The commit is said to have failed, and is there all the same.
    KeptAfterAll,
}

#[derive(Default)]
struct Inner {
    content: Content,
    /// The head as of the last time that all was certainly on the disk: after a crash it may be this one.
    old_head: Option<Head>,
    /// The fault, and how many commits come before it.
    fault: Option<(DiskFault, u32)>,
    n_faults: u64,
    n_faults_known: u64,
    /// What a commit that is not forced to the disk has not written yet: only a planted bug leaves something here.
    unwritten: Option<Content>,
    bug: Option<Bug>,
}

/// One site's disk; handles share it.
#[derive(Clone, Default)]
pub(super) struct SimulatedDisk(Arc<Mutex<Inner>>);

impl SimulatedDisk {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A process that crashes does so with the disk in its hand; what it has written is whole.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn path() -> &'static Path {
        Path::new("simulated.ledger")
    }

    /// An empty disk, which has this defect.
    pub(super) fn new(bug: Option<Bug>) -> Self {
        let disk = Self::default();
        disk.lock().bug = bug;
        disk
    }

    /// The power is cut: a head that was not forced to the disk is there, or an earlier one.
    pub(super) fn crash(&self, keeps_head: bool) {
        let mut inner = self.lock();
        if let Some(content) = inner.unwritten.take() {
            inner.content = content;
        }
        if inner.bug == Some(Bug::RedrawAfterCrash) && inner.content.rows.len() > 1 {
            inner.content.rows.pop();
            let head = inner.content.rows.last().map(head_of);
            (inner.content.head, inner.old_head) = (head, head);
        }
        let loss = inner.content.rows.iter().position(|row| row.kind == "neighbour-lost");
        if let Some(loss) = loss.filter(|_| inner.bug == Some(Bug::LossForgottenInReplay)) {
            inner.content.rows.truncate(loss);
            let head = inner.content.rows.last().map(head_of);
            (inner.content.head, inner.old_head) = (head, head);
        }
        if !keeps_head && inner.old_head.is_some() {
            inner.content.head = inner.old_head;
        }
        inner.old_head = inner.content.head;
    }

    /// A signed frame is found beside the ledger, whoever put it there.
    pub(super) fn plant(&self, word: Word) {
        self.lock().content.words.push(word);
    }

    /// After `commits` more, the next one meets this fault.
    pub(super) fn will_fail(&self, fault: DiskFault, commits: u32) {
        self.lock().fault = Some((fault, commits));
    }

    /// Somebody has seen to it.
    pub(super) fn mend(&self) {
        self.lock().fault = None;
    }

    pub(super) fn n_faults(&self) -> u64 {
        self.lock().n_faults
    }

    /// Whether it has failed since it was last asked.
    pub(super) fn has_new_fault(&self) -> bool {
        let mut inner = self.lock();
        let is_new = inner.n_faults > inner.n_faults_known;
        inner.n_faults_known = inner.n_faults;
        is_new
    }

    pub(super) fn copy(&self) -> Content {
        self.lock().content.clone()
    }

    /// Another disk with what is on this one.
    pub(super) fn same_again(&self) -> Self {
        let inner = self.lock();
        let disk = Self::new(inner.bug);
        disk.put_back(inner.content.clone());
        disk
    }

    pub(super) fn put_back(&self, content: Content) {
        let mut inner = self.lock();
        inner.old_head = content.head;
        inner.content = content;
    }

    /// A ledger whose making was cut off has no head, and is made again.
    pub(super) fn clear(&self) {
        self.lock().content.rows.clear();
    }

    /// The head that is found beside the rows; none on a new disk.
    pub(super) fn head(&self) -> Option<Head> {
        self.lock().content.head
    }

    /// Whether an entry with these bytes as its payload would be there after a power cut.
    pub(super) fn holds(&self, payload: &[u8]) -> bool {
        let inner = self.lock();
        let content = inner.unwritten.as_ref().unwrap_or(&inner.content);
        content.rows.iter().rev().any(|row| row.payload.as_deref() == Some(payload))
    }
}

fn head_of(row: &Row) -> Head {
    let hash = Digest(row.hash.as_slice().try_into().expect("a row that was written has a hash"));
    Head { seq: row.seq.unsigned_abs(), hash }
}

fn failed(reason: &str) -> LedgerError {
    LedgerError::Failed { path: PathBuf::from(SimulatedDisk::path()), reason: reason.to_owned() }
}

impl LedgerStore for SimulatedDisk {
    fn commit(&mut self, batch: &Batch<'_>, before: &mut dyn FnMut()) -> Result<(), LedgerError> {
        if let Some(row) = batch.entry.filter(|_| self.lock().bug == Some(Bug::HeadBeforeCommit)) {
            self.write_head(head_of(row))?;
        }
        before();
        let mut inner = self.lock();
        let fault = match &mut inner.fault {
            Some((fault, 0)) => Some(*fault),
            Some((_, commits)) => {
                *commits -= 1;
                None
            }
            None => None,
        };
        if fault.is_some() {
            inner.n_faults += 1;
        }
        match fault {
            Some(DiskFault::Full) => return Err(LedgerError::Full { path: PathBuf::from(Self::path()) }),
            Some(DiskFault::Lost) => {
                inner.fault = None;
                return Err(failed("the disk did not answer"));
            }
            Some(DiskFault::KeptAfterAll) | None => {}
        }
        if inner.bug == Some(Bug::SendBeforeCommit) {
            inner.unwritten = Some(inner.content.clone());
        }
        let content = &mut inner.content;
        content.rows.extend(batch.entry.cloned());
        for Received { run, sender, turn, bytes } in batch.received {
            content.received.insert((run.clone(), *turn, sender.clone()), bytes.clone());
        }
        for new in batch.announced {
            content.announced.retain(|old| (&old.run, &old.sender) != (&new.run, &new.sender));
            content.announced.push(new.clone());
        }
        for word in batch.words {
            if !content.words.contains(word) {
                content.words.push(word.clone());
            }
        }
        if fault.is_some() {
            inner.fault = None;
            return Err(failed("the disk did not answer in time"));
        }
        Ok(())
    }

    fn rows(&self, each: &mut dyn FnMut(Row) -> Result<(), LedgerError>) -> Result<(), LedgerError> {
        let rows = self.lock().content.rows.clone();
        rows.into_iter().try_for_each(each)
    }

    fn has_hash(&self, hash: &[u8]) -> bool {
        self.lock().content.rows.iter().any(|row| row.hash == hash)
    }

    fn payload(&self, seq: u64) -> Result<Option<Vec<u8>>, LedgerError> {
        let inner = self.lock();
        let row = inner.content.rows.iter().find(|row| row.seq.unsigned_abs() == seq);
        Ok(row.and_then(|row| row.payload.clone()))
    }

    fn received(&self, run: &str) -> Result<Vec<Received>, LedgerError> {
        let inner = self.lock();
        let of_run = inner.content.received.iter().filter(|((of, _, _), _)| of == run);
        let message = |((run, turn, sender), bytes): (&(String, Turn, String), &Vec<u8>)| Received {
            run: run.clone(),
            sender: sender.clone(),
            turn: *turn,
            bytes: bytes.clone(),
        };
        Ok(of_run.map(message).collect())
    }

    fn received_in(&self, run: &str, sender: &str, turn: Turn) -> Result<Option<Vec<u8>>, LedgerError> {
        Ok(self.lock().content.received.get(&(run.to_owned(), turn, sender.to_owned())).cloned())
    }

    fn received_from(&self, sender: &str, look: &mut dyn FnMut(&[u8])) -> Result<(), LedgerError> {
        let inner = self.lock();
        inner
            .content
            .received
            .iter()
            .filter(|((_, _, of), _)| of == sender)
            .for_each(|(_, bytes)| look(bytes));
        Ok(())
    }

    fn announced_by(&self, sender: &str) -> Result<Vec<Announced>, LedgerError> {
        Ok(self.lock().content.announced.iter().rev().filter(|a| a.sender == sender).cloned().collect())
    }

    fn words(&self, run: &str) -> Result<Vec<Vec<u8>>, LedgerError> {
        let inner = self.lock();
        Ok(inner.content.words.iter().filter(|word| word.run == run).map(|word| word.bytes.clone()).collect())
    }

    fn write_head(&mut self, head: Head) -> Result<(), LedgerError> {
        let mut inner = self.lock();
        inner.old_head = inner.content.head;
        inner.content.head = Some(head);
        Ok(())
    }

    fn limit_pages(&mut self, _pages: u32) -> Result<(), LedgerError> {
        self.will_fail(DiskFault::Full, 0);
        Ok(())
    }
}
