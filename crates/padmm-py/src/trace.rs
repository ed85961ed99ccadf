//! Traces as Arrow tables, which pandas and polars read without copying.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use padmm_sim::Record;
use padmm_sim::metrics::RoundMetrics;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyCapsule};

/// One line for each run and round.
///
/// It is an Arrow stream (`__arrow_c_stream__`): `polars.DataFrame(trace)`, `pyarrow.table(trace)` and
/// `pandas.DataFrame.from_arrow(trace)` read it in place.
#[pyclass(module = "padmm._padmm", frozen)]
pub struct Trace {
    batch: RecordBatch,
}

type Number = fn(&RoundMetrics) -> Option<f64>;

/// The columns of `trace.csv`, in its order.
const COLUMNS: [(&str, bool, Number); 11] = [
    ("average_loss", true, |m| m.average_loss),
    ("pooled_loss", true, |m| m.pooled_loss),
    ("smoothed_loss", true, |m| m.smoothed_loss),
    ("consensus_error", false, |m| Some(m.consensus_error)),
    ("distance_to_optimum", true, |m| m.distance_to_optimum),
    ("accuracy", true, |m| m.accuracy),
    ("auc", true, |m| m.auc),
    ("rho", false, |m| Some(m.rho)),
    ("rho_spent", false, |m| Some(m.rho_spent)),
    ("epsilon_exact", true, |m| m.epsilon_exact),
    ("epsilon_paper", true, |m| m.epsilon_paper),
];

/// The columns of a trace as plain lists: names of the algorithm, runs, rounds, numbers.
type Parts = (Vec<String>, Vec<u32>, Vec<u32>, Vec<Vec<Option<f64>>>);

impl Trace {
    /// The runs of a record, or the run without noise beside them.
    pub fn of(record: &Record, reference: bool) -> PyResult<Self> {
        let runs: Vec<_> =
            if reference { record.reference.iter().collect() } else { record.runs.iter().collect() };
        let lines: Vec<(u32, &RoundMetrics)> =
            runs.iter().flat_map(|run| run.trace.iter().map(|m| (run.run, m))).collect();
        let algorithm = if reference { "admm" } else { record.setting.plan.settings().algorithm.name() };
        Self::from_parts(
            lines.iter().map(|_| algorithm.to_owned()).collect(),
            lines.iter().map(|l| l.0).collect(),
            lines.iter().map(|l| l.1.round).collect(),
            COLUMNS.iter().map(|(.., number)| lines.iter().map(|l| number(l.1)).collect()).collect(),
        )
    }
}

fn wrong(error: arrow_schema::ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl Trace {
    /// From plain lists; what a pickle is read by.
    #[staticmethod]
    fn from_parts(
        algorithms: Vec<String>,
        runs: Vec<u32>,
        rounds: Vec<u32>,
        numbers: Vec<Vec<Option<f64>>>,
    ) -> PyResult<Self> {
        let mut fields = vec![
            Field::new("algorithm", DataType::Utf8, false),
            Field::new("run", DataType::UInt32, false),
            Field::new("round", DataType::UInt32, false),
        ];
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(algorithms)),
            Arc::new(UInt32Array::from(runs)),
            Arc::new(UInt32Array::from(rounds)),
        ];
        for ((name, optional, _), values) in COLUMNS.iter().zip(numbers) {
            fields.push(Field::new(*name, DataType::Float64, *optional));
            arrays.push(Arc::new(Float64Array::from(values)));
        }
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        Ok(Self { batch: RecordBatch::try_new(schema, arrays).map_err(wrong)? })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let names: Vec<String> = match self.batch.column(0).as_any().downcast_ref::<StringArray>() {
            Some(names) => names.iter().flatten().map(str::to_owned).collect(),
            None => vec![],
        };
        let counts = |name: &str| -> PyResult<Vec<u32>> {
            Ok(self.column(name)?.into_iter().flatten().map(|v| v as u32).collect())
        };
        let numbers = COLUMNS.iter().map(|(name, ..)| self.column(name)).collect::<PyResult<_>>()?;
        let restore = py.get_type::<Self>().getattr("from_parts")?;
        Ok((restore, (names, counts("run")?, counts("round")?, numbers)))
    }

    /// The trace as a pandas frame; pandas must be installed.
    fn to_pandas<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("padmm._simulate")?.call_method1("trace_to_pandas", (slf,))
    }

    /// The trace as a polars frame; polars must be installed.
    fn to_polars<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("padmm._simulate")?.call_method1("trace_to_polars", (slf,))
    }

    /// The Arrow PyCapsule interface. A requested schema is not honoured, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = std::iter::once(Ok(self.batch.clone()));
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns, in the order of `trace.csv` after the algorithm.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|f| f.name().clone()).collect()
    }

    /// A column as a list; `None` where there is no value.
    fn column(&self, name: &str) -> PyResult<Vec<Option<f64>>> {
        let missing =
            || crate::errors::Failure::general(format!("the trace has no column of numbers named '{name}'"));
        let array = self.batch.column_by_name(name).ok_or_else(missing)?;
        if let Some(numbers) = array.as_any().downcast_ref::<Float64Array>() {
            return Ok(numbers.iter().collect());
        }
        let counts = array.as_any().downcast_ref::<UInt32Array>().ok_or_else(missing)?;
        Ok(counts.iter().map(|v| v.map(f64::from)).collect())
    }

    fn __repr__(&self) -> String {
        format!("Trace({} lines: {})", self.batch.num_rows(), self.columns().join(", "))
    }
}
