//! What can go wrong between a file and encoded records.

use padmm_core::model::ModelError;
use padmm_core::schema::SchemaError;
use std::path::PathBuf;
use thiserror::Error;

/// A file that cannot be read, understood or written.
///
/// Each message names the file and, where there is one, row and column; none repeats a record.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// The file cannot be opened or read.
    #[error("cannot read {}: {problem}; check the path and that you may read the file", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
    /// The file's name says neither CSV nor Parquet.
    #[error("{}: the name must end in .csv or .parquet, so that the format is known; rename or convert the file", path.display())]
    Extension {
        /// The file.
        path: PathBuf,
    },
    /// There is nothing in the file.
    #[error("{}: the file is empty; it needs a header row with the column names, and records", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The text is not UTF-8.
    #[error("{}: row {row} is not UTF-8 text; save the file as UTF-8 (spreadsheets call it \"CSV UTF-8\")", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Row in the file; the header is row 1.
        row: u64,
    },
    /// The Parquet file is damaged or uses something that is not supported.
    #[error("{}: not a readable Parquet file ({problem}); write it again, or export it as CSV", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        problem: String,
    },
    /// A Parquet column that does not hold plain values.
    #[error("{}: column `{column}` holds lists, records or raw bytes; keep only plain numbers, texts and truth values", path.display())]
    Nested {
        /// The file.
        path: PathBuf,
        /// Name of the column.
        column: String,
    },
    /// This build reads no Parquet.
    #[error("{}: this program was built without the `parquet` feature; export the file as CSV", path.display())]
    NoParquet {
        /// The file.
        path: PathBuf,
    },
    /// Header or records do not fit the schema.
    #[error("{}: {problem}", path.display())]
    Records {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        problem: SchemaError,
    },
    /// The schema file is not a schema.
    #[error("{}: {problem}", path.display())]
    SchemaFile {
        /// The schema's file.
        path: PathBuf,
        /// What is wrong in it, with the line where it is known.
        problem: String,
    },
    /// The model file is not a model.
    #[error("{}: {problem}", path.display())]
    Model {
        /// The model's file.
        path: PathBuf,
        /// What is wrong in it.
        problem: ModelError,
    },
    /// No such shipped set.
    #[error("there is no shipped data set named `{name}`; the names are {known}")]
    UnknownSet {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The file is there already.
    #[error("{} exists already; choose another name, or use --force to replace it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {problem}; check the folder and the space that is left", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
}
