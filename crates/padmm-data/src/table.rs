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

    /// Column names, trimmed.
    pub(crate) fn header(&self) -> &[String] {
        match self {
            Table::Csv(table) => table.header(),
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => table.header(),
        }
    }

    /// Hands over every record with its row in the file; the header is row 1, also where a format has none.
    ///
    /// An error of `each` ends the reading and comes back with the file's name.
    pub(crate) fn for_each(
        self,
        mut each: impl FnMut(u64, &[Option<&str>]) -> Result<(), SchemaError>,
    ) -> Result<(), DataError> {
        match self {
            Table::Csv(table) => table.for_each(&mut each),
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => table.for_each(&mut each),
        }
    }
}

/// What is done with one record: its row and its cells, where `None` is a missing cell.
type Each<'e> = &'e mut dyn FnMut(u64, &[Option<&str>]) -> Result<(), SchemaError>;
