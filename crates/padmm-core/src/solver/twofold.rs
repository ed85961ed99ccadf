//! Numbers of twice the working precision, as unevaluated sums of two doubles (Dekker 1971; Ogita, Rump, Oishi 2005).

/// `hi + lo`, with `hi` the double nearest to the sum once it is [`Twofold::normal`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Twofold {
    pub hi: f64,
    pub lo: f64,
}

impl Twofold {
    pub(super) fn add(&mut self, v: f64) {
        let sum = self.hi + v;
        let moved = sum - self.hi;
        self.lo += (self.hi - (sum - moved)) + (v - moved);
        self.hi = sum;
    }

    /// Adds `a·b`, rounded in twice the precision only.
    pub(super) fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.add(product);
        self.lo += a.mul_add(b, -product);
    }

    /// The same number with all that fits in `hi`.
    pub(super) fn normal(self) -> Self {
        let hi = self.hi + self.lo;
        Self { hi, lo: self.lo - (hi - self.hi) }
    }

    pub(super) fn times(self, factor: Self) -> Self {
        let hi = self.hi * factor.hi;
        let lo = self.hi.mul_add(factor.hi, -hi) + (self.hi * factor.lo + self.lo * factor.hi);
        Self { hi, lo }.normal()
    }

    /// `1 − t / √self`, for a sum of squares above `t²`.
    pub(super) fn one_less_over_root(self, t: f64) -> Self {
        let square = self.normal();
        let root = square.hi.sqrt();
        let root_lo = (root.mul_add(-root, square.hi) + square.lo) / (2.0 * root);
        let quotient = t / root;
        let quotient_lo = (quotient.mul_add(-root, t) - quotient * root_lo) / root;
        let mut factor = Self { hi: 1.0, lo: -quotient_lo };
        factor.add(-quotient);
        factor.normal()
    }
}

impl From<f64> for Twofold {
    fn from(hi: f64) -> Self {
        Self { hi, lo: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_products_keep_what_a_double_loses() {
        let mut sum = Twofold::default();
        for v in [1e16, 1.0, 1e-7, -1e16] {
            sum.add(v);
        }
        assert_eq!(sum.normal(), Twofold::from(1.0 + 1e-7));
        let mut product = Twofold::default();
        let a = 1.0 + f64::EPSILON;
        product.add_product(a, a);
        assert_eq!(product, Twofold { hi: 1.0 + 2.0 * f64::EPSILON, lo: f64::EPSILON * f64::EPSILON });
    }

    /// `√2` to twice the precision, from a table.
    #[test]
    fn roots_and_quotients_have_twice_the_precision() {
        let root = Twofold { hi: std::f64::consts::SQRT_2, lo: -9.667_293_313_452_913e-17 };
        let square = root.times(root);
        assert!((square.hi - 2.0 + square.lo).abs() < 1e-31, "{square:?}");
        // 1 − 1/√2 = 1 − √2/2
        let found = Twofold::from(2.0).one_less_over_root(1.0);
        let mut off = root.times(0.5.into());
        off.add(found.hi);
        off.add(found.lo);
        off.add(-1.0);
        assert!((off.hi + off.lo).abs() < 1e-31, "{off:?}");
    }
}
