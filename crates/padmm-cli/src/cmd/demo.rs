//! `padmm demo sites`: real site processes on this machine, with everything that sites on different machines have.

mod processes;
mod setup;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand};
use comfy_table::{CellAlignment, Table, presets};
use padmm_core::plan::PlanDraft;
use padmm_node::ledger::{SiteLedger, verify};
use padmm_node::site::open_release;
use padmm_privacy::words::epsilon_text;
use padmm_sim::split::{Holdout, Sites, Split};
use padmm_sim::{NoiseKind, Simulation, SimulationPlan};
use serde_json::json;

use super::{print, print_json};
use crate::lab::Lab;

pub(super) use processes::run as run_processes;
pub(super) use setup::{DemoSite, Network, RUN};

/// Arguments of `padmm demo`.
#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The four Heart Disease hospitals, or Adult dealt to some agents, as processes with keys, plan, ledgers and network
    Sites(SitesArgs),
}

#[derive(ClapArgs)]
struct SitesArgs {
    /// heart or adult
    #[arg(long, value_name = "NAME", default_value = "heart")]
    dataset: String,
    /// Number of sites that Adult is dealt to; the hospitals are four
    #[arg(long, value_name = "N")]
    agents: Option<usize>,
    /// Who talks to whom, as for `padmm simulate`
    #[arg(long, value_name = "GRAPH", default_value = "complete")]
    graph: String,
    /// Rounds
    #[arg(long, value_name = "K", default_value_t = 50)]
    rounds: u32,
    /// ε of every site
    #[arg(long, value_name = "E", default_value_t = 5.0, allow_negative_numbers = true)]
    epsilon: f64,
    /// δ
    #[arg(long, value_name = "D", default_value_t = 1e-4, allow_negative_numbers = true)]
    delta: f64,
    /// Kill and restart sites at random so many times on the way
    #[arg(long, value_name = "N", default_value_t = 0)]
    kill: u32,
    /// Folder for the sites' homes, which must not exist; without it they are in a temporary folder that goes away
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long)]
    quiet: bool,
}

/// Runs `padmm demo`.
pub fn run(args: &Args, lab: &Lab) -> anyhow::Result<()> {
    let What::Sites(args) = &args.what;
    let temporary = tempfile::tempdir().context("a temporary folder cannot be made")?;
    let folder = match &args.out {
        Some(out) => {
            anyhow::ensure!(!out.exists(), "--out {} exists already: choose another folder", out.display());
            std::fs::create_dir_all(out)
                .with_context(|| format!("--out {} cannot be made", out.display()))?;
            out.canonicalize()?
        }
        None => temporary.path().to_owned(),
    };
    let settings =
        PlanDraft { rounds: args.rounds, epsilon: args.epsilon, delta: args.delta, ..PlanDraft::default() };
    let network = Network::make(&folder, &args.dataset, args.agents, &args.graph, settings)?;
    let start = Instant::now();
    processes::run(&network, args.kill, !args.quiet && !args.json, lab)?;
    let seconds = start.elapsed().as_secs_f64();
    let report = Report::of(&network, seconds, lab)?;
    if args.json { print_json(&report.json()) } else { print(&report.words(&network, args.out.is_some())) }
}

/// What the sites came to.
struct Report {
    sites: Vec<String>,
    rounds: u32,
    seconds: f64,
    identical: Option<bool>,
    verified: bool,
    epsilon: BTreeMap<String, f64>,
    payloads: u64,
    accuracy: Option<f64>,
    simulated: Vec<f64>,
}

