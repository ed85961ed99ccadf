//! Damped Newton for smooth objectives, with the factorisation kept between solves.

use super::line_search::{Point, search};
use super::{Progress, Solution, Solver};
use crate::objective::Objective;
use crate::regularizer::norm;

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
    let Solver { buffers, curvature, last, spare, .. } = solver;
    let p = objective.n_features();
    let mut progress = Progress::new();
    let (mut here, mut trial) = (Point::new(start, spare), Point::new(start, spare));
    let mut direction = spare.zeros(p);
    if last.x == here.x {
        // Where the last solve ended: the gradient is known but for the linear term.
        here.gradient.clone_from(&last.gradient);
    } else {
        objective.gradient(&here.x, &mut here.gradient, buffers);
        subtract(&mut here.gradient, objective.linear());
        progress.n_evaluations += 1;
    }
    here.gradient.iter_mut().zip(objective.linear()).for_each(|(g, l)| *g += l);
    let first_size = norm(&here.gradient);
    let mut stale = !curvature.is_ready(p) || curvature.is_outworn(objective);
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
            if !curvature.refresh(objective, &here.x, buffers) {
                break;
            }
        }
        curvature.direction(&here.gradient, &mut direction);
        // An old factorisation gets one try at full length; a new one may shorten its step.
        let halvings = if fresh { usize::MAX } else { 0 };
        if search(objective, &here, &direction, &mut trial, halvings, &mut progress, buffers) {
            curvature.learn(&here.x, &trial.x, &here.gradient, &trial.gradient);
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
        curvature.charge(f64::from(n_steps) - fewer);
    }
    let residual = objective.certificate(size, &here.x);
    last.x.clone_from(&here.x);
    last.gradient.clone_from(&here.gradient);
    subtract(&mut last.gradient, objective.linear());
    spare.take_back([here.gradient, trial.x, trial.gradient, direction]);
    progress.finish(here.x, residual, tolerance)
}

fn subtract(from: &mut [f64], what: &[f64]) {
    from.iter_mut().zip(what).for_each(|(f, w)| *f -= w);
}
