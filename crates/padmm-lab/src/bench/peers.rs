//! The peers' Python: environments with pinned packages, and one process for each question.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use super::Bench;

/// The programs; a peer may import another.
const PROGRAMS: [(&str, &str); 3] = [
    ("peers.py", include_str!("../../../../benches/peers.py")),
    ("flower_round.py", include_str!("../../../../benches/flower_round.py")),
    ("central.py", include_str!("../../../../benches/central.py")),
];

/// A set of Python packages that some peers need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// For the plain program of `peers.py`: numpy, scipy and scikit-learn.
    Science,
    /// For a round of the federated framework Flower.
    Flower,
    /// diffprivlib, with the scikit-learn of its time.
    Central,
}

impl Environment {
    fn name(self) -> &'static str {
        match self {
            Self::Science => "science",
            Self::Flower => "flower",
            Self::Central => "central",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Science => "peers.py",
            Self::Flower => "flower_round.py",
            Self::Central => "central.py",
        }
    }

    /// Its packages, at the versions that were measured.
    fn requirements(self) -> &'static str {
        match self {
            Self::Science => include_str!("../../../../benches/requirements.txt"),
            Self::Flower => include_str!("../../../../benches/requirements-flower.txt"),
            Self::Central => include_str!("../../../../benches/requirements-central.txt"),
        }
    }
}

impl Bench<'_> {
    /// Asks a peer about the problem in `problem`.
    pub(crate) fn ask(
        &self,
        environment: Environment,
        problem: &Path,
        request: &Value,
    ) -> anyhow::Result<Value> {
        let python = self.interpreter(environment)?;
        let programs = self.folder.join("programs");
        std::fs::create_dir_all(&programs)?;
        for (name, text) in PROGRAMS {
            std::fs::write(programs.join(name), text)?;
        }
        let program = programs.join(environment.program());
        let output = Command::new(&python)
            .arg(&program)
            .arg(problem)
            .arg(request.to_string())
            .stderr(Stdio::piped())
            .output()
            .with_context(|| format!("{} cannot be started", python.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("the peer {} failed on {request}: {}", program.display(), said.trim());
        }
        serde_json::from_slice(&output.stdout).with_context(|| {
            format!("the peer {} gave no answer to {request}: {}", program.display(), said.trim())
        })
    }

    /// The environment's Python; makes the environment if it is missing or has other packages.
    fn interpreter(&self, environment: Environment) -> anyhow::Result<PathBuf> {
        let folder = std::path::absolute(self.folder.join(format!("python-{}", environment.name())))?;
        let (python, stamp) = (folder.join("bin").join("python"), folder.join("requirements.txt"));
        if std::fs::read_to_string(&stamp).is_ok_and(|text| text == environment.requirements()) {
            return Ok(python);
        }
        (self.watch)(&format!("making the Python environment {}", folder.display()));
        let wanted = folder.with_extension("txt");
        std::fs::create_dir_all(&self.folder)?;
        std::fs::write(&wanted, environment.requirements())?;
        quiet(Command::new(any_python()?).args(["-m", "venv", "--clear"]).arg(&folder))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        quiet(Command::new(&python).args(pip).arg(&wanted))?;
        // Last: an environment without it is made again.
        std::fs::rename(&wanted, &stamp)?;
        Ok(python)
    }
}

/// A Python that the pinned packages exist for.
fn any_python() -> anyhow::Result<&'static str> {
    let check = "import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))";
    let fits = |python: &&str| {
        let status = Command::new(python).args(["-c", check]).stderr(Stdio::null()).status();
        status.is_ok_and(|s| s.success())
    };
    ["python3", "python3.11", "python3.12", "python3.13"].into_iter().find(fits).context(
        "the peers need Python 3.11 to 3.13 with venv, and none was found on the path: install it (on Debian: python3 python3-venv)",
    )
}

fn quiet(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
    if output.status.success() {
        return Ok(());
    }
    bail!(
        "the peers' environment cannot be made: {command:?}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    )
}

/// The number under `key` of an answer.
pub(crate) fn number(answer: &Value, key: &str) -> anyhow::Result<f64> {
    answer[key].as_f64().with_context(|| format!("the peer's answer has no number '{key}'"))
}
