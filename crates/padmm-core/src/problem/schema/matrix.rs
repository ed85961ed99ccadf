//! Rows of numbers that are already a matrix, without a header and without text.
//!
//! The rules are those of [`Encoder`](super::Encoder) for numeric columns. What differs is that the caller decides which
//! set of records a row goes to, so that a large matrix is copied once, straight to the sites.

use super::encode::to_unit;
use super::look::NumberLook;
use super::{ColumnKind, RangeRule, Schema, SchemaError};
use crate::data::Dataset;

/// Encodes rows of numbers by a schema whose columns are all numeric.
pub struct MatrixEncoder<'s> {
    schema: &'s Schema,
    /// Bounds of each column, in the matrix's order.
    bounds: Vec<(f64, f64)>,
    hot: Vec<u32>,
    numeric: Vec<f64>,
}

impl Schema {
    /// An encoder for rows of numbers in the order of the schema's columns.
    pub fn matrix_encoder(&self) -> Result<MatrixEncoder<'_>, SchemaError> {
        let bound = |column: &super::Column| match column.kind {
            ColumnKind::Numeric { lower, upper, .. } => Ok((lower, upper)),
            _ => Err(SchemaError::Column {
                column: column.name.clone(),
                problem: "is not numeric, and a matrix holds numbers only; use a table with named columns"
                    .to_owned(),
            }),
        };
        let bounds: Vec<(f64, f64)> = self.columns.iter().map(bound).collect::<Result<_, _>>()?;
        let hot = self.feature_space().intercept.into_iter().map(|column| column as u32).collect();
        Ok(MatrixEncoder { schema: self, numeric: vec![0.0; bounds.len()], bounds, hot })
    }
}

impl MatrixEncoder<'_> {
    /// An empty set of records of this encoder's shape.
    pub fn empty(&self) -> Dataset {
        let n_features = self.numeric.len() + self.hot.len();
        Dataset::new(n_features, self.numeric.len(), self.hot.len(), self.schema.norm_bound)
    }

    /// Number of columns that a row has.
    pub fn n_columns(&self) -> usize {
        self.bounds.len()
    }

    /// Encodes one row and adds it to `records`. `row` counts as in a file, where the header is row 1.
    ///
    /// A missing value is an error: a matrix has no rule for it.
    pub fn push(
        &mut self,
        row: u64,
        values: impl IntoIterator<Item = f64>,
        label: f64,
        records: &mut Dataset,
    ) -> Result<(), SchemaError> {
        let mut n_values = 0;
        for value in values {
            if let Some(kept) = self.numeric.get_mut(n_values) {
                *kept = value;
            }
            n_values += 1;
        }
        if n_values != self.bounds.len() {
            return Err(SchemaError::Ragged { row, expected: self.bounds.len(), found: n_values });
        }
        let name = |j: usize| self.schema.columns[j].name.clone();
        if let Some(j) = self.numeric.iter().position(|value| !value.is_finite()) {
            return Err(SchemaError::NotANumber { row, column: name(j), look: NumberLook::Unclear });
        }
        if self.schema.on_out_of_range == RangeRule::Error {
            let mut bounded = self.numeric.iter().zip(&self.bounds);
            if let Some(j) = bounded.position(|(value, (lower, upper))| !(lower..=upper).contains(&value)) {
                return Err(SchemaError::OutOfRange { row, column: name(j) });
            }
        }
        for (value, (lower, upper)) in self.numeric.iter_mut().zip(&self.bounds) {
            *value = to_unit(*value, *lower, *upper);
        }
        records.push(&self.numeric, &self.hot, label);
        Ok(())
    }
}
