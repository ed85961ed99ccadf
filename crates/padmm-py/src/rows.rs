//! Matrices, dense and sparse, that are read in place.

use numpy::ndarray::{ArrayView1, ArrayView2};
use padmm_core::data::Dataset;
use padmm_core::schema::{MatrixEncoder, SchemaError};

use crate::errors::Failure;

/// A matrix whose rows can be read one by one.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// A dense matrix of any memory layout.
    Dense(ArrayView2<'a, f64>),
    /// A sparse matrix; rows are unpacked one by one.
    Csr(Csr<'a>),
}

/// A matrix in compressed rows. Indices within a row may be in any order; values at equal ones are added, as SciPy has it.
#[derive(Clone, Copy)]
pub(crate) struct Csr<'a> {
    data: ArrayView1<'a, f64>,
    indices: ArrayView1<'a, i64>,
    starts: ArrayView1<'a, i64>,
    n_columns: usize,
}

impl<'a> Csr<'a> {
    /// Checks that every row lies within the matrix.
    pub(crate) fn new(
        data: ArrayView1<'a, f64>,
        indices: ArrayView1<'a, i64>,
        starts: ArrayView1<'a, i64>,
        n_columns: usize,
    ) -> Result<Self, Failure> {
        let in_order = starts.iter().zip(starts.iter().skip(1)).all(|(a, b)| a <= b);
        let within = starts.first() == Some(&0) && starts.last() == i64::try_from(data.len()).ok().as_ref();
        let columns = indices.iter().all(|&j| usize::try_from(j).is_ok_and(|j| j < n_columns));
        if in_order && within && columns && indices.len() == data.len() {
            return Ok(Csr { data, indices, starts, n_columns });
        }
        Err(Failure::general(
            "the sparse matrix is damaged: its row starts or column indices do not fit its data",
        ))
    }
}

impl Rows<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Rows::Dense(values) => values.nrows(),
            Rows::Csr(csr) => csr.starts.len().saturating_sub(1),
        }
    }

    pub(crate) fn n_columns(&self) -> usize {
        match self {
            Rows::Dense(values) => values.ncols(),
            Rows::Csr(csr) => csr.n_columns,
        }
    }

    /// Encodes row `r` and adds it to `records`; `scratch` is room for a sparse row.
    pub(crate) fn push(
        &self,
        encoder: &mut MatrixEncoder<'_>,
        scratch: &mut Vec<f64>,
        r: usize,
        label: f64,
        records: &mut Dataset,
    ) -> Result<(), SchemaError> {
        // Rows are named as in a file, where the header is row 1.
        let row = r as u64 + 2;
        match self {
            Rows::Dense(values) => match values.row(r).as_slice() {
                Some(slice) => encoder.push(row, slice.iter().copied(), label, records),
                None => encoder.push(row, values.row(r).iter().copied(), label, records),
            },
            Rows::Csr(csr) => {
                scratch.clear();
                scratch.resize(csr.n_columns, 0.0);
                for k in csr.starts[r] as usize..csr.starts[r + 1] as usize {
                    scratch[csr.indices[k] as usize] += csr.data[k];
                }
                encoder.push(row, scratch.iter().copied(), label, records)
            }
        }
    }
}
