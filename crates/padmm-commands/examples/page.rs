//! Writes a demonstration page with invented numbers: `cargo run -p padmm-commands --example page -- DIR`.

use padmm_commands::chart::{Figure, HLine, Panel, Scale, Series, Style};
use padmm_commands::page::{Block, CalloutKind, Column, Page, Section, Table};

/// A repeatable wiggle in place of measurements.
fn wiggle(k: usize, phase: f64) -> f64 {
    let t = k as f64;
    (1.7 * t + phase).sin() * 0.6 + (0.61 * t + 2.0 * phase).cos() * 0.4
}

fn line(n: usize, label: &str, points: Vec<(f64, f64)>, std: f64) -> Series {
    let band = points.iter().map(|p| (p.1 - std, p.1 + std)).collect();
    Series::new(label, points, Style::nth(n)).with_band(band)
}

/// Loss, ε and charges against rounds, a legend in each panel.
pub(crate) fn convergence() -> Figure {
    let curve = |end: f64, speed: f64, noise: f64, phase: f64| -> Vec<(f64, f64)> {
        let at = |k: usize| end + (0.69 - end) * (-speed * k as f64).exp() + noise * wiggle(k, phase);
        (1..=50).map(|k| (k as f64, at(k))).collect()
    };
    let loss = Panel {
        title: "Loss".into(),
        x_label: "round".into(),
        y_label: "mean loss of a record".into(),
        series: vec![
            line(1, "releases", curve(0.437, 0.13, 0.008, 0.3), 0.017),
            line(0, "smoothed model", curve(0.374, 0.1, 0.0015, 1.1), 0.004),
            Series::new("without noise", curve(0.3705, 0.2, 0.0, 0.0), Style::nth(3)),
        ],
        references: vec![HLine { label: "pooled optimum 0.3697".into(), y: 0.3697 }],
        y_range: Some((0.35, 0.6)),
        note: "The first rounds lie above the plot.".into(),
        ..Panel::default()
    };
    let growth = |scale: f64| {
        (1..=50)
            .map(|k| (f64::from(k), scale * (f64::from(k) / 50.0).sqrt() + 0.018 * f64::from(k)))
            .collect()
    };
    let spent = Panel {
        title: "Privacy loss so far".into(),
        x_label: "round".into(),
        y_label: "ε at δ = 10⁻⁴".into(),
        series: vec![
            Series::new("exact", growth(4.1), Style::nth(0)),
            Series::new("paper's formula", growth(5.2), Style::nth(1)),
        ],
        references: vec![HLine { label: "budget 5".into(), y: 5.0 }],
        ..Panel::default()
    };
    let charge = |first: f64, decay: f64| {
        (1..=50).map(|k| (f64::from(k), first * f64::powi(decay, 1 - k))).collect::<Vec<_>>()
    };
    let charges = Panel {
        title: "Charge of each round".into(),
        x_label: "round".into(),
        y_label: "ρ of the round".into(),
        y_scale: Scale::Log,
        series: vec![
            Series::new("decay 0.995", charge(9.5e-3, 0.995), Style::nth(0)),
            Series::new("decay 0.9", charge(2.9e-4, 0.9), Style::nth(1)),
        ],
        ..Panel::default()
    };
    Figure {
        subtitle: "Complete graph, 50 rounds. Lines are means of 10 runs, shades one standard deviation.".into(),
        caption: "Simulation with seeded noise: these curves are computed from all records and exist in a simulation only."
            .into(),
        ..Figure::new("Convergence and privacy of five agents", vec![loss, spent, charges])
    }
}

/// Eight methods against ε on three data sets, one legend for all.
pub(crate) fn trade_off() -> Figure {
    let methods = [
        "P-ADMM",
        "DP-ADMM",
        "DPSGD, pooled",
        "DPSGD, federated",
        "output perturbation",
        "local only",
        "gossip",
        "no privacy",
    ];
    let budgets = [0.05, 0.1, 0.5, 1.0, 5.0, 10.0];
    let panels = ["Adult", "US", "Brazil"].iter().enumerate().map(|(d, name)| Panel {
        title: (*name).into(),
        x_label: "ε at δ = 10⁻⁵".into(),
        y_label: "accuracy".into(),
        x_scale: Scale::Log,
        y_range: Some((0.5, 0.9)),
        series: methods
            .iter()
            .enumerate()
            .map(|(m, label)| {
                let points = budgets.iter().enumerate().map(|(k, &epsilon)| {
                    let gain = 0.34 * (1.0 - (-(epsilon * 3.0f64).powf(0.6) / (0.5 + 0.4 * m as f64)).exp());
                    let flat = if m == 7 { 0.34 } else { gain };
                    (epsilon, 0.51 + flat - 0.02 * d as f64 + 0.006 * wiggle(k, (m + d) as f64))
                });
                line(m, label, points.collect(), 0.004 + 0.004 * (m % 4) as f64)
            })
            .collect(),
        ..Panel::default()
    });
    Figure {
        subtitle: "Accuracy on records kept aside, by privacy budget. Means of 20 runs, shades one standard deviation."
            .into(),
        caption: "Both axes are shared by all panels.".into(),
        ..Figure::new("Accuracy against privacy", panels.collect())
    }
}

