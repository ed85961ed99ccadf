//! The program `padmm-site`: one program, which is linked once and whose tests run side by side.

mod audit;
mod common;
mod data_commands;
mod dependencies;
mod doctor;
mod ledger;
mod neighbouring_files;
#[path = "common/pair.rs"]
mod pair;
mod plan_commands;
mod shared;
mod site_commands;
mod status;
mod texts;
