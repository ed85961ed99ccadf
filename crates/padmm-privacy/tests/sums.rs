//! Sums of clipped terms: no input makes a term longer than the bound, sums are exact, and the charges are those of the noise.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use crate::common;

use common::{release, released, square};
use padmm_privacy::*;
use proptest::prelude::*;

fn budget(epsilon: f64) -> Budget {
    Budget::new(epsilon, 1e-4).unwrap()
}

/// The integers of a sum over these terms, and how many bits finer than the bound their unit is.
fn integers(terms: Terms, n_records: usize, rows: &[(f64, Vec<f64>)]) -> (Vec<i64>, u32) {
    let n_coordinates = rows[0].1.len();
    let mut sum = ClippedSum::new(terms, n_coordinates, n_records);
    rows.iter().for_each(|(factor, row)| sum.add(*factor, row));
    released(sum, terms, n_coordinates, n_records)
}

/// Numbers of all sizes, and what is no number.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -2.0f64..2.0,
        2 => any::<f64>(),
        1 => prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(1e300), Just(0.0)],
    ]
}

fn rows(n: usize) -> impl Strategy<Value = Vec<(f64, Vec<f64>)>> {
    (1usize..40).prop_flat_map(move |p| {
        prop::collection::vec((any_number(), prop::collection::vec(any_number(), p)), n)
    })
}

fn kinds() -> impl Strategy<Value = Terms> {
    prop_oneof![Just(Terms::Signed), Just(Terms::NonNegative)]
}

proptest! {
    #[test]
    fn no_term_is_longer_than_the_bound(terms in kinds(), rows in rows(1), n in prop_oneof![1usize..10, Just(1 << 30)]) {
        let (term, bits) = integers(terms, n, &rows);
        prop_assert!(square(&term) <= 1 << (2 * bits), "{term:?} in units of 2^-{bits}");
        prop_assert!(terms == Terms::Signed || term.iter().all(|t| *t >= 0));
    }

    #[test]
    fn replacing_a_record_moves_a_sum_by_at_most_the_sensitivity(terms in kinds(), rows in rows(5), other in rows(1)) {
        let p = rows[0].1.len();
        let mut replaced = rows.clone();
        let mut row = other[0].1.clone();
        row.resize(p, 0.5);
        replaced[2] = (other[0].0, row);
        let ((a, bits), (b, _)) = (integers(terms, 5, &rows), integers(terms, 5, &replaced));
        let moved: Vec<i64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        let most: u128 = if terms == Terms::Signed { 4 } else { 2 };
        prop_assert!(square(&moved) <= most << (2 * bits));
    }

    /// A row of a head and some places adds what the whole row adds, and what is no row adds nothing.
    #[test]
    fn a_sparse_row_is_the_whole_row(
        terms in kinds(),
        factor in any_number(),
        values in prop::collection::vec(any_number(), 0..12),
        places in prop::collection::vec(0u32..24, 0..8),
        is_sorted in any::<bool>(),
    ) {
        let mut places = places;
        if is_sorted {
            places.sort_unstable();
            places.dedup();
        }
        let mut sparse = ClippedSum::new(terms, 20, 3);
        sparse.add_at(factor, &places, &values);
        let (found, bits) = released(sparse, terms, 20, 3);
        prop_assert!(square(&found) <= 1 << (2 * bits));
        let n_head = values.len().checked_sub(places.len());
        let is_row = n_head.is_some_and(|head| {
            places.windows(2).all(|pair| pair[0] < pair[1]) && places.iter().all(|&j| (head..20).contains(&(j as usize)))
        });
        let mut whole = vec![0.0; 20];
        if let (true, Some(head)) = (is_row, n_head) {
            whole[..head].copy_from_slice(&values[..head]);
            places.iter().zip(&values[head..]).for_each(|(&j, v)| whole[j as usize] = *v);
        }
        // Where a term had to be shortened, the last bits of its length depend on the order of the squares.
        let (expected, _) = integers(terms, 3, &[(factor, whole)]);
        for (a, b) in found.iter().zip(&expected) {
            prop_assert!((a - b).abs() <= 8, "{found:?} is not {expected:?}");
        }
    }

    #[test]
    fn a_sum_is_that_of_its_terms_and_short_terms_are_kept(rows in prop::collection::vec(prop::collection::vec(-0.2f64..0.2, 6), 1..50)) {
        let rows: Vec<(f64, Vec<f64>)> = rows.into_iter().map(|row| (0.9, row)).collect();
        let (sum, bits) = integers(Terms::Signed, rows.len(), &rows);
        for (j, found) in sum.iter().enumerate() {
            let unit = f64::from(1u32 << bits) * 0.9;
            prop_assert_eq!(*found, rows.iter().map(|(_, row)| (unit * row[j]) as i64).sum::<i64>());
        }
    }
}

#[test]
fn merged_sums_are_sums_and_other_kinds_are_refused() {
    let mut all = ClippedSum::new(Terms::Signed, 2, 3);
    let mut rest = ClippedSum::new(Terms::Signed, 2, 3);
    all.add(1.0, &[0.25, -0.5]);
    rest.add(1.0, &[0.5, 0.5]);
    rest.add(1.0, &[-0.125, 0.0]);
    all.merge(rest);
    let release = |computed| release(Terms::Signed, 2, 3, computed);
    assert_eq!(release(all.into()).unwrap().to_vec(), [0.625, 0.0]);
    let wrong = [
        Computed::from(ClippedSum::new(Terms::Signed, 3, 3)),
        ClippedSum::new(Terms::NonNegative, 2, 3).into(),
        ClippedSum::new(Terms::Signed, 2, 1 << 29).into(),
        Certified { point: vec![0.0; 2], residual: 0.0 }.into(),
    ];
    for computed in wrong {
        assert_eq!(release(computed).unwrap_err(), PrivacyError::WrongKind);
    }
}

#[test]
fn shares_add_up_to_the_budget_and_no_further() {
    let round = |share, terms| SumRound { n_coordinates: 100, terms, share };
    let rounds = vec![round(0.2, Terms::NonNegative), round(0.3, Terms::Signed), round(0.5, Terms::Signed)];
    for epsilon in [0.1, 1.0, 5.0] {
        let schedule = NoiseSchedule::for_sums(budget(epsilon), 1000, &rounds).unwrap();
        let report = schedule.report();
        assert!(
            report.epsilon_exact <= epsilon && report.epsilon_exact > epsilon * (1.0 - 1e-6),
            "{report:?}"
        );
        // μ of the whole budget, and each round's part of its square.
        let mu = gdp_mu(budget(epsilon)).value();
        for (k, SumRound { terms, share, .. }) in (1..).zip(&rounds) {
            let sensitivity = if *terms == Terms::Signed { 2.0 } else { 2f64.sqrt() };
            let expected = sensitivity / (mu * share.sqrt());
            let found = schedule.noise_std(k).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-6, "round {k}: {found}, {expected}");
        }
        let curve = schedule.epsilon_curve();
        assert!(curve.windows(2).all(|w| w[0].exact < w[1].exact) && curve[2].exact == report.epsilon_exact);
    }
    let too_much = vec![round(0.6, Terms::Signed), round(0.6, Terms::Signed)];
    assert!(NoiseSchedule::for_sums(budget(1.0), 1000, &too_much).is_err());
    assert!(
        NoiseSchedule::for_sums(budget(200.0), 1000, &rounds).is_err(),
        "no noise on whole numbers is as narrow"
    );
}
