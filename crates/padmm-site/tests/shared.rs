//! The subcommands that `padmm-site` has besides its own, and those that it has not.

use crate::common;

use common::{json, ok, refused};

#[test]
fn a_site_accounts_for_its_noise_without_any_other_program() {
    let folder = tempfile::tempdir().unwrap();
    let answer = json(&ok(folder.path(), &["account", "--json", "--epsilon", "1"]));
    assert!((answer["mu"].as_f64().unwrap() - 0.3139).abs() < 5e-5, "{answer}");
    assert!(refused(folder.path(), &["account", "--epsilon", "-1"]).contains("--epsilon"));
}

#[test]
fn nothing_is_simulated_here() {
    let folder = tempfile::tempdir().unwrap();
    for absent in ["simulate", "reproduce", "theory", "algorithms", "report", "bench"] {
        assert!(refused(folder.path(), &[absent]).contains(absent));
    }
    let help = ok(folder.path(), &["--help"]);
    let listed = |name: &str| help.lines().any(|line| line.trim_start().starts_with(&format!("{name} ")));
    let own = [
        "site", "plan", "ledger", "doctor", "audit", "demo", "account", "advise", "data", "schema", "predict",
    ];
    for own in own.into_iter().chain(["evaluate", "own"]) {
        assert!(listed(own), "{own} is not in {help}");
    }
}
