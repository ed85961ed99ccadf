//! Twice the precision, for references.

/// An unevaluated sum of two doubles, for what doubles alone would round away.
#[derive(Clone, Copy)]
pub struct Double(pub f64, pub f64);

impl Double {
    pub fn of(v: f64) -> Self {
        Double(v, 0.0)
    }

    pub fn plus(self, other: Double) -> Self {
        let sum = self.0 + other.0;
        let part = sum - self.0;
        let error = (self.0 - (sum - part)) + (other.0 - part);
        Self::normal(sum, error + self.1 + other.1)
    }

    pub fn times(self, other: Double) -> Self {
        let product = self.0 * other.0;
        let error = self.0.mul_add(other.0, -product);
        Self::normal(product, error + self.0 * other.1 + self.1 * other.0)
    }

    pub fn inverse(self) -> Self {
        let guess = Double::of(1.0 / self.0);
        // One step of Newton: g(2 − ag).
        guess.times(Double::of(2.0).plus(guess.times(self).times(Double::of(-1.0))))
    }

    /// By halving, the series, and squaring.
    pub fn exp(self) -> Self {
        let small = self.times(Double::of(1.0 / 1024.0));
        let series = (1..=16).rev().fold(Double::of(1.0), |sum, k| {
            let term = small.times(Double::of(f64::from(k)).inverse());
            Double::of(1.0).plus(term.times(sum))
        });
        (0..10).fold(series, |e, _| e.times(e))
    }

    fn normal(high: f64, low: f64) -> Self {
        let sum = high + low;
        Double(sum, low - (sum - high))
    }
}
