//! One reader for the formats in which sites keep their tables.

mod csv_table;
#[cfg(feature = "parquet")]
mod parquet_table;

use crate::DataError;
use padmm_core::schema::SchemaError;
use std::path::Path;

/// A table with a header, of which the records have not been read yet.
pub(crate) enum Table {
    Csv(csv_table::CsvTable),
    #[cfg(feature = "parquet")]
    Parquet(parquet_table::ParquetTable),
}

impl Table {
    /// Opens a file by the ending of its name.
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        match ending.as_str() {
            "csv" => csv_table::CsvTable::open(path).map(Table::Csv),
            #[cfg(feature = "parquet")]
            "parquet" => parquet_table::ParquetTable::open(path).map(Table::Parquet),
            #[cfg(not(feature = "parquet"))]
            "parquet" => Err(DataError::NoParquet { path: path.to_owned() }),
            _ => Err(DataError::Extension { path: path.to_owned() }),
        }
    }

    /// Column names without the white space around them.
    pub(crate) fn header(&self) -> &[String] {
        match self {
            Self::Csv(table) => table.header(),
            #[cfg(feature = "parquet")]
            Self::Parquet(table) => table.header(),
        }
    }

    /// Hands over every record with its row in the file; the header is row 1, also where a format has none. A record that the
    /// format cannot give as texts comes with the reason in place of its cells.
    ///
    /// An error of `each` ends the reading and comes back with the file's name.
    pub(crate) fn for_each(
        self,
        mut each: impl FnMut(u64, Cells<'_>) -> Result<(), SchemaError>,
    ) -> Result<(), DataError> {
        match self {
            Self::Csv(table) => table.for_each(&mut each),
            #[cfg(feature = "parquet")]
            Self::Parquet(table) => table.for_each(&mut each),
        }
    }
}

/// The cells of one record, where `None` is a missing cell; or why it has none.
pub(crate) type Cells<'c> = Result<&'c [Option<&'c str>], SchemaError>;

/// What is done with one record: its row and its cells.
type Each<'e> = &'e mut dyn FnMut(u64, Cells<'_>) -> Result<(), SchemaError>;

/// A record that ends the reading, as an error about its file.
fn refusal(path: &Path, problem: SchemaError) -> DataError {
    let path = path.to_owned();
    match problem {
        SchemaError::NotText { row } => DataError::NotUtf8 { path, row },
        SchemaError::NotPlain { column, .. } => DataError::Nested { path, column },
        problem => DataError::Records { path, problem },
    }
}
