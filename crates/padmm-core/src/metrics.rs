//! How well margins separate labels, whether they mean what they say, and what a constant would give.
//!
//! These numbers are computed from records. They are for the site's own eyes and for the simulator; nothing here
//! may leave a site except through the gate.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

mod constant;
mod recalibration;

use rayon::prelude::*;

use crate::vector::simd;

pub use constant::BestConstant;
pub use recalibration::Recalibration;

/// Share of records whose margin has the sign of its label; a margin of exactly zero counts as negative.
///
/// Returns NaN if there are no records.
pub fn accuracy(margins: &[f64], labels: &[f64]) -> f64 {
    assert_eq!(margins.len(), labels.len(), "one margin a label");
    let right = margins.iter().zip(labels).filter(|&(&t, &z)| (t > 0.0) == (z > 0.0)).count();
    right as f64 / margins.len() as f64
}

/// Area under the ROC curve: the share of pairs in which the positive's margin is the larger one, ties counting half.
///
/// `None` if one class is absent or a margin is NaN.
pub fn auc(margins: &[f64], labels: &[f64]) -> Option<f64> {
    assert_eq!(margins.len(), labels.len(), "one margin a label");
    let class = |positive: bool| -> Vec<f64> {
        let members = margins.iter().zip(labels).filter(|&(_, &z)| (z > 0.0) == positive);
        members.map(|(&t, _)| t).collect()
    };
    area(&[&class(true)], &[&class(false)])
}

/// [`auc`] of margins that come in pieces, class by class. The pieces may be cut anywhere: pairs are counted, in whole
/// numbers, so neither the cuts nor the threads show in the result.
pub(crate) fn area(positive: &[&[f64]], negative: &[&[f64]]) -> Option<f64> {
    let count = |pieces: &[&[f64]]| pieces.iter().map(|p| p.len()).sum::<usize>();
    let (n_positive, n_negative) = (count(positive), count(negative));
    if n_positive == 0 || n_negative == 0 {
        return None;
    }
    // The smaller class is put in order and the larger one looked up, which is the cheaper of the two.
    let few_are_positive = n_positive < n_negative;
    let (few, many) = if few_are_positive { (positive, negative) } else { (negative, positive) };
    let table = RankTable::of(few)?;
    let below = many.par_iter().map(|piece| table.twice_below(piece)).try_reduce(|| 0, |a, b| Some(a + b))?;
    let pairs = 2 * n_positive as u128 * n_negative as u128;
    let twice_won = if few_are_positive { pairs - u128::from(below) } else { u128::from(below) };
    Some(twice_won as f64 / 2.0 / (n_positive as f64 * n_negative as f64))
}

/// Numbers in buckets of equal width, for looking up how many of them are below another number.
///
/// A number's bucket never falls as the number grows, rounding included. So whatever is in a lower bucket is below, whatever is
/// in a higher one above, and only the few numbers of the same bucket must be compared. Gain: a third to a quarter
/// of the instructions of sorting all margins.
struct RankTable {
    low: f64,
    buckets_per_unit: f64,
    /// Where each bucket starts in `values`; [`CROWDED`] is set if it has more than [`COMPARED`] numbers.
    starts: Vec<u32>,
    /// The numbers, bucket after bucket, those of a crowded bucket in order; then NaNs, which are below nothing.
    values: Vec<f64>,
}

/// Numbers that are compared without asking how many the bucket has: those of higher buckets do not count by themselves.
const COMPARED: usize = 4;

/// Marks a bucket with more numbers than that.
const CROWDED: u32 = 1 << 31;

/// Most buckets: their starts stay in the second-level cache, or almost.
const MOST_BUCKETS: usize = 1 << 18;

