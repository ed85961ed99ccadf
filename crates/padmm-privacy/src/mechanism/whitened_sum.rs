//! Sums of clipped terms in whitened coordinates, where the whitening is done once, for the sum, and not record by record.
//!
//! A record's term is `s W a`: its row `a` and the matrix `W` in whole numbers, and a whole number `s` for its slope. All of it is exact,
//! so `sum of s W a = W (sum of s a)`, and a round costs what a row has that is not zero. How long `W a` is does not change from round
//! to round: it bounds `s`, once and for all rounds ([`Whitening::cap`]).

use super::clipped_sum::{ClippedSum, bits_for};

/// Numbers of a row are in units of `2^-18`.
const ROW_BITS: i32 = 18;
/// No entry of the matrix is larger than `2^22`: with rows of up to [`MOST_ENTRIES`] numbers every entry of `W a` is below `2^52`.
const MATRIX_BITS: i32 = 22;
const MOST_ENTRIES: usize = 1 << 12;
/// No slope is larger than `2^22`, so that the products of a slope and a row are at most `2^40`.
const SLOPE_BITS: i32 = 22;
/// Records whose products are added in doubles before they join the integers: their sum stays below `2^53`, where doubles are exact.
const BLOCK: u32 = 1 << 12;

/// Coordinates that are handled side by side.
const LANES: usize = 8;

/// The matrix `W` in whole numbers, with what makes a term of at most 1 of it.
#[derive(Debug)]
pub struct Whitening {
    n: usize,
    /// Column by column, whole numbers as doubles.
    columns: Vec<f64>,
    /// A slope of 1 is this whole number of units, or a little less.
    slope_unit: f64,
    /// A term is 1 long if it is `2^bits` units of the sum that is released long.
    bits: u32,
    /// These are `2^shift` units of a term.
    shift: u32,
    n_records: usize,
}

/// The largest slope of a record, in units of the [`Whitening`] that it was made by, and for the row that it was made for.
#[derive(Clone, Copy, Debug)]
pub struct Cap(f64);

/// A row's number in whole units; what is no number from -1 to 1 counts as zero.
#[inline(always)]
fn whole(v: f64) -> f64 {
    const UNIT: f64 = (1 << ROW_BITS) as f64;
    if v.abs() <= 1.0 { (v * UNIT).round_ties_even() } else { 0.0 }
}

impl Whitening {
    /// `columns` is `W`, column by column; a term `slope * W a` is as long as its bound at `clip`. None if these are no positive numbers
    /// of a reasonable size.
    ///
    /// They are public: nothing that follows is needed of them for a term to be at most 1 long.
    pub fn new(columns: &[f64], clip: f64, n_records: usize) -> Option<Self> {
        let n = columns.len().isqrt();
        let largest = columns.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
        let is_fine = |v: f64| v > 1e-100 && v < 1e100;
        if n * n != columns.len() || n >= MOST_ENTRIES || !is_fine(largest) || !is_fine(clip) {
            return None;
        }
        if !columns.iter().all(|w| w.is_finite()) {
            return None;
        }
        // 2^exponent * largest is in [2^21, 2^22).
        let exponent = MATRIX_BITS - libm::ilogb(largest) - 1;
        let columns = columns.iter().map(|w| libm::scalbn(*w, exponent).trunc()).collect();
        let length_bits = exponent + ROW_BITS + SLOPE_BITS + libm::ilogb(clip);
        let slope_unit = libm::scalbn(1.0 / clip, length_bits - exponent - ROW_BITS);
        let shift =
            u32::try_from(length_bits - bits_for(n_records) as i32).ok().filter(|shift| *shift < 64)?;
        Some(Self { n, columns, slope_unit, shift, bits: bits_for(n_records), n_records })
    }

    /// What a row is, if it is one.
    fn is_row(&self, head: &[f64], ones: &[u32]) -> bool {
        head.len() <= self.n
            && head.len() + ones.len() <= MOST_ENTRIES
            && ones.iter().all(|&j| (j as usize) < self.n)
    }

    fn column(&self, j: usize) -> &[f64] {
        &self.columns[j * self.n..(j + 1) * self.n]
    }

