//! Conversions against 60-digit values (`testdata/privacy/make.py`): never on the wrong side, and hardly off.

#![allow(clippy::disallowed_methods, reason = "a test may read the files that it is about")]
#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_privacy::*;
use serde_json::Value;

/// Largest relative distance from the truth that a conversion may have on its safe side.
const EXCESS: f64 = 1e-9;
/// Where the truth is nearly zero, this absolute distance is allowed as well.
const NEAR_ZERO: f64 = 1e-13;

struct Row(Value);

impl Row {
    /// Numbers are stored as text, since the standard library's parser is correctly rounded and a JSON reader's need not be.
    fn number(&self, key: &str) -> f64 {
        self.0[key].as_str().expect("a number as text").parse().expect("a number")
    }
}

fn rows(table: &str) -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/privacy/gdp.json");
    let text = std::fs::read_to_string(path).expect("the reference values are in the repository");
    let all: Value = serde_json::from_str(&text).expect("valid JSON");
    all[table].as_array().expect("a table").iter().cloned().map(Row).collect()
}

/// Checks that `computed` is not below the truth, and returns how far above it is, relative to the truth.
fn excess_above(row: &Row, computed: f64) -> f64 {
    assert!(computed >= row.number("above"), "{} is below the truth: {}", computed, row.0);
    (computed - row.number("above") - NEAR_ZERO).max(0.0) / row.number("above").max(f64::MIN_POSITIVE)
}

fn excess_below(row: &Row, computed: f64) -> f64 {
    assert!(computed <= row.number("below"), "{} is above the truth: {}", computed, row.0);
    (row.number("below") - computed) / row.number("below")
}

fn budget(row: &Row) -> Budget {
    Budget::new(row.number("epsilon"), row.number("delta")).unwrap()
}

#[test]
fn mills_ratio_is_enclosed_with_room() {
    let rows = rows("mills");
    assert!(rows.len() >= 200);
    for row in &rows {
        let (x, truth) = (row.number("x"), row.number("above"));
        let (low, high) = (mills_ratio_down(x), mills_ratio_up(x));
        assert!(low <= row.number("below") && high >= truth, "x = {x}");
        // The centre of the enclosure is the computed value: its own error stays below half of what is allowed for.
        let centre = low + 0.5 * (high - low);
        assert!((centre - truth).abs() <= 9e-16 * truth, "x = {x}: {}", (centre - truth) / truth);
    }
}

#[test]
fn gdp_delta_is_never_below_and_close() {
    let rows = rows("gdp_delta");
    assert!(rows.len() >= 50);
    for row in &rows {
        let (mu, epsilon) = (row.number("mu"), row.number("epsilon"));
        let computed = gdp_delta(GdpMu::new(mu).unwrap(), Epsilon::new(epsilon).unwrap());
        // Small mu at large epsilon cancels: the difference of Mills ratios is about mu/a of either.
        assert!(excess_above(row, computed) <= 1e-10, "mu = {mu}, epsilon = {epsilon}");
    }
}

#[test]
fn gdp_epsilon_is_never_below_and_close() {
    let rows = rows("gdp_epsilon");
    assert!(rows.len() >= 150);
    for row in &rows {
        let computed =
            gdp_epsilon(GdpMu::new(row.number("mu")).unwrap(), Delta::new(row.number("delta")).unwrap());
        let excess = excess_above(row, computed.value());
        assert!(excess <= EXCESS, "{}: {excess}", row.0);
    }
}

#[test]
fn gdp_mu_is_never_above_close_and_consistent() {
    let rows = rows("gdp_mu");
    assert!(rows.len() >= 200);
    for row in &rows {
        let mu = gdp_mu(budget(row));
        // At epsilon = 1e-6 and delta = 1e-12 mu is 2e-7, and the cancellation above eats seven digits.
        let allowed = if row.number("epsilon") < 1e-3 { 1e-6 } else { EXCESS };
        let excess = excess_below(row, mu.value());
        assert!(excess <= allowed, "{}: {excess}", row.0);
        assert!(gdp_epsilon(mu, budget(row).delta) <= budget(row).epsilon, "{}", row.0);
    }
}

#[test]
fn paper_conversion_is_outward_close_and_consistent() {
    for row in &rows("paper") {
        let budget = budget(row);
        let rho = paper_rho(budget);
        assert!(excess_below(row, rho.value()) <= 1e-13, "{}", row.0);
        let back = paper_epsilon(rho, budget.delta).value();
        assert!(
            back <= budget.epsilon.value() && back >= budget.epsilon.value() * (1.0 - 1e-13),
            "{}",
            row.0
        );
    }
}

#[test]
fn zcdp_optimal_order_is_outward_close_and_consistent() {
    for row in &rows("zcdp_epsilon") {
        let (rho, delta) =
            (ZcdpRho::new(row.number("rho")).unwrap(), Delta::new(row.number("delta")).unwrap());
        let epsilon = zcdp_epsilon(rho, delta);
        let excess = excess_above(row, epsilon.value());
        assert!(excess <= EXCESS, "{}: {excess}", row.0);
        assert!(epsilon <= paper_epsilon(rho, delta));
        assert!(gdp_epsilon(rho_to_mu(rho), delta) <= epsilon, "zCDP cannot beat the exact value: {}", row.0);
    }
    for row in &rows("zcdp_rho") {
        let rho = zcdp_rho(budget(row));
        assert!(excess_below(row, rho.value()) <= EXCESS, "{}", row.0);
        assert!(zcdp_epsilon(rho, budget(row).delta) <= budget(row).epsilon);
    }
}

#[test]
fn extremes_stay_sane() {
    let delta = Delta::new(1e-5).unwrap();
    let zero = GdpMu::new(0.0).unwrap();
    assert_eq!(gdp_epsilon(zero, delta).value(), 0.0);
    assert_eq!(gdp_delta(zero, Epsilon::ZERO), 0.0);
    assert_eq!(zcdp_epsilon(ZcdpRho::ZERO, delta).value(), 0.0);
    assert_eq!(paper_epsilon(ZcdpRho::ZERO, delta).value(), 0.0);
    for mu in [1e-300, 1e-20, 1e-9, 1e3, 1e9, 1e60] {
        let epsilon = gdp_epsilon(GdpMu::new(mu).unwrap(), delta).value();
        assert!(
            epsilon.is_finite() && epsilon <= (0.5 * mu * mu + 2.0 * mu * mu.max(5.0)) * 1.01,
            "{mu}: {epsilon}"
        );
    }
    for rho in [1e-300, 1e-20, 1e9, 1e120] {
        let rho = ZcdpRho::new(rho).unwrap();
        assert!(zcdp_epsilon(rho, delta) <= paper_epsilon(rho, delta));
    }
    for epsilon in [1e-12, 1e-6, 700.0, 1e4, 1e6] {
        for delta in [1e-300, 1e-15, 0.5, 0.999_999] {
            let budget = Budget::new(epsilon, delta).unwrap();
            for back in [
                gdp_epsilon(gdp_mu(budget), budget.delta),
                zcdp_epsilon(zcdp_rho(budget), budget.delta),
                paper_epsilon(paper_rho(budget), budget.delta),
            ] {
                assert!(back <= budget.epsilon, "{epsilon} {delta}: {back}");
            }
            assert!(gdp_mu(budget).value() > 0.0);
        }
    }
}
