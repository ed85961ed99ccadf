//! The metric as a whole matrix, for up to a thousand columns.

use std::sync::Arc;

use padmm_privacy::ClippedSum;

use super::metric::{Lesson, Metric, Moments, Shape};
use super::prox::{self, Quadratic};
use super::records::{Prepared, Whitener};
use crate::algorithm::shared_point::digest;
use crate::algorithm::{LocalProblem, SharedWork};
use crate::matrix::{Lower, Square};
use crate::message::StateDigest;
use crate::privacy_noise::PrivacyNoise;
use crate::vector::{dot, norm};

/// `M = LLᵀ` and what noise has done to the model so far.
pub(super) struct FullMetric {
    basis: Arc<Basis>,
    /// The records of a site in these coordinates, once there are some.
    prepared: Option<Prepared>,
    /// `V`: the covariance that noise has put on the model.
    covariance: Arc<Square>,
    /// Of all that `V` depends on.
    history: StateDigest,
    shared: SharedWork,
}

/// What does not change from round to round.
struct Basis {
    /// `L`
    factor: Lower,
    /// `L⁻¹`
    whitener: Whitener,
    /// `M`
    matrix: Square,
    clip: f64,
    base: Vec<f64>,
    /// The first point, and the covariance that stage 0's noise has put on it.
    start: (Vec<f64>, Arc<Square>),
    /// `Γ`
    prior: Square,
    /// `2λ`, column by column
    penalty: Vec<f64>,
    /// `B = wM + 2λI + Γ`
    curved: Square,
    /// `B⁻¹`
    inverse: Square,
    /// `B⁻¹(wĈ + 2λI + Γ)`: the part of the way to the optimum that a whole step goes.
    progress: Square,
    /// `B⁻¹MB⁻¹`: the noise of a whole step.
    step_noise: Square,
}

/// `to + diag(penalty)`
fn add_diagonal(to: &mut Square, penalty: &[f64]) {
    penalty.iter().enumerate().for_each(|(j, l)| to.set(j, j, to.at(j, j) + l));
}

impl FullMetric {
    /// The metric and the start, from stage 0's moments. None if the numbers leave the range in which they mean something, which no
    /// honest sites bring about.
    pub(super) fn learn(lesson: &Lesson<'_>, shared: &SharedWork) -> Option<(Self, Vec<f64>)> {
        let Moments { positive, negative, squares, noise } = lesson.moments;
        let facts = [positive, negative, squares, lesson.penalty, &[*noise, lesson.rounds_noise]];
        let history = digest(&StateDigest::default(), facts);
        let basis = shared.once(history, || Basis::learn(lesson))?;
        let (point, covariance) = basis.start.clone();
        let metric = Self { basis, prepared: None, covariance, history, shared: shared.clone() };
        Some((metric, point))
    }
}

impl Basis {
    fn learn(lesson: &Lesson<'_>) -> Option<Self> {
        let &Lesson { layout, rule, link, moments, penalty, rounds_noise } = lesson;
        let shape = Shape::new(layout, moments);
        let (second, rate, mean) = (shape.second(layout), shape.rate, &shape.mean);
        let p = layout.n_features;
        let level = second.trace() / p as f64;
        let mut matrix = second.clone();
        matrix.add_to_diagonal(rule.ridge * level);
        let factor = matrix.cholesky()?;
        let clip = rule.clip * link.clipped_at() * factor.inverse_of_product().inner(&second).sqrt();
        let variance = clip * rounds_noise * (clip * rounds_noise);
        let curvature = link.curvature(rule.curvature, rate);
        let direction = factor.solve(mean);
        let length = dot(mean, &direction);
        let margin = link.base(rate);
        let base: Vec<f64> = direction.iter().map(|v| margin * v / length.max(1.0)).collect();
        // Γ: weak along the mean, where the base rate is, and as strong elsewhere as the noise asks for.
        let reach = rule.prior * link.reach();
        let strength = variance / (curvature * reach);
        let mut prior = matrix.clone();
        prior.add_outer(-1.0 / length, mean);
        prior.scale(strength * (1.0 - rule.mix));
        prior.add_to_diagonal(strength * rule.mix * level);
        prior.add_outer(variance / (curvature * link.reach() * length), mean);
        let mut curved = prior.clone();
        curved.add_scaled(curvature, &matrix);
        add_diagonal(&mut curved, penalty);
        let inverse = curved.cholesky()?.inverse_of_product();
        // The start: one step from the base rate's model, along the difference of the classes.
        let noise = moments.noise;
        let (of_ones, of_zeros, steepness) = link.first_step(rate);
        let start_variance = (of_ones * of_ones + of_zeros * of_zeros) * noise * noise;
        let mut steep = prior.clone();
        steep.add_scaled(steepness, &matrix);
        add_diagonal(&mut steep, penalty);
        steep.add_to_diagonal((40.0 * noise * noise).max(start_variance / (steepness * reach)));
        let steep = steep.cholesky()?;
        let gradient: Vec<f64> = (0..p)
            .map(|j| of_zeros * moments.negative[j] + of_ones * moments.positive[j] + penalty[j] * base[j])
            .collect();
        let point = base.iter().zip(steep.solve(&gradient)).map(|(b, s)| b - s).collect();
        let steep_inverse = steep.inverse_of_product();
        let mut covariance = steep_inverse.product(&steep_inverse);
        covariance.scale(start_variance);
        let mut hessian = prior.clone();
        hessian.add_scaled(curvature, &second);
        add_diagonal(&mut hessian, penalty);
        Some(Self {
            whitener: Whitener::new(&factor),
            factor,
            clip,
            base,
            start: (point, Arc::new(covariance)),
            prior,
            penalty: penalty.to_vec(),
            progress: inverse.product(&hessian),
            step_noise: inverse.product(&matrix).product(&inverse),
            matrix,
            curved,
            inverse,
        })
    }
}

