//! What the loops over records compute, as the mathematics has it: a record is a dense vector `a`, a sum is a sum.
//!
//! Nothing here is fast, and nothing runs outside tests. `kernel/tests.rs` holds every path of [`super`] against these functions.

use std::ops::Range;

use crate::data::Dataset;
use crate::loss::Loss;

/// The feature vector `a_r = scale_r · (numbers, ones at the hot columns)`.
pub(crate) fn row(data: &Dataset, r: usize) -> Vec<f64> {
    let row = data.row(r);
    let mut a = vec![0.0; data.n_features()];
    a[..row.numeric.len()].copy_from_slice(row.numeric);
    row.hot.iter().for_each(|&j| a[j as usize] = 1.0);
    a.iter().map(|v| row.scale * v).collect()
}

/// `t_r = a_rᵀx`, the margin of record `r`.
pub(crate) fn margin(data: &Dataset, r: usize, x: &[f64]) -> f64 {
    row(data, r).iter().zip(x).map(|(a, x)| a * x).sum()
}

/// `c/‖a_r‖`, which record `r`'s slope is capped at; infinite if slopes are not capped.
pub(crate) fn cap(data: &Dataset, r: usize) -> f64 {
    let raw = data.row(r);
    let square = raw.numeric.iter().map(|v| v * v).sum::<f64>() + raw.hot.len() as f64;
    data.slope_cap().map_or(f64::INFINITY, |cap| cap / square.sqrt())
}

/// `Σ_r ℓ(z_r, t_r)` over the records in `range`.
pub(crate) fn loss(loss: Loss, data: &Dataset, range: Range<usize>, x: &[f64]) -> f64 {
    range.map(|r| loss.capped_value(data.labels()[r], margin(data, r, x), cap(data, r))).sum()
}

/// `Σ_r ℓ'(z_r, t_r) a_r`
pub(crate) fn gradient(loss: Loss, data: &Dataset, range: Range<usize>, x: &[f64]) -> Vec<f64> {
    let slope = |r| loss.capped_slope(data.labels()[r], margin(data, r, x), cap(data, r));
    sum_of_rows(data, range, slope)
}

/// `H = Σ_r ℓ''(z_r, t_r) a_r a_rᵀ`, row by row.
pub(crate) fn hessian(loss: Loss, data: &Dataset, range: Range<usize>, x: &[f64]) -> Vec<f64> {
    let p = data.n_features();
    let mut hessian = vec![0.0; p * p];
    for r in range {
        let (a, d) = (row(data, r), curvature(loss, data, r, x));
        for i in 0..p {
            for j in 0..p {
                hessian[i * p + j] += d * a[i] * a[j];
            }
        }
    }
    hessian
}

/// `Hv = Σ_r ℓ''(z_r, t_r) (a_rᵀv) a_r`
pub(crate) fn hessian_vector(
    loss: Loss,
    data: &Dataset,
    range: Range<usize>,
    x: &[f64],
    v: &[f64],
) -> Vec<f64> {
    sum_of_rows(data, range, |r| curvature(loss, data, r, x) * margin(data, r, v))
}

/// `d_r = ℓ''(z_r, t_r)`
pub(crate) fn curvature(loss: Loss, data: &Dataset, r: usize, x: &[f64]) -> f64 {
    loss.capped_curvature(data.labels()[r], margin(data, r, x), cap(data, r))
}

/// `Σ_r f_r a_r`, where `factor` gives `f_r`.
fn sum_of_rows(data: &Dataset, range: Range<usize>, factor: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut sum = vec![0.0; data.n_features()];
    for r in range {
        let f = factor(r);
        sum.iter_mut().zip(row(data, r)).for_each(|(s, a)| *s += f * a);
    }
    sum
}
