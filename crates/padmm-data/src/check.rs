//! Does a file fit its schema? Answered in counts, rows and columns, never in records.

use crate::table::Table;
use crate::{DataError, push};
use padmm_core::schema::{Purpose, Schema, SchemaError, Unusable};
use std::path::Path;

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
    /// Columns of the file that the schema does not know, and that are not read.
    pub unlisted: Vec<String>,
    /// Where cells are missing, column by column; a record counts where its first one is.
    pub missing: Vec<Unusable>,
    /// What else is wrong with records, one entry a problem and column.
    pub problems: Vec<Unusable>,
    /// Why nothing can be learned from the records that are usable.
    pub untrainable: Option<SchemaError>,
}

impl CheckReport {
    /// Whether there is something to mend: records that do not fit, or classes from which nothing can be learned.
    pub fn has_problems(&self) -> bool {
        self.n_refused > 0 || self.untrainable.is_some()
    }

    /// The part of the records that count for nothing.
    pub fn lost(&self) -> f64 {
        (self.n_dropped + self.n_refused) as f64 / self.n_records.max(1) as f64
    }
}

/// Checks a whole file against a schema. A file that cannot be read, or has another header, is an error; records
/// that do not fit are counted in the report.
pub fn check_file(path: &Path, schema: &Schema) -> Result<CheckReport, DataError> {
    let table = Table::open(path)?;
    // As a real site reads it: nothing ends the reading, and every problem is counted.
    let mut encoder = schema
        .encoder_for(Purpose::Site, table.header())
        .map_err(|problem| DataError::Records { path: path.to_owned(), problem })?;
    table.for_each(|row, cells| push(&mut encoder, row, cells).map(drop))?;
    let encoded = encoder.finish();
    let n_refused = encoded.n_unusable() - encoded.n_dropped;
    // With refused records the classes that are left say nothing about the file.
    let untrainable = if n_refused == 0 { encoded.check_trainable().err() } else { None };
    let is_missing = |problem: &Unusable| matches!(problem.first, SchemaError::Missing { .. });
    let (missing, problems) = encoded.unusable.into_iter().partition(is_missing);
    Ok(CheckReport {
        n_records: encoded.n_read,
        n_usable: encoded.n_read - encoded.n_dropped - n_refused,
        n_dropped: encoded.n_dropped,
        n_refused,
        n_features: encoded.features.n_features(),
        n_clipped: encoded.n_clipped,
        unlisted: encoded.unlisted,
        missing,
        problems,
        untrainable,
    })
}
