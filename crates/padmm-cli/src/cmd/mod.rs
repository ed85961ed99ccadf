//! One file a subcommand: its arguments, and `run`.

pub(crate) mod algorithms;
pub(crate) mod demo;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod simulate;
pub(crate) mod theory;
