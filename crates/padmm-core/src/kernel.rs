//! Products with the encoded records: margins, gradients, Hessians. These loops are where the time goes.
//!
//! Records are visited in blocks of [`BLOCK`], and each block's sums are formed before they join the total, so
//! the rounding error of a sum over `n` records grows like `BLOCK + n/BLOCK` in place of `n`. Blocks are cut by
//! record count alone, never by thread count, so results are the same bits however many threads there are.
//!
//! Every loop is compiled for the widest vector registers that the machine turns out to have ([`Simd`]), and for common
//! numbers of categorical columns ([`unrolled`]), but once for all losses: a loss is evaluated for some dozens of records at a time.
//!
//! What these loops compute, without any of that, stands in `kernel/plain.rs`, and `kernel/tests.rs` compares the two. Each special path
//! says what it gains; the numbers are of one thread, from the runs in BENCHMARKS.md or, where a count of instructions
//! is given, from the cases of `.ci/instructions` with and without it.

use std::ops::Range;

use crate::data::{Dataset, FEWEST_RECORDS, LANES, MOST_CELLS, Records};
use crate::loss::Loss;
use crate::vector::{self, Simd, clear};

/// Records whose sums are formed together.
pub(crate) const BLOCK: usize = 512;

/// The same for gradients of `n_features`: more, because a block's sums are cleared and added up column by column.
///
/// Gain: of 10,000 sparse columns a gradient went from 50 to 30 ns a record.
pub(crate) fn gradient_block(n_features: usize) -> usize {
    if n_features < 4 * BLOCK { GRADIENT_BLOCK } else { 2 * GRADIENT_BLOCK }
}

const GRADIENT_BLOCK: usize = 4 * BLOCK;

/// Most records that a loop takes at a time, so that it finds them in the nearest cache when it comes back to them.
///
/// Gain, together with four rows at a time ([`sums_in_lanes`]): 956 to 563 ns a record of 1,000 numbers, 12.1 to 4.5 µs of 10,000.
const PART: usize = 32;
/// Bytes of numbers that stay in that cache beside the sums.
const PART_BYTES: usize = 1 << 14;
/// The sums over numbers of each record of a part, lane by lane.
type PartLanes = [[f64; LANES]; PART];

/// How many hot columns a row has: a constant for small numbers, so that the loop over them is unrolled.
trait HotRows: Copy {
    /// The hot columns of each record in a block.
    fn of<'a>(self, records: &Records<'a>) -> impl Iterator<Item = impl AsRef<[u32]> + 'a>;
}

#[derive(Clone, Copy)]
struct Known<const H: usize>;

impl<const H: usize> HotRows for Known<H> {
    #[inline(always)]
    fn of<'a>(self, records: &Records<'a>) -> impl Iterator<Item = impl AsRef<[u32]> + 'a> {
        records.hot.as_chunks::<H>().0.iter()
    }
}

/// Rows without hot columns, for which there is nothing to cut.
#[derive(Clone, Copy)]
struct NoHot;

impl HotRows for NoHot {
    #[inline(always)]
    fn of<'a>(self, records: &Records<'a>) -> impl Iterator<Item = impl AsRef<[u32]> + 'a> {
        std::iter::repeat_n([], records.labels.len())
    }
}

#[derive(Clone, Copy)]
struct Counted(usize);

impl HotRows for Counted {
    #[inline(always)]
    fn of<'a>(self, records: &Records<'a>) -> impl Iterator<Item = impl AsRef<[u32]> + 'a> {
        let (hot, n) = (records.hot, self.0);
        (0..records.labels.len()).map(move |r| &hot[r * n..][..n])
    }
}

