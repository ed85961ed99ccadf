//! From a budget to noise, and from noise to what it is worth.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

use crate::accountant::{Accountant, ZcdpAccountant, ZcdpConversion};
use crate::budget::{Adjacency, Budget, Delta, Epsilon, ZcdpRho};
use crate::convert::{
    gdp_epsilon, gdp_mu, mu_to_rho_down, paper_epsilon, paper_rho, rho_to_mu, zcdp_epsilon, zcdp_rho,
};
use crate::decay::Decay;
use crate::error::{PrivacyError, require};
use crate::event::Event;
use crate::grid::Grid;
use crate::outward::{add_up, div_up, mul_up, sqrt_up, sub_down};
use crate::promise::Stopping;
use crate::report::{ExactMethod, PrivacyReport, SpentEpsilon};
use crate::sensitivity::Sensitivity;

/// Vectors longer than this are not models that anyone would release coordinate by coordinate.
const MOST_FEATURES: usize = 1 << 40;

/// Which conversion a budget is spent by. Both are reported in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccountantKind {
    /// Exact composition of Gaussian noise: the least noise for a true epsilon.
    #[default]
    Exact,
    /// The paper's conversion from zCDP: more noise than the epsilon asks for.
    Paper,
    /// Epsilons added up, as the publications of pure methods do; Gaussian noise has none.
    Basic,
}

impl fmt::Display for AccountantKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::Paper => "paper",
            Self::Basic => "basic",
        })
    }
}

impl FromStr for AccountantKind {
    type Err = PrivacyError;
    fn from_str(name: &str) -> Result<Self, PrivacyError> {
        match name {
            "exact" => Ok(Self::Exact),
            "paper" => Ok(Self::Paper),
            "basic" => Ok(Self::Basic),
            _ => Err(PrivacyError::UnknownName {
                what: "accountant",
                found: name.into(),
                known: "exact, paper, basic",
            }),
        }
    }
}

/// What noise is calibrated for: one site's budget, rounds and sensitivity.
#[derive(Debug, Clone)]
pub struct NoiseRequest {
    /// What one site may spend over the whole run.
    pub budget: Budget,
    /// By which conversion the noise has to meet the budget.
    pub accountant: AccountantKind,
    /// Over how many rounds the budget is spread, and how fast the variance falls meanwhile.
    pub decay: Decay,
    /// Sensitivity of one release, before rounding to the grid.
    pub sensitivity: Sensitivity,
    /// Coordinates of a release: the model's coefficients.
    pub n_features: usize,
    /// Factors `0 < c(k) <= 1`, one for each round, by which sensitivity and noise of that round are multiplied, for an
    /// algorithm whose modulus grows over rounds so that `c(k) * sensitivity` bounds round k. `None`: all are 1.
    pub scales: Option<Vec<f64>>,
}

/// The noise of every round of one site, with the grid it is drawn on and what it adds up to.
///
/// A schedule is made by [`NoiseSchedule::calibrate`] or [`NoiseSchedule::from_noise_multiplier`] and never changes, so
/// the noise and its price cannot drift apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseSchedule {
    decay: Decay,
    sensitivity: Sensitivity,
    n_features: usize,
    delta: Delta,
    delta_slack: f64,
    exact_method: ExactMethod,
    grid_bits: u32,
    noise_std_first: f64,
    rho_total: ZcdpRho,
    #[serde(skip_serializing_if = "Option::is_none")]
    scales: Option<Vec<f64>>,
    #[serde(skip)]
    stopping: Stopping,
}

