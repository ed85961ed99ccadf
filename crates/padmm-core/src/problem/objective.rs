//! The function that a local solve minimises — EQUATIONS §1 and §2 (primal).
//!
//! `F(x) = Σ_part weight · Σ_{(a,z) ∈ part} ℓ(z, aᵀx) + R(x) + ⟨linear, x⟩ + ½·quadratic·‖x‖²`
//!
//! One agent's objective has one part with weight `1/n_i`. The pooled problem has every agent's part, and neither
//! linear nor quadratic term. The proximal terms of ADMM are linear and quadratic terms.

mod rounding;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::data::Dataset;
use crate::kernel;
use crate::loss::Loss;
use crate::regularizer::RegularizerTerm;
use crate::vector::{self, dot_in_order, norm, sum_of_squares};
pub(crate) use rounding::{Rounding, Rows, Sums, UNIT};

/// Records that one task handles; more are cut into tasks of equal size.
const TASK: usize = 4096;
/// Most tasks of a part: enough for many threads, and each has sums of its own to keep.
const MOST_TASKS: usize = 64;

/// Some records that enter the objective with one weight.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// All records of the part; none are left out.
    pub data: &'a Dataset,
    /// What each record's loss is multiplied by.
    pub weight: f64,
}

impl<'a> Part<'a> {
    /// The mean over `data`: weight `1/n`.
    pub fn mean(data: &'a Dataset) -> Self {
        Part { data, weight: 1.0 / data.n_records() as f64 }
    }

    /// The tasks that the records are cut into. An even number, so that two threads end together.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let n = self.data.n_records();
        let n_tasks = n_tasks(n);
        (0..n_tasks).map(move |t| t * n / n_tasks..(t + 1) * n / n_tasks)
    }
}

/// Tasks of a part of `n` records.
pub(crate) fn n_tasks(n: usize) -> usize {
    if n > TASK { n.div_ceil(TASK).next_multiple_of(2).min(MOST_TASKS) } else { 1 }
}

/// The objective of EQUATIONS §2 (primal), or of the pooled problem.
pub struct Objective<'a> {
    parts: &'a [Part<'a>],
    n_tasks: usize,
    loss: Loss,
    regularizer: &'a RegularizerTerm,
    linear: &'a [f64],
    quadratic: f64,
    n_features: usize,
    total_weight: f64,
    largest_part: usize,
    /// Whether slopes count as computed, as weights of the hinge's certificate, whatever margin they belong to.
    slopes_are_weights: bool,
    /// A public bound on the minimiser's norm, where one is known.
    radius: f64,
}

/// Buffers that the objective's sums need; one for as long as one lives, so that nothing is allocated in loops.
#[derive(Default)]
pub struct ObjectiveBuffers {
    task: Vec<TaskBuffers>,
    /// What the loops over each part's records read in place of the point.
    weights: Vec<kernel::Weights>,
    gram: GramPool,
}

/// Memory for Hessians. Lent rather than given to every task, because it is large: there is as much as tasks run at the same time.
#[derive(Default)]
struct GramPool(Mutex<Vec<kernel::GramSums>>);

impl GramPool {
    fn lend(&self, work: impl FnOnce(&mut kernel::GramSums)) {
        // What is in it means nothing, so neither does a panic with it in hand.
        let pool = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let free = pool().pop();
        let mut sums = free.unwrap_or_default();
        work(&mut sums);
        pool().push(sums);
    }
}

/// A task, which is consecutive records of one part, and what it computes.
#[derive(Default)]
struct TaskBuffers {
    /// Which of the objective's parts the records belong to.
    part: usize,
    range: Range<usize>,
    /// Of losses, or of what the hinge's certificate adds up.
    sum: f64,
    gradient: kernel::GradientSums,
    /// One entry a column: the Hessian's diagonal, or its product with a vector.
    by_column: Vec<f64>,
    /// One entry for each of the task's records.
    margins: Vec<f64>,
    curvatures: Vec<f64>,
    /// The upper triangle of a row-major matrix.
    hessian: Vec<f64>,
}

