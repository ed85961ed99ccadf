//! Graphs and their spectra.

use padmm_core::graph::{Graph, GraphSpec, Spectrum, default_names, gossip_contraction};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::to_json;

/// The edges of the graph that a text stands for, over sites of these names (or `1` to `n`).
#[pyfunction]
#[pyo3(signature = (spec_json, n_agents, names = vec![], seed = 1))]
pub(crate) fn build_graph(
    spec_json: &str,
    n_agents: usize,
    names: Vec<String>,
    seed: u64,
) -> PyResult<Vec<(usize, usize)>> {
    let spec: GraphSpec = serde_json::from_str(spec_json).map_err(|e| Failure::general(without_place(&e)))?;
    let graph = spec.build(n_agents, &names, seed).map_err(Failure::from)?;
    Ok(graph.edges().collect())
}

/// A JSON error names line and column of a text that nobody wrote.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(words, _)| words.to_owned())
}

/// The spectrum of a graph, how fast gossip contracts on it, and degrees, as JSON.
#[pyfunction]
pub(crate) fn graph_spectrum(n_agents: usize, edges: Vec<(usize, usize)>) -> PyResult<String> {
    let graph = Graph::from_edges(n_agents, edges, &default_names(n_agents)).map_err(Failure::from)?;
    to_json(&serde_json::json!({
        "spectrum": Spectrum::of(&graph), "gossip_contraction": gossip_contraction(&graph), "degrees": graph.degrees(),
    }))
}
