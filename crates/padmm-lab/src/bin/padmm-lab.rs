//! The project's laboratory: networks in a made-up world.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use padmm_lab::sim::{self, Bug, Extent, Layer, Report, Violation};

#[derive(Parser)]
#[command(name = "padmm-lab", about = "Tries what could go wrong")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plays schedules of crashes, lost frames, bad disks and old ledgers, and looks whether every invariant holds
    Sim(Sim),
}

#[derive(Args)]
struct Sim {
    /// How long to play
    #[arg(long, default_value_t = 120.0, conflicts_with = "hours")]
    seconds: f64,
    /// How long to play, for a night
    #[arg(long)]
    hours: Option<f64>,
    /// How many schedules to play at most
    #[arg(long)]
    schedules: Option<u64>,
    /// Play the schedule of this seed alone
    #[arg(long)]
    seed: Option<u64>,
    /// Begin with this seed
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Threads; by default one for each core
    #[arg(long)]
    threads: Option<usize>,
    /// Play connections alone, without sites: they are cut, moved and copied much more often
    #[arg(long)]
    links: bool,
    /// Something wrong on purpose, which must be found
    #[arg(long, value_enum)]
    bug: Option<Bug>,
    /// The report as JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let Command::Sim(sim) = Cli::parse().command;
    let seconds = sim.hours.map_or(sim.seconds, |hours| 3600.0 * hours);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let extent = Extent {
        layer: if sim.links { Layer::Links } else { Layer::Sites },
        seed: sim.seed.unwrap_or(sim.from),
        time: Duration::from_secs_f64(seconds),
        schedules: if sim.seed.is_some() { 1 } else { sim.schedules.unwrap_or(u64::MAX) },
        threads: if sim.seed.is_some() { 1 } else { sim.threads.unwrap_or(cores) },
    };
    let bar = progress();
    let report = sim::run(extent, sim.bug, |n| bar.set_position(n));
    bar.finish_and_clear();
    let text = match sim.json {
        true => serde_json::to_string_pretty(&report).expect("a report is JSON"),
        false => in_words(&report),
    };
    // Whoever closes the pipe has seen enough.
    let _ = writeln!(std::io::stdout(), "{text}");
    if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {pos} schedules, {per_sec}, {elapsed}");
    ProgressBar::new_spinner().with_style(style.expect("the template is one"))
}

fn in_words(report: &Report) -> String {
    let mut lines = vec![format!(
        "{} schedules ({:.0} a second and thread): {} crashes, {} old ledgers put back, {} copied homes, {} disk faults, \
         {} departures; {} ended as if nothing had been, {} had two payloads that nobody could notice",
        report.schedules,
        report.per_second,
        report.crashes,
        report.rollbacks,
        report.copied_homes,
        report.disk_faults,
        report.departures,
        report.as_if_quiet,
        report.beyond_promise,
    )];
    let violation = |v: &Violation| format!("seed {}: {}\n  {}", v.seed, v.invariant, v.schedule);
    lines.extend(report.violations.iter().map(violation));
    if report.violations.is_empty() {
        lines.push("every invariant held".to_owned());
    }
    lines.join("\n")
}
