//! Composition of pure mechanisms and of Gaussian objective perturbation, against `testdata/privacy/make.py` and by properties.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_baselines::accounting::*;
use padmm_baselines::mechanism::ObjectiveInputs;
use padmm_core::plan::AccountantKind;
use padmm_privacy::*;
use proptest::prelude::*;
use serde_json::Value;

fn rows(table: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/privacy/composition.json");
    let text = std::fs::read_to_string(path).expect("the reference values are in the repository");
    let all: Value = serde_json::from_str(&text).expect("valid JSON");
    let rows = all[table].as_array().expect("a table").clone();
    assert!(rows.len() >= 8, "{table}");
    rows
}

/// Numbers are stored as text, since the standard library's parser is correctly rounded.
fn number(value: &Value) -> f64 {
    value.as_str().expect("a number as text").parse().expect("a number")
}

fn epsilons(row: &Value) -> Vec<f64> {
    let list: Vec<f64> = row["epsilons"].as_array().unwrap().iter().map(number).collect();
    list.repeat(row["count"].as_u64().unwrap() as usize)
}

fn delta(row: &Value) -> Delta {
    Delta::new(number(&row["delta"])).unwrap()
}

/// Checks that `computed` is not below the truth, and that it is not more than `relative` above it.
fn enclosed(row: &Value, computed: f64, relative: f64) {
    let truth = number(&row["above"]);
    assert!(computed >= truth, "{computed} is below the truth: {row}");
    assert!(computed <= truth * (1.0 + relative) + 1e-12, "{computed} is far above the truth: {row}");
}

#[test]
fn optimal_composition_of_equal_steps() {
    for row in rows("pure_equal") {
        let all = compose_pure(&epsilons(&row), delta(&row)).unwrap();
        // Beyond 700, e^-epsilon underflows, and the answer is the next larger loss.
        enclosed(&row, all.exact, if all.exact > 700.0 { 1e-7 } else { 1e-10 });
        assert_eq!(all.exact, CompositionRule::Best.pick(&all));
    }
}

#[test]
fn optimal_composition_of_unequal_steps() {
    for row in rows("pure_unequal") {
        let epsilons = epsilons(&row);
        let all = compose_pure(&epsilons, delta(&row)).unwrap();
        // The lattice moves each epsilon by less than 2^-12 of the largest, and the total by less than the sum of that.
        let truth = number(&row["above"]);
        let largest = epsilons.iter().copied().fold(0.0, f64::max);
        assert!(all.exact >= truth, "{} is below the truth: {row}", all.exact);
        assert!(all.exact <= truth + largest * epsilons.len() as f64 / 4096.0, "{}: {row}", all.exact);
    }
}

#[test]
fn renyi_composition() {
    for row in rows("pure_rdp") {
        let all = compose_pure(&epsilons(&row), delta(&row)).unwrap();
        // The plain sum is valid too and caps what is reported.
        if number(&row["above"]) <= all.basic {
            enclosed(&row, all.rdp, 1e-9);
        } else {
            assert_eq!(all.rdp, all.basic);
        }
        let mut accountant = RdpAccountant::new();
        epsilons(&row).iter().for_each(|&epsilon| accountant.compose(&Event::PureDp { epsilon }).unwrap());
        assert!((accountant.epsilon(delta(&row)).value() / all.rdp - 1.0).abs() < 1e-12);
    }
}

#[test]
fn renyi_composition_of_gaussian_objective_perturbation() {
    for row in rows("objective_rdp") {
        let event =
            Event::GaussianObjective { shift: number(&row["shift"]), jacobian: number(&row["jacobian"]) };
        let (mut rdp, mut zcdp) = (RdpAccountant::new(), ZcdpAccountant::new(ZcdpConversion::OptimalOrder));
        for _ in 0..row["count"].as_u64().unwrap() {
            rdp.compose(&event).unwrap();
            zcdp.compose(&event).unwrap();
        }
        enclosed(&row, rdp.epsilon(delta(&row)).value(), 1e-9);
        assert!(rdp.epsilon(delta(&row)) <= zcdp.epsilon(delta(&row)), "{row}");
        assert_eq!(rdp.rho(), zcdp.rho());
    }
}

