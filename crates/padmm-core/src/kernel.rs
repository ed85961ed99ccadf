//! Products with the encoded records: margins, gradients, Hessians. These loops are where the time goes.
//!
//! Records are visited in blocks of [`BLOCK`], and each block's sums are formed before they join the total, so
//! the rounding error of a sum over `n` records grows like `BLOCK + n/BLOCK` in place of `n`. Blocks are cut by
//! record count alone, never by thread count, so results are the same bits however many threads there are.
//!
//! Every loop is compiled for the widest vector registers that the machine turns out to have ([`wide`]), and for common
//! numbers of categorical columns ([`unrolled`]).

use std::ops::Range;

use crate::data::{Columns, Dataset, FEWEST_RECORDS, LANES, MOST_CELLS};
use crate::loss::LossShape;

/// Records whose sums are formed together.
pub(crate) const BLOCK: usize = 512;

/// The same for gradients of `n_features`: more, because a block's sums are cleared and added up column by column.
pub(crate) fn gradient_block(n_features: usize) -> usize {
    if n_features < 4 * BLOCK { GRADIENT_BLOCK } else { 2 * GRADIENT_BLOCK }
}

const GRADIENT_BLOCK: usize = 4 * BLOCK;

/// Most records that a loop takes at a time, so that it finds them in the nearest cache when it comes back to them.
const PART: usize = 32;
/// Bytes of numbers that stay there.
const PART_BYTES: usize = 1 << 14;
/// A part's sums in lanes.
type PartLanes = [[f64; LANES]; PART];

/// Runs a loop with the machine's widest vector registers. Results are the same bits as without: nothing is reordered, and where
/// a product and a sum are fused they are fused in so many words (`mul_add`), which rounds alike on every machine. It is an
/// instruction inside such a loop, and outside it may be a call.
#[inline(always)]
pub(crate) fn wide<R>(body: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(body)
}

/// How many hot columns a row has: a constant for small numbers, so that the loop over them is unrolled.
trait HotRows: Copy {
    /// The rows of a block.
    fn of<'a>(self, columns: &Columns<'a>) -> impl Iterator<Item = impl AsRef<[u32]> + 'a>;
}

#[derive(Clone, Copy)]
struct Known<const H: usize>;

impl<const H: usize> HotRows for Known<H> {
    #[inline(always)]
    fn of<'a>(self, columns: &Columns<'a>) -> impl Iterator<Item = impl AsRef<[u32]> + 'a> {
        columns.hot.as_chunks::<H>().0.iter()
    }
}

/// No hot columns.
#[derive(Clone, Copy)]
struct NoHot;

impl HotRows for NoHot {
    #[inline(always)]
    fn of<'a>(self, columns: &Columns<'a>) -> impl Iterator<Item = impl AsRef<[u32]> + 'a> {
        std::iter::repeat_n([], columns.labels.len())
    }
}

#[derive(Clone, Copy)]
struct Counted(usize);

impl HotRows for Counted {
    #[inline(always)]
    fn of<'a>(self, columns: &Columns<'a>) -> impl Iterator<Item = impl AsRef<[u32]> + 'a> {
        let (hot, n) = (columns.hot, self.0);
        (0..columns.labels.len()).map(move |r| &hot[r * n..][..n])
    }
}

