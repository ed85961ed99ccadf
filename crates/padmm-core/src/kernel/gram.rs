//! The weighted Gram matrix of records, which is the loss's Hessian.

use std::ops::Range;

use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::{Accum, MatMut, MatRef, Par};

use super::{
    At, BLOCK, Counted, HotRows, Known, NoHot, PART, Shape, blocks, four_rows, fused, margins_of_part,
};
use crate::data::{Dataset, LANES, Records};
use crate::loss::Loss;
use crate::vector::{Simd, clear};

/// From so many numbers on, their products are a matrix product worth the name. Gain: 45 % fewer instructions in a cold solve
/// of 60 numbers.
pub(crate) const MANY_NUMBERS: usize = 32;

/// `Σ_r ℓ''(z_r, a_rᵀx) a_r a_rᵀ` into the upper triangle (row ≤ column) of the row-major `p × p` matrix `out`.
///
/// Hot columns of a record ascend, so every pair lands above the diagonal. What has one hot column at most, the diagonal and the
/// products with numbers, is summed by cells of the crossed columns, where there are any: they are fewer. With that and [`add_few`] a
/// cold solve of a fifth of Adult went from 2.5–4.1 ms to 1.6–1.7.
pub(crate) fn gram(
    loss: Loss,
    data: &Dataset,
    range: Range<usize>,
    at: At<'_>,
    sums: &mut GramSums,
    out: &mut [f64],
) {
    let (shape, p, n_numeric) = (Shape::of(data), data.n_features(), data.n_numeric());
    out.fill(0.0);
    let cells = data.crossed().map(|crossed| data.crossed_records(crossed, range.clone()).hot);
    let (n_cells, n_crossed) = data.crossed().map_or((p, shape.n_hot), |j| (j.n_cells(), j.n_crossed()));
    sums.clear(shape, n_numeric, n_cells);
    let simd = Simd::detect();
    unrolled!(simd, shape.n_hot, hot_rows => {
        let (mut weights, mut lanes) = ([0.0; BLOCK], [[0.0; LANES]; PART]);
        let start = range.start;
        for block in blocks(range, BLOCK) {
            let first = block.start - start;
            let weights = &mut weights[..block.len()];
            for (range, part) in shape.parts(data.records(block.clone())) {
                // Margins, then curvatures, then what the record's products are multiplied by.
                let weights = &mut weights[range.clone()];
                margins_of_part(hot_rows, shape, &part, at, &mut lanes, weights);
                match part.caps {
                    [] => loss.curvatures(simd, part.labels, weights),
                    caps => loss.capped_curvatures(simd, part.labels, caps, weights),
                }
                weights.iter_mut().zip(part.scale).for_each(|(w, &s)| *w = *w * s * s);
                if n_numeric < MANY_NUMBERS {
                    add_few(shape, &part, weights, &mut sums.among);
                }
                for (&w, hot) in weights.iter().zip(hot_rows.of(&part)) {
                    let hot = hot.as_ref();
                    for (k, &i) in hot.iter().enumerate() {
                        let row = &mut out[i as usize * p..][..p];
                        hot[k + 1..].iter().for_each(|&j| row[j as usize] += w);
                    }
                }
                let own = (first + range.start) * n_crossed..(first + range.end) * n_crossed;
                sums.add_cells(shape, &part, cells.map_or(part.hot, |cells| &cells[own]), n_crossed, weights);
            }
            if n_numeric >= MANY_NUMBERS {
                let GramSums { among, weighted, .. } = &mut *sums;
                add_many(shape, &data.records(block), weights, among.as_flattened_mut(), weighted);
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
    match data.crossed() {
        Some(crossed) => {
            for (cell, columns) in crossed.columns().enumerate() {
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

/// What a Gram matrix is summed in before it is laid out by columns; kept for its memory.
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
        clear(&mut self.diagonal, n_cells);
        clear(&mut self.mixed, n_cells * shape.chunks);
        clear(&mut self.among, shape.stride() * shape.chunks);
        self.weighted.resize(if n_numeric < MANY_NUMBERS { 0 } else { BLOCK * shape.stride() }, 0.0);
    }

    #[inline(always)]
    fn add_cells(
        &mut self,
        shape: Shape,
        part: &Records<'_>,
        cells: &[u32],
        n_cells: usize,
        weights: &[f64],
    ) {
        if n_cells == 0 {
            return;
        }
        let numbers = part.numeric.as_chunks::<LANES>().0;
        // Five to eight numbers: both chunks of a cell in registers. Gain: 8 to 11 % fewer instructions in a cold solve.
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
fn add_few(shape: Shape, part: &Records<'_>, weights: &[f64], sums: &mut [[f64; LANES]]) {
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
fn add_many(shape: Shape, block: &Records<'_>, weights: &[f64], sums: &mut [f64], scratch: &mut [f64]) {
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
