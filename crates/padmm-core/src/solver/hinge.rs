//! The hinge, by a sequence of ever sharper smooth hinges, with a certificate for the hinge itself.
//!
//! Let `x` be any point, `s_r ∈ [0, 1]` any weights, `r` a vector of `Σ_r w·s_r·(−z_r a_r) + ∇(smooth rest)(x) + ∂nonsmooth(x)`,
//! and `E = Σ_r w·(max(g_r, 0) − s_r g_r) ≥ 0` with `g_r = 1 − z_r a_rᵀx`. Because `max(g, 0) ≥ s·g` for every `g`,
//! `F(y) ≥ F(x) − E + ⟨r, y − x⟩ + (m/2)‖y − x‖²` for every `y`. At the minimiser, `F(x*) ≤ F(x) − (m/2)‖x − x*‖²`.
//! Together, with `D = ‖x − x*‖`: `m D² ≤ ‖r‖D + E`, hence
//!
//! ```text
//! D ≤ τ/m,   τ = (‖r‖ + √(‖r‖² + 4 m E)) / 2
//! ```
//!
//! The smoothed hinge's slopes are such weights, so its own residual is `r`. With `E = 0` this is the certificate of
//! the smooth case; with `r = 0` it is the duality gap's, without a factor √2.

use super::{Progress, Solution, Solver};
use crate::loss::Loss;
use crate::objective::Objective;

const FIRST_WIDTH: f64 = 0.5;
const LAST_WIDTH: f64 = 1e-12;
const SHARPEN: f64 = 0.2;

/// Minimises from `start` until `τ` is at most `tolerance`.
pub(crate) fn solve(
    solver: &mut Solver,
    objective: &Objective<'_>,
    start: &[f64],
    tolerance: f64,
) -> Solution {
    let modulus = objective.modulus();
    let mut progress = Progress::new();
    let (mut best, mut best_residual) = (solver.pool.copy(start), f64::INFINITY);
    let mut x = solver.pool.copy(start);
    let mut width = FIRST_WIDTH;
    while width >= LAST_WIDTH {
        let smooth = objective.with_loss(Loss::HuberizedHinge { width });
        // Another width is another problem.
        solver.quasi_newton.clear();
        solver.forget_gradient();
        let solution = solver.solve_smooth_loss(&smooth, &x, 0.3 * tolerance);
        progress.n_evaluations += solution.n_evaluations;
        progress.n_factorizations += solution.n_factorizations;
        let excess = objective.hinge_excess(&solution.point, width, &mut solver.buffers);
        let r = solution.residual;
        let residual = 0.5 * (r + (r * r + 4.0 * modulus * excess).sqrt()) * (1.0 + 8.0 * f64::EPSILON);
        let before = std::mem::replace(&mut x, solution.point);
        solver.pool.take_back([before]);
        if residual < best_residual {
            best.copy_from_slice(&x);
            best_residual = residual;
        } else if width < 1e-6 {
            // Sharper no longer helps: the smoothed problem is at the limit of floating point.
            break;
        }
        if residual <= tolerance {
            break;
        }
        width *= SHARPEN;
    }
    solver.pool.take_back([x]);
    progress.finish(best, best_residual, tolerance)
}
