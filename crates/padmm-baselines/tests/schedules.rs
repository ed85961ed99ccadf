//! Schedules of every kind keep their promise, and their mechanisms release what was paid for.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_baselines::accounting::*;
use padmm_baselines::mechanism::*;
use padmm_privacy::*;
use proptest::prelude::*;

const FEATURES: usize = 5;
const TOLERANCE: f64 = 1e-9;

fn inputs() -> ObjectiveInputs {
    ObjectiveInputs { gradient_bound: 1.0, curvature_bound: 0.25, n_records: 400 }
}

fn sensitivity() -> Sensitivity {
    let inputs =
        SensitivityInputs { gradient_bound: 1.0, n_records: 400, tolerance: TOLERANCE, modulus: 0.5 };
    Sensitivity::per_record(&inputs).unwrap()
}

fn targets() -> [PureTarget; 2] {
    [PureTarget::Objective(inputs()), PureTarget::Output(sensitivity())]
}

fn request(target: PureTarget, rule: CompositionRule, steps: Vec<Option<PureStep>>) -> PureRequest {
    let budget = Budget::new(2.0, 1e-5).unwrap();
    PureRequest { budget, rule, target, steps, n_features: FEATURES }
}

fn step(share: f64) -> Option<PureStep> {
    Some(PureStep { share, modulus: 0.5 })
}

fn required() -> RequiredCertificate {
    RequiredCertificate { modulus: 0.5, tolerance: TOLERANCE }
}

fn gaussian_objective(rounds: u32) -> GaussianObjectiveSchedule {
    GaussianObjectiveSchedule::calibrate(&GaussianObjectiveRequest {
        budget: Budget::new(2.0, 1e-5).unwrap(),
        inputs: inputs(),
        modulus: 0.5,
        rounds,
        n_features: FEATURES,
    })
    .unwrap()
}

fn gaussian(scales: Option<Vec<f64>>) -> Result<NoiseSchedule, PrivacyError> {
    NoiseSchedule::calibrate(&NoiseRequest {
        budget: Budget::new(2.0, 1e-5).unwrap(),
        conversion: Conversion::Exact,
        decay: Decay::new(6, 0.9).unwrap(),
        sensitivity: sensitivity(),
        n_features: FEATURES,
        scales,
    })
}

fn every_kind() -> Vec<Box<dyn Schedule>> {
    let steps = || vec![step(1.0), None, step(0.5), step(2.0), None];
    let mut all: Vec<Box<dyn Schedule>> = targets()
        .into_iter()
        .map(|target| {
            let schedule = PureSchedule::calibrate(&request(target, CompositionRule::Best, steps())).unwrap();
            Box::new(schedule) as Box<dyn Schedule>
        })
        .collect();
    all.push(Box::new(gaussian_objective(5)));
    all.push(Box::new(gaussian(None).unwrap()));
    all
}

fn pure(place: usize) -> PureSchedule {
    let schedule: &dyn std::any::Any = &*every_kind()[place];
    schedule.downcast_ref::<PureSchedule>().expect("a pure schedule").clone()
}

/// What a schedule says of itself holds for its events, one after the other.
fn check(schedule: &dyn Schedule, accountant: &mut dyn Accountant) {
    let report = schedule.report();
    let curve = schedule.epsilon_curve();
    assert_eq!(curve.len(), schedule.rounds() as usize);
    let delta = Delta::new(outward::sub_down(report.delta, report.delta_slack)).unwrap();
    let mut last = SpentEpsilon { exact: 0.0, paper: 0.0 };
    for (round, spent) in (1..).zip(&curve) {
        let event = schedule.event(round);
        assert_eq!(event.is_some(), schedule.noise_std(round).is_some());
        assert_eq!(event.is_none(), schedule.rho(round) == 0.0);
        event.iter().for_each(|event| accountant.compose(event).unwrap());
        // A beginning is priced like the whole: never above it, never below what was spent before.
        assert!(spent.exact >= last.exact * (1.0 - 1e-9) && spent.paper >= last.paper, "round {round}");
        assert!(spent.exact <= report.epsilon_exact && spent.paper <= report.epsilon_paper, "round {round}");
        // The fresh accountant has the coarser lattice of no more than these events: it may differ a little both ways.
        let fresh = accountant.epsilon(delta).value();
        assert!((spent.exact - fresh).abs() <= 0.02 * fresh + 1e-9, "round {round}: {} {fresh}", spent.exact);
        last = *spent;
    }
    assert_eq!((last.exact, last.paper), (report.epsilon_exact, report.epsilon_paper));
    let replayed = accountant.epsilon(delta).value();
    assert!(replayed <= report.epsilon_exact * (1.0 + 1e-12), "{replayed} {}", report.epsilon_exact);
    assert!(report.epsilon_exact <= 2.0 && report.epsilon_exact > 1.98, "{}", report.epsilon_exact);
    assert_eq!(schedule.rho_total(), report.rho_total);
    assert_eq!(schedule.rho_total(), accountant.rho().value());
    assert_eq!(schedule.rho_spent(schedule.rounds() + 9), schedule.rho_total());
    assert_eq!((schedule.event(0), schedule.event(schedule.rounds() + 1)), (None, None));
}

