//! Sums over records in which every record's term is bounded by construction, as whole numbers.

use std::fmt;

use crate::error::PrivacyError;

/// Finest unit of a term: `2^-30`, so that every coordinate of a term fits 31 bits.
pub(crate) const MOST_BITS: u32 = 30;
/// A sum is below `2^51` in magnitude, which leaves the noise as much room again.
const SUM_BITS: u32 = 51;
/// Terms that are added in doubles before they join the integers: their sum stays below `2^52`, where doubles are exact.
const BLOCK: u32 = 1 << 21;

/// The unit of the sums of a site with this many records, as its negative binary exponent.
pub(crate) fn bits_for(n_records: usize) -> u32 {
    let bits_of_count = usize::BITS - n_records.saturating_sub(1).leading_zeros();
    MOST_BITS.min(SUM_BITS.saturating_sub(bits_of_count))
}

/// What a record may add to a sum, in units of the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terms {
    /// Vectors in the unit ball: two of them are at most 2 apart.
    Signed,
    /// Those in its positive part, at most `sqrt(2)` apart. Negative entries are replaced by zero.
    NonNegative,
}

impl Terms {
    /// How far replacing one term moves a sum, in units of the bound; rounded up.
    pub(crate) fn sensitivity(self) -> f64 {
        match self {
            Self::Signed => 2.0,
            Self::NonNegative => std::f64::consts::SQRT_2.next_up(),
        }
    }

    /// The smallest integer that an entry can have.
    fn least(self) -> i32 {
        match self {
            Self::Signed => i32::MIN,
            Self::NonNegative => 0,
        }
    }
}

/// A sum of one vector for each record, each of which has Euclidean norm at most 1, in units of `2^-bits`.
///
/// Guarantee: whatever [`ClippedSum::add`] and [`ClippedSum::add_at`] are given, the term that it adds is a vector `t` of integers with
/// `sum t_j^2 <= 4^bits`, checked in integer arithmetic, and a function of its arguments alone. The sum is exact. So replacing
/// one record moves the sum by at most `2 * 2^bits` in the L2 norm, and by at most `sqrt(2) * 2^bits` if no term has a negative
/// coordinate ([`Terms::NonNegative`]): then `|t - t'|^2 = |t|^2 + |t'|^2 - 2 <t, t'> <= 2 * 4^bits`. There is no rounding to account for.
/// One that [`super::WhitenedRows`] makes moves no further, by the argument there.
///
/// `Debug` hides it: it is computed from records and has no noise yet.
pub struct ClippedSum {
    bits: u32,
    terms: Terms,
    values: Vec<i64>,
    /// Whole numbers as doubles, of at most [`BLOCK`] terms.
    block: Vec<f64>,
    in_block: u32,
    term: Vec<f64>,
    /// Whether it was made with a term for every record.
    is_whole: bool,
}

impl fmt::Debug for ClippedSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClippedSum(hidden)")
    }
}

impl ClippedSum {
    /// The empty sum of vectors with `n_coordinates` entries, for a site of `n_records` records.
    pub fn new(terms: Terms, n_coordinates: usize, n_records: usize) -> Self {
        assert!(n_coordinates <= MOST_COORDINATES, "a term has at most 2^22 coordinates");
        Self {
            bits: bits_for(n_records),
            terms,
            values: vec![0; n_coordinates],
            block: vec![0.0; n_coordinates],
            in_block: 0,
            term: vec![0.0; n_coordinates],
            is_whole: false,
        }
    }

    /// The sum of signed terms that has these integers; whoever makes it has bounded its terms.
    pub(super) fn of_integers(values: Vec<i64>, n_records: usize) -> Self {
        Self { values, is_whole: true, ..Self::new(Terms::Signed, 0, n_records) }
    }

    /// Adds the term `factor * row`, in units of the bound: truncated towards zero, what is not finite replaced by zero, and shortened
    /// if it is still longer than 1.
    ///
    /// Inlined, so that a caller's loop for wide registers is one here too; whatever they are, the integers are the same.
    #[inline(always)]
    pub fn add(&mut self, factor: f64, row: &[f64]) {
        assert_eq!(row.len(), self.term.len(), "a term has the sum's length");
        self.make_term(factor, row);
        for (sum, term) in self.block.iter_mut().zip(&self.term) {
            *sum += term;
        }
        self.count_term();
    }

