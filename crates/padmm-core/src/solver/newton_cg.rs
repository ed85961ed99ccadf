//! Truncated Newton: each direction by conjugate gradients on Hessian–vector products. A step costs some passes over
//! the records and memory of a few vectors, whatever p³ would be.

use super::line_search::{Point, search};
use super::quasi_newton::QuasiNewton;
use super::{Progress, Solution, Solver};
use crate::objective::Objective;
use crate::vector::{add_scaled, dot, negate, norm, subtract_scaled};

const MAX_STEPS: usize = 200;
const MAX_INNER: usize = 1000;

/// Minimises from `start` until `‖∇F‖` plus its rounding is at most `tolerance`, or until `may_go_on` says no to what it has cost.
pub(crate) fn solve(
    solver: &mut Solver,
    objective: &Objective<'_>,
    start: &[f64],
    tolerance: f64,
    may_go_on: impl Fn(&QuasiNewton) -> bool,
) -> Solution {
    let Solver { buffers, quasi_newton, pool, .. } = solver;
    let p = objective.n_features();
    let mut progress = Progress::new();
    let (mut here, mut trial) = (Point::new(start, pool), Point::new(start, pool));
    let [mut diagonal, mut d, mut r, mut z, mut q, mut hq] = std::array::from_fn(|_| pool.zeros(p));
    objective.gradient(&here.x, &mut here.gradient, buffers);
    progress.n_evaluations += 1;
    for _ in 0..MAX_STEPS {
        let size = norm(&here.gradient);
        let solved = objective.certificate(size, &here.x) <= tolerance;
        if solved || !size.is_finite() || !may_go_on(quasi_newton) {
            break;
        }
        // H d = −g by conjugate gradients, preconditioned by the diagonal, as exactly as the outer step deserves.
        objective.prepare_hessian_vector(&here.x, &mut diagonal, buffers);
        let target = (size.sqrt().min(0.1) * size).max(0.1 * tolerance);
        d.fill(0.0);
        negate(&here.gradient, &mut r);
        let precondition = |z: &mut [f64], r: &[f64]| {
            z.iter_mut().zip(r).zip(&diagonal).for_each(|((z, r), m)| *z = r / m);
        };
        precondition(&mut z, &r);
        q.copy_from_slice(&z);
        let mut rz = dot(&r, &z);
        for _ in 0..MAX_INNER {
            objective.hessian_vector(&q, &mut hq, buffers);
            quasi_newton.charge(1.0);
            let length = rz / dot(&q, &hq);
            if !length.is_finite() {
                break;
            }
            add_scaled(length, &q, &mut d);
            subtract_scaled(length, &hq, &mut r);
            if norm(&r) <= target || !may_go_on(quasi_newton) {
                break;
            }
            precondition(&mut z, &r);
            let next = dot(&r, &z);
            let ratio = next / rz;
            rz = next;
            q.iter_mut().zip(&z).for_each(|(q, z)| *q = z + ratio * *q);
        }
        if !search(objective, &here, &d, &mut trial, usize::MAX, &mut progress, buffers) {
            break;
        }
        std::mem::swap(&mut here, &mut trial);
    }
    let residual = objective.certificate(norm(&here.gradient), &here.x);
    pool.take_back([diagonal, d, r, z, q, hq, here.gradient, trial.x, trial.gradient]);
    progress.finish(here.x, residual, tolerance)
}
