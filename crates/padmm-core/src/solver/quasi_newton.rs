//! Quasi-Newton directions: from a factorisation that may be old, corrected by what the last steps showed.
//!
//! Forming the Hessian is the dearest operation of a solve. Between rounds the Hessian changes little, so the last
//! factorisation is kept and limited-memory BFGS pairs carry the difference; it is formed again only when steps
//! stop contracting, or when its age has cost as much as a new one. Pairs hold across rounds too: the linear term, which
//! changes, drops out of a change of gradients.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::{factor, solve};
use faer::{MatMut, MatRef, Par};

use crate::objective::{Objective, ObjectiveBuffers};
use crate::vector::{add_scaled, clear, difference, dot, negate, subtract_scaled};

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
pub(crate) struct QuasiNewton {
    /// Column-major; above the diagonal there is nothing of use.
    factor: Vec<f64>,
    /// Its rows and columns; none if there is no factorisation.
    n_features: usize,
    scratch: Option<MemBuffer>,
    pairs: Vec<Pair>,
    /// Pairs that are not in use, for their memory.
    unused: Vec<Pair>,
    coefficients: Vec<f64>,
    /// Passes over the records that a new factorisation would have saved so far.
    wasted: f64,
}

impl QuasiNewton {
    /// Whether a factorisation of this dimension is there.
    pub(crate) fn is_ready(&self, n_features: usize) -> bool {
        self.n_features == n_features
    }

    /// Forms and factors the Hessian at `x`; false if it is not positive definite in floating point.
    pub(crate) fn refresh(
        &mut self,
        objective: &Objective<'_>,
        x: &[f64],
        buffers: &mut ObjectiveBuffers,
    ) -> bool {
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
    pub(crate) fn charge(&mut self, passes: f64) {
        // Luck in one solve is no credit for the next; neither is what rounding made of a solve of no steps.
        self.wasted += if passes > 0.0 { passes } else { 0.0 };
    }

    /// Whether the factorisation's age has cost as much as a new one. Until then a new one might not have paid.
    pub(crate) fn is_outworn(&self, objective: &Objective<'_>) -> bool {
        self.wasted > objective.hessian_passes()
    }

    /// Forgets factorisation and pairs; their memory stays.
    pub(crate) fn clear(&mut self) {
        self.unused.append(&mut self.pairs);
        self.n_features = 0;
    }

    /// `−B⁻¹ gradient` into `out`, `B` the corrected Hessian (two-loop recursion around the factorisation).
    pub(crate) fn direction(&mut self, gradient: &[f64], out: &mut [f64]) {
        negate(gradient, out);
        self.coefficients.clear();
        for pair in self.pairs.iter().rev() {
            let a = pair.inverse_dot * dot(&pair.step, out);
            subtract_scaled(a, &pair.change, out);
            self.coefficients.push(a);
        }
        let p = out.len();
        assert!(self.is_ready(p), "a direction is asked for only after a factorisation");
        let factor = MatRef::from_column_major_slice(&self.factor, p, p);
        let out_column = MatMut::from_column_major_slice_mut(out, p, 1);
        solve::solve_in_place(factor, out_column, Par::Seq, MemStack::new(&mut []));
        for (pair, a) in self.pairs.iter().zip(self.coefficients.iter().rev()) {
            let b = pair.inverse_dot * dot(&pair.change, out);
            add_scaled(a - b, &pair.step, out);
        }
    }

    /// Remembers that moving by `new − old` changed the gradient by `new_gradient − old_gradient`.
    pub(crate) fn update(&mut self, old: &[f64], new: &[f64], old_gradient: &[f64], new_gradient: &[f64]) {
        let oldest = (self.pairs.len() == MEMORY).then(|| self.pairs.remove(0));
        let mut pair = oldest.or_else(|| self.unused.pop()).unwrap_or_default();
        clear(&mut pair.step, new.len());
        clear(&mut pair.change, new.len());
        difference(new, old, &mut pair.step);
        difference(new_gradient, old_gradient, &mut pair.change);
        let product = dot(&pair.step, &pair.change);
        // Strong convexity makes the product positive; where rounding does not, the pair says nothing.
        if product > 1e-14 * dot(&pair.step, &pair.step).sqrt() * dot(&pair.change, &pair.change).sqrt() {
            pair.inverse_dot = 1.0 / product;
            self.pairs.push(pair);
        } else {
            self.unused.push(pair);
        }
    }
}
