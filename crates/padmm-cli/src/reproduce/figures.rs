//! From records to curves, and from curves to figures. Nothing here looks at anything but records.

use padmm_core::plan::AccountantKind;
use std::collections::BTreeMap;

use padmm_commands::chart::{Dash, Figure, HLine, Panel, Scale, Series, Style};
use padmm_sim::metrics::RoundMetrics;
use padmm_sim::own::SiteModels;
use padmm_sim::record::{MeanStd, Record, RunRecord, SiteRecord};
use serde::Serialize;

use super::experiment::{Experiment, PanelSpec, ScaleSpec, SeriesSpec, Shows};

/// One line of one panel, over all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Curve {
    pub panel: String,
    pub label: String,
    pub x: Vec<f64>,
    pub mean: Vec<f64>,
    pub std: Vec<f64>,
    #[serde(skip)]
    style: Style,
}

/// The records of an experiment: those of a series at a point, one or (if every run splits the records again) several.
pub(crate) type Records<'a> = BTreeMap<(String, usize), Vec<&'a Record>>;

/// All curves of an experiment, panel by panel.
pub(crate) fn curves(experiment: &Experiment, records: &Records<'_>) -> Vec<Curve> {
    let of_panel = |panel: &PanelSpec| -> Vec<Curve> {
        panel.series.iter().flat_map(|name| series(experiment, panel, name, records)).collect()
    };
    experiment.panels.iter().flat_map(of_panel).collect()
}

/// The curves that one series has in one panel: one, or one for every site.
fn series(experiment: &Experiment, panel: &PanelSpec, name: &str, records: &Records<'_>) -> Vec<Curve> {
    let spec = experiment.find(name).expect("panels name series that exist");
    let at = |point: usize| records.get(&(name.to_owned(), point)).map_or(&[][..], Vec::as_slice);
    let curve = |label: &str, points: Vec<(f64, MeanStd)>, style: Style| Curve {
        panel: panel.title.clone(),
        label: label.to_owned(),
        x: points.iter().map(|p| p.0).collect(),
        mean: points.iter().map(|p| p.1.mean).collect(),
        std: points.iter().map(|p| p.1.std).collect(),
        style,
    };
    let style = style(experiment, spec);
    let one = |points| vec![curve(&spec.label, points, style)];
    match panel.shows {
        Shows::AverageLossByRound => one(by_round(at(point_of(experiment, panel)), |m| m.average_loss)),
        Shows::SmoothedLossByRound => one(by_round(at(point_of(experiment, panel)), |m| m.smoothed_loss)),
        Shows::EpsilonByRound => one(epsilon(at(point_of(experiment, panel)))),
        Shows::FinalAverageLoss => {
            one(by_point(experiment, at, |_, r| known(r.trace.last().and_then(|m| m.average_loss))))
        }
        Shows::KeptLoss => one(by_point(experiment, at, |_, r| r.smoothed.loss)),
        Shows::KeptObjective => one(by_point(experiment, at, |_, r| known(r.smoothed.objective))),
        Shows::KeptAccuracy => one(by_point(experiment, at, |_, r| known(r.smoothed.accuracy))),
        Shows::KeptAuc => one(by_point(experiment, at, |_, r| known(r.smoothed.auc))),
        Shows::ExcessLoss => one(by_point(experiment, at, |record, r| {
            percent_above(r.smoothed.loss, known(record.optimum.as_ref().map(|o| o.loss)))
        })),
        Shows::ExcessObjective => one(by_point(experiment, at, |record, r| {
            let optimum = record.optimum.as_ref().map(|o| o.objective);
            percent_above(known(r.smoothed.objective), known(optimum))
        })),
        Shows::SiteAccuracyMean => {
            let mean = |_: &Record, r: &RunRecord| mean_of(r.site_accuracy.iter().flatten());
            let mut curves = one(by_point(experiment, at, mean));
            if name == "admm" {
                // Beside it, the pooled optimum on the same held-out patients: one for every way of dealing them.
                let pooled = |records: &[&Record]| {
                    let optima = records.iter().filter_map(|record| record.optimum.as_ref());
                    MeanStd::of(optima.map(|optimum| mean_of(optimum.site_accuracy.iter().flatten())))
                };
                let points =
                    (0..experiment.points().len()).map(|p| (x_of(experiment, p), pooled(at(p)))).collect();
                curves.push(curve("pooled model", points, Style { colour: 6, dash: Dash::Dashed }));
            }
            curves
        }
        Shows::OwnModels => own_models(at(point_of(experiment, panel)))
            .into_iter()
            .enumerate()
            .map(|(i, (label, points))| curve(label, points, Style::nth(i)))
            .collect(),
        Shows::SiteAccuracy => {
            let sites = &at(0)[0].setting.sites;
            let of_site = |s: usize| {
                let points = by_point(experiment, at, |_, r| known(r.site_accuracy[s]));
                curve(&sites[s].name, points, Style::nth(s))
            };
            (0..sites.len()).map(of_site).collect()
        }
    }
}

