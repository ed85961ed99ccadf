//! Discrete Gaussian noise on exact sums over records: rounds of several kinds under one budget.

use serde::Serialize;

use super::clipped_sum::{MOST_COORDINATES, Terms, bits_for};
use super::{Computed, Drawn, Mechanism, Payload, RequiredCertificate};
use crate::budget::{Adjacency, Budget, Delta, ZcdpRho};
use crate::convert::{gdp_epsilon, gdp_mu, mu_to_rho_down, paper_epsilon, rho_to_mu};
use crate::error::{PrivacyError, require};
use crate::event::Event;
use crate::outward::{add_up, div_up, exp_up, mul_down, mul_up, sqrt_up, sub_down};
use crate::promise::Stopping;
use crate::report::{ExactMethod, PrivacyReport, SpentEpsilon};
use crate::sample::{NoiseSource, check_scale};
use crate::schedule::{Premise, Schedule};
use crate::sensitivity::SensitivityBasis;

/// Discreteness may use up this fraction of delta at most.
const LARGEST_SLACK_FRACTION: f64 = 0.01;
/// Noise of this standard deviation, in units of a sum, leaves the range of a payload with a probability below `2^-1000`.
const LARGEST_SCALE: f64 = (1u64 << 46) as f64;

/// One round of sums.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SumRound {
    /// Coordinates of the sum.
    pub n_coordinates: usize,
    /// What a record adds to it.
    pub terms: Terms,
    /// The round's part of the budget, as a part of `mu^2`.
    pub share: f64,
}

/// Noise for sums of clipped terms, round by round, with its price.
///
/// ```text
/// mu(k) = mu sqrt(share(k)),    noise_std(k) = sensitivity(k) / mu(k),    sensitivity(k) = 2 or sqrt(2)
/// ```
///
/// all in units of the bound of a term, so that neither the records nor how many they are matter. Integers are drawn on the grid of the
/// sum itself: no point is rounded, and nothing is added to the sensitivity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SumSchedule {
    rounds: Vec<SumRound>,
    noise_std: Vec<f64>,
    /// Sums are in units of `2^-bits`.
    bits: u32,
    delta: Delta,
    delta_slack: f64,
    rho_total: ZcdpRho,
}

impl SumSchedule {
    /// The least noise, up to rounding, whose reported epsilon is at most the budget's, for a site of `n_records` records.
    pub fn calibrate(budget: Budget, n_records: usize, rounds: Vec<SumRound>) -> Result<Self, PrivacyError> {
        let budget = budget.checked()?;
        require(!rounds.is_empty(), "rounds", 0.0, "at least 1")?;
        for round in &rounds {
            require(
                (1..=MOST_COORDINATES).contains(&round.n_coordinates),
                "numbers in a release",
                round.n_coordinates as f64,
                "between 1 and 2^22",
            )?;
            require(
                round.share > 0.0 && round.share <= 1.0,
                "share of a round",
                round.share,
                "above 0 and at most 1",
            )?;
        }
        let shares = rounds.iter().fold(0.0, |sum, round| add_up(sum, round.share));
        require(shares <= 1.0 + 1e-9, "sum of the shares", shares, "at most 1")?;
        let bits = bits_for(n_records);
        // First with as much of delta for discreteness as it may have; then with twice as much as that noise turns out to need, which
        // makes the noise narrower by less than a hundredth.
        let most = LARGEST_SLACK_FRACTION * budget.delta.value();
        let wide = Self::with_slack(budget, bits, &rounds, most)?;
        let slack = mul_up(2.0, wide.discreteness(budget.epsilon.value())).min(most);
        let schedule = Self::with_slack(budget, bits, &rounds, slack)?;
        let needed = schedule.discreteness(budget.epsilon.value());
        let allowed = "small enough for noise on whole numbers";
        require(needed <= slack, "epsilon", budget.epsilon.value(), allowed)?;
        Ok(schedule)
    }

