//! Absolute values beside a quadratic form: what makes a regulariser's zeros.

/// `½(x − z)ᵀB(x − z)`, as its slopes at the current `x`.
pub(super) trait Quadratic {
    /// `B_jj`
    fn curvature(&self, j: usize) -> f64;

    /// Entry `j` of `B(x − z)`.
    fn slope(&self, j: usize) -> f64;

    /// `x_j` has moved by this much.
    fn moved(&mut self, j: usize, by: f64);
}

/// Sweeps over all coordinates at most; a few dozen are usual.
const MOST_SWEEPS: usize = 500;
/// A sweep that moves no coordinate by more than this, in units of the longest, is the last.
const STILL: f64 = 1e-11;

/// `argmin ½(x − z)ᵀB(x − z) + Σ_j thresholds_j |x_j|`, coordinate by coordinate and always in the same order, so that all sites find
/// the same bits.
pub(super) fn shrink(thresholds: &[f64], z: &[f64], mut form: impl Quadratic) -> Vec<f64> {
    let mut x = z.to_vec();
    let longest = z.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    for _ in 0..MOST_SWEEPS {
        let mut largest: f64 = 0.0;
        for (j, x) in x.iter_mut().enumerate() {
            let curvature = form.curvature(j);
            let free = *x - form.slope(j) / curvature;
            let threshold = thresholds[j] / curvature;
            let by = free - free.clamp(-threshold, threshold) - *x;
            if by != 0.0 {
                form.moved(j, by);
                *x += by;
                largest = largest.max(by.abs());
            }
        }
        if largest <= STILL * longest {
            break;
        }
    }
    // Sums do not always cancel to the last bit.
    x.iter_mut()
        .zip(thresholds)
        .filter(|(x, t)| **t > 0.0 && x.abs() <= STILL * longest)
        .for_each(|(x, _)| *x = 0.0);
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Form {
        matrix: [[f64; 3]; 3],
        slopes: [f64; 3],
    }

    impl Quadratic for Form {
        fn curvature(&self, j: usize) -> f64 {
            self.matrix[j][j]
        }
        fn slope(&self, j: usize) -> f64 {
            self.slopes[j]
        }
        fn moved(&mut self, j: usize, by: f64) {
            self.slopes.iter_mut().zip(self.matrix[j]).for_each(|(s, b)| *s += by * b);
        }
    }

    #[test]
    fn the_minimum_satisfies_its_conditions() {
        let matrix = [[2.0, 0.7, -0.3], [0.7, 1.5, 0.4], [-0.3, 0.4, 1.0]];
        let z = [1.0, -0.2, 0.9];
        for strength in [0.0, 0.1, 0.5, 2.0, 10.0] {
            let thresholds = [strength, strength, 0.0];
            let x = shrink(&thresholds, &z, Form { matrix, slopes: [0.0; 3] });
            for j in 0..3 {
                let slope: f64 = (0..3).map(|k| matrix[j][k] * (x[k] - z[k])).sum();
                if x[j] == 0.0 {
                    assert!(slope.abs() <= thresholds[j] + 1e-9, "{x:?}");
                } else {
                    assert!((slope + thresholds[j] * x[j].signum()).abs() < 1e-9, "{x:?}");
                }
            }
            assert!(strength < 10.0 || (x[0] == 0.0 && x[1] == 0.0), "{x:?}");
        }
    }
}
