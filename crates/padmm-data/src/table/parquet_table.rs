//! Parquet files, read row by row without Arrow.

use super::{Each, refusal};
use crate::DataError;
use padmm_core::schema::SchemaError;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A Parquet file of which only the footer has been read.
pub(crate) struct ParquetTable {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    header: Vec<String>,
}

const DAMAGED: &str = "it is damaged";

impl ParquetTable {
    pub(crate) fn open(path: &Path) -> Result<Self, DataError> {
        let read = |problem| DataError::Read { path: path.to_owned(), problem };
        let file = File::open(path).map_err(read)?;
        if file.metadata().map_err(read)?.len() == 0 {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        let reader = guarded(path, || SerializedFileReader::new(file))?;
        // The reader takes these on trust and panics where they are negative.
        let chunks = reader.metadata().row_groups().iter().flat_map(|group| group.columns());
        for chunk in chunks {
            let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
            if start < 0 || chunk.compressed_size() < 0 || chunk.num_values() < 0 {
                return Err(DataError::Parquet { path: path.to_owned(), problem: DAMAGED.to_owned() });
            }
        }
        let schema = reader.metadata().file_metadata().schema();
        let mut header = Vec::new();
        for field in schema.get_fields() {
            let name = field.name().trim().to_owned();
            let repeated = field.get_basic_info().has_repetition()
                && field.get_basic_info().repetition() == parquet::basic::Repetition::REPEATED;
            if !field.is_primitive() || repeated {
                return Err(DataError::Nested { path: path.to_owned(), column: name });
            }
            header.push(name);
        }
        Ok(Self { path: path.to_owned(), reader, header })
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    pub(crate) fn for_each(self, each: Each<'_>) -> Result<(), DataError> {
        let mut rows = guarded(&self.path, || self.reader.get_row_iter(None))?;
        let mut texts: Vec<Option<String>> = vec![];
        let mut row = 1;
        while let Some(record) = guarded(&self.path, || rows.next().transpose())? {
            row += 1;
            texts.clear();
            let mut problem = None;
            for (name, field) in record.get_column_iter() {
                match plain(field) {
                    Some(text) => texts.push(text),
                    None => problem = Some(SchemaError::NotPlain { row, column: name.clone() }),
                }
            }
            let cells: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
            let cells = problem.map_or(Ok(&cells[..]), Err);
            each(row, cells).map_err(|problem| refusal(&self.path, problem))?;
        }
        Ok(())
    }
}

/// Runs one step of the reader. Damaged metadata makes it panic in places; that is an error about the file too.
#[cfg(panic = "unwind")]
fn guarded<T>(path: &Path, step: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, DataError> {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result.map_err(|error| damaged(path, &error)),
        Err(_) => Err(DataError::Parquet { path: path.to_owned(), problem: DAMAGED.to_owned() }),
    }
}

/// In a program whose panics cannot be caught (the profile `dist`), the same error is the last that it says.
#[cfg(panic = "abort")]
fn guarded<T>(path: &Path, step: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, DataError> {
    use std::cell::RefCell;
    use std::sync::Once;

    thread_local!(static READING: RefCell<Option<PathBuf>> = const { RefCell::new(None) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let Some(path) = READING.take() else { return usual(panic) };
            eprintln!("error: {}", DataError::Parquet { path, problem: DAMAGED.to_owned() });
            std::process::exit(2);
        }));
    });
    READING.set(Some(path.to_owned()));
    let result = step();
    READING.set(None);
    result.map_err(|error| damaged(path, &error))
}

/// The reader's first line of complaint; it speaks of pages and encodings, never of cells.
fn damaged(path: &Path, error: &ParquetError) -> DataError {
    let problem = error.to_string().lines().next().unwrap_or_default().chars().take(120).collect();
    DataError::Parquet { path: path.to_owned(), problem }
}

/// Days from 1970 that a date is written for, in both directions; some 257,000 years.
const MOST_DAYS: i64 = 94_000_000;
const SECONDS_A_DAY: i64 = 86_400;

/// [`text`], but for dates that are so far off that the library panics where it writes them: a record must not end the program.
fn plain(field: &Field) -> Option<Option<String>> {
    let days = match field {
        Field::Date(days) => i64::from(*days),
        Field::TimestampMillis(time) => time / 1_000 / SECONDS_A_DAY,
        Field::TimestampMicros(time) => time / 1_000_000 / SECONDS_A_DAY,
        _ => 0,
    };
    if days.abs() > MOST_DAYS { None } else { text(field) }
}

/// The text that a CSV file would hold: `Some(None)` is a missing cell, `None` not a plain value.
///
/// Numbers are written with the fewest digits that give the same number back, so both formats encode alike.
fn text(field: &Field) -> Option<Option<String>> {
    Some(Some(match field {
        Field::Null => return Some(None),
        Field::Bool(v) => v.to_string(),
        Field::Byte(v) => v.to_string(),
        Field::Short(v) => v.to_string(),
        Field::Int(v) => v.to_string(),
        Field::Long(v) => v.to_string(),
        Field::UByte(v) => v.to_string(),
        Field::UShort(v) => v.to_string(),
        Field::UInt(v) => v.to_string(),
        Field::ULong(v) => v.to_string(),
        Field::Float16(v) => v.to_f64().to_string(),
        Field::Float(v) => v.to_string(),
        Field::Double(v) => v.to_string(),
        Field::Str(v) => v.clone(),
        // Some writers do not mark text as text.
        Field::Bytes(v) => v.as_utf8().ok()?.to_owned(),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => return None,
        dated_or_decimal => dated_or_decimal.to_string(),
    }))
}
