//! The weighted Gram matrix of records, which is the loss's Hessian.

use std::ops::Range;

use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};

use super::{
    At, BLOCK, Counted, HotRows, Known, NoHot, PART, Shape, blocks, four_rows, fused, margins, wide, zeros,
};
use crate::data::{Columns, Dataset, LANES};
use crate::loss::LossShape;

/// From so many numbers on, their products are a matrix product worth the name.
pub(crate) const MANY_NUMBERS: usize = 32;

/// `Σ_r ℓ''(z_r, a_rᵀx) a_r a_rᵀ` into the upper triangle (row ≤ column) of the row-major `p × p` matrix `out`.
///
/// Hot columns of a record ascend, so every pair lands above the diagonal. What has one hot column at most, the diagonal and the
/// products with numbers, is summed by cells of the joint columns, where there are any: they are fewer.
pub(crate) fn gram<S: LossShape>(
    loss: &S,
    data: &Dataset,
    range: Range<usize>,
    at: At<'_>,
    sums: &mut GramSums,
    out: &mut [f64],
) {
    let (shape, p, n_numeric) = (Shape::of(data), data.n_features(), data.n_numeric());
    out.fill(0.0);
    let cells = data.joint().map(|joint| data.joint_columns(joint, range.clone()).hot);
    let (n_cells, n_joint) = data.joint().map_or((p, shape.n_hot), |j| (j.n_cells(), j.n_joint()));
    sums.clear(shape, n_numeric, n_cells);
    unrolled!(shape.n_hot, hot_rows => {
        let (mut buffer, mut lanes) = ([0.0; BLOCK], [[0.0; LANES]; PART]);
        let start = range.start;
        for block in blocks(range, BLOCK) {
            let first = block.start - start;
            let weights = &mut buffer[..block.len()];
            for (range, part) in shape.parts(data.columns(block.clone())) {
                let t = &mut weights[range.clone()];
                margins(hot_rows, shape, &part, at, &mut lanes, t);
                for ((t, &z), &s) in t.iter_mut().zip(part.labels).zip(part.scale) {
                    *t = loss.curvature(z, *t) * s * s;
                }
                if n_numeric < MANY_NUMBERS {
                    add_few(shape, &part, t, &mut sums.among);
                }
                for (&d, hot) in t.iter().zip(hot_rows.of(&part)) {
                    let hot = hot.as_ref();
                    for (k, &i) in hot.iter().enumerate() {
                        let row = &mut out[i as usize * p..][..p];
                        hot[k + 1..].iter().for_each(|&j| row[j as usize] += d);
                    }
                }
                let own = (first + range.start) * n_joint..(first + range.end) * n_joint;
                sums.add_cells(shape, &part, cells.map_or(part.hot, |cells| &cells[own]), n_joint, t);
            }
            if n_numeric >= MANY_NUMBERS {
                let GramSums { among, weighted, .. } = &mut *sums;
                add_many(shape, &data.columns(block), weights, among.as_flattened_mut(), weighted);
            }
        }
    });
    let mixed = sums.mixed.as_flattened();
    let mut fold = |cell: usize, j: usize| {
        out[j * p + j] += sums.diagonal[cell];
        for i in 0..n_numeric {
            out[i * p + j] += mixed[cell * shape.stride() + i];
        }
    };
    match data.joint() {
        Some(joint) => {
            for (cell, columns) in joint.columns().enumerate() {
                columns.iter().for_each(|&j| fold(cell, j as usize));
            }
        }
        None => (n_numeric..p).for_each(|j| fold(j, j)),
    }
    let among = sums.among.as_flattened();
    for i in 0..n_numeric {
        out[i * p + i..i * p + n_numeric]
            .copy_from_slice(&among[i * shape.stride() + i..i * shape.stride() + n_numeric]);
    }
}

/// Memory for the sums of a Gram matrix.
#[derive(Default)]
pub(crate) struct GramSums {
    /// By cells: weights, and weighted numbers.
    diagonal: Vec<f64>,
    mixed: Vec<[f64; LANES]>,
    /// Products of numbers with numbers. Of few: rows of lanes, from the chunk with the diagonal on; of many: a column-major
    /// lower triangle.
    among: Vec<[f64; LANES]>,
    /// Of many numbers, a block's weighted rows.
    weighted: Vec<f64>,
}

