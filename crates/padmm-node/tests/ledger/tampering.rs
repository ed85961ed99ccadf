//! Every way to change a ledger behind its back, and what it says then.

use super::*;
use std::fs;

#[test]
fn a_changed_byte_in_any_column_is_named() {
    for change in [
        "UPDATE entries SET kind = 'forfeited' WHERE seq = 3",
        "UPDATE entries SET kind = 'unheard-of' WHERE seq = 3",
        "UPDATE entries SET at = '2001-01-01T00:00:00Z' WHERE seq = 3",
        "UPDATE entries SET body = replace(body, '\"round\":1', '\"round\":3') WHERE seq = 3",
        "UPDATE entries SET body = 'nonsense' WHERE seq = 3",
        "UPDATE entries SET payload = CAST(replace(payload, '7', '8') AS BLOB) WHERE seq = 3",
        "UPDATE entries SET payload = NULL WHERE seq = 3",
        "UPDATE entries SET payload = x'' WHERE seq = 3",
        "UPDATE entries SET previous = zeroblob(32) WHERE seq = 3",
        "UPDATE entries SET previous = x'00' WHERE seq = 3",
        "UPDATE entries SET hash = zeroblob(32) WHERE seq = 3",
        "UPDATE entries SET hash = 'text' WHERE seq = 3",
    ] {
        let case = Case::filled();
        case.tamper(change);
        let error = case.refused();
        assert!(matches!(error, LedgerError::Changed { seq: 3, .. }), "{change}: {error}");
    }
}

#[test]
fn deleted_and_moved_entries_are_named() {
    let case = Case::filled();
    case.tamper("DELETE FROM entries WHERE seq = 8");
    assert!(matches!(case.refused(), LedgerError::Truncated { entries: 7, head: 8, .. }));
    let case = Case::filled();
    case.tamper("DELETE FROM entries WHERE seq > 2");
    assert!(matches!(case.refused(), LedgerError::Truncated { entries: 2, head: 8, .. }));
    let case = Case::filled();
    case.tamper("DELETE FROM entries WHERE seq = 3");
    assert!(matches!(case.refused(), LedgerError::Gap { seq: 3, .. }));
    let case = Case::filled();
    case.tamper("DELETE FROM entries WHERE seq = 1");
    assert!(matches!(case.refused(), LedgerError::Gap { seq: 1, .. }));
    let case = Case::filled();
    case.tamper("DELETE FROM entries");
    assert!(matches!(case.refused(), LedgerError::Truncated { entries: 0, .. }));
    let case = Case::filled();
    case.tamper("DELETE FROM entries WHERE seq = 3; UPDATE entries SET seq = seq - 1 WHERE seq > 3");
    assert!(matches!(
        case.refused(),
        LedgerError::Reordered { seq: 3, .. } | LedgerError::Changed { seq: 3, .. }
    ));
    let case = Case::filled();
    case.tamper(
        "UPDATE entries SET seq = 100 WHERE seq = 3; UPDATE entries SET seq = 3 WHERE seq = 4;
         UPDATE entries SET seq = 4 WHERE seq = 100",
    );
    assert!(matches!(case.refused(), LedgerError::Reordered { seq: 3, .. }));
}

/// Hashes as `chain.rs` describes them, written a second time: who tampers may know them too.
fn hash(seq: i64, kind: &str, at: &str, body: &str, payload: Option<&[u8]>, previous: &[u8]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let mut input = b"padmm ledger entry 1\0".to_vec();
    input.extend(seq.to_be_bytes());
    let mut fields: Vec<&[u8]> = vec![kind.as_bytes(), at.as_bytes(), body.as_bytes()];
    match payload {
        None => fields.push(b"none"),
        Some(bytes) => fields.extend([&b"some"[..], bytes]),
    }
    fields.push(previous);
    for field in fields {
        input.extend((field.len() as u64).to_be_bytes());
        input.extend(field);
    }
    Sha256::digest(&input).to_vec()
}

