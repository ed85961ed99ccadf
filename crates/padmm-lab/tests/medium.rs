//! A ledger on a real file system that is full, or read-only, in a mount namespace of the test's own; and a clock that jumps.

use crate::common;

use std::process::{Command, Stdio};

use common::{Network, Running, Shape, command};
use padmm_node::ledger::SiteLedger;

const SHAPE: Shape = Shape::TRIANGLE;

/// Runs a site three times on a small file system of its own: with too little room, read-only, and with room. What is then in the
/// ledgers' folder is left in the real one.
const SCRIPT: &str = r#"
set -e
ledgers=$1 kept=$2; shift 2
mount -t tmpfs -o size=128k tmpfs "$ledgers"
set +e
"$@"; echo "on the full disk: exit $?" >&2
mount -o remount,ro "$ledgers" || exit 90
"$@"; echo "on the read-only disk: exit $?" >&2
mount -o remount,rw,size=16m "$ledgers" || exit 91
"$@"; code=$?
cp -a "$ledgers/." "$kept" && umount "$ledgers" && cp -a "$kept/." "$ledgers" || exit 92
exit $code
"#;

/// `unshare` with flags that this machine allows; a machine that allows none cannot have the test.
fn namespace() -> Option<Command> {
    for flags in ["-m", "-Urm"] {
        let allowed = Command::new("unshare").args([flags, "true"]).stderr(Stdio::null()).status();
        if allowed.is_ok_and(|status| status.success()) {
            let mut command = Command::new("unshare");
            command.arg(flags);
            return Some(command);
        }
    }
    eprintln!("skipped: this machine does not let a test mount anything, not even for itself");
    None
}

#[test]
fn a_full_and_a_read_only_disk_stop_a_site_with_clear_words_and_it_goes_on() {
    let Some(mut inside) = namespace() else { return };
    let network = Network::make(SHAPE);
    let kept = network.folder().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let site = command(&network, 0, &[]);
    inside
        .args(["sh", "-c", SCRIPT, "sh"])
        .arg(network.sites[0].home.join("ledgers"))
        .arg(&kept)
        .arg(site.get_program())
        .args(site.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut running = Running::new(&network);
    running.start(1);
    running.start(2);
    running.start_command(0, inside);
    let status = running.wait(0);
    let said = running.said(0);
    assert_eq!(status.code(), Some(0), "{said}");
    let (full, rest) = said.split_once("on the full disk: exit 2").expect(&said);
    let (read_only, _) = rest.split_once("on the read-only disk: exit 2").expect(&said);
    for (said, words) in [
        (full, &["records.ledger", "full", "nothing was released", "start again"][..]),
        (read_only, &["records.ledger", "can only be read", "start again"]),
    ] {
        words.iter().for_each(|word| assert!(said.contains(word), "{word:?} is not in: {said}"));
    }
    assert!(full.contains(": round 1 of"), "the disk was full before the first round: {full}");
    running.finish();
    assert_eq!(network.outcome(&[]), Network::undisturbed(SHAPE));
}

#[test]
fn a_clock_that_jumps_changes_dates_and_nothing_else() {
    let network = Network::make(SHAPE);
    let mut running = Running::new(&network);
    running.start(0);
    running.start(2);
    // Half a day back, then a day and a half forward, with a crash in between.
    for (clock, kill) in [("0", "send-after:3"), ("-43200", "send-between:3"), ("86400", "received:3")] {
        running.start_with(1, &["--test-clock", clock, "--test-kill", kill]);
        running.wait(1);
        assert!(running.said(1).contains("killed at the fault point"), "{}", running.said(1));
    }
    running.start_with(1, &["--test-clock", "-43200"]);
    running.finish();
    assert_eq!(network.outcome(&[]), Network::undisturbed(SHAPE));
    let view = SiteLedger::read(&network.sites[1].ledger).unwrap();
    let dates: Vec<&str> = view.entries().iter().map(|entry| entry.at.as_str()).collect();
    assert!(!dates.is_sorted(), "the clock did jump: {dates:?}");
}

#[test]
fn a_clock_beyond_a_certificates_end_is_named() {
    let network = Network::make(SHAPE);
    let years = (4 * 365 * 86_400).to_string();
    for (clock, words) in [(years.as_str(), "expired on"), ("-100000000", "valid from")] {
        let out = command(&network, 0, &["--test-clock", clock]).output().unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("certificate") && said.contains(words), "{said}");
    }
}