impl NoiseSchedule {
    /// The least noise, up to rounding, whose reported epsilon is at most the budget's.
    ///
    /// ```text
    /// rho(1) = rho_total / (sum over k < K of R^-k),   noise_std(1) = sensitivity / sqrt(2 rho(1))
    /// noise_var(k) = R^(k-1) noise_var(1)
    /// ```
    ///
    /// Guarantee: the epsilon that this schedule reports for the chosen accountant, computed upward from the very events
    /// it will emit, is at most `budget.epsilon` at `budget.delta`.
    ///
    /// Scales c(k) multiply sensitivity and noise of round k alike, so that the charges stay as they are. The grid's share
    /// scales along: with `enlarged = sensitivity + noise_std(1) 2^-bits sqrt(p)` the step of round k is at most
    /// `noise_std(k) 2^-bits <= c(k) noise_std(1) 2^-bits`, so rounding adds at most c(k) times what it adds in round 1, and
    /// `c(k) * enlarged` covers round k.
    ///
    /// Departs from the paper: the exact accountant is the default, and the noise is discrete, on a grid.
    pub fn calibrate(request: &NoiseRequest) -> Result<Self, PrivacyError> {
        let &NoiseRequest { budget, accountant, decay, sensitivity, n_features, ref scales } = request;
        let budget = budget.checked()?;
        check_features(n_features)?;
        check_scales(scales.as_deref(), decay.rounds())?;
        let not_pure = || PrivacyError::NotPure { accountant: "basic" };
        let sum = decay.sum_of_charges();
        // The largest multiplier that any admissible slack could lead to decides how fine the grid must be.
        let tightest = Budget { delta: remaining(budget.delta, 0.01 * budget.delta.value()), ..budget };
        let bound = match accountant {
            AccountantKind::Exact => multiplier_for(mu_to_rho_down(gdp_mu(tightest)), sum),
            AccountantKind::Paper => multiplier_for(paper_rho(budget), sum),
            AccountantKind::Basic => return Err(not_pure()),
        };
        let grid = Grid::choose(budget.epsilon.value(), budget.delta, bound, n_features, decay.rounds())?;
        let rho = match (accountant, grid.slack) {
            (AccountantKind::Paper, _) => paper_rho(budget),
            (AccountantKind::Exact, Some(slack)) => {
                mu_to_rho_down(gdp_mu(Budget { delta: remaining(budget.delta, slack), ..budget }))
            }
            (AccountantKind::Exact, None) => zcdp_rho(budget),
            (AccountantKind::Basic, _) => return Err(not_pure()),
        };
        let mut multiplier = multiplier_for(rho, sum);
        let mut step = f64::EPSILON;
        loop {
            // Adding up K charges upward costs a few units in the last place; the noise grows until they are paid for.
            let unscaled = Self::build(multiplier, decay, sensitivity, n_features, budget.delta, grid)?;
            let schedule = unscaled.scaled(scales.clone())?;
            let total = schedule.epsilon_of(schedule.rho_total);
            let spent = match accountant {
                AccountantKind::Exact => total.exact,
                AccountantKind::Paper => total.paper.max(total.exact),
                AccountantKind::Basic => return Err(not_pure()),
            };
            if spent <= budget.epsilon.value() {
                return Ok(schedule);
            }
            multiplier = mul_up(multiplier, 1.0 + step);
            step *= 2.0;
        }
    }

    /// The schedule whose first round has `noise_std = first * sensitivity`, and what it is worth at `delta`.
    pub fn from_noise_multiplier(
        first: f64,
        decay: Decay,
        sensitivity: Sensitivity,
        n_features: usize,
        delta: Delta,
    ) -> Result<Self, PrivacyError> {
        require(first > 0.0 && first.is_finite(), "noise multiplier", first, "a finite number above 0")?;
        check_features(n_features)?;
        // An epsilon that is certainly not exceeded, whatever slack up to a hundredth of delta the grid leads to.
        let ratio = div_up(1.0, first);
        let rho = ZcdpRho::new(mul_up(0.5 * mul_up(ratio, ratio), 1.000_001 * decay.sum_of_charges()))?;
        let epsilon = gdp_epsilon(rho_to_mu(rho), remaining(delta, 0.01 * delta.value()));
        let grid = Grid::choose(epsilon.value(), delta, first, n_features, decay.rounds())?;
        Self::build(first, decay, sensitivity, n_features, delta, grid)
    }

    fn build(
        multiplier: f64,
        decay: Decay,
        sensitivity: Sensitivity,
        n_features: usize,
        delta: Delta,
        grid: Grid,
    ) -> Result<Self, PrivacyError> {
        let (noise_std_first, enlarged) = grid.enlarge(sensitivity.value(), multiplier, n_features)?;
        let mut schedule = Self {
            decay,
            sensitivity: sensitivity.enlarged_to(enlarged),
            n_features,
            delta,
            delta_slack: grid.slack.unwrap_or(0.0),
            exact_method: if grid.slack.is_some() { ExactMethod::Gdp } else { ExactMethod::ZcdpOptimal },
            grid_bits: grid.bits,
            noise_std_first,
            rho_total: ZcdpRho::ZERO,
            scales: None,
            stopping: Stopping::default(),
        };
        grid.check(schedule.noise_std(decay.rounds()))?;
        schedule.rho_total = schedule.add_up(decay.rounds())?;
        Ok(schedule)
    }

