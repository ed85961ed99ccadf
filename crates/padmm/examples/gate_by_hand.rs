//! A release by hand: sensitivity, noise, ledger, gate. The order is fixed and nothing else makes a release.
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use padmm::privacy::{
    Budget, Certified, Conversion, Decay, Gate, GridGaussian, MemoryLedger, NoiseRequest, NoiseSchedule,
    PrivacyError, RequiredCertificate, Schedule, SecureNoise, Sensitivity, SensitivityInputs,
};

fn main() -> Result<(), PrivacyError> {
    // The minimiser of a 0.1-strongly convex mean of 500 losses with gradients of at most 1, certified to 1e-9.
    let (modulus, tolerance) = (0.1, 1e-9);
    let sensitivity = Sensitivity::per_record(&SensitivityInputs {
        gradient_bound: 1.0,
        n_records: 500,
        tolerance,
        modulus,
    })?;
    let schedule = NoiseSchedule::calibrate(&NoiseRequest {
        budget: Budget::new(1.0, 1e-6)?,
        conversion: Conversion::Exact,
        decay: Decay::new(3, 1.0)?,
        sensitivity,
        n_features: 2,
        scales: None,
    })?;
    println!("{}", schedule.report().statement());

    let mechanism = GridGaussian::new(schedule, RequiredCertificate { modulus, tolerance })?;
    let ledger = Box::new(MemoryLedger::new());
    let mut gate =
        Gate::new("by-hand".into(), "ash".into(), Box::new(mechanism), Box::new(SecureNoise), ledger);
    for round in 1..=3 {
        // The closure is the only place that looks at records, after the charge and the draw.
        let release = gate.release(round, |_noise| {
            Ok::<_, PrivacyError>(Certified { point: vec![0.25, -0.5], residual: 1e-10 })
        })?;
        println!("round {round}: {:?}", release.value().to_vec());
    }
    // A round leaves once, and a solve without its certificate does not leave at all.
    let again = gate.release(3, |_| Ok::<_, PrivacyError>(Certified { point: vec![0.0; 2], residual: 0.0 }));
    println!("again: {}", again.unwrap_err());
    Ok(())
}