impl Report {
    fn of(network: &Network, seconds: f64, lab: &Lab) -> anyhow::Result<Self> {
        let contract = &network.contract;
        let run = contract.hash().to_string();
        let (mut epsilon, mut payloads, mut verified) = (BTreeMap::new(), 0, true);
        let mut releases = vec![];
        for site in &network.sites {
            if lab.ledger_in_memory {
                continue;
            }
            verified &= verify(&site.ledger).is_ok();
            let ledger = SiteLedger::open(&site.ledger)?;
            let state = ledger.state().run(&run).context("a ledger does not have the run")?;
            payloads += state.n_released() as u64;
            epsilon.insert(
                site.name.to_string(),
                state.spending.epsilon(contract.plan().budget().delta).value(),
            );
            let rounds = 1..=contract.plan().settings().rounds;
            let of_round = |round| -> anyhow::Result<Vec<f64>> {
                let bytes = ledger
                    .release_bytes(&run, round)?
                    .with_context(|| format!("round {round} is missing"))?;
                Ok(open_release(&bytes).map_err(anyhow::Error::msg)?.to_vec())
            };
            releases.push(rounds.map(of_round).collect::<anyhow::Result<Vec<_>>>()?);
        }
        let simulation = simulation(network, lab.seed.unwrap_or(1))?;
        let identical = match lab.seed {
            Some(_) if !lab.ledger_in_memory => Some(is_identical(network, &simulation, &releases)?),
            _ => None,
        };
        let kept = network.model_values(0)?;
        let accuracy = simulation.accuracy(&kept);
        let simulated =
            (0..5).filter_map(|r| simulation.run_once(r, &|_| ()).ok()?.record.smoothed.accuracy).collect();
        Ok(Report {
            sites: network.sites.iter().map(|s| s.name.to_string()).collect(),
            rounds: contract.plan().settings().rounds,
            seconds,
            identical,
            verified: verified && !lab.ledger_in_memory,
            epsilon,
            payloads,
            accuracy,
            simulated,
        })
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "sites": self.sites,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "identical_to_simulator": self.identical,
            "ledgers_verified": self.verified,
            "epsilon_exact": self.epsilon,
            "payloads": self.payloads,
        })
    }

    fn words(&self, network: &Network, kept: bool) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header([
            "site",
            "records",
            "neighbours",
            "epsilon spent",
            "ledger",
        ]);
        for column in 1..4 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for (i, site) in network.sites.iter().enumerate() {
            let epsilon = self.epsilon.get(site.name.as_str()).map_or("-".to_owned(), |&e| epsilon_text(e));
            table.add_row([
                site.name.to_string(),
                network.contract.sites()[i].records.to_string(),
                network.contract.neighbours(i).len().to_string(),
                epsilon,
                if self.verified { "verified" } else { "NOT verified" }.to_owned(),
            ]);
        }
        let mean = self.simulated.iter().sum::<f64>() / self.simulated.len().max(1) as f64;
        let least = self.simulated.iter().copied().fold(f64::MAX, f64::min);
        let most = self.simulated.iter().copied().fold(f64::MIN, f64::max);
        let compared = match self.accuracy {
            Some(accuracy) if !self.simulated.is_empty() => format!(
                "Accuracy on all usable records (which only this demonstration can see together): {accuracy:.4}; the simulator, with the same \
                 plan and five other draws of noise: {mean:.4} ({least:.4} to {most:.4}).\n"
            ),
            _ => String::new(),
        };
        let identical = match self.identical {
            Some(true) => "Every released integer is the simulator's, to the bit.\n",
            Some(false) => "The released integers are NOT the simulator's.\n",
            None => "",
        };
        let place = if kept {
            format!("The sites' homes are in {}.\n", network.folder.display())
        } else {
            "Keep the sites' homes with --out DIR to look at plan, ledgers and what left each site.\n"
                .to_owned()
        };
        format!(
            "{table}\n\n{} sites, {} rounds in {:.1} s, {} payloads, one for each site and round.\n{compared}{identical}{place}",
            self.sites.len(),
            self.rounds,
            self.seconds,
            self.payloads
        )
    }
}

/// The simulator on the sites' own files, with the contract's plan and graph.
fn simulation(network: &Network, seed: u64) -> anyhow::Result<Simulation> {
    let contract = &network.contract;
    let mut shards = vec![];
    for site in &network.sites {
        shards.push(padmm_data::encode_site_file(&site.data, contract.schema())?.records);
    }
    // Models are scored on the records that say something; those that count for nothing would be counted as right or wrong.
    let mut test = shards[0].empty_like();
    shards.iter().for_each(|shard| test.append(&shard.counted()));
    let names = network.sites.iter().map(|s| s.name.to_string()).collect();
    let setting = SimulationPlan {
        dataset: "the sites' files".to_owned(),
        n_agents: None,
        graph: padmm_core::graph::GraphSpec::Complete,
        split: Split::Site,
        holdout: Holdout::None,
        runs: 1,
        seed,
        noise: NoiseKind::Seeded,
        reference: false,
        rank_rounds: false,
        plan: contract.plan().clone(),
    };
    let sites = Sites { names, shards, test, site_tests: vec![] };
    Ok(Simulation::of_sites(setting, sites, contract.graph().clone(), contract.space().clone(), 0)?)
}

/// Whether every release of every site, and every site's model, is the simulator's to the last bit.
fn is_identical(
    network: &Network,
    simulation: &Simulation,
    releases: &[Vec<Vec<f64>>],
) -> anyhow::Result<bool> {
    let same = |a: &[f64], b: &[f64]| a.iter().map(|v| v.to_bits()).eq(b.iter().map(|v| v.to_bits()));
    let simulated = simulation.releases(0)?;
    let of_rounds = simulated.iter().enumerate().all(|(k, models)| {
        models.iter().enumerate().all(|(i, model)| same(model.as_slice(), &releases[i][k]))
    });
    let run = simulation.run_once(0, &|_| ())?;
    let mut of_models = true;
    for (i, outcome) in run.outcomes.iter().enumerate() {
        of_models &= same(outcome.smoothed.as_slice(), &network.model_values(i)?);
    }
    Ok(of_rounds && of_models)
}
