//! Quantile regression with a rounded corner.
//!
//! With `u = t − z`, `τ` the level and `h` the width, the slope is that of the pinball loss, `−τ` below the label and `1 − τ` above it,
//! and a straight line between the two where `|u| ≤ h`:
//!
//! ```text
//! ∂ℓ/∂t = clip(u/2h + ½, 0, 1) − τ
//! ℓ     = −τu                         u ≤ −h
//!       = u²/4h + (½ − τ)u + h/4      |u| ≤ h
//!       = (1 − τ)u                    u ≥ h
//! ```
//!
//! Beyond the corner it is the pinball loss itself, and nowhere more than `h/4` above it. The slope never falls, so the loss is convex.

use super::LossShape;

pub(super) struct QuantileShape {
    pub level: f64,
    pub width: f64,
}

impl QuantileShape {
    /// Where the slope passes the middle of the corner by this part of its height, from −½ to ½, the margin minus the label.
    pub(super) fn offset(&self, part: f64) -> f64 {
        2.0 * self.width * part
    }
}

impl LossShape for QuantileShape {
    #[inline(always)]
    fn value(&self, label: f64, margin: f64) -> f64 {
        let u = margin - label;
        let above = if u <= -self.width {
            0.0
        } else if u >= self.width {
            u
        } else {
            (u + self.width) * (u + self.width) / (4.0 * self.width)
        };
        above - self.level * u
    }

    #[inline(always)]
    fn slope(&self, label: f64, margin: f64) -> f64 {
        ((margin - label) / (2.0 * self.width) + 0.5).clamp(0.0, 1.0) - self.level
    }

    #[inline(always)]
    fn curvature(&self, label: f64, margin: f64) -> f64 {
        if (margin - label).abs() < self.width { 0.5 / self.width } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use crate::loss::Loss;

    #[test]
    fn it_is_the_pinball_loss_away_from_the_corner_and_close_to_it_within() {
        for level in [0.1, 0.5, 0.9] {
            let loss = Loss::Quantile { level, width: 0.2 };
            for k in -40..=40 {
                let u = f64::from(k) * 0.05;
                let pinball = (-level * u).max((1.0 - level) * u);
                let off = loss.value(0.4, 0.4 + u) - pinball;
                assert!((-1e-15..=0.05 + 1e-15).contains(&off), "{level}: {u}, {off}");
                assert!(u.abs() < 0.2 - 1e-9 || off.abs() < 1e-15, "{level}: {u}, {off}");
            }
        }
    }
}
