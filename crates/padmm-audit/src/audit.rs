//! The attack and the checks of one process, in one go.

use padmm_core::algorithm::AlgorithmKind;
use padmm_privacy::MemoryLedger;
use rayon::prelude::*;

use crate::attack::{Evidence, attack};
use crate::bits::Bits;
use crate::bound::Trial;
use crate::canary::{Canary, CanaryRequest, schedule};
use crate::error::{AuditError, require};
use crate::payload::{one_payload, with_faults};
use crate::stopping::stopping;
use crate::target::Target;
use crate::verdict::{Check, Checks, Verdict};
use crate::whiteness::whiteness;

/// A claim to attack, and how hard.
#[derive(Clone, Copy, Debug)]
pub struct AuditRequest {
    /// The algorithm whose claim is attacked.
    pub algorithm: AlgorithmKind,
    /// The ε that the plan promises and the attack tries to refute.
    pub epsilon: f64,
    /// The δ that the ε holds at.
    pub delta: f64,
    /// Secret bits over all runs; each is one guess.
    pub tests: usize,
    /// Probability that all reported bounds hold, between 0 and 1.
    pub confidence: f64,
    /// How many private rounds the audited site takes part in, in every run.
    pub rounds: u32,
    /// Seed of bits and hostile messages.
    pub seed: u64,
}

const TESTS_OF_A_RUN: usize = 100;

impl AuditRequest {
    /// The same question for one run, in which `n_tests` secret bits are guessed.
    pub fn canary(&self, n_tests: usize) -> CanaryRequest {
        let &Self { algorithm, epsilon, delta, rounds, .. } = self;
        CanaryRequest { algorithm, epsilon, delta, rounds, n_tests }
    }
}

/// Attacks a program: guesses all secrets, then checks what a guess cannot see. The answer on neighbouring files is for the caller to
/// find out, who knows how the program is started. Tells `progress` how many bits have been guessed.
pub fn audit(
    target: &dyn Target,
    request: &AuditRequest,
    refusals: Check,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<(Verdict, Vec<Trial>), AuditError> {
    require("tests", request.tests as f64, request.tests >= 1, "at least 1")?;
    let n_tests = request.tests.min(TESTS_OF_A_RUN);
    let canary = Canary::new(&request.canary(n_tests))?;
    let calibration = target.calibration(canary.scene())?;
    let schedule = schedule(canary.scene(), &calibration)?;
    let run = |number: usize| -> Result<Evidence, AuditError> {
        let here = n_tests.min(request.tests - number * n_tests);
        let secrets = Bits::new(request.seed, number as u64).labels(here);
        let evidence = attack(target, &canary, &calibration, &secrets, Box::new(MemoryLedger::new()));
        progress(here);
        evidence
    };
    let runs = (0..request.tests.div_ceil(n_tests)).into_par_iter().map(run);
    // Collected in order first, so that nothing depends on which thread was faster.
    let all: Vec<Evidence> = runs.collect::<Result<_, _>>()?;
    let evidence = all.into_iter().reduce(Evidence::and).unwrap_or_default();
    let checks = Checks {
        whiteness: whiteness(&evidence),
        one_payload: with_faults(
            one_payload(target, &request.canary(n_tests), request.seed)?,
            &evidence.faults,
        ),
        stopping: stopping(target, request.seed)?,
        refusals,
    };
    let report = schedule.report();
    let verdict = Verdict::of(request, report.mu, &evidence.trials, checks)?;
    Ok((verdict, evidence.trials))
}
