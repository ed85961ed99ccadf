//! How many rounds, how large steps, how much shrinkage: a rule on public facts alone, found on some data and shown on others
//! (experiments/README.md).

/// What a run of consensus Newton is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rule {
    /// `ν = pA/μ`: noise of one coordinate's worth of budget, times the number of coordinates.
    pub nu: f64,
    /// `C_q`: where a record's gradient is clipped, in units of its typical length in the metric.
    pub clip: f64,
    /// `K`: rounds after stage 0.
    pub rounds: u32,
    /// `R`: the variance of the noise is multiplied by it from round to round.
    pub decay: f64,
    /// `γ`: the least part of a Newton step that is taken.
    pub step: f64,
    /// `w₀`: the curvature of the loss that steps assume, for balanced labels.
    pub curvature: f64,
    /// `r_m`: the part of the average eigenvalue that is added to the metric.
    pub ridge: f64,
    /// `τ²`: how far the model is expected to be from the base rate's, in the metric.
    pub prior: f64,
    /// The part of the prior that is the same in all directions.
    pub mix: f64,
}

/// `φ`: stage 0's part of the budget.
pub(super) const FIRST_SHARE: f64 = 0.2;

/// The first round's part of the budget in units of the last one's, at least; the rule's 24 rounds have as much.
const LEAST_FIRST: f64 = 0.02;

/// More columns than this: the metric is mostly noise, and is trusted less.
const WIDE: usize = 200;

impl Rule {
    /// The rule for `p` columns, the noise factor `A = √Σ(ω_i/n_i)²` and a budget that is worth `mu`.
    pub(super) fn pick(p: usize, noise_factor: f64, mu: f64) -> Self {
        let nu = p as f64 * noise_factor / mu;
        let (rounds, decay, step, curvature, ridge) = match nu {
            _ if nu <= 0.015 => (24, 0.85, 0.3, 0.1, 0.02),
            _ if nu <= 0.05 => (8, 0.7, 0.5, 0.1, 0.1),
            _ if nu <= 0.1 => (5, 0.7, 0.5, 0.1, 0.1),
            _ if nu <= 0.2 => (5, 0.7, 0.5, 0.15, 0.1),
            _ => (3, 0.7, 0.5, 0.15, 0.1),
        };
        Self {
            nu,
            clip: (0.186 / libm::cbrt(nu)).clamp(0.25, 1.0),
            rounds,
            decay,
            step,
            curvature,
            ridge: if p > WIDE { f64::max(ridge, 0.3) } else { ridge },
            prior: 3.0 / p as f64,
            mix: if p > WIDE { 0.5 } else { 0.0 },
        }
    }

    /// The same with another number of rounds. The first one's part of the budget stays what the rule would give it at the least: of many
    /// rounds the early ones would otherwise release nothing but noise.
    pub(super) fn with_rounds(self, rounds: u32) -> Self {
        let decay = self.decay.max(libm::pow(LEAST_FIRST, 1.0 / f64::from(rounds)));
        Self { rounds, decay, ..self }
    }

    /// `β_k`: each round's part of the budget, after stage 0's.
    pub(super) fn shares(&self) -> Vec<f64> {
        let mut shares: Vec<f64> =
            (0..self.rounds).map(|k| 1.0 / libm::pow(self.decay, f64::from(k))).collect();
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share *= (1.0 - FIRST_SHARE) / sum);
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, by: f64) {
        assert!((found - expected).abs() <= by, "{found} is not {expected}");
    }

    #[test]
    fn the_rule_is_that_of_the_specification() {
        let adult = Rule::pick(104, 4.9446e-5, 0.313902);
        near(adult.nu, 0.016382, 1e-6);
        near(adult.clip, 0.732355, 1e-5);
        let shares = [0.020974, 0.029963, 0.042804, 0.061149, 0.087356, 0.124794, 0.178277, 0.254682];
        assert_eq!(adult.rounds, 8);
        adult.shares().iter().zip(shares).for_each(|(&found, expected)| near(found, expected, 1e-6));
        assert_eq!(adult.with_rounds(8), adult);
        let fifty = adult.with_rounds(50).shares();
        near(fifty[0] / fifty[49], 0.02, 0.002);
        let heart = Rule::pick(19, 0.00409, 0.313902);
        near(heart.nu, 0.24756, 1e-4);
        near(heart.clip, 0.296224, 1e-4);
        assert_eq!(heart.rounds, 3);
    }
}
