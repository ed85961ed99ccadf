//! A site's ledger: what it keeps, what it refuses, and what it notices.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

mod cap;
mod files;
mod random;
mod replay;
mod tampering;

use padmm_core::message::Turn;
use padmm_node::ledger::*;
use padmm_privacy::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

const FEATURES: usize = 3;
const ROUNDS: u32 = 4;
const SITE: &str = "north";

const CERTIFICATE: RequiredCertificate = RequiredCertificate { modulus: 0.5, tolerance: 1e-9 };

fn schedule() -> NoiseSchedule {
    let RequiredCertificate { modulus, tolerance } = CERTIFICATE;
    let inputs = SensitivityInputs { gradient_bound: 1.0, n_records: 100, tolerance, modulus };
    NoiseSchedule::calibrate(&NoiseRequest {
        budget: Budget::new(1.0, 1e-5).unwrap(),
        conversion: Conversion::Exact,
        decay: Decay::new(ROUNDS, 0.9).unwrap(),
        sensitivity: Sensitivity::per_record(&inputs).unwrap(),
        n_features: FEATURES,
        scales: None,
    })
    .unwrap()
}

fn mechanism() -> GridGaussian {
    GridGaussian::new(schedule(), CERTIFICATE).unwrap()
}

fn planned() -> Vec<PlannedRelease> {
    static PLANNED: OnceLock<Vec<PlannedRelease>> = OnceLock::new();
    PLANNED.get_or_init(plan).clone()
}

fn plan() -> Vec<PlannedRelease> {
    let schedule = schedule();
    let release = |round| PlannedRelease {
        round,
        event: schedule.event(round).unwrap(),
        n_features: FEATURES,
        exponent: schedule.grid_exponent(round).unwrap(),
    };
    (1..=ROUNDS).map(release).collect()
}

fn run_start(run: &str) -> RunStart {
    let report = schedule().report();
    RunStart {
        run: run.to_owned(),
        plan_name: "heart".to_owned(),
        site: SITE.to_owned(),
        rounds: ROUNDS,
        planned: planned(),
        epsilon_exact: Epsilon::new(report.epsilon_exact).unwrap(),
        delta: Delta::new(report.delta).unwrap(),
        noise: "for tests".to_owned(),
    }
}

fn opening(epsilon: f64) -> Opening {
    let cap = Budget::new(epsilon, 1e-5).unwrap();
    Opening { data_set: "heart".to_owned(), fingerprint: "ab".repeat(32), cap }
}

/// An envelope that is easy to read: no signature.
fn sealer() -> Sealer {
    Box::new(|request| {
        let envelope = json!({
            "round": request.round, "payload": request.payload, "seq": request.seq,
            "previous": request.previous_head.to_string(),
        });
        envelope.to_string().into_bytes()
    })
}

fn opener() -> Opener {
    Box::new(|bytes| {
        let envelope: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        serde_json::from_value(envelope["payload"].clone()).map_err(|error| error.to_string())
    })
}

/// The payload of a round: `value` on every coordinate.
fn payload(round: u32, value: i64) -> Payload {
    Payload::Grid { exponent: planned()[round as usize - 1].exponent, values: vec![value; FEATURES] }
}

/// Charges a round and writes its release.
fn release(ledger: &mut SiteLedger, run: &str, round: u32, value: i64) -> Result<(), LedgerError> {
    ledger.reserve(run, &planned()[round as usize - 1])?;
    ledger.commit_release(run, round, &payload(round, value), &*sealer())
}

fn message(run: &str, sender: &str, turn: Turn, text: &str) -> Received {
    let bytes = text.as_bytes().to_vec();
    Received { run: run.to_owned(), sender: sender.to_owned(), turn, bytes }
}

