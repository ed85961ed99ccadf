//! The settings of a simulation by name, as people write them: the flags of `padmm simulate`, the keys of a `plan.toml`,
//! the keywords of the Python package. All of them become a plan here, so one name means one thing.

use padmm_core::algorithm::AlgorithmKind;
use padmm_core::graph::GraphSpec;
use padmm_core::loss::Loss;
use padmm_core::plan::{Output, PlanDraft};
use padmm_core::regularizer::Regularizer;
use padmm_privacy::{AccountantKind, SensitivityBasis};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Holdout, NoiseKind, SimError, SimulationPlan, Split};

/// Everything that can be set, except where the records are. What is left out has a default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Number of agents; 5, or the sites of the site column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<usize>,
    /// How records are dealt; by site if the data has sites and `agents` is not given, else evenly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Records set aside; none.
    #[serde(deserialize_with = "text_or_number", skip_serializing_if = "Option::is_none")]
    pub holdout: Option<String>,
    /// The loss; logistic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<String>,
    /// Width of huber (0.1) and huberized-hinge (0.5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_width: Option<f64>,
    /// The regulariser; l2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regularizer: Option<String>,
    /// Its strength; 0.001.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regularization: Option<f64>,
    /// Share of the L1 part in elastic-net; 0.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l1_ratio: Option<f64>,
    /// The algorithm; p-admm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// The graph; the one that the algorithm needs, else complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphSpec>,
    /// `η`; derived from public facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty: Option<f64>,
    /// `K`; 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// Factor of the primal penalty from one charged round to the next (M-ADMM, MR-ADMM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub penalty_growth: Option<f64>,
    /// Factor of the noise's rate from round to round (M-ADMM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_growth: Option<f64>,
    /// Damping of the free even step, in units of the penalty (R-ADMM, MR-ADMM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub even_damping: Option<f64>,
    /// Relaxation of the token's step (token).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relaxation: Option<f64>,
    /// Norm that models are expected to stay below; it shapes step sizes only (DP-ADMM).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_bound: Option<f64>,
    /// The solver's tolerance as a part of `2B/n_i`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Which model is kept; smoothed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// ε; 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// δ; 0.0001.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Factor of the noise variance from round to round; 0.995.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<f64>,
    /// What calibrates the noise; exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accountant: Option<String>,
    /// Where the sensitivity comes from; record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<String>,
    /// Where the noise comes from; seeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<String>,
    /// Independent runs; 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Seed of split, random graph and simulated noise; 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A file may say `holdout = 0.2` without quotation marks.
pub fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "`holdout` is a fraction or one of \"official\", \"none\"")]
    enum Either {
        Text(String),
        Number(f64),
    }
    Either::deserialize(deserializer).map(|either| {
        Some(match either {
            Either::Text(text) => text,
            Either::Number(number) => number.to_string(),
        })
    })
}

impl Settings {
    /// The checked plan of a simulation of `dataset`, whose records may name their sites.
    pub fn simulation(
        &self,
        dataset: &str,
        has_sites: bool,
        reference: bool,
    ) -> Result<SimulationPlan, SimError> {
        let split = match &self.split {
            Some(text) => text.parse()?,
            None if has_sites && self.agents.is_none() => Split::Site,
            None => Split::Even,
        };
        let holdout = self.holdout.as_deref().map_or(Ok(Holdout::None), str::parse)?;
        let noise = named(
            "noise",
            self.noise.as_deref(),
            &[("seeded", NoiseKind::Seeded), ("secure", NoiseKind::Secure)],
        )?;
        let plan = self.draft()?.check()?;
        Ok(SimulationPlan {
            dataset: dataset.to_owned(),
            n_agents: self.agents,
            graph: self.graph(plan.settings().algorithm)?,
            split,
            holdout,
            runs: self.runs.unwrap_or(1),
            seed: self.seed.unwrap_or(1),
            noise: noise.unwrap_or_default(),
            reference,
            rank_rounds: true,
            plan,
        })
    }

