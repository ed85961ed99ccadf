use super::*;
use crate::data::FeatureSpace;
use crate::regularizer::Regularizer;

/// An unevaluated sum of two doubles, for what doubles alone would round away.
#[derive(Clone, Copy)]
struct Double(f64, f64);

impl Double {
    fn of(v: f64) -> Self {
        Double(v, 0.0)
    }

    fn plus(self, other: Double) -> Self {
        let sum = self.0 + other.0;
        let part = sum - self.0;
        let error = (self.0 - (sum - part)) + (other.0 - part);
        Self::normal(sum, error + self.1 + other.1)
    }

    fn times(self, other: Double) -> Self {
        let product = self.0 * other.0;
        let error = self.0.mul_add(other.0, -product);
        Self::normal(product, error + self.0 * other.1 + self.1 * other.0)
    }

    fn inverse(self) -> Self {
        let guess = Double::of(1.0 / self.0);
        // One step of Newton: g(2 − ag).
        guess.times(Double::of(2.0).plus(guess.times(self).times(Double::of(-1.0))))
    }

    /// By halving, the series, and squaring.
    fn exp(self) -> Self {
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

/// What a handful of records' gradient is, to some 30 digits.
fn gradient(data: &Dataset, x: &[f64], linear: &[f64], quadratic: f64) -> Vec<Double> {
    let inverse_n = Double::of(data.n_records() as f64).inverse();
    let mut gradient: Vec<Double> = x
        .iter()
        .zip(linear)
        .map(|(&x, &l)| Double::of(quadratic).times(Double::of(x)).plus(Double::of(l)))
        .collect();
    for row in data.rows() {
        let scale = Double::of(row.scale);
        let mut a = vec![Double::of(0.0); x.len()];
        row.numeric.iter().enumerate().for_each(|(j, &v)| a[j] = Double::of(v).times(scale));
        row.hot.iter().for_each(|&j| a[j as usize] = scale);
        let margin = a.iter().zip(x).fold(Double::of(0.0), |sum, (a, &x)| sum.plus(a.times(Double::of(x))));
        let error = margin.times(Double::of(row.label)).exp().plus(Double::of(1.0)).inverse();
        let slope = error.times(Double::of(-row.label)).times(inverse_n);
        gradient.iter_mut().zip(&a).for_each(|(g, a)| *g = g.plus(a.times(slope)));
    }
    gradient
}

/// The certificate of few records has little room beside the rounding of their own operations.
#[test]
fn the_bound_on_rounding_holds_for_a_handful_of_records() {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let mut closest = 0.0f64;
    for case in 0..3000 {
        let (n, n_numeric) = (1 + case % 12, 1 + case % 5);
        let values = if case % 3 == 0 { 0 } else { 4 };
        let p = n_numeric + values;
        let mut data = Dataset::new(p, n_numeric, values.min(1), 1.0);
        for _ in 0..n {
            let numbers: Vec<f64> = (0..n_numeric).map(|_| 2.0 * uniform()).collect();
            let hot = n_numeric as u32 + (2.0 * (1.0 + uniform())) as u32;
            data.push(&numbers, &[hot][..values.min(1)], uniform().signum());
        }
        let size = [0.1, 1.0, 8.0][case % 7 % 3];
        let x: Vec<f64> = (0..p).map(|_| size * uniform()).collect();
        let linear: Vec<f64> = (0..p).map(|_| 0.3 * uniform()).collect();
        let penalty = Penalty::new(&Regularizer::None, &FeatureSpace::numeric(p), 1.0);
        let parts = [Part::mean(&data)];
        let objective = Objective::new(&parts, Loss::Logistic, &penalty, &linear, 0.05);
        let mut found = vec![0.0; p];
        objective.gradient(&x, &mut found, &mut ObjectiveBuffers::default());
        let expected = gradient(&data, &x, &linear, 0.05);
        let off: Vec<f64> = expected.iter().zip(&found).map(|(e, &f)| e.plus(Double::of(-f)).0).collect();
        let bound = objective.gradient_rounding(&x);
        assert!(norm(&off) <= bound, "case {case}: off by {:e}, bound {bound:e}", norm(&off));
        closest = closest.max(norm(&off) / bound);
    }
    // The reference sees the rounding that is bounded: it is not the doubles again.
    assert!(closest > 0.02, "{closest}");
}
