//! The metric as a diagonal, for more columns than a matrix has room for. What a record costs is what it has that is not zero.
//!
//! Gradients are released in the coordinates of `D`, the diagonal of `Ĉ` with its ridge. The steps know one direction more, the mean `m̂`,
//! along which all records are alike:
//!
//! ```text
//! M = E + r_m (tr Ĉ/p) I + m̂m̂ᵀ,      E_j = max(Ĉ_jj − m̂_j², 0)
//! ```
//!
//! so that every matrix here is a diagonal and a multiple of `m̂m̂ᵀ`. Of covariances only the diagonal is followed.

use std::sync::Arc;

use padmm_privacy::ClippedSum;

use super::metric::{Lesson, Metric, Shape};
use super::prox::{self, Quadratic};
use super::records;
use crate::algorithm::LocalProblem;
use crate::privacy_noise::PrivacyNoise;
use crate::vector::{dot, norm};

/// `diag(d) + s · m̂m̂ᵀ`
#[derive(Clone)]
struct Spiked {
    diagonal: Vec<f64>,
    spike: f64,
    mean: Arc<[f64]>,
}

impl Spiked {
    /// `self + factor · other`
    fn plus(&self, factor: f64, other: &Self) -> Self {
        let diagonal = self.diagonal.iter().zip(&other.diagonal).map(|(a, b)| a + factor * b).collect();
        Self { diagonal, spike: self.spike + factor * other.spike, mean: self.mean.clone() }
    }

    fn plus_diagonal(mut self, of: impl Fn(usize) -> f64) -> Self {
        self.diagonal.iter_mut().enumerate().for_each(|(j, d)| *d += of(j));
        self
    }

    fn times(&self, v: &[f64]) -> Vec<f64> {
        let along = self.spike * dot(&self.mean, v);
        (0..v.len()).map(|j| self.diagonal[j] * v[j] + along * self.mean[j]).collect()
    }

    /// `(diag(d) + s m̂m̂ᵀ)⁻¹ v`, by Sherman and Morrison.
    fn solve(&self, v: &[f64]) -> Vec<f64> {
        let by_diagonal =
            |v: &[f64]| -> Vec<f64> { v.iter().zip(&self.diagonal).map(|(v, d)| v / d).collect() };
        let (mut x, mean) = (by_diagonal(v), by_diagonal(&self.mean));
        let along = self.spike * dot(&self.mean, &x) / (1.0 + self.spike * dot(&self.mean, &mean));
        x.iter_mut().zip(mean).for_each(|(x, m)| *x -= along * m);
        x
    }
}

impl Spiked {
    /// The diagonals of `Q` and of `Q diag(weights) Q`, where `Q` is the inverse.
    fn inverse_diagonals(&self, weights: impl Fn(usize) -> f64) -> (Vec<f64>, Vec<f64>) {
        let u: Vec<f64> = self.mean.iter().zip(&self.diagonal).map(|(m, d)| m / d).collect();
        let factor = self.spike / (1.0 + self.spike * dot(&self.mean, &u));
        let square = |j: usize| u[j] * u[j] * weights(j);
        let squares: f64 = (0..u.len()).map(square).sum();
        let of = |j: usize| {
            let inverse = 1.0 / self.diagonal[j] - factor * u[j] * u[j];
            let beside = factor * factor * u[j] * u[j] * (squares - square(j)).max(0.0);
            (inverse, inverse * inverse * weights(j) + beside)
        };
        (0..u.len()).map(of).unzip()
    }
}

/// `D`, `B` and what belongs to them.
pub(super) struct DiagonalMetric {
    /// `√D_j`
    roots: Vec<f64>,
    /// `1/√D_j`
    whitener: Vec<f64>,
    clip: f64,
    base: Vec<f64>,
    prior: Spiked,
    penalty: Vec<f64>,
    curved: Spiked,
    /// The part of the way to the optimum that a whole step goes, coordinate by coordinate.
    progress: Vec<f64>,
    /// The variance of a whole step, for whitened noise of 1.
    step_noise: Vec<f64>,
    /// Variance that noise has put on each coefficient so far.
    variances: Vec<f64>,
}

