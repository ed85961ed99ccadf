//! Draws a demonstration figure with invented numbers: `cargo run -p padmm-commands --example demo -- DIR`.

use padmm_commands::chart::{Dash, Figure, HLine, Panel, Scale, Series, Style};

/// A repeatable wiggle in place of measurements.
fn wiggle(k: usize, phase: f64) -> f64 {
    let t = k as f64;
    (1.7 * t + phase).sin() * 0.6 + (0.61 * t + 2.0 * phase).cos() * 0.4
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = || 1..=50usize;
    let curve = |start: f64, end: f64, speed: f64, noise: f64, phase: f64| -> Vec<(f64, f64)> {
        rounds()
            .map(|k| (k as f64, end + (start - end) * (-speed * k as f64).exp() + noise * wiggle(k, phase)))
            .collect()
    };
    let band = |points: &[(f64, f64)], std: f64| points.iter().map(|p| (p.1 - std, p.1 + std)).collect();

    let last = curve(0.69, 0.437, 0.13, 0.008, 0.3);
    let kept = curve(0.69, 0.374, 0.1, 0.0015, 1.1);
    let clean = curve(0.69, 0.3705, 0.2, 0.0, 0.0);
    let (last_band, kept_band) = (band(&last, 0.017), band(&kept, 0.004));
    let loss = Panel {
        title: "Average loss".into(),
        x_label: "round".into(),
        y_label: "logistic loss".into(),
        series: vec![
            Series::new("last iterate", last, Style::nth(1)).with_band(last_band),
            Series::new("model kept", kept, Style::nth(0)).with_band(kept_band),
            Series::new("no privacy", clean, Style { colour: 2, dash: Dash::Dotted }),
        ],
        references: vec![
            HLine { label: "pooled optimum 0.3697".into(), y: 0.3697 },
            HLine { label: "always the majority 0.5600".into(), y: 0.56 },
        ],
        ..Panel::default()
    };

    let growth = |scale: f64| -> Vec<(f64, f64)> {
        rounds().map(|k| (k as f64, scale * (k as f64 / 50.0).sqrt() + 0.018 * k as f64)).collect()
    };
    let spent = Panel {
        title: "Privacy loss so far".into(),
        x_label: "round".into(),
        y_label: "ε at δ = 10⁻⁴".into(),
        series: vec![
            Series::new("exact", growth(4.1), Style::nth(0)),
            Series::new("paper's formula", growth(5.2), Style::nth(1)),
        ],
        references: vec![HLine { label: "budget ε = 5".into(), y: 5.0 }],
        ..Panel::default()
    };

    let charge = |first: f64, decay: f64| -> Vec<(f64, f64)> {
        rounds().map(|k| (k as f64, first * f64::powi(decay, 1 - k as i32))).collect()
    };
    let charges = Panel {
        title: "Charge of each round".into(),
        x_label: "round".into(),
        y_label: "ρ".into(),
        y_scale: Scale::Log,
        series: vec![
            Series::new("decay 0.995", charge(9.5e-3, 0.995), Style::nth(0)),
            Series::new("decay 0.9", charge(2.9e-4, 0.9), Style::nth(1)),
        ],
        note: "Both schedules spend the same in total.".into(),
        ..Panel::default()
    };
    let figure = Figure {
        title: "Demo: convergence and privacy of five agents".into(),
        subtitle: "Invented numbers, only to show what a figure looks like. Lines are means of 10 runs, shades one standard deviation."
            .into(),
        panels: vec![loss, spent, charges],
        columns: 3,
        width: 1180.0,
        height: 420.0,
        caption: "P-ADMM, complete graph, K = 50, exact accounting. The loss is on all records; ε and ρ are the largest over agents."
            .into(),
        ..Figure::default()
    };
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    std::fs::write(format!("{folder}/demo.svg"), figure.to_svg())?;
    Ok(())
}
