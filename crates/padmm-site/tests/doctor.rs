//! `padmm-site doctor`: what it finds, that it says what to do, and that nobody is disturbed by it.

use crate::common;
use crate::pair;

use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::table;
use common::{json, padmm};
use pair::{Pair, RUN};
use serde_json::Value;

/// The exit code, and every check by name: whether it is fine, and what is said with the advice.
fn doctor(at: &Path, home: &Path) -> (Option<i32>, Vec<(String, bool, String)>) {
    let output = padmm(at, &["doctor", "--home", &home.display().to_string(), "--json"]);
    let answer = json(&String::from_utf8(output.stdout).unwrap());
    let check = |check: &Value| {
        let text = |key: &str| check[key].as_str().unwrap().to_owned();
        let ok = check["ok"].as_bool().unwrap();
        assert_eq!(ok, text("advice").is_empty(), "whatever is wrong has advice: {check}");
        (text("name"), ok, format!("{} → {}", text("message"), text("advice")))
    };
    let checks: Vec<_> = answer["checks"].as_array().unwrap().iter().map(check).collect();
    assert_eq!(answer["ok"].as_bool().unwrap(), checks.iter().all(|c| c.1));
    assert_eq!(output.status.code(), Some(if checks.iter().all(|c| c.1) { 0 } else { 2 }));
    (output.status.code(), checks)
}

fn of<'a>(checks: &'a [(String, bool, String)], name: &str) -> (bool, &'a str) {
    let found = checks.iter().find(|c| c.0 == name).unwrap_or_else(|| panic!("no {name} in {checks:#?}"));
    (found.1, &found.2)
}

fn bad(checks: &[(String, bool, String)]) -> Vec<&str> {
    checks.iter().filter(|c| !c.1).map(|c| c.0.as_str()).collect()
}

#[test]
fn a_site_whose_neighbour_is_away_is_told_where_it_was_looked_for() {
    let pair = Pair::new();
    let (code, checks) = doctor(pair.at(), &pair.home(0));
    assert_eq!((code, bad(&checks)), (Some(2), vec!["neighbour south"]), "{checks:#?}");
    let (_, said) = of(&checks, "neighbour south");
    let address = padmm_node::identity::Home::open(&pair.home(1)).unwrap().card().addresses()[0].clone();
    assert!(
        said.contains(&format!("nothing answers at {address}; it has signed the plan and is offline")),
        "{said}"
    );
    assert!(said.contains("ask south whether its site runs"), "{said}");
    for good in
        ["home", "rights", "certificate", "disk", "ledger", "plan", "signatures", "port", "records", "budget"]
    {
        assert!(of(&checks, good).0, "{checks:#?}");
    }
    assert!(of(&checks, "records").1.contains("90 rows"), "{checks:#?}");
    let output = padmm(pair.at(), &["doctor", "--home", "north", "--run", RUN]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("FAIL  neighbour south") && text.contains("→ ask south"), "{text}");
    assert!(std::fs::read_dir(pair.home(0).join("ledgers")).unwrap().next().is_none(), "nothing was begun");
}

#[test]
fn what_is_wrong_with_a_home_is_named_with_what_to_do() {
    let pair = Pair::new();
    let at = pair.at();
    let (_, checks) = doctor(at, &at.join("nowhere"));
    assert!(of(&checks, "home").1.contains("site init"), "{checks:#?}");
    // A home that cannot be looked into is somebody's: nobody is told to make a new one. (As root nothing is forbidden, so a circle of links
    // stands for what cannot be read.)
    std::fs::create_dir(at.join("circle")).unwrap();
    std::os::unix::fs::symlink("site.toml", at.join("circle/site.toml")).unwrap();
    let (_, checks) = doctor(at, &at.join("circle"));
    let (is_fine, said) = of(&checks, "home");
    assert!(!is_fine && said.contains("circle/site.toml") && !said.contains("site init"), "{said}");

    let key = pair.home(0).join("identity.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (_, checks) = doctor(at, &pair.home(0));
    assert!(of(&checks, "home").1.contains("chmod 600"), "{checks:#?}");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::set_permissions(pair.home(0), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (_, checks) = doctor(at, &pair.home(0));
    assert!(of(&checks, "rights").1.contains("chmod 700"), "{checks:#?}");
}

#[test]
fn port_ledger_and_records_are_looked_at_and_neighbours_are_asked_all_the_same() {
    let pair = Pair::new();
    let home = pair.home(0);
    let listen = padmm_node::identity::Home::open(&home).unwrap().config().listen();
    let taken = UdpSocket::bind(listen).unwrap();
    std::fs::write(
        home.join("ledgers/records.ledger"),
        "not a ledger at all, though long enough to be read as one",
    )
    .unwrap();
    std::fs::write(home.join("records.csv"), table(91)).unwrap();
    let (_, checks) = doctor(pair.at(), &home);
    assert_eq!(bad(&checks), ["ledger", "port", "neighbour south", "records", "budget"], "{checks:#?}");
    assert!(of(&checks, "port").1.contains("another program"), "{checks:#?}");
    assert!(of(&checks, "ledger").1.contains("do not run with it"), "{checks:#?}");
    let (_, records) = of(&checks, "records");
    assert!(records.contains("91") && records.contains("90"), "{records}");
    drop(taken);
}

/// Beside a neighbour that runs, and beside the site itself: all is well, nothing is spent, and the run goes on as if nobody had asked.
#[test]
fn a_running_neighbour_answers_and_a_running_site_is_left_alone() {
    let pair = Pair::new();
    let mut south = pair.start(1, &[]);
    south.says("waiting for north");
    let (code, checks) = doctor(pair.at(), &pair.home(0));
    assert_eq!((code, bad(&checks)), (Some(0), vec![]), "{checks:#?}");
    let (_, said) = of(&checks, "neighbour south");
    assert!(said.contains("answers directly at 127.0.0.1:") && said.contains("same plan"), "{said}");
    assert!(of(&checks, "clock").0, "{checks:#?}");
    let (_, own) = doctor(pair.at(), &pair.home(1));
    assert!(of(&own, "port").1.contains("used by this site"), "{own:#?}");
    assert!(of(&own, "running").0 && !of(&own, "neighbour north").0, "{own:#?}");
    assert!(!south.log().contains("refused"), "{}", south.log());
    let ledger = padmm_node::ledger::SiteLedger::read(&pair.home(1).join("ledgers/records.ledger")).unwrap();
    assert!(ledger.state().runs().next().is_none(), "nothing is spent");
    let mut north = pair.start(0, &[]);
    north.finishes();
    south.finishes();
}

/// Of two sites with different plans, one is told.
#[test]
fn another_plan_is_noticed() {
    let (pair, other) = (Pair::new(), Pair::new());
    let south = other.start(1, &[]);
    south.says("waiting for north");
    // North knows south by the card of the other network, and has a plan that south does not run.
    let home = padmm_node::identity::Home::open(&pair.home(0)).unwrap();
    let card = padmm_node::identity::Home::open(&other.home(1)).unwrap().card().clone();
    home.cards().import(&card, true).unwrap();
    let (_, checks) = doctor(pair.at(), &pair.home(0));
    let said = checks.iter().find(|c| !c.1).unwrap();
    assert!(said.0 == "plan" && said.2.contains("south"), "{checks:#?}");
}