    /// The largest slope for which `s W a` is at most 1 long, for a row that begins with `head` and has ones at `ones`; a little less, so
    /// that there is room for the sum to be rounded. `room` is memory to work in.
    ///
    /// Every entry of `W a` is a whole number below 2^52, and exact. The sum of its squares in doubles is off by less than `n + 8` units
    /// in the last place, and the quotient by a few.
    #[inline(always)]
    pub fn cap(&self, head: &[f64], ones: &[u32], room: &mut Vec<f64>) -> Cap {
        if !self.is_row(head, ones) {
            return Cap(0.0);
        }
        const UNIT: f64 = (1 << ROW_BITS) as f64;
        room.clear();
        room.resize(self.n, 0.0);
        for (j, v) in head.iter().enumerate() {
            let v = whole(*v);
            room.iter_mut().zip(self.column(j)).for_each(|(sum, w)| *sum += v * w);
        }
        for &j in ones {
            room.iter_mut().zip(self.column(j as usize)).for_each(|(sum, w)| *sum += UNIT * w);
        }
        let (chunks, rest) = room.as_chunks::<LANES>();
        let mut squares = [0.0; LANES];
        chunks.iter().for_each(|v| squares.iter_mut().zip(v).for_each(|(sum, v)| *sum += v * v));
        let squares = squares.iter().sum::<f64>() + rest.iter().map(|v| v * v).sum::<f64>();
        let longest = squares.sqrt() * (1.0 + (self.n + 16) as f64 * f64::EPSILON);
        // Rounding two sums down changes their difference by less than 1 in each coordinate, by sqrt(n) in all; half of it each of the
        // two terms gives up.
        let kept = 1.0 - 0.5 * (self.n as f64).sqrt() / libm::scalbn(1.0, self.bits as i32);
        let most = libm::scalbn(kept * (1.0 - 1e-12), (self.bits + self.shift) as i32);
        let largest = libm::scalbn(1.0, SLOPE_BITS);
        Cap((most / longest.max(f64::MIN_POSITIVE)).min(largest).trunc().max(0.0))
    }

    /// The empty sum.
    pub fn sum(&self) -> WhitenedSum<'_> {
        WhitenedSum {
            whitening: self,
            head: vec![0.0; self.n],
            ones: vec![0.0; self.n],
            in_block: 0,
            totals: vec![0; self.n],
        }
    }
}

/// The sum of `s a` over records, in whole numbers.
///
/// Guarantee: as [`ClippedSum`]'s, if every record is added with the [`Cap`] of its own row: the term is at most 1 long, and what
/// [`WhitenedSum::finish`] makes of the sum moves by at most 2, in units of the bound, if one record is replaced.
pub struct WhitenedSum<'a> {
    whitening: &'a Whitening,
    /// Of rows' numbers, and of their ones in units of `2^18`; whole numbers as doubles, of at most [`BLOCK`] records.
    head: Vec<f64>,
    ones: Vec<f64>,
    in_block: u32,
    totals: Vec<i128>,
}

impl std::fmt::Debug for WhitenedSum<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WhitenedSum(hidden)")
    }
}

impl WhitenedSum<'_> {
    /// Adds the term `slope * W a / clip`, with its slope cut at `cap`; a slope that is no number counts as zero.
    #[inline(always)]
    pub fn add(&mut self, cap: Cap, slope: f64, head: &[f64], ones: &[u32]) {
        let slope = (slope * self.whitening.slope_unit).clamp(-cap.0, cap.0).trunc();
        if !slope.is_nan() && self.whitening.is_row(head, ones) {
            self.head.iter_mut().zip(head).for_each(|(sum, v)| *sum += slope * whole(*v));
            ones.iter().for_each(|&j| self.ones[j as usize] += slope);
        }
        self.in_block += 1;
        if self.in_block == BLOCK {
            self.flush();
        }
    }

    /// Adds all terms of another sum over records of the same site.
    pub fn merge(&mut self, mut other: Self) {
        assert!(std::ptr::eq(self.whitening, other.whitening), "the sums are of one kind");
        other.flush();
        self.totals.iter_mut().zip(&other.totals).for_each(|(sum, value)| *sum += value);
    }

    fn flush(&mut self) {
        for ((total, head), ones) in self.totals.iter_mut().zip(&mut self.head).zip(&mut self.ones) {
            *total += *head as i128 + ((*ones as i128) << ROW_BITS);
            (*head, *ones) = (0.0, 0.0);
        }
        self.in_block = 0;
    }

    /// `W` times the sum, rounded down to the units of a sum that is released.
    pub fn finish(mut self) -> ClippedSum {
        self.flush();
        let Whitening { n, shift, n_records, .. } = *self.whitening;
        let mut values = vec![0i128; n];
        for (j, total) in self.totals.iter().enumerate().filter(|(_, total)| **total != 0) {
            let column = self.whitening.column(j);
            values.iter_mut().zip(column).for_each(|(value, w)| *value += *w as i128 * total);
        }
        let in_units =
            |value: i128| i64::try_from(value >> shift).expect("a sum of terms of at most 1 has room");
        ClippedSum::of_integers(values.into_iter().map(in_units).collect(), n_records)
    }
}