    /// The same schedule with every round's sensitivity and noise multiplied by its scale, and its charges added up anew.
    fn scaled(mut self, scales: Option<Vec<f64>>) -> Result<Self, PrivacyError> {
        if scales.is_some() {
            self.scales = scales;
            for round in 1..=self.rounds() {
                self.grid().check(self.noise_std(round))?;
            }
            self.rho_total = self.add_up(self.rounds())?;
        }
        Ok(self)
    }

    /// The same schedule for a site of which it is known what decides whether it stops; without this the report says that the solver may.
    #[must_use]
    pub fn with_stopping(self, stopping: Stopping) -> Self {
        Self { stopping, ..self }
    }

    fn scale(&self, round: u32) -> Option<f64> {
        self.scales.as_ref().map(|scales| scales[round as usize - 1])
    }

    /// The sensitivity that round `round` is charged with, rounded up.
    fn sensitivity_of(&self, round: u32) -> f64 {
        match self.scale(round) {
            // The noise below may round up by a unit in the last place, and its grid's step with it; four units pay for that.
            Some(scale) => mul_up(mul_up(self.sensitivity.value(), scale), 1.0 + 4.0 * f64::EPSILON),
            None => self.sensitivity.value(),
        }
    }

    /// Standard deviation of the noise of round `round`, counted from 1; rounded up.
    ///
    /// Panics if the schedule has no such round; [`crate::Mechanism::describe`] is the checked way in.
    pub fn noise_std(&self, round: u32) -> f64 {
        assert!((1..=self.rounds()).contains(&round), "round {round} is outside the schedule");
        let unscaled = match self.decay.std_ratio(round) {
            1.0 => self.noise_std_first,
            ratio => mul_up(self.noise_std_first, ratio).min(self.noise_std_first),
        };
        self.scale(round).map_or(unscaled, |scale| mul_up(unscaled, scale))
    }

    /// What round `round` does to the data. Panics like [`NoiseSchedule::noise_std`].
    pub fn event(&self, round: u32) -> Event {
        Event::Gaussian { sensitivity: self.sensitivity_of(round), noise_std: self.noise_std(round) }
    }

    /// What round `round` costs, rounded up. Panics like [`NoiseSchedule::noise_std`].
    pub fn rho(&self, round: u32) -> ZcdpRho {
        self.event(round).rho().expect("checked when the schedule was built")
    }

    /// What all rounds cost together, rounded up: the sum over the very events that the schedule emits.
    pub fn rho_total(&self) -> ZcdpRho {
        self.rho_total
    }

    /// What rounds 1 to `after_round` cost together, rounded up; rounds beyond the schedule cost nothing.
    pub fn rho_spent(&self, after_round: u32) -> ZcdpRho {
        self.add_up(after_round).expect("part of a sum that was checked when the schedule was built")
    }

    fn add_up(&self, after_round: u32) -> Result<ZcdpRho, PrivacyError> {
        let mut accountant = ZcdpAccountant::new(ZcdpConversion::Paper);
        for round in 1..=after_round.min(self.rounds()) {
            accountant.compose(&self.event(round))?;
        }
        Ok(accountant.rho())
    }

    /// Exponent of the grid's step in round `round`: `floor(log2 noise_std) - grid_bits`.
    pub fn grid_exponent(&self, round: u32) -> i32 {
        self.grid().exponent(self.noise_std(round))
    }

    /// How many bits finer than the noise the grid is.
    pub fn grid_bits(&self) -> u32 {
        self.grid_bits
    }

    fn grid(&self) -> Grid {
        Grid { bits: self.grid_bits, slack: None }
    }

    /// How many rounds the budget was spread over; all of them are charged.
    pub fn rounds(&self) -> u32 {
        self.decay.rounds()
    }

