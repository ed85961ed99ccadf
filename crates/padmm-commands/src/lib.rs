//! What the commands `padmm` and `padmm-site` share: how they talk to a terminal, the charts and pages that they write, and the
//! subcommands that need neither a network nor a simulator.
//!
//! | question | module |
//! |---|---|
//! | errors, exit codes, standard output | [`terminal`] |
//! | tables and progress bars | [`table`], [`progress`] |
//! | the folder that a command writes to | [`out_folder`] |
//! | charts as SVG and CSV, and report pages | [`chart`], [`page`] |
//! | the flags of settings | [`flags`] |
//! | what a demonstration of sites came to | [`demo`] |
//! | what `--help` says about a subcommand | [`about`] |
//! | `account`, `advise`, `schema`, `data`, `predict`, `evaluate`, `own` | [`cmd`] |

#![warn(clippy::unwrap_used)]
// What is shown goes through the one place that makes it printable.
#![warn(clippy::print_stderr)]

pub mod about;
pub mod chart;
pub mod cmd;
pub mod demo;
pub mod flags;
pub mod out_folder;
pub mod page;
pub mod progress;
pub mod table;
pub mod terminal;