#[test]
fn the_bound_of_gaussian_objective_perturbation_dominates_the_truth() {
    // One-dimensional logistic problems whose densities are integrated numerically: slope and row norm are bounded by 1.
    for row in rows("objective_true") {
        let inputs = ObjectiveInputs {
            gradient_bound: 1.0,
            curvature_bound: 0.25,
            n_records: row["records"].as_u64().unwrap() as usize,
        };
        let shift = inputs.shift().unwrap() / number(&row["noise_std"]);
        let jacobian = inputs.jacobian(number(&row["modulus"])).unwrap();
        let event = Event::GaussianObjective { shift, jacobian };
        for pair in row["divergences"].as_array().unwrap() {
            let (order, truth) = (number(&pair[0]), number(&pair[1]));
            let fold = (1.0 + libm::erf((order - 1.0) * shift / 2f64.sqrt())).ln() / (order - 1.0);
            let bound = jacobian + 0.5 * order * shift * shift + fold;
            assert!(truth <= bound && bound <= order * charge(&event).unwrap().value(), "{order}: {row}");
        }
        for pair in row["epsilons"].as_array().unwrap() {
            let mut accountant = RdpAccountant::new();
            accountant.compose(&event).unwrap();
            let reported = accountant.epsilon(Delta::new(number(&pair[0])).unwrap()).value();
            assert!(reported >= number(&pair[1]), "{reported}: {row}");
        }
    }
}

#[test]
fn the_smallest_cases_by_hand() {
    let delta = Delta::new(1e-6).unwrap();
    let none = compose_pure(&[], delta).unwrap();
    assert_eq!((none.basic, none.zcdp, none.rdp, none.exact), (0.0, 0.0, 0.0, 0.0));
    assert_eq!(compose_pure(&[0.0, 0.0], delta).unwrap(), none);
    // One step: delta = (e^e0 - e^e)/(1 + e^e0), so e = ln(e^e0 - delta (1 + e^e0)).
    let e0: f64 = 0.7;
    let expected = (e0.exp() - 1e-6 * (1.0 + e0.exp())).ln();
    let one = compose_pure(&[e0], delta).unwrap();
    assert_eq!(one.basic, e0);
    assert!((one.exact - expected).abs() < 1e-13 && one.exact >= expected - 1e-16);
    // A delta that one answer alone does not exceed: nothing is left to pay.
    assert_eq!(compose_pure(&[0.1], Delta::new(0.9).unwrap()).unwrap().exact, 0.0);
    for bad in [f64::NAN, -0.1, f64::INFINITY] {
        assert!(matches!(compose_pure(&[0.1, bad], delta), Err(PrivacyError::OutOfRange { .. })));
    }
    assert!(per_step_epsilon(Budget::new(1.0, 1e-6).unwrap(), 0, CompositionRule::Best).is_err());
}

#[test]
fn extremes_stay_sane() {
    for (epsilon, count) in [(1e-300, 3), (1e-9, 100_000), (30.0, 5), (800.0, 3), (1e5, 2), (0.01, 1_000_000)]
    {
        for delta in [1e-300, 1e-12, 0.999] {
            let all = compose_pure(&vec![epsilon; count], Delta::new(delta).unwrap()).unwrap();
            assert!(all.exact <= all.basic && all.exact <= all.rdp && all.exact <= all.zcdp);
            assert!(all.exact >= 0.0 && all.basic.is_finite(), "{epsilon} {count} {delta}: {all:?}");
        }
    }
    // Too many unequal steps for the lattice: what is reported as exact is the best of the rest.
    let many: Vec<f64> = (0..3000).map(|k| 1e-3 + 1e-7 * f64::from(k)).collect();
    let all = compose_pure(&many, Delta::new(1e-5).unwrap()).unwrap();
    assert_eq!(all.exact, all.rdp);
}