    /// Adds the term `factor * a` of a row `a` that begins with the first of `values`, has the last of them at `places`, which ascend, and
    /// zeros elsewhere. A row whose places do not ascend behind its beginning is no row, and adds nothing.
    #[inline(always)]
    pub fn add_at(&mut self, factor: f64, places: &[u32], values: &[f64]) {
        let n_head = values.len().checked_sub(places.len());
        let is_row = |n_head: &usize| {
            places.is_sorted_by(|a, b| a < b)
                && places.first().is_none_or(|&first| first as usize >= *n_head)
                && places.last().map_or(*n_head, |&last| last as usize + 1) <= self.term.len()
        };
        if let Some(n_head) = n_head.filter(is_row) {
            self.make_term(factor, values);
            let (of_head, of_places) = self.term[..values.len()].split_at(n_head);
            self.block.iter_mut().zip(of_head).for_each(|(sum, term)| *sum += term);
            places.iter().zip(of_places).for_each(|(&j, term)| self.block[j as usize] += term);
        }
        self.count_term();
    }

    /// Puts the term of a row at the beginning of `term`.
    #[inline(always)]
    fn make_term(&mut self, factor: f64, row: &[f64]) {
        let unit = factor * f64::from(1u32 << self.bits);
        let least = self.terms.least();
        let mut squares = [0.0; LANES];
        let (row_chunks, row_rest) = row.as_chunks::<LANES>();
        let (term_chunks, term_rest) = self.term[..row.len()].as_chunks_mut::<LANES>();
        for (term, row) in term_chunks.iter_mut().zip(row_chunks) {
            for k in 0..LANES {
                // The conversion truncates, saturates, and makes zero of what is not a number.
                term[k] = f64::from(((unit * row[k]) as i32).max(least));
                squares[k] += term[k] * term[k];
            }
        }
        for ((term, row), squares) in term_rest.iter_mut().zip(row_rest).zip(&mut squares) {
            *term = f64::from(((unit * row) as i32).max(least));
            *squares += *term * *term;
        }
        // Rounding of this sum is far below the margin, so what passes has at most the bound; what does not is looked at exactly.
        let limit = f64::from(1u32 << self.bits).powi(2) * MARGIN;
        if squares.iter().sum::<f64>() > limit {
            shorten(&mut self.term[..row.len()], unit, row, self.bits, i64::from(least));
        }
    }

    fn count_term(&mut self) {
        self.in_block += 1;
        if self.in_block == BLOCK {
            self.flush();
        }
    }

    /// Adds all terms of another sum over records of the same site.
    pub fn merge(&mut self, mut other: Self) {
        let kind = |sum: &Self| (sum.bits, sum.terms, sum.values.len());
        assert_eq!(kind(self), kind(&other), "the sums are of one kind");
        assert!(!self.is_whole && !other.is_whole, "a sum that has a term for every record gets no more");
        other.flush();
        self.values.iter_mut().zip(&other.values).for_each(|(sum, value)| *sum += value);
    }

    /// Moves what was added in doubles to the integers; exact.
    fn flush(&mut self) {
        for (value, sum) in self.values.iter_mut().zip(&mut self.block) {
            *value += *sum as i64;
            *sum = 0.0;
        }
        self.in_block = 0;
    }

    /// The integers, in units of `2^exponent`, for the seal that adds the noise; refused unless the sum is of this kind.
    pub(super) fn into_integers(
        mut self,
        terms: Terms,
        n_coordinates: usize,
        exponent: i32,
    ) -> Result<Vec<i64>, PrivacyError> {
        self.flush();
        let fits = (self.terms, self.values.len(), -(self.bits as i32)) == (terms, n_coordinates, exponent);
        if fits { Ok(self.values) } else { Err(PrivacyError::WrongKind) }
    }
}

/// Coordinates that are handled side by side.
const LANES: usize = 4;
/// Longest term that [`MARGIN`] is for.
pub(crate) const MOST_COORDINATES: usize = 1 << 22;
/// A sum in doubles of at most 2^22 squares, a quarter in each lane, is off by less than the part 2^-32 that this leaves.
const MARGIN: f64 = 1.0 - 1.0 / (1u64 << 32) as f64;

/// The term by integer arithmetic: as long as it is longer than `2^bits`, it is multiplied by a factor below one and truncated.
#[cold]
#[inline(never)]
fn shorten(term: &mut [f64], unit: f64, row: &[f64], bits: u32, least: i64) {
    let bound = 1u128 << (2 * bits);
    // What overflowed the product has no direction that could be kept.
    let whole = |v: f64| if v.is_finite() { (v as i64).clamp(least.max(-(1 << 40)), 1 << 40) } else { 0 };
    let mut integers: Vec<i64> = row.iter().map(|r| whole(unit * r)).collect();
    loop {
        let square = |t: &i64| u128::from(t.unsigned_abs()).pow(2);
        let total = integers.iter().map(square).fold(0, u128::saturating_add);
        if total <= bound {
            break;
        }
        let factor = (bound as f64 / total as f64).sqrt() * (1.0 - 1e-9);
        integers.iter_mut().for_each(|t| *t = (*t as f64 * factor) as i64);
    }
    term.iter_mut().zip(integers).for_each(|(term, t)| *term = t as f64);
}
