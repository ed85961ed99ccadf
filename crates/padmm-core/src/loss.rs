//! Losses — MATH §1. A loss knows its value, slope and curvature in the margin `t = aᵀx`, and their bounds.

use serde::{Deserialize, Serialize};

use crate::vector::{exp, ln_1p_unit};

/// Per-record loss `ℓ(z, t)` of label `z` and margin `t = aᵀx`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// `ln(1 + e^{−zt})`
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
}

impl Loss {
    /// `L₁ ≥ |∂ℓ/∂t|`; `None` if there is no bound, and then there is no privacy either.
    pub fn slope_bound(&self) -> Option<f64> {
        match *self {
            Loss::Logistic | Loss::Hinge | Loss::HuberizedHinge { .. } => Some(1.0),
            Loss::Huber { width } => Some(width),
            Loss::Squared => None,
        }
    }

    /// `L₂ ≥ ∂²ℓ/∂t²`; `None` for the hinge, which is not smooth.
    pub fn curvature_bound(&self) -> Option<f64> {
        match *self {
            Loss::Logistic => Some(0.25),
            Loss::Hinge => None,
            Loss::HuberizedHinge { width } => Some(0.5 / width),
            Loss::Huber { .. } | Loss::Squared => Some(1.0),
        }
    }

    /// Whether labels are −1 and +1.
    pub fn is_classification(&self) -> bool {
        matches!(self, Loss::Logistic | Loss::Hinge | Loss::HuberizedHinge { .. })
    }

    /// The loss of one record.
    pub fn value(&self, label: f64, margin: f64) -> f64 {
        self.with(Value { label, margin })
    }

    /// Runs a computation that is compiled for each loss, so that inner loops do not branch on the loss.
    pub(crate) fn with<V: LossVisitor>(&self, visitor: V) -> V::Output {
        match *self {
            Loss::Logistic => visitor.visit(&LogisticShape),
            Loss::Hinge => visitor.visit(&HingeShape),
            Loss::HuberizedHinge { width } => visitor.visit(&HuberizedHingeShape { width }),
            Loss::Huber { width } => visitor.visit(&HuberShape { width }),
            Loss::Squared => visitor.visit(&HuberShape { width: f64::INFINITY }),
        }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Loss::Logistic => write!(f, "logistic"),
            Loss::Hinge => write!(f, "hinge"),
            Loss::HuberizedHinge { width } => write!(f, "huberized-hinge (width {width})"),
            Loss::Huber { width } => write!(f, "huber (width {width})"),
            Loss::Squared => write!(f, "squared"),
        }
    }
}

/// A computation that is generic over the loss's shape.
pub(crate) trait LossVisitor {
    type Output;
    fn visit<S: LossShape>(self, shape: &S) -> Self::Output;
}

struct Value {
    label: f64,
    margin: f64,
}

impl LossVisitor for Value {
    type Output = f64;
    fn visit<S: LossShape>(self, shape: &S) -> f64 {
        shape.value(self.label, self.margin)
    }
}

/// `ℓ`, `∂ℓ/∂t` and `∂²ℓ/∂t²` at one record.
pub(crate) trait LossShape: Sync {
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

    const ALL: [Loss; 5] = [
        Loss::Logistic,
        Loss::Hinge,
        Loss::HuberizedHinge { width: 0.3 },
        Loss::Huber { width: 0.7 },
        Loss::Squared,
    ];

    struct At(f64, f64);
    impl LossVisitor for At {
        type Output = (f64, f64, f64);
        fn visit<S: LossShape>(self, s: &S) -> Self::Output {
            (s.value(self.0, self.1), s.slope(self.0, self.1), s.curvature(self.0, self.1))
        }
    }

    /// Margins away from the corners, where every loss has all derivatives.
    fn margins() -> impl Iterator<Item = f64> {
        (-60..=60).map(|k| k as f64 * 0.1 + 0.0137)
    }

    #[test]
    fn slopes_and_curvatures_agree_with_finite_differences() {
        let h = 1e-5;
        for loss in ALL {
            for z in [-1.0, 1.0] {
                for t in margins() {
                    let (_, slope, curvature) = loss.with(At(z, t));
                    let (up, down) = (loss.with(At(z, t + h)), loss.with(At(z, t - h)));
                    assert!((slope - (up.0 - down.0) / (2.0 * h)).abs() < 1e-8, "{loss} at {z}, {t}");
                    assert!((curvature - (up.1 - down.1) / (2.0 * h)).abs() < 1e-8, "{loss} at {z}, {t}");
                }
            }
        }
    }

    #[test]
    fn declared_bounds_hold_and_are_reached() {
        for loss in ALL {
            let at: Vec<_> =
                margins().flat_map(|t| [loss.with(At(1.0, t)), loss.with(At(-1.0, t))]).collect();
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

    #[test]
    fn logistic_is_finite_far_out() {
        for t in [-1e4, -750.0, 0.0, 750.0, 1e4] {
            let (value, slope, curvature) = Loss::Logistic.with(At(1.0, t));
            assert!(value.is_finite() && slope.is_finite() && curvature.is_finite());
            assert!(value >= 0.0 && (-1.0..=0.0).contains(&slope));
        }
    }
}
