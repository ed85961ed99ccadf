//! What people are told is never below what is: compared in decimal digits, not in floating-point numbers.

#[path = "../../padmm-core/tests/common/double.rs"]
mod double;

use double::Double;
use padmm_privacy::words::{
    best_guess, delta_text, epsilon_text, factor_text, lower_text, percent_text, upper_text,
};
use padmm_privacy::{Promise, Stopping};
use proptest::prelude::*;
use std::cmp::Ordering;

/// A number that is not negative as digits before and after the point, exactly.
fn digits(text: &str) -> (String, String) {
    let (digits, exponent) = text.split_once('e').map_or((text, 0), |(d, e)| (d, e.parse::<i32>().unwrap()));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let pad = "0".repeat(400);
    let all = format!("{pad}{whole}{fraction}{pad}");
    let point = (pad.len() + whole.len()) as i32 + exponent;
    let (whole, fraction) = all.split_at(usize::try_from(point).unwrap());
    (whole.trim_start_matches('0').to_owned(), fraction.trim_end_matches('0').to_owned())
}

/// Compares two texts as the numbers that they are.
fn compare(a: &str, b: &str) -> Ordering {
    let ((a, a_rest), (b, b_rest)) = (digits(a), digits(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(&b)).then_with(|| a_rest.cmp(&b_rest))
}

/// All digits of a floating-point number: it has no more than 1074 behind the point.
fn exactly(value: f64) -> String {
    format!("{value:.1074}")
}

/// Whether the text has the value's own digits, those with which it is written so that it reads back: people wrote it so.
fn is_as_written(text: &str, value: f64) -> bool {
    text.parse() == Ok(value) && compare(text, &format!("{value}")) == Ordering::Equal
}

/// Numbers as they occur, with few digits and with many, from the smallest to the largest.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        0.0..20.0f64,
        (0..100_000u32).prop_map(|v| f64::from(v) / 1e4),
        (0..200_000u32).prop_map(|v| (f64::from(v) / 1e4).next_up()),
        (-200..200i32, 0.9..10.1f64).prop_map(|(e, m)| m * 10f64.powi(e)),
        Just(0.0),
    ]
}

#[test]
fn the_comparison_compares() {
    assert_eq!(compare("1.5e1", "15.000"), Ordering::Equal);
    assert_eq!(compare("0.1", &exactly(0.1)), Ordering::Less);
    assert_eq!(compare("9.99e-4", "0.001"), Ordering::Less);
    assert_eq!(compare("100", "99.9"), Ordering::Greater);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_is_shown_is_not_below(value in number()) {
        for text in [epsilon_text(value), upper_text(value), delta_text(value)] {
            let above = compare(&text, &exactly(value)) != Ordering::Less;
            prop_assert!(above || is_as_written(&text, value), "{text} for {value:e}");
            // And it is not far above: one unit of its last digit at most.
            let near = value * 1.0011 + if value >= 0.1 { 1e-4 } else { 0.0 };
            prop_assert!(text.parse::<f64>().unwrap() <= near.next_up(), "{text} for {value:e}");
        }
        let text = lower_text(value);
        let below = compare(&text, &exactly(value)) != Ordering::Greater;
        prop_assert!(below || is_as_written(&text, value), "{text} for {value:e}");
    }

    /// Against an exponential of twice the precision.
    #[test]
    fn factors_and_guesses_are_not_below(epsilon in prop_oneof![0.0..30.0f64, 0.0..600.0f64, 0.0..1e-3f64], delta in 0.0..0.1f64) {
        let truth = Double::of(epsilon).exp();
        let shown = factor_text(epsilon);
        // The true value lies between these two, by far; the smaller one is compared in digits.
        let least = (truth.0 + truth.1) * (1.0 - 1e-15);
        prop_assert!(compare(&shown, &exactly(least)) == Ordering::Greater, "{shown} for e^{epsilon}");
        prop_assert!(shown.parse::<f64>().unwrap() <= truth.0 * 1.0011 + 1e-4, "{shown} for e^{epsilon}");
        let odds = Double::of(-epsilon).exp();
        let best = Double::of(1.0)
            .plus(odds.times(Double::of(delta)))
            .times(Double::of(1.0).plus(odds).inverse());
        let percent = percent_text(best_guess(epsilon, delta));
        let number = percent.strip_suffix(" %").unwrap();
        let least = (100.0 * (best.0 + best.1) * (1.0 - 1e-15)).min(100.0 * (1.0 - 1e-15));
        prop_assert!(compare(number, &exactly(least)) == Ordering::Greater, "{percent} for {epsilon}, {delta}");
        let most = 100.0 * best.0 + 0.1001;
        prop_assert!(number.parse::<f64>().unwrap() <= most.min(100.0), "{percent} for {epsilon}, {delta}");
    }
}

/// The numbers that were once shown too small.
#[test]
fn the_factor_of_a_ledger_is_rounded_up() {
    // e^5 = 148.41315910…
    assert_eq!(factor_text(5.0), "148.4132");
    let statement = Promise::new("All that has left", 5.0, 1e-4, Stopping::SolverMayStall).statement();
    assert!(
        statement.starts_with("All that has left satisfies (5.0000, 1e-4)-differential privacy for"),
        "{statement}"
    );
    assert!(
        statement.contains("e^ε = 148.4132") && statement.contains("right at most 99.4 % of the time"),
        "{statement}"
    );
}
