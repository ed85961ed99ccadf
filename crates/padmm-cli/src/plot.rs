//! The convergence-and-privacy picture of one simulation, drawn from its record alone.

use padmm_commands::chart::{Dash, Figure, HLine, Panel, Series, Style};
use padmm_privacy::SensitivityBasis;
use padmm_sim::metrics::RoundMetrics;
use padmm_sim::record::{MeanStd, Record};

use crate::reproduce::figures::optimum_line;

/// Loss against rounds, ε against rounds, and each round's charge.
pub(crate) fn figure(record: &Record) -> Figure {
    let settings = record.setting.plan.settings();
    let mut panels = vec![loss(record)];
    if let Some(privacy) = &record.privacy {
        panels.push(spent(record, privacy.delta));
        panels.push(charges(record));
    }
    let runs = record.runs.len();
    let shade = if runs > 1 {
        format!("Means of {runs} runs, shades one standard deviation. ")
    } else {
        String::new()
    };
    let basis = match &record.privacy {
        Some(p) if p.sensitivity_basis == SensitivityBasis::Paper => {
            "SENSITIVITY OF THE PAPER'S LEMMA 4: for comparison only, no guarantee. "
        }
        _ => "",
    };
    Figure {
        title: format!(
            "{} on {}: {} agents",
            settings.algorithm.title(),
            record.setting.dataset,
            record.setting.sites.len()
        ),
        subtitle: format!(
            "{basis}{} graph, {} rounds, penalty {:.3e}, {} loss, R(x) = {}. {shade}",
            capitalized(&record.setting.graph),
            settings.rounds,
            record.setting.penalty,
            settings.loss,
            settings.regularizer,
        ),
        width: if panels.len() == 1 { 640.0 } else { 1180.0 },
        columns: panels.len(),
        panels,
        height: 430.0,
        caption: format!(
            "Simulation with {} noise: these curves are computed from all records and exist in a simulation only. Seed {}, padmm {}.",
            if record.noise_source.contains("insecure") { "seeded" } else { "secure" },
            record.setting.seed,
            record.version
        ),
        ..Figure::default()
    }
}

pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// Mean over runs of one number of every round, with its band; none for a number that the record does not have.
pub(crate) fn over_runs(
    record: &Record,
    label: &str,
    style: Style,
    of: impl Fn(&RoundMetrics) -> Option<f64>,
) -> Option<Series> {
    let rounds = record.runs[0].trace.len();
    let at = |k: usize| {
        let values: Option<Vec<f64>> = record.runs.iter().map(|r| of(&r.trace[k])).collect();
        values.map(|v| MeanStd::of(v.into_iter()))
    };
    let all: Vec<MeanStd> = (0..rounds).map(at).collect::<Option<_>>()?;
    let points = all.iter().enumerate().map(|(k, m)| ((k + 1) as f64, m.mean)).collect();
    let series = Series::new(label, points, style);
    if record.runs.len() == 1 {
        return Some(series);
    }
    Some(series.with_band(all.iter().map(|m| (m.mean - m.std, m.mean + m.std)).collect()))
}

fn loss(record: &Record) -> Panel {
    let is_private = record.privacy.is_some();
    let mut series = vec![];
    if is_private {
        series
            .extend(over_runs(record, "releases (paper's average loss)", Style::nth(1), |m| m.average_loss));
    } else {
        series.extend(over_runs(record, "average loss", Style::nth(0), |m| m.average_loss));
    }
    if let Some(reference) = &record.reference {
        let points =
            reference.trace.iter().filter_map(|m| Some((f64::from(m.round), m.average_loss?))).collect();
        series.push(Series::new("without noise", points, Style { colour: 2, dash: Dash::Dotted }));
    }
    if is_private {
        series
            .extend(over_runs(record, "smoothed model, if stopped here", Style::nth(0), |m| m.smoothed_loss));
    }
    Panel {
        title: "Loss".into(),
        x_label: "round".into(),
        y_label: "mean loss of a record".into(),
        series,
        references: optimum_line(record),
        ..Panel::default()
    }
}

fn spent(record: &Record, delta: f64) -> Panel {
    let line = |label: &str, n: usize, of: fn(&RoundMetrics) -> Option<f64>| {
        let points = record.runs[0].trace.iter().filter_map(|m| Some((f64::from(m.round), of(m)?))).collect();
        Series::new(label, points, Style::nth(n))
    };
    let budget = record.setting.plan.settings().epsilon;
    let is_pure = record.privacy.as_ref().is_some_and(|p| p.compositions.is_some());
    let published = if is_pure { "sum of the rounds (δ = 0)" } else { "paper's formula" };
    Panel {
        title: "Privacy loss so far".into(),
        x_label: "round".into(),
        y_label: format!("ε at δ = {delta}"),
        series: vec![line("exact", 0, |m| m.epsilon_exact), line(published, 1, |m| m.epsilon_paper)],
        references: vec![HLine { label: format!("budget {budget}"), y: budget }],
        ..Panel::default()
    }
}

fn charges(record: &Record) -> Panel {
    let worst = record.charges.iter().max_by(|a, b| {
        let last = |c: &padmm_sim::record::Charges| c.rho_per_round.last().copied().unwrap_or(0.0);
        last(a).total_cmp(&last(b))
    });
    let points = worst.map_or(vec![], |c| {
        c.rho_per_round.iter().enumerate().map(|(k, &rho)| ((k + 1) as f64, rho)).collect()
    });
    Panel {
        title: "Charge of each round".into(),
        x_label: "round".into(),
        y_label: "ρ of the round".into(),
        series: vec![Series::new("dynamic zCDP curve", points, Style::nth(0))],
        ..Panel::default()
    }
}
