//! How a ledger is written to: neighbours' envelopes, and one entry at a time.

use padmm_core::message::{Stage, Turn};
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, params};

use super::chain::{Digest, Row, StoredEntry};
use super::entry::Entry;
use super::error::LedgerError;
use super::head::Head;
use super::site::SiteLedger;
use super::store;
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
        let select = "SELECT payload FROM entries WHERE seq = ?1";
        let mut statement = self.connection.prepare_cached(select).map_err(store::sql(&self.path))?;
        statement.query_row([charge.seq as i64], |row| row.get(0)).map_err(store::sql(&self.path))
    }

    /// The bytes that left with entry `seq`; none if that entry is no release, or not there.
    pub fn payload_of_entry(&self, seq: u64) -> Result<Option<Vec<u8>>, LedgerError> {
        let select = "SELECT payload FROM entries WHERE seq = ?1";
        let seq = i64::try_from(seq).unwrap_or(i64::MAX);
        let read = || -> rusqlite::Result<Option<Option<Vec<u8>>>> {
            self.connection.prepare_cached(select)?.query_row([seq], |row| row.get(0)).optional()
        };
        read().map(Option::flatten).map_err(store::sql(&self.path))
    }

    /// Everything that a neighbour ever sent, from all runs, handed to `look` one by one.
    pub fn for_each_from(&self, sender: &str, mut look: impl FnMut(&[u8])) -> Result<(), LedgerError> {
        let select = "SELECT bytes FROM received WHERE sender = ?1";
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(select)?;
            let mut rows = statement.query([sender])?;
            while let Some(row) = rows.next()? {
                look(row.get_ref(0)?.as_blob()?);
            }
            Ok(())
        };
        read().map_err(store::sql(&self.path))
    }

    /// Keeps a neighbour's envelope for the next commit. The same one again is no news; another one in its place is refused.
    pub fn stage_received(&mut self, message: Received) -> Result<(), LedgerError> {
        let Received { run, sender, turn, bytes } = message;
        let select = "SELECT bytes FROM received WHERE run = ?1 AND sender = ?2 AND stage = ?3 AND turn = ?4";
        let written: Option<Vec<u8>> = self
            .connection
            .prepare_cached(select)
            .and_then(|mut s| {
                let key = params![run, sender, turn.stage.number(), turn.number];
                s.query_row(key, |row| row.get(0)).optional()
            })
            .map_err(store::sql(&self.path))?;
        let key = (run, (turn, sender));
        match written.as_ref().or_else(|| self.staged.get(&key)) {
            Some(known) if *known == bytes => Ok(()),
            Some(_) => {
                let (run, (turn, sender)) = key;
                Err(LedgerError::SecondMessage { run, sender, turn })
            }
            None => {
                self.staged.insert(key, bytes);
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
        let select =
            "SELECT sender, stage, turn, bytes FROM received WHERE run = ?1 ORDER BY stage, turn, sender";
        let read = || -> rusqlite::Result<Vec<Received>> {
            let mut statement = self.connection.prepare_cached(select)?;
            let message = |row: &rusqlite::Row<'_>| {
                let stage = Stage::from_number(row.get(1)?).ok_or_else(|| {
                    let why = "there is no stage of this number".into();
                    rusqlite::Error::FromSqlConversionFailure(1, Type::Integer, why)
                })?;
                let turn = Turn { stage, number: row.get(2)? };
                Ok(Received { run: run.to_owned(), sender: row.get(0)?, turn, bytes: row.get(3)? })
            };
            statement.query_map([run], message)?.collect()
        };
        read().map_err(store::sql(&self.path))
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
        if let Some(file) = &mut self.head_file {
            // The entry stands, whatever becomes of its head: the next start finds it and continues from there.
            self.is_stopped = true;
            file.write(self.head)?;
            self.is_stopped = false;
        }
        fault::at(Point::HeadAfterWrite);
        Ok(())
    }

    /// One transaction: the entry, if any, and all staged messages.
    ///
    /// Whether a commit that failed is on the disk after all is only known when the file is read again. So nothing more is written
    /// by this process, and nothing is released.
    fn write(&mut self, row: Option<&Row>, around: Option<(Point, Point)>) -> Result<(), LedgerError> {
        self.may_write()?;
        self.is_stopped = true;
        let transaction = self.connection.unchecked_transaction().map_err(store::sql(&self.path))?;
        let fill = || -> rusqlite::Result<()> {
            if let Some(row) = row {
                store::insert(&transaction, row)?;
            }
            let insert = "INSERT INTO received VALUES (?1, ?2, ?3, ?4, ?5)";
            let mut statement = transaction.prepare_cached(insert)?;
            for ((run, (turn, sender)), bytes) in &self.staged {
                statement.execute(params![run, sender, turn.stage.number(), turn.number, bytes])?;
            }
            Ok(())
        };
        fill().map_err(store::sql(&self.path))?;
        if let Some((before, _)) = around {
            fault::at(before);
        }
        transaction.commit().map_err(store::sql(&self.path))?;
        if let Some((_, after)) = around {
            fault::at(after);
        }
        self.staged.clear();
        self.is_stopped = false;
        Ok(())
    }
}
