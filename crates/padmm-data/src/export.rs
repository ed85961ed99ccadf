//! A shipped set as one tidy CSV with its schema beside it.

use crate::write::{refuse_existing, write_atomically};
use crate::{DataError, shipped_set};
use std::path::{Path, PathBuf};

/// The two files that an export leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Path of the CSV, as it was asked for.
    pub table: PathBuf,
    /// Path of the `<stem>.schema.toml` beside it.
    pub schema: PathBuf,
    /// Rows of the CSV without its header.
    pub n_records: usize,
}

/// Writes a shipped set to `out` and its schema to `<stem>.schema.toml` in the same folder.
///
/// The table has a header, all published files joined, a last column that says which one a record comes from, and
/// Adult's labels without the test file's full stop. Without `force` nothing is written if either file exists.
pub fn export(name: &str, out: &Path, force: bool) -> Result<Exported, DataError> {
    let set = shipped_set(name)?;
    if out.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("csv")) {
        return Err(DataError::Extension { path: out.to_owned() });
    }
    let schema = out.with_extension("schema.toml");
    refuse_existing(out, force)?;
    refuse_existing(&schema, force)?;

    let mut writer = csv::Writer::from_writer(Vec::new());
    let written = |result: Result<(), csv::Error>| result.expect("writing to memory does not fail");
    written(writer.write_record(set.header()));
    let mut n_records = 0;
    set.for_each(|_, cells, _| {
        let label = cells.len() - 2;
        let tidy =
            |(i, &cell): (usize, &'_ _)| if i == label { str::trim_end_matches(cell, '.') } else { cell };
        written(writer.write_record(cells.iter().enumerate().map(tidy)));
        n_records += 1;
        Ok(())
    })
    .expect("nothing here refuses a record");
    let table = writer.into_inner().expect("writing to memory does not fail");

    write_atomically(&schema, force, set.schema_toml.as_bytes())?;
    write_atomically(out, force, &table)?;
    Ok(Exported { table: out.to_owned(), schema, n_records })
}