/// A folder with a ledger in it: one run with two releases and a lost neighbour, and a second run that was finished.
struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn filled() -> Self {
        let case = Self::empty();
        let mut ledger = SiteLedger::create(&case.path(), opening(100.0)).unwrap();
        ledger.start_run(&run_start("run-a")).unwrap();
        release(&mut ledger, "run-a", 1, 7).unwrap();
        ledger.stage_received(message("run-a", "south", Turn::model(1), "hello")).unwrap();
        release(&mut ledger, "run-a", 2, 8).unwrap();
        ledger.lose_neighbour("run-a", "west", Turn::model(2)).unwrap();
        ledger.start_run(&run_start("run-b")).unwrap();
        release(&mut ledger, "run-b", 1, 9).unwrap();
        ledger.finish_run("run-b").unwrap();
        case
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("heart.ledger")
    }

    fn beside(&self, ending: &str) -> PathBuf {
        self.folder.path().join(format!("heart.ledger{ending}"))
    }

    /// Runs SQL on the file as someone would who wants to hide something: without the triggers and the index.
    fn tamper(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        let free = "DROP TRIGGER IF EXISTS entries_stay; DROP TRIGGER IF EXISTS entries_do_not_change;
                    DROP INDEX IF EXISTS one_charge_a_round;";
        connection.execute_batch(free).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    /// What all three ways of opening say, which must be the same.
    fn refused(&self) -> LedgerError {
        let error = verify(&self.path()).unwrap_err();
        assert_eq!(SiteLedger::open(&self.path()).unwrap_err(), error);
        assert_eq!(SiteLedger::read(&self.path()).unwrap_err(), error);
        let text = error.to_string();
        assert!(text.contains("heart.ledger"), "the file is named: {text}");
        error
    }
}

fn shared(ledger: SiteLedger) -> Arc<Mutex<SiteLedger>> {
    Arc::new(Mutex::new(ledger))
}

fn reopened(path: &Path) -> SiteLedger {
    SiteLedger::open(path).unwrap()
}

#[test]
fn what_was_written_is_there_again() {
    let case = Case::filled();
    let ledger = reopened(&case.path());
    assert_eq!((ledger.head().seq, ledger.fingerprint().len()), (8, 64));
    assert_eq!(ledger.cap(), Budget::new(100.0, 1e-5).unwrap());
    let runs: Vec<_> = ledger.state().runs().map(|r| (r.start.run.as_str(), r.n_released())).collect();
    assert_eq!(runs, [("run-a", 2), ("run-b", 1)]);
    assert!(ledger.is_finished("run-b") && !ledger.is_finished("run-a") && !ledger.is_finished("run-c"));
    assert_eq!(ledger.losses("run-a"), [Loss { neighbour: "west".to_owned(), turn: Turn::model(2) }]);
    assert_eq!(ledger.received("run-a").unwrap(), [message("run-a", "south", Turn::model(1), "hello")]);
    let mut sum = Spending::default();
    for round in [1, 2, 1] {
        let p = planned()[round - 1];
        sum.add(&p.event, p.n_features, p.exponent).unwrap();
    }
    assert_eq!(ledger.spending(), sum);
    let bytes = ledger.release_bytes("run-a", 2).unwrap().unwrap();
    let envelope: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((&envelope["seq"], &envelope["payload"]["grid"]["values"]), (&json!(4), &json!([8, 8, 8])));
    let view = SiteLedger::read(&case.path()).unwrap();
    assert_eq!(envelope["previous"], view.entries()[2].hash.to_string());
    assert_eq!(ledger.release_bytes("run-a", 3).unwrap(), None);
    let verified = verify(&case.path()).unwrap();
    assert_eq!((verified.entries, verified.runs, verified.releases, verified.forfeited), (8, 2, 3, 0));
    assert_eq!(verified.epsilon_spent, ledger.epsilon_spent().value());
}

#[test]
fn starting_finishing_and_losing_again_change_nothing() {
    let case = Case::filled();
    let mut ledger = reopened(&case.path());
    ledger.start_run(&run_start("run-a")).unwrap();
    ledger.finish_run("run-b").unwrap();
    ledger.lose_neighbour("run-a", "west", Turn::model(3)).unwrap();
    ledger.change_cap(ledger.cap()).unwrap();
    ledger.change_data(&"ab".repeat(32)).unwrap();
    assert_eq!(ledger.head().seq, 8);
    ledger.change_data(&"cd".repeat(32)).unwrap();
    ledger.change_cap(Budget::new(3.0, 1e-6).unwrap()).unwrap();
    drop(ledger);
    let ledger = reopened(&case.path());
    assert_eq!((ledger.head().seq, ledger.fingerprint()), (10, "cd".repeat(32).as_str()));
    assert_eq!(ledger.cap(), Budget::new(3.0, 1e-6).unwrap());
}