fn table() -> Table {
    let row = |cells: [&str; 6]| cells.map(str::to_owned).to_vec();
    Table {
        caption: "Accuracy at ε = 1, δ = 10⁻⁵ (mean ± one standard deviation of 20 runs)".into(),
        columns: vec![
            Column::text("Method"),
            Column::number("Adult"),
            Column::number("US"),
            Column::number("Brazil"),
            Column::number("Rounds"),
            Column::number("Seconds"),
        ],
        rows: vec![
            row(["no privacy", "0.848 ± 0.000", "0.831 ± 0.000", "0.812 ± 0.000", "50", "0.41"]),
            row(["P-ADMM", "0.836 ± 0.004", "0.819 ± 0.005", "0.797 ± 0.006", "50", "0.44"]),
            row(["DP-ADMM", "0.801 ± 0.012", "0.786 ± 0.011", "0.771 ± 0.015", "100", "0.93"]),
            row(["output perturbation", "0.762 ± 0.021", "0.749 ± 0.024", "0.733 ± 0.030", "1", "0.08"]),
        ],
        highlight: vec![1],
    }
}

/// The page of the example, which the tests open as well.
pub(crate) fn demo() -> Page {
    let text = |words: &str| Block::Text(words.into());
    Page {
        title: "Five hospitals, one model, ε = 1".into(),
        subtitle: "A demonstration of a report with invented numbers: what was run, what it guarantees, and what it found."
            .into(),
        sections: vec![
            Section {
                title: "Summary".into(),
                blocks: vec![
                    text("Five sites fitted a logistic regression together without pooling their records. Each site released 50 noisy vectors; the smoothed model is within 0.005 of the loss of the model that all records together would give."),
                    Block::Callout {
                        kind: CalloutKind::Guarantee,
                        title: "Every site's releases are (1, 10⁻⁵)-differentially private".into(),
                        text: "One record of a site replaced by any other changes the probability of any set of outputs by at most a factor e¹, up to 10⁻⁵.".into(),
                    },
                    Block::Callout {
                        kind: CalloutKind::Warning,
                        title: "The curves of this page are not private".into(),
                        text: "They are computed from all records, which only a simulation can do. Do not publish them for real records.".into(),
                    },
                    Block::Facts(
                        [
                            ("Data", "Adult, 45,222 records"),
                            ("Sites", "5, equal shares"),
                            ("Graph", "complete"),
                            ("Penalty", "2.1 × 10⁻³"),
                            ("Privacy", "ε = 1, δ = 10⁻⁵"),
                            ("Seed", "7"),
                        ]
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .to_vec(),
                    ),
                ],
            },
            Section {
                title: "Convergence".into(),
                blocks: vec![
                    text("The loss of what is released falls for about twenty rounds and then stays above the optimum by what the noise costs. The smoothed model averages that noise away."),
                    Block::Figure(Box::new(convergence()), "convergence".into()),
                ],
            },
            Section {
                title: "Comparison".into(),
                blocks: vec![
                    Block::Figure(Box::new(trade_off()), "trade-off".into()),
                    Block::Table(table()),
                    Block::Callout {
                        kind: CalloutKind::Note,
                        title: "How to read the table".into(),
                        text: "The emphasised row is the method that this report is about.".into(),
                    },
                ],
            },
            Section {
                title: "Run it again".into(),
                blocks: vec![
                    text("The same command gives the same numbers on any machine:"),
                    Block::Command("padmm simulate --data adult --agents 5 --epsilon 1 --delta 1e-5 --rounds 50 --seed 7".into()),
                    Block::List(vec![
                        "The noise is seeded, so anyone who knows the seed can subtract it.".into(),
                        "Times are those of one machine and are not part of the record.".into(),
                    ]),
                ],
            },
        ],
        footer: "padmm demonstration. All numbers are invented.".into(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    std::fs::write(format!("{folder}/page.html"), demo().to_html())?;
    Ok(())
}
