//! What a site writes down about its own doing: log lines, and every payload that leaves. Never a record, never a vector that
//! was not released.

use padmm_core::message::Stage;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The course of things.
    Info,
    /// Somebody should look.
    Warning,
    /// The site stops.
    Error,
}

impl Level {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// A payload that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The neighbour's place in the contract.
    pub to: usize,
    /// Part of the run.
    pub stage: Stage,
    /// Turn.
    pub turn: u32,
    /// The very bytes.
    pub bytes: &'a [u8],
    /// Whether it was sent before: the same bytes, free of charge.
    pub again: bool,
}

/// Where it is written.
pub trait Journal: Send + Sync {
    /// One line of the log; `event` is a short name for programs that read it.
    fn log(&self, level: Level, event: &'static str, message: &str);

    /// Called before a payload is handed to the transport.
    fn sent(&self, sent: &Sent<'_>);
}
