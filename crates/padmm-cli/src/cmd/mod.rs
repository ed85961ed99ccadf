//! One file a subcommand: its arguments, and `run`.

pub mod account;
pub mod data;
pub mod evaluate;
pub mod predict;
pub mod schema;
pub mod simulate;
pub mod theory;

use std::io::{ErrorKind, Write};

/// What is said wherever numbers that were computed from records are shown.
pub const OWN_EYES: &str =
    "These numbers are computed from records and are not private: they are for this site's own eyes.";

/// Writes to standard output. A reader that went away, such as `head`, is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes one JSON object to standard output.
pub fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    print(&format!("{value:#}\n"))
}