impl<'a> Objective<'a> {
    /// An objective over `parts`; `linear` is empty or has one entry a feature.
    pub fn new(
        parts: &'a [Part<'a>],
        loss: Loss,
        regularizer: &'a RegularizerTerm,
        linear: &'a [f64],
        quadratic: f64,
    ) -> Self {
        assert!(!parts.is_empty(), "an objective has records");
        let n_features = parts[0].data.n_features();
        assert!(parts.iter().all(|p| p.data.n_features() == n_features), "parts share their columns");
        assert!(
            parts.iter().all(|p| p.data.slope_cap() == parts[0].data.slope_cap()),
            "parts share their cap"
        );
        assert!(linear.is_empty() || linear.len() == n_features, "the linear term has one entry a feature");
        Objective {
            parts,
            n_tasks: parts.iter().map(|p| p.tasks().count()).sum(),
            loss,
            regularizer,
            linear,
            quadratic,
            n_features,
            total_weight: parts.iter().map(|p| p.weight * p.data.n_records() as f64).sum(),
            largest_part: parts.iter().map(|p| p.data.n_records()).max().unwrap_or(0),
            slopes_are_weights: false,
            radius: 0.0,
        }
    }

    /// The same objective, whose minimiser is publicly known to lie within `radius` of the origin.
    pub(crate) fn within(mut self, radius: f64) -> Self {
        self.radius = radius;
        self
    }

    /// The same objective with another loss, for smoothing the hinge: its certificate holds for any slopes in [0, 1].
    pub(crate) fn with_loss(&self, loss: Loss) -> Self {
        Objective { loss, slopes_are_weights: true, ..*self }
    }

    /// `p`: how many coordinates `x` has.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The loss `ℓ` of each record.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    pub(crate) fn parts(&self) -> &'a [Part<'a>] {
        self.parts
    }

    pub(crate) fn quadratic(&self) -> f64 {
        self.quadratic
    }

    pub(crate) fn regularizer(&self) -> &'a RegularizerTerm {
        self.regularizer
    }

    /// Number of records of all parts together.
    pub(crate) fn n_records(&self) -> usize {
        self.parts.iter().map(|p| p.data.n_records()).sum()
    }

    /// Stored values of a record, for cost estimates.
    pub(crate) fn values_per_record(&self) -> usize {
        self.parts[0].data.n_numeric() + self.parts[0].data.n_hot()
    }

    /// About how many evaluations of the gradient it costs to form and factor a Hessian.
    pub(crate) fn hessian_passes(&self) -> f64 {
        let (p, values) = (self.n_features as f64, self.values_per_record() as f64);
        let n_numeric = self.parts[0].data.n_numeric();
        // Many numbers are a matrix product, which is that much faster than what it is compared with.
        let products = if n_numeric < kernel::MANY_NUMBERS {
            values / 2.0
        } else {
            (values - n_numeric as f64) / 2.0 + n_numeric as f64 / 25.0
        };
        products + p.powi(3) / (12.0 * self.n_records() as f64 * values)
    }

    /// Strong convexity `m_i = 2ηd_i + m_R` of (primal) — EQUATIONS §3: `quadratic + m_R`.
    pub fn modulus(&self) -> f64 {
        self.quadratic + self.regularizer.strong_convexity()
    }

    /// A bound on the largest eigenvalue of the smooth part's Hessian; `None` for the hinge.
    pub(crate) fn smoothness(&self) -> Option<f64> {
        let loss = self.loss.record_curvature(self.row(), self.slope_cap())? * self.total_weight;
        Some(loss + self.quadratic + self.regularizer.curvature)
    }

    /// The bound on every row's norm.
    fn row(&self) -> f64 {
        self.parts.iter().map(|p| p.data.norm_bound()).fold(0.0, f64::max)
    }

    /// `c`, if slopes are capped at `c/‖a‖`: in all parts alike.
    fn slope_cap(&self) -> Option<f64> {
        self.parts[0].data.slope_cap()
    }

    fn rounding(&self) -> Rounding {
        let sums = Sums {
            largest_part: self.largest_part,
            n_parts: self.parts.len(),
            n_tasks: self.n_tasks,
            n_features: self.n_features,
            values_per_record: self.values_per_record(),
        };
        let (loss, weights) = (self.loss, self.slopes_are_weights);
        let records = Rows { norm: self.row(), slope_cap: self.slope_cap() };
        Rounding::new(sums, loss, weights, records, self.total_weight, self.quadratic, self.regularizer)
    }

    /// The norm that rounding is bounded with at `x`: the public radius, so that a certificate does not depend on where in
    /// the ball the minimiser is; outside the ball, where there is no minimiser, the point's own.
    fn size_of(&self, x: &[f64]) -> f64 {
        norm(x).max(self.radius)
    }

    /// `τ` of a computed residual of norm `size` at `x`: what it is in exact arithmetic is not larger.
    pub(crate) fn certificate(&self, size: f64, x: &[f64]) -> f64 {
        self.rounding().certificate(size, self.size_of(x), norm(self.linear))
    }

    /// A bound on the rounding error of a computed gradient at `x`, in Euclidean norm ([`Rounding::at`]).
    pub(crate) fn gradient_rounding(&self, x: &[f64]) -> f64 {
        self.rounding().at(self.size_of(x), norm(self.linear))
    }

    /// Runs `work` on every task with its own buffers, in parallel if there are several. `set` makes what the loops over a part's
    /// records read in place of `x`.
    fn each_task(
        &self,
        x: &[f64],
        set: impl Fn(&mut kernel::Weights, &Dataset, &[f64]),
        ObjectiveBuffers { task, weights, .. }: &mut ObjectiveBuffers,
        work: impl Fn(&Dataset, &kernel::Weights, &mut TaskBuffers) + Sync,
    ) {
        weights.resize_with(self.parts.len().max(weights.len()), kernel::Weights::default);
        self.parts.iter().zip(&mut *weights).for_each(|(part, weights)| set(weights, part.data, x));
        task.resize_with(self.n_tasks.max(task.len()), TaskBuffers::default);
        let ranges = self.parts.iter().enumerate().flat_map(|(k, part)| part.tasks().map(move |r| (k, r)));
        for ((part, range), b) in ranges.zip(&mut *task) {
            (b.part, b.range) = (part, range);
            b.by_column.resize(self.n_features, 0.0);
        }
        let work = |b: &mut TaskBuffers| work(self.parts[b.part].data, &weights[b.part], b);
        match &mut task[..self.n_tasks] {
            [only] => work(only),
            several => several.par_iter_mut().for_each(work),
        }
    }

    /// What the tasks computed, each with the weight of its records.
    fn weighted<'b>(
        &self,
        buffers: &'b ObjectiveBuffers,
    ) -> impl Iterator<Item = (f64, &'b TaskBuffers)> + use<'a, 'b, '_> {
        buffers.task[..self.n_tasks].iter().map(|b| (self.parts[b.part].weight, b))
    }

    /// The linear term, which is all that differs between the rounds of a run.
    pub(crate) fn linear(&self) -> &'a [f64] {
        self.linear
    }

    /// The gradient of `F` without the nonsmooth part of the regulariser.
    pub fn gradient(&self, x: &[f64], gradient: &mut [f64], buffers: &mut ObjectiveBuffers) {
        self.each_task(x, kernel::Weights::set, buffers, |data, weights, b| {
            kernel::gradient(self.loss, data, b.range.clone(), weights, &mut b.gradient);
        });
        gradient.fill(0.0);
        for tasks in buffers.task[..self.n_tasks].chunk_by_mut(|a, b| a.part == b.part) {
            let (first, others) = tasks.split_first_mut().expect("a part has a task");
            others.iter().for_each(|other| first.gradient.add(&other.gradient));
            let part = &self.parts[first.part];
            first.gradient.fold(part.data, part.weight, gradient);
        }
        self.regularizer.add_smooth_gradient(x, gradient);
        vector::add_scaled(self.quadratic, x, gradient);
        vector::add(self.linear, gradient);
    }

    /// `F(x)` — EQUATIONS §1 and §2 (primal); see the module for its terms.
    pub fn value(&self, x: &[f64], buffers: &mut ObjectiveBuffers) -> f64 {
        self.each_task(x, kernel::Weights::set_head, buffers, |data, weights, b| {
            b.sum = kernel::loss(self.loss, data, b.range.clone(), weights.at(x));
        });
        let records: f64 = self.weighted(buffers).map(|(weight, b)| weight * b.sum).sum();
        let regularizer = self.regularizer.smooth_value(x) + self.regularizer.nonsmooth_value(x);
        records + regularizer + 0.5 * self.quadratic * sum_of_squares(x) + dot_in_order(self.linear, x)
    }

    /// The smooth part's Hessian into the upper triangle of the row-major matrix `out`.
    pub(crate) fn hessian(&self, x: &[f64], out: &mut [f64], buffers: &mut ObjectiveBuffers) {
        let p = self.n_features;
        self.loss_hessian(x, out, buffers);
        for j in 0..p {
            out[j * p + j] += self.diagonal_shift(j);
        }
    }

    /// The records' part of [`Self::hessian`].
    fn loss_hessian(&self, x: &[f64], out: &mut [f64], buffers: &mut ObjectiveBuffers) {
        let pool = std::mem::take(&mut buffers.gram);
        if self.n_tasks == 1 {
            // Into its place at once: one matrix more is much where many agents have few records each.
            let (Part { data, weight }, weights) = (self.parts[0], &mut buffers.weights);
            weights.resize_with(weights.len().max(1), kernel::Weights::default);
            weights[0].set_head(data, x);
            let all = 0..data.n_records();
            pool.lend(|sums| kernel::gram(self.loss, data, all, weights[0].at(x), sums, out));
            vector::scale(weight, out);
        } else {
            self.each_task(x, kernel::Weights::set_head, buffers, |data, weights, b| {
                let TaskBuffers { range, hessian, .. } = b;
                hessian.resize(out.len(), 0.0);
                pool.lend(|sums| kernel::gram(self.loss, data, range.clone(), weights.at(x), sums, hessian));
            });
            out.fill(0.0);
            self.weighted(buffers).for_each(|(weight, b)| vector::add_scaled(weight, &b.hessian, out));
        }
        buffers.gram = pool;
    }

    /// What the quadratic term and the smooth regulariser add to the Hessian's diagonal.
    fn diagonal_shift(&self, column: usize) -> f64 {
        self.quadratic + if self.regularizer.is_free(column) { 0.0 } else { self.regularizer.curvature }
    }

    /// Prepares [`Self::hessian_vector`] at `x` and writes the Hessian's diagonal.
    pub(crate) fn prepare_hessian_vector(
        &self,
        x: &[f64],
        diagonal: &mut [f64],
        buffers: &mut ObjectiveBuffers,
    ) {
        self.each_task(x, kernel::Weights::set_head, buffers, |data, weights, b| {
            b.curvatures.resize(b.range.len(), 0.0);
            let TaskBuffers { range, by_column, curvatures, .. } = b;
            kernel::curvatures(self.loss, data, range.clone(), weights.at(x), curvatures, by_column);
        });
        diagonal.iter_mut().enumerate().for_each(|(j, d)| *d = self.diagonal_shift(j));
        for (weight, b) in self.weighted(buffers) {
            vector::add_scaled(weight, &b.by_column, diagonal);
        }
    }

    /// `∇²F_smooth · v` at the point last prepared.
    pub(crate) fn hessian_vector(&self, v: &[f64], out: &mut [f64], buffers: &mut ObjectiveBuffers) {
        self.each_task(v, kernel::Weights::set_head, buffers, |data, weights, b| {
            let TaskBuffers { range, curvatures, gradient, by_column, .. } = b;
            kernel::hessian_vector(data, range.clone(), curvatures, weights.at(v), gradient, by_column);
        });
        out.iter_mut().zip(v).enumerate().for_each(|(j, (o, v))| *o = self.diagonal_shift(j) * v);
        for (weight, b) in self.weighted(buffers) {
            vector::add_scaled(weight, &b.by_column, out);
        }
    }

    /// `Σ_r weight·(ℓ_hinge(t_r) − s_r(1 − z_r t_r))` with `s_r ∈ [0, 1]` the smoothed hinge's slope of width `width`:
    /// how far the smoothed slopes are from being subgradients of the hinge, rounded up. A sum of terms that are
    /// not negative.
    pub(crate) fn hinge_excess(&self, x: &[f64], width: f64, buffers: &mut ObjectiveBuffers) -> f64 {
        let slack = self.rounding().margin(self.size_of(x));
        self.each_task(x, kernel::Weights::set_head, buffers, |data, weights, b| {
            b.margins.resize(b.range.len(), 0.0);
            kernel::margins_into(data, b.range.clone(), weights.at(x), &mut b.margins);
            let labels = &data.labels()[b.range.clone()];
            let gaps = b.margins.iter().zip(labels).map(|(&m, &z)| 1.0 - z * m);
            let excess: f64 = match data.caps(b.range.clone()) {
                [] => gaps.map(|gap| hinge_excess_of(gap, 1.0, width, slack)).sum(),
                caps => gaps.zip(caps).map(|(gap, &k)| hinge_excess_of(gap, k.min(1.0), width, slack)).sum(),
            };
            b.sum = excess * (1.0 + 1e-9);
        });
        self.weighted(buffers).map(|(weight, b)| weight * b.sum).sum()
    }
}

/// `k·max(gap, 0) − s·gap` with `s = clamp((gap + width)/(2·width), 0, k)` for a cap `k ≤ 1` on the slope, plus what an error of `slack` in the gap can add:
/// nothing where the slope is 0 or k beyond doubt, else at most `slack`, because the term is 1-Lipschitz in the gap.
fn hinge_excess_of(gap: f64, cap: f64, width: f64, slack: f64) -> f64 {
    if gap.abs() >= width + slack {
        return 0.0;
    }
    let s = ((gap + width) / (2.0 * width)).clamp(0.0, cap);
    slack + if gap > 0.0 { (cap - s) * gap } else { -s * gap }
}

#[cfg(test)]
mod tests;
