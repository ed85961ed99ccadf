//! How far privacy noise may have moved a model.

use serde::{Deserialize, Serialize};

use crate::matrix::Square;

/// Models with more coefficients carry standard deviations alone: the whole matrix would be most of their file.
const MOST_IN_FULL: usize = 200;

/// What privacy noise, and nothing else, has put on the coefficients of a model: a prediction from releases and public facts, so it is as
/// public as the model. That records are a sample, and that the method stopped before the optimum, is not in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivacyNoise {
    /// One for each coefficient, in the order of the encoded columns.
    pub standard_deviations: Vec<f64>,
    /// Of every two coefficients, row by row, for up to 200 of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covariance: Option<Vec<Vec<f64>>>,
}

impl PrivacyNoise {
    /// Of coefficients with this covariance.
    pub(crate) fn of(covariance: &Square) -> Self {
        let n = covariance.n();
        Self {
            // Rounding can leave a variance that is nothing a little below it.
            standard_deviations: (0..n).map(|i| covariance.at(i, i).max(0.0).sqrt()).collect(),
            covariance: (n <= MOST_IN_FULL).then(|| (0..n).map(|i| covariance.row(i).to_vec()).collect()),
        }
    }

    /// Of coefficients with these variances, where no more is known of them.
    pub(crate) fn of_variances(variances: &[f64]) -> Self {
        Self { standard_deviations: variances.iter().map(|v| v.sqrt()).collect(), covariance: None }
    }

    /// The standard deviations alone.
    #[must_use]
    pub fn without_covariance(&self) -> Self {
        Self { standard_deviations: self.standard_deviations.clone(), covariance: None }
    }

    /// Whether it is about `n` coefficients, and all of it are numbers.
    pub(crate) fn fits(&self, n: usize) -> bool {
        let is_row = |row: &Vec<f64>| row.len() == n && row.iter().all(|v| v.is_finite());
        is_row(&self.standard_deviations)
            && self.standard_deviations.iter().all(|v| *v >= 0.0)
            && self.covariance.as_ref().is_none_or(|rows| rows.len() == n && rows.iter().all(is_row))
    }
}
