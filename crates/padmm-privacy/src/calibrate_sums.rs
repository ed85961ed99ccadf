//! From a budget to noise on exact sums over records: rounds of several kinds under one budget.

use crate::budget::Budget;
use crate::convert::{gdp_mu, mu_to_rho_down};
use crate::error::{PrivacyError, require};
use crate::gaussian::{NoiseSchedule, Round, remaining};
use crate::grid::LARGEST_SLACK_FRACTION;
use crate::mechanism::{MOST_COORDINATES, Terms, bits_for};
use crate::outward::{add_up, div_up, exp_up, mul_down, mul_up, sqrt_up};
use crate::promise::Stopping;
use crate::report::ExactMethod;
use crate::sensitivity::Sensitivity;

/// Noise of this standard deviation, in units of a sum, leaves the range of a payload with a probability below `2^-1000`.
const LARGEST_SCALE: f64 = (1u64 << 46) as f64;

/// A round in which one sum over all records is released.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SumRound {
    /// Length of the vectors that are added up.
    pub n_coordinates: usize,
    /// What a record adds to the sum.
    pub terms: Terms,
    /// The round's part of the budget, as a part of `mu^2`.
    pub share: f64,
}

impl NoiseSchedule {
    /// The least noise on sums of clipped terms, up to rounding, whose reported epsilon is at most the budget's, for a site of
    /// `n_records` records:
    ///
    /// ```text
    /// mu(k) = mu sqrt(share(k)),    noise_std(k) = sensitivity(k) / mu(k),    sensitivity(k) = 2 or sqrt(2)
    /// ```
    ///
    /// all in units of the bound of a term, so that neither the records nor how many they are matter. Integers are drawn on the grid of
    /// the sum itself: no point is rounded, and nothing is added to the sensitivity. No bound on a gradient is assumed either:
    /// [`crate::ClippedSum`] enforces the one that the noise is for.
    pub fn for_sums(budget: Budget, n_records: usize, rounds: &[SumRound]) -> Result<Self, PrivacyError> {
        let budget = budget.checked()?;
        require(!rounds.is_empty(), "rounds", 0.0, "at least 1")?;
        for &SumRound { n_coordinates, share, .. } in rounds {
            let fits = (1..=MOST_COORDINATES).contains(&n_coordinates);
            require(fits, "numbers in a release", n_coordinates as f64, "between 1 and 2^22")?;
            require(share > 0.0 && share <= 1.0, "share of a round", share, "above 0 and at most 1")?;
        }
        let shares = rounds.iter().fold(0.0, |sum, round| add_up(sum, round.share));
        require(shares <= 1.0 + 1e-9, "sum of the shares", shares, "at most 1")?;
        let bits = bits_for(n_records);
        // First with as much of delta for discreteness as it may have; then with twice as much as that noise turns out to need, which
        // makes the noise narrower by less than a hundredth.
        let most = LARGEST_SLACK_FRACTION * budget.delta.value();
        let wide = Self::with_slack(budget, bits, rounds, most)?;
        let slack = mul_up(2.0, wide.discreteness(budget.epsilon.value())).min(most);
        let schedule = Self::with_slack(budget, bits, rounds, slack)?;
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
        let delta = remaining(budget.delta, delta_slack);
        let rho = mu_to_rho_down(gdp_mu(Budget { delta, ..budget })).value();
        let (mut enlarged, mut step) = (1.0, f64::EPSILON);
        loop {
            let round = |&SumRound { n_coordinates, terms, share }: &SumRound| {
                let mu = sqrt_up(mul_up(2.0, mul_up(rho, share)));
                let sensitivity = terms.sensitivity();
                let noise_std = div_up(sensitivity, mul_down(mu, 1.0 - 4.0 * f64::EPSILON));
                let (noise_std, exponent) = (mul_up(noise_std, enlarged), -(bits as i32));
                let round = Round { n_coordinates, terms: Some(terms), sensitivity, noise_std, exponent };
                let fits = (10.0..=LARGEST_SCALE).contains(&round.scale());
                let allowed = "between 10 and 2^46 units of it; change epsilon";
                require(fits, "noise of a sum", round.scale(), allowed)?;
                Ok(round)
            };
            let schedule = Self {
                rounds: rounds.iter().map(round).collect::<Result<_, PrivacyError>>()?,
                sensitivity: Sensitivity::of_sum(rounds[rounds.len() - 1].terms),
                delta: budget.delta,
                delta_slack,
                exact_method: ExactMethod::Gdp,
                grid_bits: bits,
                decay: 1.0,
                // A sum has no solver that could stall.
                stopping: Stopping::Public,
            };
            if schedule.checked_epsilon()?.exact <= budget.epsilon.value() {
                return Ok(schedule);
            }
            // Adding up charges upward costs a few units in the last place; the noise grows until they are paid for.
            enlarged = mul_up(enlarged, 1.0 + step);
            step *= 2.0;
        }
    }

    /// The part of delta that the noise on sums being discrete costs, rounded up:
    ///
    /// ```text
    /// (1 + e^epsilon) * sum over k of p(k) / (12 s(k)^2),      s(k) = noise_std(k) 2^bits
    /// ```
    ///
    /// by the argument of `grid`: in each coordinate, rounded Gaussian noise and discrete Gaussian noise of scale s >= 10 differ by
    /// at most `1/(12 s^2)` in total variation.
    fn discreteness(&self, epsilon: f64) -> f64 {
        let of = |round: &Round| {
            div_up(round.n_coordinates as f64, mul_down(12.0, mul_down(round.scale(), round.scale())))
        };
        let distance = self.rounds.iter().fold(0.0, |sum, round| add_up(sum, of(round)));
        mul_up(add_up(1.0, exp_up(epsilon)), distance)
    }
}
