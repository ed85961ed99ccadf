//! Rows of numbers that a program has in memory.

use std::path::PathBuf;

use padmm_core::schema::{ColumnDraft, LabelDraft, Purpose, Scalar, SchemaDraft, SchemaError};

use crate::{DataError, Loaded};

/// The label's column in records that were made from a matrix.
const LABEL: &str = "label";

impl Loaded {
    /// Rows of numbers with a yes or no for each. Every column has a name and bounds, which must be public: values outside are
    /// clipped, and nothing is scaled by what the rows hold.
    ///
    /// ```
    /// use padmm_data::Loaded;
    ///
    /// let columns = [("age", 0.0, 120.0), ("dose", 0.0, 10.0)];
    /// let rows = [[40.0, 2.5], [71.0, 0.0], [55.0, 9.0]];
    /// let records = Loaded::matrix("trial", &columns, rows, [false, true, true])?;
    /// assert_eq!(records.encoded.records.n_records(), 3);
    /// # Ok::<(), padmm_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// Bounds that are none, a row of another length, a number that is not finite, labels that are too few or all the same.
    pub fn matrix<R: AsRef<[f64]>>(
        name: &str,
        columns: &[(&str, f64, f64)],
        rows: impl IntoIterator<Item = R>,
        labels: impl IntoIterator<Item = bool>,
    ) -> Result<Self, DataError> {
        let wrong = |problem: SchemaError| DataError::Records { path: PathBuf::from(name), problem };
        let column = |&(name, lower, upper): &(&str, f64, f64)| ColumnDraft {
            name: name.to_owned(),
            kind: Some("numeric".to_owned()),
            lower: Some(lower),
            upper: Some(upper),
            ..ColumnDraft::default()
        };
        let class = |text: &str| vec![Scalar::Text(text.to_owned())];
        let label = LabelDraft {
            column: LABEL.to_owned(),
            kind: Some("binary".to_owned()),
            positive: class("true"),
            negative: class("false"),
            ..LabelDraft::default()
        };
        let blank = SchemaDraft { label, columns: columns.iter().map(column).collect(), ..blank(name)? };
        let schema = blank.check().map_err(|error| DataError::SchemaFile {
            path: PathBuf::from(name),
            problem: error.to_string(),
        })?;
        let mut header: Vec<String> = columns.iter().map(|column| column.0.to_owned()).collect();
        header.push(LABEL.to_owned());
        let mut encoder = schema.encoder_for(Purpose::Train, &header).map_err(wrong)?;
        let mut labels = labels.into_iter();
        for (row, values) in (2..).zip(rows) {
            let mut cells: Vec<String> = values.as_ref().iter().map(f64::to_string).collect();
            cells.extend(labels.next().map(|label| label.to_string()));
            encoder.push_record(row, cells.iter().map(|cell| Some(cell.as_str()))).map_err(wrong)?;
        }
        let encoded = encoder.finish();
        encoded.check_trainable().map_err(wrong)?;
        Ok(Self::new(name, schema, encoded))
    }
}

/// A draft with every default but an intercept, which models of a matrix have too.
fn blank(name: &str) -> Result<SchemaDraft, DataError> {
    toml::from_str("intercept = true").map_err(|error: toml::de::Error| DataError::SchemaFile {
        path: PathBuf::from(name),
        problem: error.message().to_owned(),
    })
}
