//! Newton directions from a factorisation that may be old, corrected by what the last steps showed.
//!
//! Forming the Hessian is the dearest operation of a solve. Between rounds the Hessian changes little, so the last
//! factorisation is kept and limited-memory BFGS pairs carry the difference; it is formed anew only when steps
//! stop contracting, or when its age has cost as much as a new one. Pairs hold across rounds too: the linear term, which
//! changes, drops out of a change of gradients.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::{factor, solve};
use faer::{MatMut, MatRef, Par};

use super::dot;
use crate::objective::{Objective, ObjectiveBuffers};

/// Pairs of step and gradient change that are remembered.
const MEMORY: usize = 12;

#[derive(Default)]
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    inverse_dot: f64,
}

/// A factorised Hessian and the corrections to it.
#[derive(Default)]
pub(crate) struct Curvature {
    /// Column-major; above the diagonal there is nothing of use.
    factor: Vec<f64>,
    /// Its rows and columns; none if there is no factorisation.
    n_features: usize,
    scratch: Option<MemBuffer>,
    pairs: Vec<Pair>,
    /// Pairs that are not in use, for their memory.
    spare: Vec<Pair>,
    coefficients: Vec<f64>,
    /// Passes over the records that a new factorisation would have saved so far.
    wasted: f64,
}

impl Curvature {
    /// Whether a factorisation of this dimension is there.
    pub fn is_ready(&self, n_features: usize) -> bool {
        self.n_features == n_features
    }

    /// Forms and factors the Hessian at `x`; false if it is not positive definite in floating point.
    pub fn refresh(&mut self, objective: &Objective<'_>, x: &[f64], buffers: &mut ObjectiveBuffers) -> bool {
        let p = objective.n_features();
        self.clear();
        self.wasted = 0.0;
        self.factor.resize(p * p, 0.0);
        // A row-major upper triangle is a column-major lower one.
        objective.hessian(x, &mut self.factor, buffers);
        let matrix = MatMut::from_column_major_slice_mut(&mut self.factor, p, p);
        let needed = factor::cholesky_in_place_scratch::<f64>(p, Par::Seq, Default::default());
        let scratch = self.scratch.take().filter(|s| s.len() >= needed.size_bytes());
        let scratch = self.scratch.insert(scratch.unwrap_or_else(|| MemBuffer::new(needed)));
        let stack = MemStack::new(scratch);
        let done = factor::cholesky_in_place(matrix, Default::default(), Par::Seq, stack, Default::default());
        if done.is_ok() {
            self.n_features = p;
        }
        done.is_ok()
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
        self.spare.append(&mut self.pairs);
        self.n_features = 0;
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
        let p = out.len();
        assert!(self.is_ready(p), "a direction is asked for only after a factorisation");
        let factor = MatRef::from_column_major_slice(&self.factor, p, p);
        let out_column = MatMut::from_column_major_slice_mut(out, p, 1);
        solve::solve_in_place(factor, out_column, Par::Seq, MemStack::new(&mut []));
        for (pair, a) in self.pairs.iter().zip(self.coefficients.iter().rev()) {
            let b = pair.inverse_dot * dot(&pair.change, out);
            out.iter_mut().zip(&pair.step).for_each(|(o, s)| *o += (a - b) * s);
        }
    }

    /// Remembers that moving by `new − old` changed the gradient by `new_gradient − old_gradient`.
    pub fn learn(&mut self, old: &[f64], new: &[f64], old_gradient: &[f64], new_gradient: &[f64]) {
        let difference = |out: &mut Vec<f64>, a: &[f64], b: &[f64]| {
            out.clear();
            out.extend(a.iter().zip(b).map(|(a, b)| a - b));
        };
        let oldest = (self.pairs.len() == MEMORY).then(|| self.pairs.remove(0));
        let mut pair = oldest.or_else(|| self.spare.pop()).unwrap_or_default();
        difference(&mut pair.step, new, old);
        difference(&mut pair.change, new_gradient, old_gradient);
        let product = dot(&pair.step, &pair.change);
        // Strong convexity makes the product positive; where rounding does not, the pair says nothing.
        if product > 1e-14 * dot(&pair.step, &pair.step).sqrt() * dot(&pair.change, &pair.change).sqrt() {
            pair.inverse_dot = 1.0 / product;
            self.pairs.push(pair);
        } else {
            self.spare.push(pair);
        }
    }
}
