//! Regularisers — MATH §1. `strength` is the paper's Λ and multiplies the whole; the intercept is left out.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::FeatureSpace;

/// `R(x)` of MATH §1. Every agent's objective contains `R(x)/N`.
///
/// Departs from the paper: the paper's §V writes `Λ‖w‖²` inside each record's loss; that is this one with `Λ` replaced
/// by `NΛ`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regularizer {
    /// `R(x) = 0`
    None,
    /// `R(x) = Λ‖x‖²`
    L2 {
        /// Λ
        strength: f64,
    },
    /// `R(x) = Λ‖x‖₁`
    L1 {
        /// Λ
        strength: f64,
    },
    /// `R(x) = Λ(r‖x‖₁ + (1 − r)‖x‖²)`
    ElasticNet {
        /// Λ
        strength: f64,
        /// r, between 0 and 1
        l1_ratio: f64,
    },
    /// `R(x) = Λ Σ_g √|g| ‖x_g‖₂`, a group for the columns of one source column
    GroupLasso {
        /// Λ
        strength: f64,
    },
}

impl Regularizer {
    /// `R(x)` — MATH §1.
    pub fn value(&self, space: &FeatureSpace, x: &[f64]) -> f64 {
        let p = Penalty::new(self, space, 1.0);
        p.smooth_value(x) + p.rough_value(x)
    }
}

impl std::fmt::Display for Regularizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Regularizer::None => write!(f, "none"),
            Regularizer::L2 { strength } => write!(f, "{strength}·‖x‖²"),
            Regularizer::L1 { strength } => write!(f, "{strength}·‖x‖₁"),
            Regularizer::ElasticNet { strength, l1_ratio } => {
                write!(f, "{strength}·({l1_ratio}·‖x‖₁ + {}·‖x‖²)", 1.0 - l1_ratio)
            }
            Regularizer::GroupLasso { strength } => write!(f, "{strength}·Σ√|g|·‖x_g‖"),
        }
    }
}

/// A regulariser made ready for one feature space and one weight: a smooth part `½·curvature·‖x‖²` and a rough
/// part of absolute values or group norms.
#[derive(Clone, Debug)]
pub struct Penalty {
    /// Second derivative of the smooth part in every penalised coordinate.
    pub(crate) curvature: f64,
    /// Weight of each `|x_j|`.
    pub(crate) l1: f64,
    /// Columns and weight of each group norm.
    pub(crate) groups: Vec<(Range<usize>, f64)>,
    /// The one column that is not penalised.
    free: Option<usize>,
}

impl Penalty {
    /// `weight · R(x)` over `space`.
    pub fn new(regularizer: &Regularizer, space: &FeatureSpace, weight: f64) -> Self {
        let mut p = Penalty { curvature: 0.0, l1: 0.0, groups: vec![], free: space.intercept };
        match *regularizer {
            Regularizer::None => {}
            Regularizer::L2 { strength } => p.curvature = 2.0 * strength * weight,
            Regularizer::L1 { strength } => p.l1 = strength * weight,
            Regularizer::ElasticNet { strength, l1_ratio } => {
                p.l1 = strength * l1_ratio * weight;
                p.curvature = 2.0 * strength * (1.0 - l1_ratio) * weight;
            }
            Regularizer::GroupLasso { strength } => {
                let of = |g: &Range<usize>| (g.clone(), strength * weight * (g.len() as f64).sqrt());
                p.groups = space.groups.iter().map(of).collect();
            }
        }
        p
    }

    /// No regulariser at all.
    pub fn none() -> Self {
        Penalty { curvature: 0.0, l1: 0.0, groups: vec![], free: None }
    }

    /// `argmin_u ½(u − v)² + step · penalty(u)` for every coordinate: `factor · soft_threshold(v, threshold)`.
    ///
    /// Returns thresholds and factors. Panics for group norms, which are no sum over coordinates.
    pub(crate) fn prox_by_coordinate(&self, step: f64, n_features: usize) -> (Vec<f64>, Vec<f64>) {
        assert!(self.groups.iter().all(|g| g.1 == 0.0), "group norms do not fall apart into coordinates");
        let of = |j: usize| {
            if self.is_free(j) { (0.0, 1.0) } else { (step * self.l1, 1.0 / (1.0 + step * self.curvature)) }
        };
        (0..n_features).map(of).unzip()
    }

    /// `m_R` of MATH §1: strong convexity of the whole, 0 if any coordinate is not penalised.
    pub fn strong_convexity(&self) -> f64 {
        if self.free.is_some() { 0.0 } else { self.curvature }
    }

    /// Whether there is a part without a gradient.
    pub fn is_rough(&self) -> bool {
        self.l1 > 0.0 || self.groups.iter().any(|g| g.1 > 0.0)
    }

