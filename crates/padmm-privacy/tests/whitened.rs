//! Sums that are whitened once: whatever the matrix, the rows and the slopes are, no record moves a sum by more than the sensitivity.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use crate::common;

use std::ops::Range;
use std::sync::Arc;

use common::square;
use padmm_privacy::{ClippedSum, RecordRows, Terms, WhitenedRows, Workers};
use proptest::prelude::*;

fn released(sum: ClippedSum, n_coordinates: usize, n_records: usize) -> (Vec<i64>, u32) {
    common::released(sum, Terms::Signed, n_coordinates, n_records)
}

/// Slope, numbers, ones.
type Record = (f64, Vec<f64>, Vec<u32>);

const P: usize = 5;

struct Table(Vec<Record>);

impl RecordRows for Table {
    fn n_rows(&self) -> usize {
        self.0.len()
    }
    fn row(&self, r: usize) -> (&[f64], &[u32]) {
        (&self.0[r].1, &self.0[r].2)
    }
}

struct Alone;

impl Workers for Alone {
    fn each<T: Send>(&self, n: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
        (0..n).map(f).collect()
    }
}

/// The integers of the sum over these records, and their bits; none if the matrix will not do.
fn sum_of(matrix: &[f64], clip: f64, records: &[Record]) -> Option<(Vec<i64>, u32)> {
    let rows = WhitenedRows::new(Arc::new(Table(records.to_vec())), matrix, clip, 1.0, &Alone)?;
    let slopes = |range: Range<usize>, out: &mut [f64]| {
        out.iter_mut().zip(&records[range]).for_each(|(slope, record)| *slope = record.0);
    };
    let n = matrix.len().isqrt();
    Some(released(rows.sum(&Alone, slopes), n, records.len()))
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -1.0f64..1.0,
        2 => any::<f64>(),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(1e300), Just(1.0)],
    ]
}

/// Rows of all kinds: places twice, places beyond the last, numbers that are none.
fn record() -> impl Strategy<Value = Record> {
    let head = prop::collection::vec(any_number(), 0..=P + 1);
    (any_number(), head, prop::collection::vec(0u32..P as u32 + 1, 0..4))
}

fn matrices() -> impl Strategy<Value = Vec<f64>> {
    (-20i32..20).prop_flat_map(|exponent| {
        prop::collection::vec((-1.0f64..1.0).prop_map(move |w| w * 10f64.powi(exponent)), P * P)
    })
}

fn clips() -> impl Strategy<Value = f64> {
    (-3f64..2.0).prop_map(|e| 10f64.powf(e))
}

