//! Operations on vectors of one length. What is released depends on the last bits of sums, so each function adds up in an order that
//! is part of what it promises.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

/// The machine's widest vector registers, where they are wider than what every machine of its kind has.
///
/// Loops that run in them give the same bits as without: nothing is reordered, and where a product and a sum are fused they are fused in
/// so many words (`mul_add`), which rounds alike on every machine. It is an instruction inside such a loop; outside it may be a call.
///
/// Gain: a gradient of 9,000 records like Adult's takes 121 instructions a record in place of 561, scoring an eighth. Without these
/// registers every `mul_add` is a call.
#[derive(Clone, Copy)]
pub(crate) struct Simd(Option<Machine>);

#[cfg(target_arch = "x86_64")]
pub(crate) type Machine = pulp::x86::V3;

/// Nothing to gain elsewhere: ARM's registers are as wide as they are on all of its 64-bit machines.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
pub(crate) enum Machine {}

#[cfg(not(target_arch = "x86_64"))]
impl Machine {
    #[inline(always)]
    pub(crate) fn vectorize<R>(self, _: impl FnOnce() -> R) -> R {
        match self {}
    }
}

impl Simd {
    /// What this machine has. Asking takes some forty instructions.
    #[inline]
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        return Self(Machine::try_new());
        #[cfg(not(target_arch = "x86_64"))]
        Simd(None)
    }

    pub(crate) fn machine(self) -> Option<Machine> {
        self.0
    }

    /// Runs a loop, which must be marked `#[inline(always)]`, in these registers; compiled without them too, for other machines.
    #[inline(always)]
    pub(crate) fn run<R>(self, body: impl FnOnce() -> R) -> R {
        match self.0 {
            Some(machine) => machine.vectorize(body),
            None => body(),
        }
    }
}

/// Runs a loop in the machine's widest registers; see [`Simd::run`].
#[inline(always)]
pub(crate) fn simd<R>(body: impl FnOnce() -> R) -> R {
    Simd::detect().run(body)
}

/// `⟨a, b⟩` as eight sums of every eighth product, so that an addition need not wait for the last one; then they are added in order.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    const SUMS: usize = 8;
    let ((a, last_a), (b, last_b)) = (a.as_chunks::<SUMS>(), b.as_chunks::<SUMS>());
    let add = |sums: [f64; SUMS], (u, v): (&[f64; SUMS], &[f64; SUMS])| {
        std::array::from_fn(|k| sums[k] + u[k] * v[k])
    };
    let sums = a.iter().zip(b).fold([0.0; SUMS], add);
    sums.iter().sum::<f64>() + dot_in_order(last_a, last_b)
}

/// `⟨a, b⟩` as one sum from the first product to the last.
pub fn dot_in_order(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `‖v‖²` as one sum from the first square to the last.
pub fn sum_of_squares(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum()
}

/// `‖v‖₂` in ordinary arithmetic; [`norm_up`] is a bound.
pub fn norm(v: &[f64]) -> f64 {
    sum_of_squares(v).sqrt()
}

/// A number that `‖v‖₂` does not exceed, however its computation rounds.
pub fn norm_up(v: &[f64]) -> f64 {
    norm(v) * (1.0 + (v.len() + 8) as f64 * f64::EPSILON)
}

/// Makes `out` a zero vector of length `n`, in the memory that it has.
pub fn clear<T: Copy + Default>(out: &mut Vec<T>, n: usize) {
    out.clear();
    out.resize(n, T::default());
}

/// `out ← −v`, entry by entry.
pub fn negate(v: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(v).for_each(|(o, v)| *o = -v);
}

/// `out ← factor · out`, entry by entry.
pub fn scale(factor: f64, out: &mut [f64]) {
    out.iter_mut().for_each(|o| *o *= factor);
}

/// `out ← out + v`, entry by entry.
pub fn add(v: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(v).for_each(|(o, v)| *o += v);
}

/// `out ← out − v`, entry by entry.
pub fn subtract(v: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(v).for_each(|(o, v)| *o -= v);
}

/// `out ← out + factor · v`, each product rounded before it is added.
pub fn add_scaled(factor: f64, v: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(v).for_each(|(o, v)| *o += factor * v);
}

/// `out ← out − factor · v`, each product rounded before it is subtracted.
pub fn subtract_scaled(factor: f64, v: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(v).for_each(|(o, v)| *o -= factor * v);
}

/// `out ← a − b`, entry by entry.
pub fn difference(a: &[f64], b: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(a.iter().zip(b)).for_each(|(o, (a, b))| *o = a - b);
}

/// `out ← x + step · direction`, each product rounded before it is added.
pub fn along(x: &[f64], step: f64, direction: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(x.iter().zip(direction)).for_each(|(o, (x, d))| *o = x + step * d);
}

/// `max_j |a_j − b_j|`; infinite if a difference is not a number, so that no comparison with a tolerance overlooks it.
#[cfg(test)]
pub(crate) fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of one length");
    let size = |(a, b): (&f64, &f64)| if (a - b).is_nan() { f64::INFINITY } else { (a - b).abs() };
    a.iter().zip(b).map(size).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_formed_in_the_promised_order() {
        let (a, b): (Vec<f64>, Vec<f64>) =
            (0..21).map(|k| ((k as f64 * 0.7).cos(), (k as f64 * 1.3).sin())).unzip();
        let mut in_order = 0.0;
        (0..21).for_each(|k| in_order += a[k] * b[k]);
        assert_eq!(dot_in_order(&a, &b), in_order);
        let mut eighth = [0.0; 8];
        (0..16).for_each(|k| eighth[k % 8] += a[k] * b[k]);
        let last = (16..21).fold(0.0, |sum, k| sum + a[k] * b[k]);
        assert_eq!(dot(&a, &b), eighth.iter().fold(0.0, |sum, e| sum + e) + last);
        assert_eq!(norm(&[3.0, -4.0]), 5.0);
        assert!(norm_up(&a) > norm(&a));
    }

    #[test]
    fn each_operation_is_its_formula() {
        let (v, w) = ([1.0, -2.0, 0.5], [4.0, 0.25, -8.0]);
        let from = |f: &dyn Fn(&mut [f64])| {
            let mut out = w;
            f(&mut out);
            out
        };
        assert_eq!(from(&|o| negate(&v, o)), [-1.0, 2.0, -0.5]);
        assert_eq!(from(&|o| scale(2.0, o)), [8.0, 0.5, -16.0]);
        assert_eq!(from(&|o| add(&v, o)), [5.0, -1.75, -7.5]);
        assert_eq!(from(&|o| subtract(&v, o)), [3.0, 2.25, -8.5]);
        assert_eq!(from(&|o| add_scaled(2.0, &v, o)), [6.0, -3.75, -7.0]);
        assert_eq!(from(&|o| subtract_scaled(2.0, &v, o)), [2.0, 4.25, -9.0]);
        assert_eq!(from(&|o| difference(&v, &w, o)), [-3.0, -2.25, 8.5]);
        assert_eq!(from(&|o| along(&v, 2.0, &w, o)), [9.0, -1.5, -15.5]);
        assert_eq!(largest_difference(&v, &w), 8.5);
        assert_eq!(largest_difference(&v, &[1.0, f64::NAN, 0.5]), f64::INFINITY);
    }
}
