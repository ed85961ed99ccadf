//! `padmm-site demo sites`: real site processes on this machine, with everything that sites on different machines have.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand};
use padmm_commands::demo::{Outcome, SiteOutcome, SitesArgs};
use padmm_commands::terminal::{print, print_json};
use padmm_core::algorithm::{ALL, AlgorithmKind};
use padmm_core::plan::PlanDraft;
use padmm_node::ledger::{SiteLedger, verify};
use padmm_node::site::open_release;

use crate::network::{LocalSite, Network, Study};
use crate::test_hooks::TestHooks;

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The four Heart Disease hospitals, or Adult split between some agents, as processes with keys, plan, ledgers and network
    Sites {
        #[command(flatten)]
        args: SitesArgs,
        /// Write what the sites came to into this file, for `padmm demo`, and print nothing
        #[arg(long, value_name = "FILE", hide = true)]
        outcome: Option<PathBuf>,
    },
}

pub(crate) fn run(args: &Args, hooks: &TestHooks) -> anyhow::Result<()> {
    let What::Sites { args, outcome: file } = &args.what;
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
    let network = Network::make(&folder, study(args, &folder)?)?;
    let start = Instant::now();
    network.run(args.kill, !args.quiet && !args.json, hooks)?;
    let seconds = start.elapsed().as_secs_f64();
    let ledgers = if hooks.ledger_in_memory() { Ledgers::default() } else { Ledgers::read(&network)? };
    let outcome = outcome(&args.dataset, folder, &network, seconds, &ledgers);
    if let Some(file) = file {
        let text = serde_json::to_string(&outcome)?;
        return Ok(padmm_data::write_atomically(file, true, text.as_bytes())?);
    }
    let comparison = hooks.compare(&outcome, &ledgers.releases)?;
    if args.json {
        print_json(&outcome.json(&comparison))
    } else {
        print(&outcome.words(&comparison, args.out.is_some()))
    }
}

fn study(args: &SitesArgs, folder: &Path) -> anyhow::Result<Study> {
    let sites = partition(folder, &args.dataset, args.agents)?;
    anyhow::ensure!(sites.len() >= 2, "--agents must be at least 2");
    let algorithm = AlgorithmKind::named(&args.algorithm, &ALL).with_context(|| {
        let known: Vec<&str> = ALL.iter().filter(|k| k.runs_between_sites()).map(|k| k.name()).collect();
        format!(
            "--algorithm {} does not run between sites: choose one of {}",
            args.algorithm,
            known.join(", ")
        )
    })?;
    let by_rule = if algorithm.spec().has_rule_for_rounds() { 0 } else { PlanDraft::default().rounds };
    let settings = PlanDraft {
        algorithm,
        rounds: args.rounds.unwrap_or(by_rule),
        epsilon: args.epsilon,
        delta: args.delta,
        ..PlanDraft::default()
    };
    let schema = padmm_data::shipped_set(&args.dataset)?.schema();
    Ok(Study { schema, settings, graph: args.graph.parse()?, sites })
}

/// What all ledgers hold after the run.
#[derive(Default)]
struct Ledgers {
    verified: bool,
    payloads: u64,
    spent: Vec<f64>,
    /// Of every site, the release of every round.
    releases: Vec<Vec<Vec<f64>>>,
}

impl Ledgers {
    fn read(network: &Network) -> anyhow::Result<Self> {
        let mut all = Self { verified: true, ..Self::default() };
        network.sites.iter().try_for_each(|site| all.add(network, site))?;
        Ok(all)
    }

    fn add(&mut self, network: &Network, site: &LocalSite) -> anyhow::Result<()> {
        let contract = &network.contract;
        let run = contract.hash().to_string();
        self.verified &= verify(&site.ledger).is_ok();
        let ledger = SiteLedger::open(&site.ledger)?;
        let state = ledger.state().run(&run).context("a ledger does not have the run")?;
        self.payloads += state.n_released() as u64;
        self.spent.push(state.spending.epsilon(contract.plan().budget().delta).value());
        let release = |round| -> anyhow::Result<Vec<f64>> {
            let bytes =
                ledger.release_bytes(&run, round)?.with_context(|| format!("round {round} is missing"))?;
            Ok(open_release(&bytes).map_err(anyhow::Error::msg)?.to_vec())
        };
        let rounds = 1..=contract.plan().settings().rounds;
        self.releases.push(rounds.map(release).collect::<anyhow::Result<_>>()?);
        Ok(())
    }
}

fn outcome(dataset: &str, folder: PathBuf, network: &Network, seconds: f64, ledgers: &Ledgers) -> Outcome {
    let contract = &network.contract;
    let site = |(i, site): (usize, &LocalSite)| SiteOutcome {
        name: site.name.to_string(),
        records: contract.sites()[i].records,
        data: site.data.clone(),
        model: network.model_file(i),
        epsilon: ledgers.spent.get(i).copied(),
    };
    Outcome {
        dataset: dataset.to_owned(),
        folder,
        sites: network.sites.iter().enumerate().map(site).collect(),
        edges: contract.edges(),
        plan: contract.plan().clone(),
        seconds,
        payloads: ledgers.payloads,
        verified: ledgers.verified,
    }
}

/// Every site's records as CSV: hospitals by their column, anything else row by row in turn.
fn partition(folder: &Path, dataset: &str, agents: Option<usize>) -> anyhow::Result<Vec<(String, String)>> {
    let all = folder.join("all.csv");
    padmm_data::export(dataset, &all, false)?;
    let text = std::fs::read_to_string(&all)?;
    for file in [&all, &all.with_extension("schema.toml")] {
        std::fs::remove_file(file).with_context(|| format!("{} cannot be removed", file.display()))?;
    }
    let schema = padmm_data::shipped_set(dataset)?.schema();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers()?.clone();
    let column = schema.site().and_then(|site| header.iter().position(|h| h == site.column));
    let by_column = column.filter(|_| agents.is_none());
    let n = agents.unwrap_or(5);
    let mut parts: Vec<(String, csv::Writer<Vec<u8>>)> = vec![];
    for (row, record) in reader.records().enumerate() {
        let record = record?;
        let name = match by_column {
            Some(column) => record[column].to_owned(),
            None => format!("agent-{}", row % n + 1),
        };
        let place = match parts.iter().position(|p| p.0 == name) {
            Some(place) => place,
            None => {
                let mut writer = csv::Writer::from_writer(vec![]);
                writer.write_record(&header)?;
                parts.push((name, writer));
                parts.len() - 1
            }
        };
        parts[place].1.write_record(&record)?;
    }
    let finish = |(name, writer): (String, csv::Writer<Vec<u8>>)| -> anyhow::Result<(String, String)> {
        Ok((name, String::from_utf8(writer.into_inner()?)?))
    };
    parts.into_iter().map(finish).collect()
}
