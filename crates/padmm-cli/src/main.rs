//! The command `padmm`.

mod cmd;
mod out_folder;
mod plot;
mod report;
mod reproduce;
mod settings;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
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
    /// Apply a saved model to a file
    Predict(cmd::predict::Args),
    /// Score a saved model on a file with labels
    Evaluate(cmd::evaluate::Args),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let result = match cli.command {
        Command::Simulate(args) => cmd::simulate::run(*args),
        Command::Reproduce(args) => cmd::reproduce::run(&args),
        Command::Report(args) => cmd::report::run(&args),
        Command::Algorithms(args) => cmd::algorithms::run(&args),
        Command::Account(args) => cmd::account::run(&args),
        Command::Theory(args) => cmd::theory::run(args),
        Command::Data(args) => cmd::data::run(args),
        Command::Schema(args) => cmd::schema::run(args),
        Command::Predict(args) => cmd::predict::run(args),
        Command::Evaluate(args) => cmd::evaluate::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", paragraph(&format!("error: {error:#}")));
            ExitCode::from(2)
        }
    }
}

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
    ExitCode::from(2)
}

/// The text on one line, with single spaces.
fn paragraph(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
