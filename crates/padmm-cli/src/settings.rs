//! The settings of a simulation, from flags or from a `plan.toml` with the same names: flags win over the file, the file
//! over the defaults.

mod plan_flags;

pub use plan_flags::PlanFlags;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use padmm_core::graph::GraphSpec;
use padmm_core::plan::PlanDraft;
use padmm_data::{Loaded, Source};
use padmm_sim::SimulationPlan;
use padmm_sim::settings::text_or_number;
use serde::{Deserialize, Serialize};

/// Everything that can be set. A key left out has the default that its flag's help names.
#[derive(clap::Args, Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Shipped data set: adult or heart [default: adult]
    #[arg(long, value_name = "NAME", help_heading = "Data", conflicts_with = "data")]
    dataset: Option<String>,
    /// Own data, CSV or Parquet
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    data: Option<PathBuf>,
    /// Schema of --data
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    schema: Option<PathBuf>,
    /// Number of agents [default: 5, or the sites of the site column]
    #[arg(long, value_name = "N", help_heading = "Data", allow_negative_numbers = true)]
    agents: Option<usize>,
    /// even, site, label-skew:ALPHA or size-skew:ALPHA [default: site if the data has sites and --agents is not given, else even]
    #[arg(long, value_name = "HOW", help_heading = "Data")]
    split: Option<String>,
    /// Records set aside for evaluation: a fraction, `stratified:F` for a fraction of every label at every site, or `official` for
    /// Adult's test file [default: none]
    #[arg(long, value_name = "F", help_heading = "Data", allow_negative_numbers = true)]
    #[serde(default, deserialize_with = "text_or_number")]
    holdout: Option<String>,

    /// logistic, hinge, huberized-hinge, huber or (without privacy) squared [default: logistic]
    #[arg(long, value_name = "NAME", help_heading = "Problem")]
    loss: Option<String>,
    /// Width of huber [default: 0.1] and huberized-hinge [default: 0.5]
    #[arg(long, value_name = "H", help_heading = "Problem", allow_negative_numbers = true)]
    loss_width: Option<f64>,
    /// none, l2, l1, elastic-net or group-lasso [default: l2]
    #[arg(long, value_name = "NAME", help_heading = "Problem")]
    regularizer: Option<String>,
    /// Strength Λ of the regulariser in R(x) = Λ‖x‖² (every agent has R/N) [default: 0.001]
    #[arg(long, value_name = "L", help_heading = "Problem", allow_negative_numbers = true)]
    regularization: Option<f64>,
    /// Share of the L1 part in elastic-net [default: 0.5]
    #[arg(long, value_name = "A", help_heading = "Problem", allow_negative_numbers = true)]
    l1_ratio: Option<f64>,

    /// p-admm, admm (no privacy), dvp, pvp, m-admm, r-admm, mr-admm, dp-admm, linearized, token or gaussian-objective;
    /// `padmm algorithms` describes them [default: p-admm]
    #[arg(long, value_name = "NAME", help_heading = "Algorithm")]
    algorithm: Option<String>,
    /// ring, path, star, complete, grid, torus, erdos-renyi:P, geometric:R, small-world:K,BETA, regular:D or edges:a-b,b-c
    /// [default: star for dp-admm, else complete]
    #[arg(long, value_name = "GRAPH", help_heading = "Algorithm")]
    graph: Option<GraphText>,
    /// ADMM penalty η [default: derived from public facts]
    #[arg(long, value_name = "E", help_heading = "Algorithm", allow_negative_numbers = true)]
    penalty: Option<f64>,
    /// Private rounds K [default: 50]
    #[arg(long, value_name = "K", help_heading = "Algorithm", allow_negative_numbers = true)]
    rounds: Option<u32>,
    /// Factor of the penalty from one charged round to the next [default: m-admm 1.02, mr-admm 1.04]
    #[arg(long, value_name = "Q", help_heading = "Algorithm", allow_negative_numbers = true)]
    penalty_growth: Option<f64>,
    /// Factor of the noise rate from round to round [default: m-admm 1.02]
    #[arg(long, value_name = "Q", help_heading = "Algorithm", allow_negative_numbers = true)]
    rate_growth: Option<f64>,
    /// Damping of the free even step, in units of the penalty [default: r-admm and mr-admm 0.5]
    #[arg(long, value_name = "G", help_heading = "Algorithm", allow_negative_numbers = true)]
    even_damping: Option<f64>,
    /// Relaxation of the token's step [default: token 0.5]
    #[arg(long, value_name = "L", help_heading = "Algorithm", allow_negative_numbers = true)]
    relaxation: Option<f64>,
    /// Norm that models are expected to stay below; shapes step sizes only [default: dp-admm 5]
    #[arg(long, value_name = "C", help_heading = "Algorithm", allow_negative_numbers = true)]
    model_bound: Option<f64>,
    /// Solver tolerance as a part of 2B/n; it enters the sensitivity [default: 1e-6, hinge 1e-3]. Noise in the objective is proved for exact
    /// solves, so there it can only be tightened [default: 1e-10, or 2e-12 n]
    #[arg(long, value_name = "T", help_heading = "Algorithm", allow_negative_numbers = true)]
    tolerance: Option<f64>,
    /// Model that sites keep: smoothed or last [default: smoothed]
    #[arg(long, value_name = "WHICH", help_heading = "Algorithm")]
    output: Option<String>,

    /// Total privacy loss ε of every site [default: 5]
    #[arg(long, value_name = "E", help_heading = "Privacy", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// δ [default: 0.0001]
    #[arg(long, value_name = "D", help_heading = "Privacy", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Factor R of the noise variance from round to round [default: 0.995]
    #[arg(long, value_name = "R", help_heading = "Privacy", allow_negative_numbers = true)]
    decay: Option<f64>,
    /// What calibrates the noise: exact (the best valid accounting) or paper (the method's own paper's: zCDP for Gaussian noise,
    /// basic composition for pure differential privacy; also called basic) [default: exact]
    #[arg(long, value_name = "WHICH", help_heading = "Privacy")]
    accountant: Option<String>,
    /// record (derived and proven) or paper (for comparison only) [default: record]
    #[arg(long, value_name = "WHICH", help_heading = "Privacy")]
    sensitivity: Option<String>,
    /// seeded (repeatable, for simulation only) or secure (the sampler of real sites) [default: seeded]
    #[arg(long, value_name = "WHICH", help_heading = "Privacy")]
    noise: Option<String>,

    /// Independent runs; mean and standard deviation are reported [default: 1]
    #[arg(long, value_name = "N", help_heading = "Run", allow_negative_numbers = true)]
    runs: Option<u32>,
    /// Seed of split, random graph and simulated noise [default: 1]
    #[arg(long, value_name = "S", help_heading = "Run", allow_negative_numbers = true)]
    seed: Option<u64>,
}

