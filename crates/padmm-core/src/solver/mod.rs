//! Local solvers. Each returns a point *with a certificate* of how far it can be from the exact minimiser; without
//! one nothing is released (MATH §3).
//!
//! | problem | method |
//! |---|---|
//! | smooth loss, smooth penalty | damped Newton with a factorisation that is kept between rounds ([`newton`]) |
//! | the same, wide | truncated Newton by conjugate gradients, cost free of p³ ([`newton_cg`]) |
//! | smooth loss, rough penalty | proximal Newton, coordinate descent inside ([`prox_newton`]) |
//! | the same, wide | accelerated proximal gradient ([`fista`]) |
//! | hinge | a sequence of smoothed hinges, each by one of the above ([`hinge`]) |
//! | smooth loss, where one of the above gave up | proximal gradient in twice the precision, which cannot ([`proved`]) |

mod direction;
pub mod fista;
pub mod hinge;
mod line_search;
pub mod newton;
pub mod newton_cg;
pub mod proved;
pub mod prox_newton;
mod twofold;

use crate::objective::{Objective, ObjectiveBuffers};
use crate::solvable::Judgement;
use direction::Curvature;

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

/// What a solve found.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Whether the tolerance was reached.
    pub status: Status,
    /// The point.
    pub point: Vec<f64>,
    /// `τ`: the exact minimiser is at most `residual / modulus` away. Includes the rounding of its own computation.
    pub residual: f64,
    /// Evaluations of the gradient.
    pub n_evaluations: usize,
    /// Hessians formed and factored.
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
    pub(crate) curvature: Curvature,
    /// Where the last dense smooth solve ended, with the gradient there less the linear term; empty if that is not known.
    pub(crate) last: line_search::Point,
    pub(crate) spare: Spare,
    /// The quadratic model of proximal Newton.
    pub(crate) model: Vec<f64>,
    /// What public numbers said about the round that is being computed; none where no guarantee is stated for the bytes that leave.
    pub(crate) judgement: Option<Judgement>,
}

/// Vectors of one length that solves use in turn, so that only the first ones allocate.
#[derive(Default)]
pub(crate) struct Spare(Vec<Vec<f64>>);

impl Spare {
    /// So many zeros.
    pub fn zeros(&mut self, n: usize) -> Vec<f64> {
        let mut vector = self.0.pop().unwrap_or_default();
        vector.clear();
        vector.resize(n, 0.0);
        vector
    }

    /// A copy.
    pub fn copy(&mut self, of: &[f64]) -> Vec<f64> {
        let mut vector = self.0.pop().unwrap_or_default();
        vector.clear();
        vector.extend_from_slice(of);
        vector
    }

    /// Takes back what is no longer needed.
    pub fn take_back<const N: usize>(&mut self, vectors: [Vec<f64>; N]) {
        self.0.extend(vectors);
    }
}

/// Which family of methods a solver uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Whichever costs less for the problem's shape.
    #[default]
    Automatic,
    /// With a dense Hessian.
    Dense,
    /// Without any matrix.
    MatrixFree,
}

impl Solver {
    /// A solver with nothing kept yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A solver that keeps to one family of methods.
    pub fn with_method(method: Method) -> Self {
        Solver { method, ..Self::default() }
    }

    /// The next objective differs in its quadratic term too: the kept gradient is worth nothing, while the factorisation
    /// still serves as a guess.
    pub(crate) fn forget_gradient(&mut self) {
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
        match (objective.penalty().is_rough(), matrix_free) {
            (false, false) if self.does_not_pay_yet(objective) => {
                let affordable = |curvature: &Curvature| !curvature.is_outworn(objective);
                let free = newton_cg::solve(self, objective, start, tolerance, affordable);
                if free.status == Status::Solved {
                    return free;
                }
                let dense = newton::solve(self, objective, &free.point, tolerance);
                self.spare.take_back([free.point]);
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
const CHEAP: f64 = 40.0;

impl Solver {
    /// Whether to go on without a first factorisation: until iterating without one has cost as much, it might never have paid.
    fn does_not_pay_yet(&self, objective: &Objective<'_>) -> bool {
        self.method == Method::Automatic
            && objective.hessian_passes() > CHEAP
            && !self.curvature.is_ready(objective.n_features())
            && !self.curvature.is_outworn(objective)
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
    pub fn new() -> Self {
        Progress { n_evaluations: 0, n_factorizations: 0, smallest_gradient: f64::INFINITY }
    }

    pub fn finish(self, point: Vec<f64>, residual: f64, tolerance: f64) -> Solution {
        // A NaN residual must not pass as solved, hence the comparison this way round.
        let status = if residual <= tolerance { Status::Solved } else { Status::ToleranceNotReached };
        let Progress { n_evaluations, n_factorizations, .. } = self;
        Solution { status, point, residual, n_evaluations, n_factorizations }
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Several sums, so that an addition need not wait for the last one.
    const SUMS: usize = 8;
    let ((a, last_a), (b, last_b)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    let add = |sums: [f64; SUMS], (u, v): (&[f64; SUMS], &[f64; SUMS])| {
        std::array::from_fn(|k| sums[k] + u[k] * v[k])
    };
    let sums = a.iter().zip(b).fold([0.0; SUMS], add);
    sums.iter().sum::<f64>() + last_a.iter().zip(last_b).map(|(u, v)| u * v).sum::<f64>()
}

/// `x + step · d`
pub(crate) fn along(x: &[f64], step: f64, d: &[f64], out: &mut [f64]) {
    for ((o, x), d) in out.iter_mut().zip(x).zip(d) {
        *o = x + step * d;
    }
}
