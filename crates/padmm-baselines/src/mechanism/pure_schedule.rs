//! Schedules of pure mechanisms: from a budget to the noise rate of every round.

use padmm_privacy::outward::{add_up, div_down, mul_down, mul_up};
use padmm_privacy::{
    Adjacency, Budget, Compositions, Delta, Event, ExactMethod, Mechanism, Premise, PrivacyError,
    PrivacyReport, RequiredCertificate, Schedule, Sensitivity, SensitivityBasis, SpentEpsilon, Stopping,
    ZcdpRho, check_features, require, rho_to_mu,
};
use serde::Serialize;

use crate::accounting::charge;
use crate::accounting::composition::{
    CompositionRule, Steps, best, compose_pure, largest_within, running_epsilon,
};
use crate::mechanism::refusal::jacobian_spends_budget;
use crate::mechanism::{GammaOutput, ObjectiveInputs, ObjectivePerturbation};

/// Bits by which the release grid of output perturbation is finer than the noise.
pub(crate) const OUTPUT_GRID_BITS: u32 = 24;
/// Schedules longer than this belong to no plan.
const MOST_ROUNDS: usize = 1_000_000;

/// What calibration has to know about a round that uses data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PureStep {
    /// Relative weight of this round's noise budget, above 0.
    pub share: f64,
    /// Strong convexity of the round's problem; the Jacobian part is derived from it. Output perturbation does not use it.
    pub modulus: f64,
}

/// What the noise is added to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PureTarget {
    /// The linear term of the local objective.
    Objective(ObjectiveInputs),
    /// The minimiser, before it is released.
    Output(Sensitivity),
}

impl PureTarget {
    /// What the noise has to hide: a change of the gradient or of the minimiser, rounded up.
    fn distance(&self) -> Result<f64, PrivacyError> {
        match self {
            Self::Objective(inputs) => inputs.shift(),
            Self::Output(sensitivity) => Ok(sensitivity.value()),
        }
    }

    fn jacobian(&self, step: &PureStep) -> Result<f64, PrivacyError> {
        match self {
            Self::Objective(inputs) => inputs.jacobian(step.modulus),
            Self::Output(_) => Ok(0.0),
        }
    }

    fn basis(&self) -> SensitivityBasis {
        match self {
            Self::Objective(_) => SensitivityBasis::Record,
            Self::Output(sensitivity) => sensitivity.basis(),
        }
    }
}

/// What pure noise is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct PureRequest {
    /// What one site may spend over the whole run.
    pub budget: Budget,
    /// By which theorem the rounds are added up.
    pub rule: CompositionRule,
    /// What the noise is added to.
    pub target: PureTarget,
    /// One entry for each round, the first at index 0; `None` is a round that uses no data.
    pub steps: Vec<Option<PureStep>>,
    /// Coordinates of the noise, and of a release.
    pub n_features: usize,
}

/// One charged round: the noise that will be drawn and what it is worth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Charged {
    noise_rate: f64,
    epsilon: f64,
    modulus: f64,
}

/// The noise of every round of one site, of density proportional to `exp(-rate |b|)`, and what it adds up to.
///
/// Made by [`PureSchedule::calibrate`] and never changed, so that noise and price cannot drift apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PureSchedule {
    target: PureTarget,
    rule: CompositionRule,
    n_features: usize,
    delta: Delta,
    distance: f64,
    rounds: Vec<Option<Charged>>,
    compositions: Compositions,
}

