//! The extension module behind the Python package `padmm`.
//!
//! It holds no algorithm and no default of its own: names become a plan in [`padmm_sim::Settings`], tables become records in
//! [`padmm_core::schema`], and everything is run by [`padmm_sim::PreparedSimulation`], as in the command. What Python people expect
//! (estimators, frames, plots) is Python, in `python/padmm`.

// Python names what Rust cannot: the modules are private, and the classes are registered.
#![expect(unnameable_types, reason = "classes are reached from Python, by registration")]

mod account;
mod columns;
mod errors;
mod graph;
mod model;
mod result;
mod rows;
mod schema;
mod trace;
mod work;

use pyo3::prelude::*;

/// What `python/padmm` is built on; its names are not for users.
#[pymodule]
mod _padmm {
    #[pymodule_export]
    use super::account::{account, compose_gaussian, compose_pure, convert, epsilon_text};
    #[pymodule_export]
    use super::graph::{build_graph, graph_spectrum};
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::result::SimulationResult;
    #[pymodule_export]
    use super::schema::{Encoded, Schema, shipped, shipped_table};
    #[pymodule_export]
    use super::trace::Trace;
    #[pymodule_export]
    use super::work::{
        algorithms, calibration, check_settings, fit_csr, fit_dense, settings, settings_from_toml, simulate,
    };

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// JSON text of something that has only text keys.
fn to_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| pyo3::exceptions::PyRuntimeError::new_err(e.to_string()))
}
