//! From guesses to a lower bound of the epsilon that was really spent.
//!
//! If a program is μ-Gaussian private, whoever guesses a bit from what it releases is subject to three facts:
//!
//! ```text
//! sign:    the error rate of any guess is at least Φ(−μ/2)
//! rank:    a score of the bit +1 is above one of the bit −1 with a probability of at most Φ(μ/√2)
//! direct:  P(score > c | +1) ≤ e^ε·P(score > c | −1) + δ, for every program that is (ε, δ)-private, Gaussian or not
//! ```
//!
//! The first gives a bound with exact confidence (Clopper and Pearson). The second is the area under the attacker's ROC curve; it uses
//! how sure the attacker is and not only its guess, and is a fifth tighter, but its confidence is that of a normal approximation
//! (DeLong 1988), so it counts only where there are at least [`FEWEST_FOR_RANK`] tests and [`FEWEST_WRONG`] wrong guesses. It gets nine tenths
//! of the chance of error, the first the rest, and the larger of the two bounds is reported. The third assumes nothing and is far weaker.

use padmm_privacy::{Delta, GdpMu, gdp_epsilon};
use serde::Serialize;

use crate::binomial::{clopper_pearson_lower, clopper_pearson_upper};
use crate::error::{AuditError, require};
use crate::normal::{normal_distribution, normal_quantile};

/// Fewest tests for the bound by ranks.
const FEWEST_FOR_RANK: usize = 1000;
/// Fewest wrong guesses for it: without them the normal approximation is worth nothing.
const FEWEST_WRONG: u64 = 100;
/// The part of the chance of error that the bound by ranks gets; fixed beforehand, like all that follows.
const RANK_SHARE: f64 = 0.9;
/// How sure an attacker must be, in standard deviations, for the direct bound. Fixed beforehand, so that each gets its share of the
/// chance of error.
const THRESHOLDS: [f64; 5] = [1.0, 1.5, 2.0, 2.5, 3.0];
/// A bound of μ is lowered by this part before it becomes an epsilon, because the conversion rounds up by less than that.
const CONVERSION: f64 = 1e-6;

/// One secret bit and what the attacker thinks of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The bit that was to be guessed, as −1 or +1.
    pub secret: f64,
    /// Log-likelihood ratio of +1 against −1, in units of its own standard deviation.
    pub score: f64,
}

/// What a series of guesses proves about the privacy that was really spent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// Secret bits that were guessed.
    pub tests: usize,
    /// How many of them wrongly.
    pub wrong: u64,
    /// With this probability every bound here is below the truth.
    pub confidence: f64,
    /// Estimate of μ from how the scores of the two bits overlap; no bound.
    pub mu_measured: f64,
    /// Lower bound of μ, by sign or by rank, whichever is larger.
    pub mu_lower: f64,
    /// ε at the claim's δ is at least this, if the noise is Gaussian.
    pub epsilon_lower: f64,
    /// ε at the claim's δ is at least this, whatever the noise is.
    pub epsilon_direct: f64,
}

/// The bounds that follow from some trials.
pub fn bounds(trials: &[Trial], delta: Delta, confidence: f64) -> Result<Bounds, AuditError> {
    require(
        "confidence",
        confidence,
        confidence > 0.0 && confidence < 1.0,
        "between 0 and 1, both excluded",
    )?;
    let n = trials.len();
    let n_plus = trials.iter().filter(|t| t.secret > 0.0).count();
    require(
        "tests",
        n as f64,
        n_plus > 0 && n_plus < n,
        "enough for both values of the secret bit to occur",
    )?;
    let error = 1.0 - confidence;
    // A score of zero, or none at all, is half a wrong guess; counting it as a whole one is the safe direction.
    let wrong = trials.iter().filter(|t| t.score.is_nan() || t.score * t.secret <= 0.0).count() as u64;
    let by_sign = -2.0 * normal_quantile(clopper_pearson_upper(wrong, n as u64, (1.0 - RANK_SHARE) * error));
    let area = Area::of(trials);
    let by_rank = if n >= FEWEST_FOR_RANK && wrong >= FEWEST_WRONG {
        2f64.sqrt() * normal_quantile(area.lower(RANK_SHARE * error))
    } else {
        f64::NEG_INFINITY
    };
    let mu_lower = by_sign.max(by_rank).max(0.0);
    Ok(Bounds {
        tests: n,
        wrong,
        confidence,
        mu_measured: area.mu(n),
        mu_lower,
        epsilon_lower: epsilon_of(mu_lower, delta),
        epsilon_direct: direct(trials, delta, error),
    })
}