/// A graph in a flag is text; in a file it may also be an array of pairs of site names.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub struct GraphText(GraphSpec);

impl std::str::FromStr for GraphText {
    type Err = padmm_core::graph::GraphError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(GraphText)
    }
}

impl Settings {
    /// The settings of a `plan.toml`.
    pub fn read(path: &Path) -> anyhow::Result<Settings> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the plan '{}' cannot be read", path.display()))?;
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let before = |span: std::ops::Range<usize>| &text[..span.start.min(text.len())];
            let line = error.span().map_or(1, |span| before(span).matches('\n').count() + 1);
            anyhow!("the plan '{}' is not understood, line {line}: {}", path.display(), error.message())
        })
    }

    /// These settings, with those of `file` where these are silent.
    pub fn or(self, file: Settings) -> Settings {
        // A data set named by a flag replaces the file's data altogether.
        let own_data = self.dataset.is_some() || self.data.is_some();
        let data_of = |mine: Option<PathBuf>, theirs: Option<PathBuf>| if own_data { mine } else { theirs };
        Settings {
            dataset: if own_data { self.dataset } else { file.dataset },
            data: data_of(self.data, file.data),
            schema: self.schema.or(if own_data { None } else { file.schema }),
            agents: self.agents.or(file.agents),
            split: self.split.or(file.split),
            holdout: self.holdout.or(file.holdout),
            loss: self.loss.or(file.loss),
            loss_width: self.loss_width.or(file.loss_width),
            regularizer: self.regularizer.or(file.regularizer),
            regularization: self.regularization.or(file.regularization),
            l1_ratio: self.l1_ratio.or(file.l1_ratio),
            algorithm: self.algorithm.or(file.algorithm),
            graph: self.graph.or(file.graph),
            penalty: self.penalty.or(file.penalty),
            rounds: self.rounds.or(file.rounds),
            penalty_growth: self.penalty_growth.or(file.penalty_growth),
            rate_growth: self.rate_growth.or(file.rate_growth),
            even_damping: self.even_damping.or(file.even_damping),
            relaxation: self.relaxation.or(file.relaxation),
            model_bound: self.model_bound.or(file.model_bound),
            tolerance: self.tolerance.or(file.tolerance),
            output: self.output.or(file.output),
            epsilon: self.epsilon.or(file.epsilon),
            delta: self.delta.or(file.delta),
            decay: self.decay.or(file.decay),
            accountant: self.accountant.or(file.accountant),
            sensitivity: self.sensitivity.or(file.sensitivity),
            noise: self.noise.or(file.noise),
            runs: self.runs.or(file.runs),
            seed: self.seed.or(file.seed),
        }
    }

    /// Sets the penalty, unless one is set already.
    pub fn set_penalty(&mut self, penalty: f64) {
        self.penalty.get_or_insert(penalty);
    }

    /// `K`
    pub fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(PlanDraft::default().rounds)
    }

    /// Where the records come from.
    pub fn source(&self) -> anyhow::Result<Source> {
        match (&self.dataset, &self.data, &self.schema) {
            (Some(_), Some(_), _) => bail!("the plan names both a dataset and a data file: keep one"),
            (name, None, None) => Ok(Source::Shipped(name.clone().unwrap_or_else(|| "adult".to_owned()))),
            (None, Some(path), Some(schema)) => {
                Ok(Source::File { path: path.clone(), schema: schema.clone() })
            }
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
    pub fn simulation(&self, loaded: &Loaded, reference: bool) -> anyhow::Result<SimulationPlan> {
        Ok(self.plain().simulation(&loaded.name, loaded.encoded.sites.is_some(), reference)?)
    }

    /// The plan's own part.
    pub fn draft(&self) -> anyhow::Result<PlanDraft> {
        Ok(self.plain().draft()?)
    }

    /// The same settings without the place of the records, which is the command's own business.
    fn plain(&self) -> padmm_sim::Settings {
        let s = self.clone();
        padmm_sim::Settings {
            agents: s.agents,
            split: s.split,
            holdout: s.holdout,
            loss: s.loss,
            loss_width: s.loss_width,
            regularizer: s.regularizer,
            regularization: s.regularization,
            l1_ratio: s.l1_ratio,
            algorithm: s.algorithm,
            graph: s.graph.map(|g| g.0),
            penalty: s.penalty,
            rounds: s.rounds,
            penalty_growth: s.penalty_growth,
            rate_growth: s.rate_growth,
            even_damping: s.even_damping,
            relaxation: s.relaxation,
            model_bound: s.model_bound,
            tolerance: s.tolerance,
            output: s.output,
            epsilon: s.epsilon,
            delta: s.delta,
            decay: s.decay,
            accountant: s.accountant,
            sensitivity: s.sensitivity,
            noise: s.noise,
            runs: s.runs,
            seed: s.seed,
        }
    }
}
