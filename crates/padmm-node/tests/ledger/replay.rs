//! The ledger behind a real gate.

use super::*;

/// The same integer on every coordinate.
struct FixedNoise(i64);

impl NoiseSource for FixedNoise {
    fn fill(&mut self, _scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        out.fill(self.0);
        Ok(())
    }
    fn description(&self) -> &'static str {
        "fixed"
    }
    fn is_secure(&self) -> bool {
        false
    }
}

fn gate(ledger: &Arc<Mutex<SiteLedger>>, noise: i64) -> Gate {
    let inner = GateLedger::new(ledger.clone(), &run_start("run-a"), sealer(), opener()).unwrap();
    let noise = Box::new(FixedNoise(noise));
    Gate::new("run-a".into(), SITE.into(), Box::new(mechanism()), noise, Box::new(inner))
}

fn step(gate: &mut Gate, round: u32, point: f64) -> Result<Payload, PrivacyError> {
    let certified = Certified { point: vec![point; FEATURES], residual: 0.0 };
    gate.release(round, |_| Ok(certified)).map(|released| released.value().clone())
}

fn started(case: &Case) -> Arc<Mutex<SiteLedger>> {
    let mut ledger = SiteLedger::create(&case.path(), opening(10.0)).unwrap();
    ledger.start_run(&run_start("run-a")).unwrap();
    shared(ledger)
}

#[test]
fn after_reopening_the_gate_gives_the_same_payloads_and_bytes() {
    let case = Case::empty();
    let ledger = started(&case);
    let mut first = gate(&ledger, 5);
    let payloads: Vec<Payload> = (1..=2).map(|round| step(&mut first, round, 0.25).unwrap()).collect();
    let bytes = ledger.lock().unwrap().release_bytes("run-a", 1).unwrap();
    drop((first, ledger));

    let ledger = shared(reopened(&case.path()));
    ledger.lock().unwrap().start_run(&run_start("run-a")).unwrap();
    let before = ledger.lock().unwrap().spending();
    // Other noise and another point: what was recorded is what is released, permanently.
    let mut again = gate(&ledger, 99);
    assert_eq!((again.next_round(), again.debits().len()), (1, 2));
    let repeated: Vec<Payload> = (1..=2).map(|round| step(&mut again, round, 7.0).unwrap()).collect();
    assert_eq!(repeated, payloads);
    assert_eq!(ledger.lock().unwrap().release_bytes("run-a", 1).unwrap(), bytes);
    assert_eq!(ledger.lock().unwrap().spending(), before, "nothing is charged again");
    step(&mut again, 3, 0.5).unwrap();
    step(&mut again, 4, 0.5).unwrap();
    ledger.lock().unwrap().finish_run("run-a").unwrap();
    assert_eq!(verify(&case.path()).unwrap().releases, 4);
}

#[test]
fn what_could_not_be_written_is_not_released_and_a_restart_goes_on() {
    let case = Case::empty();
    let ledger = started(&case);
    let mut broken = gate(&ledger, 5);
    step(&mut broken, 1, 0.25).unwrap();
    drop((broken, ledger));
    // A trigger that refuses every entry stands for a disk that fails.
    let ledger = shared(reopened(&case.path()));
    let mut broken = gate(&ledger, 5);
    step(&mut broken, 1, 0.25).unwrap();
    case.tamper("CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no'); END");
    let error = step(&mut broken, 2, 0.25).unwrap_err();
    assert!(matches!(error, PrivacyError::LedgerFailed { .. }), "{error}");
    case.tamper("DROP TRIGGER full");
    let error = ledger.lock().unwrap().finish_run("run-a").unwrap_err();
    assert!(matches!(error, LedgerError::Stopped { .. }), "{error}");
    drop((broken, ledger));
    let ledger = shared(reopened(&case.path()));
    let mut again = gate(&ledger, 6);
    step(&mut again, 1, 0.25).unwrap();
    step(&mut again, 2, 0.25).unwrap();
    assert_eq!(ledger.lock().unwrap().state().run("run-a").unwrap().n_released(), 2);
}

#[test]
fn a_debit_that_crosses_the_cap_or_is_not_planned_is_refused() {
    let ledger = shared(SiteLedger::in_memory(opening(10.0)).unwrap());
    ledger.lock().unwrap().start_run(&run_start("run-a")).unwrap();
    ledger.lock().unwrap().change_cap(Budget::new(0.01, 1e-5).unwrap()).unwrap();
    let error = step(&mut gate(&ledger, 5), 1, 0.25).unwrap_err();
    assert!(error.to_string().contains("cap"), "{error}");
    let mut inner = GateLedger::new(ledger.clone(), &run_start("run-a"), sealer(), opener()).unwrap();
    let debit = |run: &str, site: &str, round: u32, event: Event| Debit {
        run: run.into(),
        site: site.into(),
        round,
        event,
    };
    let event = planned()[0].event;
    for wrong in [
        debit("run-b", SITE, 1, event),
        debit("run-a", "east", 1, event),
        debit("run-a", SITE, 5, event),
        debit("run-a", SITE, 2, event),
        debit("run-a", SITE, 1, Event::NonPrivate),
    ] {
        assert!(matches!(inner.debit(&wrong), Err(PrivacyError::LedgerFailed { .. })), "{wrong:?}");
    }
    ledger.lock().unwrap().change_cap(Budget::new(9.0, 1e-5).unwrap()).unwrap();
    let good = debit("run-a", SITE, 1, event);
    inner.debit(&good).unwrap();
    assert!(matches!(inner.debit(&good), Err(PrivacyError::AlreadyCharged { round: 1, .. })));
    assert_eq!((inner.debits(), inner.recorded("run-a", SITE, 1).unwrap()), (&[good][..], None));
    let mut unknown = GateLedger::new(ledger, &run_start("run-z"), sealer(), opener()).unwrap();
    let error = unknown.debit(&debit("run-z", SITE, 1, event)).unwrap_err();
    assert!(error.to_string().contains("run-z"), "a run that was not started cannot be charged: {error}");
}

#[test]
fn an_envelope_that_does_not_open_stops_the_run() {
    let case = Case::empty();
    let ledger = started(&case);
    step(&mut gate(&ledger, 5), 1, 0.25).unwrap();
    let other = Payload::Grid { exponent: 0, values: vec![1] };
    let openers: [(Opener, &str); 2] = [
        (Box::new(|_| Err("no signature".to_owned())), "no signature"),
        (Box::new(move |_| Ok(other.clone())), "another grid"),
    ];
    for (opener, needle) in openers {
        let inner = GateLedger::new(ledger.clone(), &run_start("run-a"), sealer(), opener).unwrap();
        let error = inner.recorded("run-a", SITE, 1).unwrap_err().to_string();
        assert!(error.contains(needle) && error.contains("entry 3"), "{error}");
    }
}
