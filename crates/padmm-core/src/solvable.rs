//! Whether a round can be computed to its tolerance, decided from public numbers before it is charged.
//!
//! A neighbour sees whether a site stops. If that depended on records, a neighbour could send models for which it does, and
//! would learn something that no noise covers. So everything that could stop a round is bounded by what everybody knows: the plan,
//! and what was released. Either the bound allows the round, and then no records make it fail, or the site stops before anything is
//! charged, and would have stopped with any other records too.

use padmm_privacy::Stopping;
use serde::Serialize;

use crate::loss::Loss;
use crate::objective::{Rounding, Rows, Sums, UNIT, n_tasks};
use crate::regularizer::RegularizerTerm;

/// The largest part of the tolerance that rounding and the spacing of doubles may take in a round.
pub const MOST_RATIO: f64 = 0.25;
/// The same when a plan is made, for models of the size that honest sites send: larger ones must have room.
pub const PLANNED_RATIO: f64 = 0.125;
/// The largest part of the tolerance that may drift away in a solve which cannot fail; see [`crate::solver::proved`].
pub const MOST_DRIFT: f64 = 0.125;
/// The same when a plan is made.
pub const PLANNED_DRIFT: f64 = 0.0625;
/// Passes over the records that a solve which cannot fail may be promised to take.
const MOST_PASSES: f64 = 100_000.0;
/// Room for the few operations by which the bounds themselves are computed.
const OUTWARD: f64 = 1.0 + 1e-12;

/// What a round asks for, in public numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// The minimiser of `f_i(x) + ⟨linear, x⟩ + ½·quadratic·‖x‖²`.
    Solve {
        /// Largest norm that the linear term can have.
        linear: f64,
        /// Curvature that the quadratic term adds.
        quadratic: f64,
    },
    /// One gradient: `prox((center − ∇f_i(at)) / weight)`.
    Step {
        /// Norm of the point whose gradient is taken.
        at: f64,
        /// Norm of the center, which the gradient is taken from.
        center: f64,
        /// What the difference is divided by.
        weight: f64,
    },
}

/// What public numbers say about one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// `r`: the point that is computed is not longer, whatever the records are.
    pub radius: f64,
    /// The part of the tolerance that rounding and the spacing of doubles take at that size.
    pub ratio: f64,
    /// The part of the tolerance that rounding can take in a solve which cannot fail; infinite if there is none for the loss.
    pub drift: f64,
    /// Passes over the records after which a certificate is there, whatever the records are; none if that is not proved.
    pub passes: Option<u32>,
}

/// What is public about the local problems of a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalBounds {
    sums: Sums,
    /// `S`, the bound on a record's norm.
    row: f64,
    /// `Nω_i·B`, where `B = L₁S`, or `c` if slopes are capped: the bound on a record's gradient with its site's weight.
    gradient_bound: f64,
    /// `Nω_i·L₂`; none for the hinge.
    curvature_bound: Option<f64>,
    /// `Nω_i·L₂S²`, or less if slopes are capped: the bound on a record's curvature.
    record_curvature: Option<f64>,
    /// `m_R` of the regulariser's share, which adds to the modulus.
    strong_convexity: f64,
    /// Curvature of the regulariser's smooth part.
    regularizer_curvature: f64,
    largest_group: usize,
    /// Rounding with neither linear nor quadratic term.
    rounding: Rounding,
    tolerance: f64,
}

impl LocalBounds {
    /// For `n_records` records of norm at most `row` and `values_per_record` stored values, a loss whose mean is multiplied by `weight` and
    /// whose slopes may be capped, and the regulariser's part.
    #[expect(clippy::too_many_arguments, reason = "each is a public fact of its own")]
    pub fn new(
        loss: Loss,
        weight: f64,
        regularizer: &RegularizerTerm,
        n_records: usize,
        n_features: usize,
        values_per_record: usize,
        row: f64,
        slope_cap: Option<f64>,
        tolerance: f64,
    ) -> Self {
        let n_tasks = n_tasks(n_records);
        let sums = Sums { largest_part: n_records, n_parts: 1, n_tasks, n_features, values_per_record };
        let is_hinge = loss.curvature_bound().is_none();
        Self {
            sums,
            row,
            gradient_bound: loss.gradient_bound(row, slope_cap).unwrap_or(f64::INFINITY) * weight,
            curvature_bound: loss.curvature_bound().map(|curvature| curvature * weight),
            record_curvature: match slope_cap {
                None => loss.curvature_bound().map(|curvature| curvature * weight * row * row),
                Some(_) => loss.record_curvature(row, slope_cap).map(|curvature| curvature * weight),
            },
            strong_convexity: regularizer.strong_convexity(),
            regularizer_curvature: regularizer.curvature,
            largest_group: regularizer.largest_group(),
            rounding: Rounding::new(
                sums,
                loss,
                is_hinge,
                Rows { norm: row, slope_cap },
                weight,
                0.0,
                regularizer,
            ),
            tolerance,
        }
    }