impl GramSums {
    fn clear(&mut self, shape: Shape, n_numeric: usize, n_cells: usize) {
        zeros(&mut self.diagonal, n_cells);
        zeros(&mut self.mixed, n_cells * shape.chunks);
        zeros(&mut self.among, shape.stride() * shape.chunks);
        self.weighted.resize(if n_numeric < MANY_NUMBERS { 0 } else { BLOCK * shape.stride() }, 0.0);
    }

    #[inline(always)]
    fn add_cells(
        &mut self,
        shape: Shape,
        part: &Columns<'_>,
        cells: &[u32],
        n_cells: usize,
        weights: &[f64],
    ) {
        if n_cells == 0 {
            return;
        }
        let numbers = part.numeric.as_chunks::<LANES>().0;
        if shape.chunks == 2 {
            let mixed = self.mixed.as_chunks_mut::<2>().0;
            for ((&d, cells), [a, b]) in
                weights.iter().zip(cells.chunks_exact(n_cells)).zip(numbers.as_chunks::<2>().0)
            {
                for &cell in cells {
                    let [o, q] = &mut mixed[cell as usize];
                    (*o, *q) = (fused(*o, d, a), fused(*q, d, b));
                    self.diagonal[cell as usize] += d;
                }
            }
            return;
        }
        let rows = numbers.chunks_exact(shape.chunks);
        for ((&d, cells), row) in weights.iter().zip(cells.chunks_exact(n_cells)).zip(rows) {
            for &cell in cells {
                self.diagonal[cell as usize] += d;
                let mixed = &mut self.mixed[cell as usize * shape.chunks..][..shape.chunks];
                mixed.iter_mut().zip(row).for_each(|(o, a)| *o = fused(*o, d, a));
            }
        }
    }
}

/// Four records at a time: a sum is read and written once for all four.
#[inline(always)]
fn add_few(shape: Shape, part: &Columns<'_>, weights: &[f64], sums: &mut [[f64; LANES]]) {
    let numbers = part.numeric.as_chunks::<LANES>().0;
    let (fours, last) = weights.as_chunks::<4>();
    let (of_fours, of_last) = numbers.split_at(4 * fours.len() * shape.chunks);
    for (d, rows) in fours.iter().zip(of_fours.chunks_exact(4 * shape.chunks)) {
        let rows = four_rows(rows, shape);
        for (i, sums) in sums.chunks_exact_mut(shape.chunks).enumerate() {
            let (chunk, lane) = (i / LANES, i % LANES);
            let v: [f64; 4] = std::array::from_fn(|r| d[r] * rows[r][chunk][lane]);
            for (c, o) in sums.iter_mut().enumerate().skip(chunk) {
                let add = |sum, r: usize| fused(sum, v[r], &rows[r][c]);
                *o = add(add(add(add(*o, 0), 1), 2), 3);
            }
        }
    }
    for (&d, row) in last.iter().zip(of_last.chunks_exact(shape.chunks)) {
        for (i, sums) in sums.chunks_exact_mut(shape.chunks).enumerate() {
            let v = d * row[i / LANES][i % LANES];
            sums.iter_mut().zip(row).for_each(|(o, a)| *o = fused(*o, v, a));
        }
    }
}

