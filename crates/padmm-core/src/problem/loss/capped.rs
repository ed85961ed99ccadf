//! A loss whose slope is capped record by record — EQUATIONS §3, "capped slopes".
//!
//! With cap `k = c/‖a‖` the slope is `clip(∂ℓ/∂t, ±k)`. It never falls as `t` grows, so it is the slope of a convex loss: `ℓ` itself up to
//! where its slope is ±k, and from there on the straight line that continues it. A record's gradient is then at most `k‖a‖ ≤ c` long
//! however long the record is, so rows need not be cut to a norm.

use super::{
    HingeShape, HuberShape, HuberizedHingeShape, LogisticShape, Loss, LossShape, PoissonShape, QuantileShape,
};
use crate::vector::Simd;

impl Loss {
    /// The value of one record's capped loss.
    pub fn capped_value(&self, label: f64, margin: f64, cap: f64) -> f64 {
        with_shape!(self, shape => shape.capped_value(label, margin, cap))
    }

    /// Its slope, between `−cap` and `cap`.
    pub(crate) fn capped_slope(&self, label: f64, margin: f64, cap: f64) -> f64 {
        with_shape!(self, shape => shape.capped_slope(label, margin, cap))
    }

    /// Its curvature.
    #[cfg(test)]
    pub(crate) fn capped_curvature(&self, label: f64, margin: f64, cap: f64) -> f64 {
        with_shape!(self, shape => shape.capped_curvature(label, margin, cap))
    }

    /// `Σ_r` of the capped losses of some records.
    pub(crate) fn sum_of_capped(&self, labels: &[f64], margins: &[f64], caps: &[f64]) -> f64 {
        let records = labels.iter().zip(margins).zip(caps);
        with_shape!(self, shape => records.map(|((&z, &t), &k)| shape.capped_value(z, t, k)).sum())
    }

    /// Replaces every margin `t_r` by `s_r · clip(∂ℓ/∂t(z_r, t_r), ±k_r)`.
    pub(crate) fn capped_slopes(
        &self,
        simd: Simd,
        labels: &[f64],
        scale: &[f64],
        caps: &[f64],
        margins: &mut [f64],
    ) {
        with_shape!(self, shape => capped_slopes(shape, simd, labels, scale, caps, margins));
    }

    /// Replaces every margin `t_r` by the curvature of its capped loss.
    pub(crate) fn capped_curvatures(&self, simd: Simd, labels: &[f64], caps: &[f64], margins: &mut [f64]) {
        with_shape!(self, shape => capped_curvatures(shape, simd, labels, caps, margins));
    }

    /// `B`: no record's gradient is longer, for rows of norm at most `row` and slopes capped at `cap/‖a‖`. `None` if there is no bound.
    pub fn gradient_bound(&self, row: f64, cap: Option<f64>) -> Option<f64> {
        let uncapped = self.slope_bound().map(|slope| slope * row);
        match cap {
            None => uncapped,
            Some(cap) => Some(uncapped.map_or(cap, |bound| bound.min(cap))),
        }
    }

    /// A bound on `‖a‖² ∂²ℓ/∂t²` for rows of norm at most `row` and slopes capped at `cap/‖a‖`; `None` for the hinge.
    ///
    /// The logistic loss has curvature `s(1 − s)` at slope `s`, and a capped record has none unless `s < k = c/‖a‖`. Where `k ≤ ½` that
    /// leaves `‖a‖²k(1 − k) = c(‖a‖ − c)`, which grows with the norm; where `k > ½`, `‖a‖²/4 < c²`, which is less.
    pub fn record_curvature(&self, row: f64, cap: Option<f64>) -> Option<f64> {
        let uncapped = self.curvature_bound()? * row * row;
        Some(match (self, cap) {
            (Self::Logistic, Some(cap)) if row >= 2.0 * cap => cap * (row - cap) * (1.0 + 1e-12),
            _ => uncapped,
        })
    }
}

#[inline(never)]
fn capped_slopes(
    shape: impl CappedShape,
    simd: Simd,
    labels: &[f64],
    scale: &[f64],
    caps: &[f64],
    margins: &mut [f64],
) {
    simd.run(
        #[inline(always)]
        || {
            for (((t, &z), &s), &k) in margins.iter_mut().zip(labels).zip(scale).zip(caps) {
                *t = shape.capped_slope(z, *t, k) * s;
            }
        },
    )
}

#[inline(never)]
fn capped_curvatures(shape: impl CappedShape, simd: Simd, labels: &[f64], caps: &[f64], margins: &mut [f64]) {
    simd.run(
        #[inline(always)]
        || {
            for ((t, &z), &k) in margins.iter_mut().zip(labels).zip(caps) {
                *t = shape.capped_curvature(z, *t, k);
            }
        },
    )
}

/// What a cap makes of a loss; every loss has it.
trait CappedShape: LossShape {
    /// The margin on `margin`'s side at which the slope of the loss has size `cap`, which its slope at `margin` exceeds.
    fn corner(&self, label: f64, margin: f64, cap: f64) -> f64;

    #[inline(always)]
    fn capped_slope(&self, label: f64, margin: f64, cap: f64) -> f64 {
        self.slope(label, margin).max(-cap).min(cap)
    }