    /// Who talks to whom: as set, else what the algorithm needs, else everybody with everybody.
    pub fn graph(&self, algorithm: AlgorithmKind) -> Result<GraphSpec, SimError> {
        match (&self.graph, algorithm.graph_needed()) {
            (Some(graph), _) => Ok(graph.clone()),
            (None, Some(needed)) => Ok(needed.parse()?),
            (None, None) => Ok(GraphSpec::Complete),
        }
    }

    /// The plan's own part.
    pub fn draft(&self) -> Result<PlanDraft, SimError> {
        let d = PlanDraft::default();
        let algorithms = AlgorithmKind::ALL.map(|a| (a.name(), a));
        let accountants = [
            ("exact", AccountantKind::Exact),
            ("paper", AccountantKind::Paper),
            ("basic", AccountantKind::Basic),
        ];
        let bases = [("record", SensitivityBasis::Record), ("paper", SensitivityBasis::Paper)];
        let outputs = [("smoothed", Output::Smoothed), ("last", Output::Last)];
        Ok(PlanDraft {
            algorithm: named("algorithm", self.algorithm.as_deref(), &algorithms)?.unwrap_or(d.algorithm),
            rounds: self.rounds.unwrap_or(d.rounds),
            penalty: self.penalty.or(d.penalty),
            decay: self.decay.unwrap_or(d.decay),
            epsilon: self.epsilon.unwrap_or(d.epsilon),
            delta: self.delta.unwrap_or(d.delta),
            accountant: named("accountant", self.accountant.as_deref(), &accountants)?
                .unwrap_or(d.accountant),
            sensitivity: named("sensitivity", self.sensitivity.as_deref(), &bases)?.unwrap_or(d.sensitivity),
            loss: self.loss()?.unwrap_or(d.loss),
            regularizer: self.regularizer()?,
            tolerance: self.tolerance.or(d.tolerance),
            output: named("output", self.output.as_deref(), &outputs)?.unwrap_or(d.output),
            penalty_growth: self.penalty_growth,
            rate_growth: self.rate_growth,
            even_damping: self.even_damping,
            relaxation: self.relaxation,
            model_bound: self.model_bound,
        })
    }

    fn loss(&self) -> Result<Option<Loss>, SimError> {
        let width = |default| self.loss_width.unwrap_or(default);
        let known = [
            ("logistic", Loss::Logistic),
            ("hinge", Loss::Hinge),
            ("huberized-hinge", Loss::HuberizedHinge { width: width(0.5) }),
            ("huber", Loss::Huber { width: width(0.1) }),
            ("squared", Loss::Squared),
        ];
        named("loss", self.loss.as_deref(), &known)
    }

    fn regularizer(&self) -> Result<Regularizer, SimError> {
        let strength = self.regularization.unwrap_or(1e-3);
        let l2 = Regularizer::L2 { strength };
        let known = [
            ("none", Regularizer::None),
            ("l2", l2),
            ("l1", Regularizer::L1 { strength }),
            ("elastic-net", Regularizer::ElasticNet { strength, l1_ratio: self.l1_ratio.unwrap_or(0.5) }),
            ("group-lasso", Regularizer::GroupLasso { strength }),
        ];
        Ok(named("regularizer", self.regularizer.as_deref(), &known)?.unwrap_or(l2))
    }
}

/// The value that a name stands for.
fn named<T: Copy>(
    setting: &'static str,
    text: Option<&str>,
    known: &[(&str, T)],
) -> Result<Option<T>, SimError> {
    let Some(text) = text else { return Ok(None) };
    match known.iter().find(|k| k.0 == text) {
        Some(k) => Ok(Some(k.1)),
        None => {
            let names: Vec<&str> = known.iter().map(|k| k.0).collect();
            Err(SimError::UnknownName { setting, text: text.to_owned(), known: names.join(", ") })
        }
    }
}
