//! The canaries are as tight as they claim: what the attacker computes in closed form is what the shipped agent computes, for either
//! label and for every algorithm that promises something about the bytes that leave.

use padmm_audit::*;
use padmm_core::algorithm::{AlgorithmKind, Guarantee};
use padmm_privacy::{Delta, Event, MemoryLedger, NoiseSource, PrivacyError};

/// Noise that is none: releases are the un-noised points on the grid.
struct NoNoise;

impl NoiseSource for NoNoise {
    fn fill(&mut self, _scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        out.fill(0);
        Ok(())
    }
    fn description(&self) -> &'static str {
        "none"
    }
    fn is_secure(&self) -> bool {
        false
    }
}

/// The shipped program without its noise.
struct Bare;

impl Target for Bare {
    fn noise(&self) -> Box<dyn NoiseSource> {
        Box::new(NoNoise)
    }
}

fn request(algorithm: AlgorithmKind, n_tests: usize) -> CanaryRequest {
    CanaryRequest { algorithm, epsilon: 1.0, delta: 1e-4, rounds: 6, n_tests }
}

#[test]
fn every_guarantee_for_the_bytes_that_leave_has_a_canary() {
    for algorithm in padmm_core::algorithm::ALL {
        let promises = algorithm.describe().guarantee == Guarantee::ExactGaussian;
        let canary = Canary::new(&request(algorithm, 4));
        assert_eq!(canary.is_ok(), promises, "{}", algorithm.name());
        if let Err(error) = canary {
            assert!(error.to_string().contains("p-admm"), "{error}");
        }
    }
}

#[test]
fn the_closed_form_is_what_the_agent_computes_for_either_label() {
    for algorithm in Canary::algorithms() {
        let canary = Canary::new(&request(algorithm, 5)).unwrap();
        let calibration = Bare.calibration(canary.scene()).unwrap();
        let schedule = calibration.agents[canary.scene().site].noise.as_deref().unwrap();
        for secrets in [[1.0, -1.0, 1.0, 1.0, -1.0], [-1.0, -1.0, 1.0, -1.0, -1.0]] {
            let evidence =
                attack(&Bare, &canary, &calibration, &secrets, Box::new(MemoryLedger::new())).unwrap();
            assert_eq!(evidence.faults, [""; 0], "{}", algorithm.name());
            for (k, residuals) in evidence.residuals.iter().enumerate() {
                assert_eq!(residuals.len(), 5, "{}, round {}", algorithm.name(), k + 1);
                // Δ is 1e-3 of itself wider for the hinge's tolerance; noise is several Δ wide.
                let far = residuals.iter().map(|r| r.abs()).fold(0.0, f64::max);
                assert!(far < 1e-4, "{}, round {}: {far:e} deviations off", algorithm.name(), k + 1);
            }
        }
        // Tight: the two labels are a whole sensitivity apart, in every round.
        let shadow = Shadow::new(canary.scene(), &calibration);
        for round in 1..=2 {
            let apart = (shadow.point(round, 0, 1.0) - shadow.point(round, 0, -1.0)).abs();
            let Some(Event::Gaussian { sensitivity, .. }) = schedule.event(round) else { panic!() };
            let found = format!("{}, round {round}: {apart} of {sensitivity}", algorithm.name());
            assert!(apart <= sensitivity && apart > 0.998 * sensitivity, "{found}");
        }
    }
}

#[test]
fn the_shipped_program_is_measured_at_its_claim() {
    // 10,000 tests at ε = 5 measure μ to within 0.023 (one standard deviation): six of them on either side, and a bound that a sound
    // program exceeds once in a million. The noise is fresh in every run, so a tight canary does exceed at 99.9 % now and then.
    let confidence = 1.0 - 1e-6;
    for algorithm in Canary::algorithms() {
        let request = AuditRequest {
            algorithm,
            epsilon: 5.0,
            delta: 1e-4,
            tests: 10_000,
            confidence,
            rounds: 3,
            seed: 5,
        };
        let canary = Canary::new(&request.canary(100)).unwrap();
        let calibration = Shipped.calibration(canary.scene()).unwrap();
        let run = |stream: u64| {
            let secrets = Bits::new(5, stream).labels(100);
            attack(&Shipped, &canary, &calibration, &secrets, Box::new(MemoryLedger::new())).unwrap()
        };
        let evidence = (0..100).map(run).reduce(Evidence::and).unwrap();
        let found = bounds(&evidence.trials, Delta::new(1e-4).unwrap(), confidence).unwrap();
        assert!((found.mu_measured - 1.2564).abs() < 0.14, "{}: {found:?}", algorithm.name());
        assert!(found.epsilon_lower < 5.0 && found.epsilon_lower > 3.6, "{}: {found:?}", algorithm.name());
        assert!(whiteness(&evidence).is_passed(), "{}: {:?}", algorithm.name(), whiteness(&evidence));
        assert_eq!(evidence.faults, [""; 0]);
    }
}
