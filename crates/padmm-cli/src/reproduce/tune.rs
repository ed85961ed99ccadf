//! Chooses the penalty of every series from the stated grid, by the average loss after the last round. This looks at all records
//! without any privacy, for every method alike: it makes a comparison fair, and is no way to choose a penalty at real sites.

use std::collections::BTreeMap;

use anyhow::Context;
use indicatif::ProgressBar;
use padmm_data::{Loaded, load};
use padmm_sim::RunOptions;
use padmm_sim::record::MeanStd;
use rayon::prelude::*;

use super::experiment::{Case, Experiment};
use super::penalties::{GRID, Tried};
use super::runs::prepare;

/// Runs for each point of the grid, from seeds that no figure uses.
const RUNS: u32 = 3;
const SEED: u64 = 1_000_003;

/// Tries the whole grid for every series and point of an experiment.
pub(crate) fn tune(experiment: &Experiment, bar: &ProgressBar) -> anyhow::Result<Vec<Tried>> {
    let mut data: BTreeMap<String, Loaded> = BTreeMap::new();
    let mut jobs = vec![];
    for series in &experiment.series {
        for point in 0..experiment.points().len() {
            let settings = experiment.settings(series, point)?;
            let source = settings.source()?;
            let name = format!("{source:?}");
            if !data.contains_key(&name) {
                data.insert(name.clone(), load(&source)?);
            }
            let degree = mean_degree(
                &Case {
                    experiment: experiment.name.clone(),
                    series: series.name.clone(),
                    point,
                    settings: settings.clone(),
                    own_models: false,
                    runs: 1,
                    seed: SEED,
                },
                &data[&name],
            )?;
            for weight in GRID {
                let mut settings = settings.clone();
                settings.set_penalty(weight / (2.0 * degree));
                let runs = if series.runs == Some(1) { 1 } else { RUNS };
                jobs.push((
                    series.name.clone(),
                    point,
                    weight / (2.0 * degree),
                    settings,
                    runs,
                    name.clone(),
                ));
            }
        }
    }
    bar.set_length(jobs.len() as u64);
    let try_one = |(series, point, penalty, settings, runs, name): &(String, usize, f64, _, u32, String)| {
        let case = Case {
            experiment: experiment.name.clone(),
            series: series.clone(),
            point: *point,
            settings: Clone::clone(settings),
            own_models: false,
            runs: *runs,
            seed: SEED,
        };
        let average_loss = losses(&case, &data[name])?;
        bar.inc(1);
        Ok(Tried {
            experiment: experiment.name.clone(),
            series: series.clone(),
            at: experiment.point_name(*point),
            penalty: *penalty,
            average_loss,
            best: false,
        })
    };
    let mut tried: Vec<Tried> = jobs
        .par_iter()
        .map(try_one)
        .collect::<Vec<anyhow::Result<Tried>>>()
        .into_iter()
        .collect::<anyhow::Result<_>>()?;
    for chunk in tried.chunks_mut(GRID.len()) {
        let best = (0..chunk.len()).min_by(|&a, &b| chunk[a].average_loss.total_cmp(&chunk[b].average_loss));
        chunk[best.expect("the grid has points")].best = true;
    }
    Ok(tried)
}

/// Average loss after the last round, mean over runs; infinite where a penalty is too small to be run with.
fn losses(case: &Case, loaded: &Loaded) -> anyhow::Result<f64> {
    let simulation = match prepare(case, loaded) {
        Ok(simulation) => simulation,
        Err(error) if error.to_string().contains("penalty") => return Ok(f64::INFINITY),
        Err(error) => return Err(error),
    };
    let run = |r: u32| -> anyhow::Result<f64> {
        let record = simulation.run(&RunOptions::number(r))?.record;
        record.trace.last().and_then(|m| m.average_loss).context("rounds are measured")
    };
    let values: Option<Vec<f64>> = (0..case.runs).map(|r| run(r).ok()).collect();
    Ok(values.map_or(f64::INFINITY, |v| MeanStd::of(v.into_iter()).mean))
}

/// Mean degree of the case's graph.
fn mean_degree(case: &Case, loaded: &Loaded) -> anyhow::Result<f64> {
    let plan = case.settings.simulation(loaded, false)?;
    let n = plan.n_agents.unwrap_or_else(|| loaded.encoded.sites.as_ref().map_or(5, |s| s.names.len()));
    let names: Vec<String> = match &loaded.encoded.sites {
        Some(sites) if sites.names.len() == n => sites.names.clone(),
        _ => (1..=n).map(|i| format!("agent-{i}")).collect(),
    };
    let graph = plan.graph.build(n, &names, case.seed)?;
    Ok(2.0 * graph.n_edges() as f64 / n as f64)
}
