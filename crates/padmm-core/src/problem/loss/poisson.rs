//! Poisson regression of counts with a public upper bound.
//!
//! A label `z` from 0 to 1 stands for the count `y = Y·min(z, 1)`, and the margin for the logarithm of the expected count:
//!
//! ```text
//! ∂ℓ/∂t = min(eᵗ, Y) − y
//! ℓ     = eᵗ − yt + (y ln y − y)                   eᵗ ≤ Y
//!       = Y(1 + t − ln Y) − yt + (y ln y − y)      beyond
//! ```
//!
//! What is added in brackets makes the loss zero where the expected count is the label, so that it is half the Poisson deviance. Counts
//! are cut to the range here and not only where records are read: the slope is within `±Y` for every label there is, and sensitivity
//! rests on that.

use super::LossShape;
use crate::elementary::exp;

pub(super) struct PoissonShape {
    cap: f64,
    log_cap: f64,
}

impl PoissonShape {
    #[inline(always)]
    pub(super) fn new(cap: f64) -> Self {
        Self { cap, log_cap: libm::log(cap) }
    }

    /// `y`; a label that is no number counts as zero.
    #[expect(clippy::manual_clamp, reason = "a clamp would hand on what is no number")]
    #[inline(always)]
    pub(super) fn count(&self, label: f64) -> f64 {
        self.cap * label.max(0.0).min(1.0)
    }

    /// `min(eᵗ, Y)`, without ever forming an exponential that is larger.
    #[inline(always)]
    fn expected(&self, margin: f64) -> f64 {
        exp(margin.min(self.log_cap)).min(self.cap)
    }
}

impl LossShape for PoissonShape {
    #[inline(always)]
    fn value(&self, label: f64, margin: f64) -> f64 {
        let count = self.count(label);
        let least = if count > 0.0 { count * (libm::log(count) - 1.0) } else { 0.0 };
        // The second term is what the straight line adds to the exponential that it continues.
        self.expected(margin) + self.cap * (margin - self.log_cap).max(0.0) - count * margin + least
    }

    #[inline(always)]
    fn slope(&self, label: f64, margin: f64) -> f64 {
        self.expected(margin) - self.count(label)
    }

    #[inline(always)]
    fn curvature(&self, _label: f64, margin: f64) -> f64 {
        if margin < self.log_cap { self.expected(margin) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use crate::loss::Loss;

    #[test]
    fn it_is_half_the_deviance_and_zero_at_the_label() {
        let loss = Loss::Poisson { cap: 20.0 };
        for (y, mean) in [(0.0f64, 0.5f64), (1.0, 1.0), (3.0, 7.5), (20.0, 20.0), (12.0, 1e-3)] {
            let deviance = if y > 0.0 { 2.0 * (y * (y / mean).ln() - (y - mean)) } else { 2.0 * mean };
            let found = loss.value(y / 20.0, mean.ln());
            assert!((found - 0.5 * deviance).abs() < 1e-12, "{y}, {mean}: {found}");
        }
        // Beyond the cap it goes on straight, and nothing overflows.
        let line = |t: f64| loss.value(0.25, t);
        assert!((line(800.0) - line(400.0) - 400.0 * 15.0).abs() < 1e-8);
        assert!(line(-1e9).is_finite() && line(1e9).is_finite());
    }
}
