//! The page of `padmm reproduce`.

use std::collections::BTreeMap;

use padmm_commands::page::{Block, CalloutKind, Column, Page, Table};
use padmm_privacy::words::epsilon_text;
use padmm_sim::record::{PrivacyRecord, Record};

use super::measures::excess_text;
use super::{callout, footer, repeat, section};
use crate::cmd::reproduce::Drawn;
use crate::reproduce::experiment::{Case, Shows};
use crate::reproduce::figures::Curve;
use crate::reproduce::runs::Store;

pub(crate) fn reproduction(
    drawn: &[Drawn],
    cases: &[Case],
    records: &BTreeMap<String, Record>,
    command: &str,
) -> anyhow::Result<Page> {
    let any = records.values().next().expect("an experiment has records");
    let mut sections = vec![section(
        "What this is",
        vec![
            Block::Text(
                "The figures of \"Differentially Private ADMM for Distributed Medical Machine Learning\" on the real data, and some \
                 that the paper does not have. Every method is charged for what it provably spends, every method has the \
                 penalty that is best for it on one and the same grid, and methods whose papers only add up ε are shown both \
                 ways: with the best valid accounting and with basic composition."
                    .into(),
            ),
            callout(
                CalloutKind::Note,
                "What is compared",
                "Average loss is the paper's measure: the mean over agents of the loss of each agent's model on its own records, \
                       without the regulariser. Curves are computed from all records and exist in a simulation only; so does the choice \
                       of the penalties, which looks at records without any privacy, for every method alike.",
            ),
        ],
    )];
    for d in drawn {
        let own: Vec<&Case> = cases.iter().filter(|c| c.experiment == d.experiment.name).collect();
        let blocks = vec![
            Block::Text(d.experiment.claim.clone()),
            Block::Figure(Box::new(d.figure.clone()), d.experiment.name.clone()),
            Block::Table(ends(d)),
            Block::Table(setting_table(d, &own, records)?),
            Block::Command(format!("padmm reproduce {}", d.experiment.name)),
        ];
        sections.push(section(&d.experiment.title, blocks));
    }
    sections.push(section("Repeat and cite", repeat(command)));
    Ok(Page {
        title: "Private ADMM, reproduced".into(),
        subtitle: format!("{} simulated settings, {} figures.", records.len(), drawn.len()),
        sections,
        footer: footer(any),
    })
}

/// Where every curve of a figure ends.
fn ends(d: &Drawn) -> Table {
    let is_privacy = |panel: &str| {
        d.experiment.panels.iter().any(|p| p.title == panel && p.shows == Shows::EpsilonByRound)
    };
    let row = |c: &Curve| {
        let last = |v: &[f64]| v.last().copied().unwrap_or(f64::NAN);
        vec![
            c.panel.clone(),
            c.label.clone(),
            last(&c.x).to_string(),
            format!("{:.4}", last(&c.mean)),
            format!("{:.4}", last(&c.std)),
        ]
    };
    Table {
        caption: "Where every line ends".into(),
        columns: vec![
            Column::text("panel"),
            Column::text("line"),
            Column::number("at"),
            Column::number("mean"),
            Column::number("standard deviation"),
        ],
        // Where ε ends is the budget; the table of settings has it.
        rows: d.curves.iter().filter(|c| !is_privacy(&c.panel)).map(row).collect(),
        highlight: vec![],
    }
}

/// Penalty and privacy of every setting of an experiment.
fn setting_table(d: &Drawn, cases: &[&Case], records: &BTreeMap<String, Record>) -> anyhow::Result<Table> {
    let mut rows: Vec<Vec<String>> = vec![];
    for case in cases {
        let record = &records[&Store::key(case)?];
        let epsilon = |f: fn(&PrivacyRecord) -> f64| {
            record.privacy.as_ref().map_or("–".to_owned(), |p| epsilon_text(f(p)))
        };
        let series = d.experiment.find(&case.series).map_or(String::new(), |s| s.label.clone());
        let row = vec![
            series,
            d.experiment.point_name(case.point),
            format!("{:.3e}", record.setting.penalty),
            epsilon(|p| p.epsilon_exact),
            epsilon(|p| p.epsilon_paper),
            format!("{:.4}", record.summary.model_loss.mean),
            excess_text(record.excess_loss()),
            excess_text(record.excess_objective()),
        ];
        if rows.last() != Some(&row) && !case_is_repeated(&rows, &row) {
            rows.push(row);
        }
    }
    let swept = d.experiment.sweep.as_ref().map_or("", |s| &s.label);
    Ok(Table {
        caption: "Settings: the penalty that was best on the grid, and ε at the end by the best valid and by each method's own accounting".into(),
        columns: vec![
            Column::text("line"),
            Column::text(swept),
            Column::number("penalty"),
            Column::number("ε, best valid"),
            Column::number("ε, own paper's"),
            Column::number("loss of the model kept"),
            Column::number("excess loss"),
            Column::number("excess objective"),
        ],
        rows,
        highlight: vec![],
    })
}

/// A case whose records are split again for each run gives one row, that of its first run.
fn case_is_repeated(rows: &[Vec<String>], row: &[String]) -> bool {
    rows.iter().any(|r| r[..2] == row[..2])
}
