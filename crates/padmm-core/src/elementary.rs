//! `exp` and `ln(1 + ·)` as straight-line code without branches or calls, so that loops over them run in the machine's
//! vector registers. Each is within a few units in the last place of the true value, as the tests check.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

/// ln 2 in two parts: the first has so few bits that multiples of it are exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Adding this rounds a small number to an integer and leaves that integer in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// `e^x` for `|x| ≤ 700`; beyond, the value at the nearer end.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let rounded = x.mul_add(std::f64::consts::LOG2_E, ROUNDER);
    let n = rounded - ROUNDER;
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    // Taylor's series to r¹³: |r| ≤ 0.347 leaves 5e-18. In pairs, which shortens the chain of dependent operations.
    const C: [f64; 14] = inverse_factorials();
    let r2 = r * r;
    let pair = |k: usize| r.mul_add(C[k + 1], C[k]);
    let r4 = r2 * r2;
    let four = |k: usize| r2.mul_add(pair(k + 2), pair(k));
    let p = r4.mul_add(r4.mul_add(r4.mul_add(pair(12), four(8)), four(4)), four(0));
    let power = f64::from_bits((rounded.to_bits() << 52).wrapping_add(1023 << 52));
    p * power
}

const fn inverse_factorials() -> [f64; 14] {
    let mut c = [1.0; 14];
    let mut k = 1;
    while k < 14 {
        c[k] = c[k - 1] / k as f64;
        k += 1;
    }
    c
}

/// `ln(1 + u)` for `0 ≤ u ≤ 1`.
#[inline(always)]
pub(crate) fn ln_1p_unit(u: f64) -> f64 {
    // Above √2 − 1, ln(1 + u) = ln 2 + ln((1 + u)/2), which brings the argument of the series below to |s| ≤ 0.172.
    let large = u > 0.414_213_562_373_095;
    let s = if large { (u - 1.0) / (u + 3.0) } else { u / (u + 2.0) };
    let q = s * s;
    // 2·artanh(s) = 2s·Σ q^k/(2k+1), to q¹¹.
    let mut sum: f64 = 1.0 / 23.0;
    let mut k = 10;
    while k > 0 {
        sum = sum.mul_add(q, 1.0 / (2 * k + 1) as f64);
        k -= 1;
    }
    let series = 2.0 * s + 2.0 * s * q * sum;
    series + if large { std::f64::consts::LN_2 } else { 0.0 }
}

/// `ln(1 + u)` for `u ≥ 0`.
#[inline(always)]
pub(crate) fn ln_1p(u: f64) -> f64 {
    if u <= 1.0 || !u.is_finite() {
        return if u <= 1.0 { ln_1p_unit(u) } else { u };
    }
    // 1 + u = 2^n (1 + f) with 0 ≤ f < 1. The sum rounds by half a unit, which is nothing beside ln 2.
    let bits = (1.0 + u).to_bits();
    let n = (bits >> 52) as f64 - 1023.0;
    let f = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52) - 1.0;
    n * std::f64::consts::LN_2 + ln_1p_unit(f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_a_few_units_in_the_last_place() {
        let mut worst: f64 = 0.0;
        for k in -700_000..=700_000 {
            let x = f64::from(k) * 1e-3 + 1.7e-4;
            let x = x.clamp(-700.0, 700.0);
            worst = worst.max((exp(x) / x.exp() - 1.0).abs());
        }
        assert!(worst < 4.0 * f64::EPSILON, "{worst:e}");
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-1e9), exp(-700.0));
        assert!(exp(1e9).is_finite());
    }

    #[test]
    fn ln_1p_is_within_a_few_units_in_the_last_place() {
        let mut worst: f64 = 0.0;
        for k in 0..=1_000_000 {
            let u = f64::from(k) * 1e-6;
            let exact = u.ln_1p();
            worst = worst.max((ln_1p_unit(u) - exact).abs() / exact.max(f64::MIN_POSITIVE));
        }
        assert!(worst < 4.0 * f64::EPSILON, "{worst:e}");
        for u in [1e-300, 1e-30, 1e-17] {
            assert_eq!(ln_1p_unit(u), u);
        }
    }

    #[test]
    fn ln_1p_of_large_numbers_too() {
        for k in -3000..10_000 {
            let u = (f64::from(k) * 0.1).exp2() * 1.1;
            if u.is_finite() {
                assert!((ln_1p(u) / u.ln_1p() - 1.0).abs() < 4.0 * f64::EPSILON, "{u:e}");
            }
        }
        assert_eq!(ln_1p(0.0), 0.0);
        assert_eq!(ln_1p(f64::INFINITY), f64::INFINITY);
        assert!(ln_1p(f64::NAN).is_nan());
    }
}
