//! Proximal Newton for nonsmooth regularisers: the smooth part is replaced by its quadratic model, and that model plus the
//! regulariser is minimised by coordinate (or group) descent in the model's own small space.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use super::{Progress, Solution, Solver};
use crate::objective::Objective;
use crate::regularizer::{RegularizerTerm, shrink_group, soft_threshold};
use crate::vector::{add_scaled, along, difference, dot};

const MAX_STEPS: usize = 300;
const MAX_SWEEPS: usize = 2000;
const MAX_HALVINGS: usize = 50;
const DECREASE: f64 = 1e-4;

/// Minimises from `start` until the smallest subgradient plus rounding is at most `tolerance`.
pub(crate) fn solve(
    solver: &mut Solver,
    objective: &Objective<'_>,
    start: &[f64],
    tolerance: f64,
) -> Solution {
    let Solver { buffers, pool, model: hessian, .. } = solver;
    let regularizer = objective.regularizer();
    let p = objective.n_features();
    let mut progress = Progress::new();
    let mut x = pool.copy(start);
    let [mut gradient, mut trial, mut trial_gradient, mut target, mut direction, product, sum, block, steps] =
        std::array::from_fn(|_| pool.zeros(p));
    hessian.resize(p * p, 0.0);
    let mut model = Model { hessian, product, sum, block, steps, p };
    objective.gradient(&x, &mut gradient, buffers);
    let mut value = objective.value(&x, buffers);
    progress.n_evaluations += 1;
    for _ in 0..MAX_STEPS {
        let size = regularizer.smallest_subgradient(&x, &gradient);
        if objective.certificate(size, &x) <= tolerance || !size.is_finite() {
            break;
        }
        model.form(objective, &x, buffers);
        progress.n_factorizations += 1;
        target.copy_from_slice(&x);
        model.minimize(
            regularizer,
            &gradient,
            &mut target,
            (0.05 * size).min(0.3 * size.powf(1.5)).max(0.2 * tolerance),
        );
        difference(&target, &x, &mut direction);
        let descent = dot(&gradient, &direction) + regularizer.nonsmooth_value(&target)
            - regularizer.nonsmooth_value(&x);
        let mut step = 1.0;
        let mut moved = false;
        for _ in 0..MAX_HALVINGS {
            if step == 1.0 {
                // Taken whole, so that zeros stay exact zeros.
                trial.copy_from_slice(&target);
            } else {
                along(&x, step, &direction, &mut trial);
            }
            objective.gradient(&trial, &mut trial_gradient, buffers);
            let trial_value = objective.value(&trial, buffers);
            progress.n_evaluations += 1;
            let decreased = trial_value <= value + DECREASE * step * descent;
            let resolved = trial_value <= value + 1e-13 * value.abs().max(1.0)
                && regularizer.smallest_subgradient(&trial, &trial_gradient) < size;
            if decreased || resolved {
                std::mem::swap(&mut x, &mut trial);
                std::mem::swap(&mut gradient, &mut trial_gradient);
                value = trial_value;
                moved = true;
                break;
            }
            step *= 0.5;
        }
        if !moved {
            break;
        }
    }
    let residual = objective.certificate(regularizer.smallest_subgradient(&x, &gradient), &x);
    let Model { product, sum, block, steps, .. } = model;
    pool.take_back([gradient, trial, trial_gradient, target, direction, product, sum, block, steps]);
    progress.finish(x, residual, tolerance)
}

/// `⟨g, u − x⟩ + ½(u − x)ᵀH(u − x) + nonsmooth(u)`
struct Model<'a> {
    hessian: &'a mut [f64],
    /// `H(u − x)`, kept up to date.
    product: Vec<f64>,
    /// Memory for `g + H(u − x)`, for a group's entries and for the groups' steps.
    sum: Vec<f64>,
    block: Vec<f64>,
    steps: Vec<f64>,
    p: usize,
}

impl Model<'_> {
    fn form(
        &mut self,
        objective: &Objective<'_>,
        x: &[f64],
        buffers: &mut crate::objective::ObjectiveBuffers,
    ) {
        let p = self.p;
        objective.hessian(x, self.hessian, buffers);
        for i in 0..p {
            for j in 0..i {
                self.hessian[i * p + j] = self.hessian[j * p + i];
            }
        }
    }

    /// Moves `u` (from `u = x`) until the model's smallest subgradient is at most `accuracy`.
    fn minimize(&mut self, regularizer: &RegularizerTerm, gradient: &[f64], u: &mut [f64], accuracy: f64) {
        let p = self.p;
        self.product.fill(0.0);
        for (k, (group, _)) in regularizer.groups.iter().enumerate() {
            self.steps[k] = 1.0 / self.block_bound(group.clone());
        }
        for sweep in 0..MAX_SWEEPS {
            if regularizer.groups.is_empty() {
                for j in 0..p {
                    let (h, g) = (self.hessian[j * p + j], gradient[j] + self.product[j]);
                    let weight = if regularizer.is_free(j) { 0.0 } else { regularizer.l1 };
                    self.shift(j, u, soft_threshold(u[j] - g / h, weight / h));
                }
            } else {
                for (k, (range, weight)) in regularizer.groups.iter().enumerate() {
                    let (step, v) = (self.steps[k], &mut self.block[..range.len()]);
                    for (v, j) in v.iter_mut().zip(range.clone()) {
                        *v = u[j] - step * (gradient[j] + self.product[j]);
                    }
                    shrink_group(v, step * weight);
                    for (k, j) in range.clone().enumerate() {
                        self.shift(j, u, self.block[k]);
                    }
                }
                if let Some(j) = (0..p).find(|&j| regularizer.is_free(j)) {
                    let (h, g) = (self.hessian[j * p + j], gradient[j] + self.product[j]);
                    self.shift(j, u, u[j] - g / h);
                }
            }
            if sweep % 4 == 3 {
                for (m, (g, q)) in self.sum.iter_mut().zip(gradient.iter().zip(&self.product)) {
                    *m = g + q;
                }
                if regularizer.smallest_subgradient(u, &self.sum) <= accuracy {
                    break;
                }
            }
        }
    }

    /// Sets coordinate `j` of `u`, keeping the product.
    fn shift(&mut self, j: usize, u: &mut [f64], to: f64) {
        let by = to - u[j];
        if by != 0.0 {
            u[j] = to;
            let row = &self.hessian[j * self.p..][..self.p];
            add_scaled(by, row, &mut self.product);
        }
    }

    /// Bound on the largest eigenvalue of the Hessian's block: its largest row sum of absolute values.
    fn block_bound(&self, range: std::ops::Range<usize>) -> f64 {
        let row = |i: usize| range.clone().map(|j| self.hessian[i * self.p + j].abs()).sum::<f64>();
        range.clone().map(row).fold(f64::MIN_POSITIVE, f64::max)
    }
}