/// `½(x − z)ᵀB(x − z)` with all its slopes kept up to date.
struct Form<'a> {
    curved: &'a Square,
    slopes: Vec<f64>,
}

impl Quadratic for Form<'_> {
    fn curvature(&self, j: usize) -> f64 {
        self.curved.at(j, j)
    }

    fn slope(&self, j: usize) -> f64 {
        self.slopes[j]
    }

    fn moved(&mut self, j: usize, by: f64) {
        self.slopes.iter_mut().zip(self.curved.row(j)).for_each(|(s, b)| *s += by * b);
    }
}

impl Metric for FullMetric {
    fn clip(&self) -> f64 {
        self.basis.clip
    }

    fn base(&self) -> &[f64] {
        &self.basis.base
    }

    fn coordinates(&self) -> &[f64] {
        self.basis.factor.as_slice()
    }

    fn sum(&mut self, problem: &LocalProblem, point: &[f64]) -> ClippedSum {
        let prepared = self.prepared.take().filter(|prepared| prepared.is_for(problem));
        let prepared =
            prepared.unwrap_or_else(|| Prepared::new(problem, &self.basis.whitener, self.basis.clip));
        let sum = prepared.gradient(problem, point);
        self.prepared = Some(prepared);
        sum
    }

    fn whitened(&self, entries: &mut dyn Iterator<Item = (usize, f64)>) -> Vec<f64> {
        let mut sum = vec![0.0; self.basis.base.len()];
        entries.for_each(|(j, v)| self.basis.whitener.add(j, v, &mut sum));
        sum
    }

    fn gradient(&self, whitened: &[f64], point: &[f64]) -> Vec<f64> {
        let away: Vec<f64> = point.iter().zip(&self.basis.base).map(|(x, b)| x - b).collect();
        let pull = self.basis.prior.times(&away);
        let mut gradient = self.basis.factor.times(whitened);
        for (j, g) in gradient.iter_mut().enumerate() {
            *g += self.basis.penalty[j] * point[j] + pull[j];
        }
        gradient
    }

    fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        self.basis.inverse.times(gradient).iter().map(|v| -v).collect()
    }

    fn shrunk(&self, thresholds: &[f64], z: &[f64]) -> Vec<f64> {
        prox::shrink(thresholds, z, Form { curved: &self.basis.curved, slopes: vec![0.0; z.len()] })
    }

    fn noise_along(&self, direction: &[f64]) -> f64 {
        norm(&self.basis.factor.transposed_times(direction))
    }

    fn length(&self, v: &[f64]) -> f64 {
        dot(v, &self.basis.matrix.times(v))
    }

    fn spread(&mut self, step: f64, noise: f64) {
        self.history = digest(&self.history, [[step, noise].as_slice()]);
        let Self { basis, covariance, history, shared, .. } = self;
        let spread = || {
            let mut keeps = basis.progress.clone();
            keeps.scale(-step);
            keeps.add_to_diagonal(1.0);
            let mut spread = keeps.product(covariance).product(&keeps.transposed());
            spread.add_scaled(step * noise * (step * noise), &basis.step_noise);
            Some(spread)
        };
        self.covariance = shared.once(*history, spread).expect("the work always has a result");
    }

    fn scale_spread(&mut self, factor: f64) {
        Arc::make_mut(&mut self.covariance).scale(factor);
    }

    fn privacy_noise(&self) -> PrivacyNoise {
        PrivacyNoise::of(&self.covariance)
    }

    fn noise(&self) -> f64 {
        self.basis.matrix.inner(&self.covariance)
    }

    fn kept(&self, noise: f64) -> f64 {
        f64::max(0.7, 1.0 - 0.5 * noise)
    }
}
