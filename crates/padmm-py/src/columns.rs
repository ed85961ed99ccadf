//! Columns of a frame: numbers, or codes of texts. Neither is copied before it is encoded.

use numpy::ndarray::ArrayView1;
use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use padmm_core::schema::Cell;
use pyo3::prelude::*;

use crate::errors::Failure;

/// One column as Python hands it over.
#[derive(FromPyObject)]
pub(crate) enum Column<'py> {
    /// Numbers; NaN is missing.
    Numbers(PyReadonlyArray1<'py, f64>),
    /// Codes, −1 for missing, and the texts that they stand for.
    Texts(PyReadonlyArray1<'py, i32>, Vec<String>),
}

impl Column<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Column::Numbers(values) => values.len(),
            Column::Texts(codes, _) => codes.len(),
        }
    }

    /// What can be read without Python.
    pub(crate) fn view(&self) -> View<'_> {
        match self {
            Column::Numbers(values) => View::Numbers(values.as_array()),
            Column::Texts(codes, texts) => View::Texts(codes.as_array(), texts),
        }
    }
}

/// A column that is read without the interpreter's lock.
pub(crate) enum View<'a> {
    /// Numbers; NaN is missing.
    Numbers(ArrayView1<'a, f64>),
    /// Codes and their texts; a code without a text is missing.
    Texts(ArrayView1<'a, i32>, &'a [String]),
}

impl View<'_> {
    /// The cell in record `r`. A code without a text is missing.
    pub(crate) fn cell(&self, r: usize) -> Cell<'_> {
        match self {
            View::Numbers(values) => Cell::Number(values[r]),
            View::Texts(codes, texts) => {
                let code = u32::try_from(codes[r]).ok();
                let coded = code.and_then(|code| Some(Cell::Coded(code, texts.get(code as usize)?)));
                coded.unwrap_or(Cell::Missing)
            }
        }
    }
}

/// Refuses columns of different lengths, and tells the one that they have.
pub(crate) fn common_length(columns: &[Column<'_>]) -> Result<usize, Failure> {
    let n = columns.first().map_or(0, Column::len);
    match columns.iter().find(|column| column.len() != n) {
        None => Ok(n),
        Some(other) => Err(Failure::general(format!(
            "the columns have different lengths: the first has {n} cells, another {}",
            other.len()
        ))),
    }
}
