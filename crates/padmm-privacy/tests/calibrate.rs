//! Calibration keeps its promise, wastes nothing, and can be replayed.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_privacy::*;
use proptest::prelude::*;

fn sensitivity(value: f64) -> Sensitivity {
    let inputs =
        SensitivityInputs { gradient_bound: 0.5 * value, n_records: 1, tolerance: 0.0, modulus: 1.0 };
    Sensitivity::per_record(&inputs).unwrap()
}

fn request(
    epsilon: f64,
    delta: f64,
    conversion: Conversion,
    decay: Decay,
    n_features: usize,
) -> NoiseRequest {
    let budget = Budget::new(epsilon, delta).unwrap();
    NoiseRequest { budget, conversion, decay, sensitivity: sensitivity(0.05), n_features, scales: None }
}

/// What every schedule has to satisfy, however it was made.
fn check(schedule: &NoiseSchedule) {
    let report = schedule.report();
    let mut rho = 0.0;
    for round in 1..=schedule.rounds() {
        let ratio = schedule.rho(round) / schedule.rho(1);
        let expected = report.decay.powi(1 - round as i32);
        assert!((ratio / expected - 1.0).abs() < 1e-12, "charges are geometric");
        let step = libm_exp2(schedule.grid_exponent(round).unwrap());
        let scale = schedule.noise_std(round).unwrap() / step;
        let bits = report.grid_bits as i32;
        assert!(scale >= libm_exp2(bits) && scale < libm_exp2(bits + 1));
        rho = outward::add_up(rho, schedule.event(round).unwrap().rho().unwrap().value());
    }
    // The sensitivity that is charged covers the rounding in the round with the widest step.
    let step = libm_exp2(schedule.grid_exponent(1).unwrap());
    assert!(schedule.sensitivity().value() >= 0.05 + step * (schedule.n_features() as f64).sqrt());
    assert!(schedule.sensitivity().value() <= 0.05 * 1.002);
    // The charges of the events, added up, give the reported numbers.
    let delta = Delta::new(report.delta).unwrap();
    let remaining = Delta::new(outward::sub_down(report.delta, report.delta_slack)).unwrap();
    assert_eq!(rho, report.rho_total);
    let rho = ZcdpRho::new(rho).unwrap();
    assert_eq!(paper_epsilon(rho, delta).value(), report.epsilon_paper);
    let exact = match report.exact_method {
        ExactMethod::Gdp => gdp_epsilon(rho_to_mu(rho), remaining),
        ExactMethod::ZcdpOptimal => zcdp_epsilon(rho, delta),
        other => panic!("{other:?} does not belong to Gaussian noise"),
    };
    assert_eq!(exact.value(), report.epsilon_exact);
    assert!(report.delta_slack <= 0.01 * report.delta);
    assert!((24..=40).contains(&report.grid_bits));
    assert_eq!(schedule.epsilon_spent(0), SpentEpsilon { exact: 0.0, paper: 0.0 });
    let total = schedule.epsilon_spent(schedule.rounds());
    assert_eq!((total.exact, total.paper), (report.epsilon_exact, report.epsilon_paper));
}

fn libm_exp2(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn reported_epsilon_meets_the_budget(
        log_epsilon in -4.0f64..4.6,
        log_delta in -25.0f64..-1.0,
        rounds in 1u32..120,
        rate in prop_oneof![Just(1.0), 0.86f64..1.0],
        n_features in 1usize..3000,
        paper in any::<bool>(),
    ) {
        let (epsilon, delta) = (log_epsilon.exp(), log_delta.exp());
        let kind = if paper { Conversion::Paper } else { Conversion::Exact };
        let decay = Decay::new(rounds, rate).unwrap();
        let schedule = NoiseSchedule::calibrate(&request(epsilon, delta, kind, decay, n_features)).unwrap();
        check(&schedule);
        let report = schedule.report();
        let reported = if paper { report.epsilon_paper } else { report.epsilon_exact };
        prop_assert!(reported <= epsilon && reported >= 0.999 * epsilon, "{reported} for {epsilon}");
        prop_assert!(report.epsilon_exact <= report.epsilon_paper);
    }

    #[test]
    fn noise_to_epsilon_and_back(
        log_multiplier in -1.0f64..6.0,
        log_delta in -25.0f64..-1.0,
        rounds in 1u32..120,
        rate in 0.9f64..=1.0,
        n_features in 1usize..3000,
    ) {
        let (first, delta) = (log_multiplier.exp(), Delta::new(log_delta.exp()).unwrap());
        let decay = Decay::new(rounds, rate).unwrap();
        let schedule =
            NoiseSchedule::from_noise_multiplier(first, decay, sensitivity(0.05), n_features, delta).unwrap();
        check(&schedule);
        let report = schedule.report();
        prop_assert!((report.noise_multiplier_first / first - 1.0).abs() < 1e-14);
        if report.exact_method == ExactMethod::Gdp && report.epsilon_exact > 1e-6 {
            let again = request(report.epsilon_exact, delta.value(), Conversion::Exact, decay, n_features);
            let back = NoiseSchedule::calibrate(&again).unwrap();
            let ratio = back.report().noise_multiplier_first / first;
            // The slack depends on the grid, and a different number of bits may be chosen on the way back.
            prop_assert!((ratio - 1.0).abs() < 1e-2, "{ratio}");
        }
    }
}