    fn with_slack(
        budget: Budget,
        bits: u32,
        rounds: &[SumRound],
        delta_slack: f64,
    ) -> Result<Self, PrivacyError> {
        let delta = Delta::new(sub_down(budget.delta.value(), delta_slack))?;
        let rho = mu_to_rho_down(gdp_mu(Budget { delta, ..budget })).value();
        let (mut enlarged, mut step) = (1.0, f64::EPSILON);
        loop {
            let noise_std = |round: &SumRound| {
                let mu = sqrt_up(mul_up(2.0, mul_up(rho, round.share)));
                mul_up(div_up(round.terms.sensitivity(), mul_down(mu, 1.0 - 4.0 * f64::EPSILON)), enlarged)
            };
            let noise_std: Vec<f64> = rounds.iter().map(noise_std).collect();
            let rounds = rounds.to_vec();
            let mut schedule =
                Self { rounds, noise_std, bits, delta: budget.delta, delta_slack, rho_total: ZcdpRho::ZERO };
            for round in 1..=schedule.count() {
                let scale = schedule.scale(round);
                let fits = (10.0..=LARGEST_SCALE).contains(&scale);
                require(fits, "noise of a sum", scale, "between 10 and 2^46 units of it; change epsilon")?;
            }
            schedule.rho_total = schedule.add_up(schedule.count())?;
            if schedule.epsilon_of(schedule.rho_total).exact <= budget.epsilon.value() {
                return Ok(schedule);
            }
            // Adding up charges upward costs a few units in the last place; the noise grows until they are paid for.
            enlarged = mul_up(enlarged, 1.0 + step);
            step *= 2.0;
        }
    }

    /// The part of delta that the noise being discrete costs, rounded up:
    ///
    /// ```text
    /// (1 + e^epsilon) * sum over k of p(k) / (12 s(k)^2),      s(k) = noise_std(k) 2^bits
    /// ```
    ///
    /// by the argument of `grid`: in each coordinate, rounded Gaussian noise and discrete Gaussian noise of scale s >= 10 differ by
    /// at most `1/(12 s^2)` in total variation.
    fn discreteness(&self, epsilon: f64) -> f64 {
        let of = |round: u32| {
            let (scale, coordinates) = (self.scale(round), self.n_coordinates(round) as f64);
            div_up(coordinates, mul_down(12.0, mul_down(scale, scale)))
        };
        let distance = (1..=self.count()).fold(0.0, |sum, round| add_up(sum, of(round)));
        mul_up(add_up(1.0, exp_up(epsilon)), distance)
    }

    fn count(&self) -> u32 {
        self.rounds.len() as u32
    }

    /// What a round is, if there is such a round.
    pub fn round(&self, round: u32) -> Option<&SumRound> {
        self.rounds.get((round as usize).checked_sub(1)?)
    }

    /// Standard deviation of a round's integers. A power of two only shifts the exponent.
    fn scale(&self, round: u32) -> f64 {
        libm::scalbn(self.noise_std[round as usize - 1], self.bits as i32)
    }

    fn add_up(&self, after_round: u32) -> Result<ZcdpRho, PrivacyError> {
        let events = (1..=after_round.min(self.count())).filter_map(|round| self.event(round));
        let charges = events.map(|event| Ok(event.rho()?.value()));
        let sum = charges.reduce(|sum, charge| Ok(add_up(sum?, charge?)));
        sum.map_or(Ok(ZcdpRho::ZERO), |sum: Result<f64, PrivacyError>| ZcdpRho::new(sum?))
    }

    fn epsilon_of(&self, rho: ZcdpRho) -> SpentEpsilon {
        let delta =
            Delta::new(sub_down(self.delta.value(), self.delta_slack)).expect("the slack is a part of delta");
        let exact = gdp_epsilon(rho_to_mu(rho), delta).value();
        SpentEpsilon { exact, paper: paper_epsilon(rho, self.delta).value() }
    }
}

impl Schedule for SumSchedule {
    fn rounds(&self) -> u32 {
        self.count()
    }

    fn n_features(&self) -> usize {
        self.rounds.last().map_or(0, |round| round.n_coordinates)
    }

    fn n_coordinates(&self, round: u32) -> usize {
        self.round(round).map_or(0, |round| round.n_coordinates)
    }

    fn event(&self, round: u32) -> Option<Event> {
        let terms = self.round(round)?.terms;
        Some(Event::Gaussian { sensitivity: terms.sensitivity(), noise_std: self.noise_std(round)? })
    }

    fn noise_std(&self, round: u32) -> Option<f64> {
        self.noise_std.get((round as usize).checked_sub(1)?).copied()
    }

