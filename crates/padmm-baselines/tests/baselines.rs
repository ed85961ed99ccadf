//! Test vectors of the compared methods, to the digits that are given for them.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_baselines::accounting::*;
use padmm_baselines::mechanism::*;
use padmm_privacy::*;

/// Equal to the digits of `expected` that are given: half a unit of the last one.
fn close(computed: f64, expected: f64, last_digit: f64) {
    assert!((computed - expected).abs() <= 0.5000001 * last_digit, "{computed} is not {expected}");
}

const RULES: [CompositionRule; 4] =
    [CompositionRule::Basic, CompositionRule::Zcdp, CompositionRule::Rdp, CompositionRule::Exact];
const RECORDS: usize = 8000;
const DEGREE: f64 = 4.0;
const PENALTY: f64 = 1.0 / 1750.0;
const CURVATURE: f64 = 0.22 / 8750.0;

fn budget() -> Budget {
    Budget::new(5.0, 1e-4).unwrap()
}

fn modulus() -> f64 {
    CURVATURE + 2.0 * PENALTY * DEGREE
}

fn inputs() -> ObjectiveInputs {
    ObjectiveInputs { gradient_bound: 1.0, curvature_bound: 0.25, n_records: RECORDS }
}

fn sensitivity() -> Sensitivity {
    let inputs =
        SensitivityInputs { gradient_bound: 1.0, n_records: RECORDS, tolerance: 0.0, modulus: modulus() };
    Sensitivity::per_record(&inputs).unwrap()
}

fn calibrate(target: PureTarget, rule: CompositionRule, steps: Vec<Option<PureStep>>) -> PureSchedule {
    let request = PureRequest { budget: budget(), rule, target, steps, n_features: 104 };
    let schedule = PureSchedule::calibrate(&request).unwrap();
    assert!(rule.pick(&schedule.compositions()) <= 5.0);
    schedule
}

fn constant(rounds: usize) -> Vec<Option<PureStep>> {
    vec![Some(PureStep { share: 1.0, modulus: modulus() }); rounds]
}

#[test]
fn per_step_budgets() {
    let table = [
        (1.0, 25, [0.0400, 0.0454, 0.0601, 0.0653]),
        (1.0, 50, [0.0200, 0.0321, 0.0413, 0.0454]),
        (1.0, 100, [0.0100, 0.0227, 0.0289, 0.0316]),
        (5.0, 25, [0.2000, 0.2078, 0.2522, 0.2662]),
        (5.0, 50, [0.1000, 0.1470, 0.1709, 0.1820]),
        (5.0, 100, [0.0500, 0.1039, 0.1186, 0.1271]),
        (10.0, 25, [0.4000, 0.3813, 0.4578, 0.4789]),
        (10.0, 50, [0.2000, 0.2696, 0.3054, 0.3212]),
        (10.0, 100, [0.1000, 0.1907, 0.2106, 0.2234]),
    ];
    for (epsilon, steps, expected) in table {
        let budget = Budget::new(epsilon, 1e-4).unwrap();
        for (rule, expected) in RULES.into_iter().zip(expected) {
            close(per_step_epsilon(budget, steps, rule).unwrap(), expected, 1e-4);
        }
        let best = per_step_epsilon(budget, steps, CompositionRule::Best).unwrap();
        assert_eq!(best, per_step_epsilon(budget, steps, CompositionRule::Exact).unwrap());
    }
}

#[test]
fn the_jacobian_part() {
    close(inputs().shift().unwrap(), 2.5e-4, 1e-18);
    close(inputs().jacobian(modulus()).unwrap(), 6.7755396e-3, 1e-10);
    close(inputs().jacobian(modulus()).unwrap().exp_m1(), 6.7985455e-3, 1e-10);
}

#[test]
fn noise_on_the_dual() {
    let target = PureTarget::Objective(inputs());
    let basic = calibrate(target, CompositionRule::Basic, constant(50));
    close(basic.noise_rate(1).unwrap(), 372.897842, 1e-6);
    close(basic.compositions().basic, 5.0, 1e-9);
    let zcdp = calibrate(target, CompositionRule::Zcdp, constant(50));
    close(zcdp.epsilon(50).unwrap(), 0.14696125, 1e-8);
    close(zcdp.noise_rate(50).unwrap(), 560.742844, 1e-6);
    let best = calibrate(target, CompositionRule::Best, constant(50));
    assert!(best.noise_rate(1) > zcdp.noise_rate(1), "the best rule asks for the least noise");
}