/// The loss of every site's three models against the site's records; sites have the same sizes in every run.
fn own_models(records: &[&Record]) -> [(&'static str, Vec<(f64, MeanStd)>); 3] {
    let by_size = |of: fn(&SiteModels) -> f64| {
        let at = |(i, site): (usize, &SiteRecord)| {
            let losses = records.iter().flat_map(|r| &r.runs).map(|run| of(&run.own_models[i]));
            (site.records as f64, MeanStd::of(losses))
        };
        records[0].setting.sites.iter().enumerate().map(at).collect()
    };
    [
        ("own records alone", by_size(|m| m.own.loss)),
        ("joint model", by_size(|m| m.joint.loss)),
        ("combined", by_size(|m| m.combined.loss)),
    ]
}

/// A number that every record of these experiments has; a gap in the line where one does not.
fn known(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn percent_above(value: f64, optimum: f64) -> f64 {
    100.0 * (value / optimum - 1.0)
}

fn mean_of<'a>(values: impl Iterator<Item = &'a f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count() as f64
}

/// The point that a panel shows.
fn point_of(experiment: &Experiment, panel: &PanelSpec) -> usize {
    let is_it = |v: &Option<&toml::Value>| v.is_some() && *v == panel.at.as_ref();
    experiment.points().iter().position(is_it).unwrap_or(0)
}

/// A point's place on the axis: the one that the experiment names, its value, or its number where it is no number.
fn x_of(experiment: &Experiment, point: usize) -> f64 {
    if let Some(places) = experiment.sweep.as_ref().and_then(|s| s.places.as_ref()) {
        return places[point];
    }
    match experiment.points()[point] {
        Some(toml::Value::Integer(n)) => *n as f64,
        Some(toml::Value::Float(x)) => *x,
        _ => point as f64,
    }
}

fn by_round(records: &[&Record], of: impl Fn(&RoundMetrics) -> Option<f64>) -> Vec<(f64, MeanStd)> {
    let runs: Vec<&RunRecord> = records.iter().flat_map(|r| &r.runs).collect();
    let rounds = runs.iter().map(|r| r.trace.len()).min().unwrap_or(0);
    let at = |k: usize| {
        let values: Vec<f64> = runs.iter().filter_map(|r| of(&r.trace[k])).collect();
        ((k + 1) as f64, MeanStd::of(values.into_iter()))
    };
    (0..rounds).map(at).collect()
}

fn by_point<'a>(
    experiment: &Experiment,
    at: impl Fn(usize) -> &'a [&'a Record],
    of: impl Fn(&Record, &RunRecord) -> f64,
) -> Vec<(f64, MeanStd)> {
    let point = |p: usize| {
        let values: Vec<f64> =
            at(p).iter().flat_map(|record| record.runs.iter().map(|run| of(record, run))).collect();
        (x_of(experiment, p), MeanStd::of(values.into_iter()))
    };
    (0..experiment.points().len()).filter(|&p| !at(p).is_empty()).map(point).collect()
}

/// ε spent after each round, by the accounting that the series was calibrated with.
fn epsilon(records: &[&Record]) -> Vec<(f64, MeanStd)> {
    let is_exact = records[0].setting.plan.settings().accountant == AccountantKind::Exact;
    let mut points = by_round(records, |m| if is_exact { m.epsilon_exact } else { m.epsilon_paper });
    points.insert(0, (0.0, MeanStd::default()));
    points
}

/// The colour of ADMM without privacy, in every figure.
const PLAIN: usize = 6;

/// One colour for every series; one that is like another shares its colour and is dashed, one that is the same as another is drawn as
/// that one.
fn style(experiment: &Experiment, spec: &SeriesSpec) -> Style {
    if let Some(other) = spec.same_as.as_ref().and_then(|name| experiment.find(name)) {
        return style(experiment, other);
    }
    if spec.name == "admm" {
        return Style { colour: PLAIN, dash: Dash::Dotted };
    }
    let has_own = |s: &&SeriesSpec| s.like.is_none() && s.same_as.is_none() && s.name != "admm";
    let own: Vec<&SeriesSpec> = experiment.series.iter().filter(has_own).collect();
    let name = spec.like.as_ref().unwrap_or(&spec.name);
    let place = own.iter().position(|s| s.name == *name).unwrap_or(0);
    let colour = if place >= PLAIN { place + 1 } else { place };
    let dash = match spec.like {
        Some(_) => Dash::Dashed,
        None if colour >= 8 => Dash::DashDot,
        None => Dash::Solid,
    };
    Style { colour, dash }
}

