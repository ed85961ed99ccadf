//! Stage 0: from noisy moments to a metric, a prior and a start. Everything here is a function of releases and public constants.

use std::ops::Range;

use super::rule::Rule;
use crate::matrix::{Lower, Square};
use crate::vector::dot;

/// The columns, as stage 0 sees them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    /// `p`
    pub n_features: usize,
    /// `J`: numbers are the first columns.
    pub n_numeric: usize,
    /// The columns of each categorical column.
    pub groups: Vec<Range<usize>>,
    /// The column of ones.
    pub intercept: Option<usize>,
}

impl Layout {
    /// `G`: of these ones there is exactly one in every record, the intercept included.
    pub(super) fn n_units(&self) -> usize {
        self.groups.len() + usize::from(self.intercept.is_some())
    }

    /// `2p + J`: the length of a record's statistic.
    pub(super) fn n_moments(&self) -> usize {
        2 * self.n_features + self.n_numeric
    }

    /// `Φ`: bounds the statistic `(y a, (1−y) a, a_num²)` of a record with `‖a‖ ≤ 1`, and is enforced by clipping. With `q` numbers and
    /// `G` ones before the row is scaled, `‖a_num²‖² ≤ q/(G + q)²`, and the rest is at most 1.
    pub(super) fn moment_bound(&self) -> f64 {
        let (units, numbers) = (self.n_units() as f64, self.n_numeric.min(self.n_units()) as f64);
        (1.0 + numbers / ((units + numbers) * (units + numbers))).sqrt()
    }

    /// The groups and, as one of its own, the intercept.
    fn units(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.groups.iter().cloned().chain(self.intercept.map(|j| j..j + 1))
    }
}

/// `(m₁, m₀, q) = Σ ω_i · (mean of y a, of (1−y) a, of a_num²)`, each with noise of standard deviation `noise`.
pub(super) struct Moments {
    pub positive: Vec<f64>,
    pub negative: Vec<f64>,
    pub squares: Vec<f64>,
    /// `s₀`
    pub noise: f64,
}

impl Moments {
    /// Cuts the sum of what sites released, in the order of a record's statistic.
    pub(super) fn of(layout: &Layout, sum: &[f64], noise: f64) -> Self {
        let p = layout.n_features;
        let clipped = |range: Range<usize>| sum[range].iter().map(|v| v.clamp(-1.0, 1.0)).collect();
        Self {
            positive: clipped(0..p),
            negative: clipped(p..2 * p),
            squares: clipped(2 * p..sum.len()),
            noise,
        }
    }
}

/// What the moments say about records: `Ĉ`, `m̂` and `π`.
pub(super) struct Shape {
    /// `Ĉ`, about the mean of `a aᵀ`.
    pub second: Square,
    /// `m̂`, about the mean of `a`.
    pub mean: Vec<f64>,
    /// `π`: the base rate.
    pub rate: f64,
}

/// `(1−k)·value + k·prior`, where `k` grows with the noise and shrinks with the spread that is expected of true values.
fn shrunk(value: f64, prior: f64, noise: f64, spread: f64) -> f64 {
    let k = noise * noise / (noise * noise + spread * spread);
    (1.0 - k) * value + k * prior
}

