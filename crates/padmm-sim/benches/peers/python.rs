//! The peers' process: found or made ready, started once, asked by lines of JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Outcome;

/// A running `benches/peers.py`.
pub struct Peers {
    child: Child,
    /// Taken when the peers are told to end.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// How a peer is to run.
#[derive(Clone, Copy)]
pub struct RunRequest {
    /// Its solver.
    pub solver: &'static str,
    /// Whether records are in compressed rows, or dense.
    pub sparse: bool,
    /// Threads of its linear algebra.
    pub threads: usize,
    /// Rounds.
    pub rounds: usize,
    /// Whether it computes the simulator's metrics in every round.
    pub metrics: bool,
}

impl Peers {
    /// Starts the peers on the data in `folder` and waits until they have read it.
    pub fn start(folder: &Path) -> Outcome<Self> {
        let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches");
        let python = interpreter(folder, &benches.join("requirements.txt"))?;
        let mut child = Command::new(&python)
            .arg(benches.join("peers.py"))
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or("the peers have no output")?);
        let mut peers = Peers { child, requests, answers };
        peers.answer()?;
        Ok(peers)
    }

    /// A run of the first rounds.
    pub fn run(&mut self, request: RunRequest) -> Outcome<Value> {
        let RunRequest { solver, sparse, threads, rounds, metrics } = request;
        self.ask(json!({
            "what": "run", "solver": solver, "sparse": sparse, "threads": threads, "rounds": rounds, "metrics": metrics
        }))
    }

    /// A cold fit of the first agent's records.
    pub fn fit(&mut self, sparse: bool, threads: usize, curvature: f64, tolerance: f64) -> Outcome<Value> {
        self.ask(json!({
            "what": "fit", "sparse": sparse, "threads": threads, "curvature": curvature, "tolerance": tolerance
        }))
    }

    fn ask(&mut self, request: Value) -> Outcome<Value> {
        let requests = self.requests.as_mut().ok_or("the peers have ended")?;
        writeln!(requests, "{request}")?;
        requests.flush()?;
        self.answer()
    }

    fn answer(&mut self) -> Outcome<Value> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("the Python peers stopped; their message is above".into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // The end of their input is the end of the peers.
        self.requests = None;
        let _ = self.child.wait();
    }
}

/// The number under `key` of an answer.
pub fn number(answer: &Value, key: &str) -> Outcome<f64> {
    answer[key].as_f64().ok_or_else(|| format!("the peers' answer has no number '{key}'").into())
}

/// `$PADMM_PYTHON`, else a `python3` that has the packages, else an environment of its own with the pinned versions.
fn interpreter(folder: &Path, requirements: &Path) -> Outcome<PathBuf> {
    if let Some(python) = std::env::var_os("PADMM_PYTHON") {
        return Ok(python.into());
    }
    let has_packages = |python: &Path| {
        let imports = "import numpy, scipy, sklearn, threadpoolctl";
        let quiet = Command::new(python).args(["-c", imports]).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    };
    let own = folder.join("venv").join("bin").join("python");
    for python in [PathBuf::from("python3"), own.clone()] {
        if has_packages(&python) {
            return Ok(python);
        }
    }
    eprintln!("making a Python environment in {} …", folder.join("venv").display());
    let done = |command: &mut Command| match command.status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!(
            "the Python peers need {} (set PADMM_PYTHON to a Python that has it): {command:?} failed",
            requirements.display()
        )),
    };
    done(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
    done(Command::new(&own).args(["-m", "pip", "install", "--quiet", "-r"]).arg(requirements))?;
    Ok(own)
}
