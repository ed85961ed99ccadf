//! What a site computes from its records: sums in which every record's term is clipped last, on integers (`padmm-privacy`'s
//! [`ClippedSum`]), so that nothing here needs to be right for the guarantee to hold.

use padmm_privacy::{ClippedSum, Terms};
use rayon::prelude::*;

use super::metric::Layout;
use crate::algorithm::LocalProblem;
use crate::kernel::{self, Weights};
use crate::loss::Loss;
use crate::matrix::{Lower, Square};
use crate::vector::{simd, sum_of_squares};

/// Records whose margins are computed together.
const BLOCK: usize = 256;

/// The label as a number from 0 to 1.
pub(super) fn unit_label(loss: Loss, label: f64) -> f64 {
    if loss.is_classification() { 0.5 * (label + 1.0) } else { label.clamp(0.0, 1.0) }
}

/// Σ of every record's `(y a, (1−y) a, a_num²)/Φ`.
pub(super) fn moments(problem: &LocalProblem, layout: &Layout) -> ClippedSum {
    let (data, p) = (&*problem.data, layout.n_features);
    let empty = || ClippedSum::new(Terms::NonNegative, layout.n_moments(), data.n_records());
    let sum = problem.part().tasks().collect::<Vec<_>>().into_par_iter().map(|range| {
        let (mut sum, mut statistic) = (empty(), vec![0.0; layout.n_moments()]);
        for r in range {
            let row = data.row(r);
            let y = unit_label(problem.loss, row.label);
            statistic.fill(0.0);
            for (j, v) in row.numeric.iter().enumerate() {
                let a = row.scale * v;
                (statistic[j], statistic[p + j], statistic[2 * p + j]) = (y * a, (1.0 - y) * a, a * a);
            }
            for &j in row.hot {
                let j = j as usize;
                (statistic[j], statistic[p + j]) = (y * row.scale, (1.0 - y) * row.scale);
            }
            sum.add(1.0 / layout.moment_bound(), &statistic);
        }
        sum
    });
    sum.reduce(empty, merged)
}

/// Sums over parts of the records are exact, so that their order does not matter.
fn merged(mut sum: ClippedSum, other: ClippedSum) -> ClippedSum {
    sum.merge(other);
    sum
}

/// `L⁻¹`, column by column.
pub(super) struct Whitener(Square);

impl Whitener {
    pub(super) fn new(factor: &Lower) -> Self {
        Self(factor.inverse().transposed())
    }

    /// `L⁻¹v` for the vector with these entries.
    pub(super) fn sum(&self, entries: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
        let mut sum = vec![];
        for (j, v) in entries {
            let column = self.0.row(j);
            sum.resize(column.len(), 0.0);
            sum[j..].iter_mut().zip(&column[j..]).for_each(|(o, l)| *o += v * l);
        }
        sum
    }

    /// `L⁻¹v`
    pub(super) fn times(&self, v: &[f64]) -> Vec<f64> {
        self.sum(v.iter().copied().enumerate())
    }
}

/// Σ of every record's `clip(ℓ'(aᵀx), ± c/‖L⁻¹a‖) · L⁻¹a/c`.
pub(super) fn gradient(problem: &LocalProblem, whitener: &Whitener, clip: f64, point: &[f64]) -> ClippedSum {
    let data = &*problem.data;
    let mut weights = Weights::default();
    weights.set(data, point);
    let empty = || ClippedSum::new(Terms::Signed, point.len(), data.n_records());
    let sum = problem.part().tasks().collect::<Vec<_>>().into_par_iter().map(|range| {
        let (mut sum, mut whitened, mut margins) = (empty(), vec![0.0; point.len()], vec![0.0; BLOCK]);
        for from in range.clone().step_by(BLOCK) {
            let block = from..(from + BLOCK).min(range.end);
            let margins = &mut margins[..block.len()];
            kernel::margins_into(data, block.clone(), weights.at(point), margins);
            for (r, &margin) in block.zip(&*margins) {
                let row = data.row(r);
                let slope = problem.loss.slope(row.label, margin);
                simd(
                    #[inline(always)]
                    || {
                        whitened.fill(0.0);
                        for (j, v) in row.numeric.iter().enumerate() {
                            let column = &whitener.0.row(j)[j..];
                            whitened[j..].iter_mut().zip(column).for_each(|(o, l)| *o += v * l);
                        }
                        for &j in row.hot {
                            let j = j as usize;
                            let column = &whitener.0.row(j)[j..];
                            whitened[j..].iter_mut().zip(column).for_each(|(o, l)| *o += l);
                        }
                        let length = row.scale * sum_of_squares(&whitened).sqrt();
                        let cap = clip / length.max(f64::MIN_POSITIVE);
                        sum.add(slope.clamp(-cap, cap) * row.scale / clip, &whitened);
                    },
                );
            }
        }
        sum
    });
    sum.reduce(empty, merged)
}
