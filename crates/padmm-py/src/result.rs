//! What a simulation leaves, for Python.

use numpy::{IntoPyArray, PyArray1};
use padmm_core::schema::Schema;
use padmm_sim::{Kept, PreparedSimulation, Record};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::model::Model;
use crate::to_json;
use crate::trace::Trace;

/// What the working thread hands over.
pub struct Finished {
    record: Record,
    model: Kept,
    /// The privacy report of each site, as JSON.
    sites: serde_json::Value,
    memory_bytes: usize,
}

impl Finished {
    /// Of a simulation that has run.
    pub fn new(simulation: &PreparedSimulation, record: Record, model: Kept) -> Self {
        let site =
            |(agent, site): (&padmm_core::calibration::SiteCalibration, &padmm_sim::record::SiteRecord)| {
                let report = agent.noise.as_ref().map(|noise| noise.report());
                serde_json::json!({
                    "site": site.name, "records": site.records, "degree": site.degree,
                    "statement": report.as_ref().map(|r| r.statement()), "privacy": report,
                })
            };
        let sites = simulation.calibration().agents.iter().zip(&record.setting.sites).map(site).collect();
        Self { record, model, sites, memory_bytes: simulation.memory_bytes() }
    }
}

/// What a finished simulation leaves: its record, the sites' guarantees and a model.
#[pyclass(module = "padmm._padmm", frozen)]
pub struct SimulationResult {
    finished: Finished,
    schema: Schema,
}

impl SimulationResult {
    /// With the schema that a model carries along.
    pub fn new(finished: Finished, schema: Schema) -> Self {
        Self { finished, schema }
    }
}

#[pymethods]
impl SimulationResult {
    /// The record, as the command writes it to `record.json`.
    fn record_json(&self) -> PyResult<String> {
        to_json(&self.finished.record)
    }

    /// The guarantee of each site, as JSON.
    fn sites_json(&self) -> PyResult<String> {
        to_json(&self.finished.sites)
    }

    /// Every run and round; or those of the run without noise.
    #[pyo3(signature = (reference = false))]
    fn trace(&self, reference: bool) -> PyResult<Trace> {
        Trace::of(&self.finished.record, reference)
    }

    /// The traces as the command writes them to `trace.csv`.
    fn trace_csv(&self) -> String {
        self.finished.record.trace_csv()
    }

    /// Why the kept model is no better than the same answer for everybody; none if it is better.
    fn worthless(&self) -> Option<String> {
        self.finished.record.worthless()
    }

    /// How far the kept model's loss is above the pooled optimum's, as a part of it.
    #[getter]
    fn excess_loss(&self) -> Option<f64> {
        self.finished.record.excess_loss()
    }

    /// The same in the objective, which nothing is below.
    #[getter]
    fn excess_objective(&self) -> Option<f64> {
        self.finished.record.excess_objective()
    }

    /// The first site's kept model of the first run.
    fn coefficients<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.finished.model.values.clone().into_pyarray(py)
    }

    /// Wall time of the runs, without reading and preparing.
    #[getter]
    fn seconds(&self) -> f64 {
        self.finished.record.seconds
    }

    /// Bytes of the encoded records of all sites.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.finished.memory_bytes
    }

    /// The model, as the command writes it to `model.json`.
    fn model(&self) -> PyResult<Model> {
        let Finished { record, model, .. } = &self.finished;
        Ok(Model { inner: model.model(record, self.schema.clone()).map_err(Failure::from)? })
    }
}
