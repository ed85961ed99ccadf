//! Comma-separated text with a header.

use super::Each;
use crate::DataError;
use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};
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
        let mut table = CsvTable { path: path.to_owned(), bytes, header: vec![] };
        let mut record = StringRecord::new();
        table.reader().read_record(&mut record).map_err(|error| table.error(&error, 1))?;
        table.header = record.iter().map(|name| name.trim().to_owned()).collect();
        Ok(table)
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    pub(crate) fn for_each(self, each: Each<'_>) -> Result<(), DataError> {
        let mut rows = RowCounter { bytes: &self.bytes, place: 0, row: 1 };
        let mut reader = self.reader();
        let mut record = StringRecord::new();
        let mut is_header = true;
        loop {
            let start = reader.position().byte() as usize;
            let more = reader.read_record(&mut record).map_err(|error| self.error(&error, rows.at(start)))?;
            if !more {
                return Ok(());
            }
            let row = rows.at(start);
            if std::mem::take(&mut is_header) {
                continue;
            }
            let cells: Vec<Option<&str>> = record.iter().map(Some).collect();
            each(row, &cells)
                .map_err(|problem: SchemaError| DataError::Records { path: self.path.clone(), problem })?;
        }
    }

    /// Rows of any length are let through here: the encoder names the row whose length is wrong.
    fn reader(&self) -> Reader<&[u8]> {
        ReaderBuilder::new().has_headers(false).flexible(true).from_reader(self.bytes.as_slice())
    }

    fn error(&self, error: &csv::Error, row: u64) -> DataError {
        let path = self.path.clone();
        match error.kind() {
            ErrorKind::Utf8 { .. } => DataError::NotUtf8 { path, row },
            _ => {
                DataError::Read { path, problem: std::io::Error::other(format!("row {row}: unreadable CSV")) }
            }
        }
    }
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
