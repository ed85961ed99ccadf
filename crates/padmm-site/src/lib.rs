//! The command `padmm-site`: everything that a site needs to take part in a network, for its people to install and approve.
//!
//! It holds no simulator and no noise but the exact one. [`main_with`] lets a test program change that, by passing [`TestHooks`] that
//! only such a program can make.

#![warn(clippy::unwrap_used)]
// What is shown goes through the one place that makes it printable.
#![warn(clippy::print_stderr)]

mod cmd;
mod network;
mod status;
pub mod test_hooks;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use padmm_commands::about;
use padmm_commands::cmd::{self as shared, Shared};
use padmm_commands::terminal::{exit_code, refuse_flags};
use padmm_core::settings::plan_settings;
use test_hooks::TestHooks;

/// A site of a network that computes a model with differential privacy: its keys, plans, runs and ledgers.
#[derive(Parser)]
#[command(name = "padmm-site", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(about = about::SITE)]
    Site(cmd::site::Args),
    #[command(about = about::PLAN)]
    Plan(Box<cmd::plan::Args>),
    #[command(about = about::LEDGER)]
    Ledger(cmd::ledger::Args),
    #[command(about = about::DOCTOR)]
    Doctor(cmd::doctor::Args),
    #[command(about = about::AUDIT)]
    Audit(cmd::audit::Args),
    #[command(about = about::DEMO)]
    Demo(cmd::demo::Args),
    #[command(flatten)]
    Shared(Shared),
}

/// The command as it is shipped.
pub fn main() -> ExitCode {
    main_with(&TestHooks::default())
}

/// The command with hooks. A program that passes anything but the default is for tests.
pub fn main_with(hooks: &TestHooks) -> ExitCode {
    let parsed = hooks.extend(Cli::command()).try_get_matches().and_then(|matches| {
        let hooks = hooks.read(&matches);
        Ok((Cli::from_arg_matches(&matches)?, hooks))
    });
    match parsed {
        Ok((cli, hooks)) => exit_code(run(cli.command, &hooks), &plan_settings(&padmm_core::algorithm::ALL)),
        Err(error) => refuse_flags(&error),
    }
}

fn run(command: Command, hooks: &TestHooks) -> anyhow::Result<ExitCode> {
    match command {
        Command::Site(args) => return cmd::site::run(args, hooks),
        Command::Doctor(args) => return cmd::doctor::run(&args),
        Command::Audit(args) => return cmd::audit::run(&args, hooks),
        Command::Plan(args) => cmd::plan::run(*args),
        Command::Ledger(args) => cmd::ledger::run(args),
        Command::Demo(args) => cmd::demo::run(&args, hooks),
        Command::Shared(command) => shared::run(command),
    }?;
    Ok(ExitCode::SUCCESS)
}
