//! Newton directions from a factorisation that may be old, corrected by what the last steps showed.
//!
//! Forming the Hessian is the dearest operation of a solve. Between rounds the Hessian changes little, so the last
//! factorisation is kept and limited-memory BFGS pairs carry the difference; it is formed anew only when steps
//! stop contracting, or when its age has cost as much as a new one. Pairs hold across rounds too: the linear term, which
//! changes, drops out of a change of gradients.

use faer::linalg::solvers::{Llt, SolveCore};
use faer::{Conj, MatMut, MatRef, Side};

use super::dot;
use crate::objective::{Objective, ObjectiveBuffers};

/// Pairs of step and gradient change that are remembered.
const MEMORY: usize = 12;

struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    inverse_dot: f64,
}

/// A factorised Hessian and the corrections to it.
#[derive(Default)]
pub(crate) struct Curvature {
    factor: Option<Llt<f64>>,
    n_features: usize,
    pairs: Vec<Pair>,
    coefficients: Vec<f64>,
    /// Passes over the records that a new factorisation would have saved so far.
    wasted: f64,
}

impl Curvature {
    /// Whether a factorisation of this dimension is there.
    pub fn is_ready(&self, n_features: usize) -> bool {
        self.factor.is_some() && self.n_features == n_features
    }

    /// Forms and factors the Hessian at `x`; false if it is not positive definite in floating point.
    pub fn refresh(&mut self, objective: &Objective<'_>, x: &[f64], buffers: &mut ObjectiveBuffers) -> bool {
        let p = objective.n_features();
        let mut hessian = vec![0.0; p * p];
        objective.hessian(x, &mut hessian, buffers);
        // A row-major upper triangle is a column-major lower one.
        let lower = MatRef::from_column_major_slice(&hessian, p, p);
        self.pairs.clear();
        self.wasted = 0.0;
        self.n_features = p;
        self.factor = Llt::new(lower, Side::Lower).ok();
        self.factor.is_some()
    }

    /// Counts what a solve took beyond what it would have taken with a new factorisation, in passes over the records.
    pub fn charge(&mut self, passes: f64) {
        // Luck in one solve is no credit for the next; neither is what rounding made of a solve of no steps.
        self.wasted += if passes > 0.0 { passes } else { 0.0 };
    }

    /// Whether the factorisation's age has cost as much as a new one. Until then a new one might not have paid.
    pub fn is_outworn(&self, objective: &Objective<'_>) -> bool {
        self.wasted > objective.hessian_passes()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.pairs.clear();
        self.factor = None;
    }

    /// `−B⁻¹ gradient` into `out`, `B` the corrected Hessian (two-loop recursion around the factorisation).
    pub fn direction(&mut self, gradient: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(gradient).for_each(|(o, g)| *o = -g);
        self.coefficients.clear();
        for pair in self.pairs.iter().rev() {
            let a = pair.inverse_dot * dot(&pair.step, out);
            out.iter_mut().zip(&pair.change).for_each(|(o, y)| *o -= a * y);
            self.coefficients.push(a);
        }
        let factor = self.factor.as_ref().expect("a direction is asked for only after a factorisation");
        let p = out.len();
        factor.solve_in_place_with_conj(Conj::No, MatMut::from_column_major_slice_mut(out, p, 1));
        for (pair, a) in self.pairs.iter().zip(self.coefficients.iter().rev()) {
            let b = pair.inverse_dot * dot(&pair.change, out);
            out.iter_mut().zip(&pair.step).for_each(|(o, s)| *o += (a - b) * s);
        }
    }

    /// Remembers that moving by `new − old` changed the gradient by `new_gradient − old_gradient`.
    pub fn learn(&mut self, old: &[f64], new: &[f64], old_gradient: &[f64], new_gradient: &[f64]) {
        let difference = |mut buffer: Vec<f64>, a: &[f64], b: &[f64]| {
            buffer.clear();
            buffer.extend(a.iter().zip(b).map(|(a, b)| a - b));
            buffer
        };
        let (step, change) = if self.pairs.len() == MEMORY {
            let oldest = self.pairs.remove(0);
            (oldest.step, oldest.change)
        } else {
            (vec![], vec![])
        };
        let step = difference(step, new, old);
        let change = difference(change, new_gradient, old_gradient);
        let product = dot(&step, &change);
        // Strong convexity makes the product positive; where rounding does not, the pair says nothing.
        if product > 1e-14 * dot(&step, &step).sqrt() * dot(&change, &change).sqrt() {
            self.pairs.push(Pair { step, change, inverse_dot: 1.0 / product });
        }
    }
}
