//! The settings of a simulation, from flags or from a `plan.toml` with the same names: flags win over the file, the file over the
//! defaults.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::{ArgMatches, Command};
use padmm_commands::flags;
use padmm_core::plan::PlanDraft;
use padmm_core::settings::Setting;
use padmm_data::{Loaded, Source};
use padmm_sim::{SimulationPlan, simulation_settings, source_settings};
use serde::Serialize;

/// Values by the names of their settings, with the place of the records.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Settings(padmm_core::settings::Settings);

/// Everything that can be set, as flags and as keys.
pub(crate) fn all_settings() -> Vec<Setting> {
    source_settings().into_iter().chain(simulation_settings()).collect()
}

impl Settings {
    /// Reads a `plan.toml` and refuses settings that are not known; errors name the line.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the plan '{}' cannot be read", path.display()))?;
        let wrong = |line: usize, problem: &str| {
            anyhow!("the plan '{}' is not understood, line {line}: {problem}", path.display())
        };
        let table: toml::Table = toml::from_str(&text).map_err(|error: toml::de::Error| {
            let before = |span: std::ops::Range<usize>| &text[..span.start.min(text.len())];
            wrong(error.span().map_or(1, |span| before(span).matches('\n').count() + 1), error.message())
        })?;
        for key in table.keys() {
            let alone = toml::Table::from_iter([(key.clone(), table[key].clone())]);
            if let Err(problem) = Self::from_table(alone) {
                let is_here = |line: &str| line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
                let line = text.lines().position(is_here);
                return Err(wrong(line.map_or(1, |line| line + 1), &problem.to_string()));
            }
        }
        Self::from_table(table)
    }

    /// The same from a table that was read already.
    pub(crate) fn from_table(table: toml::Table) -> anyhow::Result<Self> {
        let settings: padmm_core::settings::Settings = table.try_into()?;
        let known = all_settings();
        settings.check_names(&known)?;
        settings.check_kinds(&known)?;
        settings.graph(PlanDraft::default().algorithm)?;
        Ok(Self(settings))
    }

    /// These settings, with those of `file` where these are silent. A data set named by a flag replaces the file's data altogether.
    #[must_use]
    pub(crate) fn or(self, mut file: Self) -> Self {
        if self.0.has("dataset") || self.0.has("data") {
            source_settings().iter().for_each(|place| drop(file.0.take(place.name)));
        }
        Self(self.0.or(file.0))
    }

    /// Sets the penalty, unless one is set already.
    pub(crate) fn set_penalty(&mut self, penalty: f64) {
        if !self.0.has("penalty") {
            self.0.set("penalty", penalty);
        }
    }

    /// The plan's private rounds, or the default.
    pub(crate) fn rounds(&self) -> anyhow::Result<u32> {
        Ok(self.draft()?.rounds)
    }

    /// A shipped set, or a file with its schema; to name both is an error.
    pub(crate) fn source(&self) -> anyhow::Result<Source> {
        let path = |name: &str| self.0.text(name).map(PathBuf::from);
        match (self.0.text("dataset"), path("data"), path("schema")) {
            (Some(_), Some(_), _) => bail!("the plan names both a dataset and a data file: keep one"),
            (name, None, None) => Ok(Source::Shipped(name.unwrap_or_else(|| "adult".to_owned()))),
            (None, Some(path), Some(schema)) => Ok(Source::File { path, schema }),
            (None, Some(path), None) => bail!(
                "--data {path} needs --schema FILE: `padmm schema draft {path}` drafts one",
                path = path.display()
            ),
            (_, None, Some(_)) => {
                bail!("--schema goes with --data FILE; a shipped data set brings its own schema")
            }
        }
    }

    /// The checked plan of a simulation on `loaded`.
    pub(crate) fn simulation(&self, loaded: &Loaded, reference: bool) -> anyhow::Result<SimulationPlan> {
        let mut plain = self.0.clone();
        source_settings().iter().for_each(|place| drop(plain.take(place.name)));
        let has_sites = loaded.encoded.sites.is_some();
        Ok(SimulationPlan::from_settings(&plain, &loaded.name, has_sites, reference)?)
    }

    /// The plan without data and network; every algorithm is allowed.
    pub(crate) fn draft(&self) -> anyhow::Result<PlanDraft> {
        Ok(self.0.draft(&padmm_baselines::ALL)?)
    }
}

impl clap::Args for Settings {
    fn augment_args(command: Command) -> Command {
        flags::add(command, &all_settings()).mut_arg("dataset", |dataset| dataset.conflicts_with("data"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(flags::given(matches, &all_settings())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
