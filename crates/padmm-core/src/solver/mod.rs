//! Local solvers. Each returns a point *with a certificate* of how far it can be from the exact minimiser; without
//! one nothing is released (EQUATIONS §3).
//!
//! | problem | method |
//! |---|---|
//! | smooth loss, smooth regulariser | damped Newton with a factorisation that is kept between rounds ([`newton`]) |
//! | the same, wide | truncated Newton by conjugate gradients, cost free of p³ ([`newton_cg`]) |
//! | smooth loss, nonsmooth regulariser | proximal Newton, coordinate descent inside ([`prox_newton`]) |
//! | the same, wide | accelerated proximal gradient ([`fista`]) |
//! | hinge | a sequence of smoothed hinges, each by one of the above ([`hinge`]) |
//! | smooth loss, where one of the above gave up | proximal gradient in twice the precision, which cannot ([`proved`]) |

pub mod fista;
pub mod hinge;
mod line_search;
pub mod newton;
pub mod newton_cg;
pub mod proved;
pub mod prox_newton;
mod quasi_newton;
mod twofold;

use crate::objective::{Objective, ObjectiveBuffers};
use crate::solvable::Judgement;
use crate::vector::clear;
use quasi_newton::QuasiNewton;

/// Widest problem for which a dense Hessian is formed.
const DENSE_LIMIT: usize = 3000;

/// How a solve ended. Not reaching the tolerance is an outcome, not an error: the caller decides what it stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The certificate is at most the tolerance asked for.
    Solved,
    /// Rounding or the iteration limit came first.
    ToleranceNotReached,
}

/// The end of a solve: a point, how far it can be from the minimiser, and what it cost.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Whether `residual` is within the tolerance that was asked for.
    pub status: Status,
    /// The best point found, whatever the status.
    pub point: Vec<f64>,
    /// `τ`: the exact minimiser is at most `residual / modulus` away. Includes the rounding of its own computation.
    pub residual: f64,
    /// How often the gradient was evaluated; each is one pass over the records.
    pub n_evaluations: usize,
    /// How many Hessians were formed and factored.
    pub n_factorizations: usize,
}

/// Memory of one agent's solver: a factorisation and a gradient that the next round can start from, and buffers.
///
/// A solver belongs to one problem: the objectives that it is given in turn may differ in their linear term only, unless it is
/// told otherwise (`forget_gradient`).
///
/// What is kept here is computed from records and never leaves the agent. It changes how fast the next solve
/// is, not what it returns beyond the certified tolerance, which the sensitivity contains.
#[derive(Default)]
pub struct Solver {
    method: Method,
    pub(crate) buffers: ObjectiveBuffers,
    pub(crate) quasi_newton: QuasiNewton,
    /// Where the last dense smooth solve ended, with the gradient there less the linear term; empty if that is not known.
    pub(crate) last: line_search::Point,
    pub(crate) pool: VectorPool,
    /// The quadratic model of proximal Newton.
    pub(crate) model: Vec<f64>,
    /// What public numbers said about the round that is being computed; none where no guarantee is stated for the bytes that leave.
    pub(crate) judgement: Option<Judgement>,
}

/// Vectors of one length that solves use in turn, so that only the first ones allocate.
#[derive(Default)]
pub(crate) struct VectorPool(Vec<Vec<f64>>);

impl VectorPool {
    /// A zero vector of length `n`.
    pub(crate) fn zeros(&mut self, n: usize) -> Vec<f64> {
        let mut vector = self.0.pop().unwrap_or_default();
        clear(&mut vector, n);
        vector
    }

    /// A vector that equals `of`.
    pub(crate) fn copy(&mut self, of: &[f64]) -> Vec<f64> {
        let mut vector = self.0.pop().unwrap_or_default();
        vector.clear();
        vector.extend_from_slice(of);
        vector
    }

    /// Takes back what is no longer needed.
    pub(crate) fn take_back<const N: usize>(&mut self, vectors: [Vec<f64>; N]) {
        self.0.extend(vectors);
    }
}