    /// What public numbers say about a round.
    ///
    /// *Radius.* At the minimiser `x*` of a [`Demand::Solve`], with `g` the gradient of the mean loss there, `−(g + linear)` is a
    /// subgradient of the regulariser and the quadratic term, which are m-strongly convex together and have 0 among their
    /// subgradients at 0. Strong monotonicity between `x*` and 0 gives `m‖x*‖² ≤ ‖g + linear‖‖x*‖`, so
    ///
    /// ```text
    /// ‖x*‖ ≤ r = (‖linear‖ + B) / m
    /// ```
    ///
    /// and a point with residual τ is within `τ/m` of it. A gradient step has `‖x‖ ≤ (‖center‖ + B + c‖at‖)/weight`, because a
    /// proximal step makes nothing longer.
    ///
    /// *Ratio.* The double nearest to `x*` has a gradient of at most `(m + L₂S²)·u·r·√p` (with capped slopes, the capped loss's curvature in
    /// place of `L₂S²`), and what is computed of it is off by at
    /// most the rounding bound at `r`. While these together are at most a quarter of τ there is a point whose certificate
    /// is at most three quarters of it. For the hinge the two enter its own certificate (see [`crate::solver::hinge`]).
    pub fn judge(&self, demand: Demand) -> Judgement {
        match demand {
            Demand::Solve { linear, quadratic } => self.judge_solve(linear, quadratic),
            Demand::Step { at, center, weight } => {
                let pull = center + self.gradient_bound + self.regularizer_curvature * at;
                let residual = self.rounding.at(at, 0.0) + 8.0 * f64::EPSILON * pull;
                let ratio = residual * OUTWARD / self.tolerance;
                Judgement { radius: pull / weight * OUTWARD, ratio, drift: 0.0, passes: Some(1) }
            }
        }
    }

    fn judge_solve(&self, linear: f64, quadratic: f64) -> Judgement {
        let (tolerance, modulus) = (self.tolerance, quadratic + self.strong_convexity);
        let radius = ((linear + self.gradient_bound) / modulus + tolerance / modulus) * OUTWARD;
        let curved = quadratic + self.regularizer_curvature;
        let spacing = UNIT * radius * (self.sums.n_features as f64).sqrt();
        let rounding = self.rounding.at(radius, linear) + 8.0 * UNIT * quadratic * radius;
        let Some(records) = self.record_curvature else {
            let residual = rounding + curved * spacing;
            let excess = self.rounding.margin(radius) + self.row * spacing;
            let certificate = 0.5 * (residual + (residual * residual + 4.0 * modulus * excess).sqrt());
            let ratio = certificate * OUTWARD / tolerance;
            return Judgement { radius, ratio, drift: f64::INFINITY, passes: None };
        };
        let smoothness = (records + curved) * OUTWARD;
        let ratio = (rounding + smoothness * spacing) * OUTWARD / tolerance;
        let condition = smoothness / modulus;
        let drift = condition * self.step_error(linear, radius, smoothness) / tolerance;
        let steps = (condition * (32.0 * smoothness * radius / tolerance).ln().max(1.0)).ceil() + 2.0;
        // Beyond so many steps a promise to take them is worth nothing, and is not given.
        let passes = (drift <= MOST_DRIFT && steps <= MOST_PASSES).then_some(steps as u32);
        let drift = if steps <= MOST_PASSES { drift } else { f64::INFINITY };
        Judgement { radius, ratio, drift, passes }
    }

    /// `L` times the rounding error of one step of the solver in [`crate::solver::proved`].
    ///
    /// With sums in twice the precision a record's slope is off by its own evaluation (12 units) and by the rounding of its margin, and
    /// the gradient by the last rounding of each of its terms; the iterate, in twice the precision too, by next to nothing. No iterate
    /// is longer than twice the radius and a little.
    fn step_error(&self, linear: f64, radius: f64, smoothness: f64) -> f64 {
        let radius = 2.5 * radius;
        let curvature = self.curvature_bound.unwrap_or(f64::INFINITY);
        // A slope is taken at a margin that is set against a label or a corner of size 1.
        let margin = 1.0 + self.row * radius;
        let records = 24.0 * self.gradient_bound + 4.0 * curvature * self.row * margin;
        let rest = 8.0 * (linear + (smoothness - self.record_curvature.unwrap_or(0.0)) * radius);
        let twice = (self.largest_group + 64) as f64 * UNIT * smoothness * radius;
        UNIT * (records + rest + twice) * OUTWARD
    }

    /// Whether a round with this judgement may be charged where rounds were promised to be `stopping`.
    pub fn allows(&self, judgement: &Judgement, stopping: Stopping) -> bool {
        // A NaN must not pass, hence the comparison this way round.
        let is_certifiable = judgement.ratio <= MOST_RATIO && judgement.radius.is_finite();
        is_certifiable && (stopping == Stopping::SolverMayStall || judgement.passes.is_some())
    }

    /// Whether nothing but public numbers decides about rounds like this one.
    pub fn stopping(judgement: &Judgement) -> Stopping {
        if judgement.passes.is_some() { Stopping::Public } else { Stopping::SolverMayStall }
    }

    /// The longest model of a neighbour that is used: the largest size at which a round would still be allowed if all models
    /// that it is computed from had it.
    pub fn message_limit(&self, demand: impl Fn(f64) -> Demand, stopping: Stopping) -> f64 {
        let allows = |size: f64| self.allows(&self.judge(demand(size)), stopping);
        // The bounds grow with the size, so there is one place where they cross; powers of two find it to a factor of two.
        (-60..=400).map(|exponent| 2f64.powi(exponent)).take_while(|&size| allows(size)).last().unwrap_or(0.0)
    }

    /// Whether the bounds hold for so many records with so many stored values each, solved to `tolerance`.
    pub fn covers(&self, n_records: usize, values_per_record: usize, tolerance: f64) -> bool {
        let Sums { largest_part, values_per_record: most, .. } = self.sums;
        n_records <= largest_part && values_per_record <= most && self.tolerance <= tolerance
    }
}
