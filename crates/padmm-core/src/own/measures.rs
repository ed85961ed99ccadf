//! Own, joint and combined on a site's own records, with intervals. Computed from records: for the site's own eyes.

use serde::{Deserialize, Serialize};

use super::stretch_and_shift;
use crate::loss::Loss;

/// Standard errors on each side of an interval of 95 %.
const NORMAL_95: f64 = 1.96;

/// A mean over a site's records, with what chance alone makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean itself.
    pub value: f64,
    /// Its standard error, from the spread over records.
    pub std_error: f64,
    /// Lower end of the interval that has the truth in 95 of 100 such tables.
    pub low: f64,
    /// Upper end of the same interval.
    pub high: f64,
}

impl Estimate {
    fn new(value: f64, std_error: f64) -> Self {
        let half = NORMAL_95 * std_error;
        Self { value, std_error, low: value - half, high: value + half }
    }

    /// The mean of at least one number.
    fn mean(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        Self::new(mean, variance(values, mean).sqrt() / n.sqrt())
    }
}

/// The sample variance; 0 of a single number.
fn variance(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    squares / (values.len().max(2) - 1) as f64
}

/// What margins have to be stretched by and shifted by to fit the labels: 1 and 0 for a model that is neither too sure nor biased.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Below 1 for a model that is too sure of itself.
    pub slope: f64,
    /// Above 0 for a model that expects too few positives.
    pub intercept: f64,
}

/// How good one model is on records that it has not seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// Mean loss; the log loss where the loss is logistic.
    pub loss: Estimate,
    /// Area under the ROC curve, with DeLong's standard error; none for regression or a single class.
    pub auc: Option<Estimate>,
    /// Only of the logistic loss.
    pub calibration: Option<Calibration>,
}

/// Own, joint and combined, each judged by records that it has not seen. The combined model's weights, too, were chosen without them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Records that were used.
    pub records: usize,
    /// Parts that the records were cut into; each was judged by models that were fitted to the others.
    pub folds: usize,
    /// The model from own records alone.
    pub own: Measures,
    /// The joint model as it is.
    pub joint: Measures,
    /// The combined model.
    pub combined: Measures,
    /// By how much the combined model's loss is below that of own records alone, record by record: whether taking part has helped.
    pub gain: Estimate,
}

impl Comparison {
    /// From each record's margins by the three models.
    pub(super) fn of(loss: Loss, labels: &[f64], folds: usize, margins: [&[f64]; 3]) -> Self {
        let losses = margins.map(|margins| -> Vec<f64> {
            labels.iter().zip(margins).map(|(&z, &t)| loss.value(z, t)).collect()
        });
        let gains: Vec<f64> =
            losses[0].iter().zip(&losses[2]).map(|(own, combined)| own - combined).collect();
        let measures = |m: usize| Measures {
            loss: Estimate::mean(&losses[m]),
            auc: loss.is_classification().then(|| auc(margins[m], labels)).flatten(),
            calibration: (loss == Loss::Logistic).then(|| calibration(margins[m], labels)),
        };
        let [own, joint, combined] = [0, 1, 2].map(measures);
        Self { records: labels.len(), folds, own, joint, combined, gain: Estimate::mean(&gains) }
    }
}

/// Area under the ROC curve with DeLong's standard error; none for a single class.
fn auc(margins: &[f64], labels: &[f64]) -> Option<Estimate> {
    let class = |positive: bool| {
        let members = margins.iter().zip(labels).filter(|(_, z)| (**z > 0.0) == positive);
        let mut members: Vec<f64> = members.map(|(t, _)| *t).collect();
        members.sort_unstable_by(f64::total_cmp);
        members
    };
    let (positive, negative) = (class(true), class(false));
    if positive.is_empty() || negative.is_empty() {
        return None;
    }
    // For each record, the share of the other class that it is on the right side of, ties counting half.
    let below = |t: f64, others: &[f64]| {
        let (less, not_more) = (others.partition_point(|o| *o < t), others.partition_point(|o| *o <= t));
        (less + not_more) as f64 / (2 * others.len()) as f64
    };
    let of_positive: Vec<f64> = positive.iter().map(|&t| below(t, &negative)).collect();
    let of_negative: Vec<f64> = negative.iter().map(|&t| 1.0 - below(t, &positive)).collect();
    let area = of_positive.iter().sum::<f64>() / of_positive.len() as f64;
    let part = |shares: &[f64]| variance(shares, area) / shares.len() as f64;
    Some(Estimate::new(area, (part(&of_positive) + part(&of_negative)).sqrt()))
}

fn calibration(margins: &[f64], labels: &[f64]) -> Calibration {
    let (zero, one) = (vec![0.0; labels.len()], vec![1.0; labels.len()]);
    let unit = super::LIKELY_SHIFT;
    let (slope, intercept) = stretch_and_shift(Loss::Logistic, labels, margins, &zero, &one, unit);
    Calibration { slope, intercept }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Margins and labels with ties.
    fn scored(n: usize) -> (Vec<f64>, Vec<f64>) {
        let margin = |i: usize| ((i * 37) % 19) as f64;
        let label = |i: usize| if (i * 37) % 19 + (i * 11) % 13 > 15 { 1.0 } else { -1.0 };
        ((0..n).map(margin).collect(), (0..n).map(label).collect())
    }

    #[test]
    fn the_standard_error_of_an_auc_is_delongs() {
        let (margins, labels) = scored(60);
        let side = |z: f64| (0..60).filter(move |&i| (labels[i] > 0.0) == (z > 0.0));
        let positive: Vec<usize> = side.clone()(1.0).collect();
        let negative: Vec<usize> = side(-1.0).collect();
        // ψ of every pair, and the variances of its row and column means.
        let wins = |i: usize, j: usize| match margins[i].total_cmp(&margins[j]) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
        let (m, n) = (positive.len() as f64, negative.len() as f64);
        let rows: Vec<f64> =
            positive.iter().map(|&i| negative.iter().map(|&j| wins(i, j)).sum::<f64>() / n).collect();
        let columns: Vec<f64> =
            negative.iter().map(|&j| positive.iter().map(|&i| wins(i, j)).sum::<f64>() / m).collect();
        let area = rows.iter().sum::<f64>() / m;
        let square = |v: &[f64]| v.iter().map(|x| (x - area).powi(2)).sum::<f64>() / (v.len() as f64 - 1.0);
        let expected = (square(&rows) / m + square(&columns) / n).sqrt();
        let labels = scored(60).1;
        let found = auc(&margins, &labels).unwrap();
        assert!(
            (found.value - area).abs() < 1e-12 && (found.std_error - expected).abs() < 1e-12,
            "{found:?}"
        );
        assert!(auc(&margins, &vec![1.0; 60]).is_none());
    }

    #[test]
    fn calibration_is_the_minimum_of_its_objective() {
        let (margins, labels) = scored(60);
        let found = calibration(&margins, &labels);
        let objective = |slope: f64, intercept: f64| {
            let each = |(&t, &z): (&f64, &f64)| (-z * (slope * t + intercept)).exp().ln_1p();
            let fit: f64 = margins.iter().zip(&labels).map(each).sum();
            fit + 0.5 * (slope - 1.0).powi(2) + 0.5 * (intercept / 3.0).powi(2)
        };
        let least = objective(found.slope, found.intercept);
        for (a, b) in [(1e-3, 0.0), (-1e-3, 0.0), (0.0, 1e-2), (0.0, -1e-2), (1e-3, -1e-2), (-1e-3, 1e-2)] {
            assert!(objective(found.slope + a, found.intercept + b) > least, "{found:?}");
        }
    }
}
