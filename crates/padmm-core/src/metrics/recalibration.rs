//! Whether margins mean what they say: logistic recalibration.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::range;
use crate::elementary::{exp, ln_1p_unit};
use crate::vector::simd;

/// The logistic regression of labels on margins, `P(z = +1) = 1/(1 + exp(−(intercept + slope·t)))`, by maximum likelihood.
///
/// Of a model whose margins are log-odds it is (0, 1). A slope below 1 says that margins are too extreme, as those of an overfitted or noisy
/// model are; above 1, too timid. An intercept above 0 says that positives are more frequent than margins of zero say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recalibration {
    /// Log-odds of a positive label at a margin of zero.
    pub intercept: f64,
    /// What a margin is to be multiplied by.
    pub slope: f64,
}

impl Recalibration {
    /// Of margins and labels.
    ///
    /// `None` where there is no maximum: one class is absent, a threshold separates the classes (ties included), or a margin is not finite.
    pub fn of(margins: &[f64], labels: &[f64]) -> Option<Self> {
        assert_eq!(margins.len(), labels.len(), "one margin a label");
        let class = |positive: bool| -> Vec<f64> {
            let members = margins.iter().zip(labels).filter(|&(_, &z)| (z > 0.0) == positive);
            members.map(|(&t, _)| t).collect()
        };
        Self::of_classes(&[&class(true)], &[&class(false)])
    }

    /// [`Self::of`] margins that come in pieces, class by class. Sums are formed piece by piece and added in order, so threads do not
    /// show in the result.
    pub(crate) fn of_classes(positive: &[&[f64]], negative: &[&[f64]]) -> Option<Self> {
        let (low_positive, high_positive) = range_of(positive)?;
        let (low_negative, high_negative) = range_of(negative)?;
        // Exactly then the likelihood has no maximum.
        if high_negative <= low_positive || high_positive <= low_negative {
            return None;
        }
        let (low, high) = (low_positive.min(low_negative), high_positive.max(high_negative));
        // Margins are mapped to [−1, 1], so that the two coefficients have the same size.
        let (center, unit) = (0.5 * (low + high), 0.5 * (high - low));
        if !(unit > 0.0 && unit.is_finite()) {
            return None;
        }
        let pieces: Vec<(&[f64], f64)> =
            positive.iter().map(|p| (*p, 1.0)).chain(negative.iter().map(|p| (*p, -1.0))).collect();
        let at = |line: [f64; 2]| -> Sums {
            let sums: Vec<Sums> =
                pieces.par_iter().map(|&(t, z)| Sums::of(t, z, line, center, unit)).collect();
            sums.iter().fold(Sums::default(), |a, b| a.plus(b))
        };
        let count = |pieces: &[&[f64]]| pieces.iter().map(|p| p.len()).sum::<usize>() as f64;
        let n = count(positive) + count(negative);
        let mut line = [(count(positive) / count(negative)).ln(), 0.0];
        let mut sums = at(line);
        for _ in 0..MOST_STEPS {
            let Sums { gradient: [g0, g1], hessian: [a, b, c], .. } = sums;
            let determinant = a * c - b * b;
            let step = [(c * g0 - b * g1) / determinant, (a * g1 - b * g0) / determinant];
            let decrement = g0 * step[0] + g1 * step[1];
            if decrement.is_nan() {
                return None;
            }
            if decrement <= NEAR * n {
                // The last step squares what is left, and needs no look at where it leads.
                let slope = (line[1] - step[1]) / unit;
                return Some(Self { intercept: line[0] - step[0] - slope * center, slope });
            }
            // Newton's step, halved until it helps: the function is convex, so some step does.
            let mut length = 1.0;
            loop {
                let next = [line[0] - length * step[0], line[1] - length * step[1]];
                let found = at(next);
                if found.value <= sums.value - 0.25 * length * decrement || length < SHORTEST {
                    (line, sums) = (next, found);
                    break;
                }
                length *= 0.5;
            }
        }
        None
    }
}

/// Far more than a convex function of two variables takes unless the classes overlap by next to nothing.
const MOST_STEPS: usize = 60;
/// Newton decrement for each record at which one step more gives as many digits as anybody reads.
const NEAR: f64 = 1e-10;
const SHORTEST: f64 = 1e-6;
/// Of the widest vector registers that are common.
const LANES: usize = 4;

fn range_of(pieces: &[&[f64]]) -> Option<(f64, f64)> {
    let ranges: Option<Vec<(f64, f64)>> = pieces.iter().map(|p| range(p)).collect();
    let both = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
    let (low, high) = ranges?.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), both);
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// The negative log-likelihood of a line in `(1, (t − center)/unit)`, its gradient, and its Hessian (three entries).
#[derive(Clone, Copy, Default)]
struct Sums {
    value: f64,
    gradient: [f64; 2],
    hessian: [f64; 3],
}