#[test]
fn names() {
    use padmm_baselines::accounting::CompositionRule::*;
    assert_eq!("basic".parse::<AccountantKind>().unwrap().to_string(), "basic");
    assert_eq!("exact".parse::<AccountantKind>().unwrap(), AccountantKind::default());
    let unknown = "guess".parse::<AccountantKind>().unwrap_err().to_string();
    assert!(unknown.contains("exact, paper, basic"), "{unknown}");
    let rules = [AccountantKind::Exact, AccountantKind::Paper, AccountantKind::Basic];
    assert_eq!(rules.map(composition_rule), [Best, Basic, Basic]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn bounds_are_ordered_and_monotone(
        epsilons in prop::collection::vec(1e-3f64..1.5, 1..60),
        log_delta in -25.0f64..-1.0,
    ) {
        let delta = Delta::new(log_delta.exp()).unwrap();
        let smaller = Delta::new(0.5 * delta.value()).unwrap();
        let all = compose_pure(&epsilons, delta).unwrap();
        for other in [all.basic, all.zcdp, all.rdp] {
            prop_assert!(all.exact <= other && CompositionRule::Best.pick(&all) <= other);
        }
        // Never below what one step alone already costs.
        let largest = epsilons.iter().copied().fold(0.0, f64::max);
        prop_assert!(all.exact >= compose_pure(&[largest], delta).unwrap().exact * (1.0 - 1e-12));
        let tighter = compose_pure(&epsilons, smaller).unwrap();
        prop_assert!(tighter.exact >= all.exact && tighter.rdp >= all.rdp * (1.0 - 1e-12));
        // Larger steps cost more, by every rule.
        let larger: Vec<f64> = epsilons.iter().map(|epsilon| 1.01 * epsilon).collect();
        let more = compose_pure(&larger, delta).unwrap();
        prop_assert!(more.basic > all.basic && more.zcdp > all.zcdp);
        prop_assert!(more.rdp >= all.rdp * (1.0 - 1e-12));
    }

    #[test]
    fn equal_and_nearly_equal_steps_agree(epsilon in 1e-3f64..1.0, count in 2usize..50) {
        // The binomial distribution and the lattice are different code; a hair's difference between steps switches.
        let delta = Delta::new(1e-5).unwrap();
        let equal = compose_pure(&vec![epsilon; count], delta).unwrap();
        let mut nearly = vec![epsilon; count];
        nearly[0] = epsilon.next_up();
        let unequal = compose_pure(&nearly, delta).unwrap();
        prop_assert!(unequal.exact >= equal.exact * (1.0 - 1e-12));
        prop_assert!(unequal.exact <= equal.exact * 1.01 + 1e-9, "{} {}", unequal.exact, equal.exact);
    }

    #[test]
    fn per_step_budgets_are_kept_and_used_up(
        log_epsilon in -3.0f64..3.5,
        log_delta in -25.0f64..-1.0,
        steps in 1u32..150,
    ) {
        let budget = Budget::new(log_epsilon.exp(), log_delta.exp()).unwrap();
        use padmm_baselines::accounting::CompositionRule::*;
        for rule in [Best, Basic, Zcdp, Rdp, Exact] {
            let epsilon = per_step_epsilon(budget, steps, rule).unwrap();
            let spent = |epsilon| rule.pick(&compose_pure(&vec![epsilon; steps as usize], budget.delta).unwrap());
            prop_assert!(spent(epsilon) <= budget.epsilon.value(), "{rule:?}");
            prop_assert!(spent(epsilon * (1.0 + 1e-6)) > budget.epsilon.value(), "{rule:?} wastes");
        }
    }
}
