//! Sums of clipped terms in whitened coordinates, where the whitening is done once, for the sum, and not record by record.
//!
//! A record's term is `s W a`: its row `a` and the matrix `W` in whole numbers, and a whole number `s` for its slope. All of it is exact,
//! so `sum of s W a = W (sum of s a)`, and a round costs what a row has that is not zero. How long `W a` is does not change from round
//! to round: it bounds `s`, once and for all rounds.
//!
//! ```text
//! |s| <= cap,    cap |W a| <= 2^(bits + shift) (1 - sqrt(n) / 2^(bits + 1))
//! released:      floor(W (sum of s a) / 2^shift)
//! ```
//!
//! Replacing a record replaces one term, which moves the exact sum by at most twice the bound on the right. Rounding two sums down
//! changes their difference by less than 1 in each coordinate, by less than `sqrt(n)` in all. Together the released integers move by at
//! most `2 * 2^bits`.

use std::ops::Range;
use std::sync::Arc;

use super::clipped_sum::{ClippedSum, bits_for};

/// Numbers of a row are in units of `2^-18`.
const ROW_BITS: i32 = 18;
const ONE: f64 = (1 << ROW_BITS) as f64;
/// Every entry of the matrix is below `2^22`.
const MATRIX_BITS: i32 = 22;
/// Numbers and ones of a row at most, and columns.
const MOST_ENTRIES: usize = 1 << 12;
/// No slope is larger than `2^22`, so that the products of a slope and a row are at most `2^40`.
const SLOPE_BITS: i32 = 22;
/// Records whose products are added in doubles before they join the integers: their sum is at most `2^52`, where doubles are exact.
const PART: usize = 1 << 12;
/// Records whose slopes are asked for together.
const BLOCK: usize = 256;
// Sums of whole numbers are exact: products of columns in integers, and in doubles those over the records of a part.
const _: () = assert!(2 * MATRIX_BITS + MOST_ENTRIES.ilog2() as i32 <= 62);
const _: () = assert!(SLOPE_BITS + ROW_BITS + PART.ilog2() as i32 <= 52);
const _: () = assert!(SLOPE_BITS + (MOST_ENTRIES.ilog2() + PART.ilog2()) as i32 <= 52);

/// A sum of terms of at most 1 is below this in magnitude; cutting off what is not moves no two sums apart.
const LARGEST: i128 = 1 << 51;

/// The rows of a site, by number. A row is a function of its record alone, and always the same.
pub trait RecordRows: Send + Sync {
    /// How many there are.
    fn n_rows(&self) -> usize;

    /// The numbers that the row begins with, between -1 and 1, and the places of its ones; all else in it is zero.
    fn row(&self, r: usize) -> (&[f64], &[u32]);
}

/// Whoever does things side by side.
pub trait Workers {
    /// `f(0), f(1), …, f(n - 1)`, in this order.
    fn each<T: Send>(&self, n: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T>;
}

/// A site's rows with a public matrix, and what bounds each record's slope.
///
/// Guarantee: [`WhitenedRows::sum`] has one term for each row. Whatever the matrix, the rows and the slopes are, replacing one record, and
/// with it its row and its slope, moves the integers of a sum by at most `2 * 2^bits`, as of every [`ClippedSum`] with signed terms.
///
/// That is so if a row and a slope are functions of their own record, always the same ones, and of public values, and if [`Workers`]
/// do what they say.
pub struct WhitenedRows<R> {
    rows: Arc<R>,
    n: usize,
    /// `W` in whole numbers as doubles, column by column.
    columns: Vec<f64>,
    /// What a slope of 1 is.
    slope_unit: f64,
    /// Of the sum that is released.
    bits: u32,
    /// A unit of it is `2^shift` units of a term.
    shift: u32,
    /// The largest slope of each record, a whole number.
    caps: Vec<f64>,
}

impl<R> std::fmt::Debug for WhitenedRows<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WhitenedRows(hidden)")
    }
}

/// A row's number in whole units. What is beyond -1 and 1 is cut, and what is no number is zero.
#[inline(always)]
fn whole(v: f64) -> f64 {
    // Adding it rounds a smaller number to a whole one, to the nearest, in one double or in several side by side.
    const ROUND: f64 = (3u64 << 51) as f64;
    let v = if v > 1.0 { 1.0 } else { v };
    let v = if v >= -1.0 {
        v
    } else if v < -1.0 {
        -1.0
    } else {
        0.0
    };
    (v * ONE + ROUND) - ROUND
}

