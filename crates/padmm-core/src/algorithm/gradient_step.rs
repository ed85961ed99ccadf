//! The private step of the linearised algorithms: one gradient in place of a solve.

use padmm_privacy::{Certified, PublicVector};

use super::Local;
use crate::objective::Objective;
use crate::regularizer::norm;

/// `argmin_x ⟨∇f_i(at), x⟩ + nonsmooth(x) + ½·weight·‖x‖² − ⟨center, x⟩`, that is
/// `prox_{nonsmooth/weight}((center − ∇f_i(at)) / weight)`.
///
/// `center`, `at` and `weight` are public. One record moves the gradient by at most `2B/n` and the proximal step moves no two
/// points apart, so the sensitivity is `2B/(n·weight)` without any solver: what is certified here is rounding alone.
pub(super) fn gradient_step(center: &[f64], at: &PublicVector, weight: f64, local: Local<'_>) -> Certified {
    let (problem, at) = (local.problem, at.as_slice());
    let parts = [problem.part()];
    let objective = Objective::new(&parts, problem.loss, &problem.penalty, &[], 0.0);
    let mut gradient = local.solver.pool.zeros(at.len());
    objective.gradient(at, &mut gradient, &mut local.solver.buffers);
    let residual = objective.gradient_rounding(at) + 8.0 * f64::EPSILON * (norm(center) + norm(&gradient));
    let mut point: Vec<f64> = center.iter().zip(&gradient).map(|(c, g)| (c - g) / weight).collect();
    problem.penalty.shrink(1.0 / weight, &mut point);
    local.solver.pool.take_back([gradient]);
    Certified { point, residual }
}