    pub(crate) fn is_free(&self, column: usize) -> bool {
        self.free == Some(column)
    }

    pub(crate) fn smooth_value(&self, x: &[f64]) -> f64 {
        let all: f64 = x.iter().map(|v| v * v).sum();
        0.5 * self.curvature * (all - self.free.map_or(0.0, |j| x[j] * x[j]))
    }

    pub(crate) fn rough_value(&self, x: &[f64]) -> f64 {
        let absolute: f64 = if self.l1 > 0.0 {
            x.iter().map(|v| v.abs()).sum::<f64>() - self.free.map_or(0.0, |j| x[j].abs())
        } else {
            0.0
        };
        self.l1 * absolute + self.groups.iter().map(|(g, w)| w * norm(&x[g.clone()])).sum::<f64>()
    }

    /// A bound on what the subgradients of absolute values and group norms add to the rounding error of
    /// [`Self::smallest_subgradient`], in Euclidean norm.
    ///
    /// An entry `g + w·sign(v)` rounds once, by at most `u(|g| + w)`, and where it matters `|g|` is about `w`. In a group
    /// `w·v/‖v‖` has the norm `w`, and its computed norm, quotient and product are off by a relative `(|group| + 8)u`.
    pub(crate) fn rounding(&self, n_features: usize) -> f64 {
        let absolute = 4.0 * f64::EPSILON * self.l1 * (n_features as f64).sqrt();
        let group = |(range, w): &(Range<usize>, f64)| ((range.len() + 8) as f64 * f64::EPSILON * w).powi(2);
        absolute + self.groups.iter().map(group).sum::<f64>().sqrt()
    }

    /// Columns of the largest group; 0 without groups.
    pub(crate) fn largest_group(&self) -> usize {
        self.groups.iter().map(|g| g.0.len()).max().unwrap_or(0)
    }

    /// Adds the smooth part's gradient.
    pub(crate) fn add_smooth_gradient(&self, x: &[f64], gradient: &mut [f64]) {
        if self.curvature > 0.0 {
            for (j, (g, v)) in gradient.iter_mut().zip(x).enumerate() {
                if !self.is_free(j) {
                    *g += self.curvature * v;
                }
            }
        }
    }

    /// Norm of the smallest element of `smooth_gradient + ∂rough(x)`: zero exactly at the minimiser.
    pub(crate) fn smallest_subgradient(&self, x: &[f64], smooth_gradient: &[f64]) -> f64 {
        let mut sum = 0.0;
        if self.groups.is_empty() {
            for (j, (&g, &v)) in smooth_gradient.iter().zip(x).enumerate() {
                let w = if self.is_free(j) { 0.0 } else { self.l1 };
                let s = if v != 0.0 { g + w * v.signum() } else { (g.abs() - w).max(0.0) };
                sum += s * s;
            }
            return sum.sqrt();
        }
        for (range, w) in &self.groups {
            let (g, v) = (&smooth_gradient[range.clone()], &x[range.clone()]);
            let length = norm(v);
            if length > 0.0 {
                sum += g.iter().zip(v).map(|(g, v)| (g + w * v / length).powi(2)).sum::<f64>();
            } else {
                sum += (norm(g) - w).max(0.0).powi(2);
            }
        }
        if let Some(j) = self.free {
            sum += smooth_gradient[j] * smooth_gradient[j];
        }
        sum.sqrt()
    }

    /// `argmin_u ½‖u − x‖² + step · rough(u)`, in place.
    pub(crate) fn shrink(&self, step: f64, x: &mut [f64]) {
        if self.l1 > 0.0 {
            for (j, v) in x.iter_mut().enumerate() {
                if !self.is_free(j) {
                    *v = soft_threshold(*v, step * self.l1);
                }
            }
        }
        for (range, w) in &self.groups {
            shrink_group(&mut x[range.clone()], step * w);
        }
    }
}

/// `argmin_u ½(u − v)² + t|u|`
pub(crate) fn soft_threshold(v: f64, t: f64) -> f64 {
    if v > t {
        v - t
    } else if v < -t {
        v + t
    } else {
        0.0
    }
}

/// `argmin_u ½‖u − v‖² + t‖u‖`, in place.
pub(crate) fn shrink_group(v: &mut [f64], t: f64) {
    let length = norm(v);
    let factor = if length > t { 1.0 - t / length } else { 0.0 };
    v.iter_mut().for_each(|u| *u *= factor);
}

/// Euclidean norm.
pub(crate) fn norm(v: &[f64]) -> f64 {
    v.iter().map(|u| u * u).sum::<f64>().sqrt()
}

/// Euclidean norm, rounded up.
pub(crate) fn norm_up(v: &[f64]) -> f64 {
    norm(v) * (1.0 + (v.len() + 8) as f64 * f64::EPSILON)
}
