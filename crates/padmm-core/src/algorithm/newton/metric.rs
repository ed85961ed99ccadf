//! Stage 0: from noisy moments to what records look like. Everything here is a function of releases and public constants.

use std::ops::Range;

use padmm_privacy::ClippedSum;

use super::link::Link;
use super::rule::Rule;
use crate::algorithm::LocalProblem;
use crate::matrix::Square;
use crate::privacy_noise::PrivacyNoise;

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
    pub(super) fn units(&self) -> impl Iterator<Item = Range<usize>> + '_ {
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

/// What the moments say about records.
pub(super) struct Shape {
    /// `t`: the typical entry of a record's ones.
    pub total: f64,
    /// `π`: the base rate.
    pub rate: f64,
    /// `π_y` and `f_y`: the part of the records that has each label, and what these look like on average.
    pub classes: [(f64, Vec<f64>); 2],
    /// `m̂`, about the mean of `a`.
    pub mean: Vec<f64>,
    /// The diagonal of `Ĉ`, about the mean of `a_j²`.
    pub diagonal: Vec<f64>,
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
        let classes = [(positive, rate), (negative, 1.0 - rate)].map(|(moment, part)| {
            let mut typical = class_means(layout, moment, part * total, noise);
            typical.iter_mut().for_each(|m| *m /= part);
            typical[..layout.n_numeric].iter_mut().for_each(|m| *m = m.clamp(0.0, 1.0));
            (part, typical)
        });
        let p = layout.n_features;
        let (mut mean, mut mean_squares) = (vec![0.0; p], vec![0.0; p]);
        for (part, typical) in &classes {
            mean.iter_mut().zip(typical).for_each(|(m, f)| *m += part * f);
            mean_squares.iter_mut().zip(typical).for_each(|(m, f)| *m += part * f * f);
        }
        let mut diagonal: Vec<f64> = mean.iter().map(|m| m * total).collect();
        for (j, square) in squares.iter().enumerate() {
            diagonal[j] = square.max(mean_squares[j] + (0.02 * total) * (0.02 * total));
        }
        Self { total, rate, classes, mean, diagonal }
    }

    /// `Ĉ`, about the mean of `a aᵀ`: columns of one unit exclude each other, all others are taken for independent within a class.
    pub(super) fn second(&self, layout: &Layout) -> Square {
        let mut second = Square::zeros(layout.n_features);
        for (part, typical) in &self.classes {
            let mut class = Square::zeros(layout.n_features);
            class.add_outer(1.0, typical);
            for unit in layout.units() {
                // A record has one of a unit's ones and no other.
                for i in unit.clone() {
                    unit.clone().for_each(|j| class.set(i, j, 0.0));
                    class.set(i, i, typical[i] * self.total);
                }
            }
            second.add_scaled(*part, &class);
        }
        (0..layout.n_numeric).for_each(|j| second.set(j, j, self.diagonal[j]));
        second
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

/// What a metric is learned from; all of it public.
pub(super) struct Lesson<'a> {
    pub layout: &'a Layout,
    pub rule: &'a Rule,
    pub link: Link,
    pub moments: &'a Moments,
    /// `2λ`, column by column.
    pub penalty: &'a [f64],
    /// `2A/(μ√(1−φ))`: the noise of all rounds together, for a clipping bound of 1.
    pub rounds_noise: f64,
}

/// What all rounds after stage 0 use: the coordinates in which gradients are released, the prior, and the curvature that steps assume.
pub(super) trait Metric: Send {
    /// `c`: no record's gradient is longer in the metric.
    fn clip(&self) -> f64;

    /// `x_b`: the base rate's model.
    fn base(&self) -> &[f64];

    /// All that gradients depend on beside the point.
    fn coordinates(&self) -> &[f64];

    /// Σ of every record's `clip(ℓ'(aᵀx), ± c/‖L⁻¹a‖) · L⁻¹a/c`.
    fn sum(&mut self, problem: &LocalProblem, point: &[f64]) -> ClippedSum;

    /// `L⁻¹v` of the vector with these entries.
    fn whitened(&self, entries: &mut dyn Iterator<Item = (usize, f64)>) -> Vec<f64>;

    /// `L u + 2λx + Γ(x − x_b)` for the sum `u` of whitened gradients.
    fn gradient(&self, whitened: &[f64], point: &[f64]) -> Vec<f64>;

    /// `−B⁻¹g`
    fn direction(&self, gradient: &[f64]) -> Vec<f64>;

    /// `argmin ½(x − z)ᵀB(x − z) + Σ_j thresholds_j |x_j|`
    fn shrunk(&self, thresholds: &[f64], z: &[f64]) -> Vec<f64>;

    /// `‖Lᵀd‖`: the noise of a gradient along `d`, for whitened noise of 1.
    fn noise_along(&self, direction: &[f64]) -> f64;

    /// `‖v‖²` in the metric.
    fn length(&self, v: &[f64]) -> f64;

    /// A step of this size, from a gradient with noise of this size: `V ← T V Tᵀ + (step · noise)² B⁻¹MB⁻¹` with
    /// `T = I − step · B⁻¹(wĈ + 2λI + Γ)`.
    fn spread(&mut self, step: f64, noise: f64);

    /// `V ← factor · V`
    fn scale_spread(&mut self, factor: f64);

    /// What noise has put on the coefficients so far.
    fn privacy_noise(&self) -> PrivacyNoise;

    /// `tr(MV)`: the square of the noise in the model so far, in the metric.
    fn noise(&self) -> f64;

    /// How much of the way from the base rate's model to the last point is kept, if noise is this part of its square.
    fn kept(&self, noise: f64) -> f64;
}
