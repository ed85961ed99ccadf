//! Comma-separated text with a header.

use super::{Each, refusal};
use crate::DataError;
use csv::{ByteRecord, Reader, ReaderBuilder};
use padmm_core::schema::SchemaError;
use std::path::{Path, PathBuf};

/// A CSV file in memory, past its header.
///
/// The bytes stay in memory while it is read, because the number of a row is found by counting line ends: the
/// reader's own count is one short after Windows line ends and does not know empty lines.
pub(crate) struct CsvTable {
    path: PathBuf,
    bytes: Vec<u8>,
    header: Vec<String>,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl CsvTable {
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let read = |problem| DataError::Read { path: path.to_owned(), problem };
        let mut bytes = std::fs::read(path).map_err(read)?;
        if bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        let mut table = Self { path: path.to_owned(), bytes, header: vec![] };
        let mut record = ByteRecord::new();
        table.reader().read_byte_record(&mut record).map_err(|_| table.error(1))?;
        let names = texts(&record).ok_or_else(|| DataError::NotUtf8 { path: path.to_owned(), row: 1 })?;
        table.header = names.into_iter().flatten().map(|name| name.trim().to_owned()).collect();
        Ok(table)
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    pub(crate) fn for_each(self, each: Each<'_>) -> Result<(), DataError> {
        let mut rows = RowCounter { bytes: &self.bytes, place: 0, row: 1 };
        let mut reader = self.reader();
        let mut record = ByteRecord::new();
        let mut is_header = true;
        loop {
            let start = reader.position().byte() as usize;
            let more = reader.read_byte_record(&mut record).map_err(|_| self.error(rows.at(start)))?;
            if !more {
                return Ok(());
            }
            let row = rows.at(start);
            if std::mem::take(&mut is_header) {
                continue;
            }
            let texts = texts(&record);
            let cells = texts.as_deref().ok_or(SchemaError::NotText { row });
            each(row, cells).map_err(|problem| refusal(&self.path, problem))?;
        }
    }

    /// Rows of any length are let through here: the encoder names the row whose length is wrong.
    fn reader(&self) -> Reader<&[u8]> {
        ReaderBuilder::new().has_headers(false).flexible(true).from_reader(self.bytes.as_slice())
    }

    /// Rows have any length and any bytes, and the file is in memory: nothing is left that the reader refuses.
    fn error(&self, row: u64) -> DataError {
        let problem = std::io::Error::other(format!("row {row}: unreadable CSV"));
        DataError::Read { path: self.path.clone(), problem }
    }
}

/// The cells as texts; `None` if one of them is not UTF-8. The reader splits bytes, so what one row holds changes no other.
fn texts(record: &ByteRecord) -> Option<Vec<Option<&str>>> {
    record.iter().map(|cell| std::str::from_utf8(cell).ok().map(Some)).collect()
}

/// Finds the number of a row from its place in the file, going forward only.
struct RowCounter<'b> {
    bytes: &'b [u8],
    place: usize,
    row: u64,
}

impl RowCounter<'_> {
    /// The row, as a person counts lines, of the record that starts at or after `start`.
    fn at(&mut self, start: usize) -> u64 {
        let skipped = self.bytes[start..].iter().take_while(|b| matches!(b, b'\n' | b'\r')).count();
        let passed = &self.bytes[self.place..start + skipped];
        // A carriage return ends a line too, unless a line feed follows.
        let next = passed.iter().skip(1).chain(&self.bytes[start + skipped..]).take(passed.len());
        let lone = passed.iter().zip(next).filter(|&(b, next)| *b == b'\r' && *next != b'\n').count();
        self.row += (passed.iter().filter(|b| **b == b'\n').count() + lone) as u64;
        self.place = start + skipped;
        self.row
    }
}
