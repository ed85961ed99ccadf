//! Accelerated proximal gradient (FISTA with restarts) for nonsmooth regularisers on wide problems: a step costs one pass over
//! the records, and no matrix is formed.

use super::{Progress, Solution, Solver};
use crate::objective::Objective;

const MAX_STEPS: usize = 100_000;

/// Minimises from `start` until the smallest subgradient plus rounding is at most `tolerance`.
pub(crate) fn solve(
    solver: &mut Solver,
    objective: &Objective<'_>,
    start: &[f64],
    tolerance: f64,
) -> Solution {
    let Solver { buffers, pool, .. } = solver;
    let regularizer = objective.regularizer();
    let p = objective.n_features();
    let mut progress = Progress::new();
    let limit = objective.smoothness().expect("the hinge is smoothed before it comes here");
    // The bound is the worst case over all data; start well below it and let the model test raise it.
    let mut lipschitz = limit / 64.0;
    let [mut x, mut y, mut best] = std::array::from_fn(|_| pool.copy(start));
    let [mut gradient, mut next, mut next_gradient] = std::array::from_fn(|_| pool.zeros(p));
    let mut momentum: f64 = 1.0;
    objective.gradient(&y, &mut gradient, buffers);
    progress.n_evaluations += 1;
    let mut residual = objective.certificate(regularizer.smallest_subgradient(&y, &gradient), &y);
    let mut best_residual = residual;
    for _ in 0..MAX_STEPS {
        if residual <= tolerance || !residual.is_finite() {
            break;
        }
        loop {
            for j in 0..p {
                next[j] = y[j] - gradient[j] / lipschitz;
            }
            regularizer.shrink(1.0 / lipschitz, &mut next);
            objective.gradient(&next, &mut next_gradient, buffers);
            progress.n_evaluations += 1;
            // Convexity makes ⟨∇f(next) − ∇f(y), next − y⟩ ≤ L‖next − y‖² the test that rounding disturbs least.
            let (mut change, mut length) = (0.0, 0.0);
            for j in 0..p {
                let d = next[j] - y[j];
                change += (next_gradient[j] - gradient[j]) * d;
                length += d * d;
            }
            if change <= lipschitz * length || lipschitz >= limit {
                break;
            }
            lipschitz = (2.0 * lipschitz).min(limit);
        }
        residual = objective.certificate(regularizer.smallest_subgradient(&next, &next_gradient), &next);
        if residual < best_residual {
            best_residual = residual;
            best.copy_from_slice(&next);
            if residual <= tolerance {
                break;
            }
        }
        let uphill = y.iter().zip(&next).zip(&x).map(|((y, n), x)| (y - n) * (n - x)).sum::<f64>() > 0.0;
        let following = if uphill { 1.0 } else { 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) };
        let weight = if uphill { 0.0 } else { (momentum - 1.0) / following };
        for j in 0..p {
            y[j] = next[j] + weight * (next[j] - x[j]);
        }
        std::mem::swap(&mut x, &mut next);
        momentum = following;
        if weight == 0.0 {
            gradient.copy_from_slice(&next_gradient);
        } else {
            objective.gradient(&y, &mut gradient, buffers);
            progress.n_evaluations += 1;
        }
    }
    pool.take_back([x, y, gradient, next, next_gradient]);
    progress.finish(best, best_residual, tolerance)
}