#[test]
fn events_replayed_through_a_fresh_accountant_meet_the_budget() {
    let accountants: [Box<dyn Accountant>; 4] = [
        Box::new(PureAccountant::new()),
        Box::new(PureAccountant::new()),
        Box::new(RdpAccountant::new()),
        Box::new(GdpAccountant::new()),
    ];
    for (schedule, mut accountant) in every_kind().iter().zip(accountants) {
        check(&**schedule, accountant.as_mut());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn pure_schedules_meet_the_budget(
        shares in prop::collection::vec(prop::option::weighted(0.8, 0.1f64..3.0), 1..40),
        rule in prop::sample::select(vec![
            CompositionRule::Best, CompositionRule::Basic, CompositionRule::Zcdp, CompositionRule::Rdp,
        ]),
        output in any::<bool>(),
    ) {
        let steps: Vec<_> = shares.iter().map(|share| share.and_then(step)).collect();
        let target = targets()[usize::from(output)];
        let made = PureSchedule::calibrate(&request(target, rule, steps.clone()));
        if steps.iter().all(Option::is_none) {
            let refused = matches!(made, Err(PrivacyError::OutOfRange { .. }));
            prop_assert!(refused);
            return Ok(());
        }
        let schedule = made.unwrap();
        let spent = rule.pick(&schedule.compositions());
        prop_assert!(spent <= 2.0 && spent > 1.98, "{rule:?}: {spent}");
        let epsilons: Vec<f64> = (1..=schedule.rounds()).filter_map(|round| schedule.epsilon(round)).collect();
        prop_assert_eq!(compose_pure(&epsilons, schedule.delta()).unwrap(), schedule.compositions());
        for (round, step) in (1..).zip(&steps) {
            let Some(step) = step else {
                prop_assert!(schedule.epsilon(round).is_none() && schedule.noise_rate(round).is_none());
                continue;
            };
            let (epsilon, rate) = (schedule.epsilon(round).unwrap(), schedule.noise_rate(round).unwrap());
            let jacobian = if output { 0.0 } else { inputs().jacobian(step.modulus).unwrap() };
            // Rounding goes outward: what the rate costs is not above what is charged.
            prop_assert!(rate * schedule.distance() + jacobian <= epsilon * (1.0 + 1e-15));
            prop_assert!(rate * schedule.distance() + jacobian >= epsilon * (1.0 - 1e-14));
        }
    }
}

#[test]
fn free_rounds_are_passed_and_never_released_in() {
    for schedule in every_kind().into_iter().take(2) {
        let mechanism = schedule.mechanism(required()).unwrap();
        assert!(!mechanism.is_exact() && !mechanism.report().unwrap().noise_is_exact);
        let free = mechanism.describe(2).unwrap_err();
        assert!(free.to_string().contains("round 2 uses no data"), "{free}");
        assert_eq!(mechanism.draw(2, &mut SecureNoise).unwrap_err(), free);
        assert!(matches!(mechanism.describe(6), Err(PrivacyError::RoundOutsideSchedule { .. })));
        let ledger = Box::new(MemoryLedger::new());
        let mut gate = Gate::new("r".into(), "s".into(), mechanism, Box::new(SecureNoise), ledger);
        let point = || Ok::<_, PrivacyError>(Certified { point: vec![0.1; FEATURES], residual: 0.0 });
        let error = gate.pass(2).unwrap_err();
        assert_eq!(error, PrivacyError::RoundOutOfOrder { expected: 1, found: 2 });
        assert!(gate.release(1, |_| point()).is_ok());
        assert_eq!(gate.release(2, |_| point()).unwrap_err(), free);
        assert_eq!((gate.next_round(), gate.debits().len()), (2, 1), "a refused release changes nothing");
        gate.pass(2).unwrap();
        assert_eq!(gate.pass(2).unwrap_err(), PrivacyError::RoundOutOfOrder { expected: 3, found: 2 });
        assert!(gate.release(3, |_| point()).is_ok());
        assert_eq!(gate.debits().iter().map(|debit| debit.round).collect::<Vec<_>>(), [1, 3]);
    }
}

#[test]
fn after_a_restart_free_rounds_are_passed_again() {
    let schedule = &every_kind()[0];
    let mut ledger = MemoryLedger::new();
    let event = schedule.event(1).unwrap();
    ledger.debit(&Debit { run: "r".into(), site: "s".into(), round: 1, event }).unwrap();
    let mechanism = schedule.mechanism(required()).unwrap();
    let mut gate = Gate::new("r".into(), "s".into(), mechanism, Box::new(SecureNoise), Box::new(ledger));
    assert_eq!(gate.next_round(), 2);
    gate.pass(2).unwrap();
    assert_eq!((gate.next_round(), gate.debits().len()), (3, 1));
}

#[test]
fn objective_perturbation_shows_its_noise_and_checks_the_certificate() {
    for schedule in [&every_kind()[0], &every_kind()[2]] {
        let mechanism = schedule.mechanism(required()).unwrap();
        let seal = |certified: Certified| {
            let drawn = mechanism.draw(1, &mut SecureNoise).unwrap();
            assert_eq!(drawn.visible_noise().unwrap().len(), FEATURES);
            mechanism.seal(1, certified.into(), drawn)
        };
        let good = Certified { point: vec![0.25, -1.0, 3.0, 0.0, 1e-3], residual: TOLERANCE };
        let payload = seal(good.clone()).unwrap();
        let Payload::Grid { exponent, .. } = payload else { panic!("integers on a grid leave") };
        let step = 2f64.powi(exponent);
        assert!((TOLERANCE / 0.5..1e-4).contains(&step), "a grid not finer than the solver's error: {step}");
        for (sent, value) in payload.to_vec().iter().zip(&good.point) {
            assert!((sent - value).abs() <= 0.5 * step);
        }
        let with = |residual| Certified { residual, ..good.clone() };
        let too_large = PrivacyError::ResidualTooLarge { tolerance: TOLERANCE };
        assert_eq!(seal(with(2.0 * TOLERANCE)).unwrap_err(), too_large);
        assert_eq!(seal(with(f64::NAN)).unwrap_err(), PrivacyError::CertificateMissing);
        assert_eq!(
            seal(Certified { point: vec![f64::NAN; FEATURES], residual: 0.0 }),
            Err(PrivacyError::NotFinite)
        );
        assert!(seal(Certified { point: vec![0.0; 2], residual: 0.0 }).is_err());
        let foreign = PrivacyError::ForeignNoise { round: 1 };
        let other = mechanism.draw(3, &mut SecureNoise).unwrap();
        assert_eq!(mechanism.seal(1, good.clone().into(), other).unwrap_err(), foreign);
        assert_eq!(
            mechanism.seal(1, good.clone().into(), Drawn::visible(1, vec![0.0])).unwrap_err(),
            foreign
        );
        let weaker = RequiredCertificate { modulus: 0.4, tolerance: TOLERANCE };
        assert!(matches!(schedule.mechanism(weaker), Err(PrivacyError::CertificateMismatch { .. })));
    }
}

#[test]
fn output_perturbation_hides_its_noise_and_adds_it() {
    let schedule = pure(1);
    let mechanism = GammaOutput::new(schedule.clone(), required()).unwrap();
    let drawn = mechanism.draw(1, &mut SecureNoise).unwrap();
    assert!(drawn.visible_noise().is_none());
    let point = Certified { point: vec![0.5; FEATURES], residual: 0.0 };
    let payload = mechanism.seal(1, point.clone().into(), drawn).unwrap();
    let Payload::Grid { exponent, .. } = payload else { panic!("integers on a grid leave") };
    let std = schedule.noise_std(1).unwrap();
    assert!(2f64.powi(exponent) <= std / 2f64.powi(24) && 2f64.powi(exponent) > std / 2f64.powi(26));
    assert!(payload.to_vec().iter().all(|value| *value != 0.5), "noise was added to every coordinate");
    let visible = Drawn::visible(1, vec![0.0; FEATURES]);
    assert_eq!(
        mechanism.seal(1, point.clone().into(), visible).unwrap_err(),
        PrivacyError::ForeignNoise { round: 1 }
    );
    let weaker = RequiredCertificate { tolerance: 2.0 * TOLERANCE, ..required() };
    let error = GammaOutput::new(schedule.clone(), weaker).unwrap_err();
    assert!(matches!(error, PrivacyError::CertificateMismatch { name: "tolerance", .. }));
    // Noise meant for one place is refused at the other.
    assert!(ObjectivePerturbation::pure(schedule, required()).is_err());
    let objective = pure(0);
    assert!(GammaOutput::new(objective, required()).is_err());
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let bad = |steps: Vec<Option<PureStep>>| {
        PureSchedule::calibrate(&request(targets()[0], CompositionRule::Best, steps)).unwrap_err()
    };
    for steps in [vec![], vec![None], vec![step(0.0)], vec![step(f64::NAN)]] {
        assert!(matches!(bad(steps), PrivacyError::OutOfRange { .. }));
    }
    assert!(matches!(
        bad(vec![Some(PureStep { share: 1.0, modulus: 0.0 })]),
        PrivacyError::OutOfRange { .. }
    ));
    let flat = vec![Some(PureStep { share: 1.0, modulus: 1e-9 }); 3];
    let error = bad(flat);
    assert!(matches!(error, PrivacyError::Compared { is_budget: true, .. }), "{error}");
    assert!(error.to_string().contains("Jacobian part of 3 private rounds"), "{error}");
    assert!(inputs().jacobian(-1.0).is_err() && inputs().jacobian(f64::NAN).is_err());
    assert!(ObjectiveInputs { n_records: 0, ..inputs() }.shift().is_err());
    assert!(ObjectiveInputs { curvature_bound: 0.0, ..inputs() }.jacobian(1.0).is_err());
    let basic = padmm_core::plan::AccountantKind::Basic.conversion().unwrap_err();
    assert!(basic.to_string().contains("pure differential privacy"), "{basic}");
}

#[test]
fn scales_multiply_sensitivity_and_noise_and_leave_the_charge() {
    let scales = vec![1.0, 0.9, 0.5, 0.33, 1e-3, 1.0 / 3.0];
    let (plain, scaled) = (gaussian(None).unwrap(), gaussian(Some(scales.clone())).unwrap());
    assert_eq!(plain, gaussian(None).unwrap());
    let root = (FEATURES as f64).sqrt();
    for (round, scale) in (1..).zip(&scales) {
        assert!((scaled.rho(round) / plain.rho(round) - 1.0).abs() < 1e-13);
        let (noise, expected) = (scaled.noise_std(round).unwrap(), scale * plain.noise_std(round).unwrap());
        assert!((noise / expected - 1.0).abs() < 1e-13);
        let Some(Event::Gaussian { sensitivity: charged, .. }) = scaled.event(round) else {
            panic!("Gaussian noise")
        };
        let step = 2f64.powi(scaled.grid_exponent(round).unwrap());
        assert!(
            charged >= scale * sensitivity().value() + step * root,
            "round {round}: the grid's share is paid"
        );
    }
    assert!(scaled.report().epsilon_exact <= 2.0 && scaled.report().epsilon_exact > 1.999);
    assert!(matches!(gaussian(Some(vec![1.0; 5])), Err(PrivacyError::WrongLength { expected: 6, found: 5 })));
    for bad in [0.0, 1.1, -0.5, f64::NAN] {
        assert!(matches!(gaussian(Some(vec![bad; 6])), Err(PrivacyError::OutOfRange { .. })), "{bad}");
    }
}

#[test]
fn statements_read_well() {
    let words: Vec<String> = every_kind().iter().map(|schedule| schedule.report().statement()).collect();
    for pure in &words[..2] {
        assert!(
            pure.contains(", 1e-5)-differential privacy, and (")
                && pure.contains(", 0)-differential privacy by")
        );
        assert!(pure.contains("In 2 of the rounds it uses no data."), "{pure}");
    }
    assert!(words[2].contains("Renyi divergences at the best order; by zCDP it would be"), "{}", words[2]);
    for inexact in &words[..3] {
        assert!(inexact.contains("for comparison in simulation, not on real data."), "{inexact}");
        assert!(!inexact.contains("with exact noise"), "{inexact}");
    }
    assert!(words[3].contains("paper's looser conversion") && !words[3].contains("SIMULATION"));
    let report = serde_json::to_value(every_kind()[0].report()).unwrap();
    assert_eq!(report["exact_method"], "optimal_composition");
    assert_eq!((&report["rounds_charged"], &report["noise_is_exact"]), (&3.into(), &false.into()));
    assert!(report["compositions"]["basic"].as_f64() >= report["compositions"]["exact"].as_f64());
    assert_eq!(serde_json::to_value(gaussian_objective(5)).unwrap()["rounds"], 5);
}
