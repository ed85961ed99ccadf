//! Schemas, tables that are encoded by them, and the shipped data sets.

use std::ops::Range;
use std::path::{Path, PathBuf};

use numpy::{IntoPyArray, PyArray1};
use padmm_core::schema::{ColumnKind, Label, Purpose, SchemaDraft, SchemaError, Sites};
use padmm_data::{ShippedSet, shipped_set};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::columns::{Column, View, common_length};
use crate::errors::Failure;
use crate::to_json;

/// Rows that one thread encodes at a time.
const PART: usize = 1 << 12;

/// A schema that has passed every check.
#[pyclass(module = "padmm._padmm", frozen)]
pub struct Schema {
    pub inner: padmm_core::schema::Schema,
}

#[pymethods]
impl Schema {
    /// From the text of a `schema.toml`; `name` is what errors call it.
    #[staticmethod]
    fn from_toml(text: &str, name: PathBuf) -> PyResult<Self> {
        Ok(Self { inner: padmm_data::parse_schema(text, &name).map_err(Failure::from)? })
    }

    /// Reads a `schema.toml` from a file.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        Ok(Self { inner: padmm_data::read_schema(&path).map_err(Failure::from)? })
    }

    /// From JSON with the keys of a `schema.toml`.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let draft: SchemaDraft = serde_json::from_str(text)
            .map_err(|e| Failure::general(format!("the schema is not understood: {e}")))?;
        Ok(Self { inner: draft.check().map_err(Failure::from)? })
    }

    /// As JSON with the keys of a `schema.toml`.
    fn to_json(&self) -> PyResult<String> {
        to_json(&self.inner)
    }

    /// Names of the encoded columns.
    #[getter]
    fn feature_names(&self) -> Vec<String> {
        self.inner.feature_space().names
    }

    /// Whether every column is a number.
    #[getter]
    fn is_matrix(&self) -> bool {
        self.inner.columns().iter().all(|c| matches!(c.kind, ColumnKind::Numeric { .. }))
    }

    /// Whether the label has two classes.
    #[getter]
    fn label_is_binary(&self) -> bool {
        self.inner.label().is_binary()
    }

    /// Encodes the columns of a table for `train`, `evaluate` or `predict`.
    fn encode(
        &self,
        py: Python<'_>,
        header: Vec<String>,
        columns: Vec<Column<'_>>,
        purpose: &str,
    ) -> PyResult<Encoded> {
        let purpose = match purpose {
            "train" => Purpose::Train,
            "evaluate" => Purpose::Evaluate,
            "predict" => Purpose::Predict,
            other => return Err(Failure::general(format!("'{other}' is not a purpose")).into()),
        };
        let n = common_length(&columns)?;
        let views: Vec<View<'_>> = columns.iter().map(Column::view).collect();
        // A wrong header is said once, whatever the number of threads.
        self.inner.encoder_for(purpose, &header).map_err(Failure::from)?;
        let part = |rows: Range<usize>| {
            let mut encoder = self.inner.encoder_for(purpose, &header)?;
            encoder.reserve(rows.len());
            for r in rows {
                encoder.push_cells(r as u64 + 2, views.iter().map(|view| view.cell(r)))?;
            }
            Ok::<_, SchemaError>(encoder.finish())
        };
        let mut whole: Option<padmm_core::schema::Encoded> = None;
        // Several parts at a time, then a look at Ctrl-C. The first error in the table's order is the one that is said.
        let at_a_time = PART * rayon::current_num_threads();
        for start in (0..n.max(1)).step_by(at_a_time) {
            py.check_signals()?;
            let end = n.min(start + at_a_time);
            let ranges: Vec<Range<usize>> =
                (start..end.max(start + 1)).step_by(PART).map(|from| from..end.min(from + PART)).collect();
            let parts = py.detach(|| ranges.into_par_iter().map(part).collect::<Vec<_>>());
            for part in parts {
                let part = part.map_err(Failure::from)?;
                match &mut whole {
                    Some(whole) => whole.append(part),
                    None => whole = Some(part),
                }
            }
        }
        let Some(inner) = whole else { return Err(Failure::general("the table has no parts").into()) };
        if purpose == Purpose::Train {
            inner.check_trainable().map_err(Failure::from)?;
        }
        Ok(Encoded { inner, schema: self.inner.clone() })
    }

    /// Encodes a CSV or Parquet file.
    fn encode_file(&self, py: Python<'_>, path: PathBuf, purpose: &str) -> PyResult<Encoded> {
        let purpose = if purpose == "predict" { Purpose::Predict } else { Purpose::Train };
        let inner =
            py.detach(|| padmm_data::encode_file(&path, &self.inner, purpose)).map_err(Failure::from)?;
        Ok(Encoded { inner, schema: self.inner.clone() })
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

/// Records as the mathematics sees them.
#[pyclass(module = "padmm._padmm", frozen)]
pub struct Encoded {
    pub inner: padmm_core::schema::Encoded,
    pub schema: padmm_core::schema::Schema,
}

#[pymethods]
impl Encoded {
    /// Number of records that were kept.
    fn __len__(&self) -> usize {
        self.inner.records.n_records()
    }

    /// Records that the missing-value rule left out.
    #[getter]
    fn n_dropped(&self) -> usize {
        self.inner.n_dropped
    }

    /// How many values of each numeric column were clipped.
    #[getter]
    fn n_clipped(&self) -> Vec<(String, usize)> {
        self.inner.n_clipped.clone()
    }

    /// Place of each kept record in the table, from 0.
    fn positions<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let place = |&row: &u64| row as i64 - 2;
        self.inner.row_numbers.iter().map(place).collect::<Vec<i64>>().into_pyarray(py)
    }

    /// The same records with sites: one code for each row of the table, and the sites' names.
    fn with_sites(&self, codes: Vec<u32>, names: Vec<String>) -> PyResult<Self> {
        let of_row =
            |&row: &u64| codes.get(row as usize - 2).copied().filter(|&c| (c as usize) < names.len());
        let of_record: Option<Vec<u32>> = self.inner.row_numbers.iter().map(of_row).collect();
        let of_record =
            of_record.ok_or_else(|| Failure::general("`sites` needs one site for each row of X"))?;
        let mut inner = self.inner.clone();
        inner.sites = Some(Sites { names, of_record });
        Ok(Self { inner, schema: self.schema.clone() })
    }
}

