//! Where the rows of a ledger lie, apart from what they mean: a file, or the disk of a simulation.

use std::path::Path;

use super::announced::Announced;
use super::append::Received;
use super::chain::{Links, Row, StoredEntry};
use super::error::LedgerError;
use super::head::Head;
use super::state::State;
use super::words::Word;
use padmm_core::message::Turn;

/// What is written at once: all of it, or nothing.
#[derive(Default)]
pub struct Batch<'a> {
    /// The next entry of the chain.
    pub entry: Option<&'a Row>,
    /// Neighbours' envelopes, none of which is there already.
    pub received: &'a [Received],
    /// Announcements, each in place of the one before it of the same sender and run.
    pub announced: &'a [Announced],
    /// Signed frames to remember; one that is there already is no news.
    pub words: &'a [Word],
}

/// The rows of a ledger, and the head beside them. Only one process has it at a time.
///
/// What is read from it is not believed before [`super::SiteLedger`] has followed the chain.
pub trait LedgerStore: Send {
    /// Writes a batch, which outlives every crash once this returns. `before` is called when it is ready and nothing of it has been
    /// committed. After an error nobody knows whether it is there.
    fn commit(&mut self, batch: &Batch<'_>, before: &mut dyn FnMut()) -> Result<(), LedgerError>;

    /// All entries, by their number.
    fn rows(&self, each: &mut dyn FnMut(Row) -> Result<(), LedgerError>) -> Result<(), LedgerError>;

    /// Whether some entry says that this is its hash.
    fn has_hash(&self, hash: &[u8]) -> bool;

    /// The bytes that belong to the entry `seq`; none if it has none, or is not there.
    fn payload(&self, seq: u64) -> Result<Option<Vec<u8>>, LedgerError>;

    /// The envelopes of a run, by turn and sender.
    fn received(&self, run: &str) -> Result<Vec<Received>, LedgerError>;

    /// One of them.
    fn received_in(&self, run: &str, sender: &str, turn: Turn) -> Result<Option<Vec<u8>>, LedgerError>;

    /// Everything that a neighbour ever sent, from all runs.
    fn received_from(&self, sender: &str, look: &mut dyn FnMut(&[u8])) -> Result<(), LedgerError>;

    /// The newest announcement of every run of a neighbour, the one that was written last first.
    fn announced_by(&self, sender: &str) -> Result<Vec<Announced>, LedgerError>;

    /// The signed frames that are remembered of a run.
    fn words(&self, run: &str) -> Result<Vec<Vec<u8>>, LedgerError>;

    /// Writes the head beside the rows. It need not outlive a crash, but what is found after one was written at some time.
    fn write_head(&mut self, head: Head) -> Result<(), LedgerError>;

    /// Lets it grow to this many pages of 4096 bytes and no further, as a full disk would. For tests.
    fn limit_pages(&mut self, pages: u32) -> Result<(), LedgerError>;
}

/// Follows the chain from its beginning and hands every entry to `each`. Returns what the entries amount to and the last of
/// them, or the first thing that is wrong.
///
/// `head` must have been read before: a process that writes brings an entry to the disk first and its head after.
pub(super) fn follow(
    store: &dyn LedgerStore,
    path: &Path,
    head: Option<Head>,
    mut each: impl FnMut(StoredEntry),
) -> Result<(State, Head), LedgerError> {
    let mut links = Links::new(path);
    let (mut state, mut last): (Option<State>, Option<Head>) = (None, None);
    store.rows(&mut |row| {
        let stored = links.follow(row, |hash| store.has_hash(hash))?;
        if let Some(head) = head.filter(|head| head.seq == stored.seq && head.hash != stored.hash) {
            return Err(LedgerError::OtherHead { path: path.to_owned(), seq: head.seq });
        }
        match &mut state {
            None => state = Some(State::begin(path, &stored)?),
            Some(state) => state.apply(&stored)?,
        }
        last = Some(Head { seq: stored.seq, hash: stored.hash });
        each(stored);
        Ok(())
    })?;
    let entries = last.map_or(0, |last| last.seq);
    match (head, state.zip(last)) {
        (Some(head), _) if head.seq > entries => {
            Err(LedgerError::Truncated { path: path.to_owned(), entries, head: head.seq })
        }
        (_, Some(found)) => Ok(found),
        (_, None) => {
            Err(LedgerError::NotALedger { path: path.to_owned(), reason: "it has no entries".to_owned() })
        }
    }
}