impl PureSchedule {
    /// EQUATIONS §5 for pure mechanisms: the least noise, up to rounding, that the budget allows by the rule.
    ///
    /// ```text
    /// epsilon(t) = share(t) x + jacobian(t),   noise_rate(t) = share(t) x / distance
    /// ```
    ///
    /// with the largest x for which the composition of all epsilon(t) is at most `budget.epsilon` at `budget.delta`;
    /// `distance` is the shift `2B/n` or the sensitivity, and the Jacobian part is zero for output perturbation.
    ///
    /// Guarantee: rates are rounded down and epsilons are computed upward from the very rates that will be used; the
    /// composition that was compared with the budget is that of these epsilons. If the Jacobian parts alone exceed the
    /// budget, no noise helps, and that is the error.
    pub fn calibrate(request: &PureRequest) -> Result<Self, PrivacyError> {
        let &PureRequest { budget, rule, target, ref steps, n_features } = request;
        let budget = budget.checked()?;
        check_features(n_features)?;
        require(steps.len() <= MOST_ROUNDS, "rounds", steps.len() as f64, "at most 1000000")?;
        let (mut shares, mut jacobians) = (0.0, vec![]);
        for step in steps.iter().flatten() {
            require(
                step.share > 0.0 && step.share.is_finite(),
                "share",
                step.share,
                "a finite number above 0",
            )?;
            shares += step.share;
            jacobians.push(target.jacobian(step)?);
        }
        require(!jacobians.is_empty(), "rounds that use data", 0.0, "at least 1")?;
        require(
            shares.is_finite(),
            "sum of shares",
            shares,
            "finite; let noise and penalties grow more slowly",
        )?;
        let distance = target.distance()?;
        let plan = Plan { steps, jacobians, distance };
        let cost = |x: f64| {
            let epsilons = plan.epsilons(x);
            Steps::new(&epsilons).map_or(f64::INFINITY, |steps| steps.cost(budget.delta, rule))
        };
        let limit = budget.epsilon.value();
        let start = limit / shares;
        let precision = Steps::new(&plan.epsilons(start))?.search_precision(rule);
        let Some(x) = largest_within(limit, start, precision, cost) else {
            let spent = rule.pick(&compose_pure(&plan.jacobians, budget.delta)?);
            let (rounds, epsilon) = (plan.jacobians.len() as u32, limit);
            return Err(jacobian_spends_budget(rounds, spent, epsilon));
        };
        let rounds = plan.rounds(x);
        for charged in rounds.iter().flatten() {
            let rate = charged.noise_rate;
            require(
                rate.is_normal(),
                "noise rate",
                rate,
                "a positive double; rescale the data or the shares",
            )?;
        }
        let compositions = compose_pure(&plan.epsilons(x), budget.delta)?;
        Ok(Self { target, rule, n_features, delta: budget.delta, distance, rounds, compositions })
    }

    /// Number of rounds, free ones included.
    pub fn rounds(&self) -> u32 {
        self.rounds.len() as u32
    }

    /// How many rounds use data; the others are free.
    pub fn rounds_charged(&self) -> u32 {
        self.rounds.iter().flatten().count() as u32
    }

    fn charged(&self, round: u32) -> Option<&Charged> {
        self.rounds.get((round as usize).checked_sub(1)?)?.as_ref()
    }

    /// What round `round` costs, rounded up; `None` for a free round and outside the schedule.
    pub fn epsilon(&self, round: u32) -> Option<f64> {
        self.charged(round).map(|charged| charged.epsilon)
    }

    /// The rate of round `round`'s noise, whose density is proportional to `exp(-rate |b|)`; rounded down.
    pub fn noise_rate(&self, round: u32) -> Option<f64> {
        self.charged(round).map(|charged| charged.noise_rate)
    }

    /// Standard deviation of one coordinate of the noise, `sqrt(p + 1) / rate`.
    pub fn noise_std(&self, round: u32) -> Option<f64> {
        self.noise_rate(round).map(|rate| ((self.n_features + 1) as f64).sqrt() / rate)
    }

    /// Strong convexity that round `round` was charged with.
    pub fn modulus(&self, round: u32) -> Option<f64> {
        self.charged(round).map(|charged| charged.modulus)
    }

    /// What round `round` does to the data; `None` for a free round and outside the schedule.
    pub fn event(&self, round: u32) -> Option<Event> {
        self.epsilon(round).map(|epsilon| Event::PureDp { epsilon })
    }

    /// What all rounds amount to, by every rule.
    pub fn compositions(&self) -> Compositions {
        self.compositions
    }

    /// The rule that the budget was spent by.
    pub fn rule(&self) -> CompositionRule {
        self.rule
    }

    /// What the noise is added to.
    pub fn target(&self) -> &PureTarget {
        &self.target
    }

    /// What one record can change: the shift `2B/n` of the gradient, or the sensitivity of the minimiser.
    pub fn distance(&self) -> f64 {
        self.distance
    }

    /// The delta at which epsilons are reported.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// Coordinates of the noise, and of a release.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Epsilon after each round: the best valid one, and the sum in place of the paper's.
    pub fn epsilon_curve(&self) -> Vec<SpentEpsilon> {
        let epsilons: Vec<Option<f64>> =
            self.rounds.iter().map(|round| round.map(|charged| charged.epsilon)).collect();
        let curve = running_epsilon(&epsilons, self.delta, self.compositions);
        curve.into_iter().map(|(exact, paper)| SpentEpsilon { exact, paper }).collect()
    }

