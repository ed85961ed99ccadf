//! Losses — EQUATIONS §1. A loss knows its value, slope and curvature in the margin `t = aᵀx`, and their bounds.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use serde::{Deserialize, Serialize};

use crate::elementary::{exp, ln_1p_unit};
use crate::vector::Simd;

/// Evaluates `$body` with `$shape` the loss's own formulas: the branch on the loss is taken here, once, and not record by record.
macro_rules! with_shape {
    ($loss:expr, $shape:ident => $body:expr) => {
        match *$loss {
            Loss::Logistic => {
                let $shape = LogisticShape;
                $body
            }
            Loss::Hinge => {
                let $shape = HingeShape;
                $body
            }
            Loss::HuberizedHinge { width } => {
                let $shape = HuberizedHingeShape { width };
                $body
            }
            Loss::Huber { width } => {
                let $shape = HuberShape { width };
                $body
            }
            Loss::Squared => {
                let $shape = HuberShape { width: f64::INFINITY };
                $body
            }
            Loss::Quantile { level, width } => {
                let $shape = QuantileShape { level, width };
                $body
            }
            Loss::Poisson { cap } => {
                let $shape = PoissonShape::new(cap);
                $body
            }
        }
    };
}

// After the macro, which it uses.
mod capped;
mod poisson;
mod quantile;

use poisson::PoissonShape;
use quantile::QuantileShape;

/// Per-record loss `ℓ(z, t)` of label `z` and margin `t = aᵀx`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// `ln(1 + e^{−zt})`, logistic regression
    Logistic,
    /// `max(1 − zt, 0)`, the linear support vector machine
    Hinge,
    /// The hinge with its corner rounded over `|1 − zt| ≤ width`
    HuberizedHinge {
        /// Half the length of the rounded part.
        width: f64,
    },
    /// Huber's regression loss of the residual `z − t`, quadratic up to `width`
    Huber {
        /// Where the loss turns from quadratic to linear.
        width: f64,
    },
    /// `½(z − t)²`; its slope has no bound, so it is offered only without privacy
    Squared,
    /// The loss of quantile regression, `max(τ(z − t), (τ − 1)(z − t))`, with its corner rounded over `|z − t| ≤ width`
    Quantile {
        /// `τ`: the part of the labels that is to lie below the margin.
        level: f64,
        /// Half the length of the rounded part.
        width: f64,
    },
    /// Poisson regression of counts `y = Yz` from 0 to `Y`, with the logarithm of the expected count as margin: half the deviance
    Poisson {
        /// `Y`, the upper bound of the label's column; zero until a schema says it ([`Loss::for_label`]).
        cap: f64,
    },
}

impl Loss {
    /// `L₁ ≥ |∂ℓ/∂t|`; `None` if there is no bound, and then there is no privacy either.
    pub fn slope_bound(&self) -> Option<f64> {
        match *self {
            Self::Logistic | Self::Hinge | Self::HuberizedHinge { .. } => Some(1.0),
            Self::Huber { width } => Some(width),
            Self::Squared => None,
            Self::Quantile { level, .. } => Some(level.max(1.0 - level)),
            Self::Poisson { cap } => (cap > 0.0).then_some(cap),
        }
    }

    /// `L₂ ≥ ∂²ℓ/∂t²`; `None` for the hinge, which is not smooth.
    pub fn curvature_bound(&self) -> Option<f64> {
        match *self {
            Self::Logistic => Some(0.25),
            Self::Hinge => None,
            Self::HuberizedHinge { width } => Some(0.5 / width),
            Self::Huber { .. } | Self::Squared => Some(1.0),
            Self::Quantile { width, .. } => Some(0.5 / width),
            Self::Poisson { cap } => Some(cap),
        }
    }

    /// Whether labels are −1 and +1.
    pub fn is_classification(&self) -> bool {
        matches!(self, Self::Logistic | Self::Hinge | Self::HuberizedHinge { .. })
    }

