//! Regularisers — EQUATIONS §1. `strength` is the paper's Λ and multiplies the whole; the intercept is left out.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::FeatureSpace;
use crate::vector::{self, sum_of_squares};
pub(crate) use crate::vector::{norm, norm_up};

/// `R(x)` of EQUATIONS §1. Every agent's objective contains `R(x)/N`.
///
/// Departs from the paper: the paper's §V writes `Λ‖w‖²` inside each record's loss; that is this one with `Λ` replaced
/// by `NΛ`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regularizer {
    /// `R(x) = 0`, no regulariser
    None,
    /// `R(x) = Λ‖x‖²`, the ridge
    L2 {
        /// `Λ ≥ 0`, shared by all sites
        strength: f64,
    },
    /// `R(x) = Λ‖x‖₁`, the lasso
    L1 {
        /// `Λ ≥ 0`, shared by all sites
        strength: f64,
    },
    /// `R(x) = Λ(r‖x‖₁ + (1 − r)‖x‖²)`
    ElasticNet {
        /// `Λ ≥ 0`, shared by all sites
        strength: f64,
        /// r, between 0 and 1
        l1_ratio: f64,
    },
    /// `R(x) = Λ Σ_g √|g| ‖x_g‖₂`, a group for the columns of one source column
    GroupLasso {
        /// `Λ ≥ 0`, shared by all sites
        strength: f64,
    },
}

impl Regularizer {
    /// `R(x)` — EQUATIONS §1.
    pub fn value(&self, space: &FeatureSpace, x: &[f64]) -> f64 {
        RegularizerTerm::new(self, space, 1.0).value(x)
    }
}

impl std::fmt::Display for Regularizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => write!(f, "none"),
            Self::L2 { strength } => write!(f, "{strength}·‖x‖²"),
            Self::L1 { strength } => write!(f, "{strength}·‖x‖₁"),
            Self::ElasticNet { strength, l1_ratio } => {
                write!(f, "{strength}·({l1_ratio}·‖x‖₁ + {}·‖x‖²)", 1.0 - l1_ratio)
            }
            Self::GroupLasso { strength } => write!(f, "{strength}·Σ√|g|·‖x_g‖"),
        }
    }
}

/// `weight · R(x)` over one feature space, as an objective contains it: a smooth part `½·curvature·‖x‖²` and a nonsmooth
/// part of absolute values or group norms.
#[derive(Clone, Debug)]
pub struct RegularizerTerm {
    /// Second derivative of the smooth part in every penalised coordinate.
    pub(crate) curvature: f64,
    /// Weight of each `|x_j|`; 0 if there are no absolute values.
    pub(crate) l1: f64,
    /// Columns and weight of each group norm.
    pub(crate) groups: Vec<(Range<usize>, f64)>,
    /// The one column that is not penalised.
    free: Option<usize>,
}

impl RegularizerTerm {
    /// `weight · R(x)` over the columns of `space`; an intercept among them is not penalised.
    pub fn new(regularizer: &Regularizer, space: &FeatureSpace, weight: f64) -> Self {
        let mut p = Self { curvature: 0.0, l1: 0.0, groups: vec![], free: space.intercept };
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

    /// The term of a problem that is not regularised: zero everywhere.
    pub fn none() -> Self {
        Self { curvature: 0.0, l1: 0.0, groups: vec![], free: None }
    }

    /// `argmin_u ½(u − v)² + step · R(u)` for every coordinate: `factor · soft_threshold(v, threshold)`.
    ///
    /// Returns thresholds and factors. Panics for group norms, which are no sum over coordinates.
    pub(crate) fn prox_by_coordinate(&self, step: f64, n_features: usize) -> (Vec<f64>, Vec<f64>) {
        assert!(self.groups.iter().all(|g| g.1 == 0.0), "group norms do not fall apart into coordinates");
        let of = |j: usize| {
            if self.is_free(j) { (0.0, 1.0) } else { (step * self.l1, 1.0 / (1.0 + step * self.curvature)) }
        };
        (0..n_features).map(of).unzip()
    }

    /// `m_R` of EQUATIONS §1: strong convexity of the whole, 0 if any coordinate is not penalised.
    pub fn strong_convexity(&self) -> f64 {
        if self.free.is_some() { 0.0 } else { self.curvature }
    }

    /// Second derivatives of the smooth part, column by column.
    pub(crate) fn ridge(&self, n_features: usize) -> Vec<f64> {
        (0..n_features).map(|j| if self.is_free(j) { 0.0 } else { self.curvature }).collect()
    }

    /// Whether there is a part without a gradient.
    pub fn is_nonsmooth(&self) -> bool {
        self.l1 > 0.0 || self.groups.iter().any(|g| g.1 > 0.0)
    }

    pub(crate) fn is_free(&self, column: usize) -> bool {
        self.free == Some(column)
    }

    /// `weight · R(x)`
    pub fn value(&self, x: &[f64]) -> f64 {
        self.smooth_value(x) + self.nonsmooth_value(x)
    }

    pub(crate) fn smooth_value(&self, x: &[f64]) -> f64 {
        0.5 * self.curvature * (sum_of_squares(x) - self.free.map_or(0.0, |j| x[j] * x[j]))
    }

    pub(crate) fn nonsmooth_value(&self, x: &[f64]) -> f64 {
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

    /// Adds the smooth part's gradient, `curvature · x` but for the free column.
    pub(crate) fn add_smooth_gradient(&self, x: &[f64], gradient: &mut [f64]) {
        if self.curvature > 0.0 {
            for (j, (g, v)) in gradient.iter_mut().zip(x).enumerate() {
                if !self.is_free(j) {
                    *g += self.curvature * v;
                }
            }
        }
    }

    /// Norm of the smallest element of `smooth_gradient + ∂nonsmooth(x)`: zero exactly at the minimiser.
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

    /// `argmin_u ½‖u − x‖² + step · nonsmooth(u)`, in place.
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
    vector::scale(factor, v);
}
