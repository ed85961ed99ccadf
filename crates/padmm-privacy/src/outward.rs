//! Arithmetic whose names say which way it rounds.
//!
//! The basic operations of IEEE 754 are correctly rounded, so the neighbour of a computed result in the named direction is a bound of the
//! true one. `exp`, `ln` and `pow` come from the portable `libm`, whose documented error is below one unit in the last place; they move two
//! neighbours. Results that are exactly zero because an operand is zero stay zero, so that an empty sum costs nothing. NaN stays NaN.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

/// Upper bound of `a + b`.
pub fn add_up(a: f64, b: f64) -> f64 {
    if a == 0.0 {
        b
    } else if b == 0.0 {
        a
    } else {
        (a + b).next_up()
    }
}

/// Lower bound of `a + b`.
pub fn add_down(a: f64, b: f64) -> f64 {
    -add_up(-a, -b)
}

/// Upper bound of `a - b`.
pub fn sub_up(a: f64, b: f64) -> f64 {
    add_up(a, -b)
}

/// Lower bound of `a - b`.
pub fn sub_down(a: f64, b: f64) -> f64 {
    add_down(a, -b)
}

/// Upper bound of `a * b`.
pub fn mul_up(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { a * b } else { (a * b).next_up() }
}

/// Lower bound of `a * b`.
pub fn mul_down(a: f64, b: f64) -> f64 {
    -mul_up(-a, b)
}

/// Upper bound of `a / b`.
pub fn div_up(a: f64, b: f64) -> f64 {
    if a == 0.0 { a / b } else { (a / b).next_up() }
}

/// Lower bound of `a / b`.
pub fn div_down(a: f64, b: f64) -> f64 {
    -div_up(-a, b)
}

/// Upper bound of the square root.
pub fn sqrt_up(x: f64) -> f64 {
    if x == 0.0 { x } else { x.sqrt().next_up() }
}

/// Lower bound of the square root.
pub fn sqrt_down(x: f64) -> f64 {
    if x == 0.0 { x } else { x.sqrt().next_down() }
}

/// Upper bound of `e^x`, two units in the last place above libm's value.
pub fn exp_up(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { libm::exp(x).next_up().next_up() }
}

/// Lower bound of `e^x`, never negative.
pub fn exp_down(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { libm::exp(x).next_down().next_down().max(0.0) }
}

/// Upper bound of the natural logarithm.
pub fn ln_up(x: f64) -> f64 {
    if x == 1.0 { 0.0 } else { libm::log(x).next_up().next_up() }
}

/// Lower bound of the natural logarithm.
pub fn ln_down(x: f64) -> f64 {
    if x == 1.0 { 0.0 } else { libm::log(x).next_down().next_down() }
}

/// Upper bound of `base^exponent` for a positive base.
pub fn pow_up(base: f64, exponent: f64) -> f64 {
    if exponent == 0.0 || base == 1.0 { 1.0 } else { libm::pow(base, exponent).next_up().next_up() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_enclose_and_zero_is_exact() {
        assert!(add_down(0.1, 0.2) < 0.1 + 0.2 && 0.1 + 0.2 < add_up(0.1, 0.2));
        assert!(sub_down(0.3, 0.1) < 0.3 - 0.1 && 0.3 - 0.1 < sub_up(0.3, 0.1));
        assert!(mul_down(0.1, 0.3) < 0.1 * 0.3 && 0.1 * 0.3 < mul_up(0.1, 0.3));
        assert!(mul_down(-0.1, 0.3) < -0.1 * 0.3 && -0.1 * 0.3 < mul_up(-0.1, 0.3));
        assert!(div_down(1.0, 3.0) < 1.0 / 3.0 && 1.0 / 3.0 < div_up(1.0, 3.0));
        assert!(sqrt_down(2.0) < 2f64.sqrt() && 2f64.sqrt() < sqrt_up(2.0));
        assert!(exp_down(1.0) < libm::exp(1.0) && libm::exp(1.0) < exp_up(1.0));
        assert!(ln_down(2.0) < libm::log(2.0) && libm::log(2.0) < ln_up(2.0));
        assert_eq!(
            (add_up(0.0, 0.0), mul_up(0.0, 5.0), div_up(0.0, 3.0), sqrt_up(0.0)),
            (0.0, 0.0, 0.0, 0.0)
        );
        assert_eq!((exp_up(0.0), ln_up(1.0), pow_up(0.5, 0.0)), (1.0, 0.0, 1.0));
        assert_eq!(exp_down(-1e9), 0.0);
        assert!(exp_up(-1e9) > 0.0 && add_up(f64::NAN, 1.0).is_nan());
    }
}