    /// Whether the schema of the records is still to say what the loss is: a loss of counts without its cap bounds nothing.
    pub fn awaits_label(&self) -> bool {
        matches!(*self, Self::Poisson { cap } if cap == 0.0)
    }

    /// The same loss with what it takes from the bounds of the label's column; none if it does not fit them. Of two classes there are no
    /// bounds, and whether a loss is about classes is for others to ask ([`Self::is_classification`]).
    pub fn for_label(self, bounds: Option<(f64, f64)>) -> Option<Self> {
        match (self, bounds) {
            (Self::Poisson { cap }, Some((lower, upper))) => (lower == 0.0
                && (self.awaits_label() || cap == upper))
                .then_some(Self::Poisson { cap: upper }),
            _ => Some(self),
        }
    }

    /// `ℓ(z, t)` of one record with this label and margin.
    pub fn value(&self, label: f64, margin: f64) -> f64 {
        with_shape!(self, shape => shape.value(label, margin))
    }

    /// `∂ℓ/∂t` of one record, between `−L₁` and `L₁` where there is a bound.
    pub(crate) fn slope(&self, label: f64, margin: f64) -> f64 {
        with_shape!(self, shape => shape.slope(label, margin))
    }

    /// `∂²ℓ/∂t²` of one record.
    #[cfg(test)]
    pub(crate) fn curvature(&self, label: f64, margin: f64) -> f64 {
        with_shape!(self, shape => shape.curvature(label, margin))
    }

    /// Writes `ℓ(z_r, t_r)` of every record.
    pub(crate) fn values_into(&self, simd: Simd, labels: &[f64], margins: &[f64], values: &mut [f64]) {
        with_shape!(self, shape => values_into(shape, simd, labels, margins, values));
    }

    /// Replaces every margin `t_r` by `s_r · ∂ℓ/∂t(z_r, t_r)`.
    pub(crate) fn scaled_slopes(&self, simd: Simd, labels: &[f64], scale: &[f64], margins: &mut [f64]) {
        with_shape!(self, shape => scaled_slopes(shape, simd, labels, scale, margins));
    }

    /// Replaces every margin `t_r` by `∂²ℓ/∂t²(z_r, t_r)`.
    pub(crate) fn curvatures(&self, simd: Simd, labels: &[f64], margins: &mut [f64]) {
        with_shape!(self, shape => curvatures(shape, simd, labels, margins));
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Logistic => write!(f, "logistic"),
            Self::Hinge => write!(f, "hinge"),
            Self::HuberizedHinge { width } => write!(f, "huberized-hinge (width {width})"),
            Self::Huber { width } => write!(f, "huber (width {width})"),
            Self::Squared => write!(f, "squared"),
            Self::Quantile { level, width } => write!(f, "quantile (level {level}, width {width})"),
            Self::Poisson { .. } if self.awaits_label() => write!(f, "poisson"),
            Self::Poisson { cap } => write!(f, "poisson (counts up to {cap})"),
        }
    }
}

// The loops over records call these for some dozens of records at a time, so that they themselves are compiled once and not once a
// loss: with the same for machines without wide registers (`unrolled!`), this crate compiles in a third of the time. They are not
// inlined, or there would again be a copy in every loop.

#[inline(never)]
fn values_into(shape: impl LossShape, simd: Simd, labels: &[f64], margins: &[f64], values: &mut [f64]) {
    simd.run(
        #[inline(always)]
        || {
            for ((v, &z), &t) in values.iter_mut().zip(labels).zip(margins) {
                *v = shape.value(z, t);
            }
        },
    )
}

#[inline(never)]
fn scaled_slopes(shape: impl LossShape, simd: Simd, labels: &[f64], scale: &[f64], margins: &mut [f64]) {
    simd.run(
        #[inline(always)]
        || {
            for ((t, &z), &s) in margins.iter_mut().zip(labels).zip(scale) {
                *t = shape.slope(z, *t) * s;
            }
        },
    )
}

#[inline(never)]
fn curvatures(shape: impl LossShape, simd: Simd, labels: &[f64], margins: &mut [f64]) {
    simd.run(
        #[inline(always)]
        || margins.iter_mut().zip(labels).for_each(|(t, &z)| *t = shape.curvature(z, *t)),
    )
}

