//! Sums that are whitened once: whatever the matrix, the rows and the slopes are, no record moves a sum by more than the sensitivity.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_privacy::{
    Budget, ClippedSum, Gate, MemoryLedger, NoiseSource, Payload, PrivacyError, RequiredCertificate,
    Schedule, SumRound, SumSchedule, Terms, Whitening,
};
use proptest::prelude::*;

struct Silence;

impl NoiseSource for Silence {
    fn fill(&mut self, _scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        out.fill(0);
        Ok(())
    }
    fn description(&self) -> &'static str {
        "zeros, for a test"
    }
    fn is_secure(&self) -> bool {
        false
    }
}

/// The integers of a sum, and how many bits finer than the bound their unit is.
fn released(sum: ClippedSum, n_coordinates: usize, n_records: usize) -> (Vec<i64>, u32) {
    let rounds = vec![SumRound { n_coordinates, terms: Terms::Signed, share: 1.0 }];
    let budget = Budget::new(1.0, 1e-4).unwrap();
    let schedule = SumSchedule::calibrate(budget, n_records, rounds).unwrap();
    let mechanism = schedule.mechanism(RequiredCertificate { modulus: 1.0, tolerance: 0.0 }).unwrap();
    let mut gate =
        Gate::new("r".into(), "s".into(), mechanism, Box::new(Silence), Box::new(MemoryLedger::new()));
    let release = gate.release::<_, PrivacyError>(1, |_| Ok(sum)).unwrap();
    let Payload::Grid { exponent, values } = release.value().clone() else { panic!("sums are on a grid") };
    (values, exponent.unsigned_abs())
}

fn square(v: &[i64]) -> u128 {
    v.iter().map(|t| u128::from(t.unsigned_abs()).pow(2)).sum()
}

/// Slope, numbers, ones.
type Record = (f64, Vec<f64>, Vec<u32>);

const P: usize = 5;

fn sum_of(whitening: &Whitening, records: &[Record]) -> ClippedSum {
    let (mut sum, mut rest, mut room) = (whitening.sum(), whitening.sum(), vec![]);
    for (k, (slope, head, ones)) in records.iter().enumerate() {
        let cap = whitening.cap(head, ones, &mut room);
        // By way of two sums, as threads do.
        if k % 2 == 0 { &mut sum } else { &mut rest }.add(cap, *slope, head, ones);
    }
    sum.merge(rest);
    sum.finish()
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
    (-3f64..3.0).prop_map(|e| 10f64.powf(e))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn replacing_a_record_moves_a_sum_by_at_most_the_sensitivity(
        matrix in matrices(),
        clip in clips(),
        records in prop::collection::vec(record(), 3),
        other in record(),
        n in prop_oneof![Just(3usize), Just(1 << 24)],
    ) {
        // Clip in units of the matrix, as it is where the matrix is a metric's.
        let largest = matrix.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
        let Some(whitening) = Whitening::new(&matrix, clip * largest, n) else { return Ok(()) };
        let mut replaced = records.clone();
        replaced[1] = other;
        let (a, bits) = released(sum_of(&whitening, &records), P, n);
        let (b, _) = released(sum_of(&whitening, &replaced), P, n);
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
        let whitening = Whitening::new(&matrix, clip, slopes.len()).unwrap();
        let records: Vec<Record> =
            slopes.iter().enumerate().map(|(k, s)| (*s, numbers.clone(), vec![2 + (k % 3) as u32])).collect();
        let (found, bits) = released(sum_of(&whitening, &records), P, slopes.len());
        for (i, found) in found.iter().enumerate() {
            let of = |(slope, head, ones): &Record| {
                let row: f64 = head.iter().enumerate().map(|(j, v)| matrix[j * P + i] * v).sum();
                slope * (row + matrix[ones[0] as usize * P + i]) / clip
            };
            let expected: f64 = records.iter().map(of).sum();
            let found = *found as f64 / f64::from(1u32 << bits);
            prop_assert!((found - expected).abs() < 1e-4 * slopes.len() as f64, "{found} is not {expected}");
        }
    }
}

/// A slope that is too steep is cut where the term is 1 long, and not much earlier.
#[test]
fn long_terms_are_cut_at_the_bound() {
    let matrix: Vec<f64> = (0..P * P).map(|k| if k % (P + 1) == 0 { 3.0 } else { 0.1 }).collect();
    let whitening = Whitening::new(&matrix, 0.5, 1).unwrap();
    for (slope, sign) in [(1.0, 1.0), (-1.0, -1.0), (1e300, 1.0), (f64::NEG_INFINITY, -1.0)] {
        let (found, bits) = released(sum_of(&whitening, &[(slope, vec![0.3], vec![2, 4])]), P, 1);
        let length = (square(&found) as f64).sqrt() / f64::from(1u32 << bits);
        assert!(length <= 1.0 && length > 1.0 - 1e-4, "{slope}: {length}");
        assert!(found[2] as f64 * sign > 0.0);
    }
    let (nothing, _) = released(sum_of(&whitening, &[(f64::NAN, vec![0.3], vec![2])]), P, 1);
    assert!(nothing.iter().all(|v| *v == 0));
    assert!(Whitening::new(&matrix, f64::NAN, 1).is_none() && Whitening::new(&[0.0; 25], 1.0, 1).is_none());
    assert!(
        Whitening::new(&[1.0; 24], 1.0, 1).is_none()
            && Whitening::new(&[f64::INFINITY; 25], 1.0, 1).is_none()
    );
}