impl DiagonalMetric {
    pub(super) fn learn(lesson: &Lesson<'_>) -> (Self, Vec<f64>) {
        let &Lesson { layout, rule, link, moments, penalty, rounds_noise } = lesson;
        let Shape { rate, mean, diagonal, .. } = Shape::new(layout, moments);
        let mean: Arc<[f64]> = mean.into();
        let level = diagonal.iter().sum::<f64>() / layout.n_features as f64;
        let ridge = rule.ridge * level;
        let roots: Vec<f64> = diagonal.iter().map(|c| (c + ridge).sqrt()).collect();
        let explained: f64 = diagonal.iter().map(|c| c / (c + ridge)).sum();
        let clip = rule.clip * link.clipped_at() * explained.sqrt();
        let variance = clip * rounds_noise * (clip * rounds_noise);
        let curvature = link.curvature(rule.curvature, rate);
        let spread: Vec<f64> =
            diagonal.iter().zip(&*mean).map(|(c, m)| (c - m * m).max(0.0) + ridge).collect();
        let matrix = Spiked { diagonal: spread, spike: 1.0, mean: mean.clone() };
        let direction = matrix.solve(&mean);
        let length = dot(&mean, &direction);
        let margin = link.base(rate);
        let base: Vec<f64> = direction.iter().map(|v| margin * v / length.max(1.0)).collect();
        // Γ, as of the whole matrix: weak along the mean, as strong elsewhere as the noise asks for.
        let reach = rule.prior * link.reach();
        let strength = variance / (curvature * reach);
        let nothing = Spiked { diagonal: vec![0.0; mean.len()], spike: 0.0, mean: mean.clone() };
        let along = |weight: f64| Spiked { spike: weight / length, ..nothing.clone() };
        let prior = nothing
            .plus(strength * (1.0 - rule.mix), &matrix)
            .plus(-strength * (1.0 - rule.mix), &along(1.0))
            .plus(variance / (curvature * link.reach()), &along(1.0))
            .plus_diagonal(|_| strength * rule.mix * level);
        let curved = prior.plus(curvature, &matrix).plus_diagonal(|j| penalty[j]);
        // The start: one step from the base rate's model, along the difference of the classes.
        let noise = moments.noise;
        let (of_ones, of_zeros, steepness) = link.first_step(rate);
        let start_variance = (of_ones * of_ones + of_zeros * of_zeros) * noise * noise;
        let extra = (40.0 * noise * noise).max(start_variance / (steepness * reach));
        let steep = prior.plus(steepness, &matrix).plus_diagonal(|j| penalty[j] + extra);
        let gradient: Vec<f64> = (0..mean.len())
            .map(|j| of_zeros * moments.negative[j] + of_ones * moments.positive[j] + penalty[j] * base[j])
            .collect();
        let point = base.iter().zip(steep.solve(&gradient)).map(|(b, s)| b - s).collect();
        let (inverse, step_noise) = curved.inverse_diagonals(|j| roots[j] * roots[j]);
        let (_, start_noise) = steep.inverse_diagonals(|_| start_variance);
        let metric = Self {
            whitener: roots.iter().map(|root| 1.0 / root).collect(),
            roots,
            clip,
            base,
            prior,
            penalty: penalty.to_vec(),
            progress: inverse.iter().map(|q| 1.0 - curvature * ridge * q).collect(),
            step_noise,
            variances: start_noise,
            curved,
        };
        (metric, point)
    }
}

/// `½(x − z)ᵀB(x − z)` with `m̂ᵀ(x − z)` kept up to date.
struct SpikedForm<'a> {
    curved: &'a Spiked,
    away: Vec<f64>,
    along: f64,
}

impl Quadratic for SpikedForm<'_> {
    fn curvature(&self, j: usize) -> f64 {
        let m = self.curved.mean[j];
        self.curved.diagonal[j] + self.curved.spike * m * m
    }

    fn slope(&self, j: usize) -> f64 {
        self.curved.diagonal[j] * self.away[j] + self.curved.spike * self.curved.mean[j] * self.along
    }

    fn moved(&mut self, j: usize, by: f64) {
        self.away[j] += by;
        self.along += by * self.curved.mean[j];
    }
}

impl Metric for DiagonalMetric {
    fn clip(&self) -> f64 {
        self.clip
    }

    fn base(&self) -> &[f64] {
        &self.base
    }

    fn coordinates(&self) -> &[f64] {
        &self.roots
    }

    fn sum(&mut self, problem: &LocalProblem, point: &[f64]) -> ClippedSum {
        records::sparse_gradient(problem, &self.whitener, self.clip, point)
    }

    fn whitened(&self, entries: &mut dyn Iterator<Item = (usize, f64)>) -> Vec<f64> {
        let mut sum = vec![0.0; self.base.len()];
        entries.for_each(|(j, v)| sum[j] += v * self.whitener[j]);
        sum
    }

    fn gradient(&self, whitened: &[f64], point: &[f64]) -> Vec<f64> {
        let away: Vec<f64> = point.iter().zip(&self.base).map(|(x, b)| x - b).collect();
        let pull = self.prior.times(&away);
        let entry = |j: usize| self.roots[j] * whitened[j] + self.penalty[j] * point[j] + pull[j];
        (0..point.len()).map(entry).collect()
    }

    fn direction(&self, gradient: &[f64]) -> Vec<f64> {
        self.curved.solve(gradient).iter().map(|v| -v).collect()
    }

    fn shrunk(&self, thresholds: &[f64], z: &[f64]) -> Vec<f64> {
        prox::shrink(thresholds, z, SpikedForm { curved: &self.curved, away: vec![0.0; z.len()], along: 0.0 })
    }

    fn noise_along(&self, direction: &[f64]) -> f64 {
        norm(&self.roots.iter().zip(direction).map(|(r, d)| r * d).collect::<Vec<_>>())
    }

    fn length(&self, v: &[f64]) -> f64 {
        self.roots.iter().zip(v).map(|(r, v)| r * v * (r * v)).sum()
    }

    fn spread(&mut self, step: f64, noise: f64) {
        for (j, variance) in self.variances.iter_mut().enumerate() {
            let keeps = 1.0 - step * self.progress[j];
            *variance = keeps * keeps * *variance + step * noise * (step * noise) * self.step_noise[j];
        }
    }

    fn scale_spread(&mut self, factor: f64) {
        self.variances.iter_mut().for_each(|v| *v *= factor);
    }

    fn privacy_noise(&self) -> PrivacyNoise {
        PrivacyNoise::of_variances(&self.variances)
    }

    fn noise(&self) -> f64 {
        self.roots.iter().zip(&self.variances).map(|(r, v)| r * r * v).sum()
    }

    fn kept(&self, noise: f64) -> f64 {
        // James and Stein's: where there are so many columns, the last point may be nothing but noise.
        f64::max(0.0, 1.0 - noise)
    }
}