impl RankTable {
    /// Puts numbers into buckets; `None` if one is NaN.
    fn of(pieces: &[&[f64]]) -> Option<Self> {
        let numbers = pieces.concat();
        let n = numbers.len();
        assert!(n < CROWDED as usize, "so many records are beyond the memory of a machine");
        let (low, high) = range(&numbers)?;
        let n_buckets = n.next_power_of_two().min(MOST_BUCKETS);
        // Where a width has no sense (all equal, infinite margins) there is one crowded bucket, which is right too.
        let buckets_per_unit = (n_buckets - 1) as f64 / (high - low);
        let buckets_per_unit = if buckets_per_unit.is_finite() { buckets_per_unit } else { 0.0 };
        let low = if low.is_finite() { low } else { 0.0 };
        let (starts, values) = (vec![0; n_buckets], vec![f64::NAN; n + COMPARED]);
        let mut table = Self { low, buckets_per_unit, starts, values };
        let mut buckets = vec![0; n];
        table.buckets(&numbers, &mut buckets);
        // Counts become ends, and filling from the back turns ends into starts.
        buckets.iter().for_each(|&b| table.starts[b as usize] += 1);
        let (mut end, mut crowded) = (0, vec![]);
        for (b, count) in table.starts.iter_mut().enumerate() {
            end += *count;
            let is_crowded = *count > COMPARED as u32;
            *count = end;
            if is_crowded {
                *count |= CROWDED;
                crowded.push(b);
            }
        }
        for (&t, &b) in numbers.iter().zip(&buckets) {
            let start = &mut table.starts[b as usize];
            *start -= 1;
            table.values[(*start & !CROWDED) as usize] = t;
        }
        for b in crowded {
            let bucket = table.start(b)..table.start(b + 1);
            table.values[bucket].sort_unstable_by(f64::total_cmp);
        }
        Some(table)
    }

    fn buckets(&self, numbers: &[f64], out: &mut [u32]) {
        simd(
            #[inline(always)]
            || out.iter_mut().zip(numbers).for_each(|(b, &t)| *b = self.bucket(t)),
        );
    }

    /// The bucket of a number; those outside the range belong to the first or the last.
    #[inline(always)]
    fn bucket(&self, t: f64) -> u32 {
        // Comparisons that send NaN to zero, and a sum whose lowest bits are the rounded number: a vector register does
        // both at once, which it does not with a conversion.
        const ROUNDER: f64 = (1u64 << 52) as f64;
        let (place, last) = ((t - self.low) * self.buckets_per_unit, (self.starts.len() - 1) as f64);
        let place = if place > 0.0 { place } else { 0.0 };
        let place = if place < last { place } else { last };
        (place + ROUNDER).to_bits() as u32
    }

    /// Where bucket `b` starts, or the numbers end.
    fn start(&self, b: usize) -> usize {
        self.starts.get(b).map_or(self.values.len() - COMPARED, |s| (s & !CROWDED) as usize)
    }

    /// `Σ_t` (numbers below `t` + numbers not above `t`); `None` if one is NaN.
    fn twice_below(&self, piece: &[f64]) -> Option<u64> {
        simd(
            #[inline(always)]
            || {
                let (mut twice, mut inside, mut has_nan) = (0, [0; COMPARED], false);
                let mut buckets = [0; 256];
                for some in piece.chunks(buckets.len()) {
                    for (b, &t) in buckets.iter_mut().zip(some) {
                        *b = self.bucket(t);
                        has_nan |= t.is_nan();
                    }
                    for (&b, &t) in buckets.iter().zip(some) {
                        twice += self.twice_below_in(b as usize, t, &mut inside);
                    }
                }
                (!has_nan).then_some(twice + inside.iter().sum::<u64>())
            },
        )
    }

    /// The term of [`Self::twice_below`] of `t` in bucket `b`, but for comparisons, whose results stay in a register's lanes.
    #[inline(always)]
    fn twice_below_in(&self, b: usize, t: f64, inside: &mut [u64; COMPARED]) -> u64 {
        let entry = self.starts[b];
        let start = (entry & !CROWDED) as usize;
        if entry & CROWDED == 0 {
            let near = &self.values[start..start + COMPARED];
            inside.iter_mut().zip(near).for_each(|(n, &v)| *n += u64::from(v < t) + u64::from(v <= t));
            return 2 * start as u64;
        }
        let bucket = &self.values[start..self.start(b + 1)];
        (2 * start + bucket.partition_point(|&v| v < t) + bucket.partition_point(|&v| v <= t)) as u64
    }
}

