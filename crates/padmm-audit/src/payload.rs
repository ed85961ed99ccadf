//! One payload and one charge for each round, whatever happens to the process.
//!
//! A site is stopped after every round and started again from its ledger on the disk. It must say again, to the bit, what it said
//! before: a second draw of noise for a round that was released would halve the noise for whoever kept the first.

use std::path::Path;
use std::sync::{Arc, Mutex};

use padmm_core::algorithm::P_ADMM;
use padmm_core::calibration::Calibration;
use padmm_node::ledger::{GateLedger, Opener, Opening, PlannedRelease, RunStart, Sealer, SiteLedger, verify};
use padmm_privacy::{Budget, Delta, Epsilon, Payload};
use serde_json::{Value, json};

use crate::attack::{Said, payloads_of};
use crate::bits::Bits;
use crate::canary::{Canary, CanaryRequest, schedule};
use crate::error::AuditError;
use crate::target::{SITE, Scene, Target};
use crate::verdict::Check;

/// Coordinates of the run that is restarted.
const TESTS: usize = 6;

/// Stops and restarts a site after every round and compares what it says with what its neighbour has kept, and with its ledger.
pub fn one_payload(target: &dyn Target, request: &CanaryRequest, seed: u64) -> Result<Check, AuditError> {
    // Algorithms with a server or a token are not run between sites, so nothing of theirs is restarted.
    let is_between_sites = request.algorithm.runs_between_sites();
    let algorithm = if is_between_sites { request.algorithm } else { P_ADMM };
    let canary = Canary::new(&CanaryRequest { algorithm, n_tests: TESTS, ..*request })?;
    let calibration = target.calibration(canary.scene())?;
    let secrets = Bits::new(seed, u64::MAX).labels(TESTS);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("audit.ledger");
    let start = run_start(canary.scene(), &calibration)?;
    let mut ledger = SiteLedger::create(&path, opening()?)?;
    ledger.start_run(&start)?;
    drop(ledger);
    let mut check = Check::passed();
    let mut kept: Vec<(u32, Payload)> = vec![];
    for rounds in 1..=request.rounds {
        let ledger = Arc::new(Mutex::new(SiteLedger::open(&path)?));
        let gate_ledger = GateLedger::new(Arc::clone(&ledger), &start, sealer(), opener())?;
        let said = payloads_of(target, &canary, &calibration, &secrets, Box::new(gate_ledger), rounds);
        let Said { payloads: said, faults } = match said {
            Ok(said) => said,
            Err(error) => {
                check.fail(format!("after {} rounds the site could not continue: {error}", rounds - 1));
                return Ok(check);
            }
        };
        for fault in faults {
            check.fail(format!("after a restart {fault}"));
        }
        for (before, again) in kept.iter().zip(&said) {
            if before != again {
                check.fail(format!("round {} was released a second time, with other noise", before.0));
            }
        }
        kept = said;
        drop(ledger);
    }
    compare(&path, &kept, request.rounds, &mut check)?;
    Ok(check)
}

/// What the neighbour has kept is what the ledger holds, and every round was charged.
fn compare(path: &Path, kept: &[(u32, Payload)], rounds: u32, check: &mut Check) -> Result<(), AuditError> {
    if let Err(error) = verify(path) {
        check.fail(format!("the ledger does not verify: {error}"));
        return Ok(());
    }
    let ledger = SiteLedger::open(path)?;
    let charges = ledger.state().run(SITE).map_or(0, |run| run.charges.len());
    if charges != rounds as usize {
        check.fail(format!("{charges} of {rounds} rounds are charged in the ledger"));
    }
    for (round, payload) in kept {
        let stored = ledger.release_bytes(SITE, *round)?.map(|bytes| opener()(&bytes));
        if stored.as_ref().and_then(|s| s.as_ref().ok()) != Some(payload) {
            check.fail(format!("what the neighbour has of round {round} is not what the ledger has"));
        }
    }
    Ok(())
}

fn opening() -> Result<Opening, AuditError> {
    let cap = Budget::new(1000.0, 0.1)?;
    Ok(Opening { data_set: SITE.to_owned(), fingerprint: "00".repeat(32), cap })
}

fn run_start(scene: &Scene, calibration: &Calibration) -> Result<RunStart, AuditError> {
    let schedule = schedule(scene, calibration)?;
    let planned = |round| {
        let (event, exponent) = (schedule.event(round)?, schedule.grid_exponent(round)?);
        Some(PlannedRelease { round, event, n_features: schedule.n_coordinates(round), exponent })
    };
    let planned = (1..=schedule.rounds()).map(planned).collect::<Option<_>>();
    let planned = planned.ok_or_else(|| AuditError::Protocol("has rounds without a grid".to_owned()))?;
    let report = schedule.report();
    Ok(RunStart {
        run: SITE.to_owned(),
        plan_name: SITE.to_owned(),
        site: SITE.to_owned(),
        rounds: schedule.rounds(),
        planned,
        epsilon_exact: Epsilon::new(report.epsilon_exact)?,
        delta: Delta::new(report.delta)?,
        noise: "an audit's".to_owned(),
    })
}

/// An envelope without a signature: what is checked here is what is inside.
fn sealer() -> Sealer {
    Box::new(|request| json!({ "payload": request.payload }).to_string().into_bytes())
}

fn opener() -> Opener {
    Box::new(|bytes| {
        let envelope: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        serde_json::from_value(envelope["payload"].clone()).map_err(|error| error.to_string())
    })
}

/// Findings of a run that were seen while its secrets were guessed.
pub(crate) fn with_faults(mut check: Check, faults: &[String]) -> Check {
    for fault in faults {
        if !check.findings.contains(fault) && check.findings.len() < 12 {
            check.fail(fault.clone());
        }
    }
    check
}