/// Epsilon of μ at δ, not above the truth.
fn epsilon_of(mu: f64, delta: Delta) -> f64 {
    let lowered = GdpMu::new(mu * (1.0 - CONVERSION)).expect("a quantile of a probability is far below 1e60");
    gdp_epsilon(lowered, delta).value()
}

/// `ln((right − δ)/wrong)` at the best of the thresholds: bits that the attacker is sure of, rightly and wrongly. By the average of
/// the two labels' inequalities, `P(right and sure) ≤ e^ε·P(wrong and sure) + δ`.
fn direct(trials: &[Trial], delta: Delta, error: f64) -> f64 {
    let share = error / (2.0 * THRESHOLDS.len() as f64);
    let n = trials.len() as u64;
    let at = |&threshold: &f64| {
        let count =
            |sign: f64| trials.iter().filter(|t| sign * t.score * t.secret > threshold).count() as u64;
        let right = clopper_pearson_lower(count(1.0), n, share);
        let wrong = clopper_pearson_upper(count(-1.0), n, share);
        if right > delta.value() { ((right - delta.value()) / wrong).ln() } else { 0.0 }
    };
    THRESHOLDS.iter().map(at).fold(0.0, f64::max)
}

/// The area under the attacker's ROC curve, with the variance of its estimate.
struct Area {
    value: f64,
    variance: f64,
}

impl Area {
    /// By the ranks of all scores; ties count half.
    fn of(trials: &[Trial]) -> Self {
        let mut sorted: Vec<Trial> = trials.iter().copied().filter(|t| !t.score.is_nan()).collect();
        sorted.sort_by(|a, b| a.score.total_cmp(&b.score));
        let n_plus = sorted.iter().filter(|t| t.secret > 0.0).count() as f64;
        let n_minus = sorted.len() as f64 - n_plus;
        // For every score the share of the other label's scores that it is on the right side of.
        let (mut plus, mut minus) = (Moments::default(), Moments::default());
        let (mut below_plus, mut below_minus, mut from) = (0.0, 0.0, 0);
        while from < sorted.len() {
            let tied = sorted[from..].partition_point(|t| t.score <= sorted[from].score);
            let here = &sorted[from..from + tied];
            let here_plus = here.iter().filter(|t| t.secret > 0.0).count() as f64;
            let here_minus = tied as f64 - here_plus;
            plus.add(here_plus, (below_minus + 0.5 * here_minus) / n_minus);
            minus.add(here_minus, (n_plus - below_plus - 0.5 * here_plus) / n_plus);
            below_plus += here_plus;
            below_minus += here_minus;
            from += tied;
        }
        let variance = plus.variance() / n_plus + minus.variance() / n_minus;
        Self { value: plus.mean(), variance }
    }

    /// A lower confidence limit, on the logit scale, where the estimate is closer to normal.
    fn lower(&self, error: f64) -> f64 {
        let Self { value, variance } = *self;
        if !(value > 0.0 && value < 1.0) {
            return 0.0;
        }
        let spread = variance.sqrt() / (value * (1.0 - value));
        let logit = (value / (1.0 - value)).ln() + normal_quantile(error) * spread;
        1.0 / (1.0 + (-logit).exp())
    }

    /// The μ that this area stands for; kept finite where every score is on its right side.
    fn mu(&self, n: usize) -> f64 {
        let nearest = 0.5 / (n as f64 * n as f64);
        2f64.sqrt() * normal_quantile(self.value.clamp(nearest, 1.0 - nearest))
    }
}