/// `g_jk`, the products of the matrix's columns, each rounded once.
struct Products {
    n: usize,
    values: Vec<f64>,
    /// `sqrt(g_jj)`, rounded up.
    roots: Vec<f64>,
}

impl Products {
    fn new(n: usize, columns: &[f64]) -> Self {
        let columns: Vec<Vec<i64>> =
            columns.chunks(n).map(|column| column.iter().map(|w| *w as i64).collect()).collect();
        let mut values = vec![0.0; n * n];
        for j in 0..n {
            for k in 0..=j {
                // Whole numbers below 2^22, fewer than 2^12 of them.
                let product: i64 = columns[j].iter().zip(&columns[k]).map(|(a, b)| a * b).sum();
                (values[j * n + k], values[k * n + j]) = (product as f64, product as f64);
            }
        }
        let roots = (0..n).map(|j| values[j * n + j].sqrt() * (1.0 + 4.0 * f64::EPSILON)).collect();
        Self { n, values, roots }
    }

    /// Those of column `j` with all columns.
    #[inline(always)]
    fn of(&self, j: usize) -> &[f64] {
        &self.values[j * self.n..(j + 1) * self.n]
    }
}

/// The sum of products of `a` and what `b` begins with, in eight sums side by side. Gain: caps of 10^6 rows of 50 numbers take 0.3 s, not 0.66.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (eights, rest) = a.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in eights.iter().zip(b.as_chunks::<8>().0) {
        (0..8).for_each(|i| sums[i] += x[i] * y[i]);
    }
    rest.iter().zip(&b[8 * eights.len()..]).fold(sums.iter().sum(), |sum, (x, y)| sum + x * y)
}

impl<R: RecordRows> WhitenedRows<R> {
    /// `columns` is `W`, column by column; a term `slope * W a` is as long as its bound at `clip`, and slopes are hardly steeper than
    /// `steepest`: they are cut at once to four times that.
    ///
    /// None if `W` is no square of finite numbers or too large, or if it, `clip` and `steepest` are not positive and of a reasonable size:
    /// of a matrix that whitens, `clip` is within some thirty powers of two of `steepest` times its largest entry. That, and so whether
    /// there is an answer, is decided by these numbers and the number of rows, which are public. Nothing is needed of them for the guarantee.
    pub fn new(
        rows: Arc<R>,
        columns: &[f64],
        clip: f64,
        steepest: f64,
        workers: &impl Workers,
    ) -> Option<Self> {
        let n = columns.len().isqrt();
        let largest = columns.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
        let is_fine = |v: f64| v > 1e-100 && v < 1e100;
        let is_square = n * n == columns.len() && n < MOST_ENTRIES && columns.iter().all(|w| w.is_finite());
        if !is_square || ![largest, clip, steepest, clip / steepest].into_iter().all(is_fine) {
            return None;
        }
        let bits = bits_for(rows.n_rows());
        // 2^exponent * largest is in [2^21, 2^22).
        let exponent = MATRIX_BITS - libm::ilogb(largest) - 1;
        let columns = columns.iter().map(|w| libm::scalbn(*w, exponent).trunc()).collect();
        // The steepest slope is between 2^20 and 2^22 units.
        let slope_bits = SLOPE_BITS - 1 - libm::ilogb(steepest);
        let length_bits = exponent + ROW_BITS + slope_bits + libm::ilogb(clip);
        let slope_unit = libm::scalbn(1.0 / clip, slope_bits + libm::ilogb(clip));
        let shift = u32::try_from(length_bits - bits as i32).ok().filter(|shift| *shift < 64)?;
        let mut whitened = Self { rows, n, columns, slope_unit, bits, shift, caps: vec![] };
        let products = Products::new(n, &whitened.columns);
        let caps = workers.each(
            whitened.n_parts(),
            #[inline(always)]
            |k| {
                let (mut caps, mut numbers) = (vec![], vec![]);
                // A loop and not an iterator, which would not be compiled for the worker's registers.
                for r in whitened.part(k) {
                    caps.push(whitened.cap(&products, r, &mut numbers));
                }
                caps
            },
        );
        whitened.caps = caps.concat();
        Some(whitened)
    }

    /// Those that it was made of, for whoever computes slopes.
    pub fn rows(&self) -> &Arc<R> {
        &self.rows
    }

    fn n_parts(&self) -> usize {
        self.rows.n_rows().div_ceil(PART)
    }

    fn part(&self, k: usize) -> Range<usize> {
        k * PART..((k + 1) * PART).min(self.rows.n_rows())
    }

