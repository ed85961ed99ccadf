//! The command `padmm ledger`, run as a review board runs it.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use crate::common;

use common::{json, ok, refused};
use padmm_core::message::Turn;
use padmm_node::ledger::{Opening, PlannedRelease, RunStart, SiteLedger};
use padmm_privacy::{Budget, Delta, Epsilon, Event, Payload};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time. Each holds a ledger's lock and starts processes, and a process that another test starts has a copy of that
/// lock until it has become its own program: a ledger that was just closed could still look as if it were in use.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn planned(round: u32) -> PlannedRelease {
    let event = Event::Gaussian { sensitivity: 1.0, noise_std: 8.0 };
    PlannedRelease { round, event, n_features: 2, exponent: -20 }
}

fn start(run: &str) -> RunStart {
    RunStart {
        run: run.repeat(32),
        plan_name: "heart study".to_owned(),
        site: "north".to_owned(),
        rounds: 3,
        planned: (1..=3).map(planned).collect(),
        epsilon_exact: Epsilon::new(1.0).unwrap(),
        delta: Delta::new(1e-5).unwrap(),
        noise: "for tests".to_owned(),
    }
}

/// A ledger with one run of two releases, a forfeited round and a lost neighbour.
fn write_ledger(folder: &Path) -> SiteLedger {
    let cap = Budget::new(5.0, 1e-5).unwrap();
    let opening = Opening { data_set: "heart".to_owned(), fingerprint: "ab".repeat(32), cap };
    let mut ledger = SiteLedger::create(&folder.join("h.ledger"), opening).unwrap();
    let first = start("a1");
    ledger.start_run(&first).unwrap();
    for round in 1..=2 {
        ledger.reserve(&first.run, &planned(round)).unwrap();
        let payload = Payload::Grid { exponent: -20, values: vec![4, -7] };
        ledger.commit_release(&first.run, round, &payload, &|_| vec![0xc0, 0xff, 0xee]).unwrap();
    }
    ledger.forfeit(&first.run, &planned(3), "the solver did not converge").unwrap();
    ledger.lose_neighbour(&first.run, "west", Turn::model(3)).unwrap();
    ledger
}

#[test]
fn show_tells_a_review_board_what_was_spent() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    let mut ledger = write_ledger(folder.path());
    // While a run is going, too.
    let text = ok(folder.path(), &["ledger", "show", "h.ledger"]);
    for needle in [
        "\"heart\"",
        "ε = 5 at δ = 1e-5",
        "a1a1a1a1a1a1",
        "2 of 3",
        "west",
        "not finished",
        "round 3",
        "Everything that has left this site",
    ] {
        assert!(text.contains(needle), "{needle} is not in: {text}");
    }
    common::assert_promise(&text);
    // e^ε is shown at its value or above: rounded to the nearest it was below half the time.
    let factor = text.split("e^ε = ").nth(1).unwrap().split(',').next().unwrap();
    let (shown, truth) = (factor.parse::<f64>().unwrap(), ledger.epsilon_spent().value().exp());
    assert!(shown >= truth && shown <= truth * 1.001 + 1e-4, "{factor} for {truth}");
    let value = json(&ok(folder.path(), &["ledger", "show", "h.ledger", "--json"]));
    assert_eq!(value["epsilon_spent"].as_f64().unwrap(), ledger.epsilon_spent().value());
    assert_eq!((&value["runs"][0]["released"], &value["runs"][0]["bytes"]), (&2.into(), &6.into()));
    assert_eq!(value["runs"][0]["forfeited"][0], 3);
    ledger.finish_run(&start("a1").run).unwrap();
    assert!(!ok(folder.path(), &["ledger", "show", "h.ledger"]).contains("not finished"));
}

#[test]
fn verify_says_whether_the_ledger_is_as_it_was_written() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    drop(write_ledger(folder.path()));
    let args = ["ledger", "verify", "h.ledger"];
    let text = ok(folder.path(), &args);
    assert!(text.contains("as it was written: 6 entries") && text.lines().count() == 1, "{text}");
    let head = folder.path().join("h.ledger.head");
    std::fs::remove_file(&head).unwrap();
    assert!(refused(folder.path(), &args).contains("--restore-head"));
    ok(folder.path(), &["ledger", "verify", "h.ledger", "--restore-head"]);
    assert_eq!(json(&ok(folder.path(), &["ledger", "verify", "h.ledger", "--json"]))["entries"], 7);
    let file = folder.path().join("h.ledger");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(refused(folder.path(), &args).contains("h.ledger"));
    assert!(
        refused(folder.path(), &["ledger", "verify", "none.ledger"]).contains("no ledger at none.ledger")
    );
}

#[test]
fn export_writes_every_entry() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    drop(write_ledger(folder.path()));
    let table = ok(folder.path(), &["ledger", "export", "h.ledger", "--format", "csv"]);
    assert_eq!(table.lines().count(), 7);
    assert!(table.contains("c0ffee") && table.contains("run-started"), "{table}");
    let out = ["ledger", "export", "h.ledger", "--format", "json", "--out", "all.json"];
    assert!(ok(folder.path(), &out).contains("6 entries"));
    let value = json(&std::fs::read_to_string(folder.path().join("all.json")).unwrap());
    assert_eq!(value["entries"][2]["payload"], "c0ffee");
    assert_eq!(value["entries"][2]["hash"], value["entries"][3]["previous"]);
    assert!(refused(folder.path(), &out).contains("all.json"));
    ok(folder.path(), &[&out[..], &["--force"]].concat());
}

#[test]
fn cap_says_old_and_new_and_waits_for_the_run() {
    let (_alone, folder) = (alone(), tempfile::tempdir().unwrap());
    let ledger = write_ledger(folder.path());
    let args = ["ledger", "cap", "h.ledger", "--epsilon", "8"];
    let error = refused(folder.path(), &args);
    assert!(error.contains("another process uses the ledger h.ledger"), "{error}");
    drop(ledger);
    let text = ok(folder.path(), &args);
    assert!(text.contains("was ε = 5 at δ = 1e-5 and is now ε = 8 at δ = 1e-5"), "{text}");
    assert!(ok(folder.path(), &args).contains("stays"));
    let low = ["ledger", "cap", "h.ledger", "--epsilon", "0.01", "--delta", "1e-6"];
    assert!(ok(folder.path(), &low).contains("nothing more will be released"));
    for wrong in [["--epsilon", "0"], ["--epsilon", "nan"], ["--epsilon", "-1"]] {
        refused(folder.path(), &[&["ledger", "cap", "h.ledger"], &wrong[..]].concat());
    }
    assert!(
        refused(folder.path(), &["ledger", "cap", "h.ledger", "--epsilon", "1", "--delta", "1"])
            .contains("delta")
    );
}
