//! What can go wrong between a file and encoded records.

use padmm_core::model::ModelError;
use padmm_core::schema::SchemaError;
use std::path::PathBuf;
use thiserror::Error;

/// A file that cannot be read, understood or written.
///
/// Each message names the file and, where there is one, row and column; none repeats a record.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
#[non_exhaustive]
pub enum DataError {
    /// The file cannot be opened or read.
    #[error("cannot read {}: {problem}; check the path and that you may read the file", path.display())]
    Read { path: PathBuf, problem: std::io::Error },
    /// The file's name says neither CSV nor Parquet.
    #[error("{}: the name must end in .csv or .parquet, so that the format is known; rename or convert the file", path.display())]
    Extension { path: PathBuf },
    /// There is nothing in the file.
    #[error("{}: the file is empty; it needs a header row with the column names, and records", path.display())]
    Empty { path: PathBuf },
    /// A row holds bytes that are not UTF-8.
    #[error("{}: row {row} is not UTF-8 text; save the file as UTF-8 (spreadsheets call it \"CSV UTF-8\")", path.display())]
    NotUtf8 {
        path: PathBuf,
        /// Row in the file; the header is row 1.
        row: u64,
    },
    /// The Parquet file is damaged or uses something that is not supported.
    #[error("{}: not a readable Parquet file ({problem}); write it again, or export it as CSV", path.display())]
    Parquet { path: PathBuf, problem: String },
    /// A Parquet column that does not hold plain values.
    #[error("{}: column `{column}` holds lists, records or raw bytes; keep only plain numbers, texts and truth values", path.display())]
    Nested { path: PathBuf, column: String },
    /// A column that was asked for by name.
    #[error("{}: there is no column `{column}` in the header", path.display())]
    NoColumn { path: PathBuf, column: String },
    /// The file is Parquet, and this build has no reader for it.
    #[error("{}: this program was built without the `parquet` feature; export the file as CSV", path.display())]
    NoParquet { path: PathBuf },
    /// Header or records do not fit the schema.
    #[error("{}: {problem}", path.display())]
    Records { path: PathBuf, problem: SchemaError },
    /// The schema file is not a schema.
    #[error("{}: {problem}", path.display())]
    SchemaFile {
        path: PathBuf,
        /// What is wrong in it, with the line where it is known.
        problem: String,
    },
    /// The model file is not a model.
    #[error("{}: {problem}", path.display())]
    Model { path: PathBuf, problem: ModelError },
    /// A data set was named that is not built in.
    #[error("no data set named `{name}` is built into this program; there is {known}")]
    UnknownSet {
        name: String,
        /// The names of all shipped sets, separated by commas.
        known: String,
    },
    /// A file is in the way, and it was not asked to be replaced.
    #[error("{} exists already; choose another name, or use --force to replace it", path.display())]
    Exists { path: PathBuf },
    /// Writing failed; what was there before is still there.
    #[error("cannot write {}: {problem}; check the folder and the space that is left", path.display())]
    Write { path: PathBuf, problem: std::io::Error },
}
