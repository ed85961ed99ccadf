//! `padmm demo sites`: `padmm-site` makes real sites on this machine and runs them, and the simulator does the same without them.

use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;
use padmm_commands::demo::{Comparison, Outcome, SitesArgs};
use padmm_commands::terminal::{print, print_json};
use padmm_core::graph::{Graph, GraphSpec};
use padmm_data::{encode_site_file, read_model, shipped_set};
use padmm_sim::split::{Holdout, Sites, Split};
use padmm_sim::{NoiseKind, PreparedSimulation, RunOptions, SimulationPlan};

use crate::handover;

/// Simulations that the sites' model is compared with.
const SIMULATIONS: u32 = 5;
/// Seed of their noise, which has nothing to do with that of the sites.
const SEED: u64 = 1;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The four Heart Disease hospitals, or Adult split between some agents, as processes with keys, plan, ledgers and network
    Sites(SitesArgs),
}

/// Has `padmm-site` run the sites, then compares their models with the simulator's.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let What::Sites(args) = &args.what;
    let temporary = tempfile::tempdir().context("a temporary folder cannot be made")?;
    let file = temporary.path().join("outcome.json");
    let mut command = handover::padmm_site();
    command.args(std::env::args_os().skip(1)).arg("--outcome").arg(&file);
    if args.out.is_none() {
        // The sites' files are still needed when the sites are done.
        command.arg("--out").arg(temporary.path().join("sites"));
    }
    let code = handover::wait(&mut command)?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let text = std::fs::read_to_string(&file).context("padmm-site does not say what the sites came to")?;
    let outcome: Outcome = serde_json::from_str(&text)
        .context("padmm-site is of another version than padmm: install the two together")?;
    let comparison = compare(&outcome, None, SEED)?;
    if args.json {
        print_json(&outcome.json(&comparison))?;
    } else {
        print(&outcome.words(&comparison, args.out.is_some()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the simulator makes of the sites' plan and files. With `releases`, of every site and round, and the `seed` of their noise, also
/// whether it releases the same.
pub fn compare(
    outcome: &Outcome,
    releases: Option<&[Vec<Vec<f64>>]>,
    seed: u64,
) -> anyhow::Result<Comparison> {
    let simulation = simulation(outcome, seed)?;
    let models = outcome
        .sites
        .iter()
        .map(|site| Ok(read_model(&site.model)?.values().to_vec()))
        .collect::<anyhow::Result<Vec<Vec<f64>>>>()?;
    let accuracy_of = |run| simulation.run(&RunOptions::number(run)).ok()?.record.smoothed.accuracy;
    Ok(Comparison {
        accuracy: simulation.accuracy(&models[0]),
        simulated: (0..SIMULATIONS).filter_map(accuracy_of).collect(),
        identical: releases.map(|releases| is_identical(&simulation, releases, &models)).transpose()?,
    })
}

/// The simulator on the sites' own files, with their plan and graph.
fn simulation(outcome: &Outcome, seed: u64) -> anyhow::Result<PreparedSimulation> {
    let schema = shipped_set(&outcome.dataset)?.schema();
    let mut shards = vec![];
    for site in &outcome.sites {
        shards.push(encode_site_file(&site.data, &schema)?.records);
    }
    // Models are scored on the records that say something; those that count for nothing would be counted as right or wrong.
    let mut test = shards[0].empty_like();
    shards.iter().for_each(|shard| test.append(&shard.counted()));
    let names: Vec<String> = outcome.sites.iter().map(|site| site.name.clone()).collect();
    let graph = Graph::from_edges(names.len(), outcome.edges.iter().copied(), &names)?;
    let setting = SimulationPlan {
        dataset: "the sites' files".to_owned(),
        n_agents: None,
        graph: GraphSpec::Complete,
        split: Split::Site,
        holdout: Holdout::None,
        runs: 1,
        seed,
        noise: NoiseKind::Seeded,
        reference: false,
        rank_rounds: false,
        measures: true,
        plan: outcome.plan.clone(),
    };
    let sites = Sites { names, shards, test, site_tests: vec![] };
    Ok(PreparedSimulation::of_sites(setting, sites, graph, schema.feature_space(), 0)?)
}

/// Whether every release of every site, and every site's model, is the simulator's to the last bit.
fn is_identical(
    simulation: &PreparedSimulation,
    releases: &[Vec<Vec<f64>>],
    models: &[Vec<f64>],
) -> anyhow::Result<bool> {
    let same = |a: &[f64], b: &[f64]| a.iter().map(|v| v.to_bits()).eq(b.iter().map(|v| v.to_bits()));
    let simulated = simulation.releases(0)?;
    let of_rounds = simulated
        .iter()
        .enumerate()
        .all(|(k, round)| round.iter().zip(releases).all(|(model, own)| same(model.as_slice(), &own[k])));
    let run = simulation.run(&RunOptions::default())?;
    let of_models = run.outcomes.iter().zip(models).all(|(o, model)| same(o.smoothed.as_slice(), model));
    Ok(of_rounds && of_models)
}
