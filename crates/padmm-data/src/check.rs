//! Does a file fit its schema? Answered in counts, rows and columns, never in records.

use crate::table::Table;
use crate::{DataError, push};
use padmm_core::schema::{Purpose, Schema, SchemaError};
use std::path::Path;

/// Problems that are listed; the rest is only counted.
const LISTED: usize = 20;

/// What a check found. The counts are computed from records: they are for the site's own eyes (EQUATIONS §8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// Rows of the file: the number of records that a plan names, and the only number here that does not depend on what they say.
    pub n_records: usize,
    /// Records that can be used; at a real site the others count for nothing.
    pub n_usable: usize,
    /// Records that the missing-value rule leaves out.
    pub n_dropped: usize,
    /// Records with a cell that the schema does not allow.
    pub n_refused: usize,
    /// How many values of each numeric column are clipped to their bounds.
    pub n_clipped: Vec<(String, usize)>,
    /// Columns of a record once it is encoded.
    pub n_features: usize,
    /// All problems, listed or not: a refused record counts once, and so do classes from which
    /// nothing can be learned.
    pub n_problems: usize,
    /// The first twenty refusals, or what is wrong with the classes.
    pub problems: Vec<SchemaError>,
}

/// Checks a whole file against a schema. A file that cannot be read, or has another header, is an error; records
/// that do not fit are listed in the report.
pub fn check_file(path: &Path, schema: &Schema) -> Result<CheckReport, DataError> {
    let table = Table::open(path)?;
    let mut encoder = schema
        .encoder_for(Purpose::Train, table.header())
        .map_err(|problem| DataError::Records { path: path.to_owned(), problem })?;
    let mut problems = Vec::new();
    let mut n_refused = 0;
    table.for_each(|row, cells| {
        if let Err(problem) = push(&mut encoder, row, cells) {
            n_refused += 1;
            if problems.len() < LISTED {
                problems.push(problem);
            }
        }
        Ok(())
    })?;
    let encoded = encoder.finish();
    let mut n_problems = n_refused;
    // With refused records the classes that are left say nothing about the file.
    if let (0, Err(problem)) = (n_refused, encoded.check_trainable()) {
        n_problems += 1;
        problems.push(problem);
    }
    Ok(CheckReport {
        n_records: encoded.n_read + n_refused,
        n_usable: encoded.records.n_records(),
        n_dropped: encoded.n_dropped,
        n_refused,
        n_features: encoded.features.n_features(),
        n_clipped: encoded.n_clipped,
        n_problems,
        problems,
    })
}
