//! The function that a local solve minimises — MATH §1 and §2 (primal).
//!
//! `F(x) = Σ_part weight · Σ_{(a,z) ∈ part} ℓ(z, aᵀx) + penalty(x) + ⟨linear, x⟩ + ½·quadratic·‖x‖²`
//!
//! One agent's objective has one part with weight `1/n_i`. The pooled problem has every agent's part, and neither
//! linear nor quadratic term. The proximal terms of ADMM are linear and quadratic terms.

use std::ops::Range;

use rayon::prelude::*;

use crate::data::{Dataset, MOST_CELLS};
use crate::kernel;
use crate::loss::{Loss, LossShape, LossVisitor};
use crate::regularizer::{Penalty, norm};

/// Records that one task handles; more are cut into tasks of equal size.
const TASK: usize = 4096;
/// Most tasks of a part: enough for many threads, and each has sums of its own to keep.
const MOST_TASKS: usize = 64;

/// Some records that enter the objective with one weight.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The records.
    pub data: &'a Dataset,
    /// What each record's loss is multiplied by.
    pub weight: f64,
}

impl<'a> Part<'a> {
    /// The mean over `data`: weight `1/n`.
    pub fn mean(data: &'a Dataset) -> Self {
        Part { data, weight: 1.0 / data.n_records() as f64 }
    }
}

/// A task: consecutive records of one part.
#[derive(Clone)]
struct Task<'a> {
    part: Part<'a>,
    /// The part's number.
    number: usize,
    range: Range<usize>,
}

/// The objective of MATH §2 (primal), or of the pooled problem.
pub struct Objective<'a> {
    tasks: Vec<Task<'a>>,
    loss: Loss,
    penalty: &'a Penalty,
    linear: &'a [f64],
    quadratic: f64,
    n_features: usize,
    total_weight: f64,
    largest_part: usize,
    /// Whether slopes count as computed, as weights of the hinge's certificate, whatever margin they belong to.
    slopes_are_weights: bool,
}

/// Buffers that the objective's sums need; one for as long as one lives, so that nothing is allocated in loops.
#[derive(Default)]
pub struct ObjectiveBuffers {
    task: Vec<TaskBuffers>,
    /// One for each part.
    weights: Vec<kernel::Weights>,
}

#[derive(Default)]
struct TaskBuffers {
    sum: f64,
    gradient: Vec<f64>,
    slopes: kernel::Slopes,
    curvatures: Vec<f64>,
}

impl<'a> Objective<'a> {
    /// An objective over `parts`; `linear` is empty or has one entry a feature.
    pub fn new(
        parts: &[Part<'a>],
        loss: Loss,
        penalty: &'a Penalty,
        linear: &'a [f64],
        quadratic: f64,
    ) -> Self {
        assert!(!parts.is_empty(), "an objective has records");
        let n_features = parts[0].data.n_features();
        assert!(parts.iter().all(|p| p.data.n_features() == n_features), "parts share their columns");
        assert!(linear.is_empty() || linear.len() == n_features, "the linear term has one entry a feature");
        let mut tasks = vec![];
        for (number, &part) in parts.iter().enumerate() {
            let n = part.data.n_records();
            // An even number, so that two threads end together.
            let n_tasks = if n > TASK { n.div_ceil(TASK).next_multiple_of(2).min(MOST_TASKS) } else { 1 };
            let range = |t: usize| t * n / n_tasks..(t + 1) * n / n_tasks;
            tasks.extend((0..n_tasks).map(|t| Task { part, number, range: range(t) }));
        }
        Objective {
            tasks,
            loss,
            penalty,
            linear,
            quadratic,
            n_features,
            total_weight: parts.iter().map(|p| p.weight * p.data.n_records() as f64).sum(),
            largest_part: parts.iter().map(|p| p.data.n_records()).max().unwrap_or(0),
            slopes_are_weights: false,
        }
    }

    /// The same objective with another loss, for smoothing the hinge: its certificate holds for any slopes in [0, 1].
    pub(crate) fn with_loss(&self, loss: Loss) -> Objective<'a> {
        Objective { tasks: self.tasks.clone(), loss, slopes_are_weights: true, ..*self }
    }

