//! The normal distribution and its quantiles, for bounds and thresholds.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use std::f64::consts::FRAC_1_SQRT_2;

/// `Φ(x)`, with a small relative error in the lower tail too.
pub fn normal_distribution(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// `Φ⁻¹(p)` by bisection of [`normal_distribution`]; infinite at 0 and 1.
///
/// Above one half it uses the other tail, where `1 − p` is what counts.
pub fn normal_quantile(p: f64) -> f64 {
    match p {
        p if p.is_nan() => f64::NAN,
        p if p <= 0.0 => f64::NEG_INFINITY,
        p if p >= 1.0 => f64::INFINITY,
        p if p > 0.5 => -normal_quantile(1.0 - p),
        p => {
            let (mut low, mut high) = (-40.0, 0.0);
            while high - low > 1e-14 * (1.0 - low) {
                let middle = 0.5 * (low + high);
                if normal_distribution(middle) < p { low = middle } else { high = middle }
            }
            0.5 * (low + high)
        }
    }
}

/// The normal deviate that a chi-square value with `freedom` degrees stands for, by Wilson and Hilferty's cube root.
///
/// With the thousands of degrees that an audit has, its error is far below a hundredth even five deviations out.
pub(crate) fn chi_square_deviate(value: f64, freedom: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom);
    ((value / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        // 40-digit values, computed with mpmath.
        let known = [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813_6),
            (0.000_5, -3.290_526_731_491_895),
            (1e-10, -6.361_340_902_404_056),
        ];
        for (p, x) in known {
            assert!((normal_quantile(p) - x).abs() < 1e-12, "{p}: {} and {x}", normal_quantile(p));
        }
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    #[test]
    fn chi_square_deviates_are_those_of_tables() {
        // The 0.1 % and 99.9 % points of chi-square with 1,000 degrees: 867.4758 and 1143.9171.
        assert!((chi_square_deviate(867.4758, 1000.0) + 3.0902).abs() < 2e-3);
        assert!((chi_square_deviate(1143.9171, 1000.0) - 3.0902).abs() < 2e-3);
    }
}