impl Sums {
    fn of(margins: &[f64], label: f64, line: [f64; 2], center: f64, unit: f64) -> Self {
        // One sum of each kind for every lane of a vector register: a single one would have to wait for itself.
        let mut sums = [[0.0; LANES]; 6];
        let (whole, rest) = margins.as_chunks::<LANES>();
        simd(
            #[inline(always)]
            || {
                for margins in whole {
                    for (lane, &t) in margins.iter().enumerate() {
                        let terms = terms(t, label, line, center, unit);
                        sums.iter_mut().zip(terms).for_each(|(sum, v)| sum[lane] += v);
                    }
                }
            },
        );
        for &t in rest {
            sums.iter_mut().zip(terms(t, label, line, center, unit)).for_each(|(sum, v)| sum[0] += v);
        }
        let [value, g0, g1, a, b, c] = sums.map(|lanes| lanes.iter().sum());
        Self { value, gradient: [g0, g1], hessian: [a, b, c] }
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            value: self.value + other.value,
            gradient: std::array::from_fn(|k| self.gradient[k] + other.gradient[k]),
            hessian: std::array::from_fn(|k| self.hessian[k] + other.hessian[k]),
        }
    }
}

/// What one margin adds to the value, the gradient and the Hessian.
#[inline(always)]
fn terms(margin: f64, label: f64, line: [f64; 2], center: f64, unit: f64) -> [f64; 6] {
    let u = (margin - center) / unit;
    let s = label * (line[0] + line[1] * u);
    let e = exp(-s.abs());
    let value = ln_1p_unit(e) + (-s).max(0.0);
    let slope = -label * if s > 0.0 { e } else { 1.0 } / (1.0 + e);
    let curvature = e / ((1.0 + e) * (1.0 + e));
    [value, slope, slope * u, curvature, curvature * u, curvature * u * u]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a maximum is: no residual is left over, neither by itself nor along the margins.
    fn residuals(line: Recalibration, margins: &[f64], labels: &[f64]) -> (f64, f64) {
        let of = |(&t, &z): (&f64, &f64)| {
            let p = 1.0 / (1.0 + (-(line.intercept + line.slope * t)).exp());
            let residual = p - f64::from(u8::from(z > 0.0));
            (residual, residual * t)
        };
        margins.iter().zip(labels).map(of).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
    }

    proptest! {
        #[test]
        fn no_residual_is_left(
            pairs in prop::collection::vec((-4.0..4.0f64, any::<bool>()), 4..300),
            shift in -50.0..50.0f64, spread in prop_oneof![Just(1.0), Just(1e-3), Just(1e3)],
        ) {
            let margins: Vec<f64> = pairs.iter().map(|p| spread * (p.0 + shift)).collect();
            let labels: Vec<f64> = pairs.iter().map(|p| if p.1 { 1.0 } else { -1.0 }).collect();
            let ends = |positive: bool| {
                let of = pairs.iter().filter(|p| p.1 == positive).map(|p| spread * (p.0 + shift));
                of.fold((f64::INFINITY, f64::NEG_INFINITY), |a, t| (a.0.min(t), a.1.max(t)))
            };
            let (p, n) = (ends(true), ends(false));
            let overlap = p.0 < n.1 && n.0 < p.1;
            let found = Recalibration::of(&margins, &labels);
            prop_assert_eq!(found.is_some(), overlap);
            if let Some(line) = found {
                let (plain, along) = residuals(line, &margins, &labels);
                let count = margins.len() as f64;
                prop_assert!(plain.abs() < 1e-5 * count, "{}", plain);
                prop_assert!(along.abs() < 1e-5 * count * spread * 54.0, "{}", along);
            }
        }
    }

    #[test]
    fn log_odds_that_are_true_are_left_as_they_are() {
        // Of every hundred records with margin logit(p), a hundred p are positive; then margins are made twice as bold and shifted.
        let (mut margins, mut labels) = (vec![], vec![]);
        for percent in [10, 30, 50, 70, 90] {
            let p = f64::from(percent) / 100.0;
            for k in 0..100 {
                margins.push((p / (1.0 - p)).ln());
                labels.push(if k < percent { 1.0 } else { -1.0 });
            }
        }
        let near = |found: Option<Recalibration>, intercept: f64, slope: f64| {
            let found = found.expect("the classes overlap");
            assert!(
                (found.intercept - intercept).abs() < 1e-7 && (found.slope - slope).abs() < 1e-7,
                "{found:?}"
            );
        };
        near(Recalibration::of(&margins, &labels), 0.0, 1.0);
        let bold: Vec<f64> = margins.iter().map(|t| 2.0 * t + 3.0).collect();
        near(Recalibration::of(&bold, &labels), -1.5, 0.5);
        let turned: Vec<f64> = margins.iter().map(|t| -t).collect();
        near(Recalibration::of(&turned, &labels), 0.0, -1.0);
    }

    #[test]
    fn what_has_no_maximum_has_no_line() {
        let labels = [-1.0, -1.0, 1.0, 1.0];
        for margins in [
            [0.1, 0.2, 0.3, 0.4],
            [0.1, 0.2, 0.2, 0.4],
            [0.4, 0.3, 0.2, 0.1],
            [1.0; 4],
            [f64::NAN, 0.2, 0.1, 0.4],
            [0.1, f64::INFINITY, 0.2, 0.4],
        ] {
            assert_eq!(Recalibration::of(&margins, &labels), None, "{margins:?}");
        }
        assert_eq!(Recalibration::of(&[1.0, 2.0], &[1.0, 1.0]), None);
        assert!(Recalibration::of(&[0.1, 0.3, 0.2, 0.4], &labels).is_some());
    }
}
