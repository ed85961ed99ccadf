//! The command `padmm-bench`: this program against its peers and against the machine.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use padmm_data::write_atomically;
use padmm_lab::bench::case::Case;
use padmm_lab::bench::{self, Bench, Report, Row};

/// This program against its peers and the machine, on the same work in one go.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The local solve against scikit-learn's solvers, cold and warm
    Solve(How),
    /// A whole run against a numpy/scipy program, Flower's round and diffprivlib's loss; all algorithms
    Run(How),
    /// Growth with agents, records and columns, and the distance from the machine's limits
    Scale(How),
    /// Everything above, in one report
    All(How),
    /// One piece of work in this process, as JSON; the others start themselves so
    #[command(hide = true)]
    Case {
        /// The case, as JSON
        case: String,
    },
}

#[derive(clap::Args)]
struct How {
    /// Fewer repetitions, and peers on smaller data
    #[arg(long)]
    quick: bool,
    /// Folder for the peers' Python environments, which are made if they are missing, and for what they read
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    work: PathBuf,
    /// Also write the JSON object to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show no progress while it runs
    #[arg(long, short)]
    quiet: bool,
}

fn main() -> ExitCode {
    match run(&Cli::parse().what) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            // What clap exits with too, and the commands.
            ExitCode::from(2)
        }
    }
}

fn run(what: &What) -> anyhow::Result<()> {
    let how = match what {
        What::Case { case } => {
            let case: Case = serde_json::from_str(case).context("that is no case")?;
            return print_json(&serde_json::to_value(case.measure()?)?);
        }
        What::Solve(how) | What::Run(how) | What::Scale(how) | What::All(how) => how,
    };
    let spinner = if how.quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    spinner.set_style(
        ProgressStyle::with_template("{spinner} {elapsed}  {msg}").expect("the template is well formed"),
    );
    spinner.enable_steady_tick(Duration::from_millis(500));
    let watch = |what: &str| spinner.set_message(what.to_owned());
    let settings = Bench { folder: how.work.clone(), quick: how.quick, watch: &watch };
    let report = match what {
        What::Solve(_) => bench::solve(&settings)?,
        What::Run(_) => bench::run(&settings)?,
        What::Scale(_) => bench::scale(&settings)?,
        _ => {
            let mut all = Report::default();
            all.include("solve", bench::solve(&settings)?);
            all.include("run", bench::run(&settings)?);
            all.include("scale", bench::scale(&settings)?);
            all
        }
    };
    spinner.finish_and_clear();
    let json = report.json();
    if let Some(path) = &how.out {
        write_atomically(path, true, format!("{json:#}\n").as_bytes())?;
    }
    if how.json { print_json(&json) } else { print(&table(&report)) }
}

/// Writes to standard output. A reader that went away, such as `head`, is no error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    print(&format!("{value:#}\n"))
}

fn table(report: &Report) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "work",
        "ours",
        "one thread",
        "memory",
        "fastest peer",
        "peer",
        "memory",
        "peer/ours",
        "ours/limit",
        "value",
        "target",
        "",
    ]);
    let or_empty = |text: Option<String>| text.unwrap_or_default();
    let number = |v: f64| if v != 0.0 && v.abs() < 1e-3 { format!("{v:.1e}") } else { format!("{v:.3}") };
    for Row {
        work,
        seconds,
        one_thread_seconds,
        peak_bytes,
        peer,
        peer_seconds,
        peer_peak_bytes,
        ratio_to_best_peer,
        ratio_to_limit,
        value,
        target,
    } in &report.rows
    {
        table.add_row([
            work.clone(),
            or_empty(seconds.map(time)),
            or_empty(one_thread_seconds.map(time)),
            or_empty(peak_bytes.map(memory)),
            peer.clone().unwrap_or_default(),
            or_empty(peer_seconds.map(time)),
            or_empty(peer_peak_bytes.map(memory)),
            or_empty(ratio_to_best_peer.map(|r| format!("{r:.1}"))),
            or_empty(ratio_to_limit.map(|r| format!("{r:.2}"))),
            or_empty(value.map(number)),
            or_empty(target.as_ref().map(|t| t.text.clone())),
            or_empty(target.as_ref().map(|t| if t.met { "met" } else { "NOT MET" }.to_owned())),
        ]);
    }
    for column in [1, 2, 3, 5, 6, 7, 8, 9] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{table}\n")
}

/// A time with a unit that suits it.
fn time(seconds: f64) -> String {
    match seconds {
        t if t >= 1.0 => format!("{t:.2} s"),
        t if t >= 1e-3 => format!("{:.2} ms", t * 1e3),
        t => format!("{:.1} µs", t * 1e6),
    }
}

fn memory(bytes: f64) -> String {
    format!("{:.0} MB", bytes / 1e6)
}