    /// Dimension of `x`.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The loss.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// The regulariser's part.
    pub(crate) fn penalty(&self) -> &'a Penalty {
        self.penalty
    }

    /// Records in all parts.
    pub(crate) fn n_records(&self) -> usize {
        self.tasks.iter().map(|t| t.range.len()).sum()
    }

    /// Stored values of a record, for cost estimates.
    pub(crate) fn values_per_record(&self) -> usize {
        self.tasks.first().map_or(0, |t| t.part.data.n_numeric() + t.part.data.n_hot())
    }

    /// About how many evaluations of the gradient it costs to form and factor a Hessian.
    pub(crate) fn hessian_passes(&self) -> f64 {
        let (p, values) = (self.n_features as f64, self.values_per_record() as f64);
        let n_numeric = self.tasks.first().map_or(0, |t| t.part.data.n_numeric());
        // Many numbers are a matrix product, which is that much faster than what it is compared with.
        let products = if n_numeric < kernel::MANY_NUMBERS {
            values / 2.0
        } else {
            (values - n_numeric as f64) / 2.0 + n_numeric as f64 / 25.0
        };
        products + p.powi(3) / (12.0 * self.n_records() as f64 * values)
    }

    /// Strong convexity `m_i = 2ηd_i + m_R` of (primal) — MATH §3: `quadratic + m_R`.
    pub fn modulus(&self) -> f64 {
        self.quadratic + self.penalty.strong_convexity()
    }

    /// A bound on the largest eigenvalue of the smooth part's Hessian; `None` for the hinge.
    pub(crate) fn smoothness(&self) -> Option<f64> {
        let row = self.tasks.iter().map(|t| t.part.data.norm_bound()).fold(0.0, f64::max);
        let loss = self.loss.curvature_bound()? * row * row * self.total_weight;
        Some(loss + self.quadratic + self.penalty.curvature)
    }

    /// A bound on the rounding error of a computed gradient, in Euclidean norm.
    ///
    /// Sums over records are formed in blocks of `b`, at most `n`, and then over blocks, so each entry carries a relative
    /// error below `(b + n/b + values + 16)·2⁻⁵³` of the sum of absolute terms, which is at most `B` times
    /// the weights; the other terms are a handful of operations each. A margin is off by what its own sum rounds, and a
    /// slope by `L₂` times that, which a loss with a sharp corner makes large.
    pub(crate) fn gradient_rounding(&self, x: &[f64]) -> f64 {
        let unit = f64::EPSILON / 2.0;
        let block = kernel::gradient_block(self.n_features);
        // A column's cells are added one by one; those of one part are in `b`.
        let more_cells = self.tasks.last().map_or(0, |t| t.number) * MOST_CELLS;
        let (within, blocks) = (block.min(self.largest_part), self.largest_part / block);
        let depth = within + blocks + self.values_per_record() + self.tasks.len() + more_cells + 16;
        let row = self.tasks.iter().map(|t| t.part.data.norm_bound()).fold(0.0, f64::max);
        // The squared loss has no slope bound; its residuals are then bounded by what the margins can be.
        let slope = self.loss.slope_bound().unwrap_or_else(|| 1.0 + row * norm(x));
        let records = depth as f64 * unit * slope * row * self.total_weight;
        let margin = (self.values_per_record() + 4) as f64 * f64::EPSILON * (1.0 + row * norm(x));
        let corner = match self.loss.curvature_bound() {
            Some(curvature) if !self.slopes_are_weights => curvature * margin * row * self.total_weight,
            _ => 0.0,
        };
        records
            + corner
            + 8.0 * unit * (norm(self.linear) + (self.quadratic + self.penalty.curvature) * norm(x))
    }

    /// Runs `work` on every task with its own buffers, in parallel if there are several.
    fn each_task(&self, buffers: &mut ObjectiveBuffers, work: impl Fn(&Task<'_>, &mut TaskBuffers) + Sync) {
        buffers.task.resize_with(self.tasks.len().max(buffers.task.len()), TaskBuffers::default);
        let p = self.n_features;
        for b in buffers.task.iter_mut().take(self.tasks.len()) {
            b.gradient.resize(p, 0.0);
        }
        if let [task] = &self.tasks[..] {
            return work(task, &mut buffers.task[0]);
        }
        self.tasks.par_iter().zip(&mut buffers.task).for_each(|(t, b)| work(t, b));
    }

    /// The linear term, which is all that differs between the rounds of a run.
    pub(crate) fn linear(&self) -> &'a [f64] {
        self.linear
    }

    /// The smooth part's gradient.
    pub fn gradient(&self, x: &[f64], gradient: &mut [f64], buffers: &mut ObjectiveBuffers) {
        self.loss.with(GradientAt { objective: self, x, buffers });
        gradient.fill(0.0);
        let mut done = &mut buffers.task[..self.tasks.len()];
        for tasks in self.tasks.chunk_by(|a, b| a.number == b.number) {
            let (own, rest) = std::mem::take(&mut done).split_at_mut(tasks.len());
            let (first, others) = own.split_first_mut().expect("a part has a task");
            others.iter().for_each(|other| first.slopes.add(&other.slopes));
            first.slopes.fold(tasks[0].part.data, tasks[0].part.weight, gradient);
            done = rest;
        }
        self.penalty.add_smooth_gradient(x, gradient);
        gradient.iter_mut().zip(x).for_each(|(g, v)| *g += self.quadratic * v);
        gradient.iter_mut().zip(self.linear).for_each(|(g, l)| *g += l);
    }

    /// `F(x)` — MATH §1 and §2 (primal); see the module for its terms.
    pub fn value(&self, x: &[f64], buffers: &mut ObjectiveBuffers) -> f64 {
        self.loss.with(ValueAt { objective: self, x, buffers });
        let records: f64 = self.tasks.iter().zip(&buffers.task).map(|(t, b)| t.part.weight * b.sum).sum();
        let square: f64 = x.iter().map(|v| v * v).sum();
        let linear: f64 = self.linear.iter().zip(x).map(|(l, v)| l * v).sum();
        let penalty = self.penalty.smooth_value(x) + self.penalty.rough_value(x);
        records + penalty + 0.5 * self.quadratic * square + linear
    }

    /// The smooth part's Hessian into the upper triangle of the row-major matrix `out`.
    pub(crate) fn hessian(&self, x: &[f64], out: &mut [f64], buffers: &mut ObjectiveBuffers) {
        let p = self.n_features;
        self.loss.with(HessianAt { objective: self, x, out, buffers });
        for j in 0..p {
            out[j * p + j] += self.diagonal_shift(j);
        }
    }

    /// What the quadratic term and the smooth penalty add to the Hessian's diagonal.
    fn diagonal_shift(&self, column: usize) -> f64 {
        self.quadratic + if self.penalty.is_free(column) { 0.0 } else { self.penalty.curvature }
    }

    /// Prepares [`Self::hessian_vector`] at `x` and writes the Hessian's diagonal.
    pub(crate) fn prepare_hessian_vector(
        &self,
        x: &[f64],
        diagonal: &mut [f64],
        buffers: &mut ObjectiveBuffers,
    ) {
        self.loss.with(CurvaturesAt { objective: self, x, buffers });
        diagonal.iter_mut().enumerate().for_each(|(j, d)| *d = self.diagonal_shift(j));
        for (task, b) in self.tasks.iter().zip(&buffers.task) {
            diagonal.iter_mut().zip(&b.gradient).for_each(|(d, s)| *d += task.part.weight * s);
        }
    }

    /// `∇²F_smooth · v` at the point last prepared.
    pub(crate) fn hessian_vector(&self, v: &[f64], out: &mut [f64], buffers: &mut ObjectiveBuffers) {
        self.each_task(buffers, |t, b| {
            kernel::hessian_vector(t.part.data, t.range.clone(), &b.curvatures, v, &mut b.gradient);
        });
        out.iter_mut().zip(v).enumerate().for_each(|(j, (o, v))| *o = self.diagonal_shift(j) * v);
        for (task, b) in self.tasks.iter().zip(&buffers.task) {
            out.iter_mut().zip(&b.gradient).for_each(|(o, s)| *o += task.part.weight * s);
        }
    }

    /// `Σ_r weight·(ℓ_hinge(t_r) − s_r(1 − z_r t_r))` with `s_r ∈ [0, 1]` the smoothed hinge's slope of width `width`:
    /// how far the smoothed slopes are from being subgradients of the hinge, rounded up. A sum of terms that are
    /// not negative.
    pub(crate) fn hinge_excess(&self, x: &[f64], width: f64, buffers: &mut ObjectiveBuffers) -> f64 {
        self.each_task(buffers, |t, b| {
            b.curvatures.resize(t.range.len(), 0.0);
            kernel::margins_into(t.part.data, t.range.clone(), x, &mut b.curvatures);
            // `Σ|a_j x_j| ≤ S‖x‖` bounds what rounding does to a margin.
            let slack = (self.values_per_record() + 4) as f64
                * f64::EPSILON
                * (1.0 + t.part.data.norm_bound() * norm(x));
            let labels = &t.part.data.labels()[t.range.clone()];
            let terms =
                b.curvatures.iter().zip(labels).map(|(&m, &z)| hinge_excess_of(1.0 - z * m, width, slack));
            b.sum = terms.sum::<f64>() * (1.0 + 1e-9);
        });
        self.tasks.iter().zip(&buffers.task).map(|(t, b)| t.part.weight * b.sum).sum()
    }
}

