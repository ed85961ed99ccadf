//! The head file: position and hash of the last entry, beside the ledger.
//!
//! SQLite opens a file or a log that was cut without complaint, and is simply shorter. The head file notices. It is written after
//! an entry is on the disk and not forced to the disk itself: after a power cut it may name an earlier entry, never a
//! later one. Its length never changes and it is overwritten in place, so it is never seen half written.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::chain::Digest;
use super::error::LedgerError;
use super::sqlite::{beside, for_owner, io};

/// Number and hash of a ledger's newest entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its position; the number of entries.
    pub seq: u64,
    /// SHA-256 of the entry and the hash before it.
    pub hash: Digest,
}

const TITLE: &str = "padmm ledger head 1";

impl Head {
    fn to_text(self) -> String {
        format!("{TITLE}\n{:020}\n{}\n", self.seq, self.hash)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let (title, seq, hash) = (lines.next()?, lines.next()?, lines.next()?);
        let head = Self { seq: seq.parse().ok()?, hash: Digest::parse(hash)? };
        (title == TITLE && head.to_text() == text).then_some(head)
    }

    /// What the head file of the ledger at `path` says; `None` if there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, LedgerError> {
        let head = head_path(path);
        let mut text = String::new();
        match File::open(&head).and_then(|file| file.take(1000).read_to_string(&mut text)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            // Bytes that are no text.
            Err(error) if error.kind() == ErrorKind::InvalidData => {}
            Err(error) => return Err(io(&head, &error)),
            Ok(_) => {}
        }
        Self::parse(&text).map(Some).ok_or(LedgerError::HeadUnreadable { head })
    }
}

/// The place of the head file.
pub(super) fn head_path(path: &Path) -> PathBuf {
    beside(path, "head")
}

/// The open head file of a ledger that is written.
pub(super) struct HeadFile {
    path: PathBuf,
    file: File,
}

impl HeadFile {
    /// Makes it with `head` in it. It gets its name when it is whole and on the disk.
    pub(super) fn make(ledger: &Path, head: Head) -> Result<(), LedgerError> {
        let (path, draft) = (head_path(ledger), beside(ledger, "head.new"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        for_owner(&mut options);
        let make = || {
            let mut file = options.open(&draft)?;
            file.write_all(head.to_text().as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&draft, &path)
        };
        make().map_err(|error| io(&path, &error))
    }

    /// Opens it and writes `head` into it.
    pub(super) fn open(ledger: &Path, head: Head) -> Result<Self, LedgerError> {
        let path = head_path(ledger);
        let file = OpenOptions::new().write(true).open(&path).map_err(|error| io(&path, &error))?;
        let mut head_file = Self { path, file };
        head_file.write(head)?;
        Ok(head_file)
    }

    /// Overwrites the file in place, without waiting for the disk.
    pub(super) fn write(&mut self, head: Head) -> Result<(), LedgerError> {
        let text = head.to_text();
        let write = |file: &mut File| {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(text.as_bytes())
        };
        write(&mut self.file).map_err(|error| io(&self.path, &error))
    }
}
