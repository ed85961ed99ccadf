//! What a model is worth nothing against: the same answer for everybody.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::loss::Loss;

/// How well the best constant fits some records: the larger class, or the margin with the least loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestConstant {
    /// Mean loss of the margin that is best for all records alike; the entropy of the labels for the logistic loss.
    pub loss: f64,
    /// Share of the larger class; `None` for regression.
    pub accuracy: Option<f64>,
}

impl BestConstant {
    /// Of all records of `parts` together; both are NaN if there are none.
    pub fn of(loss: Loss, parts: &[&Dataset]) -> Self {
        let n: usize = parts.iter().map(|p| p.n_records()).sum();
        if loss.is_classification() {
            let positive = |p: &&Dataset| p.labels().iter().filter(|z| **z > 0.0).count();
            let share = parts.iter().map(positive).sum::<usize>() as f64 / n as f64;
            let labels = [(1.0, share), (-1.0, 1.0 - share)];
            let value = |t: f64| labels.iter().map(|(z, w)| w * loss.value(*z, t)).sum();
            let slope = |t: f64| labels.iter().map(|(z, w)| w * loss.slope(*z, t)).sum();
            // Beyond that the loss of the rarer class alone is more than a mean loss can be, or the class is absent.
            return Self { loss: least(value, slope, -64.0, 64.0), accuracy: Some(share.max(1.0 - share)) };
        }
        let mean = |of: &(dyn Fn(f64) -> f64 + Sync)| {
            let sums: Vec<f64> =
                parts.par_iter().map(|p| p.labels().iter().map(|&z| of(z)).sum::<f64>()).collect();
            sums.iter().sum::<f64>() / n as f64
        };
        let all = || parts.iter().flat_map(|p| p.labels());
        let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |a, &z| (a.0.min(z), a.1.max(z)));
        let (value, slope) = (|t: f64| mean(&|z| loss.value(z, t)), |t: f64| mean(&|z| loss.slope(z, t)));
        let (low, high) = match loss {
            // Margins are logarithms of counts; less than a count of e^−64 nobody asks for.
            Loss::Poisson { cap } => (-64.0, cap.ln()),
            // With a rounded corner a high or low quantile may lie beyond the last label.
            Loss::Quantile { width, .. } => (low - width, high + width),
            _ => (low, high),
        };
        Self { loss: least(value, slope, low, high), accuracy: None }
    }
}

/// The least value of a convex function between `low` and `high`, by bisection on its slope.
fn least(value: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    // Near its minimum a function is flat: thirty bits of the place are sixty of the value.
    for _ in 0..36 {
        let middle = 0.5 * (low + high);
        if slope(middle) < 0.0 { low = middle } else { high = middle }
    }
    value(low).min(value(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(labels: &[f64]) -> Dataset {
        let mut data = Dataset::new(1, 1, 0, 1.0);
        labels.iter().for_each(|&z| data.push(&[0.5], &[], z));
        data
    }

    #[test]
    fn the_best_constant_is_the_base_rate_the_larger_class_or_the_mean() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} against {b}");
        let (first, second) = (records(&[1.0, -1.0, -1.0]), records(&[-1.0]));
        let parts = [&first, &second];
        let logistic = BestConstant::of(Loss::Logistic, &parts);
        near(logistic.loss, -(0.25 * 0.25f64.ln() + 0.75 * 0.75f64.ln()));
        assert_eq!(logistic.accuracy, Some(0.75));
        near(BestConstant::of(Loss::Hinge, &parts).loss, 0.5);
        // At −(1 − width) and beyond, the larger class costs next to nothing.
        let rounded = BestConstant::of(Loss::HuberizedHinge { width: 0.5 }, &parts).loss;
        let by_search = (-300..=300).map(|k| {
            let t = f64::from(k) / 100.0;
            let loss = Loss::HuberizedHinge { width: 0.5 };
            0.25 * loss.value(1.0, t) + 0.75 * loss.value(-1.0, t)
        });
        assert!((rounded - by_search.fold(f64::INFINITY, f64::min)).abs() < 1e-4, "{rounded}");
        let numbers = records(&[0.1, 0.2, 0.9]);
        let squared = BestConstant::of(Loss::Squared, &[&numbers]);
        near(squared.loss, 0.5 * (0.3f64.powi(2) + 0.2f64.powi(2) + 0.5f64.powi(2)) / 3.0);
        assert_eq!(squared.accuracy, None);
        let counts = BestConstant::of(Loss::Poisson { cap: 10.0 }, &[&numbers]);
        let half_deviance = |y: f64| y * (y / 4.0).ln() - (y - 4.0);
        near(counts.loss, (half_deviance(1.0) + half_deviance(2.0) + half_deviance(9.0)) / 3.0);
        // Of three labels the second is the median, and anything up to it the third.
        let median = BestConstant::of(Loss::Quantile { level: 0.5, width: 1e-9 }, &[&numbers]);
        near(median.loss, 0.5 * (0.1 + 0.7) / 3.0);
        let low = BestConstant::of(Loss::Quantile { level: 0.1, width: 1e-9 }, &[&numbers]);
        near(low.loss, 0.1 * (0.1 + 0.8) / 3.0);
        let one_class = BestConstant::of(Loss::Logistic, &[&second]);
        near(one_class.loss, 0.0);
        assert_eq!(one_class.accuracy, Some(1.0));
    }
}
