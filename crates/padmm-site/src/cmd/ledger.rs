//! `padmm ledger`: what a site has spent and released, for its review board, and the site's cap.

use anyhow::Context;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use comfy_table::Table;
use padmm_commands::table::{align_right, plain};
use padmm_commands::terminal::{print, print_json};
use padmm_core::printable::printable_json;
use padmm_data::write_atomically;
use padmm_node::ledger::{LedgerView, RunState, SiteLedger, Verified, to_csv, to_json, verify};
use padmm_privacy::words::{delta_text, epsilon_text};
use padmm_privacy::{Budget, Delta, Promise, Stopping};
use serde_json::{Value, json};
use std::path::PathBuf;

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
    /// Say in words and tables what was spent and released; also while a run is going
    Show {
        /// The ledger file of the data set
        ledger: PathBuf,
    },
    /// Check that the ledger is as it was written; also while a run is going
    Verify {
        /// The ledger file of the data set
        ledger: PathBuf,
        /// Write a missing head file again and note that in the ledger; only if you know that no entry is missing at its end
        #[arg(long)]
        restore_head: bool,
    },
    /// Write every entry, with what left the site, as a table or as JSON
    Export {
        /// The ledger file of the data set
        ledger: PathBuf,
        /// Form of the output
        #[arg(long, value_enum)]
        format: Format,
        /// The file to write; standard output without it
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
    /// Set what all runs on the data set together may spend; not while a run is going
    Cap {
        /// The ledger file of the data set
        ledger: PathBuf,
        /// What all runs together may spend from now on
        #[arg(long)]
        epsilon: f64,
        /// The delta at which it holds; the present one without it
        #[arg(long)]
        delta: Option<f64>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A table, one line an entry
    Csv,
    /// One JSON object with all entries
    Json,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    match args.action {
        Action::Show { ledger } => {
            let view = SiteLedger::read(&ledger)?;
            if args.json { print_json(&summary(&view)) } else { print(&show(&view)) }
        }
        Action::Verify { ledger, restore_head } => {
            if restore_head {
                drop(SiteLedger::restore_head(&ledger)?);
            }
            let found = verify(&ledger)?;
            if args.json { print_json(&verified(&found)) } else { print(&sentence(&ledger, &found)) }
        }
        Action::Export { ledger, format, out, force } => {
            let view = SiteLedger::read(&ledger)?;
            // What left is exported as the bytes that left.
            let text = match format {
                Format::Csv => to_csv(&view, &integers),
                Format::Json => printable_json(&format!("{:#}\n", to_json(&view, &integers))).into_owned(),
            };
            let Some(out) = out else { return print(&text) };
            write_atomically(&out, force, text.as_bytes())?;
            let n = view.entries().len();
            if args.json {
                return print_json(&json!({ "out": out, "entries": n }));
            }
            print(&format!("Wrote {n} entries to {}.\n", out.display()))
        }
        Action::Cap { ledger, epsilon, delta } => {
            let mut site = SiteLedger::open(&ledger)?;
            let from = site.cap();
            let delta = delta.unwrap_or(from.delta.value());
            let to = Budget::new(epsilon, delta).context("the cap is not changed")?;
            site.change_cap(to)?;
            let spent = site.epsilon_spent().value();
            if args.json {
                return print_json(&json!({ "from": from, "to": to, "epsilon_spent": spent }));
            }
            print(&cap_sentence(from, to, spent))
        }
    }
}

fn cap_sentence(from: Budget, to: Budget, spent: f64) -> String {
    let text = if from == to {
        format!("The cap stays {}.", budget(to))
    } else {
        format!("The cap was {} and is now {}.", budget(from), budget(to))
    };
    let rest = if spent > to.epsilon.value() {
        " That is more than the cap: nothing more will be released."
    } else {
        ""
    };
    let config = if from == to {
        ""
    } else {
        " Write the same into [cap] of site.toml: a site runs only if both agree."
    };
    format!("{text} Spent so far: ε = {}.{rest}{config}\n", epsilon_text(spent))
}

fn sentence(path: &std::path::Path, found: &Verified) -> String {
    format!(
        "{} is as it was written: {} entries, {} runs, {} releases, {} rounds forfeited; ε spent is {}. The last entry has the hash \
         {}.\n",
        path.display(),
        found.entries,
        found.runs,
        found.releases,
        found.forfeited,
        epsilon_text(found.epsilon_spent),
        found.head.hash,
    )
}

fn verified(found: &Verified) -> Value {
    json!({
        "entries": found.entries, "runs": found.runs, "releases": found.releases, "forfeited": found.forfeited,
        "epsilon_spent": found.epsilon_spent, "head": found.head.hash.to_string(),
    })
}

fn budget(budget: Budget) -> String {
    format!("ε = {} at δ = {}", budget.epsilon, delta_text(budget.delta.value()))
}

/// The first digits of a hash.
fn short(run: &str) -> String {
    run.chars().take(12).collect()
}

fn show(view: &LedgerView) -> String {
    let state = view.state();
    let (cap, spent) = (state.cap(), state.epsilon_spent().value());
    let mut text = format!(
        "Ledger of the data set {:?}, opened {} by {}\n\nCap: {}\nSpent by all runs together: ε = {} (exact composition, rounded up)\n",
        state.opened().data_set,
        state.opened_at(),
        state.opened().program,
        budget(cap),
        epsilon_text(spent),
    );
    text += &format!("Fingerprint of the records (keyed): {}\n\n", state.fingerprint());
    if state.runs().next().is_none() {
        text += "No run yet: nothing has left.\n";
    } else {
        text += &format!("{}\n", table(view, cap.delta));
    }
    for run in state.runs().filter(|run| !run.forfeited().is_empty()) {
        let rounds: Vec<String> = run.forfeited().iter().map(u32::to_string).collect();
        text += &format!(
            "Charged in run {} and nothing left: round {}.\n",
            short(&run.start.run),
            rounds.join(", ")
        );
    }
    text + &format!("\n{}\n", promise(view).statement())
}

/// What all runs together promise. The ledger does not know what the solvers of its runs could do, so nothing is promised about that.
fn promise(view: &LedgerView) -> Promise {
    let (spent, delta) = (view.state().epsilon_spent().value(), view.state().cap().delta.value());
    let subject = "Everything that has left this site, computed from these records in all runs together,";
    Promise::new(subject, spent, delta, Stopping::SolverMayStall)
}

fn table(view: &LedgerView, delta: Delta) -> Table {
    let header = ["run", "plan", "started", "last entry", "rounds", "ε of the run", "bytes", "lost", "state"];
    let mut table = plain(header);
    for run in view.state().runs() {
        let lost: Vec<&str> = run.losses.iter().map(|loss| loss.neighbour.as_str()).collect();
        table.add_row([
            short(&run.start.run),
            run.start.plan_name.clone(),
            run.started_at.clone(),
            run.last_at.clone(),
            format!("{} of {}", run.n_released(), run.start.rounds),
            epsilon_text(run.spending.epsilon(delta).value()),
            run.bytes.to_string(),
            if lost.is_empty() { "none".to_owned() } else { lost.join(", ") },
            if run.is_finished { "finished" } else { "not finished" }.to_owned(),
        ]);
    }
    align_right(&mut table, [5, 6]);
    table
}

fn summary(view: &LedgerView) -> Value {
    let state = view.state();
    let delta = state.cap().delta;
    let run = |run: &RunState| {
        let lost: Vec<Value> = (run.losses.iter())
            .map(|loss| {
                let turn = loss.turn;
                json!({ "neighbour": loss.neighbour, "stage": turn.stage.number(), "turn": turn.number })
            })
            .collect();
        json!({
            "run": run.start.run, "plan_name": run.start.plan_name, "site": run.start.site, "rounds": run.start.rounds,
            "planned": { "epsilon_exact": run.start.epsilon_exact, "delta": run.start.delta }, "noise": run.start.noise,
            "started_at": run.started_at, "last_at": run.last_at, "released": run.n_released(),
            "forfeited": run.forfeited(), "epsilon_exact": run.spending.epsilon(delta), "rho": run.spending.rho(),
            "bytes": run.bytes, "lost": lost, "finished": run.is_finished,
        })
    };
    let runs: Vec<Value> = state.runs().map(run).collect();
    json!({
        "data_set": state.opened().data_set, "opened_at": state.opened_at(), "program": state.opened().program,
        "format": state.opened().format, "fingerprint": state.fingerprint(), "cap": state.cap(),
        "epsilon_spent": state.epsilon_spent(), "rho_spent": state.spending().rho(), "entries": view.head().seq,
        "head": view.head().hash.to_string(), "runs": runs, "statement": promise(view).statement(),
    })
}

/// The integers of a release, from the bytes that left.
fn integers(bytes: &[u8]) -> Option<Vec<i64>> {
    match padmm_node::site::open_release(bytes) {
        Ok(padmm_privacy::Payload::Grid { values, .. }) => Some(values),
        _ => None,
    }
}
