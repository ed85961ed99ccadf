//! Small dense matrices, in loops whose order of operations is fixed.
//!
//! Sites compute the same public matrices on machines of their own and must find the same bits. Every entry here is a sum in one
//! order, whatever the machine's registers, so nothing is left to a library that chooses its kernels by processor.

use crate::vector::{dot, simd};

/// A square matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Square {
    n: usize,
    values: Vec<f64>,
}

impl Square {
    pub(crate) fn zeros(n: usize) -> Self {
        Self { n, values: vec![0.0; n * n] }
    }

    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// All entries, row by row.
    pub(crate) fn as_slice(&self) -> &[f64] {
        &self.values
    }

    pub(crate) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.n..(i + 1) * self.n]
    }

    pub(crate) fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.values[i * self.n..(i + 1) * self.n]
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.n + j]
    }

    pub(crate) fn set(&mut self, i: usize, j: usize, value: f64) {
        self.values[i * self.n + j] = value;
    }

    pub(crate) fn trace(&self) -> f64 {
        (0..self.n).map(|i| self.at(i, i)).sum()
    }

    /// `self + factor · other`, in place.
    pub(crate) fn add_scaled(&mut self, factor: f64, other: &Self) {
        self.values.iter_mut().zip(&other.values).for_each(|(a, b)| *a += factor * b);
    }

    /// `self + factor · I`, in place.
    pub(crate) fn add_to_diagonal(&mut self, factor: f64) {
        let n = self.n;
        self.values.iter_mut().step_by(n + 1).for_each(|v| *v += factor);
    }

    /// `self + factor · v vᵀ`, in place.
    pub(crate) fn add_outer(&mut self, factor: f64, v: &[f64]) {
        for (i, a) in v.iter().enumerate() {
            let factor = factor * a;
            self.row_mut(i).iter_mut().zip(v).for_each(|(m, b)| *m += factor * b);
        }
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.values.iter_mut().for_each(|v| *v *= factor);
    }

    pub(crate) fn times(&self, v: &[f64]) -> Vec<f64> {
        (0..self.n).map(|i| dot(self.row(i), v)).collect()
    }

    /// `Σ_ij self_ij · other_ij`, which is `tr(self · other)` of symmetric matrices.
    pub(crate) fn inner(&self, other: &Self) -> f64 {
        (0..self.n).map(|i| dot(self.row(i), other.row(i))).sum()
    }

    /// `self · other`; every entry is the sum of its products from the first to the last.
    pub(crate) fn product(&self, other: &Self) -> Self {
        let (n, mut out) = (self.n, Self::zeros(self.n));
        for i in 0..n {
            let (row, factors) = (&mut out.values[i * n..(i + 1) * n], self.row(i));
            simd(
                #[inline(always)]
                || {
                    // Four products before an entry goes back to memory.
                    let (fours, rest) = factors.as_chunks::<4>();
                    let rows = |k: usize| &other.values[k * n..(k + 1) * n];
                    for (k, &[f0, f1, f2, f3]) in fours.iter().enumerate() {
                        let (b0, b1, b2, b3) =
                            (rows(4 * k), rows(4 * k + 1), rows(4 * k + 2), rows(4 * k + 3));
                        let others = b0.iter().zip(b1).zip(b2).zip(b3);
                        for (o, (((b0, b1), b2), b3)) in row.iter_mut().zip(others) {
                            *o = *o + f0 * b0 + f1 * b1 + f2 * b2 + f3 * b3;
                        }
                    }
                    for (k, factor) in rest.iter().enumerate() {
                        let other = rows(4 * fours.len() + k);
                        row.iter_mut().zip(other).for_each(|(o, b)| *o += factor * b);
                    }
                },
            );
        }
        out
    }

    pub(crate) fn transposed(&self) -> Self {
        let mut out = Self::zeros(self.n);
        for i in 0..self.n {
            for j in 0..self.n {
                out.values[j * self.n + i] = self.values[i * self.n + j];
            }
        }
        out
    }

    /// The factor `L` of `self = LLᵀ`; none unless all pivots are positive numbers.
    pub(crate) fn cholesky(&self) -> Option<Lower> {
        let n = self.n;
        let mut l = Self::zeros(n);
        for i in 0..n {
            let (above, below) = l.values.split_at_mut(i * n);
            let row = &mut below[..n];
            for j in 0..i {
                let other = &above[j * n..(j + 1) * n];
                row[j] = (self.at(i, j) - dot(&row[..j], &other[..j])) / other[j];
            }
            let pivot = self.at(i, i) - dot(&row[..i], &row[..i]);
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            row[i] = pivot.sqrt();
        }
        Some(Lower(l))
    }
}

