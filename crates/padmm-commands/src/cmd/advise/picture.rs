//! What privacy costs against ε, as a picture.

use padmm_core::advice::Advice;

use super::BySignal;
use crate::chart::{Figure, HLine, Panel, Scale, Series, Style};

/// Excess objective and AUC against ε: a row of panels for each signal.
pub(super) fn figure(found: &BySignal) -> Figure {
    let panels = found.iter().flat_map(|(signal, advice)| panels(*signal, advice)).collect();
    let mut figure = Figure::new("What privacy is expected to cost", panels);
    figure.columns = 2;
    figure.width = 900.0;
    figure.height = 110.0 + 320.0 * found.len() as f64;
    figure.caption = "Rehearsed on made-up or public records: no record of a site was used. Shades are two standard deviations of runs."
        .to_owned();
    figure
}

fn panels(signal: Option<f64>, advice: &Advice) -> [Panel; 2] {
    let of = signal.map_or("public table".to_owned(), |auc| format!("assumed AUC {auc}"));
    let mut names: Vec<&str> = vec![];
    for point in &advice.frontier {
        if !names.contains(&point.algorithm.as_str()) {
            names.push(&point.algorithm);
        }
    }
    let lines = |value: fn(&padmm_core::advice::Expected) -> (f64, f64), lowest: f64| {
        let line = |(k, name): (usize, &&str)| {
            let points: Vec<_> = advice.frontier.iter().filter(|e| e.algorithm == **name).collect();
            let at = points.iter().map(|e| (e.epsilon, value(e).0)).collect();
            let band = points.iter().map(|e| value(e)).map(|(v, s)| ((v - 2.0 * s).max(lowest), v + 2.0 * s));
            Series::new(*name, at, Style::nth(k)).with_band(band.collect())
        };
        names.iter().enumerate().map(line).collect::<Vec<_>>()
    };
    [
        Panel {
            title: format!("Excess objective, {of}"),
            x_label: "ε".into(),
            y_label: "above the pooled optimum, %".into(),
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            series: lines(|e| (100.0 * e.excess_objective, 100.0 * e.excess_objective_std), 1e-3),
            ..Panel::default()
        },
        Panel {
            title: format!("AUC, {of}"),
            x_label: "ε".into(),
            y_label: "area under the ROC curve".into(),
            x_scale: Scale::Log,
            series: lines(|e| (e.auc, e.auc_std), 0.0),
            references: vec![HLine {
                label: format!("without privacy {:.3}", advice.pooled.auc),
                y: advice.pooled.auc,
            }],
            ..Panel::default()
        },
    ]
}
