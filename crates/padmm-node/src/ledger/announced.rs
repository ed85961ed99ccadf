//! What neighbours have announced: that a release of theirs is in their ledger and is about to leave. It is kept here, on disk,
//! before they get a receipt and let the release go, so that an earlier state of their ledger is noticed whatever crashes.
//!
//! Of each neighbour and run the newest announcement is enough: its entry has the hash of all entries before it. The table is beside
//! the chain: what it holds carries its own signature.

use rusqlite::{OptionalExtension, params};
use std::path::Path;

use super::chain::Digest;
use super::error::LedgerError;
use super::site::SiteLedger;
use super::store;
use crate::fault::{self, Point};

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
        self.may_write()?;
        // As with entries: after a commit that failed, what is on the disk is for the next start to find out.
        self.is_stopped = true;
        let transaction = self.connection.unchecked_transaction().map_err(store::sql(&self.path))?;
        let fill = || -> rusqlite::Result<()> {
            let replace = "INSERT OR REPLACE INTO announced VALUES (?1, ?2, ?3, ?4, ?5)";
            let mut statement = transaction.prepare_cached(replace)?;
            for Announced { run, sender, ledger, entry, bytes } in announced {
                let entry = i64::try_from(*entry).unwrap_or(i64::MAX);
                statement.execute(params![run, sender, ledger.0, entry, bytes])?;
            }
            Ok(())
        };
        fill().map_err(store::sql(&self.path))?;
        fault::at(Point::AnnouncedBeforeCommit);
        transaction.commit().map_err(store::sql(&self.path))?;
        fault::at(Point::AnnouncedAfterCommit);
        self.is_stopped = false;
        Ok(())
    }

    /// The newest announcement of every run of a neighbour, the one that was written last first.
    pub fn announced_by(&self, sender: &str) -> Result<Vec<Announced>, LedgerError> {
        read(&self.connection, sender).map_err(store::sql(&self.path))
    }

    /// The same from a ledger that is not open, such as that of other records; nothing if it was never written there.
    pub fn announced_in(path: &Path, sender: &str) -> Result<Vec<Announced>, LedgerError> {
        let connection = store::open_for_reading(path)?;
        let select = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'announced'";
        let has_table = connection.query_row(select, [], |_| Ok(())).optional().map_err(store::sql(path))?;
        match has_table {
            Some(()) => read(&connection, sender).map_err(store::sql(path)),
            None => Ok(vec![]),
        }
    }
}

fn read(connection: &rusqlite::Connection, sender: &str) -> rusqlite::Result<Vec<Announced>> {
    let select = "SELECT run, ledger, entry, bytes FROM announced WHERE sender = ?1 ORDER BY rowid DESC";
    let mut statement = connection.prepare_cached(select)?;
    let announced = |row: &rusqlite::Row<'_>| {
        let (run, ledger, entry, bytes) = (row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?, row.get(3)?);
        let entry = entry.unsigned_abs();
        Ok(Announced { run, sender: sender.to_owned(), ledger: Digest(ledger), entry, bytes })
    };
    statement.query_map([sender], announced)?.collect()
}
