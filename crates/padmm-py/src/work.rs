//! Simulations: what they are about is settled here, then a thread computes while the interpreter's lock is free.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use padmm_core::algorithm::AlgorithmKind;
use padmm_core::calibration::{Calibration, NetworkFacts};
use padmm_core::data::Dataset;
use padmm_core::graph::GraphSpec;
use padmm_core::plan::AUTO;
use padmm_core::schema::{SchemaError, Sites as OfRecords};
use padmm_core::settings::Setting;
use padmm_data::{Source, load};
use padmm_sim::split::{Facts, Sites, assign};
use padmm_sim::{PreparedSimulation, Progress, Settings, SimError, SimulationPlan, simulation_settings};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::errors::Failure;
use crate::result::{Finished, SimulationResult};
use crate::rows::{Csr, Rows};
use crate::schema::{Encoded, Schema};
use crate::to_json;

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// Rows that a core encodes at a time: few enough that they are still in its cache when they are added to the others.
const CHUNK: usize = 1 << 10;

enum Said {
    Round(Progress),
    Done(Box<Result<Finished, SimError>>),
}

fn read_settings(json: &str) -> Result<Settings, Failure> {
    serde_json::from_str(json).map_err(|e| Failure::general(format!("the plan is not understood: {e}")))
}

/// Checks settings; gives the plan with its defaults, and the graph, as JSON.
#[pyfunction]
pub(crate) fn check_settings(json: &str) -> PyResult<String> {
    let settings = read_settings(json)?;
    let setting = SimulationPlan::from_settings(&settings, "", false, false).map_err(Failure::from)?;
    let mut checked = serde_json::json!({
        "plan": setting.plan, "graph": setting.graph, "seed": setting.seed, "runs": setting.runs,
    });
    // What is picked once the sites are known.
    let open = &setting.plan.settings().open;
    if open.algorithm {
        checked["plan"]["algorithm"] = AUTO.into();
        checked["plan"]["rounds"] = open.rounds.unwrap_or(0).into();
    }
    if open.weights {
        checked["plan"]["weights"] = AUTO.into();
    }
    to_json(&checked)
}

/// The settings of a `plan.toml` as JSON; keys that say where the records are come apart.
#[pyfunction]
pub(crate) fn settings_from_toml(text: &str) -> PyResult<String> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        Failure::general(format!("the plan is not understood: {}", e.message()))
    })?;
    to_json(&table)
}

/// The declared settings of a plan, in the order of listings, as JSON.
#[pyfunction]
pub(crate) fn settings() -> PyResult<String> {
    let describe = |setting: &Setting| {
        serde_json::json!({
            "name": setting.name.replace('-', "_"), "group": setting.group, "kind": setting.kind, "help": setting.help,
        })
    };
    to_json(&simulation_settings().iter().map(describe).collect::<Vec<_>>())
}

/// What each algorithm is, as JSON.
#[pyfunction]
pub(crate) fn algorithms() -> PyResult<String> {
    let describe = |kind: AlgorithmKind| {
        let about = kind.describe();
        serde_json::json!({
            "name": kind.name(), "title": kind.title(), "reference": about.reference, "summary": about.summary,
            "is_private": kind.is_private(), "graph_needed": kind.graph_needed(),
            "settings": about.settings().map(|name| name.replace('-', "_")).collect::<Vec<_>>(),
        })
    };
    to_json(&padmm_baselines::ALL.map(describe))
}

