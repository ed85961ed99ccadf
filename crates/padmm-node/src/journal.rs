//! What a site writes down about its own doing: log lines, and every payload that leaves. Never a record, never a vector that
//! was not released.

use std::path::PathBuf;

use padmm_core::message::{SiteIndex, Turn};
use strum::IntoStaticStr;

/// How much attention a line of the log asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Level {
    /// The ordinary course of a run.
    Info,
    /// Somebody at the site should look at it.
    Warning,
    /// The site stops because of it.
    Error,
}

impl Level {
    /// The lower-case word that log lines carry.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A payload that is about to leave the site.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The neighbour that it is sent to.
    pub to: SiteIndex,
    /// Whose message it is: this site's own, or one that it passes on.
    pub whose: SiteIndex,
    /// When in the run it is sent for the first time.
    pub turn: Turn,
    /// The whole frame, as it travels.
    pub bytes: &'a [u8],
    /// Whether it was sent before: the same bytes, free of charge.
    pub again: bool,
}

/// Where a site writes its log and what left it.
pub trait Journal: Send + Sync {
    /// One line of the log; `event` is a short name for programs that read it.
    fn log(&self, level: Level, event: &'static str, message: &str);

    /// Called before a payload is handed to the transport, which gets it only if it was written down.
    fn sent(&self, sent: &Sent<'_>) -> Result<(), EgressError>;
}

/// What is about to leave could not be written down, so it does not leave.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "what leaves this site cannot be written down in {path} ({reason}), so nothing more leaves; make room or give the site's user the right to write there, and start again: nothing is lost or charged twice",
    path = path.display()
)]
pub struct EgressError {
    /// The list of what left.
    pub path: PathBuf,
    /// What the operating system says.
    pub reason: String,
}
