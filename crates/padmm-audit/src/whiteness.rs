//! Whether the noise is what it is said to be: independent, of the charged size, and not to be told from a Gaussian.
//!
//! The auditor knows the secrets, so it can take the true point off every release. What is left, in units of the charged standard
//! deviation, is standard normal and independent over rounds, coordinates, runs and sites. A likelihood ratio cannot see noise that is
//! the same in every round, or that shrinks by another rule than the one that is charged; these tests can.
//!
//! All deviates are compared with one threshold, chosen so that a sound program is accused with a chance below [`FALSE_ALARM`] by all
//! tests together.

use crate::attack::{Evidence, LOW_VALUES};
use crate::normal::{chi_square_deviate, normal_distribution, normal_quantile};
use crate::verdict::Check;

/// The chance that a sound program fails this check.
pub const FALSE_ALARM: f64 = 5e-5;

/// Fewer residuals than this a round prove nothing: deviates of so few are not normal.
const FEWEST: usize = 100;

/// Fewest integers for the test of their low bits: forty for each value.
const FEWEST_INTEGERS: u64 = 40 * LOW_VALUES as u64;

/// Judges the residuals of an attack.
pub fn whiteness(evidence: &Evidence) -> Check {
    let mut check = Check::passed();
    if !evidence.noise_is_secure {
        check.fail("the noise says of itself that it must not protect records".to_owned());
    }
    for fault in evidence.noise_faults.iter().take(8) {
        check.fail(fault.clone());
    }
    let rounds = &evidence.residuals;
    let n = rounds.first().map_or(0, Vec::len);
    if n < FEWEST || rounds.iter().any(|r| r.len() != n) || evidence.secrets.len() != n {
        check.fail(format!(
            "there are too few releases to judge the noise by ({n} a round, {FEWEST} are needed)"
        ));
        return check;
    }
    let mut deviates = Deviates::default();
    of_each_round(evidence, n, &mut deviates);
    of_pairs(evidence, n, &mut deviates);
    of_shape(evidence, &mut deviates);
    let limit = -normal_quantile(0.5 * FALSE_ALARM / deviates.0.len() as f64);
    for (what, deviate) in deviates.0 {
        // A deviate that is not a number is none that a sound program has.
        let is_within = deviate.abs() <= limit;
        if !is_within {
            check.fail(format!(
                "{what}: {deviate:+.1} standard deviations, where a sound program stays within {limit:.1}"
            ));
        }
    }
    let repeated = repeated(rounds);
    if repeated > MOST_REPEATED {
        check.fail(format!("the noise of one round came back in another {repeated} times"));
    }
    check
}

/// Two draws of one coordinate are the same integer with a chance of about 2·10⁻⁸ on the coarsest grid.
const MOST_REPEATED: usize = 8;

#[derive(Default)]
struct Deviates(Vec<(String, f64)>);

impl Deviates {
    fn add(&mut self, what: impl Into<String>, deviate: f64) {
        self.0.push((what.into(), deviate));
    }
}

/// Mean, size and correlation with the secret.
fn of_each_round(evidence: &Evidence, n: usize, deviates: &mut Deviates) {
    let root = (n as f64).sqrt();
    for (k, residuals) in evidence.residuals.iter().enumerate() {
        let round = k + 1;
        deviates.add(format!("mean of the noise of round {round}"), residuals.iter().sum::<f64>() / root);
        let squares = residuals.iter().map(|r| r * r).sum::<f64>();
        deviates.add(
            format!("variance of the noise of round {round} ({:.4} of what is charged)", squares / n as f64),
            chi_square_deviate(squares, n as f64),
        );
        let with_secret: f64 = residuals.iter().zip(&evidence.secrets).map(|(r, s)| r * s).sum();
        deviates.add(format!("what is left of the secret in the noise of round {round}"), with_secret / root);
    }
}

/// Correlation between rounds, between neighbouring coordinates, and between consecutive runs.
fn of_pairs(evidence: &Evidence, n: usize, deviates: &mut Deviates) {
    let rounds = &evidence.residuals;
    for k in 0..rounds.len() {
        for l in 0..k {
            let product: f64 = rounds[k].iter().zip(&rounds[l]).map(|(a, b)| a * b).sum();
            let name = format!("correlation of the noise of rounds {} and {}", l + 1, k + 1);
            deviates.add(name, product / (n as f64).sqrt());
        }
    }
    let (mut beside, mut n_beside, mut next, mut n_next) = (0.0, 0usize, 0.0, 0usize);
    for residuals in rounds {
        let (mut from, mut before): (usize, &[f64]) = (0, &[]);
        for &length in &evidence.run_lengths {
            let run = &residuals[from..from + length];
            beside += run.windows(2).map(|w| w[0] * w[1]).sum::<f64>();
            n_beside += length.saturating_sub(1);
            next += run.iter().zip(before).map(|(a, b)| a * b).sum::<f64>();
            n_next += length.min(before.len());
            (from, before) = (from + length, run);
        }
    }
    deviates.add("correlation of neighbouring coordinates", beside / (n_beside.max(1) as f64).sqrt());
    deviates.add("correlation of one run and the next", next / (n_next.max(1) as f64).sqrt());
}

/// The distribution as a whole, and the lowest bits of the integers.
fn of_shape(evidence: &Evidence, deviates: &mut Deviates) {
    let mut all: Vec<f64> = evidence.residuals.concat();
    all.sort_by(f64::total_cmp);
    let n = all.len() as f64;
    let gap = |(i, r): (usize, &f64)| {
        let p = normal_distribution(*r);
        (p - i as f64 / n).max((i as f64 + 1.0) / n - p)
    };
    // Kolmogorov's law, P(√n·D > t) → 2·exp(−2t²), as the deviate with the same chance on two sides.
    let distance = all.iter().enumerate().map(gap).fold(0.0, f64::max);
    let chance = (2.0 * (-2.0 * n * distance * distance).exp()).min(1.0);
    deviates.add("distance of the noise's distribution from a Gaussian", -normal_quantile(0.5 * chance));
    let total: u64 = evidence.low_bits.iter().sum();
    if total >= FEWEST_INTEGERS {
        // The grid is 2²⁴ times finer than the noise, so these bits are uniform to within e^(−2π²·2⁴⁸).
        let expected = total as f64 / LOW_VALUES as f64;
        let square: f64 = evidence.low_bits.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
        let freedom = LOW_VALUES as f64 - 1.0;
        deviates.add("uniformity of the lowest bits of the integers", chi_square_deviate(square, freedom));
    }
}

/// How often a coordinate had the same noise in two rounds.
fn repeated(rounds: &[Vec<f64>]) -> usize {
    let same = |a: &f64, b: &f64| (a - b).abs() <= 1e-9;
    let of_pair = |k: usize, l: usize| rounds[k].iter().zip(&rounds[l]).filter(|(a, b)| same(a, b)).count();
    (0..rounds.len()).flat_map(|k| (0..k).map(move |l| (k, l))).map(|(k, l)| of_pair(k, l)).sum()
}
