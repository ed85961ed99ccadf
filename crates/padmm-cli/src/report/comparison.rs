//! The page that compares several records.

use std::path::{Path, PathBuf};

use padmm_commands::chart::{Figure, Panel, Series, Style};
use padmm_commands::page::{Block, Column, Page, Table};
use padmm_privacy::words::epsilon_text;
use padmm_sim::record::{MeanStd, PrivacyRecord, Record};

use super::command::simulate_command;
use super::measures::excess_text;
use super::simulation::{facts, guarantee};
use super::{cite, footer, section};
use crate::plot;
use crate::reproduce::figures::optimum_line;

/// The page that compares several records.
pub(crate) fn comparison(records: &[(PathBuf, Record)]) -> Page {
    let names = names(records);
    let blocks = vec![
        Block::Figure(Box::new(comparison_figure(records, &names)), "comparison".into()),
        Block::Table(comparison_table(records, &names)),
    ];
    let mut sections = vec![section("Comparison", blocks)];
    for ((path, record), name) in records.iter().zip(&names) {
        let mut blocks = vec![Block::Facts(facts(record))];
        blocks.extend(guarantee(record));
        blocks.push(Block::Command(simulate_command(record)));
        blocks.push(Block::Text(format!("Record: {}", path.display())));
        sections.push(section(name, blocks));
    }
    sections.push(section("Cite", vec![cite()]));
    Page {
        title: format!("{} runs compared", records.len()),
        subtitle: "Every number is read from the records that are named below.".into(),
        sections,
        footer: records.first().map_or(String::new(), |(_, r)| footer(r)),
    }
}

/// A name for every record: its algorithm, told apart by its folder where that is not enough.
fn names(records: &[(PathBuf, Record)]) -> Vec<String> {
    let title = |r: &Record| {
        let s = r.setting.plan.settings();
        if s.algorithm.is_private() {
            format!("{}, ε = {}", s.algorithm.title(), s.epsilon)
        } else {
            s.algorithm.title().to_owned()
        }
    };
    let titles: Vec<String> = records.iter().map(|(_, r)| title(r)).collect();
    let stem = |path: &Path| {
        let file = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        match path.parent().and_then(Path::file_name) {
            Some(folder) if file == "record" => folder.to_string_lossy().into_owned(),
            _ => file,
        }
    };
    let is_alone = |t: &String| titles.iter().filter(|o| *o == t).count() == 1;
    let pairs = titles.iter().zip(records);
    pairs
        .map(|(t, (path, _))| if is_alone(t) { t.clone() } else { format!("{t} ({})", stem(path)) })
        .collect()
}

fn comparison_figure(records: &[(PathBuf, Record)], names: &[String]) -> Figure {
    let line = |of: fn(&padmm_sim::metrics::RoundMetrics) -> Option<f64>| -> Vec<Series> {
        let one = |(n, (_, record)): (usize, &(PathBuf, Record))| {
            plot::over_runs(record, &names[n], Style::nth(n), of)
        };
        records.iter().enumerate().filter_map(one).collect()
    };
    let panel = |title: &str, y: &str, series: Vec<Series>, references| Panel {
        title: title.into(),
        x_label: "round".into(),
        y_label: y.into(),
        series,
        references,
        ..Panel::default()
    };
    let mut panels = vec![
        panel(
            "Average loss of the models",
            "average loss",
            line(|m| m.average_loss),
            optimum_line(&records[0].1),
        ),
        panel(
            "Smoothed model, if stopped here",
            "loss on all records",
            line(|m| m.smoothed_loss),
            optimum_line(&records[0].1),
        ),
    ];
    let spent = line(|m| m.epsilon_exact);
    if !spent.is_empty() {
        panels.push(panel("Privacy loss so far", "ε, exact", spent, vec![]));
    }
    Figure::new("Convergence and privacy", panels)
}

fn comparison_table(records: &[(PathBuf, Record)], names: &[String]) -> Table {
    let number = |m: &MeanStd| format!("{:.4} ± {:.4}", m.mean, m.std);
    let row = |(name, (_, r)): (&String, &(PathBuf, Record))| {
        let s = &r.summary;
        let epsilon =
            |f: fn(&PrivacyRecord) -> f64| r.privacy.as_ref().map_or("–".into(), |p| epsilon_text(f(p)));
        vec![
            name.clone(),
            epsilon(|p| p.epsilon_exact),
            epsilon(|p| p.epsilon_paper),
            s.average_loss.as_ref().map_or("–".into(), number),
            number(&s.model_loss),
            s.model_objective.as_ref().map_or("–".into(), number),
            excess_text(r.excess_loss()),
            excess_text(r.excess_objective()),
            s.accuracy.as_ref().map_or("–".into(), number),
            r.constant.and_then(|c| c.accuracy).map_or("–".into(), |a| format!("{a:.4}")),
            r.runs.len().to_string(),
        ]
    };
    Table {
        caption: "Where the runs end".into(),
        columns: vec![
            Column::text("run"),
            Column::number("ε exact"),
            Column::number("ε, own paper's"),
            Column::number("average loss"),
            Column::number("loss of the model kept"),
            Column::number("its objective"),
            Column::number("excess loss"),
            Column::number("excess objective"),
            Column::number("accuracy"),
            Column::number("larger class"),
            Column::number("runs"),
        ],
        rows: names.iter().zip(records).map(row).collect(),
        highlight: vec![],
    }
}