/// Clips as `min(max(value, lower), upper)` does, whichever bound is the larger.
fn clip(value: f64, lower: f64, upper: f64) -> f64 {
    value.max(lower).min(upper)
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl Shape {
    pub(super) fn new(layout: &Layout, moments: &Moments) -> Self {
        let Moments { positive, negative, squares, noise } = moments;
        let (noise, units, numbers) = (*noise, layout.n_units() as f64, layout.n_numeric as f64);
        // Totals.
        let weight: f64 = layout.units().map(|g| 1.0 / g.len() as f64).sum();
        let of_class = |m: &[f64]| {
            layout.units().map(|g| m[g.clone()].iter().sum::<f64>() / g.len() as f64).sum::<f64>() / weight
        };
        let (ones, zeros) = (of_class(positive), of_class(negative));
        let error = noise / weight.sqrt();
        // `t`: the typical entry of a record's ones.
        let total = clip(ones + zeros, 1.0 / (units + numbers).sqrt(), 1.0 / units.sqrt());
        let least = clip(error / (2.0 * total), 1e-5, 0.25);
        let rate = clip(shrunk(ones / total, 0.5, error, total / 4.0), least, 1.0 - least);
        // Shrinkage of the squares.
        let mut squares = squares.clone();
        if layout.n_numeric > 0 {
            let smallest = (noise / numbers.sqrt()).max(1e-4 * total * total);
            let prior = clip(average(&squares), smallest, total * total);
            squares.iter_mut().for_each(|q| *q = shrunk(*q, prior, noise, 0.35 * prior));
        }
        // Shrinkage of the means, and what records of one class look like on average.
        let p = layout.n_features;
        let (mut second, mut mean, mut mean_squares) = (Square::zeros(p), vec![0.0; p], vec![0.0; p]);
        for (moment, part) in [(positive, rate), (negative, 1.0 - rate)] {
            let of_class = class_means(layout, moment, part * total, noise);
            let typical: Vec<f64> = of_class
                .iter()
                .enumerate()
                .map(|(j, m)| if j < layout.n_numeric { (m / part).clamp(0.0, 1.0) } else { m / part })
                .collect();
            let mut class = Square::zeros(p);
            class.add_outer(1.0, &typical);
            for unit in layout.units() {
                // A record has one of a unit's ones and no other.
                for i in unit.clone() {
                    unit.clone().for_each(|j| class.set(i, j, 0.0));
                    class.set(i, i, typical[i] * total);
                }
            }
            second.add_scaled(part, &class);
            mean.iter_mut().zip(&typical).for_each(|(m, f)| *m += part * f);
            mean_squares.iter_mut().zip(&typical).for_each(|(m, f)| *m += part * f * f);
        }
        for (j, square) in squares.iter().enumerate() {
            second.set(j, j, square.max(mean_squares[j] + (0.02 * total) * (0.02 * total)));
        }
        Self { second, mean, rate }
    }
}

/// One class's means, shrunk towards what is known without records: a unit's entries add up to `total`.
fn class_means(layout: &Layout, moment: &[f64], total: f64, noise: f64) -> Vec<f64> {
    let mut means = moment.to_vec();
    for group in &layout.groups {
        let prior = total / group.len() as f64;
        let entries = &mut means[group.clone()];
        entries.iter_mut().for_each(|m| *m = shrunk(*m, prior, noise, prior).max((0.3 * noise).min(prior)));
        let factor = total / entries.iter().sum::<f64>();
        entries.iter_mut().for_each(|m| *m *= factor);
    }
    if layout.n_numeric > 0 {
        let numbers = &mut means[..layout.n_numeric];
        let smallest = (noise / (layout.n_numeric as f64).sqrt()).max(0.002 * total);
        let prior = clip(average(numbers), smallest, total);
        for m in numbers {
            *m = shrunk(*m, prior, noise, prior).max((0.3 * noise).min(prior)).min(1.0);
        }
    }
    if let Some(intercept) = layout.intercept {
        means[intercept] = total;
    }
    means
}

/// What all rounds after stage 0 use: the metric, the prior and the curvature that steps assume.
pub(super) struct Metric {
    /// `L`, `M = LLᵀ`
    pub factor: Lower,
    /// `M`
    pub matrix: Square,
    /// `Ĉ`
    second: Square,
    /// `c`: no record's gradient is longer in the metric.
    pub clip: f64,
    /// `x_b`: the base rate's model.
    pub base: Vec<f64>,
    /// `Γ`
    prior: Square,
    /// `2λ`, column by column
    penalty: Vec<f64>,
    /// `w`
    curvature: f64,
    /// `B⁻¹`, `B = wM + 2λI + Γ`
    inverse: Square,
}

/// A model with the covariance that noise has put on it so far.
pub(super) struct Estimate {
    pub point: Vec<f64>,
    /// `V`
    pub covariance: Square,
}

impl Metric {
    /// The metric and the start, from stage 0's moments. `rounds_noise` is `2A/(μ√(1−φ))`: the noise of all rounds together, for a
    /// clipping bound of 1. None if the numbers leave the range in which they mean something, which no honest sites bring about.
    pub(super) fn learn(
        layout: &Layout,
        rule: &Rule,
        moments: &Moments,
        penalty: Vec<f64>,
        rounds_noise: f64,
    ) -> Option<(Self, Estimate)> {
        let Shape { second, mean, rate } = Shape::new(layout, moments);
        let p = layout.n_features;
        let level = second.trace() / p as f64;
        let mut matrix = second.clone();
        matrix.add_to_diagonal(rule.ridge * level);
        let factor = matrix.cholesky()?;
        let clip = rule.clip * factor.inverse_of_product().inner(&second).sqrt();
        let variance = clip * rounds_noise * (clip * rounds_noise);
        let spread = rate * (1.0 - rate);
        let curvature = rule.curvature * (spread / 0.186).min(1.0);
        let direction = factor.solve(&mean);
        let length = dot(&mean, &direction);
        let logit = libm::log(rate / (1.0 - rate));
        let base: Vec<f64> = direction.iter().map(|v| logit * v / length.max(1.0)).collect();
        // Γ: weak along the mean, where the base rate is, and as strong elsewhere as the noise asks for.
        let strength = variance / (curvature * rule.prior);
        let mut prior = matrix.clone();
        prior.add_outer(-1.0 / length, &mean);
        prior.scale(strength * (1.0 - rule.mix));
        prior.add_to_diagonal(strength * rule.mix * level);
        prior.add_outer(variance / (curvature * length), &mean);
        let add_penalty = |to: &mut Square| {
            penalty.iter().enumerate().for_each(|(j, l)| to.set(j, j, to.at(j, j) + l));
        };
        let mut curved = prior.clone();
        curved.add_scaled(curvature, &matrix);
        add_penalty(&mut curved);
        let inverse = curved.cholesky()?.inverse_of_product();
        // The start: one step from the base rate's model, along the difference of the classes.
        let noise = moments.noise;
        let start_variance = (rate * rate + (1.0 - rate) * (1.0 - rate)) * noise * noise;
        let mut steep = prior.clone();
        steep.add_scaled(spread, &matrix);
        add_penalty(&mut steep);
        steep.add_to_diagonal((40.0 * noise * noise).max(start_variance / (spread * rule.prior)));
        let steep = steep.cholesky()?;
        let gradient: Vec<f64> = (0..p)
            .map(|j| rate * moments.negative[j] - (1.0 - rate) * moments.positive[j] + penalty[j] * base[j])
            .collect();
        let point = base.iter().zip(steep.solve(&gradient)).map(|(b, s)| b - s).collect();
        let steep_inverse = steep.inverse_of_product();
        let mut covariance = steep_inverse.product(&steep_inverse);
        covariance.scale(start_variance);
        let metric = Self { factor, matrix, second, clip, base, prior, penalty, curvature, inverse };
        Some((metric, Estimate { point, covariance }))
    }

    /// `L u + 2λx + Γ(x − x_b)` for the sum `u` of whitened gradients.
    pub(super) fn gradient(&self, whitened: &[f64], point: &[f64]) -> Vec<f64> {
        let away: Vec<f64> = point.iter().zip(&self.base).map(|(x, b)| x - b).collect();
        let pull = self.prior.times(&away);
        let mut gradient = self.factor.times(whitened);
        for (j, g) in gradient.iter_mut().enumerate() {
            *g += self.penalty[j] * point[j] + pull[j];
        }
        gradient
    }

    /// `−B⁻¹g`
    pub(super) fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        self.inverse.times(gradient).iter().map(|v| -v).collect()
    }

    /// `V ← T V Tᵀ + (step · noise)² B⁻¹MB⁻¹` with `T = I − step · B⁻¹(wĈ + 2λI + Γ)`.
    pub(super) fn spread(&self, covariance: &Square, step: f64, noise: f64) -> Square {
        let mut hessian = self.prior.clone();
        hessian.add_scaled(self.curvature, &self.second);
        self.penalty.iter().enumerate().for_each(|(j, l)| hessian.set(j, j, hessian.at(j, j) + l));
        let mut keeps = self.inverse.product(&hessian);
        keeps.scale(-step);
        keeps.add_to_diagonal(1.0);
        let mut spread = keeps.product(covariance).product(&keeps.transposed());
        let added = self.inverse.product(&self.matrix).product(&self.inverse);
        spread.add_scaled(step * noise * (step * noise), &added);
        spread
    }
}
