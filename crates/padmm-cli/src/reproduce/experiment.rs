//! What an experiment is: a base plan, the series that vary it, perhaps one setting that is swept, and panels that show them.
//! The files under `experiments/` are built in, so that the command works from any folder.

use anyhow::{Context, anyhow, ensure};
use padmm_data::Source;
use serde::Deserialize;

use super::penalties::Penalties;
use crate::settings::Settings;

/// Every experiment with its file, in the order of the report.
const FILES: [(&str, &str); 12] = [
    ("fig1", include_str!("../../experiments/fig1/experiment.toml")),
    ("fig2", include_str!("../../experiments/fig2/experiment.toml")),
    ("fig3", include_str!("../../experiments/fig3/experiment.toml")),
    ("fig4", include_str!("../../experiments/fig4/experiment.toml")),
    ("accounting", include_str!("../../experiments/accounting/experiment.toml")),
    ("graphs", include_str!("../../experiments/graphs/experiment.toml")),
    ("heart", include_str!("../../experiments/heart/experiment.toml")),
    ("own", include_str!("../../experiments/own/experiment.toml")),
    ("frontier", include_str!("../../experiments/frontier/experiment.toml")),
    ("unequal", include_str!("../../experiments/unequal/experiment.toml")),
    ("unequal-35", include_str!("../../experiments/unequal-35/experiment.toml")),
    ("further", include_str!("../../experiments/further/experiment.toml")),
];

/// One figure's worth of simulations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Experiment {
    #[serde(skip)]
    pub name: String,
    pub title: String,
    /// What the paper says, or what is asked.
    pub claim: String,
    base: toml::Table,
    /// Whether the penalties are those that are derived from public facts, in place of the best of the grid.
    #[serde(default)]
    pub derived_penalties: bool,
    /// Whether every site also fits a model for itself.
    #[serde(default)]
    pub own_models: bool,
    /// Whether `all` leaves it out: it takes long, or needs records that are not shipped.
    #[serde(default)]
    pub only_by_name: bool,
    #[serde(default)]
    pub sweep: Option<Sweep>,
    pub series: Vec<SeriesSpec>,
    #[serde(rename = "panel")]
    pub panels: Vec<PanelSpec>,
}

/// A setting that takes several values in every series.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sweep {
    setting: String,
    pub label: String,
    pub values: Vec<toml::Value>,
    /// Places of the values on the axis, where they are no numbers.
    #[serde(default)]
    pub places: Option<Vec<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct SeriesSpec {
    pub name: String,
    pub label: String,
    /// The series whose colour it shares, drawn dashed.
    #[serde(default)]
    pub like: Option<String>,
    /// The series of another panel that it is drawn as.
    #[serde(default)]
    pub same_as: Option<String>,
    settings: toml::Table,
    /// Values of the sweep that it has no point at.
    #[serde(default)]
    without: Vec<toml::Value>,
    /// Runs, where they are not the command's.
    #[serde(default)]
    pub runs: Option<u32>,
    /// Whether every run splits the records again.
    #[serde(default)]
    pub new_split_each_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Shows {
    AverageLossByRound,
    SmoothedLossByRound,
    EpsilonByRound,
    FinalAverageLoss,
    KeptLoss,
    KeptObjective,
    ExcessLoss,
    ExcessObjective,
    KeptAccuracy,
    KeptAuc,
    SiteAccuracy,
    SiteAccuracyMean,
    OwnModels,
}

/// What one panel of the figure shows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PanelSpec {
    pub title: String,
    pub shows: Shows,
    pub series: Vec<String>,
    /// The value of the sweep that it shows, where it shows one only.
    #[serde(default)]
    pub at: Option<toml::Value>,
    #[serde(default)]
    pub x_scale: ScaleSpec,
    #[serde(default)]
    pub y_scale: ScaleSpec,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScaleSpec {
    #[default]
    Linear,
    Log,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub experiment: String,
    pub series: String,
    /// Place of the sweep's value; 0 without a sweep.
    pub point: usize,
    pub settings: Settings,
    pub own_models: bool,
    pub runs: u32,
    pub seed: u64,
}

/// How many runs, and from which seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repetition {
    pub runs: u32,
    pub seed: u64,
}

