//! How a site answers a plan, on files that differ in one record: the real command, started as a hospital starts it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use padmm_audit::{Answer, Check, NeighbouringFiles, refusals};
use padmm_core::algorithm::{AlgorithmKind, P_ADMM};
use padmm_core::plan::PlanDraft;
use padmm_core::schema::{Schema, SchemaDraft};
use padmm_node::contract::{ContractDraft, Silence, SiteEntry};
use padmm_node::identity::{Cap, Home, InitRequest, SiteName};
use padmm_node::site::Site;

const RUN: &str = "audit";

/// Asks a site for its word on one plan of this algorithm, again and again, with other records.
pub(super) fn check(algorithm: AlgorithmKind) -> anyhow::Result<Check> {
    let folder = tempfile::tempdir().context("a temporary folder cannot be made")?;
    let asker = Asker::new(folder.path(), algorithm)?;
    refusals(|file| asker.answer(file))
}

struct Asker {
    program: PathBuf,
    home: PathBuf,
    cards: PathBuf,
    plan: PathBuf,
    run: SiteName,
}

impl Asker {
    fn new(folder: &Path, algorithm: AlgorithmKind) -> anyhow::Result<Self> {
        let now = padmm_node::clock::now();
        let cards = folder.join("cards");
        std::fs::create_dir_all(&cards)?;
        let mut entries = vec![];
        for name in ["asked", "waiting"] {
            let name = SiteName::new(name)?;
            let request = InitRequest {
                addresses: vec!["127.0.0.1:7447".to_owned()],
                data: Some(PathBuf::from("records.csv")),
                cap: Some(Cap { epsilon: 100.0, delta: 1e-4 }),
                ..InitRequest::new(name.clone())
            };
            let home = Home::init(&folder.join(name.as_str()), &request, now)?;
            std::fs::copy(folder.join(name.as_str()).join("card.toml"), cards.join(format!("{name}.toml")))?;
            let (records, fingerprint) = (NeighbouringFiles::RECORDS, home.card().fingerprint());
            entries.push(SiteEntry { name, records, fingerprint });
        }
        let draft: SchemaDraft = toml::from_str(NeighbouringFiles::SCHEMA)?;
        let schema: Schema = draft.check()?;
        // Sites are asked about algorithms that run between them.
        let algorithm = if algorithm.runs_between_sites() { algorithm } else { P_ADMM };
        let settings = PlanDraft { algorithm, rounds: 2, epsilon: 1.0, ..PlanDraft::default() };
        let run = SiteName::new(RUN)?;
        let graph = "complete".parse()?;
        let contract =
            ContractDraft::new(run.clone(), schema, settings, entries, &graph, Silence::Wait, None)?
                .check()?;
        let plan = folder.join("plan.toml");
        padmm_data::write_atomically(&plan, false, contract.to_toml().as_bytes())?;
        let program = std::env::current_exe().context("this program cannot be found")?;
        Ok(Self { program, home: folder.join("asked"), cards, plan, run })
    }

    /// What those who wait get to see: the exit of `plan accept`, the signed word, and whether `site run` would start.
    fn answer(&self, file: &[u8]) -> anyhow::Result<Answer> {
        padmm_data::write_atomically(&self.home.join("records.csv"), true, file)?;
        let runs = self.home.join("runs");
        if runs.exists() {
            std::fs::remove_dir_all(&runs)?;
        }
        let status = Command::new(&self.program)
            .args(["plan", "accept", "--yes", "--json", "--home"])
            .arg(&self.home)
            .arg("--cards")
            .arg(&self.cards)
            .arg(&self.plan)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .context("`padmm-site plan accept` cannot be started")?;
        let accepts = status.success();
        let mut sends = vec![];
        if accepts {
            sends = std::fs::read(runs.join(RUN).join("asked.accept"))?;
            let starts = Site::read(&self.home, &self.run, padmm_node::clock::now())?.records().is_ok();
            sends.extend_from_slice(if starts { b"starts" } else { b"does not start" });
        }
        Ok(Answer { accepts, sends })
    }
}
