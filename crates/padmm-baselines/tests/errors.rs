//! Every error variant is reached once, and says what is wrong and what to do.

use padmm_baselines::accounting::*;
use padmm_baselines::mechanism::*;
use padmm_privacy::*;

/// Position of a variant. The match has no wildcard, so a new variant does not compile until it is listed, and the test
/// below then fails until it is reached.
fn index(error: &PrivacyError) -> usize {
    match error {
        PrivacyError::OutOfRange { .. } => 0,
        PrivacyError::DecayTooSteep { .. } => 1,
        PrivacyError::NotGaussian { .. } => 2,
        PrivacyError::AlreadyCharged { .. } => 3,
        PrivacyError::LedgerFailed { .. } => 4,
        PrivacyError::RoundOutOfOrder { .. } => 5,
        PrivacyError::RoundOutsideSchedule { .. } => 6,
        PrivacyError::ForeignNoise { .. } => 7,
        PrivacyError::CertificateMissing => 8,
        PrivacyError::ResidualTooLarge { .. } => 9,
        PrivacyError::CertificateMismatch { .. } => 10,
        PrivacyError::WrongLength { .. } => 11,
        PrivacyError::NotFinite => 12,
        PrivacyError::BeyondGrid { .. } => 13,
        PrivacyError::NoiseFailed { .. } => 14,
        PrivacyError::Compared { .. } => 15,
        PrivacyError::WrongKind => 16,
    }
}
const VARIANTS: usize = 17;

struct FullDisk;
impl Ledger for FullDisk {
    fn debit(&mut self, _: &Debit) -> Result<(), PrivacyError> {
        Err(PrivacyError::LedgerFailed { reason: "disk full".into() })
    }
    fn debits(&self) -> &[Debit] {
        &[]
    }
}

struct Silent(bool);
impl NoiseSource for Silent {
    fn fill(&mut self, _: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        out.fill(0);
        if self.0 { Ok(()) } else { Err(PrivacyError::NoiseFailed { reason: "no entropy".into() }) }
    }
    fn description(&self) -> &'static str {
        "silent"
    }
    fn is_secure(&self) -> bool {
        false
    }
}

fn schedule() -> NoiseSchedule {
    let inputs = SensitivityInputs { gradient_bound: 1.0, n_records: 10, tolerance: 1e-6, modulus: 1.0 };
    let sensitivity = Sensitivity::per_record(&inputs).unwrap();
    let delta = Delta::new(1e-5).unwrap();
    NoiseSchedule::from_noise_multiplier(5.0, Decay::new(2, 0.9).unwrap(), sensitivity, 2, delta).unwrap()
}

fn mechanism() -> GridGaussian {
    GridGaussian::new(schedule(), RequiredCertificate { modulus: 1.0, tolerance: 1e-6 }).unwrap()
}

fn gate(noise: bool, ledger: impl Ledger + 'static) -> Gate {
    Gate::new("r".into(), "s".into(), Box::new(mechanism()), Box::new(Silent(noise)), Box::new(ledger))
}

fn fails_with(point: Vec<f64>, residual: f64) -> PrivacyError {
    let certified = Certified { point, residual };
    gate(true, MemoryLedger::new()).release::<_, PrivacyError>(1, |_| Ok(certified)).unwrap_err()
}

/// Noise on the objective in rounds 1 and 3; round 2 is free.
fn pure_request(epsilon: f64) -> PureRequest {
    let step = Some(PureStep { share: 1.0, modulus: 1.0 });
    PureRequest {
        budget: Budget::new(epsilon, 1e-5).unwrap(),
        rule: CompositionRule::Basic,
        target: PureTarget::Objective(ObjectiveInputs {
            gradient_bound: 1.0,
            curvature_bound: 0.25,
            n_records: 10,
        }),
        steps: vec![step, None, step],
        n_features: 2,
    }
}

fn twice() -> PrivacyError {
    let event = Event::PureDp { epsilon: 1.0 };
    let debit = Debit { run: "r".into(), site: "s".into(), round: 1, event };
    let mut ledger = MemoryLedger::new();
    ledger.debit(&debit).unwrap();
    let error = ledger.debit(&debit).unwrap_err();
    assert_eq!(ledger.debits(), [debit]);
    error
}

fn too_weak() -> PrivacyError {
    GridGaussian::new(schedule(), RequiredCertificate { modulus: 1.0, tolerance: 1.0 }).unwrap_err()
}