    /// How the variance falls from round to round, before any scale of a round.
    pub fn decay(&self) -> Decay {
        self.decay
    }

    /// Coordinates of a release, each of which gets noise of its own.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The sensitivity that is charged, before any scale of a round: the given one and what rounding to the grid adds.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// The delta at which epsilons are reported.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// Epsilon after rounds 1 to `after_round`, both ways, rounded up.
    pub fn epsilon_spent(&self, after_round: u32) -> SpentEpsilon {
        self.epsilon_of(self.rho_spent(after_round))
    }

    /// Epsilon after each round, both ways, rounded up: [`NoiseSchedule::epsilon_spent`] for all rounds in one pass.
    pub fn epsilon_curve(&self) -> Vec<SpentEpsilon> {
        let mut spent = 0.0;
        let after = |round: u32| {
            spent = add_up(spent, self.rho(round).value());
            self.epsilon_of(ZcdpRho::new(spent).expect("part of a sum that was checked"))
        };
        (1..=self.rounds()).map(after).collect()
    }

    /// zCDP holds for discrete noise as it is and gets the whole delta; the exact conversion gets delta less the slack.
    fn epsilon_of(&self, rho: ZcdpRho) -> SpentEpsilon {
        let exact: Epsilon = match self.exact_method {
            ExactMethod::Gdp => gdp_epsilon(rho_to_mu(rho), remaining(self.delta, self.delta_slack)),
            // The remaining methods belong to other schedules; zCDP holds here in any case.
            _ => zcdp_epsilon(rho, self.delta),
        };
        SpentEpsilon { exact: exact.value(), paper: paper_epsilon(rho, self.delta).value() }
    }

    /// Everything that a reader of the guarantee needs.
    pub fn report(&self) -> PrivacyReport {
        let epsilon = self.epsilon_of(self.rho_total);
        let (noise_std_first, noise_std_last) = (self.noise_std(1), self.noise_std(self.rounds()));
        PrivacyReport {
            adjacency: Adjacency::ReplaceOne,
            epsilon_exact: epsilon.exact,
            exact_method: self.exact_method,
            epsilon_paper: epsilon.paper,
            delta: self.delta.value(),
            delta_slack: self.delta_slack,
            rho_total: self.rho_total.value(),
            mu: rho_to_mu(self.rho_total).value(),
            noise_std_first,
            noise_std_last,
            noise_multiplier_first: noise_std_first / self.sensitivity_of(1),
            noise_multiplier_last: noise_std_last / self.sensitivity_of(self.rounds()),
            sensitivity: self.sensitivity.value(),
            sensitivity_basis: self.sensitivity.basis(),
            grid_bits: self.grid_bits,
            rounds: self.rounds(),
            rounds_charged: self.rounds(),
            decay: self.decay.rate(),
            compositions: None,
            noise_is_exact: true,
            stopping: self.stopping,
        }
    }
}

/// The noise multiplier that makes the charges cost `rho` in total, rounded up: `sqrt(sum_of_charges / (2 rho))`.
fn multiplier_for(rho: ZcdpRho, sum_of_charges: f64) -> f64 {
    sqrt_up(div_up(sum_of_charges, 2.0 * rho.value()))
}

/// What remains of delta after the slack, rounded down.
fn remaining(delta: Delta, slack: f64) -> Delta {
    Delta::new(sub_down(delta.value(), slack)).expect("the slack is at most a hundredth of delta")
}

/// One scale for each round, above 0 and at most 1.
fn check_scales(scales: Option<&[f64]>, rounds: u32) -> Result<(), PrivacyError> {
    let Some(scales) = scales else { return Ok(()) };
    if scales.len() != rounds as usize {
        return Err(PrivacyError::WrongLength { expected: rounds as usize, found: scales.len() });
    }
    for &scale in scales {
        require(scale > 0.0 && scale <= 1.0, "scale of a round", scale, "above 0 and at most 1")?;
    }
    Ok(())
}

/// Refuses vectors without coordinates, and longer ones than anyone would release.
pub fn check_features(n_features: usize) -> Result<(), PrivacyError> {
    require((1..=MOST_FEATURES).contains(&n_features), "n_features", n_features as f64, "between 1 and 2^40")
}
