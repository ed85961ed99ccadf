//! The settings of a simulation beyond those of its plan, and the way from settings to a checked plan.

use padmm_core::settings::{Group, Kind, Setting, Settings, plan_settings, setting};

use crate::{Holdout, NoiseKind, SimError, SimulationPlan, Split};

/// Where the records are: settings of the commands, since everybody else brings their records along.
pub fn source_settings() -> Vec<Setting> {
    use Group::Data;
    use Kind::Text;
    vec![
        setting("dataset", Data, Text, "NAME", "Shipped data set: adult or heart [default: adult]"),
        setting("data", Data, Text, "FILE", "Own data, CSV or Parquet"),
        setting("schema", Data, Text, "FILE", "Schema of the data"),
    ]
}

/// Every setting of a simulation, in the order of listings.
pub fn simulation_settings() -> Vec<Setting> {
    use Group::{Data, Privacy, Run};
    use Kind::{Count, Text};
    let mut all = vec![
        setting("agents", Data, Count, "N", "Number of agents [default: 5, or the sites of the site column]"),
        setting(
            "split",
            Data,
            Text,
            "HOW",
            "even, site, label-skew:ALPHA, size-skew:ALPHA, graded:RATIO, where the largest agent has RATIO times the records of the smallest, or sizes: and the records of each agent such as 4000,3x20, the rest being left out [default: site if the data has sites and the number of agents is not given, else even]",
        ),
        setting(
            "holdout",
            Data,
            Text,
            "F",
            "Records set aside for evaluation: a fraction, `stratified:F` for a fraction of every label at every site, or `official` for Adult's test file [default: none]",
        ),
    ];
    all.extend(plan_settings(&padmm_baselines::ALL));
    all.extend([
        setting(
            "noise",
            Privacy,
            Text,
            "WHICH",
            "seeded (repeatable, for simulation only) or secure (the sampler of real sites) [default: seeded]",
        ),
        setting(
            "runs",
            Run,
            Count,
            "N",
            "Independent runs; mean and standard deviation are reported [default: 1]",
        ),
        setting("seed", Run, Count, "S", "Seed of split, random graph and simulated noise [default: 1]"),
    ]);
    all
}

impl SimulationPlan {
    /// The checked plan of a simulation of `dataset`, whose records may name their sites.
    pub fn from_settings(
        settings: &Settings,
        dataset: &str,
        has_sites: bool,
        reference: bool,
    ) -> Result<Self, SimError> {
        settings.check_names(&simulation_settings())?;
        let n_agents = settings.typed("agents", "a whole number from 1 on")?;
        let split = match settings.text("split") {
            Some(text) => text.parse()?,
            None if has_sites && n_agents.is_none() => Split::Site,
            None => Split::Even,
        };
        let holdout = settings.text("holdout").map_or(Ok(Holdout::None), |text| text.parse())?;
        let noise =
            settings.named("noise", &[("seeded", NoiseKind::Seeded), ("secure", NoiseKind::Secure)])?;
        let plan = settings.draft(&padmm_baselines::ALL)?.check()?;
        Ok(Self {
            dataset: dataset.to_owned(),
            n_agents,
            graph: settings.graph(plan.settings().algorithm)?,
            split,
            holdout,
            runs: settings.typed("runs", "a whole number from 1 on")?.unwrap_or(1),
            seed: settings.typed("seed", "a whole number from 0 on")?.unwrap_or(1),
            noise: noise.unwrap_or_default(),
            measures: true,
            reference,
            rank_rounds: true,
            plan,
        })
    }
}