impl Experiment {
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|f| f.0)
    }

    /// Parses the built-in file; an unknown name is an error that lists the known ones.
    pub(crate) fn named(name: &str) -> anyhow::Result<Self> {
        let known = || Self::names().collect::<Vec<_>>().join(", ");
        let (name, text) = FILES
            .iter()
            .find(|f| f.0 == name)
            .ok_or_else(|| anyhow!("there is no experiment '{name}': use {} or all", known()))?;
        let mut experiment: Self =
            toml::from_str(text).with_context(|| format!("experiments/{name}/experiment.toml"))?;
        experiment.name = (*name).to_owned();
        if let Some(Sweep { values, places: Some(places), .. }) = &experiment.sweep {
            ensure!(places.len() == values.len(), "{name}: every value of the sweep needs a place");
        }
        for panel in &experiment.panels {
            for series in &panel.series {
                ensure!(experiment.find(series).is_some(), "{name}: there is no series '{series}'");
            }
        }
        Ok(experiment)
    }

    pub(crate) fn find(&self, series: &str) -> Option<&SeriesSpec> {
        self.series.iter().find(|s| s.name == series)
    }

    /// Values of the sweep, or a single nothing.
    pub(crate) fn points(&self) -> Vec<Option<&toml::Value>> {
        match &self.sweep {
            Some(sweep) => sweep.values.iter().map(Some).collect(),
            None => vec![None],
        }
    }

    /// Name of a point for files and tables; empty without a sweep.
    pub(crate) fn point_name(&self, point: usize) -> String {
        self.points()[point].map_or(String::new(), |v| match v {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// The settings of a series at a point, without a penalty that was chosen for it.
    pub(crate) fn settings(&self, series: &SeriesSpec, point: usize) -> anyhow::Result<Settings> {
        let mut table = self.base.clone();
        if let (Some(sweep), Some(value)) = (&self.sweep, self.points()[point]) {
            table.insert(sweep.setting.clone(), value.clone());
        }
        // Last: a series that has the swept setting itself is a level line to compare with.
        table.extend(series.settings.clone());
        Settings::from_table(table).with_context(|| format!("{}, series {}", self.name, series.name))
    }

    /// Refuses an experiment whose records have not been fetched yet.
    pub(crate) fn check_files(&self) -> anyhow::Result<()> {
        for series in &self.series {
            if let Source::File { path, schema } = self.settings(series, 0)?.source()? {
                let missing = [path, schema].into_iter().find(|file| !file.is_file());
                ensure!(
                    missing.is_none(),
                    "{} needs '{}', which is not shipped: run `python3 experiments/fetch.py` in the source tree, \
                     and this command there too",
                    self.name,
                    missing.unwrap_or_default().display()
                );
            }
        }
        Ok(())
    }

    /// Every simulation that the experiment needs.
    pub(crate) fn cases(&self, repetition: Repetition, penalties: &Penalties) -> anyhow::Result<Vec<Case>> {
        let mut cases = vec![];
        for series in &self.series {
            for (point, value) in self.points().into_iter().enumerate() {
                if value.is_some_and(|v| series.without.contains(v)) {
                    continue;
                }
                let mut settings = self.settings(series, point)?;
                if let Some(best) = penalties.best(&self.name, &series.name, &self.point_name(point)) {
                    settings.set_penalty(best);
                }
                let runs = match series.runs {
                    // A run without noise has nothing to repeat; other numbers go with the command's, ten being usual.
                    Some(1) => 1,
                    Some(usual) => (usual * repetition.runs).div_ceil(10),
                    None => repetition.runs,
                };
                let case = |runs, seed| Case {
                    experiment: self.name.clone(),
                    series: series.name.clone(),
                    point,
                    settings: settings.clone(),
                    own_models: self.own_models,
                    runs,
                    seed,
                };
                if series.new_split_each_run {
                    cases.extend((0..runs).map(|r| case(1, repetition.seed + u64::from(r))));
                } else {
                    cases.push(case(runs, repetition.seed));
                }
            }
        }
        Ok(cases)
    }
}

#[cfg(test)]
mod tests {
    use padmm_sim::Split;

    use super::*;

    #[test]
    fn every_experiment_reads_and_its_plans_check() {
        for name in Experiment::names() {
            let experiment = Experiment::named(name).unwrap();
            let cases =
                experiment.cases(Repetition { runs: 2, seed: 1 }, &Penalties::shipped().unwrap()).unwrap();
            for case in cases {
                case.settings.draft().unwrap().check().unwrap();
            }
        }
        let unknown = Experiment::named("fig9").unwrap_err().to_string();
        assert!(unknown.contains("fig1") && unknown.contains("fig9"), "{unknown}");
    }

    #[test]
    fn unequal_sites_share_as_many_records_as_equal_ones() {
        let sizes = |value: &toml::Value| match value.as_str().unwrap().parse() {
            Ok(Split::Sizes(sizes)) => sizes,
            other => panic!("{other:?}"),
        };
        let sweep = Experiment::named("unequal").unwrap().sweep.unwrap();
        for (value, smallest) in sweep.values.iter().zip(sweep.places.unwrap()) {
            let (sizes, sum) = (sizes(value), sizes(value).iter().sum::<usize>());
            assert!(sizes.len() == 6 && (19_998..=20_000).contains(&sum), "{value}");
            assert_eq!(sizes[5], smallest as usize, "{value}");
        }
        let experiment = Experiment::named("unequal-35").unwrap();
        let unequal = sizes(&experiment.base["split"]);
        let equal = sizes(&experiment.find("newton-even").unwrap().settings["split"]);
        assert_eq!((unequal.len(), unequal.iter().sum::<usize>()), (35, equal.iter().sum()));
        assert_eq!((unequal[0], unequal[34], equal.len()), (4700, 7, 35));
    }
}