#[test]
fn every_variant_is_reached_and_speaks() {
    let fine = || Ok::<_, PrivacyError>(Certified { point: vec![0.0; 2], residual: 0.0 });
    let errors = [
        Epsilon::new(f64::NAN).unwrap_err(),
        Decay::new(5000, 0.1).unwrap_err(),
        Event::NonPrivate.rho().unwrap_err(),
        twice(),
        gate(true, FullDisk).release(1, |_| fine()).unwrap_err(),
        gate(true, MemoryLedger::new()).release(2, |_| fine()).unwrap_err(),
        mechanism().describe(3).unwrap_err(),
        mechanism().seal(1, fine().unwrap().into(), Drawn::visible(1, vec![])).unwrap_err(),
        fails_with(vec![0.0; 2], f64::NAN),
        fails_with(vec![0.0; 2], 1e-3),
        too_weak(),
        fails_with(vec![0.0; 3], 0.0),
        fails_with(vec![0.0, f64::NAN], 0.0),
        fails_with(vec![0.0, 1e200], 0.0),
        gate(false, MemoryLedger::new()).release(1, |_| fine()).unwrap_err(),
        PureSchedule::calibrate(&pure_request(0.01)).unwrap_err(),
        gate(true, MemoryLedger::new())
            .release::<_, PrivacyError>(1, |_| Ok(ClippedSum::new(Terms::Signed, 2, 10)))
            .unwrap_err(),
    ];
    assert!(charge(&Event::NonPrivate).is_err() && Event::PureDp { epsilon: 1.0 }.rho().is_err());
    let reached: Vec<usize> = errors.iter().map(index).collect();
    assert_eq!(reached, (0..VARIANTS).collect::<Vec<_>>());
    for error in &errors {
        assert!(error.to_string().len() > 30, "{error}");
    }
}

#[test]
fn quantities_refuse_what_they_cannot_mean() {
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        assert!(Epsilon::new(bad).is_err() && ZcdpRho::new(bad).is_err() && GdpMu::new(bad).is_err());
        assert!(Delta::new(bad).is_err() && Budget::new(bad, 0.1).is_err());
    }
    assert!(Delta::new(0.0).is_err() && Delta::new(1.0).is_err() && Delta::new(0.5).is_ok());
    assert!(Budget::new(0.0, 0.1).is_err() && Budget::new(1e7, 0.1).is_err());
    assert!(Decay::new(0, 0.5).is_err() && Decay::new(5, 0.0).is_err() && Decay::new(5, 1.01).is_err());
    assert!(Decay::new(5, f64::NAN).is_err() && Decay::new(2_000_000, 1.0).is_err());
    assert!(serde_json::from_str::<Epsilon>("-0.5").is_err());
    assert!(serde_json::from_str::<Budget>(r#"{"epsilon":0.0,"delta":0.1}"#).is_err());
    assert!(serde_json::from_str::<Budget>(r#"{"epsilon":2.0,"delta":0.1}"#).is_ok());
    assert_eq!(serde_json::to_string(&Delta::new(0.25).unwrap()).unwrap(), "0.25");
    assert_eq!(Adjacency::ReplaceOne.to_string(), "replace one record of one site by any other");
}

#[test]
fn sensitivities_refuse_what_cannot_be_proved() {
    let good = SensitivityInputs { gradient_bound: 1.0, n_records: 10, tolerance: 0.0, modulus: 1.0 };
    assert!(Sensitivity::per_record(&good).is_ok());
    for bad in [
        SensitivityInputs { gradient_bound: 0.0, ..good },
        SensitivityInputs { gradient_bound: f64::NAN, ..good },
        SensitivityInputs { n_records: 0, ..good },
        SensitivityInputs { tolerance: -1e-9, ..good },
        SensitivityInputs { tolerance: f64::INFINITY, ..good },
        SensitivityInputs { modulus: 0.0, ..good },
        SensitivityInputs { gradient_bound: 1e300, modulus: 1e-300, ..good },
    ] {
        assert!(matches!(Sensitivity::per_record(&bad), Err(PrivacyError::OutOfRange { .. })), "{bad:?}");
    }
    assert!(Sensitivity::paper(1.0, 0.0, 4).is_err() && Sensitivity::paper(1.0, 1.0, 0).is_err());
}

#[test]
fn schedules_refuse_what_cannot_be_drawn() {
    let delta = Delta::new(1e-5).unwrap();
    let decay = Decay::new(2, 0.9).unwrap();
    let with = |gradient_bound, first, n_features| {
        let inputs = SensitivityInputs { gradient_bound, n_records: 10, tolerance: 0.0, modulus: 1.0 };
        let sensitivity = Sensitivity::per_record(&inputs).unwrap();
        NoiseSchedule::from_noise_multiplier(first, decay, sensitivity, n_features, delta)
    };
    assert!(with(1.0, 5.0, 10).is_ok());
    assert!(with(1.0, 5.0, 0).is_err(), "no features");
    assert!(with(1.0, f64::NAN, 10).is_err() && with(1.0, 0.0, 10).is_err());
    assert!(with(1.0, 1e-80, 10).is_err(), "a charge beyond any meaning");
    assert!(with(1.0, 1e15, 10).is_err(), "a grid finer than doubles");
    assert!(with(1e-305, 5.0, 10).is_err() && with(1e305, 5.0, 10).is_err(), "noise outside the doubles");
    assert!(with(5e307, 1e6, 10).is_err(), "noise that overflows");
}
