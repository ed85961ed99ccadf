//! One file a subcommand: its arguments, and `run`.

pub mod account;
pub mod algorithms;
pub mod audit;
pub mod bench;
pub mod data;
pub mod demo;
pub mod evaluate;
pub mod ledger;
pub mod plan;
pub mod predict;
pub mod report;
pub mod reproduce;
pub mod schema;
pub mod simulate;
pub mod site;
pub mod theory;

use anyhow::Context;
use std::io::{ErrorKind, Write};

pub use padmm_core::schema::OWN_EYES;

/// Writes to standard output. A reader that went away, such as `head`, is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Starts `--threads`, if they were asked for.
pub fn start_threads(threads: Option<usize>) -> anyhow::Result<()> {
    let Some(n) = threads else { return Ok(()) };
    anyhow::ensure!(n > 0, "--threads must be at least 1");
    rayon::ThreadPoolBuilder::new().num_threads(n).build_global().context("the threads cannot be started")
}

/// Writes one JSON object to standard output.
pub fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    print(&format!("{value:#}\n"))
}