/// Appends an entry with a correct hash, and its head unless told otherwise.
fn forge(case: &Case, kind: &str, body: &str, payload: Option<&[u8]>) {
    case.tamper("");
    let connection = rusqlite::Connection::open(case.path()).unwrap();
    let last = "SELECT seq, hash FROM entries ORDER BY seq DESC LIMIT 1";
    let (seq, previous): (i64, Vec<u8>) =
        connection.query_row(last, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let at = "2030-01-01T00:00:00Z";
    let new = hash(seq + 1, kind, at, body, payload, &previous);
    let insert = "INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    connection.execute(insert, rusqlite::params![seq + 1, kind, at, body, payload, previous, new]).unwrap();
}

fn body_of(case: &Case, seq: i64) -> String {
    let connection = rusqlite::Connection::open(case.path()).unwrap();
    connection.query_row("SELECT body FROM entries WHERE seq = ?1", [seq], |row| row.get(0)).unwrap()
}

#[test]
fn entries_with_correct_hashes_must_make_sense_too() {
    let case = Case::filled();
    let body = body_of(&case, 3);
    let length: usize = serde_json::from_str::<Value>(&body).unwrap()["bytes"].as_u64().unwrap() as usize;
    let payload = vec![b' '; length];
    let cases: Vec<(&str, String, Option<&[u8]>, &str)> = vec![
        ("release", body.clone(), Some(&payload), "second payload"),
        ("release", body.replace("\"round\":1", "\"round\":3"), Some(&payload[1..]), "bytes left"),
        ("release", body.replace("\"round\":1", "\"round\":3"), None, "payload"),
        ("release", body.replace("\"round\":1", "\"round\":9"), Some(&payload), "round"),
        (
            "release",
            body.replace("\"round\":1", "\"round\":3").replace("north", "east"),
            Some(&payload),
            "site",
        ),
        ("release", body.replace("run-a", "run-x"), Some(&payload), "never started"),
        ("release", body.replace("run-a", "run-b"), Some(&payload), "finished"),
        ("run-finished", body_of(&case, 8), None, "finished"),
        ("run-started", body_of(&case, 2), None, "started before"),
        ("opened", body_of(&case, 1), None, "opened once"),
        ("unheard-of", "{}".to_owned(), None, "unheard-of"),
        ("data-changed", "{}".to_owned(), None, "fingerprint"),
        ("data-changed", "{\"fingerprint\":\"00\",\"mean\":1.5}".to_owned(), None, "mean"),
        (
            "cap-changed",
            r#"{"from":{"epsilon":1.0,"delta":1e-5},"to":{"epsilon":9.0,"delta":1e-5}}"#.to_owned(),
            None,
            "another cap",
        ),
    ];
    for (kind, body, payload, needle) in cases {
        let case = Case::filled();
        forge(&case, kind, &body, payload);
        let error = case.refused().to_string();
        assert!(error.contains(needle) && error.contains("entry 9"), "{needle} is not in: {error}");
    }
    // A charge that was made smaller, with hashes to match.
    let case = Case::filled();
    let mut cheaper: Value = serde_json::from_str(&body).unwrap();
    (cheaper["round"], cheaper["rho"]) = (json!(3), json!(1e-9));
    forge(&case, "release", &cheaper.to_string(), Some(&payload));
    assert!(case.refused().to_string().contains("charge"));
}

#[test]
fn a_chain_written_anew_is_noticed_by_its_head() {
    let case = Case::filled();
    case.tamper("DELETE FROM entries WHERE seq = 8");
    forge(&case, "data-changed", r#"{"fingerprint":"00"}"#, None);
    assert!(matches!(case.refused(), LedgerError::OtherHead { seq: 8, .. }));
}

#[test]
fn an_entry_put_in_from_elsewhere_is_named() {
    let case = Case::filled();
    case.tamper("DELETE FROM entries WHERE seq = 8");
    let connection = rusqlite::Connection::open(case.path()).unwrap();
    let (at, body) = ("2030-01-01T00:00:00Z", r#"{"fingerprint":"00"}"#);
    let new = hash(8, "data-changed", at, body, None, &[7; 32]);
    let insert = "INSERT INTO entries VALUES (8, 'data-changed', ?1, ?2, NULL, ?3, ?4)";
    connection.execute(insert, rusqlite::params![at, body, [7u8; 32], new]).unwrap();
    drop(connection);
    assert!(matches!(case.refused(), LedgerError::Detached { seq: 8, .. }));
}

#[test]
fn sqlite_itself_refuses_changes_deletions_and_a_second_charge() {
    let case = Case::filled();
    let connection = rusqlite::Connection::open(case.path()).unwrap();
    for (sql, needle) in [
        ("UPDATE entries SET body = '{}'", "never changed"),
        ("DELETE FROM entries", "never deleted"),
        (
            "INSERT INTO entries SELECT 9, kind, at, body, payload, previous, hash FROM entries WHERE seq = 3",
            "UNIQUE",
        ),
    ] {
        let error = connection.execute_batch(sql).unwrap_err().to_string();
        assert!(error.contains(needle), "{error}");
    }
    drop(connection);
    verify(&case.path()).unwrap();
}

#[test]
fn a_cut_file_is_noticed_wherever_it_is_cut() {
    let length = fs::read(Case::filled().path()).unwrap().len();
    for left in [0, 10, 100, 1000, 4096, 5000, length / 2, length - 4096, length - 1] {
        let case = Case::filled();
        let whole = fs::read(case.path()).unwrap();
        fs::write(case.path(), &whole[..left]).unwrap();
        let error = case.refused().to_string();
        let says = ["cut", "truncated", "not a ledger"].iter().any(|word| error.contains(word));
        assert!(says, "{left} of {length} bytes: {error}");
    }
}

/// A copy of all files while the ledger is open, as a crash leaves them: the entries are in the write-ahead log.
fn crashed() -> Case {
    let (case, copy) = (Case::empty(), Case::empty());
    let mut ledger = SiteLedger::create(&case.path(), opening(10.0)).unwrap();
    ledger.start_run(&run_start("run-a")).unwrap();
    release(&mut ledger, "run-a", 1, 7).unwrap();
    for ending in ["", "-wal", ".head"] {
        fs::copy(case.beside(ending), copy.beside(ending)).unwrap();
    }
    copy
}

#[test]
fn a_crash_loses_nothing_and_a_removed_or_cut_log_is_noticed() {
    assert_eq!(verify(&crashed().path()).unwrap().entries, 3);
    assert_eq!(reopened(&crashed().path()).head().seq, 3);
    let case = crashed();
    fs::remove_file(case.beside("-wal")).unwrap();
    assert!(matches!(case.refused(), LedgerError::Truncated { entries: 1, head: 3, .. }));
    let case = crashed();
    let log = fs::read(case.beside("-wal")).unwrap();
    fs::write(case.beside("-wal"), &log[..log.len() - 1]).unwrap();
    assert!(matches!(case.refused(), LedgerError::Truncated { entries: 2, head: 3, .. }));
}

#[test]
fn an_older_copy_with_the_newer_head_is_noticed_and_a_lagging_head_is_not_an_error() {
    let case = Case::filled();
    let (file, head) = (fs::read(case.path()).unwrap(), fs::read(case.beside(".head")).unwrap());
    let mut ledger = reopened(&case.path());
    release(&mut ledger, "run-a", 3, 1).unwrap();
    drop(ledger);
    // After a power cut the head may be an earlier one.
    let newer = fs::read(case.beside(".head")).unwrap();
    fs::write(case.beside(".head"), &head).unwrap();
    assert_eq!(verify(&case.path()).unwrap().entries, 9);
    drop(reopened(&case.path()));
    assert_eq!(fs::read(case.beside(".head")).unwrap(), newer, "opening brings the head up to date");
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(case.beside(ending));
    }
    fs::write(case.path(), &file).unwrap();
    assert!(matches!(case.refused(), LedgerError::Truncated { entries: 8, head: 9, .. }));
}

#[test]
fn a_missing_or_foreign_head_is_refused_until_someone_vouches() {
    let case = Case::filled();
    fs::remove_file(case.beside(".head")).unwrap();
    let error = case.refused();
    assert!(matches!(error, LedgerError::HeadMissing { entries: 8, .. }), "{error}");
    assert!(error.to_string().contains("--restore-head"), "{error}");
    drop(SiteLedger::restore_head(&case.path()).unwrap());
    let view = SiteLedger::read(&case.path()).unwrap();
    assert_eq!(view.entries().last().unwrap().entry, Entry::HeadRestored(HeadRestored { entries: 8 }));
    drop(SiteLedger::restore_head(&case.path()).unwrap());
    assert_eq!(verify(&case.path()).unwrap().entries, 9, "a head that is there is not restored");
    for text in ["", "padmm ledger head 1\n", "padmm ledger head 1\n3\nabc\n"] {
        fs::write(case.beside(".head"), text).unwrap();
        assert!(matches!(case.refused(), LedgerError::HeadUnreadable { .. }));
        assert!(SiteLedger::restore_head(&case.path()).is_err());
    }
    fs::write(case.beside(".head"), [0xff; 100]).unwrap();
    assert!(matches!(case.refused(), LedgerError::HeadUnreadable { .. }));
    let case = Case::filled();
    case.tamper("DELETE FROM entries WHERE seq = 8");
    assert!(SiteLedger::restore_head(&case.path()).is_err(), "a head that disagrees is believed");
}
