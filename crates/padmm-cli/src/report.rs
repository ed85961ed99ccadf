//! Report pages, made from records alone: what was run, what it cost in words, figures, tables, how to cite, how to repeat.

mod command;
mod comparison;
mod measures;
mod reproduction;
mod simulation;

pub(crate) use comparison::comparison;
pub(crate) use measures::{MEASURES, measures};
pub(crate) use reproduction::reproduction;
pub(crate) use simulation::{simulated_noise, simulation};

use padmm_commands::page::{Block, CalloutKind, Section};
use padmm_sim::record::Record;

fn section(title: &str, blocks: Vec<Block>) -> Section {
    Section { title: title.to_owned(), blocks }
}

fn callout(kind: CalloutKind, title: &str, text: &str) -> Block {
    Block::Callout { kind, title: title.to_owned(), text: text.to_owned() }
}

fn repeat(command: &str) -> Vec<Block> {
    vec![
        Block::Text("The same numbers, to the last digit, come from this command:".into()),
        Block::Command(command.to_owned()),
        cite(),
    ]
}

fn cite() -> Block {
    Block::List(vec![
        "J. Ding, X. Qin, W. Xu, Y. Gong, C. Zhang, M. Pan: Differentially Private ADMM for Distributed Medical Machine Learning.".into(),
        format!("padmm {}, differentially private ADMM between sites that may not pool their records.", env!("CARGO_PKG_VERSION")),
        "Data: B. Becker, R. Kohavi: Adult (1996), and A. Janosi, W. Steinbrunn, M. Pfisterer, R. Detrano: Heart Disease (1989), UCI Machine Learning Repository, CC BY 4.0.".into(),
    ])
}

fn footer(record: &Record) -> String {
    format!(
        "padmm {}. Curves and losses are computed from all records and exist in a simulation only. Noise: {}.",
        record.version, record.noise_source
    )
}
