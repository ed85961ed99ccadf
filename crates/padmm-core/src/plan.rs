//! What a run is: a draft that anybody can fill in, and the checked plan that alone can run.

use padmm_privacy::{AccountantKind, Budget, Decay, PrivacyError, SensitivityBasis};
use serde::{Deserialize, Serialize};

use crate::algorithm::AlgorithmKind;
use crate::loss::Loss;
use crate::regularizer::Regularizer;

/// Which model a site keeps — MATH §2 "what a site keeps".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Average over rounds with weights k², then gossip: free post-processing.
    Smoothed,
    /// The paper's: the last release.
    Last,
}

/// A plan that has not been checked. Its defaults are the paper's setting where the paper has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlanDraft {
    /// Which algorithm.
    pub algorithm: AlgorithmKind,
    /// `K`
    pub rounds: u32,
    /// `η`; left out, it is derived from public facts (see [`crate::terms::default_penalty`]).
    pub penalty: Option<f64>,
    /// `R`, by which the noise variance is multiplied from round to round.
    pub decay: f64,
    /// Total ε that every site may spend.
    pub epsilon: f64,
    /// δ
    pub delta: f64,
    /// What turns noise into ε when the noise is calibrated.
    pub accountant: AccountantKind,
    /// Where the sensitivity comes from; anything but `record` is for comparison only.
    pub sensitivity: SensitivityBasis,
    /// The loss.
    pub loss: Loss,
    /// The regulariser.
    pub regularizer: Regularizer,
    /// The solver's tolerance as a part of `2B/n_i`; left out, MATH §3's default.
    pub tolerance: Option<f64>,
    /// Which model is kept.
    pub output: Output,
}

impl Default for PlanDraft {
    fn default() -> Self {
        PlanDraft {
            algorithm: AlgorithmKind::PAdmm,
            rounds: 50,
            penalty: None,
            decay: 0.995,
            epsilon: 5.0,
            delta: 1e-4,
            accountant: AccountantKind::Exact,
            sensitivity: SensitivityBasis::Record,
            loss: Loss::Logistic,
            regularizer: Regularizer::L2 { strength: 1e-3 },
            tolerance: None,
            output: Output::Smoothed,
        }
    }
}

/// Why a draft is not a plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// A number outside its range.
    #[error("--{setting} is {value}, but it must be {rule}")]
    OutOfRange {
        /// The flag or key.
        setting: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        rule: &'static str,
    },
    /// A loss without a bound on its slope cannot be protected.
    #[error(
        "the loss '{loss}' has no bound on a record's gradient, so no noise can protect it: use --loss huber, or --algorithm admm to run without privacy"
    )]
    UnboundedLoss {
        /// The loss.
        loss: String,
    },
    /// The privacy core refuses.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
}

/// A checked plan. Deserialising goes through the same check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PlanDraft", into = "PlanDraft")]
pub struct Plan {
    draft: PlanDraft,
    budget: Budget,
    decay: Decay,
}

impl PlanDraft {
    /// Checks everything that can be checked without knowing the sites.
    pub fn check(self) -> Result<Plan, PlanError> {
        let in_range = |setting, value: f64, ok: bool, rule| {
            if ok { Ok(()) } else { Err(PlanError::OutOfRange { setting, value, rule }) }
        };
        let positive = |v: f64| v > 0.0 && v.is_finite();
        in_range("epsilon", self.epsilon, positive(self.epsilon), "a positive number")?;
        in_range(
            "delta",
            self.delta,
            self.delta > 0.0 && self.delta < 1.0,
            "between 0 and 1, both excluded",
        )?;
        in_range("decay", self.decay, self.decay > 0.0 && self.decay <= 1.0, "above 0 and at most 1")?;
        in_range("rounds", f64::from(self.rounds), self.rounds >= 1, "at least 1")?;
        if let Some(penalty) = self.penalty {
            in_range("penalty", penalty, positive(penalty), "a positive number")?;
        }
        if let Some(t) = self.tolerance {
            in_range("tolerance", t, positive(t) && t <= 1.0, "above 0 and at most 1 (a part of 2B/n)")?;
        }
        self.check_problem(in_range)?;
        if self.algorithm.is_private() && self.loss.slope_bound().is_none() {
            return Err(PlanError::UnboundedLoss { loss: self.loss.to_string() });
        }
        let budget = Budget::new(self.epsilon, self.delta)?;
        let decay = Decay::new(self.rounds, self.decay)?;
        Ok(Plan { draft: self, budget, decay })
    }

    fn check_problem(
        &self,
        in_range: impl Fn(&'static str, f64, bool, &'static str) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        if let Loss::Huber { width } | Loss::HuberizedHinge { width } = self.loss {
            in_range("loss-width", width, width > 0.0 && width.is_finite(), "a positive number")?;
        }
        let strength = match self.regularizer {
            Regularizer::None => return Ok(()),
            Regularizer::L2 { strength }
            | Regularizer::L1 { strength }
            | Regularizer::GroupLasso { strength } => strength,
            Regularizer::ElasticNet { strength, l1_ratio } => {
                in_range("l1-ratio", l1_ratio, (0.0..=1.0).contains(&l1_ratio), "between 0 and 1")?;
                strength
            }
        };
        in_range(
            "regularization",
            strength,
            strength >= 0.0 && strength.is_finite(),
            "zero or a positive number",
        )
    }
}

impl Plan {
    /// The settings.
    pub fn settings(&self) -> &PlanDraft {
        &self.draft
    }

    /// (ε, δ) that every site may spend.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Rounds and decay of the noise.
    pub fn decay(&self) -> Decay {
        self.decay
    }

    /// The same plan for another algorithm, for reference runs.
    pub fn with_algorithm(&self, algorithm: AlgorithmKind) -> Result<Plan, PlanError> {
        PlanDraft { algorithm, ..self.draft.clone() }.check()
    }
}

impl TryFrom<PlanDraft> for Plan {
    type Error = PlanError;
    fn try_from(draft: PlanDraft) -> Result<Self, PlanError> {
        draft.check()
    }
}

impl From<Plan> for PlanDraft {
    fn from(plan: Plan) -> PlanDraft {
        plan.draft
    }
}