/// Slopes that are mostly too steep.
fn steep() -> impl Strategy<Value = f64> {
    prop_oneof![any_number(), Just(f64::INFINITY), Just(f64::NEG_INFINITY)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Another record, or the same row with the opposite slope: the farthest that two terms can be apart.
    #[test]
    fn replacing_a_record_moves_a_sum_by_at_most_the_sensitivity(
        matrix in matrices(),
        clip in clips(),
        records in prop::collection::vec(record(), 3),
        other in record(),
        slope in steep(),
        is_opposite in any::<bool>(),
    ) {
        // Clip in units of the matrix, as it is where the matrix is a metric's.
        let clip = clip * matrix.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
        let (mut records, mut replaced) = (records.clone(), records);
        records[1].0 = slope;
        replaced[1] = if is_opposite { (-slope, records[1].1.clone(), records[1].2.clone()) } else { other };
        let (Some((a, bits)), Some((b, _))) = (sum_of(&matrix, clip, &records), sum_of(&matrix, clip, &replaced))
        else {
            return Ok(());
        };
        let moved: Vec<i64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        prop_assert!(square(&moved) <= 4 << (2 * bits), "{moved:?} in units of 2^-{bits}");
    }

    /// The sum is what it says: slopes times rows, whitened, in units of the clip.
    #[test]
    fn short_terms_are_kept(
        matrix in prop::collection::vec(-1.0f64..1.0, P * P),
        slopes in prop::collection::vec(-1.0f64..1.0, 1..20),
        numbers in prop::collection::vec(0.0f64..1.0, 2),
    ) {
        let largest = matrix.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
        prop_assume!(largest > 0.1);
        // Longer than any row of this matrix.
        let clip = 20.0;
        let records: Vec<Record> =
            slopes.iter().enumerate().map(|(k, s)| (*s, numbers.clone(), vec![2 + (k % 3) as u32])).collect();
        let (found, bits) = sum_of(&matrix, clip, &records).unwrap();
        for (i, found) in found.iter().enumerate() {
            let of = |(slope, head, ones): &Record| {
                let row: f64 = head.iter().enumerate().map(|(j, v)| matrix[j * P + i] * v).sum();
                slope * (row + matrix[ones[0] as usize * P + i]) / clip
            };
            let expected: f64 = records.iter().map(of).sum();
            let found = *found as f64 / f64::from(1u32 << bits);
            prop_assert!((found - expected).abs() < 1e-5 * slopes.len() as f64, "{found} is not {expected}");
        }
    }
}

/// A slope that is too steep is cut where the term is 1 long, and not much earlier.
#[test]
fn long_terms_are_cut_at_the_bound() {
    let matrix: Vec<f64> = (0..P * P).map(|k| if k % (P + 1) == 0 { 3.0 } else { 0.1 }).collect();
    for (slope, sign) in [(1.0, 1.0), (-1.0, -1.0), (1e300, 1.0), (f64::NEG_INFINITY, -1.0)] {
        let (found, bits) = sum_of(&matrix, 0.5, &[(slope, vec![0.3], vec![2, 4])]).unwrap();
        let length = (square(&found) as f64).sqrt() / f64::from(1u32 << bits);
        assert!(length <= 1.0 && length > 1.0 - 1e-4, "{slope}: {length}");
        assert!(found[2] as f64 * sign > 0.0);
    }
    let nothing = |record: Record| sum_of(&matrix, 0.5, &[record]).unwrap().0.iter().all(|v| *v == 0);
    assert!(nothing((f64::NAN, vec![0.3], vec![2])), "a slope that is no number");
    assert!(nothing((1.0, vec![0.3], vec![P as u32])), "a place that does not exist");
    assert!(nothing((1.0, vec![f64::NAN], vec![])), "a number that is none");
    let is_refused = |matrix: &[f64], clip: f64| sum_of(matrix, clip, &[(1.0, vec![], vec![0])]).is_none();
    assert!(is_refused(&matrix, f64::NAN) && is_refused(&[0.0; 25], 1.0));
    assert!(is_refused(&[1.0; 24], 1.0) && is_refused(&[f64::INFINITY; 25], 1.0));
}

/// The room that is left for rounding is needed: with it the two sums are a sensitivity apart, and without it they would be farther.
#[test]
fn rounding_is_paid_for() {
    let mut matrix = vec![0.0; P * P];
    matrix[..P].fill(2_132_525.0);
    let clip = f64::from(1 << 21);
    let sum = |slope: f64| {
        let records = [(2.0 / f64::from(1 << 22), vec![1.0], vec![]), (slope, vec![1.0], vec![])];
        sum_of(&matrix, clip, &records).unwrap()
    };
    let ((a, bits), (b, _)) = (sum(f64::INFINITY), sum(f64::NEG_INFINITY));
    let moved: Vec<i64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
    assert!(square(&moved) <= 4 << (2 * bits));
    assert!(square(&moved) as f64 > 0.999_99 * (4u128 << (2 * bits)) as f64);
}

/// Thousands of records and long rows, against integers that have no end.
#[test]
fn large_sums_are_exact() {
    let n = 40;
    let matrix: Vec<f64> =
        (0..n * n).map(|k| ((k * 7919 + 13) as f64 * 0.618_033_988_749).fract() - 0.5).collect();
    let records: Vec<Record> = (0..9000)
        .map(|r: usize| {
            let head: Vec<f64> = (0..10).map(|j| ((r * 31 + j * 17) as f64 * 0.754_877).fract()).collect();
            let slope = if r.is_multiple_of(3) { -1.0 } else { ((r * 13) as f64 * 0.569_84).fract() };
            (slope, head, (10..30 + (r % 10) as u32).collect())
        })
        .collect();
    let clip = 50.0;
    let (found, bits) = sum_of(&matrix, clip, &records).unwrap();
    // As it is defined, with no block and no double that is added: no term is long enough to be cut.
    let largest = matrix.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
    let exponent = 22 - largest.log2().floor() as i32 - 1;
    let length_bits = exponent + 18 + 21 + clip.log2().floor() as i32;
    let unit = 2f64.powi(21 + clip.log2().floor() as i32) / clip;
    let whole: Vec<i128> = matrix.iter().map(|w| (w * 2f64.powi(exponent)).trunc() as i128).collect();
    for (i, found) in found.iter().enumerate() {
        let sum: i128 = records
            .iter()
            .map(|(slope, head, ones)| {
                let slope = (slope * unit).trunc() as i128;
                let numbers = head.iter().enumerate();
                let of_numbers: i128 = numbers
                    .map(|(j, v)| whole[j * n + i] * (v * f64::from(1 << 18)).round_ties_even() as i128)
                    .sum();
                let of_ones: i128 = ones.iter().map(|&j| whole[j as usize * n + i] << 18).sum();
                slope * (of_numbers + of_ones)
            })
            .sum();
        assert_eq!(i128::from(*found), sum >> (length_bits - bits as i32), "coordinate {i}");
    }
}

#[test]
fn a_slope_that_is_not_written_is_zero() {
    let table = || Table(vec![(0.0, vec![1.0], vec![]); 600]);
    let rows = WhitenedRows::new(Arc::new(table()), &[1.0], 1.0, 1.0, &Alone).unwrap();
    let only_first = |range: Range<usize>, out: &mut [f64]| {
        if range.start == 0 {
            out[0] = 1.0;
        }
    };
    let (found, bits) = released(rows.sum(&Alone, only_first), 1, 600);
    assert!((1..=1 << bits).contains(&found[0]), "{found:?}");
}

#[test]
#[should_panic(expected = "a term for every record")]
fn a_sum_over_all_records_takes_no_more() {
    let table = Table(vec![(0.0, vec![1.0], vec![]); 3]);
    let rows = WhitenedRows::new(Arc::new(table), &[1.0], 1.0, 1.0, &Alone).unwrap();
    let sum = || rows.sum(&Alone, |_, out: &mut [f64]| out.fill(1.0));
    sum().merge(sum());
}
