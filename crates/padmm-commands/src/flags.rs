//! Flags made from the declarations of settings.

use clap::{Arg, ArgMatches, Command, value_parser};
use padmm_core::algorithm::{self, AlgorithmKind};
use padmm_core::graph::GraphSpec;
use padmm_core::plan::{AUTO, PlanDraft};
use padmm_core::settings::{Kind, Setting, Settings, plan_settings};

/// A flag for each of `settings`.
pub fn add(command: Command, settings: &[Setting]) -> Command {
    let flag = |setting: &Setting| {
        let flag = Arg::new(setting.name)
            .long(setting.name)
            .value_name(setting.value)
            .help(setting.help.clone())
            .help_heading(setting.group.title())
            // So that a number below zero is refused with its rule, not taken for a flag.
            .allow_negative_numbers(true);
        match setting.kind {
            Kind::Text => flag,
            Kind::Number => flag.value_parser(value_parser!(f64)),
            Kind::Count => flag.value_parser(value_parser!(u64)),
        }
    };
    command.args(settings.iter().map(flag))
}

/// Those of `settings` that were given as flags.
pub fn given(matches: &ArgMatches, settings: &[Setting]) -> Settings {
    let mut given = Settings::default();
    for Setting { name, kind, .. } in settings {
        match kind {
            Kind::Text => {
                if let Some(text) = matches.get_one::<String>(name) {
                    given.set(name, text.as_str());
                }
            }
            Kind::Number => {
                if let Some(&number) = matches.get_one::<f64>(name) {
                    given.set_number(name, number);
                }
            }
            Kind::Count => {
                if let Some(&count) = matches.get_one::<u64>(name) {
                    given.set(name, count);
                }
            }
        }
    }
    given
}

/// The flags of `padmm-site plan new`: those settings that sites have to agree on, with the names and defaults of `padmm simulate`, but
/// for what the rule on public facts picks unless a flag does: algorithm, weights and rounds.
#[derive(Clone, Debug)]
pub struct PlanFlags(Settings);

impl PlanFlags {
    fn table() -> Vec<Setting> {
        let between_sites: Vec<_> =
            algorithm::ALL.into_iter().filter(|kind| kind.runs_between_sites()).collect();
        // Noise for real records is calibrated exactly, to a sensitivity that is proved.
        let is_fixed = |setting: &Setting| ["accountant", "sensitivity"].contains(&setting.name);
        plan_settings(&between_sites).into_iter().filter(|setting| !is_fixed(setting)).collect()
    }

    /// The plan without its sites. An algorithm that does not run between sites is refused by name.
    pub fn draft(&self) -> anyhow::Result<PlanDraft> {
        let by_rule = Settings::default().with("algorithm", AUTO).with("weights", AUTO);
        let settings = self.0.clone().or(by_rule);
        if let Some(name) = settings.text("algorithm").filter(|name| name != AUTO) {
            anyhow::ensure!(
                AlgorithmKind::named(&name, &algorithm::ALL).is_some(),
                "--algorithm {name} is not known here; if `padmm algorithms` lists it, it is for simulation only: use {}",
                AlgorithmKind::names_between_sites()
            );
        }
        Ok(settings.draft(&algorithm::ALL)?)
    }

    /// Which sites talk to each other: all of them, unless a flag says otherwise.
    pub fn graph(&self) -> anyhow::Result<GraphSpec> {
        Ok(self.0.graph(PlanDraft::default().algorithm)?)
    }
}

impl clap::Args for PlanFlags {
    fn augment_args(command: Command) -> Command {
        add(command, &Self::table())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for PlanFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(given(matches, &Self::table())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
