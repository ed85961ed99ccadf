//! `padmm plan`: what sites agree to, before anything is computed.

mod accept;
mod check;
mod outlook;

use super::site::{WhichRecords, expiry_warning};
use anyhow::{Context, bail};
use clap::{Args as ClapArgs, Subcommand};
use padmm_commands::flags::PlanFlags;
use padmm_commands::terminal::{print, print_json};
use padmm_data::{read_schema, write_atomically};
use padmm_node::contract::{Contract, ContractDraft, Silence, SiteEntry, Trust, difference};
use padmm_node::identity::{Card, SiteName};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Make a plan from the cards of its sites
    New(Box<New>),
    /// Say what a plan means for each site: noise, privacy loss, traffic
    Check {
        /// The plan file to look at
        plan: PathBuf,
        /// Show this site and no other
        #[arg(long, value_name = "NAME")]
        site: Option<SiteName>,
        /// A folder with the sites' cards, to see whether they fit and how long they are valid
        #[arg(long, value_name = "DIR")]
        cards: Option<PathBuf>,
    },
    /// Accept a plan for a site: check it against the site's data and sign it
    Accept {
        /// The plan file to accept
        plan: PathBuf,
        /// The site's home: its folder of keys, plans and ledgers
        #[arg(long, value_name = "DIR")]
        home: PathBuf,
        /// A folder with the other sites' cards, where the home does not have them yet
        #[arg(long, value_name = "DIR")]
        cards: Option<PathBuf>,
        #[command(flatten)]
        records: WhichRecords,
        /// Accept without asking for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Say in which fields two plans differ
    Diff {
        /// One of the two plan files
        here: PathBuf,
        /// The other of the two plan files
        there: PathBuf,
    },
}

#[derive(ClapArgs)]
struct New {
    /// The run's name: lower-case letters, digits and hyphens
    #[arg(long)]
    name: SiteName,
    /// What the columns mean
    #[arg(long, value_name = "FILE.toml")]
    schema: PathBuf,
    /// A site's card and the public number of its records, which is the number of rows of its file (`padmm schema check`); once for
    /// every site
    #[arg(long = "card", value_name = "FILE:RECORDS", required = true)]
    cards: Vec<CardAndRecords>,
    /// wait, or leave:SECONDS: what the others do about a silent site
    #[arg(long, value_name = "POLICY", default_value = "wait", value_parser = parse_silence)]
    silence: Silence,
    /// Certificate of an authority that must have issued every site's certificate, as PEM
    #[arg(long, value_name = "FILE.pem")]
    ca: Option<PathBuf>,
    #[command(flatten)]
    flags: PlanFlags,
    /// The plan file to write
    #[arg(long, value_name = "FILE.toml")]
    out: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

/// Value of `--card`: `FILE:RECORDS`.
#[derive(Clone, Debug)]
struct CardAndRecords {
    file: PathBuf,
    records: usize,
}

impl std::str::FromStr for CardAndRecords {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "it must be a card's file and a number of records, like north.toml:303".to_owned();
        let (file, records) = text.rsplit_once(':').filter(|(file, _)| !file.is_empty()).ok_or_else(wrong)?;
        Ok(Self { file: PathBuf::from(file), records: records.parse().map_err(|_| wrong())? })
    }
}

fn parse_silence(text: &str) -> Result<Silence, String> {
    let seconds = |text: &str| text.parse().ok();
    match text.split_once(':') {
        None if text == "wait" => Ok(Silence::Wait),
        Some(("leave", after)) if seconds(after).is_some() => {
            Ok(Silence::Leave { after_seconds: seconds(after).unwrap_or_default() })
        }
        _ => Err("use wait, or leave:SECONDS like leave:600".to_owned()),
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let now = padmm_node::clock::now();
    match args.action {
        Action::New(new) => make(&new, now, args.json),
        Action::Check { plan, site, cards } => {
            check::run(&Contract::read(&plan)?, site.as_ref(), cards.as_deref(), now, args.json)
        }
        Action::Accept { plan, home, cards, records, yes } => {
            accept::run(&plan, &home, cards.as_deref(), &records.choice(), yes, now, args.json)
        }
        Action::Diff { here, there } => diff(&here, &there, args.json),
    }
}

fn make(new: &New, now: SystemTime, json: bool) -> anyhow::Result<()> {
    let schema = read_schema(&new.schema)?;
    let cards: Vec<Card> = (new.cards.iter())
        .map(|given| Card::read(&given.file).with_context(|| format!("--card {}", given.file.display())))
        .collect::<Result<_, _>>()?;
    let sites = (cards.iter().zip(&new.cards))
        .map(|(card, given)| SiteEntry {
            name: card.name().clone(),
            records: given.records,
            fingerprint: card.fingerprint(),
        })
        .collect();
    let trust = match &new.ca {
        Some(path) => Some(Trust {
            ca: std::fs::read_to_string(path)
                .with_context(|| format!("--ca: '{}' cannot be read", path.display()))?,
        }),
        None => None,
    };
    let settings = new.flags.draft()?;
    let open = settings.open.clone();
    let graph = new.flags.graph()?;
    let draft = ContractDraft::new(new.name.clone(), schema, settings, sites, &graph, new.silence, trust)?;
    let contract = draft.check()?;
    for card in &cards {
        contract.check_card(card, now)?;
    }
    write_atomically(&new.out, new.force, contract.to_toml().as_bytes())?;
    let warnings: Vec<String> = cards.iter().filter_map(|card| expiry_warning(card, now)).collect();
    let (settings, reasons) = (contract.plan().settings(), outlook::reasons(&contract, &open)?);
    if json {
        return print_json(&json!({
            "plan": new.out, "hash": contract.hash(), "algorithm": settings.algorithm, "rounds": settings.rounds,
            "weights": settings.weights, "penalty": settings.penalty, "reasons": reasons, "warnings": warnings,
        }));
    }
    let warnings: String = warnings.iter().map(|warning| format!("Warning: {warning}.\n")).collect();
    print(&format!(
        "Wrote {out}: {} sites, {} edges, {}, {} rounds, {} weights{}, hash {}.\n{}{warnings}What it means for each site: padmm-site plan check {out}\n\
         Send it to all sites; each accepts it with: padmm-site plan accept {out} --home DIR --cards DIR\n",
        contract.sites().len(),
        contract.graph().n_edges(),
        settings.algorithm.name(),
        settings.rounds,
        settings.weights,
        settings.penalty.map_or(String::new(), |penalty| format!(", penalty {penalty}")),
        contract.hash(),
        reasons.iter().map(|reason| format!("Picked from public facts: {reason}.\n")).collect::<String>(),
        out = new.out.display(),
    ))
}

fn diff(here: &Path, there: &Path, json: bool) -> anyhow::Result<()> {
    let (a, b) = (Contract::read(here)?, Contract::read(there)?);
    let found = difference(&a, &b);
    if json {
        return print_json(&json!({ "same": a.hash() == b.hash(), "differences": found }));
    }
    if a.hash() == b.hash() {
        return print(&format!("The plans are the same: hash {}.\n", a.hash()));
    }
    if found.is_empty() {
        bail!("the plans have different hashes, and no field that differs was found");
    }
    let lines: String = found.iter().map(|difference| format!("{difference}\n")).collect();
    print(&format!("here is {}, there is {}\n{lines}", here.display(), there.display()))
}
