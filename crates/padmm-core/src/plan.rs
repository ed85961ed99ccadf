//! What a run is: a draft that anybody can fill in, and the checked plan that alone can run.

mod accountant;
mod open;
mod own;
mod weights;

use padmm_privacy::{Budget, Decay, PrivacyError, SensitivityBasis};
use serde::{Deserialize, Serialize};

use crate::algorithm::{AlgorithmKind, Guarantee, Needs, P_ADMM};
use crate::calibration::NetworkFacts;
use crate::data::{Dataset, FeatureSpace};
use crate::loss::Loss;
use crate::regularizer::Regularizer;
use crate::schema::Schema;

pub use accountant::{AccountantKind, not_pure};
pub use open::{AUTO, Open};
pub use own::{OwnSetting, OwnSettings};
pub use weights::SiteWeights;

/// Which model a site keeps — EQUATIONS §2 "what a site keeps".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Average over rounds with weights k², then the mean over sites: free post-processing.
    Smoothed,
    /// The paper's choice: the last release.
    Last,
}

/// A plan that has not been checked. Its defaults are the paper's setting where the paper has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct PlanDraft {
    /// Which algorithm every site runs.
    pub algorithm: AlgorithmKind,
    /// `K`, the rounds of a run; 0 where the algorithm has a rule for it, until the sites are known ([`Plan::for_network`]).
    pub rounds: u32,
    /// `η`; left out, it is derived from public facts (see [`crate::calibration::default_penalty`]).
    pub penalty: Option<f64>,
    /// `R`, by which the noise variance is multiplied from round to round.
    pub decay: f64,
    /// Total ε that every site may spend.
    pub epsilon: f64,
    /// δ at which every site's ε holds.
    pub delta: f64,
    /// What turns noise into ε when the noise is calibrated.
    pub accountant: AccountantKind,
    /// Where the sensitivity comes from; anything but `record` is for comparison only.
    pub sensitivity: SensitivityBasis,
    /// The loss of one record; private algorithms need one with a bounded slope.
    pub loss: Loss,
    /// `c`: a record's slope is capped at `c/‖a‖`, and rows are not scaled down; left out, rows are scaled to the schema's norm bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slope_cap: Option<f64>,
    /// `R`, with its strength `Λ`; every site has an `N`-th of it.
    pub regularizer: Regularizer,
    /// The solver's tolerance as a part of `2B/n_i`; left out, EQUATIONS §3's default.
    pub tolerance: Option<f64>,
    /// Which of a run's models the sites keep.
    pub output: Output,
    /// How much each site counts.
    pub weights: SiteWeights,
    /// Settings that the algorithm does not share with others.
    #[serde(flatten)]
    pub own: OwnSettings,
    /// What the rule on public facts is to pick once the sites are known ([`Plan::for_network`]); nothing in any file.
    #[serde(skip)]
    pub open: Open,
}

impl PlanDraft {
    /// What the plan says about a setting of its algorithm's own, or the default; none if the algorithm has no such setting.
    pub fn own_value(&self, name: &str) -> Option<f64> {
        let declared = self.algorithm.describe().own.iter().find(|own| own.name == name);
        declared.map(|own| self.own.value(own))
    }

    /// The records as a run of this plan sees them: with capped slopes, if the plan has a cap, and then as long as they are.
    pub fn records_of_run(&self, records: Dataset, space: &FeatureSpace) -> Dataset {
        match self.slope_cap {
            None => records,
            Some(cap) => records.with_slope_cap(cap, space.largest_norm()),
        }
    }

    /// The schema that a model of this plan is handed on with. Rows of a run with capped slopes were not scaled down, so its model must not see
    /// them scaled down either.
    pub fn schema_of_model(&self, schema: Schema) -> Schema {
        match self.slope_cap {
            None => schema,
            Some(_) => {
                let norm_bound = schema.feature_space().largest_norm();
                schema.with_norm_bound(norm_bound)
            }
        }
    }
}

impl Default for PlanDraft {
    fn default() -> Self {
        Self {
            algorithm: P_ADMM,
            rounds: 50,
            penalty: None,
            decay: 0.995,
            epsilon: 5.0,
            delta: 1e-4,
            accountant: AccountantKind::Exact,
            sensitivity: SensitivityBasis::Record,
            loss: Loss::Logistic,
            slope_cap: None,
            regularizer: Regularizer::L2 { strength: 1e-3 },
            tolerance: None,
            output: Output::Smoothed,
            weights: SiteWeights::Records,
            own: OwnSettings::default(),
            open: Open::default(),
        }
    }
}

