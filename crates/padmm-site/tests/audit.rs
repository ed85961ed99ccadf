//! `padmm audit`: the attack on the shipped command, as continuous integration runs it.

use crate::common;

use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;

use common::{json, padmm, refused};
use serde_json::Value;

/// One audit of 10,000 tests for all tests of this file, with its page.
fn audited() -> &'static (Output, Value, tempfile::TempDir) {
    static AUDIT: OnceLock<(Output, Value, tempfile::TempDir)> = OnceLock::new();
    AUDIT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let output = padmm(
            folder.path(),
            &["audit", "--tests", "10000", "--confidence", "0.999999", "--json", "--out", "page"],
        );
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(!text.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        (output, json(&text), folder)
    })
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} is a number: {value}"))
}

/// The bounds hold with 99.9999 %, so this fails by chance once in a million runs, and for a reason otherwise.
#[test]
fn the_attack_proves_no_more_than_is_claimed_and_not_much_less() {
    let (_, answer, _) = audited();
    let (claimed, bound) = (number(answer, "claimed_epsilon"), number(answer, "lower_bound_epsilon"));
    assert_eq!((claimed, number(answer, "delta")), (1.0, 1e-4));
    assert!(bound <= claimed && number(answer, "lower_bound_direct") <= claimed, "{answer}");
    // Mean 0.62, standard deviation 0.07 at this number of tests and this confidence.
    assert!(bound > 0.25, "the canary is not tight: {answer}");
    assert!((number(answer, "mu_measured") - number(answer, "mu_claimed")).abs() < 0.12, "{answer}");
    assert_eq!((number(answer, "tests"), number(answer, "confidence")), (10_000.0, 0.999999));
    assert_eq!(answer["checks"]["whiteness"], true, "{answer}");
    assert_eq!(answer["checks"]["one_payload"], true, "{answer}");
}

#[test]
fn nothing_around_the_gate_depends_on_one_record() {
    let (output, answer, _) = audited();
    assert_eq!(answer["checks"]["stopping"], true, "{}", answer["findings"]);
    assert_eq!(answer["checks"]["refusals"], true, "{}", answer["findings"]);
    assert_eq!((answer["passed"].as_bool(), output.status.code()), (Some(true), Some(0)), "{answer}");
}

#[test]
fn the_page_stands_alone_and_says_what_was_found() {
    let (_, answer, folder) = audited();
    let page = std::fs::read_to_string(folder.path().join("page/audit.html")).unwrap();
    let outcome = if answer["passed"] == true { "Audit: passed" } else { "Audit: failed" };
    for needle in [outcome, "limit of the claim", "one payload", "--seed 1", "evidence and no proof"] {
        assert!(page.contains(needle), "{needle}");
    }
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"), "the page needs no network");
    let picture = std::fs::read_to_string(folder.path().join("page/audit.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("limit of the claim"), "{picture}");
}

#[test]
fn site_processes_are_attacked_by_what_their_ledgers_hold() {
    for algorithm in ["p-admm", "consensus-newton"] {
        let folder = tempfile::tempdir().unwrap();
        let settings = "--tests 800 --epsilon 5 --confidence 0.999999 --json --algorithm";
        let arguments: Vec<&str> =
            ["audit", "--sites"].into_iter().chain(settings.split(' ')).chain([algorithm]).collect();
        let output = padmm(folder.path(), &arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer = json(&text);
        assert_eq!((&answer["on_sites"], number(&answer, "tests")), (&Value::Bool(true), 800.0));
        assert!(number(&answer, "lower_bound_epsilon") <= 5.0, "{answer}");
        // 800 tests measure μ = 1.2564 to within 0.09 (one standard deviation).
        assert!((number(&answer, "mu_measured") - 1.2564).abs() < 0.5, "{answer}");
        assert_eq!(answer["checks"]["whiteness"], true, "{answer}");
        assert_eq!(answer["checks"]["one_payload"], true, "{answer}");
    }
}

#[test]
fn what_cannot_be_audited_is_refused_with_the_way_out() {
    let at = Path::new(".");
    let nothing_promised = refused(at, &["audit", "--algorithm", "dvp"]);
    assert!(
        nothing_promised.contains("p-admm, consensus-newton, private-gradient, linearized, dp-admm, token"),
        "{nothing_promised}"
    );
    assert!(refused(at, &["audit", "--algorithm", "x"]).contains("p-admm"));
    assert!(refused(at, &["audit", "--confidence", "1"]).contains("between 0 and 1"));
    assert!(refused(at, &["audit", "--tests", "5"]).contains("at least 200"));
    assert!(refused(at, &["audit", "--epsilon", "0"]).contains("--epsilon"));
    assert!(refused(at, &["audit", "--rounds", "0"]).contains("--rounds"));
    let newton = |flag, value| refused(at, &["audit", "--algorithm", "consensus-newton", flag, value]);
    assert!(newton("--rounds", "1").contains("at least 2"));
    assert!(newton("--epsilon", "20").contains("at most 10"));
}
