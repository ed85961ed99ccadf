//! From a budget to noise on certified points, and from noise to what it is worth.

use crate::budget::{Budget, Delta, ZcdpRho};
use crate::convert::{gdp_epsilon, gdp_mu, mu_to_rho_down, paper_rho, rho_to_mu, zcdp_rho};
use crate::decay::Decay;
use crate::error::{PrivacyError, require};
use crate::gaussian::{NoiseSchedule, Round, remaining};
use crate::grid::Grid;
use crate::outward::{div_up, mul_up, sqrt_up};
use crate::promise::Stopping;
use crate::report::ExactMethod;
use crate::sensitivity::Sensitivity;

/// Vectors longer than this are not models that anyone would release coordinate by coordinate.
const MOST_FEATURES: usize = 1 << 40;

/// Which conversion a budget is spent by. Both are reported in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// Exact composition of Gaussian noise: the least noise for a true epsilon.
    Exact,
    /// The paper's conversion from zCDP: more noise than the epsilon asks for.
    Paper,
}

/// What noise is calibrated for: one site's budget, rounds and sensitivity.
#[derive(Debug, Clone)]
pub struct NoiseRequest {
    /// What one site may spend over the whole run.
    pub budget: Budget,
    /// By which conversion the noise has to meet the budget.
    pub conversion: Conversion,
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

impl NoiseSchedule {
    /// The least noise, up to rounding, whose reported epsilon is at most the budget's.
    ///
    /// ```text
    /// rho(1) = rho_total / (sum over k < K of R^-k),   noise_std(1) = sensitivity / sqrt(2 rho(1))
    /// noise_var(k) = R^(k-1) noise_var(1)
    /// ```
    ///
    /// Guarantee: the epsilon that this schedule reports for the chosen conversion, computed upward from the very events
    /// it will emit, is at most `budget.epsilon` at `budget.delta`.
    ///
    /// Scales c(k) multiply sensitivity and noise of round k alike, so that the charges stay as they are. The grid's share
    /// scales along: with `enlarged = sensitivity + noise_std(1) 2^-bits sqrt(p)` the step of round k is at most
    /// `noise_std(k) 2^-bits <= c(k) noise_std(1) 2^-bits`, so rounding adds at most c(k) times what it adds in round 1, and
    /// `c(k) * enlarged` covers round k.
    ///
    /// Departs from the paper: the exact conversion is the default, and the noise is discrete, on a grid.
    pub fn calibrate(request: &NoiseRequest) -> Result<Self, PrivacyError> {
        let &NoiseRequest { budget, conversion, decay, sensitivity, n_features, ref scales } = request;
        let budget = budget.checked()?;
        check_features(n_features)?;
        check_scales(scales.as_deref(), decay.rounds())?;
        let sum = decay.sum_of_charges();
        let exact_rho =
            |slack| mu_to_rho_down(gdp_mu(Budget { delta: remaining(budget.delta, slack), ..budget }));
        // The largest multiplier that any admissible slack could lead to decides how fine the grid must be.
        let bound = match conversion {
            Conversion::Exact => multiplier_for(exact_rho(0.01 * budget.delta.value()), sum),
            Conversion::Paper => multiplier_for(paper_rho(budget), sum),
        };
        let grid = Grid::choose(budget.epsilon.value(), budget.delta, bound, n_features, decay.rounds())?;
        let rho = match (conversion, grid.slack) {
            (Conversion::Paper, _) => paper_rho(budget),
            (Conversion::Exact, Some(slack)) => exact_rho(slack),
            (Conversion::Exact, None) => zcdp_rho(budget),
        };
        let mut multiplier = multiplier_for(rho, sum);
        let mut step = f64::EPSILON;
        loop {
            // Adding up K charges upward costs a few units in the last place; the noise grows until they are paid for.
            let scales = scales.as_deref();
            let schedule =
                Self::build(multiplier, decay, sensitivity, n_features, budget.delta, grid, scales)?;
            let total = schedule.checked_epsilon()?;
            let spent = match conversion {
                Conversion::Exact => total.exact,
                Conversion::Paper => total.paper.max(total.exact),
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
        let schedule = Self::build(first, decay, sensitivity, n_features, delta, grid, None)?;
        schedule.checked_epsilon()?;
        Ok(schedule)
    }

    fn build(
        multiplier: f64,
        decay: Decay,
        sensitivity: Sensitivity,
        n_features: usize,
        delta: Delta,
        grid: Grid,
        scales: Option<&[f64]>,
    ) -> Result<Self, PrivacyError> {
        let (noise_std_first, enlarged) = grid.enlarge(sensitivity.value(), multiplier, n_features)?;
        let unscaled = |round: u32| match decay.std_ratio(round) {
            1.0 => noise_std_first,
            ratio => mul_up(noise_std_first, ratio).min(noise_std_first),
        };
        let round = |round: u32| {
            let (sensitivity, noise_std) = match scales.map(|scales| scales[round as usize - 1]) {
                None => (enlarged, unscaled(round)),
                // The noise may round up by a unit in the last place, and its grid's step with it; four units pay for that.
                Some(scale) => (
                    mul_up(mul_up(enlarged, scale), 1.0 + 4.0 * f64::EPSILON),
                    mul_up(unscaled(round), scale),
                ),
            };
            grid.check(noise_std)?;
            let exponent = grid.exponent(noise_std);
            Ok(Round { n_coordinates: n_features, terms: None, sensitivity, noise_std, exponent })
        };
        Ok(Self {
            rounds: (1..=decay.rounds()).map(round).collect::<Result<_, PrivacyError>>()?,
            sensitivity: sensitivity.enlarged_to(enlarged),
            delta,
            delta_slack: grid.slack.unwrap_or(0.0),
            exact_method: if grid.slack.is_some() { ExactMethod::Gdp } else { ExactMethod::ZcdpOptimal },
            grid_bits: grid.bits,
            decay: decay.rate(),
            stopping: Stopping::default(),
        })
    }
}

/// The noise multiplier that makes the charges cost `rho` in total, rounded up: `sqrt(sum_of_charges / (2 rho))`.
fn multiplier_for(rho: ZcdpRho, sum_of_charges: f64) -> f64 {
    sqrt_up(div_up(sum_of_charges, 2.0 * rho.value()))
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
