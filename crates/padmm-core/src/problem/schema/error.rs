//! What can be wrong with a schema, or with a file that is read through one.

use thiserror::Error;

use super::look::{NumberLook, advice};

/// A schema that contradicts itself, or a record that does not fit it.
///
/// Messages name row and column and never quote a cell: an error text travels further than the file it is about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum SchemaError {
    /// A setting of the schema itself is missing or impossible.
    #[error("the schema's `{setting}` {problem}")]
    Setting {
        setting: &'static str,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A column's description is incomplete or impossible.
    #[error("the schema's column `{column}` {problem}")]
    Column {
        column: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The header does not have the schema's columns.
    #[error(
        "the header does not match the schema: {}; the file needs the label, the site and all of `columns`",
        header_difference(missing, unexpected)
    )]
    Header {
        /// Columns of the schema that the file lacks.
        missing: Vec<String>,
        /// Columns of the file that the schema does not mention.
        unexpected: Vec<String>,
    },
    /// Row 1 shares no name with the schema, so it may be a record: its cells are not repeated here.
    #[error(
        "row 1 does not look like a header: none of the schema's column names are in it, or a cell is empty or a number; put the column names in the first row, separated by commas"
    )]
    NoHeader,
    /// The header is one cell that has the signs of other separators in it.
    #[error(
        "the columns seem to be separated by {separator}, where commas are needed: save the file as CSV with commas, and its numbers with decimal points"
    )]
    Separator { separator: &'static str },
    /// Names that the file writes otherwise than the schema.
    #[error(
        "the header has {} with other capital letters, spaces, underscores or hyphens than the schema: write them alike in both",
        listed(columns)
    )]
    HeaderWriting {
        /// As the schema writes them.
        columns: Vec<String>,
    },
    /// Two columns of the file share a name.
    #[error("the header has two columns named `{column}`; rename one of them")]
    DuplicateHeader { column: String },
    /// A record has more or fewer cells than the header.
    #[error(
        "row {row} has {found} cells and the header has {expected}; look for a stray separator or quotation mark"
    )]
    Ragged {
        /// Row in the file; the header is row 1.
        row: u64,
        expected: usize,
        found: usize,
    },
    /// A numeric column holds something that is not a finite number.
    #[error(
        "row {row}, column `{column}`: the cell is not a finite number; {}", look.advice()
    )]
    NotANumber {
        /// Row in the file; the header is row 1.
        row: u64,
        column: String,
        look: NumberLook,
    },
    /// A number lies outside its public bounds and the schema says that this is an error.
    #[error(
        "row {row}, column `{column}`: the value is outside the schema's bounds; correct it, widen `lower`/`upper`, or set on_out_of_range = \"clip\""
    )]
    OutOfRange {
        /// Row in the file; the header is row 1.
        row: u64,
        column: String,
    },
    /// A categorical column holds a value that the schema does not list.
    #[error(
        "row {row}, column `{column}`: the category is not one of the schema's `values`; {}",
        advice(*is_nearly, "correct it, add it there, or set on_unknown_category = \"other\"")
    )]
    UnknownCategory {
        /// Row in the file; the header is row 1.
        row: u64,
        column: String,
        /// Whether it differs from one of them in writing only.
        is_nearly: bool,
    },
    /// A label outside both lists of a two-class label.
    #[error(
        "row {row}, column `{column}`: the label is in neither `positive` nor `negative`; {}",
        advice(*is_nearly, "correct it or add it to one of them")
    )]
    UnknownLabel {
        /// Row in the file; the header is row 1.
        row: u64,
        column: String,
        /// Whether it differs from one of them in writing only.
        is_nearly: bool,
    },
    /// A site that the schema does not list.
    #[error(
        "row {row}, column `{column}`: the site is not one of the schema's site `values`; correct it or add it"
    )]
    UnknownSite {
        /// Row in the file; the header is row 1.
        row: u64,
        column: String,
    },
    /// A cell is missing and the schema drops such records, or it is the label or the site, which cannot be filled.
    #[error("row {row}, column `{column}`: the cell is missing")]
    Missing {
        /// Row in the file; the header is row 1.
        row: u64,
        column: String,
    },
    /// A row whose bytes are not text.
    #[error("row {row} is not UTF-8 text; save the file as UTF-8 (spreadsheets call it \"CSV UTF-8\")")]
    NotText {
        /// Row in the file; the header is row 1.
        row: u64,
    },
    /// A cell of a typed table that holds bytes or a date which are no plain value.
    #[error("row {row}, column `{column}`: the cell is no plain number, text or truth value")]
    NotPlain {
        /// Row in the file; the header is row 1.
        row: u64,
        column: String,
    },
    /// Nothing is left to learn from.
    #[error("no records are left: {n_read} were read and {n_dropped} of them dropped for missing values")]
    NoRecords {
        n_read: usize,
        /// Records that the missing-value rule left out.
        n_dropped: usize,
    },
    /// A two-class label of which only one class occurs.
    #[error(
        "all {n_records} records have the same class in the label column `{column}`; a classifier needs both, so check `positive` and `negative` in the schema"
    )]
    OneClass {
        column: String,
        /// Records that are left, all of them of that class.
        n_records: usize,
    },
}

impl SchemaError {
    /// The row that it is about; `None` if it is about no single record.
    pub fn row(&self) -> Option<u64> {
        match *self {
            Self::Ragged { row, .. }
            | Self::NotANumber { row, .. }
            | Self::OutOfRange { row, .. }
            | Self::UnknownCategory { row, .. }
            | Self::UnknownLabel { row, .. }
            | Self::UnknownSite { row, .. }
            | Self::Missing { row, .. }
            | Self::NotText { row }
            | Self::NotPlain { row, .. } => Some(row),
            _ => None,
        }
    }

    /// The column that a problem with a record is about, where it is about one.
    fn record_column(&self) -> Option<&str> {
        match self {
            Self::NotANumber { column, .. }
            | Self::OutOfRange { column, .. }
            | Self::UnknownCategory { column, .. }
            | Self::UnknownLabel { column, .. }
            | Self::UnknownSite { column, .. }
            | Self::Missing { column, .. }
            | Self::NotPlain { column, .. } => Some(column),
            _ => None,
        }
    }

    /// Whether two records have the same problem, in the same column where it is about one.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.record_column() == other.record_column()
    }
}

/// At most ten names.
fn listed(names: &[String]) -> String {
    let mut text = names.iter().take(10).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.len() > 10 {
        text += &format!(" and {} more", names.len() - 10);
    }
    text
}

/// Says which columns are absent, and which the file has that may have been meant, at most ten of each.
fn header_difference(missing: &[String], unexpected: &[String]) -> String {
    match unexpected.is_empty() {
        true => format!("the file lacks {}", listed(missing)),
        false => format!(
            "the file lacks {} and has {}, which the schema does not mention",
            listed(missing),
            listed(unexpected)
        ),
    }
}