/// `max(gap, 0) − s·gap` with `s = clamp((gap + width)/(2·width), 0, 1)`, plus what an error of `slack` in the gap can add:
/// nothing where the slope is 0 or 1 beyond doubt, else at most `slack`, because the term is 1-Lipschitz in the gap.
fn hinge_excess_of(gap: f64, width: f64, slack: f64) -> f64 {
    if gap.abs() >= width + slack {
        return 0.0;
    }
    let s = ((gap + width) / (2.0 * width)).clamp(0.0, 1.0);
    slack + if gap > 0.0 { (1.0 - s) * gap } else { -s * gap }
}

struct GradientAt<'o, 'a> {
    objective: &'o Objective<'a>,
    x: &'o [f64],
    buffers: &'o mut ObjectiveBuffers,
}

impl LossVisitor for GradientAt<'_, '_> {
    type Output = ();
    fn visit<S: LossShape>(self, shape: &S) {
        let mut weights = std::mem::take(&mut self.buffers.weights);
        let tasks = &self.objective.tasks;
        weights.resize_with(tasks.last().map_or(0, |t| t.number + 1), kernel::Weights::default);
        for first in tasks.chunk_by(|a, b| a.number == b.number).map(|tasks| &tasks[0]) {
            weights[first.number].set(first.part.data, self.x);
        }
        self.objective.each_task(self.buffers, |t, b| {
            kernel::gradient(shape, t.part.data, t.range.clone(), &weights[t.number], &mut b.slopes);
        });
        self.buffers.weights = weights;
    }
}