/// Why a draft is not a plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum PlanError {
    /// A setting lies outside its range.
    #[error("`{setting}` is {value}, but it must be {rule}")]
    OutOfRange {
        /// Its name, as in a plan.
        setting: &'static str,
        value: f64,
        rule: &'static str,
    },
    /// A loss without a bound on its slope cannot be protected.
    #[error(
        "the loss '{loss}' has no bound on a record's gradient, so no noise can protect it: use `loss = huber`, or `algorithm = admm` to run without privacy"
    )]
    UnboundedLoss { loss: String },
    /// Counts start at zero and end at the label's upper bound, and the schema says otherwise.
    #[error(
        "the loss '{loss}' is about counts from 0 up to the upper bound of the label, and the label's bounds in the schema are {lower} and {upper}: set the label's `lower` to 0 and its `upper` to the largest count that is told apart, or use `loss = huber`"
    )]
    Counts { loss: String, lower: f64, upper: f64 },
    /// A setting that the plan's algorithm does not have.
    #[error(
        "`{setting}` is not a setting of {algorithm}: leave it out (`padmm algorithms` lists what each takes)"
    )]
    NotASetting {
        /// Its name, or what was asked for.
        setting: String,
        algorithm: &'static str,
    },
    /// A setting has text where a number belongs.
    #[error("`{setting}` must be a number")]
    NotANumber { setting: &'static str },
    /// A loss or regulariser for which the algorithm has no guarantee.
    #[error("`algorithm = {algorithm}` needs {needed}, and the plan has {found}: change one of them")]
    NotSupported { algorithm: &'static str, needed: &'static str, found: String },
    /// A budget that the privacy core refuses.
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
        let by_rule = self.rounds == 0 && self.algorithm.spec().has_rule_for_rounds();
        let (fewest, rule) = self.algorithm.spec().fewest_rounds();
        in_range("rounds", f64::from(self.rounds), self.rounds >= fewest || by_rule, rule)?;
        if let Some(penalty) = self.penalty {
            in_range("penalty", penalty, positive(penalty), "a positive number")?;
        }
        if let Some(t) = self.tolerance {
            in_range("tolerance", t, positive(t) && t <= 1.0, "above 0 and at most 1 (a part of 2B/n)")?;
        }
        self.check_problem(in_range)?;
        self.check_own_settings(in_range)?;
        self.check_needs()?;
        if self.algorithm.is_private() && self.loss.slope_bound().is_none() && !self.loss.awaits_label() {
            return Err(PlanError::UnboundedLoss { loss: self.loss.to_string() });
        }
        let budget = Budget::new(self.epsilon, self.delta)?;
        let decay = Decay::new(self.rounds.max(1), self.decay)?;
        Ok(Plan { draft: self, budget, decay })
    }

    /// Settings that belong to some algorithms only.
    fn check_own_settings(
        &self,
        in_range: impl Fn(&'static str, f64, bool, &'static str) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        let known = self.algorithm.describe().own;
        for (name, value) in self.own.iter() {
            let Some(own) = known.iter().find(|own| own.name == name) else {
                let algorithm =
                    if self.open.algorithm { "those that `auto` picks from" } else { self.algorithm.name() };
                let setting = name.to_owned();
                return Err(PlanError::NotASetting { setting, algorithm });
            };
            let value = value.as_f64().ok_or(PlanError::NotANumber { setting: own.name })?;
            in_range(own.name, value, (own.allows)(value), own.rule)?;
        }
        // Sums are calibrated by exact composition alone.
        let rules =
            self.algorithm.describe().guarantee != Guarantee::Experimental && self.algorithm.spec().solves();
        if self.accountant != AccountantKind::Exact && !rules {
            let (setting, algorithm) = ("accountant".to_owned(), self.algorithm.name());
            return Err(PlanError::NotASetting { setting, algorithm });
        }
        if self.sensitivity == SensitivityBasis::Paper && !self.algorithm.is_the_papers() {
            return Err(PlanError::NotASetting {
                setting: "sensitivity = paper".to_owned(),
                algorithm: self.algorithm.name(),
            });
        }
        Ok(())
    }

    /// Loss and regulariser for which the algorithm is defined and its guarantee proved.
    fn check_needs(&self) -> Result<(), PlanError> {
        let (loss, regularizer) = (self.loss, self.regularizer);
        let is_smooth = matches!(regularizer, Regularizer::None | Regularizer::L2 { .. });
        let by_coordinate = !matches!(regularizer, Regularizer::GroupLasso { .. });
        let needs = |ok: bool, needed, found: String| {
            let algorithm = self.algorithm.name();
            if ok { Ok(()) } else { Err(PlanError::NotSupported { algorithm, needed, found }) }
        };
        let loss_is = |ok, needed| needs(ok, needed, format!("`loss = {loss}`"));
        let regularizer_is = |ok, needed| needs(ok, needed, format!("the regularizer {regularizer}"));
        let cap_is = |ok, needed| needs(ok || self.slope_cap.is_none(), needed, "`slope-cap`".to_owned());
        cap_is(
            self.algorithm.spec().solves(),
            "rows that are scaled down, because it clips their gradients itself",
        )?;
        match self.algorithm.describe().needs {
            Needs::Nothing => Ok(()),
            Needs::TwiceDifferentiable => {
                cap_is(false, "a twice differentiable loss, and a cap gives it corners")?;
                loss_is(loss == Loss::Logistic, "a twice differentiable loss (`loss = logistic`)")?;
                regularizer_is(
                    is_smooth,
                    "a differentiable regulariser (`regularizer = none` or `regularizer = l2`)",
                )
            }
            Needs::SmoothLoss => {
                loss_is(loss.curvature_bound().is_some(), "a loss with bounded curvature (any but hinge)")
            }
            Needs::SmoothLossSeparableRegularizer => {
                loss_is(loss.curvature_bound().is_some(), "a loss with bounded curvature (any but hinge)")?;
                regularizer_is(
                    by_coordinate,
                    "a regulariser that is a sum over coordinates (none, l1, l2 or elastic-net)",
                )
            }
            Needs::SeparableRegularizer => regularizer_is(
                by_coordinate,
                "a regulariser that is a sum over coordinates (none, l1, l2 or elastic-net)",
            ),
        }
    }

    fn check_problem(
        &self,
        in_range: impl Fn(&'static str, f64, bool, &'static str) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        if let Loss::Huber { width } | Loss::HuberizedHinge { width } | Loss::Quantile { width, .. } =
            self.loss
        {
            in_range(
                "loss-width",
                width,
                (1e-50..=1e50).contains(&width),
                "a positive number, from 1e-50 to 1e50",
            )?;
        }
        if let Loss::Quantile { level, .. } = self.loss {
            let is_share = level > 0.0 && level < 1.0;
            in_range("quantile-level", level, is_share, "between 0 and 1, both excluded")?;
        }
        if let Loss::Poisson { cap } = self.loss {
            let is_count = self.loss.awaits_label() || (1e-50..=1e50).contains(&cap);
            in_range("loss", cap, is_count, "for counts up to a positive bound of at most 1e50")?;
        }
        if let Some(cap) = self.slope_cap {
            in_range("slope-cap", cap, cap > 0.0 && cap.is_finite(), "a positive number")?;
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
    /// The draft that was checked; it can be read but no longer changed.
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

    /// The same plan with what its loss takes from the bounds of the label's column ([`Loss::for_label`]); there are none of two classes.
    /// Nothing can be calibrated before that.
    pub fn for_label(self, bounds: Option<(f64, f64)>) -> Result<Self, PlanError> {
        let loss = self.draft.loss;
        match (loss.for_label(bounds), bounds) {
            (Some(known), _) => PlanDraft { loss: known, ..self.draft }.check(),
            (None, bounds) => {
                let (lower, upper) = bounds.unwrap_or_default();
                Err(PlanError::Counts { loss: loss.to_string(), lower, upper })
            }
        }
    }

    /// The same plan with what rules make of the sites' public facts, where the plan left it to them: algorithm and weights
    /// ([`crate::advice::recommend`]), and the rounds of algorithms that have a rule of their own for that.
    pub fn for_network(self, network: &NetworkFacts<'_>) -> Result<Self, PlanError> {
        if self.draft.open != Open::default() {
            return open::close(&self, network)?.for_network(network);
        }
        let by_rule = self.draft.algorithm.spec().rounds_by_rule(&self.draft, network);
        match by_rule.filter(|_| self.draft.rounds == 0) {
            Some(rounds) => PlanDraft { rounds, ..self.draft }.check(),
            None => Ok(self),
        }
    }

    /// The same plan for another algorithm, for reference runs; settings of the first algorithm's own are left out.
    pub fn with_algorithm(&self, algorithm: AlgorithmKind) -> Result<Self, PlanError> {
        let of_the_paper = algorithm.is_the_papers();
        let by_rule = |kind: AlgorithmKind| kind.spec().has_rule_for_rounds();
        let rounds = match (by_rule(self.draft.algorithm), by_rule(algorithm)) {
            (true, false) => PlanDraft::default().rounds,
            (false, true) => 0,
            _ => self.draft.rounds,
        };
        PlanDraft {
            algorithm,
            rounds,
            sensitivity: if of_the_paper { self.draft.sensitivity } else { SensitivityBasis::Record },
            own: OwnSettings::default(),
            open: Open::default(),
            ..self.draft.clone()
        }
        .check()
    }
}

impl TryFrom<PlanDraft> for Plan {
    type Error = PlanError;
    fn try_from(draft: PlanDraft) -> Result<Self, PlanError> {
        draft.check()
    }
}

impl From<Plan> for PlanDraft {
    fn from(plan: Plan) -> Self {
        plan.draft
    }
}