#[test]
fn bits_grow_with_epsilon_until_zcdp_takes_over() {
    let decay = Decay::new(50, 0.99).unwrap();
    let at = |epsilon| {
        NoiseSchedule::calibrate(&request(epsilon, 1e-5, Conversion::Exact, decay, 104)).unwrap().report()
    };
    assert_eq!((at(1.0).grid_bits, at(1.0).exact_method), (24, ExactMethod::Gdp));
    assert!(at(25.0).grid_bits > 24 && at(25.0).exact_method == ExactMethod::Gdp);
    let beyond = at(60.0);
    assert_eq!((beyond.grid_bits, beyond.delta_slack), (24, 0.0));
    assert_eq!(beyond.exact_method, ExactMethod::ZcdpOptimal);
    assert!(beyond.epsilon_exact <= 60.0 && beyond.epsilon_exact > 59.99);
}

#[test]
fn more_budget_less_noise_and_exact_needs_less_than_the_paper() {
    let decay = Decay::new(40, 0.95).unwrap();
    let noise = |epsilon, kind| {
        NoiseSchedule::calibrate(&request(epsilon, 1e-4, kind, decay, 104)).unwrap().noise_std(1).unwrap()
    };
    assert!(noise(1.0, Conversion::Exact) > noise(2.0, Conversion::Exact));
    for epsilon in [0.1, 1.0, 10.0] {
        assert!(noise(epsilon, Conversion::Exact) < noise(epsilon, Conversion::Paper));
    }
}

#[test]
fn long_and_steep_schedules() {
    let long = Decay::new(100_000, 1.0).unwrap();
    let schedule = NoiseSchedule::calibrate(&request(1.0, 1e-6, Conversion::Exact, long, 10)).unwrap();
    assert!(schedule.report().epsilon_exact <= 1.0 && schedule.report().epsilon_exact > 0.999_999);
    let steep = Decay::new(300, 0.5).unwrap();
    let schedule = NoiseSchedule::calibrate(&request(1.0, 1e-6, Conversion::Exact, steep, 10));
    // 2^300 between the first charge and the last: the first noise would dwarf any grid of the last.
    assert!(matches!(schedule, Err(PrivacyError::OutOfRange { name: "noise multiplier", .. })));
    assert!(matches!(Decay::new(1000, 0.5), Err(PrivacyError::DecayTooSteep { .. })));
}

#[test]
fn the_statement_says_what_holds() {
    let decay = Decay::new(40, 0.95).unwrap();
    let mut ask = request(1.0, 1e-4, Conversion::Exact, decay, 104);
    let words = NoiseSchedule::calibrate(&ask).unwrap().report().statement();
    assert!(words.contains("(1.0000, 1e-4)-differential privacy"), "{words}");
    for part in [
        "\"replace one record of one site by any other\"",
        "every row of the file is a record, whatever its contents, and the number of rows is public",
        "a factor of at most e^ε = 2.7183, apart from a probability of 1e-4",
        "right at most 73.2 % of the time, where guessing is right 50 % of the time",
        "several records",
        "the program as it is shipped, with exact noise",
        "does not reach its tolerance can depend on records and is not covered",
        "How long computations take is not covered",
        "access to the site's machine",
    ] {
        assert!(words.contains(part), "{part} in {words}");
    }
    let schedule = NoiseSchedule::calibrate(&ask).unwrap();
    let report = schedule.with_stopping(Stopping::Public).report();
    assert_eq!(serde_json::to_value(&report).unwrap()["stopping"], "public");
    let words = report.statement();
    assert!(
        words.contains("decided from public numbers alone") && !words.contains("can depend on records"),
        "{words}"
    );
    ask.sensitivity = Sensitivity::paper(1.0, 0.1, 4).unwrap();
    let words = NoiseSchedule::calibrate(&ask).unwrap().report().statement();
    assert!(words.starts_with("NO GUARANTEE") && words.contains("Lemma 4 (for comparison only)"), "{words}");
}

#[test]
fn reports_serialise() {
    let decay = Decay::new(3, 0.9).unwrap();
    let schedule = NoiseSchedule::calibrate(&request(1.0, 1e-4, Conversion::Exact, decay, 4)).unwrap();
    let report = serde_json::to_value(schedule.report()).unwrap();
    assert_eq!(report["adjacency"], "replace_one");
    assert_eq!(report["exact_method"], "gdp");
    assert_eq!(report["sensitivity_basis"], "record");
    assert_eq!(report["rounds"], 3);
}
