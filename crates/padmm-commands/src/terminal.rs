//! Standard output, errors and exit codes, the same for every command.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::error::ErrorKind as ClapErrorKind;
use padmm_core::printable::{printable, printable_json, printable_lines};
use padmm_core::settings::{Setting, as_flags};
use serde::Serialize;

/// Exit code of a command that could not do what it was asked for.
pub const FAILED: u8 = 2;

/// Writes text to standard output, in which nothing but line breaks can move what a terminal shows. A line break in a text of others is
/// for the caller to replace (`printable`). A reader that went away, such as `head`, is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    write(&printable_lines(text))
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes one JSON object to standard output.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    write(&printable_json(&format!("{}\n", serde_json::to_string_pretty(value)?)))
}

/// Writes to standard error, for people; like [`print()`].
pub fn warn(text: &str) {
    // Whoever closed it does not want to be warned.
    let _ = std::io::stderr().lock().write_all(printable_lines(text).as_bytes());
}

/// Sets the number of threads to `--threads`, if the flag was given.
pub fn start_threads(threads: Option<usize>) -> anyhow::Result<()> {
    let Some(n) = threads else { return Ok(()) };
    anyhow::ensure!(n > 0, "--threads must be at least 1");
    rayon::ThreadPoolBuilder::new().num_threads(n).build_global().context("the threads cannot be started")
}

/// The exit code of a command; an error is told in one paragraph on standard error. Libraries name settings as files do; here those of
/// `known` become flags.
pub fn exit_code(result: anyhow::Result<ExitCode>, known: &[Setting]) -> ExitCode {
    result.unwrap_or_else(|error| {
        warn(&format!("{}\n", paragraph(&as_flags(&format!("error: {error:#}"), known))));
        ExitCode::from(FAILED)
    })
}

/// Flags that do not parse are told like every other error: one paragraph, exit code 2. Help and version are no errors.
pub fn refuse_flags(error: &clap::Error) -> ExitCode {
    let help = [
        ClapErrorKind::DisplayHelp,
        ClapErrorKind::DisplayVersion,
        ClapErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    if help.contains(&error.kind()) {
        error.exit();
    }
    let text = error.render().to_string();
    let parts = text.trim().split("\n\n").map(paragraph).filter(|part| !part.starts_with("Usage:"));
    warn(&format!("{}\n", parts.collect::<Vec<_>>().join("; ").replace("; For more", "; for more")));
    ExitCode::from(FAILED)
}

/// The text on one line, with single spaces; what others wrote in it cannot begin another.
fn paragraph(text: &str) -> String {
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}