/// What follows from a plan and public facts before any record is touched, as JSON.
#[pyfunction]
pub(crate) fn calibration(json: &str, schema: &Schema, n_records: Vec<usize>) -> PyResult<String> {
    let settings = read_settings(json)?;
    let setting = SimulationPlan::from_settings(&settings, "", false, false).map_err(Failure::from)?;
    if n_records.is_empty() || n_records.contains(&0) {
        return Err(Failure::general("`n_records` needs one site at least, and a record at each").into());
    }
    let names: Vec<String> = (1..=n_records.len()).map(|i| i.to_string()).collect();
    let graph = setting.graph.build(n_records.len(), &names, setting.seed).map_err(Failure::from)?;
    let space = schema.inner.feature_space();
    let norm_bound = schema.inner.norm_bound();
    let network = NetworkFacts { graph: &graph, n_records: &n_records, space: &space, norm_bound };
    let setting = setting.for_label(schema.inner.label().bounds()).map_err(Failure::from)?;
    let plan = setting.plan.for_network(&network).map_err(Failure::from)?;
    let calibration = Calibration::derive(&plan, &network).map_err(Failure::from)?;
    let site = |agent: &padmm_core::calibration::SiteCalibration| {
        serde_json::json!({
            "records": agent.n_records, "degree": agent.degree, "modulus": agent.modulus,
            "tolerance": agent.tolerance, "privacy": agent.noise.as_ref().map(|n| n.report()),
            "statement": agent.noise.as_ref().map(|n| n.report().statement()),
        })
    };
    to_json(&serde_json::json!({
        "penalty": calibration.penalty, "averaging_turns": calibration.averaging_turns, "features": space.n_features(),
        "sites": calibration.agents.iter().map(site).collect::<Vec<_>>(),
    }))
}

/// How a run is watched and which threads it has.
#[derive(FromPyObject)]
pub(crate) struct Manner<'py> {
    /// Called with (done, total, average loss, ε) after every round.
    #[pyo3(item)]
    progress: Option<Bound<'py, PyAny>>,
    /// Threads; all cores if it is not given.
    #[pyo3(item)]
    threads: Option<usize>,
    /// Whether to find the pooled optimum, and the losses of every round.
    #[pyo3(item)]
    measures: bool,
    /// Whether to run the network without noise beside it.
    #[pyo3(item)]
    reference: bool,
    /// Whether accuracy and AUC are computed in every round.
    #[pyo3(item)]
    rank_rounds: bool,
}

/// Simulates a shipped set (`dataset`), a file (`data` with `schema_file`) or encoded records.
#[pyfunction]
#[pyo3(signature = (json, manner, dataset = None, data = None, schema_file = None, encoded = None, name = "data"))]
#[expect(clippy::too_many_arguments, reason = "one for each way in which records come")]
pub(crate) fn simulate(
    py: Python<'_>,
    json: &str,
    manner: Manner<'_>,
    dataset: Option<String>,
    data: Option<PathBuf>,
    schema_file: Option<PathBuf>,
    encoded: Option<&Encoded>,
    name: &str,
) -> PyResult<SimulationResult> {
    let settings = read_settings(json)?;
    // Settings are checked before the records are read.
    settings.draft(&padmm_baselines::ALL).map_err(Failure::from)?.check().map_err(Failure::from)?;
    let (name, schema, encoded) = match (encoded, data, schema_file) {
        (Some(encoded), ..) => (name.to_owned(), encoded.schema.clone(), encoded.inner.clone()),
        (None, data, schema) => {
            let source = match (data, schema) {
                (Some(path), Some(schema)) => Source::File { path, schema },
                _ => Source::Shipped(dataset.unwrap_or_else(|| "adult".to_owned())),
            };
            let loaded = py.detach(|| load(&source)).map_err(Failure::from)?;
            (loaded.name, loaded.schema, loaded.encoded)
        }
    };
    let mut setting =
        SimulationPlan::from_settings(&settings, &name, encoded.sites.is_some(), manner.reference)
            .map_err(Failure::from)?;
    (setting.measures, setting.rank_rounds) = (manner.measures, manner.rank_rounds);
    work(py, manner, schema, move || PreparedSimulation::prepare(setting, encoded))
}

/// The sites of the rows of a matrix: a name each, and a code for each row.
type RowSites = (Vec<String>, Vec<u32>);

