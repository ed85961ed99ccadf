//! Writes the pages that the browser tests open, and what they must show, from the figures' own numbers:
//! `cargo run --release --example pages -- DIR`.

#[allow(dead_code)]
#[path = "page.rs"]
mod page;

use padmm_commands::chart::{Figure, HLine, Panel, Series, Style};
use padmm_commands::page::{Block, CalloutKind, Column, Page, Section, Table};
use serde_json::{Value, json};

/// A text that would break out of an attribute, a paragraph or a script if it were not escaped.
pub(crate) const HOSTILE: &str = "\"'><b>&amp;</script></style><!--";

/// A page with [`HOSTILE`] in every place that takes text.
pub(crate) fn hostile() -> Page {
    let words = || HOSTILE.to_owned();
    let panel = Panel {
        title: words(),
        x_label: words(),
        y_label: words(),
        series: vec![Series::new(words(), vec![(1.0, 2.0), (2.0, 3.0)], Style::nth(0))],
        references: vec![HLine { label: words(), y: 2.5 }],
        note: words(),
        ..Panel::default()
    };
    let figure =
        Figure { subtitle: words(), caption: words(), ..Figure::new(words(), vec![panel.clone(), panel]) };
    let separate = Figure { shared_legend: false, ..figure.clone() };
    let blocks = vec![
        Block::Text(words()),
        Block::List(vec![words()]),
        Block::Callout { kind: CalloutKind::Warning, title: words(), text: words() },
        Block::Table(Table {
            caption: words(),
            columns: vec![Column::text(words()), Column::number(words())],
            rows: vec![vec![words(), words()]],
            highlight: vec![0],
        }),
        Block::Figure(Box::new(figure), words()),
        Block::Figure(Box::new(separate), words()),
        Block::Command(words()),
        Block::Facts(vec![(words(), words())]),
    ];
    let section = Section { title: words(), blocks };
    Page { title: words(), subtitle: words(), sections: vec![section.clone(), section], footer: words() }
}

/// Figures of one, two, four, five and six panels, for the columns that a wide window gives them.
fn columns() -> Page {
    let panels = page::trade_off().panels;
    let figure = |n: usize| {
        let panels = panels.iter().cycle().take(n).cloned().collect();
        Block::Figure(Box::new(Figure::new("t", panels)), format!("of-{n}"))
    };
    let section = Section { title: "Many".into(), blocks: [1, 2, 4, 5, 6].map(figure).to_vec() };
    Page { sections: vec![section], ..Page::default() }
}

/// What a browser must find of a figure: counts, the files to be saved, and the first panel's numbers.
fn expected(figure: &Figure) -> Value {
    let series = || figure.panels.iter().flat_map(|p| &p.series);
    let first = figure.panels[0].series.iter();
    json!({
        "panels": figure.panels.len(),
        "series": series().count(),
        "bands": series().filter(|s| s.band.is_some()).count(),
        "svg": figure.to_svg(),
        "csv": figure.to_csv(),
        "first": first.map(|s| json!({ "label": s.label, "points": s.points, "band": s.band })).collect::<Vec<_>>(),
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let pages = [("page", page::demo()), ("columns", columns()), ("hostile", hostile())];
    for (name, page) in pages {
        std::fs::write(format!("{folder}/{name}.html"), page.to_html())?;
    }
    let facts = json!({
        "hostile": HOSTILE,
        "figures": {
            "convergence": expected(&page::convergence()),
            "trade-off": expected(&page::trade_off()),
        },
    });
    std::fs::write(format!("{folder}/expected.json"), facts.to_string())?;
    Ok(())
}
