//! Files: what is there, who may use them, and what happens when they cannot be written.

use super::*;
use std::fs;

#[test]
fn nothing_is_overwritten_and_a_lost_ledger_is_not_made_anew() {
    let case = Case::filled();
    let error = SiteLedger::create(&case.path(), opening(1.0)).unwrap_err();
    assert!(matches!(error, LedgerError::AlreadyExists { .. }), "{error}");
    fs::remove_file(case.path()).unwrap();
    let error = SiteLedger::create(&case.path(), opening(1.0)).unwrap_err();
    assert!(matches!(error, LedgerError::OrphanHead { entries: 8, .. }), "{error}");
    for missing in [SiteLedger::open(&case.path()).unwrap_err(), verify(&case.path()).unwrap_err()] {
        assert!(matches!(missing, LedgerError::Missing { .. }), "{missing}");
    }
}

#[test]
fn a_creation_that_was_cut_off_can_be_done_again() {
    let case = Case::empty();
    drop(SiteLedger::create(&case.path(), opening(1.0)).unwrap());
    fs::rename(case.path(), case.beside(".new")).unwrap();
    drop(SiteLedger::create(&case.path(), opening(2.0)).unwrap());
    assert_eq!(verify(&case.path()).unwrap().entries, 1);
    assert!(!case.beside(".new").exists() && !case.beside(".head.new").exists());
}

#[cfg(unix)]
#[test]
fn files_are_for_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let case = Case::empty();
    let ledger = SiteLedger::create(&case.path(), opening(1.0)).unwrap();
    for ending in ["", ".head", ".lock", "-wal"] {
        let mode = fs::metadata(case.beside(ending)).map(|m| m.permissions().mode() & 0o777);
        assert!(mode.as_ref().map_or(ending == "-wal", |mode| *mode == 0o600), "{ending}: {mode:?}");
    }
    drop(ledger);
    fs::set_permissions(case.path(), fs::Permissions::from_mode(0o660)).unwrap();
    let error = SiteLedger::open(&case.path()).unwrap_err();
    assert!(matches!(error, LedgerError::OthersMayWrite { mode: 0o660, .. }), "{error}");
    assert!(error.to_string().contains("660"), "{error}");
    verify(&case.path()).unwrap();
}

#[test]
fn one_writer_at_a_time_and_any_number_of_readers() {
    let case = Case::empty();
    let mut ledger = SiteLedger::create(&case.path(), opening(10.0)).unwrap();
    for error in [
        SiteLedger::open(&case.path()).unwrap_err(),
        SiteLedger::create(&case.path(), opening(1.0)).unwrap_err(),
        SiteLedger::restore_head(&case.path()).unwrap_err(),
    ] {
        assert!(matches!(error, LedgerError::InUse { .. }), "{error}");
        assert!(error.to_string().contains("another process uses the ledger"), "{error}");
    }
    ledger.start_run(&run_start("run-a")).unwrap();
    for round in 1..=ROUNDS {
        release(&mut ledger, "run-a", round, 1).unwrap();
        assert_eq!(SiteLedger::read(&case.path()).unwrap().head(), ledger.head());
    }
    verify(&case.path()).unwrap();
    drop(ledger);
    reopened(&case.path());
}

#[test]
fn what_is_not_a_ledger_is_called_that() {
    let case = Case::empty();
    fs::write(case.path(), "seq,kind\n1,opened\n".repeat(100)).unwrap();
    assert!(matches!(case.refused(), LedgerError::NotALedger { .. }));
    let case = Case::empty();
    fs::write(case.path(), "").unwrap();
    assert!(matches!(case.refused(), LedgerError::NotALedger { .. }));
    let case = Case::empty();
    case.tamper("CREATE TABLE patients(name TEXT)");
    assert!(matches!(case.refused(), LedgerError::NotALedger { .. }));
    let case = Case::empty();
    fs::create_dir(case.path()).unwrap();
    assert!(matches!(case.refused(), LedgerError::NotALedger { .. }));
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let case = Case::empty();
    let nowhere = case.beside("/none/x.ledger");
    let error = SiteLedger::create(&nowhere, opening(1.0)).unwrap_err();
    assert!(matches!(error, LedgerError::NoAccess { .. }), "{error}");
    assert!(error.to_string().contains("x.ledger"), "{error}");
}

fn announced(run: &str, sender: &str, entry: u64, text: &str) -> Announced {
    let (run, sender, bytes) = (run.to_owned(), sender.to_owned(), text.as_bytes().to_vec());
    Announced { run, sender, ledger: Digest([9; 32]), entry, bytes }
}