    fn grid_exponent(&self, round: u32) -> Option<i32> {
        self.round(round).map(|_| -(self.bits as i32))
    }

    fn epsilon_curve(&self) -> Vec<SpentEpsilon> {
        let spent =
            |round| self.add_up(round).expect("part of a sum that was checked when the schedule was made");
        (1..=self.count()).map(|round| self.epsilon_of(spent(round))).collect()
    }

    fn report(&self) -> PrivacyReport {
        let SpentEpsilon { exact, paper } = self.epsilon_of(self.rho_total);
        let last = self.rounds.len() - 1;
        let multiplier = |k: usize| self.noise_std[k] / self.rounds[k].terms.sensitivity();
        PrivacyReport {
            adjacency: Adjacency::ReplaceOne,
            epsilon_exact: exact,
            exact_method: ExactMethod::Gdp,
            epsilon_paper: paper,
            delta: self.delta.value(),
            delta_slack: self.delta_slack,
            rho_total: self.rho_total.value(),
            mu: rho_to_mu(self.rho_total).value(),
            noise_std_first: self.noise_std[0],
            noise_std_last: self.noise_std[last],
            noise_multiplier_first: multiplier(0),
            noise_multiplier_last: multiplier(last),
            sensitivity: self.rounds[last].terms.sensitivity(),
            sensitivity_basis: SensitivityBasis::Record,
            grid_bits: self.bits,
            rounds: self.count(),
            rounds_charged: self.count(),
            decay: 1.0,
            compositions: None,
            noise_is_exact: true,
            // A sum has no solver that could stall.
            stopping: Stopping::Public,
        }
    }

    /// No bound on a gradient is assumed: [`super::ClippedSum`] enforces the one that the noise is for.
    fn premise(&self) -> Option<Premise> {
        None
    }

    fn mechanism(&self, _required: RequiredCertificate) -> Result<Box<dyn Mechanism>, PrivacyError> {
        Ok(Box::new(SumGaussian { schedule: self.clone() }))
    }
}

/// `sum + discrete Gaussian`, in whole units of `2^-bits` of the bound of a term.
///
/// Guarantee: the releases of all rounds together satisfy what [`SumSchedule`] reports, for any records, if every record
/// has one term in a sum, which depends on it and on public values alone: how long that is, [`super::ClippedSum`] and
/// [`super::WhitenedRows`] bound themselves.
#[derive(Debug, Clone)]
pub struct SumGaussian {
    schedule: SumSchedule,
}

impl SumGaussian {
    fn round(&self, round: u32) -> Result<&SumRound, PrivacyError> {
        let rounds = self.schedule.count();
        self.schedule.round(round).ok_or(PrivacyError::RoundOutsideSchedule { round, rounds })
    }
}

impl Mechanism for SumGaussian {
    fn describe(&self, round: u32) -> Result<Event, PrivacyError> {
        self.round(round)?;
        Ok(self.schedule.event(round).expect("the round exists"))
    }

    fn draw(&self, round: u32, source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError> {
        let mut noise = vec![0; self.round(round)?.n_coordinates];
        let scale = self.schedule.scale(round);
        check_scale(scale)?;
        source.fill(scale, &mut noise)?;
        Ok(Drawn::hidden(round, noise))
    }

    fn seal(&self, round: u32, computed: Computed, drawn: Drawn) -> Result<Payload, PrivacyError> {
        let &SumRound { n_coordinates, terms, .. } = self.round(round)?;
        let bits = self.schedule.bits;
        if drawn.round() != round {
            return Err(PrivacyError::ForeignNoise { round });
        }
        let noise = drawn.into_integers().ok_or(PrivacyError::ForeignNoise { round })?;
        let Computed::Sum(sum) = computed else { return Err(PrivacyError::WrongKind) };
        let mut values = sum.into_integers(terms, n_coordinates, bits).ok_or(PrivacyError::WrongKind)?;
        let exponent = -(bits as i32);
        for (value, noise) in values.iter_mut().zip(noise) {
            *value = value.checked_add(noise).ok_or(PrivacyError::BeyondGrid { exponent })?;
        }
        let payload = Payload::Grid { exponent, values };
        payload.check()?;
        Ok(payload)
    }

    fn report(&self) -> Option<PrivacyReport> {
        Some(self.schedule.report())
    }

    fn is_exact(&self) -> bool {
        true
    }
}
