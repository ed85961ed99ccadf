//! `padmm account`: the test vectors of the specification (EQUATIONS §9), both directions, and what is promised of the output.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use crate::common;

use common::{json, ok};
use serde_json::Value;

fn account(flags: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    json(&ok(folder.path(), &[&["account", "--json"], flags].concat()))
}

fn number(answer: &Value, key: &str) -> f64 {
    answer[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {answer}"))
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not {expected} within {tolerance}");
}

#[test]
fn the_contract() {
    let answer = account(&[]);
    for key in [
        "epsilon_exact",
        "epsilon_paper",
        "delta",
        "rho_total",
        "mu",
        "noise_multiplier_first",
        "noise_multiplier_last",
        "delta_slack",
    ] {
        number(&answer, key);
    }
    let charges: Vec<f64> =
        answer["rho_per_round"].as_array().unwrap().iter().map(|r| r.as_f64().unwrap()).collect();
    assert_eq!(charges.len(), 50);
    near(charges.iter().sum::<f64>() / number(&answer, "rho_total"), 1.0, 1e-12);
    near(charges[49] / charges[0], 0.995f64.powi(-49), 1e-12);
    near(number(&answer, "epsilon_exact"), 5.0, 1e-9);
    near(number(&answer, "mu"), 1.2564, 5e-5);
}

/// ρ by the paper's conversion, the exact μ, and what the paper's noise is worth exactly, at δ = 1e-4.
#[test]
fn conversions_of_the_specification() {
    for (epsilon, rho, mu, exact) in [
        ("1", 0.025_763, 0.3139, 0.6937),
        ("5", 0.539_940, 1.2564, 3.9823),
        ("10", 1.817_390, 2.1965, 8.3569),
    ] {
        let paper = account(&["--epsilon", epsilon, "--accountant", "paper"]);
        near(number(&paper, "rho_total"), rho, 5e-7);
        near(number(&paper, "epsilon_exact"), exact, 5e-5);
        assert!(number(&paper, "epsilon_paper") <= epsilon.parse().unwrap());
        near(number(&account(&["--epsilon", epsilon]), "mu"), mu, 5e-5);
    }
}

/// K = 50, ε = 5, δ = 1e-4, paper's conversion; σ/Δ with Δ = 0.05438836.
#[test]
fn noise_of_the_specification() {
    let flat = account(&["--accountant", "paper", "--decay", "1"]);
    near(number(&flat, "noise_multiplier_first"), 6.804_514_77, 5e-9);
    assert_eq!(flat["noise_multiplier_first"], flat["noise_multiplier_last"]);
    let fading = account(&["--accountant", "paper"]);
    near(fading["rho_per_round"][0].as_f64().unwrap(), 9.525_89e-3, 5e-9);
    near(number(&fading, "noise_multiplier_first"), 0.394_038_10 / 0.054_388_36, 2e-6);
    near(number(&fading, "noise_multiplier_last"), 0.348_500_74 / 0.054_388_36, 2e-6);
}

#[test]
fn both_directions_agree_and_never_report_less() {
    let forward = account(&["--epsilon", "2", "--delta", "1e-6", "--rounds", "7", "--decay", "0.9"]);
    let common = ["--delta", "1e-6", "--rounds", "7", "--decay", "0.9"];
    for (flag, value) in [
        ("--noise-multiplier", number(&forward, "noise_multiplier_first")),
        ("--rho", number(&forward, "rho_total")),
        ("--rho-first", forward["rho_per_round"][0].as_f64().unwrap()),
    ] {
        let value = value.to_string();
        let back = account(&[&[flag, &value], &common[..]].concat());
        near(number(&back, "epsilon_exact"), 2.0, 1e-9);
        assert!(number(&back, "rho_total") >= number(&forward, "rho_total") * (1.0 - 1e-15), "{flag}");
    }
    assert!(number(&account(&["--rho", "0.5"]), "rho_total") >= 0.5);
}

/// A release on the grid costs a little more than ideal noise, and the slack is inside δ.
#[test]
fn a_real_release_costs_a_little_more() {
    let (ideal, real) = (account(&["--epsilon", "1"]), account(&["--epsilon", "1", "--features", "104"]));
    let (a, b) = (number(&ideal, "noise_multiplier_first"), number(&real, "noise_multiplier_first"));
    assert!(a < b && b < 1.001 * a, "{a} {b}");
    assert_eq!(number(&ideal, "delta_slack"), 0.0);
    assert!(number(&real, "delta_slack") > 0.0 && number(&real, "delta_slack") <= 1e-6);
    assert!(real["grid_bits"].as_u64().unwrap() >= 24);
    assert!(number(&real, "epsilon_exact") <= 1.0);
    // Where no grid is fine enough, zCDP at the optimal order takes over.
    let large = account(&["--epsilon", "60", "--features", "104"]);
    assert!(number(&large, "epsilon_exact") <= 60.0 && number(&large, "delta_slack") == 0.0);
}

#[test]
fn groups_are_promised_less() {
    let answer = account(&["--epsilon", "1", "--group-records", "2", "--group-sites", "3"]);
    let group = &answer["group"];
    near(number(group, "mu") / number(&answer, "mu"), 2.0 * 3f64.sqrt(), 1e-12);
    near(number(group, "rho_total") / number(&answer, "rho_total"), 12.0, 1e-12);
    assert!(number(group, "epsilon_exact") > number(&answer, "epsilon_exact"));
    let alone = account(&["--epsilon", "1", "--group-records", "1"]);
    near(number(&alone["group"], "epsilon_exact"), 1.0, 1e-9);
    let real =
        account(&["--epsilon", "1", "--group-records", "2", "--group-sites", "3", "--features", "104"]);
    assert!(number(&real["group"], "epsilon_exact") >= number(group, "epsilon_exact"));
    assert!(number(&real["group"], "epsilon_exact") <= number(&real["group"], "epsilon_paper"));
}

#[test]
fn comparison_contains_the_chosen_setting() {
    let answer = account(&["--noise-multiplier", "6", "--rounds", "40", "--decay", "0.98", "--compare"]);
    let rows = answer["compare"].as_array().unwrap();
    assert_eq!(rows.len(), 15);
    let chosen = rows.iter().find(|r| r["rounds"] == 40 && r["decay"] == 0.98).unwrap();
    near(number(chosen, "epsilon_exact_if_noise_stays"), number(&answer, "epsilon_exact"), 1e-9);
    near(number(chosen, "noise_multiplier_first_if_epsilon_stays"), 6.0, 1e-9);
    let more = rows.iter().find(|r| r["rounds"] == 80 && r["decay"] == 0.98).unwrap();
    assert!(number(more, "epsilon_exact_if_noise_stays") > number(&answer, "epsilon_exact"));
    assert!(number(more, "noise_multiplier_first_if_epsilon_stays") > 6.0);
    // A decay that is too steep for so many rounds has no numbers.
    let steep = account(&["--rounds", "3000", "--decay", "1", "--compare"]);
    let rows = steep["compare"].as_array().unwrap();
    assert!(
        rows.iter().any(|r| r["rounds"] == 6000
            && r["decay"] == 0.95
            && r["epsilon_exact_if_noise_stays"].is_null())
    );
}

#[test]
fn people_get_a_short_table_and_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let text = ok(folder.path(), &["account", "--compare", "--group-records", "2"]);
    for needle in [
        "ε exact",
        "5.0000",
        "6.1816",
        "12 of 50 rounds",
        "2 records at each of 1 site ",
        "→ 0.995",
        "rounded outward",
    ] {
        assert!(text.contains(needle), "`{needle}` is not in {text}");
    }
    let all = ok(folder.path(), &["account", "--all-rounds"]);
    assert!(!all.contains("of 50 rounds;") && all.lines().count() > 55, "{all}");
}