    /// Everything that a reader of the guarantee needs.
    pub fn report(&self) -> PrivacyReport {
        let charged = || (1..=self.rounds()).filter_map(|round| self.noise_std(round));
        let first = charged().next().expect("a schedule has a round that uses data");
        let last = charged().next_back().expect("a schedule has a round that uses data");
        let rho_total = ZcdpRho::new(self.rho_total()).expect("checked when the schedule was made");
        PrivacyReport {
            adjacency: Adjacency::ReplaceOne,
            epsilon_exact: best(&self.compositions),
            exact_method: ExactMethod::OptimalComposition,
            epsilon_paper: self.compositions.basic,
            delta: self.delta.value(),
            delta_slack: 0.0,
            rho_total: rho_total.value(),
            mu: rho_to_mu(rho_total).value(),
            noise_std_first: first,
            noise_std_last: last,
            noise_multiplier_first: first / self.distance,
            noise_multiplier_last: last / self.distance,
            sensitivity: self.distance,
            sensitivity_basis: self.target.basis(),
            grid_bits: match self.target {
                PureTarget::Objective(_) => 0,
                PureTarget::Output(_) => OUTPUT_GRID_BITS,
            },
            rounds: self.rounds(),
            rounds_charged: self.rounds_charged(),
            decay: 1.0,
            compositions: Some(self.compositions),
            noise_is_exact: false,
            stopping: Stopping::SolverMayStall,
        }
    }
}

impl Schedule for PureSchedule {
    fn rounds(&self) -> u32 {
        self.rounds()
    }

    fn n_features(&self) -> usize {
        self.n_features
    }

    fn event(&self, round: u32) -> Option<Event> {
        self.event(round)
    }

    fn rho(&self, round: u32) -> f64 {
        let of = |event| charge(&event).expect("checked when the schedule was made").value();
        self.event(round).map_or(0.0, of)
    }

    fn noise_std(&self, round: u32) -> Option<f64> {
        self.noise_std(round)
    }

    fn epsilon_curve(&self) -> Vec<SpentEpsilon> {
        self.epsilon_curve()
    }

    fn report(&self) -> PrivacyReport {
        self.report()
    }

    fn premise(&self) -> Option<Premise> {
        match &self.target {
            PureTarget::Output(sensitivity) => sensitivity.premise(),
            PureTarget::Objective(inputs) => Some(
                inputs.premise((1..=self.rounds()).filter_map(|r| self.modulus(r)).fold(f64::MAX, f64::min)),
            ),
        }
    }

    fn mechanism(&self, required: RequiredCertificate) -> Result<Box<dyn Mechanism>, PrivacyError> {
        Ok(match &self.target {
            PureTarget::Objective(_) => Box::new(ObjectivePerturbation::pure(self.clone(), required)?),
            PureTarget::Output(_) => Box::new(GammaOutput::new(self.clone(), required)?),
        })
    }
}

/// The rounds as functions of the one unknown.
struct Plan<'a> {
    steps: &'a [Option<PureStep>],
    /// Of the charged rounds, in order.
    jacobians: Vec<f64>,
    distance: f64,
}

impl Plan<'_> {
    fn charge(&self, step: &PureStep, jacobian: f64, x: f64) -> Charged {
        let noise_rate = div_down(mul_down(step.share, x), self.distance);
        let epsilon = add_up(mul_up(noise_rate, self.distance), jacobian);
        Charged { noise_rate, epsilon, modulus: step.modulus }
    }

    fn epsilons(&self, x: f64) -> Vec<f64> {
        let charged = self.steps.iter().flatten().zip(&self.jacobians);
        charged.map(|(step, &jacobian)| self.charge(step, jacobian, x).epsilon).collect()
    }

    fn rounds(&self, x: f64) -> Vec<Option<Charged>> {
        let mut jacobians = self.jacobians.iter();
        let next = |step: &PureStep| {
            let jacobian = *jacobians.next().expect("one for each charged round");
            self.charge(step, jacobian, x)
        };
        let mut next = next;
        self.steps.iter().map(|step| step.as_ref().map(&mut next)).collect()
    }
}