/// The matrix product of a block's rows and weighted rows.
fn add_many(shape: Shape, block: &Columns<'_>, weights: &[f64], sums: &mut [f64], scratch: &mut [f64]) {
    let (stride, n) = (shape.stride(), weights.len());
    let scratch = &mut scratch[..n * stride];
    for ((weighted, row), d) in
        scratch.chunks_exact_mut(stride).zip(block.numeric.chunks_exact(stride)).zip(weights)
    {
        weighted.iter_mut().zip(row).for_each(|(w, v)| *w = d * v);
    }
    // Records are columns here, and a row-major upper triangle is a column-major lower one.
    let weighted = MatRef::from_column_major_slice(scratch, stride, n);
    let rows = MatRef::from_column_major_slice(block.numeric, stride, n).transpose();
    let sums = MatMut::from_column_major_slice_mut(sums, stride, stride);
    matmul(
        sums,
        BlockStructure::TriangularLower,
        Accum::Add,
        weighted,
        BlockStructure::Rectangular,
        rows,
        BlockStructure::Rectangular,
        1.0,
        Par::Seq,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Weights;

    /// Curvature `z²(1 + t²)`, to which nothing in the crate is special.
    struct Bowl;

    impl LossShape for Bowl {
        fn value(&self, z: f64, t: f64) -> f64 {
            z * z * (0.5 + t * t / 12.0) * t * t
        }
        fn slope(&self, z: f64, t: f64) -> f64 {
            z * z * (1.0 + t * t / 3.0) * t
        }
        fn curvature(&self, z: f64, t: f64) -> f64 {
            z * z * (1.0 + t * t)
        }
    }

    fn records(n_numeric: usize, values: &[u32], n: usize) -> Dataset {
        let p = n_numeric + values.iter().sum::<u32>() as usize;
        let mut data = Dataset::new(p, n_numeric, values.len(), 1.5);
        let mut state = 11u64;
        for r in 0..n {
            let numbers: Vec<f64> = (0..n_numeric).map(|k| ((r * (k + 3)) as f64).sin()).collect();
            let mut first = n_numeric as u32;
            let mut hot = vec![];
            for &v in values {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                hot.push(first + (state >> 33) as u32 % v);
                first += v;
            }
            data.push(&numbers, &hot, 1.0 + (r % 3) as f64);
        }
        data
    }

    fn dense_row(data: &Dataset, r: usize) -> Vec<f64> {
        let row = data.row(r);
        let mut dense = vec![0.0; data.n_features()];
        dense[..row.numeric.len()].copy_from_slice(row.numeric);
        row.hot.iter().for_each(|&j| dense[j as usize] = 1.0);
        dense.iter_mut().for_each(|v| *v *= row.scale);
        dense
    }

    /// Few numbers and many, records enough for joint columns and not, so many that they are asked for ahead, no hot column at all; ranges
    /// that end within blocks and parts.
    #[test]
    fn gram_and_gradient_are_the_sums_over_dense_rows() {
        for (n_numeric, values, n) in [
            (0, &[3, 4][..], 700),
            (6, &[2, 5, 7, 6], 2600),
            (11, &[40], 700),
            (40, &[2, 3], 2600),
            (37, &[], 700),
            (6, &[2, 5, 7, 6], 150_000),
        ] {
            let data = records(n_numeric, values, n);
            let p = data.n_features();
            assert_eq!(data.joint().is_some(), n > 2048 && values.len() > 1);
            let x: Vec<f64> = (0..p).map(|j| (j as f64 * 0.7).cos()).collect();
            let range = 13..n - 5;
            let mut found = vec![1.0; p * p];
            let (mut weights, mut slopes, mut gradient) =
                (Weights::default(), Default::default(), vec![0.0; p]);
            weights.set(&data, &x);
            gram(&Bowl, &data, range.clone(), weights.at(&x), &mut GramSums::default(), &mut found);
            super::super::gradient(&Bowl, &data, range.clone(), &weights, &mut slopes);
            slopes.fold(&data, 1.0, &mut gradient);
            let (mut expected, mut expected_gradient) = (vec![0.0; p * p], vec![0.0; p]);
            for r in range {
                let a = dense_row(&data, r);
                let t: f64 = a.iter().zip(&x).map(|(a, x)| a * x).sum();
                let z = data.labels()[r];
                for i in 0..p {
                    expected_gradient[i] += Bowl.slope(z, t) * a[i];
                    (i..p).for_each(|j| expected[i * p + j] += Bowl.curvature(z, t) * a[i] * a[j]);
                }
            }
            for (found, expected) in
                found.iter().chain(&gradient).zip(expected.iter().chain(&expected_gradient))
            {
                assert!(
                    (found - expected).abs() < 1e-12 * (1000 + n) as f64,
                    "{found} against {expected}, {n_numeric} numbers"
                );
            }
        }
    }
}