/// Which family of methods a solver uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Whichever costs less for the problem's shape.
    #[default]
    Automatic,
    /// With a dense Hessian: memory grows like p², a factorisation costs p³/3.
    Dense,
    /// Without any matrix: memory for a few vectors, more passes over the records.
    MatrixFree,
}

impl Solver {
    /// A solver with nothing kept yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A solver that keeps to one family of methods.
    pub fn with_method(method: Method) -> Self {
        Self { method, ..Self::default() }
    }

    /// The next objective differs in its quadratic term too: the kept gradient is worth nothing, while the factorisation
    /// still serves as a guess.
    pub fn forget_gradient(&mut self) {
        self.last.x.clear();
    }

    /// Minimises `objective` from `start` until the certificate is at most `tolerance`.
    pub fn solve(&mut self, objective: &Objective<'_>, start: &[f64], tolerance: f64) -> Solution {
        assert_eq!(start.len(), objective.n_features(), "the start has one entry a feature");
        if objective.loss().curvature_bound().is_none() {
            return hinge::solve(self, objective, start, tolerance);
        }
        self.solve_smooth_loss(objective, start, tolerance)
    }

    pub(crate) fn solve_smooth_loss(
        &mut self,
        objective: &Objective<'_>,
        start: &[f64],
        tolerance: f64,
    ) -> Solution {
        let matrix_free = match self.method {
            Method::Automatic => is_wide(objective),
            Method::Dense => false,
            Method::MatrixFree => true,
        };
        match (objective.regularizer().is_nonsmooth(), matrix_free) {
            (false, false) if self.does_not_pay_yet(objective) => {
                let affordable = |quasi_newton: &QuasiNewton| !quasi_newton.is_outworn(objective);
                let free = newton_cg::solve(self, objective, start, tolerance, affordable);
                if free.status == Status::Solved {
                    return free;
                }
                let dense = newton::solve(self, objective, &free.point, tolerance);
                self.pool.take_back([free.point]);
                Solution { n_evaluations: free.n_evaluations + dense.n_evaluations, ..dense }
            }
            (false, false) => newton::solve(self, objective, start, tolerance),
            (false, true) => newton_cg::solve(self, objective, start, tolerance, |_| true),
            (true, false) => prox_newton::solve(self, objective, start, tolerance),
            (true, true) => fista::solve(self, objective, start, tolerance),
        }
    }
}

/// Factorisations that cost fewer passes over the records are made at once.
///
/// Gain of waiting with the others: cold solves of 1,000 columns went from 104 to 14 ms (dense) and from 62 to 3.5 ms (sparse).
const CHEAP: f64 = 40.0;

impl Solver {
    /// Whether to go on without a first factorisation: until iterating without one has cost as much, it might never have paid.
    fn does_not_pay_yet(&self, objective: &Objective<'_>) -> bool {
        self.method == Method::Automatic
            && objective.hessian_passes() > CHEAP
            && !self.quasi_newton.is_ready(objective.n_features())
            && !self.quasi_newton.is_outworn(objective)
    }
}

/// Whether a dense factorisation would cost more than iterating without one: beyond [`DENSE_LIMIT`] columns, or
/// where p³/3 exceeds some hundred passes over the records.
fn is_wide(objective: &Objective<'_>) -> bool {
    let p = objective.n_features();
    let pass = 4 * objective.n_records() * objective.values_per_record();
    p > DENSE_LIMIT || (p * p).saturating_mul(p) / 3 > 1000 * pass.max(1)
}

/// Keeps the solution's fields in one place while a method runs.
pub(crate) struct Progress {
    pub n_evaluations: usize,
    pub n_factorizations: usize,
    /// Norm of the smallest gradient at any point that was moved to.
    pub smallest_gradient: f64,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { n_evaluations: 0, n_factorizations: 0, smallest_gradient: f64::INFINITY }
    }

    pub(crate) fn finish(self, point: Vec<f64>, residual: f64, tolerance: f64) -> Solution {
        // A NaN residual must not pass as solved, hence the comparison this way round.
        let status = if residual <= tolerance { Status::Solved } else { Status::ToleranceNotReached };
        let Self { n_evaluations, n_factorizations, .. } = self;
        Solution { status, point, residual, n_evaluations, n_factorizations }
    }
}