/// Calls `$body` with `$hot` the fitting [`HotRows`], in the machine's widest registers.
macro_rules! unrolled {
    ($n_hot:expr, $hot:ident => $body:expr) => {
        unrolled!(@ $n_hot, $hot, $body, 1 2 3 4 5 6 7 8 9 10 11 12)
    };
    (@ $n_hot:expr, $hot:ident, $body:expr, $($n:literal)*) => {
        match $n_hot {
            0 => { let $hot = NoHot; wide(#[inline(always)] || $body) }
            $($n => { let $hot = Known::<$n>; wide(#[inline(always)] || $body) })*
            n => { let $hot = Counted(n); wide(#[inline(always)] || $body) }
        }
    };
}

// After the macro, which they use.
mod ahead;
mod gram;
mod models;

use ahead::Ahead;
pub(crate) use gram::{GramSums, MANY_NUMBERS, gram};
pub(crate) use models::{MODELS, by_cell, by_feature, margins_of_models, sum_of_logistic_losses};

/// The rows of numbers of a block, padded.
#[inline(always)]
fn numbers<'a>(columns: &Columns<'a>, shape: Shape) -> impl Iterator<Item = &'a [[f64; LANES]]> + use<'a> {
    columns.numeric.as_chunks::<LANES>().0.chunks_exact(shape.chunks)
}

/// Shape of a row: how many chunks of numbers and how many hot columns it has.
#[derive(Clone, Copy)]
struct Shape {
    chunks: usize,
    n_hot: usize,
}

impl Shape {
    fn of(data: &Dataset) -> Self {
        Shape { chunks: data.stride() / LANES, n_hot: data.n_hot() }
    }

    fn stride(&self) -> usize {
        self.chunks * LANES
    }

    /// The parts of some records; a multiple of four each but the last.
    #[inline(always)]
    fn parts<'a>(self, columns: Columns<'a>) -> impl Iterator<Item = (Range<usize>, Columns<'a>)> {
        let size = (PART_BYTES / (8 * self.stride()) / 4 * 4).clamp(4, PART);
        blocks(0..columns.labels.len(), size).map(move |range| {
            let part = Columns {
                numeric: &columns.numeric[range.start * self.stride()..range.end * self.stride()],
                hot: &columns.hot[range.start * self.n_hot..range.end * self.n_hot],
                scale: &columns.scale[range.clone()],
                labels: &columns.labels[range.clone()],
            };
            (range, part)
        })
    }
}

/// A point as the loops read it: all its entries, and those that belong to numbers padded with zeros up to the stride.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    dense: &'a [f64],
    x: &'a [f64],
}

/// `aᵀx` of every record of a part.
#[inline(always)]
fn margins(
    hot_rows: impl HotRows,
    shape: Shape,
    columns: &Columns<'_>,
    At { dense, x }: At<'_>,
    lanes: &mut PartLanes,
    out: &mut [f64],
) {
    // The sums over numbers first and in memory, because only what is stored four at a time is computed four at a time.
    let lanes = &mut lanes[..out.len()];
    sums_in_lanes(shape, columns, dense, lanes);
    let rows = lanes.iter().zip(hot_rows.of(columns));
    for ((t, &scale), (lanes, hot)) in out.iter_mut().zip(columns.scale).zip(rows) {
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
fn sums_in_lanes(shape: Shape, columns: &Columns<'_>, dense: &[f64], out: &mut [[f64; LANES]]) {
    let (numbers, weights) = (columns.numeric.as_chunks::<LANES>().0, dense.as_chunks::<LANES>().0);
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

/// The numbers' part of `Σ_r v_r a_r`, added to `dense` (padded); `v` already contains the row's scale.
#[inline(always)]
fn scatter_numbers(shape: Shape, columns: &Columns<'_>, v: &[f64], dense: &mut [f64]) {
    let numbers = columns.numeric.as_chunks::<LANES>().0;
    let dense = dense.as_chunks_mut::<LANES>().0;
    if let [o, q] = dense {
        // Sums in registers, of even and odd records apart, so that an addition waits for the last but one.
        let (mut even, mut odd) = ((*o, *q), ([0.0; LANES], [0.0; LANES]));
        let (pairs, last) = v.as_chunks::<2>();
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
    let (fours, last) = v.as_chunks::<4>();
    let (of_fours, of_last) = numbers.split_at(4 * fours.len() * shape.chunks);
    for (s, rows) in fours.iter().zip(of_fours.chunks_exact(4 * shape.chunks)) {
        let [a, b, c, d] = four_rows(rows, shape);
        for ((o, (a, b)), (c, d)) in dense.iter_mut().zip(a.iter().zip(b)).zip(c.iter().zip(d)) {
            *o = fused(fused(fused(fused(*o, s[0], a), s[1], b), s[2], c), s[3], d);
        }
    }
    for (&s, row) in last.iter().zip(of_last.chunks_exact(shape.chunks)) {
        dense.iter_mut().zip(row).for_each(|(o, a)| *o = fused(*o, s, a));
    }
}

/// Makes `sums` so many zeros, in the memory that it has.
fn zeros<T: Copy + Default>(sums: &mut Vec<T>, n: usize) {
    sums.clear();
    sums.resize(n, T::default());
}

/// The blocks of a range of records, of `size` each.
#[inline(always)]
fn blocks(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(size).map(move |start| start..(start + size).min(end))
}

/// Writes `aᵀx` of records `range` into `out`.
pub(crate) fn margins_into(data: &Dataset, range: Range<usize>, at: At<'_>, out: &mut [f64]) {
    let (columns, shape) = (data.columns(range), Shape::of(data));
    unrolled!(shape.n_hot, hot_rows => {
        let mut lanes = [[0.0; LANES]; PART];
        for (range, part) in shape.parts(columns) {
            margins(hot_rows, shape, &part, at, &mut lanes, &mut out[range]);
        }
    })
}

/// `Σ_r ℓ(z_r, t_r)` over given margins, in blocks.
pub(crate) fn sum_of_losses<S: LossShape>(shape: &S, labels: &[f64], margins: &[f64]) -> f64 {
    wide(
        #[inline(always)]
        || {
            let mut total = 0.0;
            let mut values = [0.0; BLOCK];
            for (labels, margins) in labels.chunks(BLOCK).zip(margins.chunks(BLOCK)) {
                for ((v, &z), &t) in values.iter_mut().zip(labels).zip(margins) {
                    *v = shape.value(z, t);
                }
                total += values[..labels.len()].iter().sum::<f64>();
            }
            total
        },
    )
}

/// `Σ_r ℓ(z_r, a_rᵀx)`.
pub(crate) fn loss<S: LossShape>(shape: &S, data: &Dataset, range: Range<usize>, at: At<'_>) -> f64 {
    let mut total = 0.0;
    let mut buffer = [0.0; BLOCK];
    for block in blocks(range, BLOCK) {
        let t = &mut buffer[..block.len()];
        margins_into(data, block.clone(), at, t);
        total += sum_of_losses(shape, &data.labels()[block], t);
    }
    total
}

/// What a gradient at `x` reads in place of `x`, the same for all tasks of a set of records: the head of `x` padded, and a weight for
/// each cell of the joint columns, or for each column if there are none.
#[derive(Default)]
pub(crate) struct Weights {
    dense: Vec<f64>,
    hot: Vec<f64>,
}

impl Weights {
    /// The head of `x` alone, for loops that take the rest as it is ([`Self::at`]).
    pub(crate) fn set_head(&mut self, data: &Dataset, x: &[f64]) {
        self.dense.clear();
        self.dense.extend_from_slice(&x[..data.n_numeric()]);
        self.dense.resize(data.stride(), 0.0);
    }

    /// With the `x` of [`Self::set_head`].
    pub(crate) fn at<'a>(&'a self, x: &'a [f64]) -> At<'a> {
        At { dense: &self.dense, x }
    }

    /// Those of `data` at `x`, in the memory of the last ones.
    pub(crate) fn set(&mut self, data: &Dataset, x: &[f64]) {
        self.set_head(data, x);
        self.hot.clear();
        match data.joint() {
            Some(joint) => {
                let sum = |columns: &[u32]| columns.iter().map(|&j| x[j as usize]).sum::<f64>();
                self.hot.extend(joint.columns().map(sum));
            }
            None => self.hot.extend_from_slice(x),
        }
    }
}

/// A task's `Σ_r ℓ'(z_r, a_rᵀx) a_r`, as it is summed: by numbers, and by cells or columns.
#[derive(Default)]
pub(crate) struct Slopes {
    dense: Vec<f64>,
    hot: Vec<f64>,
    /// Memory for one block's sums.
    dense_scratch: Vec<f64>,
    scratch: Vec<[f64; 2]>,
}

impl Slopes {
    /// Adds those of another task of the same records.
    pub(crate) fn add(&mut self, other: &Slopes) {
        self.dense.iter_mut().zip(&other.dense).for_each(|(a, b)| *a += b);
        self.hot.iter_mut().zip(&other.hot).for_each(|(a, b)| *a += b);
    }

    /// Adds them, times `weight`, to the gradient of all columns.
    pub(crate) fn fold(&self, data: &Dataset, weight: f64, gradient: &mut [f64]) {
        gradient.iter_mut().zip(&self.dense[..data.n_numeric()]).for_each(|(g, s)| *g += weight * s);
        match data.joint() {
            Some(joint) => joint.fold(&self.hot, weight, gradient),
            None => gradient.iter_mut().zip(&self.hot).for_each(|(g, s)| *g += weight * s),
        }
    }
}

/// `Σ_r ℓ'(z_r, a_rᵀx) a_r` of records `range` into `slopes`, with the [`Weights`] of `data` at `x`.
pub(crate) fn gradient<S: LossShape>(
    loss: &S,
    data: &Dataset,
    range: Range<usize>,
    weights: &Weights,
    slopes: &mut Slopes,
) {
    let Slopes { dense, hot, dense_scratch, scratch } = slopes;
    zeros(dense, data.stride());
    zeros(hot, weights.hot.len());
    dense_scratch.resize(data.stride(), 0.0);
    scratch.resize(weights.hot.len(), [0.0; 2]);
    let (block, at) = (gradient_block(data.n_features()), weights.at(&weights.hot));
    let (sums, scratch) = ((&mut dense[..], &mut hot[..]), (&mut dense_scratch[..], &mut scratch[..]));
    match data.joint() {
        Some(joint) => {
            // A column's sum has up to MOST_CELLS terms more, which adding every other record apart makes up for.
            const { assert!(GRADIENT_BLOCK / 2 + MOST_CELLS <= GRADIENT_BLOCK && GRADIENT_BLOCK <= FEWEST_RECORDS) }
            let columns = blocks(range, block).map(|block| data.joint_columns(joint, block));
            let shape = Shape { n_hot: joint.n_joint(), ..Shape::of(data) };
            sum_slopes(loss, shape, columns, Ahead::of(data), at, sums, scratch);
        }
        None => {
            let columns = blocks(range, block).map(|block| data.columns(block));
            sum_slopes(loss, Shape::of(data), columns, Ahead::of(data), at, sums, scratch);
        }
    }
}

/// The loop of [`gradient`] over blocks of records: sums of numbers and of hot columns into `sums`, which are zero.
///
/// Even and odd records have sums of their own: neighbours often have a hot column in common, and the second would have to wait for
/// the first.
fn sum_slopes<'a, S: LossShape>(
    loss: &S,
    shape: Shape,
    blocks: impl Iterator<Item = Columns<'a>>,
    ahead: Ahead,
    at: At<'_>,
    (dense_sum, sum): (&mut [f64], &mut [f64]),
    (dense_scratch, scratch): (&mut [f64], &mut [[f64; 2]]),
) {
    unrolled!(shape.n_hot, hot_rows => {
        let (mut buffer, mut lanes) = ([0.0; PART], [[0.0; LANES]; PART]);
        for columns in blocks {
            scratch.fill([0.0; 2]);
            dense_scratch.fill(0.0);
            for (range, part) in shape.parts(columns) {
                let t = &mut buffer[..range.len()];
                // The next part, a third of it before each step that takes some time.
                let third = |k: usize| range.end + k * range.len() / 3..range.end + (k + 1) * range.len() / 3;
                ahead.ask(shape, &columns, third(0));
                margins(hot_rows, shape, &part, at, &mut lanes, t);
                ahead.ask(shape, &columns, third(1));
                for ((t, &z), &s) in t.iter_mut().zip(part.labels).zip(part.scale) {
                    *t = loss.slope(z, *t) * s;
                }
                ahead.ask(shape, &columns, third(2));
                scatter_numbers(shape, &part, t, dense_scratch);
                for (r, (&s, hot)) in t.iter().zip(hot_rows.of(&part)).enumerate() {
                    for &j in hot.as_ref() {
                        scratch[j as usize][r & 1] += s;
                    }
                }
            }
            sum.iter_mut().zip(scratch.iter()).for_each(|(g, [even, odd])| *g += even + odd);
            dense_sum.iter_mut().zip(dense_scratch.iter()).for_each(|(g, s)| *g += s);
        }
    })
}

/// `Σ_r d_r (a_rᵀv) a_r` into `out`, with `curvatures` `d_r`: a Hessian–vector product without the Hessian.
pub(crate) fn hessian_vector(
    data: &Dataset,
    range: Range<usize>,
    curvatures: &[f64],
    v: At<'_>,
    Slopes { dense: dense_sum, .. }: &mut Slopes,
    out: &mut [f64],
) {
    let shape = Shape::of(data);
    zeros(dense_sum, data.stride());
    out.fill(0.0);
    unrolled!(shape.n_hot, hot_rows => {
        let (mut buffer, mut lanes) = ([0.0; PART], [[0.0; LANES]; PART]);
        for (range, part) in shape.parts(data.columns(range)) {
            let t = &mut buffer[..range.len()];
            margins(hot_rows, shape, &part, v, &mut lanes, t);
            for ((t, &d), &s) in t.iter_mut().zip(&curvatures[range]).zip(part.scale) {
                *t *= d * s;
            }
            scatter_numbers(shape, &part, t, dense_sum);
            for (&s, hot) in t.iter().zip(hot_rows.of(&part)) {
                hot.as_ref().iter().for_each(|&j| out[j as usize] += s);
            }
        }
        out.iter_mut().zip(&dense_sum[..data.n_numeric()]).for_each(|(o, s)| *o += s);
    })
}

/// `d_r = ℓ''(z_r, a_rᵀx)` of every record into `curvatures`, and `Σ_r d_r a_r∘a_r` into `diagonal`.
pub(crate) fn curvatures<S: LossShape>(
    loss: &S,
    data: &Dataset,
    range: Range<usize>,
    at: At<'_>,
    curvatures: &mut [f64],
    diagonal: &mut [f64],
) {
    margins_into(data, range.clone(), at, curvatures);
    diagonal.fill(0.0);
    let labels = &data.labels()[range.clone()];
    wide(
        #[inline(always)]
        || curvatures.iter_mut().zip(labels).for_each(|(d, &z)| *d = loss.curvature(z, *d)),
    );
    for (r, d) in range.zip(curvatures) {
        let row = data.row(r);
        let weight = *d * row.scale * row.scale;
        diagonal.iter_mut().zip(row.numeric).for_each(|(o, v)| *o += weight * v * v);
        row.hot.iter().for_each(|&j| diagonal[j as usize] += weight);
    }
}