/// Calls `$body` with `$hot` the fitting [`HotRows`], in the registers of `$simd`. A machine without them has one loop for all numbers
/// of hot columns, so that it is not compiled fourteen times over.
///
/// Gain: 37 % fewer instructions in a gradient of Adult's records, whose eight hot columns are crossed to two, and 41 % in one of eight
/// that are not; 34 % in a cold solve.
macro_rules! unrolled {
    ($simd:expr, $n_hot:expr, $hot:ident => $body:expr) => {
        unrolled!(@ $simd, $n_hot, $hot, $body, 1 2 3 4 5 6 7 8 9 10 11 12)
    };
    (@ $simd:expr, $n_hot:expr, $hot:ident, $body:expr, $($n:literal)*) => {
        match ($simd.machine(), $n_hot) {
            (None, n) => { let $hot = Counted(n); $body }
            (Some(machine), 0) => { let $hot = NoHot; machine.vectorize(#[inline(always)] || $body) }
            $((Some(machine), $n) => { let $hot = Known::<$n>; machine.vectorize(#[inline(always)] || $body) })*
            (Some(machine), n) => { let $hot = Counted(n); machine.vectorize(#[inline(always)] || $body) }
        }
    };
}

// After the macro, which they use.
mod gram;
mod models;
#[cfg(test)]
mod plain;
mod prefetch;
#[cfg(test)]
mod tests;

pub(crate) use gram::{GramSums, MANY_NUMBERS, gram};
pub(crate) use models::{MODELS, by_cell, by_feature, margins_of_models, sum_of_logistic_losses};
use prefetch::Prefetch;

/// The rows of numbers of a block, padded.
#[inline(always)]
fn numbers<'a>(records: &Records<'a>, shape: Shape) -> impl Iterator<Item = &'a [[f64; LANES]]> + use<'a> {
    records.numeric.as_chunks::<LANES>().0.chunks_exact(shape.chunks)
}

/// Shape of a row: how many chunks of numbers and how many hot columns it has.
#[derive(Clone, Copy)]
struct Shape {
    chunks: usize,
    n_hot: usize,
}

impl Shape {
    fn of(data: &Dataset) -> Self {
        Self { chunks: data.stride() / LANES, n_hot: data.n_hot() }
    }

    fn stride(&self) -> usize {
        self.chunks * LANES
    }

    /// The parts of some records; a multiple of four each but the last.
    #[inline(always)]
    fn parts<'a>(self, records: Records<'a>) -> impl Iterator<Item = (Range<usize>, Records<'a>)> {
        self.cut(records, (PART_BYTES / (8 * self.stride()) / 4 * 4).clamp(4, PART))
    }

    /// Some records in pieces of `size`, each with its place among them.
    #[inline(always)]
    fn cut<'a>(self, records: Records<'a>, size: usize) -> impl Iterator<Item = (Range<usize>, Records<'a>)> {
        blocks(0..records.labels.len(), size).map(move |range| {
            let piece = Records {
                numeric: &records.numeric[range.start * self.stride()..range.end * self.stride()],
                hot: &records.hot[range.start * self.n_hot..range.end * self.n_hot],
                scale: &records.scale[range.clone()],
                caps: if records.caps.is_empty() { &[] } else { &records.caps[range.clone()] },
                labels: &records.labels[range.clone()],
            };
            (range, piece)
        })
    }
}

/// A point as the loops read it: all its entries, and those that belong to numbers padded with zeros up to the stride.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    numeric: &'a [f64],
    x: &'a [f64],
}

/// `aᵀx` of every record of a part into `out`.
#[inline(always)]
fn margins_of_part(
    hot_rows: impl HotRows,
    shape: Shape,
    part: &Records<'_>,
    At { numeric, x }: At<'_>,
    lanes: &mut PartLanes,
    out: &mut [f64],
) {
    // The sums over numbers first and in memory, because only what is stored four at a time is computed four at a time. With
    // even and odd records apart in `sum_slopes` this took a gradient of 9,000 one-hot records from 9.5 to 8 ns a record.
    let lanes = &mut lanes[..out.len()];
    sums_in_lanes(shape, part, numeric, lanes);
    let rows = lanes.iter().zip(hot_rows.of(part));
    for ((t, &scale), (lanes, hot)) in out.iter_mut().zip(part.scale).zip(rows) {
        let mut sums = [(lanes[0] + lanes[2]) + (lanes[1] + lanes[3]), 0.0];
        for (k, &j) in hot.as_ref().iter().enumerate() {
            sums[k & 1] += x[j as usize];
        }
        *t = (sums[0] + sums[1]) * scale;
    }
}

/// `sum + s·a`, lane by lane.
#[inline(always)]
fn fused(sum: [f64; LANES], s: f64, a: &[f64; LANES]) -> [f64; LANES] {
    std::array::from_fn(|l| s.mul_add(a[l], sum[l]))
}

/// Each record's products of numbers and weights, summed in lanes.
#[inline(always)]
fn sums_in_lanes(shape: Shape, part: &Records<'_>, weights: &[f64], out: &mut [[f64; LANES]]) {
    let (numbers, weights) = (part.numeric.as_chunks::<LANES>().0, weights.as_chunks::<LANES>().0);
    let product = |sum: [f64; LANES], a: &[f64; LANES], w: &[f64; LANES]| -> [f64; LANES] {
        std::array::from_fn(|l| a[l].mul_add(w[l], sum[l]))
    };
    let (fours, last) = out.as_chunks_mut::<4>();
    let (of_fours, of_last) = numbers.split_at(4 * fours.len() * shape.chunks);
    // Four records at once: a sum need not wait for the one before, and a weight is read once for all four.
    for (o, rows) in fours.iter_mut().zip(of_fours.chunks_exact(4 * shape.chunks)) {
        let [a, b, c, d] = four_rows(rows, shape);
        let mut sums = [[0.0; LANES]; 4];
        for ((w, (a, b)), (c, d)) in weights.iter().zip(a.iter().zip(b)).zip(c.iter().zip(d)) {
            sums = [
                product(sums[0], a, w),
                product(sums[1], b, w),
                product(sums[2], c, w),
                product(sums[3], d, w),
            ];
        }
        *o = sums;
    }
    for (o, row) in last.iter_mut().zip(of_last.chunks_exact(shape.chunks)) {
        *o = row.iter().zip(weights).fold([0.0; LANES], |sum, (a, w)| product(sum, a, w));
    }
}

#[inline(always)]
fn four_rows(rows: &[[f64; LANES]], shape: Shape) -> [&[[f64; LANES]]; 4] {
    std::array::from_fn(|r| &rows[r * shape.chunks..][..shape.chunks])
}

/// The numbers' part of `Σ_r f_r a_r`, added to `sums` (padded); the factors `f_r` already contain the row's scale.
#[inline(always)]
fn scatter_numbers(shape: Shape, part: &Records<'_>, factors: &[f64], sums: &mut [f64]) {
    let numbers = part.numeric.as_chunks::<LANES>().0;
    let sums = sums.as_chunks_mut::<LANES>().0;
    if let [o, q] = sums {
        // Five to eight numbers, as Adult and Heart Disease have them. Sums in registers, of even and odd records apart, so that an
        // addition waits for the last but one. Gain: 7 to 10 % fewer instructions in a gradient.
        let (mut even, mut odd) = ((*o, *q), ([0.0; LANES], [0.0; LANES]));
        let (pairs, last) = factors.as_chunks::<2>();
        let (rows, last_row) = numbers.as_chunks::<4>();
        for ([s, t], [a, b, c, d]) in pairs.iter().zip(rows) {
            even = (fused(even.0, *s, a), fused(even.1, *s, b));
            odd = (fused(odd.0, *t, c), fused(odd.1, *t, d));
        }
        if let ([s], [a, b]) = (last, last_row) {
            even = (fused(even.0, *s, a), fused(even.1, *s, b));
        }
        let both = |a: [f64; LANES], b: [f64; LANES]| std::array::from_fn(|l| a[l] + b[l]);
        (*o, *q) = (both(even.0, odd.0), both(even.1, odd.1));
        return;
    }
    let (fours, last) = factors.as_chunks::<4>();
    let (of_fours, of_last) = numbers.split_at(4 * fours.len() * shape.chunks);
    for (s, rows) in fours.iter().zip(of_fours.chunks_exact(4 * shape.chunks)) {
        let [a, b, c, d] = four_rows(rows, shape);
        for ((o, (a, b)), (c, d)) in sums.iter_mut().zip(a.iter().zip(b)).zip(c.iter().zip(d)) {
            *o = fused(fused(fused(fused(*o, s[0], a), s[1], b), s[2], c), s[3], d);
        }
    }
    for (&s, row) in last.iter().zip(of_last.chunks_exact(shape.chunks)) {
        sums.iter_mut().zip(row).for_each(|(o, a)| *o = fused(*o, s, a));
    }
}

/// The blocks of a range of records, of `size` each.
#[inline(always)]
fn blocks(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(size).map(move |start| start..(start + size).min(end))
}

/// Writes `aᵀx` of records `range` into `out`.
pub(crate) fn margins_into(data: &Dataset, range: Range<usize>, at: At<'_>, out: &mut [f64]) {
    let (records, shape) = (data.records(range), Shape::of(data));
    unrolled!(Simd::detect(), shape.n_hot, hot_rows => {
        let mut lanes = [[0.0; LANES]; PART];
        for (range, part) in shape.parts(records) {
            margins_of_part(hot_rows, shape, &part, at, &mut lanes, &mut out[range]);
        }
    })
}

/// `Σ_r ℓ(z_r, t_r)` over given margins, in blocks.
pub(crate) fn sum_of_losses(loss: Loss, labels: &[f64], margins: &[f64]) -> f64 {
    let (simd, mut total) = (Simd::detect(), 0.0);
    let mut losses = [0.0; BLOCK];
    for (labels, margins) in labels.chunks(BLOCK).zip(margins.chunks(BLOCK)) {
        loss.values_into(simd, labels, margins, &mut losses);
        total += losses[..labels.len()].iter().sum::<f64>();
    }
    total
}

/// `Σ_r ℓ(z_r, a_rᵀx)`, in blocks.
pub(crate) fn loss(loss: Loss, data: &Dataset, range: Range<usize>, at: At<'_>) -> f64 {
    let mut total = 0.0;
    let mut margins = [0.0; BLOCK];
    for block in blocks(range, BLOCK) {
        let margins = &mut margins[..block.len()];
        margins_into(data, block.clone(), at, margins);
        let labels = &data.labels()[block.clone()];
        total += match data.caps(block) {
            [] => sum_of_losses(loss, labels, margins),
            caps => loss.sum_of_capped(labels, margins, caps),
        };
    }
    total
}

/// What a gradient at `x` reads in place of `x`, the same for all tasks of a set of records.
#[derive(Default)]
pub(crate) struct Weights {
    /// The head of `x`, padded to the stride.
    numeric: Vec<f64>,
    /// A weight for each cell of the crossed columns, or for each column if there are none.
    hot: Vec<f64>,
}

impl Weights {
    /// The head of `x` alone, for loops that take the rest as it is ([`Self::at`]).
    pub(crate) fn set_head(&mut self, data: &Dataset, x: &[f64]) {
        self.numeric.clear();
        self.numeric.extend_from_slice(&x[..data.n_numeric()]);
        self.numeric.resize(data.stride(), 0.0);
    }

    /// The head that [`Self::set_head`] took, with the rest of the same `x`.
    pub(crate) fn at<'a>(&'a self, x: &'a [f64]) -> At<'a> {
        At { numeric: &self.numeric, x }
    }

    /// Those of `data` at `x`, in the memory of the last ones.
    pub(crate) fn set(&mut self, data: &Dataset, x: &[f64]) {
        self.set_head(data, x);
        self.hot.clear();
        match data.crossed() {
            Some(crossed) => {
                let sum = |columns: &[u32]| columns.iter().map(|&j| x[j as usize]).sum::<f64>();
                self.hot.extend(crossed.columns().map(sum));
            }
            None => self.hot.extend_from_slice(x),
        }
    }
}

/// A task's `Σ_r ℓ'(z_r, a_rᵀx) a_r`, as it is summed.
#[derive(Default)]
pub(crate) struct GradientSums {
    /// By numbers, padded to the stride.
    numeric: Vec<f64>,
    /// By cells of the crossed columns, or by columns if there are none.
    hot: Vec<f64>,
    /// The same of one block.
    block_numeric: Vec<f64>,
    /// The same of one block, of even and odd records apart; zero between blocks, because what empties them is what adds them up.
    block_hot: Vec<[f64; 2]>,
}

impl GradientSums {
    /// Adds those of another task of the same records.
    pub(crate) fn add(&mut self, other: &Self) {
        vector::add(&other.numeric, &mut self.numeric);
        vector::add(&other.hot, &mut self.hot);
    }

    /// Adds them, times `weight`, to the gradient of all columns.
    pub(crate) fn fold(&self, data: &Dataset, weight: f64, gradient: &mut [f64]) {
        vector::add_scaled(weight, &self.numeric[..data.n_numeric()], gradient);
        match data.crossed() {
            Some(crossed) => crossed.fold(&self.hot, weight, gradient),
            None => vector::add_scaled(weight, &self.hot, gradient),
        }
    }
}

/// `Σ_r ℓ'(z_r, a_rᵀx) a_r` of records `range` into `sums`, with the [`Weights`] of `data` at `x`.
pub(crate) fn gradient(
    loss: Loss,
    data: &Dataset,
    range: Range<usize>,
    weights: &Weights,
    sums: &mut GradientSums,
) {
    clear(&mut sums.numeric, data.stride());
    clear(&mut sums.hot, weights.hot.len());
    sums.block_numeric.resize(data.stride(), 0.0);
    sums.block_hot.resize(weights.hot.len(), [0.0; 2]);
    let (records, shape) = match data.crossed() {
        Some(crossed) => {
            // A column's sum has up to MOST_CELLS terms more, which adding every other record apart makes up for.
            const { assert!(GRADIENT_BLOCK / 2 + MOST_CELLS <= GRADIENT_BLOCK && GRADIENT_BLOCK <= FEWEST_RECORDS) }
            let shape = Shape { n_hot: crossed.n_crossed(), ..Shape::of(data) };
            (data.crossed_records(crossed, range), shape)
        }
        None => (data.records(range), Shape::of(data)),
    };
    let block = gradient_block(data.n_features());
    sum_slopes(loss, shape, records, block, Prefetch::of(data), weights.at(&weights.hot), sums);
}

/// The loop of [`gradient`] over blocks of records, into sums that are zero.
///
/// Even and odd records have sums of their own: neighbours often have a hot column in common, and the second would have to wait for
/// the first.
fn sum_slopes(
    loss: Loss,
    shape: Shape,
    records: Records<'_>,
    block: usize,
    prefetch: Prefetch,
    at: At<'_>,
    GradientSums { numeric, hot, block_numeric, block_hot }: &mut GradientSums,
) {
    // As slices: through vectors every sum would first be looked for, because the one before might have moved it.
    let (numeric, hot) = (&mut numeric[..], &mut hot[..]);
    let (block_numeric, block_hot) = (&mut block_numeric[..], &mut block_hot[..]);
    let simd = Simd::detect();
    unrolled!(simd, shape.n_hot, hot_rows => {
        let (mut margins, mut lanes) = ([0.0; PART], [[0.0; LANES]; PART]);
        for (_, block) in shape.cut(records, block) {
            block_numeric.fill(0.0);
            for (range, part) in shape.parts(block) {
                let margins = &mut margins[..range.len()];
                // The next part, a third of it before each step that takes some time.
                let third = |k: usize| range.end + k * range.len() / 3..range.end + (k + 1) * range.len() / 3;
                prefetch.ask(shape, &block, third(0));
                margins_of_part(hot_rows, shape, &part, at, &mut lanes, margins);
                prefetch.ask(shape, &block, third(1));
                match part.caps {
                    [] => loss.scaled_slopes(simd, part.labels, part.scale, margins),
                    caps => loss.capped_slopes(simd, part.labels, part.scale, caps, margins),
                }
                let slopes = &*margins;
                prefetch.ask(shape, &block, third(2));
                scatter_numbers(shape, &part, slopes, block_numeric);
                for (r, (&slope, hot)) in slopes.iter().zip(hot_rows.of(&part)).enumerate() {
                    for &j in hot.as_ref() {
                        block_hot[j as usize][r & 1] += slope;
                    }
                }
            }
            for (sum, block) in hot.iter_mut().zip(block_hot.iter_mut()) {
                *sum += block[0] + block[1];
                *block = [0.0; 2];
            }
            vector::add(block_numeric, numeric);
        }
    })
}

/// `Σ_r d_r (a_rᵀv) a_r` into `out`, with `curvatures` `d_r`: a Hessian–vector product without the Hessian.
pub(crate) fn hessian_vector(
    data: &Dataset,
    range: Range<usize>,
    curvatures: &[f64],
    v: At<'_>,
    GradientSums { numeric, .. }: &mut GradientSums,
    out: &mut [f64],
) {
    let shape = Shape::of(data);
    clear(numeric, data.stride());
    let numeric = &mut numeric[..];
    out.fill(0.0);
    unrolled!(Simd::detect(), shape.n_hot, hot_rows => {
        let (mut factors, mut lanes) = ([0.0; PART], [[0.0; LANES]; PART]);
        for (range, part) in shape.parts(data.records(range)) {
            // First `a_rᵀv`, then what the record is multiplied by.
            let factors = &mut factors[..range.len()];
            margins_of_part(hot_rows, shape, &part, v, &mut lanes, factors);
            for ((f, &d), &s) in factors.iter_mut().zip(&curvatures[range]).zip(part.scale) {
                *f *= d * s;
            }
            scatter_numbers(shape, &part, factors, numeric);
            for (&f, hot) in factors.iter().zip(hot_rows.of(&part)) {
                hot.as_ref().iter().for_each(|&j| out[j as usize] += f);
            }
        }
    });
    vector::add(&numeric[..data.n_numeric()], out);
}

/// `d_r = ℓ''(z_r, a_rᵀx)` of every record into `curvatures`, and `Σ_r d_r a_r∘a_r` into `diagonal`.
pub(crate) fn curvatures(
    loss: Loss,
    data: &Dataset,
    range: Range<usize>,
    at: At<'_>,
    curvatures: &mut [f64],
    diagonal: &mut [f64],
) {
    margins_into(data, range.clone(), at, curvatures);
    let labels = &data.labels()[range.clone()];
    match data.caps(range.clone()) {
        [] => loss.curvatures(Simd::detect(), labels, curvatures),
        caps => loss.capped_curvatures(Simd::detect(), labels, caps, curvatures),
    }
    diagonal.fill(0.0);
    for (r, d) in range.zip(curvatures) {
        let row = data.row(r);
        let weight = *d * row.scale * row.scale;
        diagonal.iter_mut().zip(row.numeric).for_each(|(o, v)| *o += weight * v * v);
        row.hot.iter().for_each(|&j| diagonal[j as usize] += weight);
    }
}
