//! What the peers read: records, noise and releases as raw little-endian numbers, everything else as JSON.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use padmm_core::data::Dataset;
use padmm_core::step;
use padmm_privacy::{NoiseSchedule, NoiseSource, Public};
use padmm_sim::{InsecureSeededNoise, Simulation};
use serde_json::json;

fn write(folder: &Path, name: &str, mut values: impl Iterator<Item = f64>) -> anyhow::Result<()> {
    let mut file = BufWriter::new(File::create(folder.join(name).with_extension("f64"))?);
    values.try_for_each(|v| file.write_all(&v.to_le_bytes()))?;
    Ok(file.flush()?)
}

/// Writes the records of some agents and `meta.json` with what is in `more`.
pub fn records<'a>(
    folder: &Path,
    shards: impl Iterator<Item = &'a Dataset> + Clone,
    more: serde_json::Value,
) -> anyhow::Result<()> {
    let rows = || shards.clone().flat_map(|s| s.rows());
    write(folder, "numeric", rows().flat_map(|r| r.numeric.iter().copied()))?;
    write(folder, "scale", rows().map(|r| r.scale))?;
    write(folder, "labels", rows().map(|r| r.label))?;
    let mut hot = BufWriter::new(File::create(folder.join("hot.u32"))?);
    rows().flat_map(|r| r.hot).try_for_each(|j| hot.write_all(&j.to_le_bytes()))?;
    hot.flush()?;
    let first = shards.clone().next().context("somebody has records")?;
    let mut meta = json!({
        "n_features": first.n_features(),
        "n_numeric": first.n_numeric(),
        "n_hot": first.n_hot(),
        "sizes": shards.map(Dataset::n_records).collect::<Vec<_>>(),
    });
    let (Some(meta_map), Some(more)) = (meta.as_object_mut(), more.as_object()) else { unreachable!() };
    meta_map.extend(more.clone());
    Ok(std::fs::write(folder.join("meta.json"), meta.to_string())?)
}

/// Writes a network's problem, the noise of its first run and that run's releases, and the linear terms of the first agent.
pub fn network(simulation: &Simulation, releases: &[Vec<Public>], folder: &Path) -> anyhow::Result<()> {
    let (terms, n) = (simulation.terms(), simulation.shards().len());
    let first = &terms.agents[0];
    let edges: Vec<[usize; 2]> = (0..n)
        .flat_map(|i| simulation.graph().neighbours(i).iter().map(move |&j| [i, j]))
        .filter(|[i, j]| i < j)
        .collect();
    let meta = json!({
        "penalty": terms.penalty,
        "edges": edges,
        "degrees": terms.agents.iter().map(|a| a.degree).collect::<Vec<_>>(),
        // With L2 alone, all of the modulus beyond the proximal term is the regulariser's.
        "regularizer_curvature": first.modulus - 2.0 * terms.penalty * first.degree as f64,
        "tolerances": terms.agents.iter().map(|a| a.tolerance).collect::<Vec<_>>(),
    });
    records(folder, simulation.shards().iter().map(|s| &**s), meta)?;
    write(folder, "optimum", simulation.optimum().iter().copied())?;
    write(folder, "releases", releases.iter().flatten().flat_map(|x| x.as_slice()).copied())?;
    let mut noise = vec![];
    for (i, agent) in terms.agents.iter().enumerate() {
        let schedule = agent.noise.as_ref().and_then(|s| s.as_gaussian()).context("the run has noise")?;
        noise.push(noise_of(schedule, i)?);
    }
    let by_round =
        (0..releases.len()).flat_map(|k| noise.iter().flat_map(move |agent| agent[k].iter().copied()));
    write(folder, "noise", by_round)
}

/// The noise that agent `i` of run 0 draws, round by round: the same stream, read again.
fn noise_of(schedule: &NoiseSchedule, i: usize) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut source = InsecureSeededNoise::new(1, 0, i);
    let mut integers = vec![0; schedule.n_features()];
    (1..=schedule.rounds())
        .map(|round| {
            let grid = 2f64.powi(schedule.grid_exponent(round));
            source.fill(schedule.noise_std(round) / grid, &mut integers)?;
            Ok(integers.iter().map(|&n| n as f64 * grid).collect())
        })
        .collect()
}

/// The linear terms of the first agent's problem, round by round — MATH §2 (primal).
pub fn linear_terms(simulation: &Simulation, releases: &[Vec<Public>]) -> Vec<Vec<f64>> {
    let (penalty, p) = (simulation.terms().penalty, simulation.shards()[0].n_features());
    let zero = vec![Public::zeros(p); simulation.shards().len()];
    let neighbours = simulation.graph().neighbours(0);
    let mut dual = Public::zeros(p);
    let mut terms = vec![];
    for (k, after) in releases.iter().enumerate() {
        let before = if k == 0 { &zero } else { &releases[k - 1] };
        let others = neighbours.iter().map(|&j| &before[j]);
        let mut linear = vec![];
        step::primal_linear(&dual, penalty, &before[0], others, &mut linear);
        terms.push(linear);
        neighbours.iter().for_each(|&j| step::dual_edge(&mut dual, penalty, &after[0], &after[j]));
    }
    terms
}

/// Writes what the first agent solves warm: the linear terms after the first round, and where the first round ended.
pub fn warm(folder: &Path, linear: &[Vec<f64>], start: &[f64]) -> anyhow::Result<()> {
    write(folder, "linear", linear.iter().flatten().copied())?;
    write(folder, "warm_start", start.iter().copied())
}