    #[inline(always)]
    fn capped_curvature(&self, label: f64, margin: f64, cap: f64) -> f64 {
        if self.slope(label, margin).abs() < cap { self.curvature(label, margin) } else { 0.0 }
    }

    #[inline(always)]
    fn capped_value(&self, label: f64, margin: f64, cap: f64) -> f64 {
        if self.slope(label, margin).abs() <= cap {
            return self.value(label, margin);
        }
        let corner = self.corner(label, margin, cap);
        self.value(label, corner) + cap * (margin - corner).abs()
    }
}

impl CappedShape for LogisticShape {
    #[inline(always)]
    fn corner(&self, label: f64, _margin: f64, cap: f64) -> f64 {
        label * ((1.0 - cap) / cap).ln()
    }
}

impl CappedShape for HingeShape {
    #[inline(always)]
    fn corner(&self, label: f64, _margin: f64, _cap: f64) -> f64 {
        label
    }
}

impl CappedShape for HuberizedHingeShape {
    #[inline(always)]
    fn corner(&self, label: f64, _margin: f64, cap: f64) -> f64 {
        label * (1.0 + self.width - 2.0 * self.width * cap)
    }
}

impl CappedShape for HuberShape {
    #[inline(always)]
    fn corner(&self, label: f64, margin: f64, cap: f64) -> f64 {
        label + cap.copysign(margin - label)
    }
}

impl CappedShape for QuantileShape {
    #[inline(always)]
    fn corner(&self, label: f64, margin: f64, cap: f64) -> f64 {
        label + self.offset(self.level - 0.5 + cap.copysign(self.slope(label, margin)))
    }
}

impl CappedShape for PoissonShape {
    #[inline(always)]
    fn corner(&self, label: f64, margin: f64, cap: f64) -> f64 {
        libm::log(self.count(label) + cap.copysign(self.slope(label, margin)))
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
    const CAPS: [f64; 6] = [0.05, 0.3, 0.5, 0.69, 0.9, 2.0];

    /// Margins away from all corners of the losses above under these caps.
    fn margins() -> impl Iterator<Item = f64> {
        (-60..=60).map(|k| f64::from(k) * 0.1 + 0.013_71)
    }

    #[test]
    fn slopes_and_curvatures_agree_with_finite_differences() {
        let h = 1e-5;
        for (loss, cap, z) in ALL.iter().flat_map(|l| CAPS.map(|k| [(l, k, 1.0), (l, k, -1.0)])).flatten() {
            let value = |t: f64| loss.capped_value(z, t, cap);
            let slope = |t: f64| loss.capped_slope(z, t, cap);
            for t in margins() {
                let differences =
                    ((value(t + h) - value(t - h)) / (2.0 * h), (slope(t + h) - slope(t - h)) / (2.0 * h));
                assert!((slope(t) - differences.0).abs() < 1e-8, "{loss} capped at {cap}: {z}, {t}");
                let curvature = loss.capped_curvature(z, t, cap);
                assert!((curvature - differences.1).abs() < 1e-8, "{loss} capped at {cap}: {z}, {t}");
            }
        }
    }

    #[test]
    fn a_capped_loss_is_convex_below_the_loss_and_equal_where_its_slope_is_small() {
        for (loss, cap, z) in ALL.iter().flat_map(|l| CAPS.map(|k| [(l, k, 1.0), (l, k, -1.0)])).flatten() {
            let mut before = f64::NEG_INFINITY;
            for t in margins() {
                let slope = loss.capped_slope(z, t, cap);
                assert!(slope.abs() <= cap && slope >= before, "{loss} capped at {cap}: {z}, {t}");
                before = slope;
                let (capped, plain) = (loss.capped_value(z, t, cap), loss.value(z, t));
                assert!(capped <= plain + 1e-12, "{loss} capped at {cap}: {z}, {t}");
                if loss.slope(z, t).abs() <= cap {
                    assert_eq!((capped, slope), (plain, loss.slope(z, t)));
                }
            }
        }
    }

    /// Close enough together for the short stretch that a low cap leaves of a curved part.
    fn fine() -> impl Iterator<Item = f64> {
        (-3000..=3000).map(|k| f64::from(k) * 0.002 + 0.000_137_1)
    }

    #[test]
    fn no_record_exceeds_the_bounds_and_some_come_near() {
        for loss in ALL {
            for (cap, row) in [(0.5, 0.8), (0.5, 3.0), (0.2, 10.0), (2.0, 1.5)] {
                let (mut gradient, mut curvature) = (0.0f64, 0.0f64);
                for length in (1..=50).map(|k| row * f64::from(k) / 50.0) {
                    for t in fine() {
                        gradient = gradient.max(loss.capped_slope(1.0, t, cap / length).abs() * length);
                        curvature =
                            curvature.max(loss.capped_curvature(1.0, t, cap / length) * length * length);
                    }
                }
                let bound = loss.gradient_bound(row, Some(cap)).expect("a cap bounds every loss");
                assert!(
                    gradient <= bound * (1.0 + 1e-12) && gradient > 0.95 * bound,
                    "{loss}: {gradient}, {bound}"
                );
                if let Some(bound) = loss.record_curvature(row, Some(cap)) {
                    assert!(
                        curvature <= bound * (1.0 + 1e-12) && curvature > 0.9 * bound,
                        "{loss}: {curvature}, {bound}"
                    );
                }
            }
        }
    }
}
