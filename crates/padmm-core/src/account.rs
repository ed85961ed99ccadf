//! The noise of every round and what it costs, without data: ideal Gaussian noise, or noise on a grid as sites release it.

use padmm_privacy::outward::{add_up, div_up, mul_down, mul_up, pow_up, sqrt_up};
use padmm_privacy::{
    Budget, Conversion, Decay, Delta, NoiseRequest, NoiseSchedule, PrivacyError, Schedule, Sensitivity,
    SensitivityInputs, ZcdpRho, gdp_epsilon, gdp_mu, paper_epsilon, paper_rho, rho_to_mu,
};

/// What the noise is found from.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// (ε, δ), spent by this conversion.
    Budget(Budget, Conversion),
    /// Noise of the first round in units of the sensitivity, σ/Δ.
    Multiplier(f64),
    /// The zCDP charge ρ of all rounds together.
    RhoTotal(ZcdpRho),
    /// The zCDP charge ρ of the first round, which is the smallest.
    RhoFirst(ZcdpRho),
}

/// Noise with its price. All charges and epsilons are rounded up.
pub enum Noise {
    /// Gaussian noise in real numbers: what the formulas are about.
    Ideal(Ideal),
    /// Discrete noise on a grid; its slack is inside δ.
    Grid(NoiseSchedule),
}

/// Ideal noise, in units of the sensitivity.
pub struct Ideal {
    multiplier: f64,
    decay: Decay,
    delta: Delta,
    /// ρ of each round, from the first.
    charges: Vec<f64>,
    /// ρ of all rounds up to each.
    spent: Vec<f64>,
}

impl Noise {
    /// Finds the noise; with `features`, on the grid for models of that length.
    ///
    /// The grid follows the noise and the noise the sensitivity, so one sensitivity stands for all.
    pub fn find(
        wanted: Wanted,
        decay: Decay,
        delta: Delta,
        features: Option<usize>,
    ) -> Result<Self, PrivacyError> {
        let Some(n_features) = features else { return Ideal::find(wanted, decay, delta).map(Noise::Ideal) };
        let sensitivity = Sensitivity::per_record(&SensitivityInputs {
            gradient_bound: 0.5,
            n_records: 1,
            tolerance: 0.0,
            modulus: 1.0,
        })?;
        let schedule = match wanted {
            Wanted::Budget(budget, conversion) => NoiseSchedule::calibrate(&NoiseRequest {
                budget,
                conversion,
                decay,
                sensitivity,
                n_features,
                scales: None,
            }),
            _ => {
                let multiplier = multiplier(wanted, &decay);
                NoiseSchedule::from_noise_multiplier(multiplier, decay, sensitivity, n_features, delta)
            }
        };
        schedule.map(Noise::Grid)
    }

    /// ρ of one round, counted from 1.
    pub fn rho(&self, round: u32) -> f64 {
        match self {
            Self::Ideal(ideal) => ideal.charges[round as usize - 1],
            Self::Grid(schedule) => schedule.rho(round),
        }
    }

    /// ρ of rounds 1 to `round`.
    pub fn rho_spent(&self, round: u32) -> ZcdpRho {
        match self {
            Self::Ideal(ideal) => ideal.rho_spent(round),
            Self::Grid(schedule) => {
                ZcdpRho::new(schedule.rho_spent(round)).expect("part of a sum that was checked")
            }
        }
    }

    /// ε of rounds 1 to `round`: exact, and as the paper converts it.
    pub fn epsilon_spent(&self, round: u32) -> (f64, f64) {
        match self {
            Self::Ideal(ideal) => ideal.epsilon_spent(round),
            Self::Grid(schedule) => {
                let spent = schedule.epsilon_spent(round);
                (spent.exact, spent.paper)
            }
        }
    }

    /// The part of δ that pays for the noise being discrete.
    pub fn delta_slack(&self) -> f64 {
        match self {
            Self::Ideal(_) => 0.0,
            Self::Grid(schedule) => schedule.report().delta_slack,
        }
    }

    /// Bits of the grid, if there is one.
    pub fn grid_bits(&self) -> Option<u32> {
        match self {
            Self::Ideal(_) => None,
            Self::Grid(schedule) => Some(schedule.report().grid_bits),
        }
    }

    /// Noise of the first round in units of the sensitivity, σ/Δ.
    pub fn multiplier_first(&self) -> f64 {
        match self {
            Self::Ideal(ideal) => ideal.multiplier,
            Self::Grid(schedule) => schedule.report().noise_multiplier_first,
        }
    }

