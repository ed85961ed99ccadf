//! What tests of sums share: their integers, by way of a gate whose noise is zero.

use padmm_privacy::{
    Budget, ClippedSum, Computed, Gate, MemoryLedger, NoiseSchedule, NoiseSource, Payload, PrivacyError,
    RequiredCertificate, Schedule, SumRound, Terms,
};

struct Silence;

impl NoiseSource for Silence {
    fn fill(&mut self, _scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        out.fill(0);
        Ok(())
    }
    fn description(&self) -> &'static str {
        "zeros, for a test"
    }
    fn is_secure(&self) -> bool {
        false
    }
}

/// What a round of sums releases where all noise happens to be zero.
pub(crate) fn release(
    terms: Terms,
    n_coordinates: usize,
    n_records: usize,
    computed: Computed,
) -> Result<Payload, PrivacyError> {
    let budget = Budget::new(1.0, 1e-4)?;
    let schedule =
        NoiseSchedule::for_sums(budget, n_records, &[SumRound { n_coordinates, terms, share: 1.0 }])?;
    // Sums need no certificate, so any will do.
    let mechanism = schedule.mechanism(RequiredCertificate { modulus: f64::NAN, tolerance: 0.0 })?;
    let ledger = Box::new(MemoryLedger::new());
    let mut gate = Gate::new("r".into(), "s".into(), mechanism, Box::new(Silence), ledger);
    gate.release(1, |_| Ok(computed)).map(|release| release.value().clone())
}

/// The integers of a sum, and how many bits finer than the bound their unit is.
pub(crate) fn released(
    sum: ClippedSum,
    terms: Terms,
    n_coordinates: usize,
    n_records: usize,
) -> (Vec<i64>, u32) {
    let payload = release(terms, n_coordinates, n_records, sum.into()).unwrap();
    let Payload::Grid { exponent, values } = payload else { panic!("sums are on a grid") };
    (values, exponent.unsigned_abs())
}

pub(crate) fn square(v: &[i64]) -> u128 {
    v.iter().map(|t| u128::from(t.unsigned_abs()).pow(2)).sum()
}