/// Fits on a dense matrix, whose rows go straight to their sites.
#[pyfunction]
#[pyo3(signature = (json, manner, schema, values, labels, sites = None))]
pub(crate) fn fit_dense(
    py: Python<'_>,
    json: &str,
    manner: Manner<'_>,
    schema: &Schema,
    values: PyReadonlyArray2<'_, f64>,
    labels: PyReadonlyArray1<'_, f64>,
    sites: Option<RowSites>,
) -> PyResult<SimulationResult> {
    fit(py, json, manner, schema, Rows::Dense(values.as_array()), labels, sites)
}

/// Fits on a matrix in compressed rows.
#[pyfunction]
#[pyo3(signature = (json, manner, schema, matrix, n_columns, labels, sites = None))]
#[expect(clippy::too_many_arguments, reason = "a matrix in compressed rows has four parts")]
pub(crate) fn fit_csr(
    py: Python<'_>,
    json: &str,
    manner: Manner<'_>,
    schema: &Schema,
    matrix: (PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, i64>, PyReadonlyArray1<'_, i64>),
    n_columns: usize,
    labels: PyReadonlyArray1<'_, f64>,
    sites: Option<RowSites>,
) -> PyResult<SimulationResult> {
    let (data, indices, starts) = &matrix;
    let csr = Csr::new(data.as_array(), indices.as_array(), starts.as_array(), n_columns)?;
    fit(py, json, manner, schema, Rows::Csr(csr), labels, sites)
}

fn fit(
    py: Python<'_>,
    json: &str,
    manner: Manner<'_>,
    schema: &Schema,
    rows: Rows<'_>,
    labels: PyReadonlyArray1<'_, f64>,
    sites: Option<RowSites>,
) -> PyResult<SimulationResult> {
    let labels: Vec<f64> = labels.as_array().to_vec();
    if labels.len() != rows.len() {
        let text = format!("X has {} rows and y has {}", rows.len(), labels.len());
        return Err(Failure::general(text).into());
    }
    if labels.iter().any(|z| !z.is_finite()) {
        return Err(Failure::general("y contains NaN or infinity").into());
    }
    let sites = sites.map(|(names, of_record)| OfRecords { names, of_record });
    let known = |s: &OfRecords| {
        s.of_record.len() == labels.len() && s.of_record.iter().all(|&c| (c as usize) < s.names.len())
    };
    if sites.as_ref().is_some_and(|s| !known(s)) {
        return Err(Failure::general("`sites` needs one site for each row of X").into());
    }
    let mut setting =
        SimulationPlan::from_settings(&read_settings(json)?, "X", sites.is_some(), manner.reference)
            .map_err(Failure::from)?;
    (setting.measures, setting.rank_rounds) = (manner.measures, manner.rank_rounds);
    let setting = setting.for_label(schema.inner.label().bounds()).map_err(Failure::from)?;
    if setting.runs == 0 {
        return Err(Failure::from(SimError::NoRuns).into());
    }
    let facts = Facts { labels: &labels, sites: sites.as_ref(), official_test: None };
    let placed = assign(facts, setting.n_agents, setting.split.clone(), setting.holdout, setting.seed)
        .map_err(Failure::from)?;
    let graph = graph_of(&setting, &placed.names)?;
    let mut collect = |of_site: &Vec<usize>| collect(py, schema, rows, &labels, of_site);
    let dealt = Sites {
        shards: placed.shards.iter().map(&mut collect).collect::<PyResult<_>>()?,
        test: collect(&placed.test)?,
        site_tests: placed.site_tests.iter().map(&mut collect).collect::<PyResult<_>>()?,
        names: placed.names,
    };
    let (schema, space) = (schema.inner.clone(), schema.inner.feature_space());
    work(py, manner, schema, move || PreparedSimulation::of_sites(setting, dealt, graph, space, 0))
}

fn graph_of(setting: &SimulationPlan, names: &[String]) -> Result<padmm_core::graph::Graph, Failure> {
    let graph: &GraphSpec = &setting.graph;
    Ok(graph.build(names.len(), names, setting.seed)?)
}

/// Encodes the rows of one site, on all cores.
fn collect(
    py: Python<'_>,
    schema: &Schema,
    rows: Rows<'_>,
    labels: &[f64],
    of_site: &[usize],
) -> PyResult<Dataset> {
    let encoder = schema.inner.matrix_encoder().map_err(Failure::from)?;
    if rows.n_columns() != encoder.n_columns() {
        let text = format!("X has {} columns, but {} are expected", rows.n_columns(), encoder.n_columns());
        return Err(Failure::general(text).into());
    }
    let part = |chunk: &[usize]| {
        let mut encoder = schema.inner.matrix_encoder()?;
        let (mut part, mut scratch) = (encoder.empty(), vec![]);
        part.reserve(chunk.len());
        let push = |&r: &usize| rows.push(&mut encoder, &mut scratch, r, labels[r], &mut part);
        chunk.iter().try_for_each(push)?;
        Ok::<_, SchemaError>(part)
    };
    let mut records = encoder.empty();
    records.reserve(of_site.len());
    // Several parts at a time, then a look at Ctrl-C. The first error in the order of the rows is the one that is said.
    for chunks in of_site.chunks(CHUNK * rayon::current_num_threads()) {
        py.check_signals()?;
        let parts = py.detach(|| chunks.par_chunks(CHUNK).map(part).collect::<Vec<_>>());
        for part in parts {
            records.append(&part.map_err(Failure::from)?);
        }
    }
    Ok(records)
}

/// Runs a simulation on a thread of its own, and waits for it as a Python program should: with the lock free, with an eye on
/// Ctrl-C, and with progress told from the thread that asked for it.
fn work(
    py: Python<'_>,
    manner: Manner<'_>,
    schema: padmm_core::schema::Schema,
    prepare: impl FnOnce() -> Result<PreparedSimulation, SimError> + Send + 'static,
) -> PyResult<SimulationResult> {
    let pool = match manner.threads {
        Some(0) => return Err(Failure::general("threads must be at least 1").into()),
        Some(n) => Some(
            rayon::ThreadPoolBuilder::new()
                .num_threads(n)
                .build()
                .map_err(|e| PyRuntimeError::new_err(format!("the threads cannot be started: {e}")))?,
        ),
        None => None,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (say, hear): (Sender<Said>, Receiver<Said>) = channel();
    let (wants_progress, stop_there) = (manner.progress.is_some(), Arc::clone(&stop));
    std::thread::spawn(move || {
        let job = || {
            let simulation = prepare()?;
            let watch = |progress: Progress| {
                if wants_progress {
                    // Nobody listens after Ctrl-C, and then the run stops anyway.
                    let _ = say.send(Said::Round(progress));
                }
                !stop_there.load(Ordering::Relaxed)
            };
            let (record, model) = simulation.run_all(&watch)?;
            Ok(Finished::new(&simulation, record, model))
        };
        let result = match &pool {
            Some(pool) => pool.install(job),
            None => job(),
        };
        let _ = say.send(Said::Done(Box::new(result)));
    });
    let given_up = |problem| {
        // The thread stops after its round; whoever pressed Ctrl-C does not wait for it.
        stop.store(true, Ordering::Relaxed);
        problem
    };
    // A receiver cannot be shared, but it can be lent to the one closure that waits.
    let mut hear = hear;
    loop {
        let (heard, back) = py.detach(move || (hear.recv_timeout(LOOK), hear));
        hear = back;
        match heard {
            Ok(Said::Done(result)) => {
                let finished = result.map_err(Failure::from)?;
                return Ok(SimulationResult::new(finished, schema));
            }
            Ok(Said::Round(p)) => {
                if let Some(progress) = &manner.progress {
                    let told = progress.call1((p.done, p.total, p.average_loss, p.epsilon));
                    told.map_err(given_up)?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "the simulation stopped unexpectedly; its message is above",
                ));
            }
        }
        py.check_signals().map_err(given_up)?;
    }
}