#[derive(Default)]
struct Moments {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, times: f64, value: f64) {
        self.n += times;
        self.sum += times * value;
        self.squares += times * value * value;
    }

    fn mean(&self) -> f64 {
        self.sum / self.n
    }

    fn variance(&self) -> f64 {
        ((self.squares - self.sum * self.mean()) / (self.n - 1.0).max(1.0)).max(0.0)
    }
}

/// The smallest error rate of a guess that a μ allows.
#[must_use]
pub(crate) fn least_error(mu: f64) -> f64 {
    normal_distribution(-0.5 * mu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Bits;

    /// Trials with scores from `N(±μ/2, 1)`.
    fn gaussian(mu: f64, n: usize, seed: u64) -> Vec<Trial> {
        let mut bits = Bits::new(seed, 0);
        let trial = |_| {
            let secret = bits.label();
            Trial { secret, score: 0.5 * mu * secret + normal_quantile(bits.unit().max(1e-300)) }
        };
        (0..n).map(trial).collect()
    }

    fn delta() -> Delta {
        Delta::new(1e-4).unwrap()
    }

    #[test]
    fn a_gaussian_of_known_mu_is_measured_at_it() {
        // By the exact Gaussian conversion (EQUATIONS §5), ε = 1 and 5 at δ = 1e-4 are μ = 0.3139 and 1.2564.
        for (mu, epsilon, least) in [(0.3139, 1.0, 0.85), (1.2564, 5.0, 4.6)] {
            let found = bounds(&gaussian(mu, 100_000, 7), delta(), 0.999).unwrap();
            assert!((found.mu_measured - mu).abs() < 0.03, "{found:?}");
            assert!(found.epsilon_lower > least && found.epsilon_lower < epsilon, "{found:?}");
            assert!(found.epsilon_direct > 0.3 * epsilon && found.epsilon_direct < epsilon, "{found:?}");
        }
    }

    #[test]
    fn bounds_exceed_the_truth_as_rarely_as_they_say() {
        // 600 audits at 95 %: 30 misses are expected at most, and 60 have a chance below 1e-6. Exactly as rare they need not be.
        let (mu, n) = (1.0, 1500);
        let truth = gdp_epsilon(GdpMu::new(mu).unwrap(), delta()).value();
        let missed = |seed: &u64| {
            let found = bounds(&gaussian(mu, n, *seed), delta(), 0.95).unwrap();
            (found.epsilon_lower > truth, found.epsilon_direct > truth)
        };
        let misses: Vec<(bool, bool)> = (0..600).collect::<Vec<u64>>().iter().map(missed).collect();
        let n_missed = misses.iter().filter(|m| m.0).count();
        assert!((3..60).contains(&n_missed), "{n_missed} of 600");
        assert!(misses.iter().filter(|m| m.1).count() < 10);
    }

    #[test]
    fn no_bound_comes_from_no_information_and_every_bound_is_finite() {
        let blind: Vec<Trial> = (0..1000u32)
            .map(|i| Trial { secret: if i.is_multiple_of(2) { 1.0 } else { -1.0 }, score: 0.0 })
            .collect();
        let found = bounds(&blind, delta(), 0.999).unwrap();
        assert_eq!((found.wrong, found.epsilon_lower, found.epsilon_direct), (1000, 0.0, 0.0));
        let sure: Vec<Trial> = blind.iter().map(|t| Trial { score: 9.0 * t.secret, ..*t }).collect();
        let found = bounds(&sure, delta(), 0.999).unwrap();
        assert!(
            found.mu_measured.is_finite() && found.epsilon_lower.is_finite() && found.epsilon_direct > 3.0
        );
        // All of a thousand right at 99.9 %, of which a tenth is this bound's: the error rate is below 1 − 0.0001^(1/1000) = 0.00917.
        assert!((found.mu_lower + 2.0 * normal_quantile(1.0 - 0.0001f64.powf(1e-3))).abs() < 1e-6);
        assert!(bounds(&sure[..1], delta(), 0.999).is_err() && bounds(&sure, delta(), 1.0).is_err());
    }
}
