//! What a run gives beside what it could have given, as rows of a table: for the terminal and for pages.

use padmm_core::metrics::Recalibration;
use padmm_core::plan::Output;
use padmm_sim::metrics::ModelMetrics;
use padmm_sim::record::{MeanStd, Record};

/// Headings of [`measures`].
pub(crate) const MEASURES: [&str; 6] = ["", "loss", "objective", "accuracy", "AUC", "calibration"];

/// One row for each kind of model, and for the same answer for everybody. Loss and objective stand side by side, each with how far it is
/// above the pooled optimum: the loss alone leaves out the regulariser and flatters noisy models.
pub(crate) fn measures(record: &Record) -> Vec<[String; 6]> {
    let kept =
        |output| if output == record.setting.plan.settings().output { ", kept by the sites" } else { "" };
    let of_runs = |f: fn(&padmm_sim::record::RunRecord) -> ModelMetrics| -> Vec<ModelMetrics> {
        record.runs.iter().map(f).collect()
    };
    let mut rows = vec![
        row(record, &format!("smoothed model{}", kept(Output::Smoothed)), &of_runs(|r| r.smoothed)),
        row(
            record,
            &format!("last release (the paper's output){}", kept(Output::Last)),
            &of_runs(|r| r.last),
        ),
    ];
    if let Some(reference) = &record.reference {
        rows.push(row(record, "without noise, same rounds", &[reference.last]));
    }
    if let Some(o) = &record.optimum {
        let [loss, objective, accuracy, auc] =
            [Some(o.loss), Some(o.objective), o.accuracy, o.auc].map(number);
        rows.push(["pooled optimum".to_owned(), loss, objective, accuracy, auc, line(o.calibration)]);
    }
    if let Some(constant) = record.constant {
        let name = if constant.accuracy.is_some() { "base rate, larger class" } else { "best constant" };
        let auc = constant.accuracy.map(|_| 0.5);
        let best = record.optimum.as_ref().map(|o| o.loss);
        let (loss, none) = (with_excess(number(Some(constant.loss)), constant.loss, best), "–".to_owned());
        rows.push([name.to_owned(), loss, none.clone(), number(constant.accuracy), number(auc), none]);
    }
    rows
}

/// Means over `models`, one of each run.
fn row(record: &Record, name: &str, models: &[ModelMetrics]) -> [String; 6] {
    let several = models.len() > 1;
    let mean = |f: fn(&ModelMetrics) -> Option<f64>| -> Option<MeanStd> {
        let values: Option<Vec<f64>> = models.iter().map(f).collect();
        values.filter(|v| !v.is_empty()).map(|v| MeanStd::of(v.into_iter()))
    };
    let text = |m: &Option<MeanStd>| match m {
        None => "–".to_owned(),
        Some(m) if several => format!("{:.4} ± {:.4}", m.mean, m.std),
        Some(m) => format!("{:.4}", m.mean),
    };
    let excess = |m: Option<MeanStd>, optimum: Option<f64>| {
        let text = text(&m);
        m.map_or(text.clone(), |m| with_excess(text, m.mean, optimum))
    };
    let calibration =
        mean(|m| m.calibration.map(|c| c.intercept)).zip(mean(|m| m.calibration.map(|c| c.slope)));
    [
        name.to_owned(),
        excess(mean(|m| Some(m.loss)), record.optimum.as_ref().map(|o| o.loss)),
        excess(mean(|m| m.objective), record.optimum.as_ref().map(|o| o.objective)),
        text(&mean(|m| m.accuracy)),
        text(&mean(|m| m.auc)),
        line(calibration.map(|(i, s)| Recalibration { intercept: i.mean, slope: s.mean })),
    ]
}

fn number(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |v| format!("{v:.4}"))
}

fn line(calibration: Option<Recalibration>) -> String {
    calibration.map_or("–".to_owned(), |c| format!("{:.2}, {:.2}", c.intercept, c.slope))
}

/// How far something is above the pooled optimum, as a part of it.
pub(super) fn excess_text(excess: Option<f64>) -> String {
    excess.map_or("–".to_owned(), |above| format!("{:+.2} %", 100.0 * above))
}

fn with_excess(text: String, value: f64, optimum: Option<f64>) -> String {
    let Some(optimum) = optimum else { return text };
    let percent = 100.0 * (value / optimum - 1.0);
    // Hundredths are what a table has room for; −0.00 is zero.
    let percent = if percent.abs() < 0.005 { 0.0 } else { percent };
    if percent.is_finite() { format!("{text} ({percent:+.2} %)") } else { text }
}