/// The smallest and the largest number; `None` if one is NaN.
fn range(numbers: &[f64]) -> Option<(f64, f64)> {
    simd(
        #[inline(always)]
        || {
            // Several of each, so that a comparison need not wait for the last one.
            const LANES: usize = 8;
            let (mut low, mut high) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
            let mut nans = 0;
            for some in numbers.chunks(LANES) {
                for ((low, high), &t) in low.iter_mut().zip(&mut high).zip(some) {
                    *low = if t < *low { t } else { *low };
                    *high = if t > *high { t } else { *high };
                    nans += u64::from(t.is_nan());
                }
            }
            let low = low.into_iter().fold(f64::INFINITY, f64::min);
            let high = high.into_iter().fold(f64::NEG_INFINITY, f64::max);
            (nans == 0).then_some((low, high))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition of the area, pair by pair.
    fn by_pairs(margins: &[f64], labels: &[f64]) -> Option<f64> {
        let (mut won, mut pairs) = (0.0, 0.0);
        for (t, _) in margins.iter().zip(labels).filter(|(_, z)| **z > 0.0) {
            for (u, _) in margins.iter().zip(labels).filter(|(_, z)| **z <= 0.0) {
                pairs += 1.0;
                won += if t > u { 1.0 } else { 0.5 * f64::from(u8::from(t == u)) };
            }
        }
        (pairs > 0.0).then_some(won / pairs)
    }

    proptest! {
        #[test]
        fn area_is_the_share_of_pairs(
            pairs in prop::collection::vec((-3i8..4, any::<bool>(), any::<bool>()), 0..200),
            spread in prop_oneof![Just(1.0), Just(1e-300), Just(1e300)],
        ) {
            // The second flag turns 0 into −0, which must tie with it.
            let margins: Vec<f64> =
                pairs.iter().map(|&(t, _, minus)| if minus && t == 0 { -0.0 } else { f64::from(t) * spread }).collect();
            let labels: Vec<f64> = pairs.iter().map(|&(_, z, _)| if z { 1.0 } else { -1.0 }).collect();
            prop_assert_eq!(auc(&margins, &labels), by_pairs(&margins, &labels));
        }

        #[test]
        fn area_does_not_depend_on_how_margins_are_cut_or_spread(
            seed in any::<u64>(), n in 100usize..1500, power in 1i32..12, step in prop_oneof![Just(0.0), Just(0.01)],
            share in 0.05..0.95, cut in 1usize..400,
        ) {
            // Odd powers of uniform numbers pile up at zero, so that buckets are crowded; steps make ties between classes.
            let mut state = seed;
            let mut uniform = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 11) as f64 / (1u64 << 53) as f64
            };
            let (mut margins, mut labels) = (vec![], vec![]);
            for _ in 0..n {
                let t = (2.0 * uniform() - 1.0).powi(2 * power - 1);
                margins.push(if step > 0.0 { (t / step).round() * step } else { t });
                labels.push(if uniform() < share { 1.0 } else { -1.0 });
            }
            let expected = by_pairs(&margins, &labels);
            prop_assert_eq!(auc(&margins, &labels), expected);
            let class = |positive: bool| -> Vec<f64> {
                margins.iter().zip(&labels).filter(|(_, z)| (**z > 0.0) == positive).map(|(t, _)| *t).collect()
            };
            let (positive, negative) = (class(true), class(false));
            let (positive, negative): (Vec<&[f64]>, Vec<&[f64]>) =
                (positive.chunks(cut).collect(), negative.chunks(cut).collect());
            prop_assert_eq!(area(&positive, &negative), expected);
        }
    }

    #[test]
    fn the_ends_of_the_scale() {
        let labels = [-1.0, -1.0, 1.0, 1.0];
        assert_eq!(auc(&[0.1, 0.2, 0.3, 0.4], &labels), Some(1.0));
        assert_eq!(auc(&[0.4, 0.3, 0.2, 0.1], &labels), Some(0.0));
        assert_eq!(auc(&[1.0; 4], &labels), Some(0.5));
        assert_eq!(auc(&[f64::NAN; 4], &labels), None);
        assert_eq!(auc(&[0.0, 1.0, f64::NAN, 1.0], &labels), None);
        assert_eq!(auc(&[f64::NAN, 1.0, 0.0, 1.0], &labels), None);
        let (least, most) = (f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(auc(&[least, most, 0.0, most], &labels), Some(0.625));
        assert_eq!(auc(&[least, 0.0, 1.0, 2.0], &labels), Some(1.0));
        assert_eq!(auc(&[f64::MIN, f64::MAX, f64::MAX, f64::MIN], &labels), Some(0.5));
        assert_eq!(auc(&[0.0, 5e-324, 5e-324, 1e-323], &labels), Some(0.875));
        assert_eq!(auc(&[1.0, 2.0], &[1.0, 1.0]), None);
        assert_eq!(accuracy(&[0.5, -0.5, 0.0, 2.0], &labels), 0.5);
    }
}
