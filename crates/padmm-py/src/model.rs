//! Models that sites keep.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use padmm_core::model::ModelError;
use padmm_core::own::{OwnInputs, fit};
use padmm_core::schema::Label;
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::rows::{Csr, Rows};
use crate::schema::{Encoded, Schema};

/// Rows whose margins are computed at a time, so that prediction needs no second copy of a matrix.
const CHUNK: usize = 4096;

/// A model with the schema that its coefficients mean something with.
#[pyclass(module = "padmm._padmm", frozen)]
pub struct Model {
    pub inner: padmm_core::model::Model,
}

impl Model {
    fn margins_of<'py>(&self, py: Python<'py>, rows: Rows<'_>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut encoder = self.inner.schema().matrix_encoder().map_err(Failure::from)?;
        if rows.n_columns() != encoder.n_columns() {
            let text = format!(
                "X has {} features, but the model is expecting {}",
                rows.n_columns(),
                encoder.n_columns()
            );
            return Err(Failure::general(text).into());
        }
        let (mut margins, mut scratch) = (Vec::with_capacity(rows.len()), vec![]);
        for start in (0..rows.len()).step_by(CHUNK) {
            py.check_signals()?;
            py.detach(|| {
                let mut records = encoder.empty();
                let end = rows.len().min(start + CHUNK);
                records.reserve(end - start);
                (start..end).try_for_each(|r| rows.push(&mut encoder, &mut scratch, r, 0.0, &mut records))?;
                margins.extend(self.inner.margins(&records));
                Ok(())
            })
            .map_err(|e: padmm_core::schema::SchemaError| Failure::from(e))?;
        }
        Ok(margins.into_pyarray(py))
    }
}

#[pymethods]
impl Model {
    /// Reads a `model.json` or an `own-model.json` from a file: whoever has it in Python predicts with it.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        Ok(Self { inner: padmm_data::read_model_inside(&path).map_err(Failure::from)? })
    }

    /// From the text of such a file.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        Ok(Self { inner: padmm_core::model::Model::from_json_inside(text).map_err(Failure::from)? })
    }

    /// Whether it is a site's own model, which must not leave the site.
    #[getter]
    fn is_own(&self) -> bool {
        self.inner.is_own()
    }

    /// The site's own model from this joint one and the site's records, which the model's schema has encoded.
    fn fit_own(&self, py: Python<'_>, encoded: &Encoded) -> PyResult<Self> {
        if self.inner.is_own() {
            return Err(Failure::from(ModelError::Own).into());
        }
        let Encoded { inner: encoded, .. } = encoded;
        if encoded.records.n_features() != self.inner.values().len() {
            return Err(Failure::general("the records are encoded by another schema than the model's").into());
        }
        let inputs = OwnInputs {
            records: &encoded.records,
            space: &encoded.features,
            loss: self.inner.loss(),
            joint: self.inner.values(),
        };
        let found = py.detach(|| fit(&inputs, true));
        Ok(Self { inner: self.inner.own(&found).map_err(Failure::from)? })
    }

    /// The text of a `model.json`.
    fn to_json(&self) -> String {
        self.inner.to_json()
    }

    /// Writes a `model.json`, whole or not at all.
    fn save(&self, path: PathBuf, force: bool) -> PyResult<()> {
        Ok(padmm_data::write_model(&path, &self.inner, force).map_err(Failure::from)?)
    }

    /// What records must look like.
    #[getter]
    fn schema(&self) -> Schema {
        Schema { inner: self.inner.schema().clone() }
    }

    /// The loss as settings write it, its width included.
    #[getter]
    fn loss(&self) -> String {
        self.inner.loss().to_string()
    }

    /// Coefficients in the order of the encoded columns.
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.values().to_vec().into_pyarray(py)
    }

    /// Standard deviation that privacy noise has put on each coefficient, and the covariance of every two; none where the algorithm
    /// cannot tell.
    #[expect(clippy::type_complexity, reason = "a vector and a matrix, as Python takes them")]
    fn privacy_noise(&self) -> Option<(Vec<f64>, Option<Vec<Vec<f64>>>)> {
        let noise = self.inner.privacy_noise()?;
        Some((noise.standard_deviations.clone(), noise.covariance.clone()))
    }

    /// The texts that the two classes are predicted as, negative first; none for regression.
    #[getter]
    fn classes(&self) -> Option<(String, String)> {
        match self.inner.schema().label() {
            Label::Binary { positive, negative, .. } => Some((negative[0].clone(), positive[0].clone())),
            Label::Numeric { .. } => None,
        }
    }

    /// Margins of records that the model's own schema has encoded.
    fn margins_encoded<'py>(
        &self,
        py: Python<'py>,
        encoded: &Encoded,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        if encoded.inner.records.n_features() != self.inner.values().len() {
            return Err(Failure::general("the records are encoded by another schema than the model's").into());
        }
        Ok(py.detach(|| self.inner.margins(&encoded.inner.records)).into_pyarray(py))
    }

    /// Margins of the rows of a dense matrix.
    fn margins_dense<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.margins_of(py, Rows::Dense(values.as_array()))
    }

    /// Margins of the rows of a matrix in compressed rows.
    fn margins_csr<'py>(
        &self,
        py: Python<'py>,
        data: PyReadonlyArray1<'_, f64>,
        indices: PyReadonlyArray1<'_, i64>,
        starts: PyReadonlyArray1<'_, i64>,
        n_columns: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let csr = Csr::new(data.as_array(), indices.as_array(), starts.as_array(), n_columns)?;
        self.margins_of(py, Rows::Csr(csr))
    }

    /// Probabilities of the positive class at margins; none unless the loss is logistic.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        margins: PyReadonlyArray1<'_, f64>,
    ) -> Option<Bound<'py, PyArray1<f64>>> {
        let of = |&margin: &f64| self.inner.probability(margin);
        let all: Option<Vec<f64>> = margins.as_array().iter().map(of).collect();
        all.map(|all| all.into_pyarray(py))
    }

    /// Predicted numbers in the label's own unit; none for classification.
    fn numbers<'py>(
        &self,
        py: Python<'py>,
        margins: PyReadonlyArray1<'_, f64>,
    ) -> Option<Bound<'py, PyArray1<f64>>> {
        let of = |&margin: &f64| self.inner.predicted_number(margin);
        let all: Option<Vec<f64>> = margins.as_array().iter().map(of).collect();
        all.map(|all| all.into_pyarray(py))
    }
}