    /// A slope with which `s W a` is short enough, hardly below the largest such, and at most `2^22`; 0 for what is no row.
    ///
    /// By `|W a|^2 = sum of a_j a_k g_jk`, over pairs of entries. No product in it is larger than
    /// `|a_j| |a_k| sqrt(g_jj g_kk)`, so all of them together are at most `size^2`, and the sum of `m` of them in doubles is off by less
    /// than `m + 8` units of `size^2` in the last place, in whichever order they are added.
    #[inline(always)]
    fn cap(&self, products: &Products, r: usize, numbers: &mut Vec<f64>) -> f64 {
        let (head, ones) = self.rows.row(r);
        let is_row = head.len() <= self.n
            && head.len() + ones.len() <= MOST_ENTRIES
            && ones.iter().all(|&j| (j as usize) < self.n);
        if !is_row {
            return 0.0;
        }
        numbers.clear();
        numbers.extend(head.iter().map(|v| whole(*v)));
        let (mut half, mut size) = (0.0, 0.0);
        for (k, j) in (0..head.len()).chain(ones.iter().map(|&j| j as usize)).enumerate() {
            let (of_column, v) = (products.of(j), numbers.get(k).copied().unwrap_or(ONE));
            let ones_before = &ones[..k.saturating_sub(head.len())];
            let before = dot(&numbers[..k.min(head.len())], of_column)
                + ones_before.iter().map(|&i| ONE * of_column[i as usize]).sum::<f64>();
            half += v * (before + 0.5 * v * of_column[j]);
            size += v.abs() * products.roots[j];
        }
        let n_entries = (head.len() + ones.len()) as f64;
        let off = (0.5 * n_entries * (n_entries + 1.0) + 8.0) * 2.0 * f64::EPSILON * size * size;
        let longest = (2.0 * half + off).max(0.0).sqrt();
        // Each of the two terms gives up half of what rounding may add.
        let kept = 1.0 - 0.5 * (self.n as f64).sqrt() / libm::scalbn(1.0, self.bits as i32);
        let most = libm::scalbn(kept * (1.0 - 1e-12), (self.bits + self.shift) as i32);
        (most / longest.max(f64::MIN_POSITIVE)).min(libm::scalbn(1.0, SLOPE_BITS)).trunc().max(0.0)
    }

    /// The sum over all records of `slope * W a / clip`, each slope cut where its term would be longer than 1. `slopes` writes those of the
    /// records in a range; one that is no number, or is not written, counts as zero.
    pub fn sum(
        &self,
        workers: &impl Workers,
        slopes: impl Fn(Range<usize>, &mut [f64]) + Sync,
    ) -> ClippedSum {
        let parts = workers.each(
            self.n_parts(),
            #[inline(always)]
            |k| {
                let part = self.part(k);
                let (mut head_sum, mut ones_sum) = (vec![0.0; self.n], vec![0.0; self.n]);
                let mut block_slopes = [0.0; BLOCK];
                for from in part.clone().step_by(BLOCK) {
                    let block = from..(from + BLOCK).min(part.end);
                    let block_slopes = &mut block_slopes[..block.len()];
                    // What is not written must not be the slope of another record.
                    block_slopes.fill(0.0);
                    slopes(block.clone(), block_slopes);
                    for (r, slope) in block.zip(&*block_slopes) {
                        let cap = self.caps[r];
                        let slope = (slope * self.slope_unit).clamp(-cap, cap).trunc();
                        // What is no row has a cap of zero, and is not looked at again.
                        if slope != 0.0 && !slope.is_nan() {
                            let (head, ones) = self.rows.row(r);
                            head_sum.iter_mut().zip(head).for_each(|(sum, v)| *sum += slope * whole(*v));
                            ones.iter().for_each(|&j| ones_sum[j as usize] += slope);
                        }
                    }
                }
                (head_sum, ones_sum)
            },
        );
        let mut totals = vec![0i128; self.n];
        for (head_sum, ones_sum) in parts {
            for ((total, head), ones) in totals.iter_mut().zip(head_sum).zip(ones_sum) {
                *total += head as i128 + ((ones as i128) << ROW_BITS);
            }
        }
        let mut values = vec![0i128; self.n];
        for (column, total) in self.columns.chunks(self.n).zip(totals) {
            values.iter_mut().zip(column).for_each(|(value, w)| *value += *w as i128 * total);
        }
        let in_units = |value: i128| (value >> self.shift).clamp(-LARGEST, LARGEST) as i64;
        ClippedSum::of_integers(values.into_iter().map(in_units).collect(), self.rows.n_rows())
    }
}