#[test]
fn every_second_round_is_free() {
    let mut steps = constant(50);
    steps.iter_mut().skip(1).step_by(2).for_each(|step| *step = None);
    let target = PureTarget::Objective(inputs());
    let basic = calibrate(target, CompositionRule::Basic, steps.clone());
    close(basic.noise_rate(1).unwrap(), 772.897842, 1e-6);
    close(calibrate(target, CompositionRule::Zcdp, steps).noise_rate(49).unwrap(), 804.236216, 1e-6);
    assert_eq!(
        (basic.rounds(), basic.rounds_charged(), basic.event(2), basic.event(51)),
        (50, 25, None, None)
    );
    let curve = basic.epsilon_curve();
    assert_eq!(curve.len(), 50);
    for pair in curve.chunks(2) {
        assert_eq!(pair[0], pair[1], "a free round spends nothing");
    }
}

#[test]
fn noise_on_the_primal() {
    close(sensitivity().value(), 0.05438836, 1e-8);
    let schedule = calibrate(PureTarget::Output(sensitivity()), CompositionRule::Basic, constant(50));
    close(schedule.noise_rate(1).unwrap(), 1.83862857, 1e-8);
    close(104.0 / schedule.noise_rate(1).unwrap(), 56.6, 0.1);
}

/// Penalty `PENALTY * growth^(t-1)`, noise parameter `first * slope^(t-1)`.
fn growing(growth: f64, slope: f64) -> Vec<Option<PureStep>> {
    let step = |t: i32| {
        let weight = PENALTY * growth.powi(t) * DEGREE;
        let share = slope.powi(t) / (RECORDS as f64 * weight);
        Some(PureStep { share, modulus: CURVATURE + 2.0 * weight })
    };
    (0..50).map(step).collect()
}

#[test]
fn growing_penalty() {
    let target = PureTarget::Objective(inputs());
    let schedule = calibrate(target, CompositionRule::Basic, growing(1.02, 1.02));
    // The publication's first noise parameter is rate * 2 * penalty * degree.
    close(schedule.noise_rate(1).unwrap() * 2.0 * PENALTY * DEGREE, 1.74893273, 1e-8);
    let last = 2.0 * PENALTY * DEGREE * 1.02f64.powi(49);
    close(schedule.noise_rate(50).unwrap() * last / 1.02f64.powi(49), 1.74893273, 1e-8);
    // Penalty and noise parameter grow alike here, so the noise shares are equal and only the Jacobian parts differ.
    assert!(schedule.epsilon(50) < schedule.epsilon(1));
    // With unequal growth the steps differ much, and the lattice takes the place of the binomial distribution.
    for rule in RULES {
        let unequal = calibrate(target, rule, growing(1.05, 1.0));
        assert!(rule.pick(&unequal.compositions()) > 4.999, "{rule:?}: {:?}", unequal.compositions());
    }
}

#[test]
fn gaussian_noise_on_the_objective() {
    let request = GaussianObjectiveRequest {
        budget: budget(),
        inputs: inputs(),
        modulus: modulus(),
        rounds: 50,
        n_features: 104,
    };
    let schedule = GaussianObjectiveSchedule::calibrate(&request).unwrap();
    let report = schedule.report();
    assert!(report.epsilon_exact <= 5.0 && report.epsilon_exact > 4.9999, "{}", report.epsilon_exact);
    // Its noise is shorter than the gamma noise for the same budget: noise_std sqrt(p) against p/rate.
    let gamma = calibrate(PureTarget::Objective(inputs()), CompositionRule::Best, constant(50));
    let ratio = schedule.noise_std() * 104f64.sqrt() / (104.0 / gamma.noise_rate(1).unwrap());
    assert!(ratio < 0.5, "{ratio}");
    let small = Budget::new(0.3, 1e-4).unwrap();
    let error = GaussianObjectiveSchedule::calibrate(&GaussianObjectiveRequest { budget: small, ..request });
    assert!(matches!(error, Err(PrivacyError::Compared { is_budget: true, .. })), "{error:?}");
}
