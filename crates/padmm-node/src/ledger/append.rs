//! How a ledger is written to: neighbours' envelopes, and one entry at a time.

use std::sync::atomic::Ordering;

use padmm_core::message::Turn;

use super::chain::{Digest, Row, StoredEntry};
use super::entry::Entry;
use super::error::LedgerError;
use super::head::Head;
use super::site::SiteLedger;
use super::store::Batch;
use crate::fault::{self, Point};

/// A neighbour's envelope. It carries its own signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Hash of the run's contract, in hexadecimal digits.
    pub run: String,
    /// The neighbour's name in the plan.
    pub sender: String,
    /// When in the run it was sent, and used.
    pub turn: Turn,
    /// The whole frame, with its signature.
    pub bytes: Vec<u8>,
}

/// Order of messages: by turn, then by sender.
pub(super) type MessageKey = (Turn, String);

impl SiteLedger {
    /// The bytes that left in a round.
    pub fn release_bytes(&self, run: &str, round: u32) -> Result<Option<Vec<u8>>, LedgerError> {
        let charge = self.state.run(run).and_then(|run| run.charges.get(&round));
        let Some(charge) = charge.filter(|charge| charge.is_released) else { return Ok(None) };
        if let Some((_, bytes)) = self.newest.as_ref().filter(|newest| newest.0 == charge.seq) {
            return Ok(Some(bytes.clone()));
        }
        self.store.payload(charge.seq)
    }

    /// The bytes that left with entry `seq`; none if that entry is no release, or not there.
    pub fn payload_of_entry(&self, seq: u64) -> Result<Option<Vec<u8>>, LedgerError> {
        self.store.payload(seq)
    }

    /// Everything that a neighbour ever sent, from all runs, handed to `look` one by one.
    pub fn for_each_from(&self, sender: &str, mut look: impl FnMut(&[u8])) -> Result<(), LedgerError> {
        self.store.received_from(sender, &mut look)
    }

    /// Keeps a neighbour's envelope for the next commit. The same one again is no news; another one in its place is refused.
    pub fn stage_received(&mut self, message: Received) -> Result<(), LedgerError> {
        let Received { run, sender, turn, .. } = &message;
        let written = self.store.received_in(run, sender, *turn)?;
        let key = (run.clone(), (*turn, sender.clone()));
        match written.as_ref().or_else(|| self.staged.get(&key).map(|staged| &staged.bytes)) {
            Some(known) if *known == message.bytes => Ok(()),
            Some(_) => {
                let Received { run, sender, turn, .. } = message;
                Err(LedgerError::SecondMessage { run, sender, turn })
            }
            None => {
                self.staged.insert(key, message);
                Ok(())
            }
        }
    }

    /// Writes all staged messages, where no release is there to be written with them.
    pub fn commit_received(&mut self) -> Result<(), LedgerError> {
        if self.staged.is_empty() {
            return Ok(());
        }
        self.write(None, Some((Point::ReceivedBeforeCommit, Point::ReceivedAfterCommit)))
    }

    /// The envelopes that were written for a run, by turn and sender.
    pub fn received(&self, run: &str) -> Result<Vec<Received>, LedgerError> {
        self.store.received(run)
    }

    pub(super) fn may_write(&self) -> Result<(), LedgerError> {
        if self.is_stopped { Err(LedgerError::Stopped { path: self.path.clone() }) } else { Ok(()) }
    }

    /// Writes one entry, and what is staged with it.
    pub(super) fn append(
        &mut self,
        entry: Entry,
        payload: Option<Vec<u8>>,
        around: Option<(Point, Point)>,
    ) -> Result<(), LedgerError> {
        self.may_write()?;
        let seq = self.head.seq + 1;
        self.state.check(seq, &entry, payload.as_deref())?;
        let row = Row::new(seq, &entry, payload, self.head.hash);
        self.write(Some(&row), around)?;
        let Row { at, payload, hash, .. } = row;
        let hash = Digest(hash.try_into().expect("a new row has the hash that it was given"));
        let previous = self.head.hash;
        let stored = StoredEntry { seq, at, entry, payload, previous, hash };
        self.state.apply(&stored)?;
        self.head = Head { seq, hash };
        self.newest = stored.payload.map(|payload| (seq, payload));
        fault::at(Point::HeadBeforeWrite);
        // The entry stands, whatever becomes of its head: the next start finds it and continues from there.
        self.is_stopped = true;
        self.is_writing.store(true, Ordering::Relaxed);
        self.store.write_head(self.head)?;
        self.is_writing.store(false, Ordering::Relaxed);
        self.is_stopped = false;
        fault::at(Point::HeadAfterWrite);
        Ok(())
    }

    /// One transaction: the entry, if any, and all staged messages.
    ///
    /// Whether a commit that failed is on the disk after all is only known when the file is read again. So nothing more is written
    /// by this process, and nothing is released.
    fn write(&mut self, row: Option<&Row>, around: Option<(Point, Point)>) -> Result<(), LedgerError> {
        let received: Vec<Received> = self.staged.values().cloned().collect();
        self.commit(&Batch { entry: row, received: &received, ..Batch::default() }, around)?;
        self.staged.clear();
        Ok(())
    }

    /// Writes a batch between two fault points.
    pub(super) fn commit(
        &mut self,
        batch: &Batch<'_>,
        around: Option<(Point, Point)>,
    ) -> Result<(), LedgerError> {
        self.may_write()?;
        self.is_stopped = true;
        let (before, after) = around.unzip();
        self.is_writing.store(true, Ordering::Relaxed);
        self.store.commit(batch, &mut || before.into_iter().for_each(fault::at))?;
        self.is_writing.store(false, Ordering::Relaxed);
        after.into_iter().for_each(fault::at);
        self.is_stopped = false;
        Ok(())
    }
}
