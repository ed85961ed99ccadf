//! What the peers read: records, noise and releases as raw little-endian numbers, everything else as JSON.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use padmm_core::algorithm::token_walk;
use padmm_core::data::Dataset;
use padmm_core::regularizer::RegularizerTerm;
use padmm_core::step;
use padmm_privacy::{Certified, PublicVector, RequiredCertificate};
use padmm_sim::{InsecureSeededNoise, PreparedSimulation};
use serde_json::json;

use super::shape::SEED;

fn write(folder: &Path, name: &str, mut values: impl Iterator<Item = f64>) -> anyhow::Result<()> {
    let mut file = BufWriter::new(File::create(folder.join(name).with_extension("f64"))?);
    values.try_for_each(|v| file.write_all(&v.to_le_bytes()))?;
    Ok(file.flush()?)
}

/// Writes the records of some agents and `meta.json` with what is in `more`.
pub(super) fn records<'a>(
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

/// Writes a network's problem, what its algorithm needs beside it, the noise of its first run and that run's models.
pub(super) fn network(
    simulation: &PreparedSimulation,
    models: &[Vec<PublicVector>],
    folder: &Path,
) -> anyhow::Result<()> {
    let (calibration, n) = (simulation.calibration(), simulation.shards().len());
    let (settings, agents) = (simulation.plan().settings(), &calibration.agents);
    let edges: Vec<[usize; 2]> = (0..n)
        .flat_map(|i| simulation.graph().neighbours(i).iter().map(move |&j| [i, j]))
        .filter(|[i, j]| i < j)
        .collect();
    let regularizer = RegularizerTerm::new(&settings.regularizer, simulation.space(), 1.0 / n as f64);
    ensure!(!regularizer.is_nonsmooth() && regularizer.strong_convexity() > 0.0, "the peers know L2 alone");
    let meta = json!({
        "algorithm": settings.algorithm.name(),
        "penalty": calibration.penalty,
        "growth": settings.own_value("penalty-growth").unwrap_or(1.0),
        "even_damping": settings.own_value("even-damping").unwrap_or(0.5),
        "relaxation": settings.own_value("relaxation").unwrap_or(0.5),
        "walk": token_walk(n, settings.rounds),
        "edges": edges,
        "degrees": agents.iter().map(|a| a.degree).collect::<Vec<_>>(),
        "regularizer_curvature": regularizer.strong_convexity(),
        "tolerances": agents.iter().map(|a| a.tolerance).collect::<Vec<_>>(),
        "ridges": agents.iter().map(|a| a.ridge).collect::<Vec<_>>(),
        "inverse_steps": agents.iter().map(|a| a.inverse_steps.as_slice()).collect::<Vec<_>>(),
    });
    records(folder, simulation.shards().iter().map(|s| &**s), meta)?;
    write(folder, "optimum", simulation.optimum().iter().copied())?;
    write(folder, "releases", models.iter().flatten().flat_map(|x| x.as_slice()).copied())?;
    let rounds = models.len();
    let noise: Vec<Noise> =
        (0..n).map(|i| Noise::of(simulation, i, rounds)).collect::<anyhow::Result<_>>()?;
    let by_round = |of: fn(&Noise) -> &Vec<Vec<f64>>| {
        let noise = &noise;
        (0..rounds).flat_map(move |k| noise.iter().flat_map(move |agent| of(agent)[k].iter().copied()))
    };
    write(folder, "noise", by_round(|noise| &noise.on_output))?;
    write(folder, "objective_noise", by_round(|noise| &noise.on_objective))
}

/// What an agent of run 0 draws, round by round: the same stream, read again.
#[derive(Default)]
struct Noise {
    on_output: Vec<Vec<f64>>,
    on_objective: Vec<Vec<f64>>,
}

impl Noise {
    fn of(simulation: &PreparedSimulation, i: usize, rounds: usize) -> anyhow::Result<Self> {
        let (calibration, p) = (&simulation.calibration().agents[i], simulation.space().n_features());
        let zero = || vec![0.0; p];
        let mut noise = Self::default();
        let Some(schedule) = &calibration.noise else {
            return Ok(Self { on_output: vec![zero(); rounds], on_objective: vec![zero(); rounds] });
        };
        let required = RequiredCertificate { modulus: calibration.modulus, tolerance: calibration.tolerance };
        let mechanism = schedule.mechanism(required)?;
        let mut source = InsecureSeededNoise::new(SEED, 0, i);
        for round in 1..=rounds as u32 {
            let (mut on_output, mut on_objective) = (zero(), zero());
            // In a round that is free nothing is drawn.
            if schedule.event(round).is_some() {
                let drawn = mechanism.draw(round, &mut source)?;
                match drawn.visible_noise() {
                    Some(visible) => on_objective.copy_from_slice(visible),
                    // What a release of zero is.
                    None => {
                        let nothing = Certified { point: zero(), residual: 0.0 };
                        on_output = mechanism.seal(round, nothing.into(), drawn)?.to_vec();
                    }
                }
            }
            noise.on_output.push(on_output);
            noise.on_objective.push(on_objective);
        }
        Ok(noise)
    }
}

/// The linear terms of the first agent's problem, round by round — EQUATIONS §2 (primal).
pub(super) fn linear_terms(simulation: &PreparedSimulation, releases: &[Vec<PublicVector>]) -> Vec<Vec<f64>> {
    let (penalty, p) = (simulation.calibration().penalty, simulation.shards()[0].n_features());
    let zero = vec![PublicVector::zeros(p); simulation.shards().len()];
    let neighbours = simulation.graph().neighbours(0);
    let mut dual = PublicVector::zeros(p);
    let mut calibration = vec![];
    for (k, after) in releases.iter().enumerate() {
        let before = if k == 0 { &zero } else { &releases[k - 1] };
        let others = neighbours.iter().map(|&j| &before[j]);
        let mut linear = vec![];
        step::primal_linear(&dual, penalty, &before[0], others, &mut linear);
        calibration.push(linear);
        neighbours.iter().for_each(|&j| step::dual_edge(&mut dual, penalty, &after[0], &after[j]));
    }
    calibration
}

/// Writes what the first agent solves warm: the linear terms after the first round, and where the first round ended.
pub(super) fn warm(folder: &Path, linear: &[Vec<f64>], start: &[f64]) -> anyhow::Result<()> {
    write(folder, "linear", linear.iter().flatten().copied())?;
    write(folder, "warm_start", start.iter().copied())
}
