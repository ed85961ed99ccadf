//! From files to encoded records: shipped data sets, CSV, Parquet, schema and model files.
//!
//! This crate does the reading and writing that `padmm-core` leaves out. It scales nothing by what it reads: all
//! bounds and categories come from a schema (EQUATIONS §3).

#![warn(clippy::unwrap_used)]

mod check;
pub mod datasets;
mod draft;
mod error;
mod export;
mod matrix;
mod shipped;
mod table;
mod write;

pub use check::{CheckReport, check_file};
pub use draft::draft_schema;
pub use error::DataError;
pub use export::{Exported, export};
pub use shipped::{ShippedFile, ShippedSet, shipped, shipped_set};
pub use write::write_atomically;

use padmm_core::model::Model;
use padmm_core::schema::{Encoded, Encoder, Purpose, Schema, SchemaDraft, SchemaError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use table::{Cells, Table};

/// Where records for training come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A set that is built into the program, by name.
    Shipped(String),
    /// A CSV or Parquet file with its schema.
    File {
        /// The CSV or Parquet file; its ending decides.
        path: PathBuf,
        /// The `schema.toml` that says what its columns mean.
        schema: PathBuf,
    },
}

/// Records ready to learn from, with the schema they were encoded by.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Name of the shipped set, or the file's path.
    pub name: String,
    /// The schema, which a model carries along.
    pub schema: Schema,
    /// Rows and labels as numbers, bounded by the schema.
    pub encoded: Encoded,
}

/// Loads records for training, and refuses those from which nothing can be learned.
pub fn load(source: &Source) -> Result<Loaded, DataError> {
    let (name, schema, encoded) = match source {
        Source::Shipped(name) => {
            let set = shipped_set(name)?;
            (name.clone(), set.schema(), set.encode()?)
        }
        Source::File { path, schema } => {
            let schema = read_schema(schema)?;
            let encoded = encode_file(path, &schema, Purpose::Train)?;
            (path.display().to_string(), schema, encoded)
        }
    };
    encoded
        .check_trainable()
        .map_err(|problem| DataError::Records { path: PathBuf::from(&name), problem })?;
    Ok(Loaded { name, schema, encoded })
}

/// Encodes a CSV or Parquet file; the purpose decides which columns it must have.
pub fn encode_file(path: &Path, schema: &Schema, purpose: Purpose) -> Result<Encoded, DataError> {
    let table = Table::open(path)?;
    let mut encoder = schema
        .encoder_for(purpose, table.header())
        .map_err(|problem| DataError::Records { path: path.to_owned(), problem })?;
    table.for_each(|row, cells| push(&mut encoder, row, cells).map(|_| ()))?;
    Ok(encoder.finish())
}

/// Encodes the file of a real site: every row is a record, whatever it says. No error of this function is about a record, beside those of a file
/// that is damaged as a whole.
pub fn encode_site_file(path: &Path, schema: &Schema) -> Result<Encoded, DataError> {
    encode_file(path, schema, Purpose::Site)
}

/// The texts of one column by their row, where the header is row 1; what is missing is an empty text. For what is handed on beside records
/// and not read as a part of them, such as an identifier.
pub fn column_of(path: &Path, column: &str) -> Result<BTreeMap<u64, String>, DataError> {
    let table = Table::open(path)?;
    let Some(place) = table.header().iter().position(|name| name == column) else {
        return Err(DataError::NoColumn { path: path.to_owned(), column: column.to_owned() });
    };
    let mut texts = BTreeMap::new();
    table.for_each(|row, cells| {
        let text = cells.ok().and_then(|cells| cells.get(place).copied().flatten());
        texts.insert(row, text.unwrap_or_default().to_owned());
        Ok(())
    })?;
    Ok(texts)
}

/// Adds a record of a table, or what is wrong with it.
fn push(encoder: &mut Encoder<'_>, row: u64, cells: Cells<'_>) -> Result<bool, SchemaError> {
    match cells {
        Ok(cells) => encoder.push_record(row, cells.iter().copied()),
        Err(problem) => encoder.push_unusable(row, problem),
    }
}

/// Reads a `schema.toml` and checks it; errors name the line where it is known.
pub fn read_schema(path: &Path) -> Result<Schema, DataError> {
    parse_schema(&read_text(path)?, path)
}

/// Checks the text of a schema; `path` is what errors call it.
pub fn parse_schema(text: &str, path: &Path) -> Result<Schema, DataError> {
    let wrong = |problem| DataError::SchemaFile { path: path.to_owned(), problem };
    let draft: SchemaDraft = toml::from_str(text).map_err(|error| {
        let line =
            |span: std::ops::Range<usize>| text[..span.start.min(text.len())].matches('\n').count() + 1;
        match error.span().map(line) {
            Some(line) => wrong(format!("line {line}: {}", error.message())),
            None => wrong(error.message().to_owned()),
        }
    })?;
    draft.check().map_err(|error| wrong(error.to_string()))
}

/// Reads a `model.json` and refuses what is not a consistent model, or a site's own ([`read_model_inside`]).
pub fn read_model(path: &Path) -> Result<Model, DataError> {
    let text = read_text(path)?;
    Model::from_json(&text).map_err(|problem| DataError::Model { path: path.to_owned(), problem })
}

/// Reads a `model.json` or a site's own `own-model.json`: for whoever uses it inside the site and sends nothing.
pub fn read_model_inside(path: &Path) -> Result<Model, DataError> {
    let text = read_text(path)?;
    Model::from_json_inside(&text).map_err(|problem| DataError::Model { path: path.to_owned(), problem })
}

/// Writes a `model.json`, whole or not at all.
pub fn write_model(path: &Path, model: &Model, force: bool) -> Result<(), DataError> {
    write_atomically(path, force, (model.to_json() + "\n").as_bytes())
}

/// Models as files, on the model itself.
pub trait ModelFile: Sized {
    /// Writes a `model.json`, whole or not at all, in place of what was there.
    fn save(&self, path: impl AsRef<Path>) -> Result<(), DataError>;

    /// Reads a `model.json` and refuses what is not a consistent model.
    fn open(path: impl AsRef<Path>) -> Result<Self, DataError>;
}

impl ModelFile for Model {
    fn save(&self, path: impl AsRef<Path>) -> Result<(), DataError> {
        write_model(path.as_ref(), self, true)
    }

    fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        read_model(path.as_ref())
    }
}

impl Loaded {
    /// Records that are encoded already, with the schema that encoded them.
    pub fn new(name: impl Into<String>, schema: Schema, encoded: Encoded) -> Self {
        Self { name: name.into(), schema, encoded }
    }

    /// A CSV or Parquet file, by the schema in `schema`.
    pub fn file(path: impl Into<PathBuf>, schema: impl Into<PathBuf>) -> Result<Self, DataError> {
        load(&Source::File { path: path.into(), schema: schema.into() })
    }
}

fn read_text(path: &Path) -> Result<String, DataError> {
    let bytes = std::fs::read(path).map_err(|problem| DataError::Read { path: path.to_owned(), problem })?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let row = 1 + valid.iter().filter(|b| **b == b'\n').count() as u64;
        DataError::NotUtf8 { path: path.to_owned(), row }
    })
}
