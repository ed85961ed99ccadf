//! Runs the cases that have no record yet. What is finished is on disk and is not repeated: every run is written when it is done,
//! and a case's record when all its runs are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::ProgressBar;
use padmm_data::{Loaded, load, write_atomically};
use padmm_sim::PreparedSimulation;
use padmm_sim::RunOptions;
use padmm_sim::metrics::RoundMetrics;
use padmm_sim::record::{Record, RunRecord};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::experiment::Case;

/// The folder with records, finished and partial.
pub(crate) struct Store {
    folder: PathBuf,
}

impl Store {
    /// Makes the folder `records` under `out`, if it is not there.
    pub(crate) fn under(out: &Path) -> anyhow::Result<Self> {
        let folder = out.join("records");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("the folder '{}' cannot be made", folder.display()))?;
        Ok(Self { folder })
    }

    /// The name under which a case is kept: it changes with anything that could change a number.
    pub(crate) fn key(case: &Case) -> anyhow::Result<String> {
        let settings = toml::to_string(&case.settings)?;
        let own = if case.own_models { "\nown models" } else { "" };
        let identity =
            format!("{}\n{}\n{}\n{settings}{own}", env!("CARGO_PKG_VERSION"), case.seed, case.runs);
        let digest = Sha256::digest(identity.as_bytes());
        let hex: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        Ok(format!("{}-{hex}", case.settings.draft()?.algorithm.name()))
    }

    fn record_path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }

    fn part_path(&self, key: &str, run: u32) -> PathBuf {
        self.folder.join("unfinished").join(format!("{key}-{run}.json"))
    }

    /// The record of a case; none if it is not finished, or not readable any more.
    pub(crate) fn record(&self, key: &str) -> Option<Record> {
        read(&self.record_path(key))
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

/// Makes the record of every case, and reads those that exist. Returns them by key.
pub(crate) fn complete(
    cases: &[Case],
    store: &Store,
    bar: &ProgressBar,
) -> anyhow::Result<BTreeMap<String, Record>> {
    let mut done = BTreeMap::new();
    let mut todo: Vec<(&Case, String)> = vec![];
    let mut seen = BTreeSet::new();
    for case in cases {
        let key = Store::key(case)?;
        if !seen.insert(key.clone()) {
            continue;
        }
        match store.record(&key) {
            Some(record) => {
                done.insert(key, record);
            }
            None => todo.push((case, key)),
        }
    }
    let mut n_rounds = 0;
    for (case, _) in &todo {
        n_rounds += u64::from(case.runs) * steps(case)?.unwrap_or(BY_RULE);
    }
    bar.set_length(n_rounds);
    let mut data: BTreeMap<String, Loaded> = BTreeMap::new();
    for (case, key) in todo {
        let source = case.settings.source()?;
        let name = format!("{source:?}");
        if !data.contains_key(&name) {
            data.insert(name.clone(), load(&source)?);
        }
        bar.set_message(format!("{} {}", case.experiment, case.series));
        let record = run_case(case, &key, &data[&name], store, bar)
            .with_context(|| format!("{}, series {}", case.experiment, case.series))?;
        let path = store.record_path(&key);
        write_atomically(&path, true, serde_json::to_string(&record)?.as_bytes())?;
        for run in 0..case.runs {
            // A left-over part is harmless: the record is found first.
            let _ = std::fs::remove_file(store.part_path(&key, run));
        }
        // What was written is what figures read, now and after an interruption.
        let record = store.record(&key).with_context(|| format!("'{}' cannot be read", path.display()))?;
        done.insert(key, record);
    }
    let _ = std::fs::remove_dir(store.folder.join("unfinished"));
    Ok(done)
}

fn run_case(
    case: &Case,
    key: &str,
    loaded: &Loaded,
    store: &Store,
    bar: &ProgressBar,
) -> anyhow::Result<Record> {
    let simulation = prepare(case, loaded)?;
    std::fs::create_dir_all(store.folder.join("unfinished"))?;
    let steps = steps(case)?;
    let one = |run: u32| -> anyhow::Result<RunRecord> {
        let path = store.part_path(key, run);
        if let Some(record) = read::<RunRecord>(&path) {
            bar.inc(steps.unwrap_or(BY_RULE));
            return Ok(record);
        }
        let on_round = |_: &RoundMetrics| {
            bar.inc(u64::from(steps.is_some()));
            true
        };
        let record =
            simulation.run(&RunOptions { run, on_round: &on_round, ..RunOptions::default() })?.record;
        if steps.is_none() {
            bar.inc(BY_RULE);
        }
        write_atomically(&path, true, serde_json::to_string(&record)?.as_bytes())?;
        // Read back, so that a run that was interrupted later and one that was not have the same digits.
        read(&path).with_context(|| format!("'{}' cannot be read", path.display()))
    };
    let runs = (0..case.runs)
        .into_par_iter()
        .map(one)
        .collect::<Vec<_>>()
        .into_iter()
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(simulation.record(runs))
}

/// What a run counts for on the progress bar where a rule sets its rounds, which are not known before.
const BY_RULE: u64 = 10;

/// Rounds of each run, where the settings name them.
fn steps(case: &Case) -> anyhow::Result<Option<u64>> {
    let rounds = u64::from(case.settings.rounds()?);
    Ok((rounds > 0).then_some(rounds))
}

/// The network of a case: its records split, its pooled optimum solved.
pub(crate) fn prepare(case: &Case, loaded: &Loaded) -> anyhow::Result<PreparedSimulation> {
    let mut plan = case.settings.simulation(loaded, false)?;
    plan.runs = case.runs;
    plan.seed = case.seed;
    plan.rank_rounds = false;
    Ok(PreparedSimulation::prepare(plan, loaded.encoded.clone())?.with_own_models(case.own_models))
}
