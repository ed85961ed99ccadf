//! Test vectors of the specification, in its order and to the digits that it gives.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_privacy::*;

/// Equal to the digits of `expected` that are given: half a unit of the last one.
fn close(computed: f64, expected: f64, last_digit: f64) {
    assert!((computed - expected).abs() <= 0.5000001 * last_digit, "{computed} is not {expected}");
}

const TABLE: [(f64, f64, f64, f64); 3] =
    [(1.0, 0.025763, 0.3139, 0.6937), (5.0, 0.539940, 1.2564, 3.9823), (10.0, 1.817390, 2.1965, 8.3569)];

#[test]
fn rho_and_mu_for_a_budget() {
    for (epsilon, rho, mu, _) in TABLE {
        let budget = Budget::new(epsilon, 1e-4).unwrap();
        close(paper_rho(budget).value(), rho, 1e-6);
        close(gdp_mu(budget).value(), mu, 1e-4);
    }
    let budget = Budget::new(5.0, 1e-5).unwrap();
    close(paper_rho(budget).value(), 0.449623, 1e-6);
    close(gdp_mu(budget).value(), 1.1212, 1e-4);
}

#[test]
fn what_the_papers_noise_is_exactly_worth() {
    for (epsilon, _, _, exact) in TABLE {
        let budget = Budget::new(epsilon, 1e-4).unwrap();
        close(gdp_epsilon(rho_to_mu(paper_rho(budget)), budget.delta).value(), exact, 1e-4);
    }
}

fn vector_sensitivity() -> Sensitivity {
    let modulus = 2.0 / 1750.0 * 4.0 + 0.22 / 8750.0;
    close(modulus, 4.5965714e-3, 1e-10);
    let inputs = SensitivityInputs { gradient_bound: 1.0, n_records: 8000, tolerance: 0.0, modulus };
    Sensitivity::per_record(&inputs).unwrap()
}

fn vector_schedule(rate: f64) -> NoiseSchedule {
    NoiseSchedule::calibrate(&NoiseRequest {
        budget: Budget::new(5.0, 1e-4).unwrap(),
        conversion: Conversion::Paper,
        decay: Decay::new(50, rate).unwrap(),
        sensitivity: vector_sensitivity(),
        n_features: 1,
        scales: None,
    })
    .unwrap()
}

#[test]
fn sensitivity_of_the_vector() {
    close(vector_sensitivity().value(), 0.05438836, 1e-8);
    assert_eq!(vector_sensitivity().basis(), SensitivityBasis::Record);
    // Lemma 4 with V = 1: V / (penalty * degree), without the 1/n.
    let paper = Sensitivity::paper(1.0, 1.0 / 1750.0, 4).unwrap();
    close(paper.value(), 437.5, 1e-9);
}

#[test]
fn noise_of_the_vector() {
    let decay = Decay::new(50, 0.995).unwrap();
    close(decay.sum_of_charges(), 56.681343, 1e-6);
    let r: f64 = 0.995;
    let closed_form = (1.0 - r.powi(50)) / (r.powi(49) - r.powi(50));
    assert!((decay.sum_of_charges() / closed_form - 1.0).abs() < 1e-12, "Theorem 3, closed form");
    let fading = vector_schedule(0.995);
    close(fading.rho(1), 9.52589e-3, 1e-8);
    // The grid adds at most 2^-24 * noise/sensitivity, about 4e-7 of the noise: compare after taking it off.
    let without_grid =
        |schedule: &NoiseSchedule| vector_sensitivity().value() / schedule.sensitivity().value();
    let grid = without_grid(&fading);
    close(fading.noise_std(1).unwrap() * grid, 0.39403810, 1e-8);
    close(fading.noise_std(50).unwrap() * grid, 0.34850074, 1e-8);
    assert!(grid > 1.0 - 5e-7);
    let constant = vector_schedule(1.0);
    close(constant.noise_std(1).unwrap() * without_grid(&constant), 0.37008643, 1e-8);
    close(constant.report().noise_multiplier_first, 6.80451477, 1e-8);
    assert_eq!(constant.noise_std(1), constant.noise_std(50));
}

#[test]
fn charges_are_theorem_2() {
    let schedule = vector_schedule(0.995);
    for round in 1..=50 {
        let expected = schedule.rho(1) * 0.995f64.powi(1 - round as i32);
        assert!((schedule.rho(round) / expected - 1.0).abs() < 1e-13);
    }
}

#[test]
fn group_bounds() {
    let mu = GdpMu::new(0.5).unwrap();
    close(group_mu(mu, 3, 4).unwrap().value(), 3.0, 1e-12);
    close(group_rho(ZcdpRho::new(0.125).unwrap(), 3, 4).unwrap().value(), 4.5, 1e-12);
    assert!(group_mu(mu, 1, 1).unwrap() >= mu);
    assert!(group_mu(mu, 0, 1).is_err() && group_rho(ZcdpRho::ZERO, 1, 0).is_err());
}