/// `ℓ`, `∂ℓ/∂t` and `∂²ℓ/∂t²` at one record.
trait LossShape {
    fn value(&self, label: f64, margin: f64) -> f64;
    fn slope(&self, label: f64, margin: f64) -> f64;
    fn curvature(&self, label: f64, margin: f64) -> f64;
}

struct LogisticShape;

impl LossShape for LogisticShape {
    #[inline(always)]
    fn value(&self, label: f64, margin: f64) -> f64 {
        let s = label * margin;
        ln_1p_unit(exp(-s.abs())) + (-s).max(0.0)
    }

    #[inline(always)]
    fn slope(&self, label: f64, margin: f64) -> f64 {
        -label / (1.0 + exp(label * margin))
    }

    #[inline(always)]
    fn curvature(&self, label: f64, margin: f64) -> f64 {
        let e = exp(-(label * margin).abs());
        e / ((1.0 + e) * (1.0 + e))
    }
}

struct HingeShape;

impl LossShape for HingeShape {
    #[inline(always)]
    fn value(&self, label: f64, margin: f64) -> f64 {
        (1.0 - label * margin).max(0.0)
    }

    #[inline(always)]
    fn slope(&self, label: f64, margin: f64) -> f64 {
        if label * margin < 1.0 { -label } else { 0.0 }
    }

    #[inline(always)]
    fn curvature(&self, _label: f64, _margin: f64) -> f64 {
        0.0
    }
}

struct HuberizedHingeShape {
    width: f64,
}

impl LossShape for HuberizedHingeShape {
    #[inline(always)]
    fn value(&self, label: f64, margin: f64) -> f64 {
        let gap = 1.0 - label * margin;
        if gap <= -self.width {
            0.0
        } else if gap >= self.width {
            gap
        } else {
            (gap + self.width) * (gap + self.width) / (4.0 * self.width)
        }
    }

    #[inline(always)]
    fn slope(&self, label: f64, margin: f64) -> f64 {
        let gap = 1.0 - label * margin;
        -label * ((gap + self.width) / (2.0 * self.width)).clamp(0.0, 1.0)
    }

    #[inline(always)]
    fn curvature(&self, label: f64, margin: f64) -> f64 {
        if (1.0 - label * margin).abs() < self.width { 0.5 / self.width } else { 0.0 }
    }
}

/// Huber's loss; an infinite width is the squared loss.
struct HuberShape {
    width: f64,
}

impl LossShape for HuberShape {
    #[inline(always)]
    fn value(&self, label: f64, margin: f64) -> f64 {
        let r = (label - margin).abs();
        if r <= self.width { 0.5 * r * r } else { self.width * (r - 0.5 * self.width) }
    }

    #[inline(always)]
    fn slope(&self, label: f64, margin: f64) -> f64 {
        (margin - label).clamp(-self.width, self.width)
    }

