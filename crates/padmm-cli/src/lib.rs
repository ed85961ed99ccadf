//! The command `padmm`: flags, then a plan, then a simulation, then tables and pictures. What real sites do is done by `padmm-site`,
//! which this command starts for whoever asks it for `site`, `plan`, `ledger`, `doctor` or `audit`, as it starts `padmm-relay` for `relay`.

#![warn(clippy::unwrap_used)]
// What is shown goes through the one place that makes it printable.
#![warn(clippy::print_stderr)]

mod cmd;
mod handover;
mod plot;
mod png;
mod report;
mod reproduce;
mod settings;

pub use cmd::demo::compare;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use padmm_commands::about;
use padmm_commands::cmd::{self as shared, Shared};
use padmm_commands::terminal::{exit_code, refuse_flags};

/// Differentially private ADMM between sites that may not pool their records.
#[derive(Parser)]
#[command(name = "padmm", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a whole network in one process
    Simulate(Box<cmd::simulate::Args>),
    /// The paper's figures on the real data, all methods at equal privacy, and more
    Reproduce(cmd::reproduce::Args),
    /// A report page from the records of earlier runs, to compare them
    Report(cmd::report::Args),
    #[command(about = about::DEMO)]
    Demo(cmd::demo::Args),
    /// What can be run, what each algorithm needs and what it guarantees
    Algorithms(cmd::algorithms::Args),
    /// What the convergence theorems say about a network, and whether they say anything
    Theory(cmd::theory::Args),
    #[command(flatten)]
    Shared(Shared),
}

/// The command, from its arguments to its exit code.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if handover::is_asked_for(&args) {
        return exit_code(handover::run(&args), &[]);
    }
    let matches = handover::list(Cli::command()).try_get_matches();
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => exit_code(run(cli.command), &settings::all_settings()),
        Err(error) => refuse_flags(&error),
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Simulate(args) => cmd::simulate::run(*args),
        Command::Reproduce(args) => cmd::reproduce::run(&args),
        Command::Report(args) => cmd::report::run(&args),
        Command::Demo(args) => return cmd::demo::run(&args),
        Command::Algorithms(args) => cmd::algorithms::run(&args),
        Command::Theory(args) => cmd::theory::run(args),
        Command::Shared(command) => shared::run(command),
    }?;
    Ok(ExitCode::SUCCESS)
}