#[test]
fn announcements_are_kept_the_newest_of_each_run_and_survive_a_restart() {
    let case = Case::filled();
    let mut ledger = reopened(&case.path());
    let head = ledger.head();
    ledger
        .keep_announced(&[announced("run-a", "south", 4, "one"), announced("run-a", "west", 5, "two")])
        .unwrap();
    ledger.keep_announced(&[announced("run-b", "south", 6, "three")]).unwrap();
    ledger.keep_announced(&[announced("run-a", "south", 8, "four")]).unwrap();
    drop(ledger);
    let expected = [announced("run-a", "south", 8, "four"), announced("run-b", "south", 6, "three")];
    assert_eq!(SiteLedger::announced_in(&case.path(), "south").unwrap(), expected);
    let ledger = reopened(&case.path());
    assert_eq!(ledger.announced_by("south").unwrap(), expected);
    assert_eq!(ledger.announced_by("west").unwrap(), [announced("run-a", "west", 5, "two")]);
    assert_eq!(ledger.announced_by("nobody").unwrap(), []);
    // They are no entries.
    assert_eq!(ledger.head(), head);
}

/// A file of format 1 has no table for announcements, and no id in its first entry.
#[test]
fn a_ledger_of_an_earlier_format_is_read_and_continued() {
    let case = Case::filled();
    case.tamper("DROP TABLE announced; PRAGMA user_version = 1");
    assert_eq!(SiteLedger::announced_in(&case.path(), "south").unwrap(), []);
    let mut ledger = reopened(&case.path());
    assert_eq!(ledger.announced_by("south").unwrap(), []);
    ledger.keep_announced(&[announced("run-a", "south", 4, "one")]).unwrap();
    release(&mut ledger, "run-a", 3, 1).unwrap();
    let first = r#"{"format":1,"data_set":"heart","fingerprint":"ab","cap":{"epsilon":1.0,"delta":0.00001},"program":"padmm 0.1.0"}"#;
    let opened: Opened = serde_json::from_str(first).unwrap();
    assert_eq!(opened.id, "");
    assert_eq!(serde_json::to_string(&opened).unwrap(), first);
}

/// Two ledgers that are made alike are two; a copy is the same one, whatever became of it.
#[test]
fn a_ledger_is_known_by_its_first_entry() {
    let (case, other) = (Case::filled(), Case::filled());
    let genesis = SiteLedger::read(&case.path()).unwrap().state().genesis();
    assert_ne!(SiteLedger::genesis_at(&other.path()), Some(genesis));
    let copy = case.beside("-copy");
    fs::copy(case.path(), &copy).unwrap();
    release(&mut reopened(&case.path()), "run-a", 3, 1).unwrap();
    // Without a head file the copy is not opened, and still known.
    assert!(matches!(SiteLedger::read(&copy), Err(LedgerError::HeadMissing { .. })));
    assert_eq!(SiteLedger::genesis_at(&copy), Some(genesis));
    assert_eq!(SiteLedger::genesis_at(&case.path()), Some(genesis));
    assert_eq!(SiteLedger::genesis_at(&case.beside(".head")), None);
}

#[test]
fn a_newer_format_is_refused() {
    let case = Case::filled();
    case.tamper("PRAGMA user_version = 3");
    let error = case.refused();
    assert!(matches!(error, LedgerError::NewerFormat { found: 3, known: 2, .. }), "{error}");
    assert!(error.to_string().contains("newer program"), "{error}");
}

#[test]
fn a_full_disk_releases_nothing_and_with_more_room_it_goes_on() {
    let case = Case::filled();
    let mut ledger = reopened(&case.path());
    ledger.limit_pages(1).unwrap();
    ledger.stage_received(message("run-a", "south", Turn::model(3), &"x".repeat(100_000))).unwrap();
    let error = release(&mut ledger, "run-a", 3, 1).unwrap_err();
    assert!(matches!(error, LedgerError::Full { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("heart.ledger is full: nothing was released; make room and start again"), "{text}");
    let stopped = ledger.commit_received().unwrap_err();
    assert!(matches!(stopped, LedgerError::Stopped { .. }), "{stopped}");
    assert_eq!(ledger.release_bytes("run-a", 3).unwrap(), None);
    drop(ledger);
    let mut ledger = reopened(&case.path());
    assert_eq!((ledger.head().seq, ledger.received("run-a").unwrap().len()), (8, 1));
    release(&mut ledger, "run-a", 3, 2).unwrap();
    verify(&case.path()).unwrap();
}