#[test]
fn a_run_that_is_unknown_over_or_another_is_refused() {
    let case = Case::filled();
    let mut ledger = reopened(&case.path());
    let unknown = release(&mut ledger, "run-c", 1, 0).unwrap_err();
    assert!(matches!(unknown, LedgerError::UnknownRun { .. }), "{unknown}");
    let over = release(&mut ledger, "run-b", 2, 0).unwrap_err();
    assert!(matches!(over, LedgerError::RunOver { .. }), "{over}");
    let twice = release(&mut ledger, "run-a", 2, 0).unwrap_err();
    assert!(matches!(twice, LedgerError::AlreadyCharged { round: 2, .. }), "{twice}");
    let other = RunStart { site: "east".to_owned(), ..run_start("run-a") };
    let other = ledger.start_run(&other).unwrap_err();
    assert!(matches!(other, LedgerError::RunDiffers { what: "site", .. }), "{other}");
    let other = ledger.start_run(&RunStart { rounds: 9, ..run_start("run-a") }).unwrap_err();
    assert!(matches!(other, LedgerError::RunDiffers { what: "number of rounds", .. }), "{other}");
    // What was begun with a test build's noise is not finished with a site's, nor the other way round.
    for noise in ["exact discrete Gaussian", "seeded floating-point Gaussian"] {
        let other = RunStart { noise: noise.to_owned(), ..run_start("run-a") };
        let before = ledger.head();
        for refusal in [ledger.check_run(&other), ledger.start_run(&other)] {
            let refusal = refusal.unwrap_err();
            assert!(matches!(refusal, LedgerError::OtherNoise { .. }), "{refusal}");
            let said = refusal.to_string();
            assert!(said.contains("with this noise: for tests.") && said.contains(noise), "{said}");
        }
        assert_eq!(ledger.head(), before);
    }
    let uncharged = ledger.commit_release("run-a", 3, &payload(3, 0), &*sealer()).unwrap_err();
    assert!(matches!(uncharged, LedgerError::NotCharged { round: 3, .. }), "{uncharged}");
    ledger.reserve("run-a", &planned()[2]).unwrap();
    let plain = ledger.commit_release("run-a", 3, &Payload::Plain(vec![0.0; 3]), &*sealer()).unwrap_err();
    assert!(matches!(plain, LedgerError::Privacy(PrivacyError::NotGaussian { .. })), "{plain}");
    let short = Payload::Grid { exponent: planned()[2].exponent, values: vec![0] };
    let short = ledger.commit_release("run-a", 3, &short, &*sealer()).unwrap_err();
    assert!(matches!(short, LedgerError::NotPlanned { round: 3, .. }), "{short}");
    assert_eq!(ledger.head().seq, 8, "nothing was written");
    ledger.forfeit("run-a", &planned()[2], "the solver did not converge").unwrap();
    assert_eq!(ledger.state().run("run-a").unwrap().forfeited(), [3]);
    assert!(ledger.forfeit("run-a", &planned()[2], "again").is_err());
    assert_eq!(ledger.release_bytes("run-a", 3).unwrap(), None);
}

#[test]
fn messages_come_back_in_order_and_one_a_turn() {
    let mut ledger = SiteLedger::in_memory(opening(10.0)).unwrap();
    ledger.start_run(&run_start("run-a")).unwrap();
    let (first, second, average) = (Turn::model(1), Turn::model(2), Turn::average(1));
    for (sender, turn) in [("west", average), ("west", second), ("south", second), ("west", first)] {
        ledger.stage_received(message("run-a", sender, turn, sender)).unwrap();
    }
    assert!(ledger.received("run-a").unwrap().is_empty(), "staged is not written");
    ledger.commit_received().unwrap();
    ledger.commit_received().unwrap();
    let keys: Vec<_> = ledger.received("run-a").unwrap().into_iter().map(|m| (m.turn, m.sender)).collect();
    let expected = [(first, "west"), (second, "south"), (second, "west"), (average, "west")];
    assert_eq!(keys, expected.map(|(turn, sender)| (turn, sender.to_owned())));
    ledger.stage_received(message("run-a", "west", first, "west")).unwrap();
    let other = ledger.stage_received(message("run-a", "west", first, "other")).unwrap_err();
    assert!(matches!(other, LedgerError::SecondMessage { turn, .. } if turn == first), "{other}");
    ledger.stage_received(message("run-a", "west", Turn::model(3), "a")).unwrap();
    assert!(
        ledger.stage_received(message("run-a", "west", Turn::model(3), "b")).is_err(),
        "staged counts too"
    );
    assert!(ledger.received("run-b").unwrap().is_empty());
}
