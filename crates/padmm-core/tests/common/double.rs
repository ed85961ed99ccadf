//! Twice the precision, for references.

/// An unevaluated sum of two doubles, for what doubles alone would round away.
#[derive(Clone, Copy)]
pub(crate) struct Double(pub f64, pub f64);

impl Double {
    pub(crate) fn of(v: f64) -> Self {
        Self(v, 0.0)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let sum = self.0 + other.0;
        let part = sum - self.0;
        let error = (self.0 - (sum - part)) + (other.0 - part);
        Self::normal(sum, error + self.1 + other.1)
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let error = self.0.mul_add(other.0, -product);
        Self::normal(product, error + self.0 * other.1 + self.1 * other.0)
    }

    pub(crate) fn inverse(self) -> Self {
        let guess = Self::of(1.0 / self.0);
        // One step of Newton: g(2 − ag).
        guess.times(Self::of(2.0).plus(guess.times(self).times(Self::of(-1.0))))
    }

    /// By halving, the series, and squaring.
    pub(crate) fn exp(self) -> Self {
        let small = self.times(Self::of(1.0 / 1024.0));
        let series = (1..=16).rev().fold(Self::of(1.0), |sum, k| {
            let term = small.times(Self::of(f64::from(k)).inverse());
            Self::of(1.0).plus(term.times(sum))
        });
        (0..10).fold(series, |e, _| e.times(e))
    }

    fn normal(high: f64, low: f64) -> Self {
        let sum = high + low;
        Self(sum, low - (sum - high))
    }
}