/// A lower triangular matrix with a positive diagonal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lower(Square);

impl Lower {
    /// Row by row, zeros above the diagonal included.
    pub(crate) fn as_slice(&self) -> &[f64] {
        &self.0.values
    }

    /// `L v`
    pub(crate) fn times(&self, v: &[f64]) -> Vec<f64> {
        (0..self.0.n).map(|i| dot(&self.0.row(i)[..=i], &v[..=i])).collect()
    }

    /// `Lᵀ v`
    pub(crate) fn transposed_times(&self, v: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; v.len()];
        for (i, factor) in v.iter().enumerate() {
            out.iter_mut().zip(&self.0.row(i)[..=i]).for_each(|(o, l)| *o += factor * l);
        }
        out
    }

    /// `(LLᵀ)⁻¹ v`
    pub(crate) fn solve(&self, v: &[f64]) -> Vec<f64> {
        let mut x = v.to_vec();
        for i in 0..x.len() {
            let (known, rest) = x.split_at_mut(i);
            rest[0] = (rest[0] - dot(&self.0.row(i)[..i], known)) / self.0.at(i, i);
        }
        for i in (0..x.len()).rev() {
            let (rest, done) = x.split_at_mut(i);
            done[0] /= self.0.at(i, i);
            let factor = done[0];
            rest.iter_mut().zip(self.0.row(i)).for_each(|(o, l)| *o -= factor * l);
        }
        x
    }

    /// `L⁻¹`
    pub(crate) fn inverse(&self) -> Square {
        let n = self.0.n;
        let mut inverse = Square::zeros(n);
        for i in 0..n {
            let (above, below) = inverse.values.split_at_mut(i * n);
            let row = &mut below[..n];
            row[i] = 1.0;
            simd(
                #[inline(always)]
                || {
                    for (k, factor) in self.0.values[i * n..i * n + i].iter().enumerate() {
                        let other = &above[k * n..k * n + k + 1];
                        row.iter_mut().zip(other).for_each(|(o, l)| *o -= factor * l);
                    }
                },
            );
            let pivot = self.0.at(i, i);
            row[..=i].iter_mut().for_each(|o| *o /= pivot);
        }
        inverse
    }

    /// `(LLᵀ)⁻¹`
    pub(crate) fn inverse_of_product(&self) -> Square {
        let inverse = self.inverse();
        inverse.transposed().product(&inverse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `A = GGᵀ + I/10` of an arbitrary `G`.
    fn positive(n: usize) -> Square {
        let mut g = Square::zeros(n);
        for i in 0..n {
            for j in 0..n {
                g.set(i, j, ((i * 7 + j * 3) as f64 * 0.37).sin());
            }
        }
        let mut a = g.product(&g.transposed());
        a.add_to_diagonal(0.1);
        a
    }

    #[test]
    fn a_factor_solves_inverts_and_multiplies_back() {
        for n in [1, 2, 9, 40] {
            let a = positive(n);
            let l = a.cholesky().unwrap();
            let v: Vec<f64> = (0..n).map(|i| (i as f64).cos()).collect();
            let near = |found: &[f64], expected: &[f64]| {
                let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(off < 1e-10, "{n}: {off:e}");
            };
            near(&l.times(&l.transposed_times(&v)), &a.times(&v));
            near(&a.times(&l.solve(&v)), &v);
            near(&l.inverse_of_product().times(&v), &l.solve(&v));
            near(&l.times(&l.inverse().times(&v)), &v);
            let identity = a.product(&l.inverse_of_product());
            assert!(
                (identity.trace() - n as f64).abs() < 1e-10 && (a.inner(&identity) - a.trace()).abs() < 1e-8
            );
        }
    }

    #[test]
    fn what_is_not_positive_has_no_factor() {
        let mut a = positive(3);
        a.add_to_diagonal(-100.0);
        assert!(a.cholesky().is_none());
        let mut a = positive(3);
        a.set(2, 1, f64::NAN);
        assert!(a.cholesky().is_none());
    }
}
