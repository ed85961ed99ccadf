//! Damped Newton for smooth objectives, with the factorisation kept between solves.

use super::line_search::{Point, search};
use super::{Progress, Solution, Solver};
use crate::objective::Objective;
use crate::vector::{add, norm, subtract};

const MAX_STEPS: usize = 500;
/// A step that leaves more than this part of the gradient shows that the factorisation is too old.
const CONTRACTION: f64 = 0.35;
/// A step with a factorisation from near by leaves about this part of the gradient.
const FRESH_CONTRACTION: f64 = 1.0 / 30.0;

/// Minimises from `start` until `‖∇F‖` plus its rounding is at most `tolerance`.
pub(crate) fn solve(
    solver: &mut Solver,
    objective: &Objective<'_>,
    start: &[f64],
    tolerance: f64,
) -> Solution {
    let Solver { buffers, quasi_newton, last, pool, .. } = solver;
    let p = objective.n_features();
    let mut progress = Progress::new();
    let (mut here, mut trial) = (Point::new(start, pool), Point::new(start, pool));
    let mut direction = pool.zeros(p);
    if last.x == here.x {
        // Where the last solve ended: the gradient is known but for the linear term.
        here.gradient.clone_from(&last.gradient);
    } else {
        objective.gradient(&here.x, &mut here.gradient, buffers);
        subtract(objective.linear(), &mut here.gradient);
        progress.n_evaluations += 1;
    }
    add(objective.linear(), &mut here.gradient);
    let first_size = norm(&here.gradient);
    let mut stale = !quasi_newton.is_ready(p) || quasi_newton.is_outworn(objective);
    let mut n_steps = 0;
    for _ in 0..MAX_STEPS {
        let size = norm(&here.gradient);
        if objective.certificate(size, &here.x) <= tolerance || !size.is_finite() {
            if progress.n_evaluations > 0 {
                break;
            }
            // A certificate is a gradient that was evaluated, not one that was put together.
            objective.gradient(&here.x, &mut here.gradient, buffers);
            progress.n_evaluations += 1;
            continue;
        }
        let fresh = stale;
        if stale {
            progress.n_factorizations += 1;
            if !quasi_newton.refresh(objective, &here.x, buffers) {
                break;
            }
        }
        quasi_newton.direction(&here.gradient, &mut direction);
        // An old factorisation gets one try at full length; a new one may shorten its step.
        let halvings = if fresh { usize::MAX } else { 0 };
        if search(objective, &here, &direction, &mut trial, halvings, &mut progress, buffers) {
            quasi_newton.update(&here.x, &trial.x, &here.gradient, &trial.gradient);
            std::mem::swap(&mut here, &mut trial);
            n_steps += 1;
            stale = norm(&here.gradient) > CONTRACTION * size;
        } else if fresh {
            // Neither a new factorisation nor a shorter step helps: rounding has the last word.
            break;
        } else {
            stale = true;
        }
    }
    let size = norm(&here.gradient);
    if progress.n_factorizations == 0 {
        // A new factorisation would have come as far in fewer steps.
        let fewer = (size / first_size).ln() / FRESH_CONTRACTION.ln();
        quasi_newton.charge(f64::from(n_steps) - fewer);
    }
    let residual = objective.certificate(size, &here.x);
    last.x.clone_from(&here.x);
    last.gradient.clone_from(&here.gradient);
    subtract(objective.linear(), &mut last.gradient);
    pool.take_back([here.gradient, trial.x, trial.gradient, direction]);
    progress.finish(here.x, residual, tolerance)
}