pub(crate) fn figure(experiment: &Experiment, curves: &[Curve], records: &Records<'_>) -> Figure {
    let any = records.values().flatten().next().expect("an experiment has records");
    let runs = records.values().map(|r| r.iter().map(|r| r.runs.len()).sum::<usize>()).max().unwrap_or(1);
    let panels = experiment.panels.iter().map(|p| panel(experiment, p, curves, any)).collect();
    let mut figure = Figure::new(&experiment.title, panels);
    // Legends of a dozen lines need room above the charts.
    figure.height += 80.0 * figure.panels.len().div_ceil(figure.columns) as f64;
    let settings = || records.values().flatten().map(|r| &r.setting);
    let dataset = common(settings().map(|s| s.dataset.clone()));
    let rounds = common(settings().map(|s| s.plan.settings().rounds)).map(|n| format!("{n} rounds"));
    let what: Vec<String> = dataset.into_iter().chain(rounds).collect();
    let what = if what.is_empty() { String::new() } else { format!("{}. ", what.join(", ")) };
    figure.subtitle = format!("{what}Lines are means of {runs} runs, shades one standard deviation.");
    figure.caption =
        format!("padmm {}, seed {}. padmm reproduce {}", any.version, any.setting.seed, experiment.name);
    figure
}

/// What all of them are, if they are all the same.
fn common<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|v| v == first).then_some(first)
}

fn panel(experiment: &Experiment, spec: &PanelSpec, curves: &[Curve], any: &Record) -> Panel {
    let scale = |s: ScaleSpec| match s {
        ScaleSpec::Linear => Scale::Linear,
        ScaleSpec::Log => Scale::Log,
    };
    let line = |c: &Curve| {
        let points = c.x.iter().copied().zip(c.mean.iter().copied()).collect();
        let series = Series::new(&c.label, points, c.style);
        if c.std.iter().all(|s| *s == 0.0) {
            return series;
        }
        series.with_band(c.mean.iter().zip(&c.std).map(|(m, s)| (m - s, m + s)).collect())
    };
    let (x_label, y_label) = labels(experiment, spec.shows, any.setting.plan.settings().delta);
    let own: Vec<&Curve> = curves.iter().filter(|c| c.panel == spec.title).collect();
    let falls_by_round = matches!(spec.shows, Shows::AverageLossByRound | Shows::SmoothedLossByRound);
    Panel {
        title: spec.title.clone(),
        x_label,
        y_label,
        x_scale: scale(spec.x_scale),
        y_scale: scale(spec.y_scale),
        y_range: if falls_by_round { loss_range(&own) } else { None },
        series: own.into_iter().map(line).collect(),
        references: vec![],
        ..Panel::default()
    }
}

/// From below the lowest line to where the lines that matter end: a line that is far off must not flatten the others.
fn loss_range(curves: &[&Curve]) -> Option<(f64, f64)> {
    let finals = curves.iter().filter_map(|c| c.mean.last().copied()).filter(|v| v.is_finite());
    let low =
        curves.iter().flat_map(|c| &c.mean).copied().filter(|v| v.is_finite()).fold(f64::INFINITY, f64::min);
    let mut finals: Vec<f64> = finals.collect();
    finals.sort_by(f64::total_cmp);
    // At zero the logistic loss of a model that knows nothing is ln 2; whatever ends far above says only that it fails.
    let middle = finals.get(finals.len() / 2)?;
    let high = finals.iter().copied().filter(|v| *v < 1.0).fold(*middle, f64::max).max(low + 0.02);
    Some((low - 0.06 * (high - low), high + 0.5 * (high - low)))
}

fn labels(experiment: &Experiment, shows: Shows, delta: f64) -> (String, String) {
    let round = || "round".to_owned();
    let swept = || experiment.sweep.as_ref().map_or(String::new(), |s| s.label.clone());
    match shows {
        Shows::AverageLossByRound => (round(), "average loss".into()),
        Shows::SmoothedLossByRound => (round(), "loss on all records".into()),
        Shows::EpsilonByRound => (round(), format!("ε at δ = {delta}")),
        Shows::FinalAverageLoss => (swept(), "average loss".into()),
        Shows::KeptLoss => (swept(), "loss on all records".into()),
        Shows::KeptObjective => (swept(), "objective on all records".into()),
        Shows::ExcessLoss => (swept(), "loss above the optimum's, %".into()),
        Shows::ExcessObjective => (swept(), "objective above the optimum's, %".into()),
        Shows::KeptAccuracy => (swept(), "accuracy on held-out records".into()),
        Shows::KeptAuc => (swept(), "AUC on held-out records".into()),
        Shows::OwnModels => ("records of the site".into(), "loss on held-out records".into()),
        Shows::SiteAccuracy | Shows::SiteAccuracyMean => (swept(), "accuracy on held-out patients".into()),
    }
}

/// The curves as CSV, one line a point.
pub(crate) fn csv(curves: &[Curve]) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(vec![]);
    writer.write_record(["panel", "label", "x", "mean", "std"])?;
    for c in curves {
        for ((x, mean), std) in c.x.iter().zip(&c.mean).zip(&c.std) {
            writer.write_record([&c.panel, &c.label, &x.to_string(), &mean.to_string(), &std.to_string()])?;
        }
    }
    Ok(writer.into_inner()?)
}

/// A horizontal line at the loss of the pooled optimum; none where that was not looked for.
pub(crate) fn optimum_line(record: &Record) -> Vec<HLine> {
    let line = |loss: f64| HLine { label: format!("pooled optimum {loss:.4}"), y: loss };
    record.optimum.iter().map(|optimum| line(optimum.loss)).collect()
}