/// Everything about a shipped data set but its records, as JSON.
#[pyfunction]
pub(crate) fn shipped(name: &str) -> PyResult<String> {
    let set = shipped_set(name).map_err(Failure::from)?;
    to_json(&serde_json::json!({
        "name": set.name, "title": set.title, "description": set.description, "n_records": set.n_records,
        "licence": set.licence, "citation": set.citation, "schema_toml": set.schema_toml,
        "label": match set.schema().label() {
            Label::Binary { column, positive, negative } =>
                serde_json::json!({ "column": column, "positive": positive, "negative": negative }),
            Label::Numeric { column, .. } => serde_json::json!({ "column": column }),
        },
    }))
}

/// Header, codes and texts of each column.
type CodedTable<'py> = (Vec<String>, Vec<(Bound<'py, PyArray1<i32>>, Vec<String>)>);

/// The cells of a shipped data set as codes and texts, column by column, in the order in which texts appear.
#[pyfunction]
pub(crate) fn shipped_table<'py>(py: Python<'py>, name: &str) -> PyResult<CodedTable<'py>> {
    let set: &ShippedSet = shipped_set(name).map_err(Failure::from)?;
    let header = set.header();
    let mut columns: Vec<(Vec<i32>, Vec<String>)> = vec![(vec![], vec![]); header.len()];
    let mut places: Vec<std::collections::HashMap<String, i32>> = vec![Default::default(); header.len()];
    set.for_each(|_, cells, _| {
        for ((cell, (codes, texts)), places) in cells.iter().zip(&mut columns).zip(&mut places) {
            let code = places.get(*cell).copied().unwrap_or_else(|| {
                texts.push((*cell).to_owned());
                let code = texts.len() as i32 - 1;
                places.insert((*cell).to_owned(), code);
                code
            });
            codes.push(code);
        }
        Ok(())
    })
    .map_err(|problem| {
        Failure::from(padmm_data::DataError::Records { path: Path::new(name).into(), problem })
    })?;
    let columns = columns.into_iter().map(|(codes, texts)| (codes.into_pyarray(py), texts)).collect();
    Ok((header, columns))
}
