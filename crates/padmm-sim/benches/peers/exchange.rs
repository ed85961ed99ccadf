//! What the peers read: records, noise and releases as raw little-endian doubles, everything else as JSON.

use std::path::Path;

use padmm_privacy::{NoiseSchedule, NoiseSource};
use padmm_sim::{InsecureSeededNoise, Simulation};
use serde_json::json;

use crate::Outcome;

/// Writes the problem of `simulation`, the noise of its first run and that run's releases.
pub fn export(simulation: &Simulation, folder: &Path) -> Outcome<()> {
    let write = |name: &str, values: &[f64]| {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        std::fs::write(folder.join(name).with_extension("f64"), bytes)
    };
    let (terms, shards) = (simulation.terms(), simulation.shards());
    let p = shards[0].n_features();
    let (mut features, mut labels) = (vec![], vec![]);
    for row in shards.iter().flat_map(|s| s.rows()) {
        let start = features.len();
        features.extend(row.numeric.iter().map(|v| v * row.scale));
        features.resize(start + p, 0.0);
        row.hot.iter().for_each(|&j| features[start + j as usize] = row.scale);
        labels.push(row.label);
    }
    write("features", &features)?;
    write("labels", &labels)?;
    write("optimum", simulation.optimum())?;
    let releases = simulation.releases(0)?;
    write("releases", &releases.iter().flatten().flat_map(|x| x.as_slice()).copied().collect::<Vec<_>>())?;

    let schedules = terms
        .agents
        .iter()
        .map(|a| a.noise.as_ref().and_then(|s| s.as_gaussian()).ok_or("the benchmark's run has noise"));
    let noise = schedules.enumerate().map(|(i, s)| noise_of(s?, i)).collect::<Outcome<Vec<_>>>()?;
    let by_round: Vec<f64> = (0..releases.len())
        .flat_map(|k| noise.iter().flat_map(move |agent| agent[k].iter().copied()))
        .collect();
    write("noise", &by_round)?;

    let first = &terms.agents[0];
    let meta = json!({
        "n_features": p,
        "sizes": shards.iter().map(|s| s.n_records()).collect::<Vec<_>>(),
        "rounds": releases.len(),
        "penalty": terms.penalty,
        // With L2 alone, all of the modulus beyond the proximal term is the regulariser's.
        "regularizer_curvature": first.modulus - 2.0 * terms.penalty * first.degree as f64,
        "tolerances": terms.agents.iter().map(|a| a.tolerance).collect::<Vec<_>>(),
    });
    std::fs::write(folder.join("meta.json"), meta.to_string())?;
    Ok(())
}

/// The noise that agent `i` of run 0 draws, round by round: the same stream, read again.
fn noise_of(schedule: &NoiseSchedule, i: usize) -> Outcome<Vec<Vec<f64>>> {
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