    /// Noise of the last round in units of the sensitivity, σ/Δ: the smallest of the run.
    pub fn multiplier_last(&self) -> f64 {
        match self {
            Self::Ideal(ideal) => {
                ideal.multiplier * ideal.decay.rate().powf(0.5 * f64::from(ideal.decay.rounds() - 1))
            }
            Self::Grid(schedule) => schedule.report().noise_multiplier_last,
        }
    }
}

impl Ideal {
    fn find(wanted: Wanted, decay: Decay, delta: Delta) -> Result<Self, PrivacyError> {
        let mut multiplier = multiplier(wanted, &decay);
        let Wanted::Budget(budget, conversion) = wanted else {
            let mut ideal = Self::new(multiplier, decay, delta)?;
            // The multiplier was rounded up; what was asked about is the charge before that.
            match wanted {
                Wanted::RhoTotal(rho) => ideal.raise_total(rho.value()),
                Wanted::RhoFirst(rho) => ideal = Self::charging(rho, multiplier, decay, delta)?,
                _ => {}
            }
            return Ok(ideal);
        };
        let mut step = f64::EPSILON;
        loop {
            // Adding up charges upward costs a few units in the last place; the noise grows until they are paid for.
            let ideal = Self::new(multiplier, decay, delta)?;
            let (exact, paper) = ideal.epsilon_spent(decay.rounds());
            let spent = match conversion {
                Conversion::Exact => exact,
                Conversion::Paper => paper.max(exact),
            };
            if spent <= budget.epsilon.value() {
                return Ok(ideal);
            }
            multiplier = mul_up(multiplier, 1.0 + step);
            step *= 2.0;
        }
    }

    /// Noise of `multiplier` sensitivities in the first round: `rho(1) = 1 / (2 multiplier^2)`, rounded up.
    fn new(multiplier: f64, decay: Decay, delta: Delta) -> Result<Self, PrivacyError> {
        if !(multiplier > 0.0 && multiplier.is_finite()) {
            let allowed = "a finite number above 0";
            return Err(PrivacyError::OutOfRange { name: "noise multiplier", value: multiplier, allowed });
        }
        let ratio = div_up(1.0, multiplier);
        Self::charging(ZcdpRho::new(mul_up(0.5, mul_up(ratio, ratio)))?, multiplier, decay, delta)
    }

    fn charging(rho: ZcdpRho, multiplier: f64, decay: Decay, delta: Delta) -> Result<Self, PrivacyError> {
        let charges = dynamic_curve(rho, &decay);
        let add = |sum: &mut f64, charge: &f64| {
            *sum = add_up(*sum, *charge);
            Some(*sum)
        };
        let spent: Vec<f64> = charges.iter().scan(0.0, add).collect();
        ZcdpRho::new(spent[spent.len() - 1])?;
        Ok(Self { multiplier, decay, delta, charges, spent })
    }

    fn raise_total(&mut self, rho: f64) {
        let last = self.spent.len() - 1;
        self.spent[last] = self.spent[last].max(rho);
    }

    fn rho_spent(&self, round: u32) -> ZcdpRho {
        ZcdpRho::new(self.spent[round as usize - 1]).expect("part of a sum that was checked")
    }

    fn epsilon_spent(&self, round: u32) -> (f64, f64) {
        let rho = self.rho_spent(round);
        (gdp_epsilon(rho_to_mu(rho), self.delta).value(), paper_epsilon(rho, self.delta).value())
    }
}

/// The dynamic zCDP curve, rounded up: the charge of each round when the first costs `rho_first`.
///
/// ```text
/// rho(k) = rho(1) * R^-(k-1)                                   (the paper's Theorem 2)
/// ```
pub fn dynamic_curve(rho_first: ZcdpRho, decay: &Decay) -> Vec<f64> {
    let ratio = |round: u32| pow_up(decay.rate(), -f64::from(round - 1));
    (1..=decay.rounds()).map(|round| mul_up(rho_first.value(), ratio(round))).collect()
}

/// σ/Δ of the first round, rounded up: `sqrt(sum / (2 rho))`, where `sum` is what all rounds cost if the first costs 1.
fn multiplier(wanted: Wanted, decay: &Decay) -> f64 {
    let (rho, sum) = match wanted {
        Wanted::Multiplier(multiplier) => return multiplier,
        Wanted::RhoFirst(rho) => (rho.value(), 1.0),
        Wanted::RhoTotal(rho) => (rho.value(), decay.sum_of_charges()),
        Wanted::Budget(budget, Conversion::Paper) => (paper_rho(budget).value(), decay.sum_of_charges()),
        Wanted::Budget(budget, Conversion::Exact) => {
            let mu = gdp_mu(budget).value();
            (0.5 * mul_down(mu, mu), decay.sum_of_charges())
        }
    };
    sqrt_up(div_up(sum, 2.0 * rho))
}