struct ValueAt<'o, 'a> {
    objective: &'o Objective<'a>,
    x: &'o [f64],
    buffers: &'o mut ObjectiveBuffers,
}

impl LossVisitor for ValueAt<'_, '_> {
    type Output = ();
    fn visit<S: LossShape>(self, shape: &S) {
        self.objective.each_task(self.buffers, |t, b| {
            b.sum = kernel::loss(shape, t.part.data, t.range.clone(), self.x);
        });
    }
}

struct HessianAt<'o, 'a> {
    objective: &'o Objective<'a>,
    x: &'o [f64],
    out: &'o mut [f64],
    buffers: &'o mut ObjectiveBuffers,
}

impl LossVisitor for HessianAt<'_, '_> {
    type Output = ();
    fn visit<S: LossShape>(self, shape: &S) {
        let tasks = &self.objective.tasks;
        if let [t] = &tasks[..] {
            kernel::gram(shape, t.part.data, t.range.clone(), self.x, self.out);
            return self.out.iter_mut().for_each(|o| *o *= t.part.weight);
        }
        let size = self.out.len();
        self.objective.each_task(self.buffers, |t, b| {
            b.curvatures.resize(size, 0.0);
            kernel::gram(shape, t.part.data, t.range.clone(), self.x, &mut b.curvatures[..size]);
        });
        self.out.fill(0.0);
        for (t, b) in tasks.iter().zip(&self.buffers.task) {
            self.out.iter_mut().zip(&b.curvatures).for_each(|(o, s)| *o += t.part.weight * s);
        }
    }
}

struct CurvaturesAt<'o, 'a> {
    objective: &'o Objective<'a>,
    x: &'o [f64],
    buffers: &'o mut ObjectiveBuffers,
}

impl LossVisitor for CurvaturesAt<'_, '_> {
    type Output = ();
    fn visit<S: LossShape>(self, shape: &S) {
        self.objective.each_task(self.buffers, |t, b| {
            b.curvatures.resize(t.range.len(), 0.0);
            let TaskBuffers { gradient, curvatures, .. } = b;
            kernel::curvatures(shape, t.part.data, t.range.clone(), self.x, curvatures, gradient);
        });
    }
}
