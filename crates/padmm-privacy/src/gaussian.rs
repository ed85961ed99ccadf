//! Exact Gaussian noise, round by round, with its price: what every release of a real site is protected by.

use crate::budget::{Adjacency, Delta, ZcdpRho};
use crate::convert::{gdp_epsilon, paper_epsilon, rho_to_mu, zcdp_epsilon};
use crate::error::PrivacyError;
use crate::event::Event;
use crate::mechanism::{GridGaussian, Mechanism, RequiredCertificate, Terms};
use crate::outward::{add_up, sub_down};
use crate::promise::Stopping;
use crate::report::{ExactMethod, PrivacyReport, SpentEpsilon};
use crate::schedule::{Premise, Schedule};
use crate::sensitivity::Sensitivity;

/// The noise of every round of one site, with the grid it is drawn on and what it adds up to.
///
/// A schedule is made by calibration ([`NoiseSchedule::calibrate`], [`NoiseSchedule::for_sums`]) or
/// [`NoiseSchedule::from_noise_multiplier`], and its noise never changes, so that noise and price cannot drift apart.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseSchedule {
    pub(crate) rounds: Vec<Round>,
    /// Before any scale of a round; the grid's share included.
    pub(crate) sensitivity: Sensitivity,
    pub(crate) delta: Delta,
    pub(crate) delta_slack: f64,
    pub(crate) exact_method: ExactMethod,
    pub(crate) grid_bits: u32,
    pub(crate) decay: f64,
    pub(crate) stopping: Stopping,
}

/// One round: what is released, and the noise on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Round {
    pub n_coordinates: usize,
    /// Of a sum; `None` for a certified point.
    pub terms: Option<Terms>,
    /// How far one record moves the integers that are released, in the unit of `noise_std`; rounded up.
    pub sensitivity: f64,
    pub noise_std: f64,
    /// Of the grid's step, a power of two.
    pub exponent: i32,
}

impl Round {
    pub(crate) fn event(&self) -> Event {
        Event::Gaussian { sensitivity: self.sensitivity, noise_std: self.noise_std }
    }

    /// Standard deviation of the integers. Division by a power of two is exact, so it is the one that is charged.
    pub(crate) fn scale(&self) -> f64 {
        libm::scalbn(self.noise_std, -self.exponent)
    }
}

impl NoiseSchedule {
    /// The same noise, at a site of which it is known what decides whether it stops; without this the report says that the solver may.
    #[must_use]
    pub fn with_stopping(self, stopping: Stopping) -> Self {
        Self { stopping, ..self }
    }

    pub(crate) fn round(&self, round: u32) -> Option<&Round> {
        self.rounds.get((round as usize).checked_sub(1)?)
    }

    /// The sensitivity that is charged, before any scale of a round: the given one and what rounding to the grid adds.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    /// Epsilon after rounds 1 to `after_round`, both ways, rounded up.
    pub fn epsilon_spent(&self, after_round: u32) -> SpentEpsilon {
        self.epsilon_of(checked_charge(self.rho_spent(after_round)))
    }

    /// Epsilon of the whole run, or why the charges of its rounds cannot be added up.
    pub(crate) fn checked_epsilon(&self) -> Result<SpentEpsilon, PrivacyError> {
        let add = |sum, round: &Round| Ok::<_, PrivacyError>(add_up(sum, round.event().rho()?.value()));
        Ok(self.epsilon_of(ZcdpRho::new(self.rounds.iter().try_fold(0.0, add)?)?))
    }

    /// What rounds are worth that were charged `rho`. zCDP holds for discrete noise as it is and gets the whole delta; the exact
    /// conversion gets delta less the slack.
    fn epsilon_of(&self, rho: ZcdpRho) -> SpentEpsilon {
        let exact = match self.exact_method {
            ExactMethod::Gdp => gdp_epsilon(rho_to_mu(rho), remaining(self.delta, self.delta_slack)),
            // The remaining methods belong to other schedules; zCDP holds here in any case.
            _ => zcdp_epsilon(rho, self.delta),
        };
        SpentEpsilon { exact: exact.value(), paper: paper_epsilon(rho, self.delta).value() }
    }
}

impl Schedule for NoiseSchedule {
    fn rounds(&self) -> u32 {
        self.rounds.len() as u32
    }

    fn n_features(&self) -> usize {
        self.n_coordinates(self.rounds())
    }

    fn n_coordinates(&self, round: u32) -> usize {
        self.round(round).map_or(0, |round| round.n_coordinates)
    }

    fn event(&self, round: u32) -> Option<Event> {
        self.round(round).map(Round::event)
    }

    fn noise_std(&self, round: u32) -> Option<f64> {
        self.round(round).map(|round| round.noise_std)
    }

    fn grid_exponent(&self, round: u32) -> Option<i32> {
        self.round(round).map(|round| round.exponent)
    }

    fn epsilon_curve(&self) -> Vec<SpentEpsilon> {
        let mut spent = 0.0;
        let after = |round: u32| {
            spent = add_up(spent, self.rho(round));
            self.epsilon_of(checked_charge(spent))
        };
        (1..=self.rounds()).map(after).collect()
    }

    fn report(&self) -> PrivacyReport {
        let rho_total = checked_charge(self.rho_total());
        let epsilon = self.epsilon_of(rho_total);
        let (first, last) = (self.rounds[0], self.rounds[self.rounds.len() - 1]);
        PrivacyReport {
            adjacency: Adjacency::ReplaceOne,
            epsilon_exact: epsilon.exact,
            exact_method: self.exact_method,
            epsilon_paper: epsilon.paper,
            delta: self.delta.value(),
            delta_slack: self.delta_slack,
            rho_total: rho_total.value(),
            mu: rho_to_mu(rho_total).value(),
            noise_std_first: first.noise_std,
            noise_std_last: last.noise_std,
            noise_multiplier_first: first.noise_std / first.sensitivity,
            noise_multiplier_last: last.noise_std / last.sensitivity,
            sensitivity: self.sensitivity.value(),
            sensitivity_basis: self.sensitivity.basis(),
            grid_bits: self.grid_bits,
            rounds: self.rounds(),
            rounds_charged: self.rounds(),
            decay: self.decay,
            compositions: None,
            noise_is_exact: true,
            stopping: self.stopping,
        }
    }

    fn premise(&self) -> Option<Premise> {
        self.sensitivity.premise()
    }

    fn mechanism(&self, required: RequiredCertificate) -> Result<Box<dyn Mechanism>, PrivacyError> {
        Ok(Box::new(GridGaussian::new(self.clone(), required)?))
    }

    fn as_gaussian(&self) -> Option<&NoiseSchedule> {
        self.rounds[0].terms.is_none().then_some(self)
    }
}

/// The charge of some rounds of a schedule.
fn checked_charge(rho: f64) -> ZcdpRho {
    ZcdpRho::new(rho).expect("part of a sum that was checked when the schedule was made")
}

/// What remains of delta after the slack, rounded down.
pub(crate) fn remaining(delta: Delta, slack: f64) -> Delta {
    Delta::new(sub_down(delta.value(), slack)).expect("the slack is at most a hundredth of delta")
}
