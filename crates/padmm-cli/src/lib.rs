//! The command `padmm`: flags, then a plan, then a run, then tables and pictures.

mod cmd;
pub mod lab;
mod out_folder;
mod plot;
mod report;
mod reproduce;
mod settings;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use lab::Lab;
use std::process::ExitCode;

/// Differentially private ADMM between sites that may not pool their records.
#[derive(Parser)]
#[command(version)]
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
    /// Try real sites out: several processes on this machine, with keys, plan, ledgers and an encrypted network
    Demo(cmd::demo::Args),
    /// One site: make its keys and card, exchange cards, renew them, run a plan
    Site(cmd::site::Args),
    /// What sites agree to: make a plan, see what it costs, accept it, compare two
    Plan(Box<cmd::plan::Args>),
    /// What a site has spent and released: show, verify or export it, or set the site's cap
    Ledger(cmd::ledger::Args),
    /// What can be run, what each algorithm needs and what it guarantees
    Algorithms(cmd::algorithms::Args),
    /// From noise to epsilon and back, without data
    Account(cmd::account::Args),
    /// What the convergence theorems say about a network, and whether they say anything
    Theory(cmd::theory::Args),
    /// List, describe or export the data sets that are built in
    Data(cmd::data::Args),
    /// Draft a schema for a file, or check a file against one
    Schema(cmd::schema::Args),
    /// Attack this program: whether its releases tell more about a record than is promised
    Audit(cmd::audit::Args),
    /// This program against its peers and the machine, on the same work in one go
    Bench(cmd::bench::Args),
    /// Apply a saved model to a file
    Predict(cmd::predict::Args),
    /// Score a saved model on a file with labels
    Evaluate(cmd::evaluate::Args),
}

/// The command as it is shipped.
pub fn main() -> ExitCode {
    main_in(&Lab::default())
}

/// The command in a made-up world. A program that calls it with anything but the default is for tests.
pub fn main_in(lab: &Lab) -> ExitCode {
    let parsed = lab.extend(Cli::command()).try_get_matches().and_then(|matches| {
        let lab = lab.read(&matches);
        Ok((Cli::from_arg_matches(&matches)?, lab))
    });
    let (cli, lab) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refuse(&error),
    };
    let result = match cli.command {
        Command::Simulate(args) => cmd::simulate::run(*args),
        Command::Reproduce(args) => cmd::reproduce::run(&args),
        Command::Report(args) => cmd::report::run(&args),
        Command::Demo(args) => cmd::demo::run(&args, &lab),
        Command::Site(args) => match cmd::site::run(args, &lab) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Audit(args) => match cmd::audit::run(&args, &lab) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Plan(args) => cmd::plan::run(*args),
        Command::Ledger(args) => cmd::ledger::run(args),
        Command::Algorithms(args) => cmd::algorithms::run(&args),
        Command::Account(args) => cmd::account::run(&args),
        Command::Theory(args) => cmd::theory::run(args),
        Command::Data(args) => cmd::data::run(args),
        Command::Schema(args) => cmd::schema::run(args),
        Command::Bench(args) => cmd::bench::run(&args),
        Command::Predict(args) => cmd::predict::run(args),
        Command::Evaluate(args) => cmd::evaluate::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", paragraph(&format!("error: {error:#}")));
            ExitCode::from(FAILED)
        }
    }
}

/// What the command exits with that could not do what it was asked for.
pub(crate) const FAILED: u8 = 2;

/// Flags that do not parse are told like every other error: one paragraph, exit code 2. Help and version are no errors.
fn refuse(error: &clap::Error) -> ExitCode {
    let help = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    if help.contains(&error.kind()) {
        error.exit();
    }
    let text = error.render().to_string();
    let parts = text.trim().split("\n\n").map(paragraph).filter(|part| !part.starts_with("Usage:"));
    eprintln!("{}", parts.collect::<Vec<_>>().join("; ").replace("; For more", "; for more"));
    ExitCode::from(FAILED)
}

/// The text on one line, with single spaces.
fn paragraph(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