    #[inline(always)]
    fn curvature(&self, label: f64, margin: f64) -> f64 {
        if (label - margin).abs() <= self.width { 1.0 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Loss; 7] = [
        Loss::Logistic,
        Loss::Hinge,
        Loss::HuberizedHinge { width: 0.3 },
        Loss::Huber { width: 0.7 },
        Loss::Squared,
        Loss::Quantile { level: 0.8, width: 0.3 },
        Loss::Poisson { cap: 4.55 },
    ];

    /// Value, slope and curvature.
    fn at(loss: Loss, z: f64, t: f64) -> (f64, f64, f64) {
        (loss.value(z, t), loss.slope(z, t), loss.curvature(z, t))
    }

    /// Margins away from the corners, where every loss has all derivatives.
    fn margins() -> impl Iterator<Item = f64> {
        (-60..=60).map(|k| k as f64 * 0.1 + 0.0137)
    }

    #[test]
    fn slopes_and_curvatures_agree_with_finite_differences() {
        let h = 1e-5;
        for loss in ALL {
            for z in if loss.is_classification() { vec![-1.0, 1.0] } else { vec![-1.0, 0.0, 0.2, 1.0] } {
                for t in margins() {
                    let (_, slope, curvature) = at(loss, z, t);
                    let (up, down) = (at(loss, z, t + h), at(loss, z, t - h));
                    assert!((slope - (up.0 - down.0) / (2.0 * h)).abs() < 1e-8, "{loss} at {z}, {t}");
                    assert!((curvature - (up.1 - down.1) / (2.0 * h)).abs() < 1e-8, "{loss} at {z}, {t}");
                }
            }
        }
    }

    #[test]
    fn declared_bounds_hold_and_are_reached() {
        for loss in ALL {
            let at: Vec<_> = margins().flat_map(|t| [at(loss, 1.0, t), at(loss, -1.0, t)]).collect();
            if let Some(bound) = loss.slope_bound() {
                let worst = at.iter().map(|a| a.1.abs()).fold(0.0, f64::max);
                assert!(worst <= bound && worst > 0.99 * bound, "{loss}: {worst}");
            }
            if let Some(bound) = loss.curvature_bound() {
                let worst = at.iter().map(|a| a.2).fold(0.0, f64::max);
                assert!(worst <= bound && worst > 0.99 * bound, "{loss}: {worst}");
            }
        }
    }

    /// Below the bound of the curvature no slope falls, whatever the label is.
    #[test]
    fn every_loss_is_convex() {
        for loss in ALL {
            for z in [-1e9, -1.0, 0.0, 0.3, 1.0, 1e9] {
                let slopes: Vec<f64> = margins().map(|t| loss.slope(z, t)).collect();
                assert!(slopes.windows(2).all(|pair| pair[0] <= pair[1]), "{loss} at {z}");
                assert!(margins().all(|t| loss.curvature(z, t) >= 0.0), "{loss} at {z}");
            }
        }
    }

    #[test]
    fn no_label_and_no_margin_leads_beyond_the_bounds() {
        for loss in [Loss::Quantile { level: 0.9, width: 1e-3 }, Loss::Poisson { cap: 40.0 }] {
            let (slope, curvature) = (loss.slope_bound().unwrap(), loss.curvature_bound().unwrap());
            for z in [f64::NEG_INFINITY, -1e300, -1.0, 0.0, 0.5, 1.0, 7.0, 1e300, f64::INFINITY] {
                for t in [f64::NEG_INFINITY, -1e300, -800.0, 0.0, 3.6, 3.7, 800.0, 1e300, f64::INFINITY] {
                    if z.is_infinite() && z == t {
                        continue;
                    }
                    let found = (loss.slope(z, t), loss.curvature(z, t));
                    assert!(
                        found.0.abs() <= slope && (0.0..=curvature).contains(&found.1),
                        "{loss} at {z}, {t}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_count_needs_bounds_from_zero() {
        let open = Loss::Poisson { cap: 0.0 };
        assert!(open.awaits_label() && open.slope_bound().is_none());
        assert_eq!(open.for_label(Some((0.0, 12.0))), Some(Loss::Poisson { cap: 12.0 }));
        assert_eq!(
            Loss::Poisson { cap: 12.0 }.for_label(Some((0.0, 12.0))),
            Some(Loss::Poisson { cap: 12.0 })
        );
        for (cap, bounds) in [(0.0, (1.0, 12.0)), (0.0, (-1.0, 12.0)), (11.0, (0.0, 12.0))] {
            assert_eq!(Loss::Poisson { cap }.for_label(Some(bounds)), None);
        }
        assert_eq!(Loss::Logistic.for_label(None), Some(Loss::Logistic));
    }

    #[test]
    fn logistic_is_finite_far_out() {
        for t in [-1e4, -750.0, 0.0, 750.0, 1e4] {
            let (value, slope, curvature) = at(Loss::Logistic, 1.0, t);
            assert!(value.is_finite() && slope.is_finite() && curvature.is_finite());
            assert!(value >= 0.0 && (-1.0..=0.0).contains(&slope));
        }
    }
}
