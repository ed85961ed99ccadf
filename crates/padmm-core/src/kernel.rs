//! Products with the encoded records: margins, gradients, Hessians. These loops are where the time goes.
//!
//! Records are visited in blocks of [`BLOCK`], and each block's sums are formed before they join the total, so
//! the rounding error of a sum over `n` records grows like `BLOCK + n/BLOCK` in place of `n`. Blocks are cut by
//! record count alone, never by thread count, so results are the same bits however many threads there are.
//!
//! Every loop is compiled for the widest vector registers that the machine turns out to have ([`wide`]), and for common
//! numbers of categorical columns ([`unrolled`]).

use std::ops::Range;

use crate::data::{Columns, Dataset, Joint, LANES, MOST_CELLS};
use crate::loss::LossShape;

/// Records whose sums are formed together.
pub(crate) const BLOCK: usize = 512;

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
            $($n => { let $hot = Known::<$n>; wide(#[inline(always)] || $body) })*
            n => { let $hot = Counted(n); wide(#[inline(always)] || $body) }
        }
    };
}

// After the macro, which it uses.
mod models;

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
}

/// The leading entries of `x`, with zeros up to the stride.
fn padded(x: &[f64], data: &Dataset) -> Vec<f64> {
    let mut dense = x[..data.n_numeric()].to_vec();
    dense.resize(data.stride(), 0.0);
    dense
}

/// `aᵀx` of every record of a block; `dense` is the padded head of `x`.
#[inline(always)]
fn margins(
    hot_rows: impl HotRows,
    shape: Shape,
    columns: &Columns<'_>,
    dense: &[f64],
    x: &[f64],
    out: &mut [f64],
) {
    let numbers = columns.numeric.as_chunks::<LANES>().0;
    // Two chunks, as many numbers as tables mostly have, without a loop.
    if let [u, v] = dense.as_chunks::<LANES>().0 {
        let lanes = numbers.as_chunks::<2>().0.iter().map(
            #[inline(always)]
            |[a, b]| std::array::from_fn(|l| a[l].mul_add(u[l], b[l] * v[l])),
        );
        return add_hot(lanes, hot_rows, columns, x, out);
    }
    let lanes = numbers.chunks_exact(shape.chunks).map(
        #[inline(always)]
        |numbers| {
            let pairs = numbers.iter().zip(dense.as_chunks::<LANES>().0);
            pairs.fold([0.0; LANES], |sum, (v, w)| std::array::from_fn(|l| v[l].mul_add(w[l], sum[l])))
        },
    );
    add_hot(lanes, hot_rows, columns, x, out);
}

/// Margins from the sums over numbers, which come in lanes.
#[inline(always)]
fn add_hot(
    lanes: impl Iterator<Item = [f64; LANES]>,
    hot_rows: impl HotRows,
    columns: &Columns<'_>,
    x: &[f64],
    out: &mut [f64],
) {
    let rows = lanes.zip(hot_rows.of(columns));
    for ((t, &scale), (lanes, hot)) in out.iter_mut().zip(columns.scale).zip(rows) {
        let mut sums = [(lanes[0] + lanes[2]) + (lanes[1] + lanes[3]), 0.0];
        for (k, &j) in hot.as_ref().iter().enumerate() {
            sums[k & 1] += x[j as usize];
        }
        *t = (sums[0] + sums[1]) * scale;
    }
}

/// The numbers' part of `Σ_r v_r a_r`, added to `dense` (padded); `v` already contains the row's scale.
#[inline(always)]
fn scatter_numbers(shape: Shape, columns: &Columns<'_>, v: &[f64], dense: &mut [f64]) {
    let numbers = columns.numeric.as_chunks::<LANES>().0;
    let dense = dense.as_chunks_mut::<LANES>().0;
    let add = |sum: [f64; LANES], s: f64, a: &[f64; LANES]| -> [f64; LANES] {
        std::array::from_fn(|l| s.mul_add(a[l], sum[l]))
    };
    if let [o, q] = dense {
        // Sums in registers.
        let mut sums = (*o, *q);
        for (&s, [a, b]) in v.iter().zip(numbers.as_chunks::<2>().0) {
            sums = (add(sums.0, s, a), add(sums.1, s, b));
        }
        (*o, *q) = sums;
    } else {
        for (&s, numbers) in v.iter().zip(numbers.chunks_exact(shape.chunks)) {
            dense.iter_mut().zip(numbers).for_each(|(o, a)| *o = add(*o, s, a));
        }
    }
}

/// The blocks of a range of records, of `size` each.
#[inline(always)]
fn blocks(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(size).map(move |start| start..(start + size).min(end))
}

/// Writes `aᵀx` of records `range` into `out`.
pub(crate) fn margins_into(data: &Dataset, range: Range<usize>, x: &[f64], out: &mut [f64]) {
    let columns = data.columns(range);
    let (shape, dense) = (Shape::of(data), padded(x, data));
    unrolled!(shape.n_hot, hot_rows => margins(hot_rows, shape, &columns, &dense, x, out))
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
pub(crate) fn loss<S: LossShape>(shape: &S, data: &Dataset, range: Range<usize>, x: &[f64]) -> f64 {
    let mut total = 0.0;
    let mut buffer = [0.0; BLOCK];
    for block in blocks(range, BLOCK) {
        let t = &mut buffer[..block.len()];
        margins_into(data, block.clone(), x, t);
        total += sum_of_losses(shape, &data.labels()[block], t);
    }
    total
}

/// `Σ_r ℓ'(z_r, a_rᵀx) a_r` into `gradient`. `scratch` is memory for one block's sums.
pub(crate) fn gradient<S: LossShape>(
    loss: &S,
    data: &Dataset,
    range: Range<usize>,
    x: &[f64],
    gradient: &mut [f64],
    scratch: &mut Vec<[f64; 2]>,
) {
    let dense = padded(x, data);
    let mut dense_sum = vec![0.0; data.stride()];
    gradient.fill(0.0);
    scratch.resize(data.joint().map_or(x.len(), Joint::n_cells), [0.0; 2]);
    match data.joint() {
        Some(joint) => {
            let (weights, mut sums) = (spread(joint, |j| x[j]), vec![0.0; joint.n_cells()]);
            // A column's sum has up to MOST_CELLS terms more, which adding every other record apart makes up for.
            const { assert!(BLOCK / 2 + MOST_CELLS <= BLOCK) }
            let columns = blocks(range, BLOCK).map(|block| data.joint_columns(joint, block));
            let shape = Shape { n_hot: joint.n_joint(), ..Shape::of(data) };
            sum_slopes(loss, shape, columns, (&dense, &weights), (&mut dense_sum, &mut sums), scratch);
            joint.fold(&sums, gradient);
        }
        None => {
            let columns = blocks(range, BLOCK).map(|block| data.columns(block));
            sum_slopes(loss, Shape::of(data), columns, (&dense, x), (&mut dense_sum, gradient), scratch);
        }
    }
    gradient.iter_mut().zip(&dense_sum[..data.n_numeric()]).for_each(|(g, s)| *g += s);
}

/// The sum of each cell's columns' weights.
fn spread(joint: &Joint, weight: impl Fn(usize) -> f64) -> Vec<f64> {
    joint.columns().map(|columns| columns.iter().map(|&j| weight(j as usize)).sum()).collect()
}

/// The loop of [`gradient`] over blocks of records: sums of numbers and of hot columns into `sums`, which are zero.
///
/// Even and odd records have sums of their own: neighbours often have a hot column in common, and the second would have to wait for
/// the first.
fn sum_slopes<'a, S: LossShape>(
    loss: &S,
    shape: Shape,
    blocks: impl Iterator<Item = Columns<'a>>,
    (dense, x): (&[f64], &[f64]),
    (dense_sum, sum): (&mut [f64], &mut [f64]),
    scratch: &mut [[f64; 2]],
) {
    unrolled!(shape.n_hot, hot_rows => {
        let mut buffer = [0.0; BLOCK];
        let mut dense_scratch = vec![0.0; shape.stride()];
        for columns in blocks {
            let t = &mut buffer[..columns.labels.len()];
            margins(hot_rows, shape, &columns, dense, x, t);
            for ((t, &z), &s) in t.iter_mut().zip(columns.labels).zip(columns.scale) {
                *t = loss.slope(z, *t) * s;
            }
            scratch.fill([0.0; 2]);
            dense_scratch.fill(0.0);
            scatter_numbers(shape, &columns, t, &mut dense_scratch);
            for (r, (&s, hot)) in t.iter().zip(hot_rows.of(&columns)).enumerate() {
                for &j in hot.as_ref() {
                    scratch[j as usize][r & 1] += s;
                }
            }
            sum.iter_mut().zip(scratch.iter()).for_each(|(g, [even, odd])| *g += even + odd);
            dense_sum.iter_mut().zip(&dense_scratch).for_each(|(g, s)| *g += s);
        }
    })
}

/// `Σ_r ℓ''(z_r, a_rᵀx) a_r a_rᵀ` into the upper triangle (row ≤ column) of the row-major `p × p` matrix `out`.
///
/// Hot columns of a record ascend, so every pair lands above the diagonal; the numeric rows are short and dense.
pub(crate) fn gram<S: LossShape>(loss: &S, data: &Dataset, range: Range<usize>, x: &[f64], out: &mut [f64]) {
    let (shape, dense, p, n_numeric) =
        (Shape::of(data), padded(x, data), data.n_features(), data.n_numeric());
    out.fill(0.0);
    // Numbers × numbers, and numbers × hot: one short padded row for each column, copied to its place at the end.
    let chunks = shape.chunks;
    let mut among = vec![[0.0; LANES]; shape.stride() * chunks];
    let mut mixed = vec![[0.0; LANES]; p * chunks];
    unrolled!(shape.n_hot, hot_rows => {
        let mut buffer = [0.0; BLOCK];
        let mut weighted = vec![[0.0; LANES]; chunks];
        for block in blocks(range, BLOCK) {
            let columns = data.columns(block.clone());
            let t = &mut buffer[..block.len()];
            margins(hot_rows, shape, &columns, &dense, x, t);
            for ((t, &z), &s) in t.iter_mut().zip(columns.labels).zip(columns.scale) {
                *t = loss.curvature(z, *t) * s * s;
            }
            let rows = numbers(&columns, shape).zip(hot_rows.of(&columns));
            for (&d, (numbers, hot)) in t.iter().zip(rows) {
                if d == 0.0 {
                    continue;
                }
                for (w, v) in weighted.iter_mut().zip(numbers) {
                    *w = v.map(|v| d * v);
                }
                for (row, &v) in among.chunks_exact_mut(chunks).zip(numbers.as_flattened()) {
                    for (o, w) in row.iter_mut().zip(&weighted) {
                        for l in 0..LANES {
                            o[l] = v.mul_add(w[l], o[l]);
                        }
                    }
                }
                let hot = hot.as_ref();
                for (k, &i) in hot.iter().enumerate() {
                    let row = &mut out[i as usize * p..][..p];
                    hot[k..].iter().for_each(|&j| row[j as usize] += d);
                    for (o, w) in mixed[i as usize * chunks..][..chunks].iter_mut().zip(&weighted) {
                        for l in 0..LANES {
                            o[l] += w[l];
                        }
                    }
                }
            }
        }
    });
    let (among, mixed) = (among.as_flattened(), mixed.as_flattened());
    for i in 0..n_numeric {
        out[i * p + i..i * p + n_numeric]
            .copy_from_slice(&among[i * shape.stride() + i..i * shape.stride() + n_numeric]);
        for j in n_numeric..p {
            out[i * p + j] = mixed[j * shape.stride() + i];
        }
    }
}

/// `Σ_r d_r (a_rᵀv) a_r` into `out`, with `curvatures` `d_r`: a Hessian–vector product without the Hessian.
pub(crate) fn hessian_vector(
    data: &Dataset,
    range: Range<usize>,
    curvatures: &[f64],
    v: &[f64],
    out: &mut [f64],
) {
    let (shape, dense) = (Shape::of(data), padded(v, data));
    out.fill(0.0);
    let first = range.start;
    unrolled!(shape.n_hot, hot_rows => {
        let mut buffer = [0.0; BLOCK];
        let mut dense_sum = vec![0.0; shape.stride()];
        for block in blocks(range, BLOCK) {
            let columns = data.columns(block.clone());
            let t = &mut buffer[..block.len()];
            margins(hot_rows, shape, &columns, &dense, v, t);
            let d = &curvatures[block.start - first..block.end - first];
            for ((t, &d), &s) in t.iter_mut().zip(d).zip(columns.scale) {
                *t *= d * s;
            }
            scatter_numbers(shape, &columns, t, &mut dense_sum);
            for (&s, hot) in t.iter().zip(hot_rows.of(&columns)) {
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
    x: &[f64],
    curvatures: &mut [f64],
    diagonal: &mut [f64],
) {
    margins_into(data, range.clone(), x, curvatures);
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
