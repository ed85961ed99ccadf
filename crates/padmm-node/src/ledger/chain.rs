//! How entries are tied to one another.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::entry::Entry;
use super::error::LedgerError;
use crate::identity::{from_hex, to_hex};

/// A SHA-256 hash; in text, 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// What the first entry has in place of a previous hash.
    pub const NOTHING: Self = Self([0; 32]);

    /// From 64 hexadecimal digits; none for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        from_hex("a hash", text).ok().map(Digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// A row of the table of entries, as it lies in the file: not yet believed.
#[derive(Debug, Clone)]
pub struct Row {
    /// Place in the chain, counted from 1.
    pub seq: i64,
    /// Which kind of entry it is.
    pub kind: String,
    /// When it was written.
    pub at: String,
    /// What it says, as JSON.
    pub body: String,
    /// The bytes that left, for a release.
    pub payload: Option<Vec<u8>>,
    /// Hash of the entry before it.
    pub previous: Vec<u8>,
    /// Hash of all of this.
    pub hash: Vec<u8>,
}

impl Row {
    /// The row that follows a ledger with `seq - 1` entries.
    pub(super) fn new(seq: u64, entry: &Entry, payload: Option<Vec<u8>>, previous: Digest) -> Self {
        let mut row = Self {
            seq: i64::try_from(seq).expect("fewer than 2^63 entries"),
            kind: entry.kind().to_owned(),
            at: timestamp(crate::clock::now()),
            body: entry.body(),
            payload,
            previous: previous.0.to_vec(),
            hash: Vec::new(),
        };
        row.hash = row.digest().0.to_vec();
        row
    }

    /// SHA-256 over a prefix and every column but the hash. Each field's length comes before it, so that no two rows give
    /// the same input.
    pub(super) fn digest(&self) -> Digest {
        let mut hasher = Sha256::new();
        hasher.update(b"padmm ledger entry 1\0");
        hasher.update(self.seq.to_be_bytes());
        let mut field = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        field(self.kind.as_bytes());
        field(self.at.as_bytes());
        field(self.body.as_bytes());
        match &self.payload {
            None => field(b"none"),
            Some(bytes) => {
                field(b"some");
                field(bytes);
            }
        }
        field(&self.previous);
        Digest(hasher.finalize().into())
    }
}

/// An entry that is in its place in the chain.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    /// Place in the chain, counted from 1.
    pub seq: u64,
    /// When it was written by this machine's clock, in UTC; for reading only.
    pub at: String,
    /// What the entry says, decoded by its kind.
    pub entry: Entry,
    /// The bytes that left, for a release.
    pub payload: Option<Vec<u8>>,
    /// Hash of the entry before it.
    pub previous: Digest,
    /// SHA-256 of the entry and the hash before it.
    pub hash: Digest,
}

/// Checks the links one by one.
pub(super) struct Links<'a> {
    path: &'a Path,
    seq: u64,
    last: Digest,
}

impl<'a> Links<'a> {
    pub(super) fn new(path: &'a Path) -> Self {
        Self { path, seq: 0, last: Digest::NOTHING }
    }

    /// The entry of the next row, or what is wrong with it. `is_hash` says whether some row of the table has a hash; it is only
    /// asked to tell a changed entry from one in a wrong place.
    pub(super) fn follow(
        &mut self,
        row: Row,
        is_hash: impl FnOnce(&[u8]) -> bool,
    ) -> Result<StoredEntry, LedgerError> {
        let (path, seq) = (self.path.to_owned(), self.seq + 1);
        if row.seq != seq as i64 {
            return Err(LedgerError::Gap { path, seq });
        }
        let hash = row.digest();
        let follows = row.previous == self.last.0;
        if row.hash != hash.0 {
            let moved = !follows && is_hash(&row.previous);
            return Err(if moved {
                LedgerError::Reordered { path, seq }
            } else {
                LedgerError::Changed { path, seq }
            });
        }
        if !follows {
            return Err(LedgerError::Detached { path, seq });
        }
        let entry = match Entry::parse(&row.kind, &row.body) {
            None => return Err(LedgerError::UnknownKind { path, seq, kind: row.kind }),
            Some(Err(error)) => return Err(LedgerError::Senseless { path, seq, reason: error.to_string() }),
            Some(Ok(entry)) => entry,
        };
        let previous = self.last;
        (self.seq, self.last) = (seq, hash);
        Ok(StoredEntry { seq, at: row.at, entry, payload: row.payload, previous, hash })
    }
}

/// Seconds in UTC as RFC 3339 writes them.
pub(super) fn timestamp(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of the year 0: leap days then come last in a year, and 400 years have 146,097 days.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_written_as_rfc_3339() {
        // Values of `date -u -d @N +%FT%TZ`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_600, "2025-01-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
