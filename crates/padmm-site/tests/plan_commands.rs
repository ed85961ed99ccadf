//! `padmm plan`, run as a consortium runs it: three sites, each with its own file.

use crate::common;

use std::path::Path;

use common::{SCHEMA, json, ok, padmm, refused, table};
use padmm_node::contract::{Acceptance, Contract};
use padmm_node::identity::Home;
use padmm_node::ledger::{Opening, PlannedRelease, RunStart, SiteLedger};
use padmm_node::site::fingerprint;
use padmm_privacy::{Budget, Delta, Epsilon, Event};

const SITES: [&str; 3] = ["north", "south", "west"];

/// Three homes with their data, and the plan's schema.
fn study(at: &Path) {
    std::fs::write(at.join("s.toml"), SCHEMA).unwrap();
    let all = table(600);
    std::fs::create_dir(at.join("cards")).unwrap();
    for site in SITES {
        let own = |line: &&str| line.contains(site) || line.starts_with("age");
        let text: String = all.lines().filter(own).map(|line| format!("{line}\n")).collect();
        std::fs::write(at.join(format!("{site}.csv")), text).unwrap();
        let data = format!("{site}.csv");
        let cap = ["--cap-epsilon", "6", "--cap-delta", "1e-3"];
        ok(at, &[&["site", "init", "--home", site, "--name", site, "--data", &data], &cap[..]].concat());
        std::fs::copy(at.join(site).join("card.toml"), at.join(format!("cards/{site}.toml"))).unwrap();
    }
}

fn new_plan(at: &Path, records: usize, out: &str, more: &[&str]) -> String {
    let cards: Vec<String> = SITES.iter().map(|site| format!("cards/{site}.toml:{records}")).collect();
    let mut args =
        vec!["plan", "new", "--name", "trial", "--schema", "s.toml", "--graph", "path", "--out", out];
    cards.iter().for_each(|card| args.extend(["--card", card]));
    args.extend(more);
    ok(at, &args)
}

#[test]
fn a_new_plan_has_what_the_rule_picks_unless_somebody_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at);
    let said = new_plan(at, 200, "plan.toml", &[]);
    assert!(said.contains("Picked from public facts: consensus Newton"), "{said}");
    let settings = |file: &str| Contract::read(&at.join(file)).unwrap().plan().settings().clone();
    let picked = settings("plan.toml");
    assert_eq!((picked.algorithm.name(), picked.penalty), ("consensus-newton", None));
    let checked = ok(at, &["plan", "check", "plan.toml"]);
    assert!(checked.contains("consensus Newton") && !checked.contains("penalty"), "{checked}");
    let answer = json(&new_plan(at, 200, "named.toml", &["--algorithm", "linearized", "--json"]));
    assert_eq!((&answer["algorithm"], &answer["rounds"]), (&"linearized".into(), &50.into()));
    let answer = json(&new_plan(at, 200, "penalty.toml", &["--penalty", "0.5", "--json"]));
    assert_eq!((&answer["algorithm"], &answer["penalty"]), (&"p-admm".into(), &0.5.into()));
    assert!(answer["reasons"][1].as_str().unwrap().contains("`penalty` that was given"), "{answer}");
    let both = ["--card", "cards/north.toml:200", "--card", "cards/south.toml:200", "--rounds", "1"];
    let new = ["plan", "new", "--name", "trial", "--schema", "s.toml", "--out", "no.toml"];
    let too_few = refused(at, &[&new[..], &both].concat());
    assert!(too_few.contains("the first learns the metric"), "{too_few}");
}

#[test]
fn a_plan_is_made_checked_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at);
    let said =
        new_plan(at, 200, "plan.toml", &["--algorithm", "p-admm", "--rounds", "20", "--silence", "leave:60"]);
    let contract = Contract::read(&at.join("plan.toml")).unwrap();
    assert!(said.contains(&contract.hash().to_string()), "{said}");
    assert!(contract.plan().settings().penalty.is_some());

    let answer = json(&ok(at, &["plan", "check", "plan.toml", "--cards", "cards", "--json"]));
    assert_eq!(answer["hash"], contract.hash().to_string());
    let south = &answer["sites"][1];
    assert_eq!(south["neighbours"], serde_json::json!(["north", "west"]));
    assert_eq!(south["epsilon_curve"].as_array().unwrap().len(), 20);
    assert!(south["epsilon_exact"].as_f64().unwrap() <= 5.0);
    assert!(south["noise_std_first"].as_f64() > south["noise_std_last"].as_f64());
    // The three stand in a row.
    assert_eq!(answer["averaging_turns"], 2);
    // Twenty rounds, and three sites' averages, to two neighbours.
    assert_eq!(south["messages_at_most"], 2 * 23);
    assert_eq!(south["bytes_at_most"], 2 * 23 * (8 * 6 + 180));
    assert_eq!(answer["warnings"], serde_json::json!([]));
    let outlook = &answer["outlook"];
    assert_eq!(outlook["expected"]["algorithm"], "p-admm");
    assert!(outlook["expected"]["auc"].as_f64().unwrap() < outlook["pooled_auc"].as_f64().unwrap());
    let advice = json(&ok(at, &["advise", "--plan", "plan.toml", "--auc", "0.75", "--json"]));
    assert_eq!(advice["sites"][1]["site"], "south");
    assert_eq!(advice["sites"][1]["records"], south["records"]);
    let one = ok(at, &["plan", "check", "plan.toml", "--site", "west"]);
    assert!(one.contains("data protection officer") && one.contains("silent for 60 s"), "{one}");
    common::assert_promise(&one);
    assert!(refused(at, &["plan", "check", "plan.toml", "--site", "east"]).contains("north, south, west"));

    new_plan(
        at,
        50,
        "few.toml",
        &["--algorithm", "p-admm", "--rounds", "20", "--silence", "leave:60", "--delta", "0.05"],
    );
    let warned = ok(at, &["plan", "check", "few.toml"]);
    assert!(warned.contains("only 50 records") && warned.contains("1/50"), "{warned}");
    assert!(warned.contains("Expected: the joint model is not expected to be"), "{warned}");
    let differences = ok(at, &["plan", "diff", "plan.toml", "few.toml"]);
    assert!(differences.contains("site.north.records: 200 here, 50 there"), "{differences}");
    assert!(ok(at, &["plan", "diff", "plan.toml", "plan.toml"]).contains("the same"));
    assert_eq!(json(&ok(at, &["plan", "diff", "plan.toml", "few.toml", "--json"]))["same"], false);
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at);
    let base = ["plan", "new", "--name", "trial", "--schema", "s.toml", "--out", "plan.toml"];
    let both = ["--card", "cards/north.toml:200", "--card", "cards/south.toml:200"];
    for (more, says) in [
        (
            vec!["--algorithm", "dvp"],
            "simulation only: use p-admm or consensus-newton or private-gradient or linearized",
        ),
        (
            vec!["--algorithm", "dp-admm"],
            "simulation only: use p-admm or consensus-newton or private-gradient or linearized",
        ),
        (
            vec!["--algorithm", "token"],
            "simulation only: use p-admm or consensus-newton or private-gradient or linearized",
        ),
        (vec!["--silence", "leave:4"], "at least 5"),
        (vec!["--silence", "hope"], "leave:SECONDS"),
        (vec!["--graph", "edges:north-nowhere"], "nowhere"),
        (vec!["--card", "cards/west.toml"], "north.toml:303"),
        (vec!["--card", "cards/west.toml:0"], "0 records"),
        (vec!["--card", "cards/north.toml:5"], "must differ"),
        (vec!["--epsilon", "-1"], "--epsilon"),
        (vec!["--ca", "s.toml"], "not the certificate of an authority"),
    ] {
        let text = refused(at, &[&base[..], &both[..], &more[..]].concat());
        assert!(text.contains(says), "{more:?}: {text}");
        assert!(!at.join("plan.toml").exists());
    }
    let help = ok(at, &["plan", "new", "--help"]);
    assert!(
        help.contains("private-gradient") && help.contains("auto") && !help.contains("dp-admm"),
        "{help}"
    );
    let alone = refused(at, &[&base[..], &both[..2]].concat());
    assert!(alone.contains("at least two"), "{alone}");
    ok(at, &[&base[..], &both[..]].concat());
    assert!(refused(at, &[&base[..], &both[..]].concat()).contains("--force"));
}

#[test]
fn a_site_accepts_what_fits_its_data_cap_and_cards() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at);
    new_plan(at, 200, "plan.toml", &[]);
    let accept = ["plan", "accept", "plan.toml", "--home", "north"];
    let no_cards = refused(at, &[&accept[..], &["--yes"]].concat());
    assert!(no_cards.contains("no card of south"), "{no_cards}");
    let accept = [&accept[..], &["--cards", "cards"]].concat();
    let asked = refused(at, &accept);
    assert!(asked.contains("--yes"), "{asked}");
    assert!(!at.join("north/runs/trial").exists() && !at.join("north/cards/south.toml").exists());
    let said = ok(at, &[&accept[..], &["--yes"]].concat());
    assert!(said.contains("It costs ε") && said.contains("north.accept"), "{said}");
    let contract = Contract::read(&at.join("north/runs/trial/plan.toml")).unwrap();
    let word = Acceptance::read(&at.join("north/runs/trial/north.accept")).unwrap();
    let home = Home::open(&at.join("north")).unwrap();
    word.verify(&contract, home.card().identity()).unwrap();
    assert_eq!(home.cards().all().unwrap().len(), 2);
    // Twice is no harm, and now the home has the cards.
    ok(at, &["plan", "accept", "plan.toml", "--home", "north", "--yes"]);

    new_plan(at, 200, "other.toml", &["--rounds", "9"]);
    let taken = refused(at, &["plan", "accept", "other.toml", "--home", "north", "--yes"]);
    assert!(taken.contains("another plan named trial"), "{taken}");
    let accept_as_south =
        |plan: &str| refused(at, &["plan", "accept", plan, "--home", "south", "--cards", "cards", "--yes"]);
    new_plan(at, 201, "count.toml", &[]);
    let count = accept_as_south("count.toml");
    assert!(count.contains("has 200 rows") && count.contains("the plan says 201"), "{count}");
    new_plan(at, 200, "dear.toml", &["--epsilon", "20"]);
    let dear = accept_as_south("dear.toml");
    assert!(dear.contains("the cap") && dear.contains("allows ε = 6"), "{dear}");
    assert!(!at.join("south/runs/trial").exists() && !at.join("south/cards/north.toml").exists());

    // Another identity under a name of the plan, for the others and for the site itself.
    ok(at, &["site", "rotate", "--home", "west", "--identity"]);
    let own = refused(at, &["plan", "accept", "plan.toml", "--home", "west", "--cards", "cards", "--yes"]);
    assert!(own.contains("another identity"), "{own}");
    std::fs::copy(at.join("west/card.toml"), at.join("cards/west.toml")).unwrap();
    let other = accept_as_south("plan.toml");
    assert!(other.contains("the plan names west"), "{other}");
    std::fs::write(at.join("south.csv"), "age,dose,blood,ill\n40,1,A,yes\n").unwrap();
    std::fs::copy(at.join("north/cards/west.toml"), at.join("cards/west.toml")).unwrap();
    let data = accept_as_south("plan.toml");
    assert!(data.contains("the file lacks `hospital`"), "{data}");
}

#[test]
fn what_earlier_runs_spent_counts_before_a_plan_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at);
    new_plan(at, 200, "plan.toml", &[]);
    let accept = ["plan", "accept", "plan.toml", "--home", "south", "--cards", "cards", "--yes"];
    let fresh = json(&ok(at, &[&accept[..], &["--json"]].concat()));
    assert_eq!(fresh["epsilon_spent"], 0.0);
    let after = fresh["epsilon_after"].as_f64().unwrap();
    // At the cap's larger delta the plan costs less than at its own.
    assert!(after > 1.0 && after <= fresh["epsilon_exact"].as_f64().unwrap(), "{fresh}");

    let home = Home::open(&at.join("south")).unwrap();
    let event = Event::Gaussian { sensitivity: 1.0, noise_std: 0.75 };
    let release = PlannedRelease { round: 1, event, n_features: 2, exponent: -20 };
    let earlier = RunStart {
        run: "a1".repeat(32),
        plan_name: "earlier".to_owned(),
        site: "south".to_owned(),
        rounds: 1,
        planned: vec![release],
        epsilon_exact: Epsilon::new(4.0).unwrap(),
        delta: Delta::new(1e-3).unwrap(),
        noise: "for tests".to_owned(),
    };
    let fingerprint = fingerprint(home.dataset_key(), &at.join("south.csv")).unwrap();
    let cap = Budget::new(6.0, 1e-3).unwrap();
    let opening = Opening { data_set: "south".to_owned(), fingerprint, cap };
    let mut ledger = SiteLedger::create(&home.ledgers().join("south.ledger"), opening).unwrap();
    ledger.start_run(&earlier).unwrap();
    ledger.forfeit(&earlier.run, &release, "for this test").unwrap();
    let spent = ledger.epsilon_spent().value();
    assert!(spent > 3.0 && spent < 6.0, "{spent}");
    let refusal = refused(at, &accept);
    assert!(
        refusal.contains("earlier runs on these records cost") && refusal.contains("allows ε = 6"),
        "{refusal}"
    );
    drop(ledger);
    // Records that were edited are not known to any ledger: the same question as in `site run`, and no "nothing is spent".
    let text = std::fs::read_to_string(at.join("south.csv")).unwrap();
    std::fs::write(at.join("south.csv"), text.clone() + "\n").unwrap();
    let which = refused(at, &accept);
    assert!(which.contains("--data-updates south") && which.contains("--new-data NAME"), "{which}");
    let run = ["site", "run", "--home", "south", "--run", "trial"];
    let started = String::from_utf8(padmm(at, &run).stderr).unwrap();
    assert!(started.contains(which.trim_start_matches("error: ").trim()), "{started}");
    // An update has what was spent; other people's records have a budget of their own.
    let update = refused(at, &[&accept[..], &["--data-updates", "south"]].concat());
    assert!(update.contains("earlier runs on these records cost"), "{update}");
    let absent = refused(at, &[&accept[..], &["--data-updates", "north"]].concat());
    assert!(absent.contains("there is no ledger north"), "{absent}");
    let taken = refused(at, &[&accept[..], &["--new-data", "south"]].concat());
    assert!(taken.contains("is there already"), "{taken}");
    let others = ok(at, &[&accept[..], &["--new-data", "others"]].concat());
    assert!(
        others.contains("0.0000 is spent so far") && others.contains("--new-data others too"),
        "{others}"
    );
    assert!(!home.ledgers().join("others.ledger").exists(), "accepting writes to no ledger");
    // A file that is renamed is still known by what is in it.
    std::fs::write(at.join("south.csv"), &text).unwrap();
    std::fs::rename(at.join("south.csv"), at.join("renamed.csv")).unwrap();
    let config = at.join("south/site.toml");
    let told = std::fs::read_to_string(&config).unwrap().replace("south.csv", "renamed.csv");
    std::fs::write(&config, told).unwrap();
    assert!(refused(at, &accept).contains("earlier runs on these records cost"));
}

/// A cap for one plan and a half: the second plan is refused though nothing has run yet, until the first is known to be over.
#[test]
fn accepted_plans_that_have_not_run_count_before_another_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at);
    let named = |name: &str, epsilon: &str, out: &str| {
        let cards: Vec<String> = SITES.iter().map(|site| format!("cards/{site}.toml:200")).collect();
        let mut args = vec!["plan", "new", "--name", name, "--schema", "s.toml", "--out", out];
        args.extend(["--algorithm", "p-admm", "--epsilon", epsilon, "--rounds", "5"]);
        cards.iter().for_each(|card| args.extend(["--card", card]));
        ok(at, &args);
    };
    named("first", "5", "first.toml");
    named("second", "5", "second.toml");
    named("small", "1", "small.toml");
    let accept = |plan: &'static str| {
        ["plan", "accept", plan, "--home", "south", "--cards", "cards", "--yes", "--json"]
    };
    let first = json(&ok(at, &accept("first.toml")));
    assert_eq!(first["epsilon_with_accepted"], 0.0);
    assert_eq!(first["accepted_plans"], serde_json::json!([]));
    let refusal = refused(at, &accept("second.toml"));
    for words in ["not finished (first)", "allows ε = 6", "earlier runs on these records cost ε = 0.0000"] {
        assert!(refusal.contains(words), "{words}: {refusal}");
    }
    assert!(!at.join("south/runs/second").exists());
    let small = json(&ok(at, &accept("small.toml")));
    assert_eq!(small["epsilon_with_accepted"], first["epsilon_after"]);
    assert_eq!(small["accepted_plans"], serde_json::json!(["first"]));
    assert!(small["epsilon_after"].as_f64() > first["epsilon_after"].as_f64());
    // To accept what is accepted counts it once.
    assert_eq!(json(&ok(at, &accept("small.toml")))["epsilon_after"], small["epsilon_after"]);

    // The first plan fails in its second round: what it was charged is spent, and the rest of it will not be.
    let home = Home::open(&at.join("south")).unwrap();
    let contract = Contract::read(&at.join("first.toml")).unwrap();
    let start = start_of(&contract, 1, "for tests");
    let fingerprint = fingerprint(home.dataset_key(), &at.join("south.csv")).unwrap();
    let cap = Budget::new(6.0, 1e-3).unwrap();
    let opening = Opening { data_set: "south".to_owned(), fingerprint, cap };
    let mut ledger = SiteLedger::create(&home.ledgers().join("south.ledger"), opening).unwrap();
    ledger.start_run(&start).unwrap();
    let running = json(&ok(at, &accept("small.toml")));
    assert_eq!(running["epsilon_after"], small["epsilon_after"], "a run that has begun costs the same");
    ledger.forfeit(&start.run, &start.planned[0], "for this test").unwrap();
    let over = json(&ok(at, &accept("second.toml")));
    assert_eq!(over["accepted_plans"], serde_json::json!(["small"]));
    assert!(over["epsilon_spent"].as_f64().unwrap() > 0.0);
}

/// A plan as the ledger of one of its sites enters it.
fn start_of(contract: &Contract, site: usize, noise: &str) -> RunStart {
    let schedule = contract.calibration().agents[site].noise.as_ref().unwrap();
    let report = schedule.report();
    let planned = |round| PlannedRelease {
        round,
        event: schedule.event(round).unwrap(),
        n_features: schedule.n_features(),
        exponent: schedule.grid_exponent(round).unwrap(),
    };
    RunStart {
        run: contract.hash().to_string(),
        plan_name: contract.name().to_string(),
        site: contract.sites()[site].name.to_string(),
        rounds: schedule.rounds(),
        planned: (1..=schedule.rounds()).map(planned).collect(),
        epsilon_exact: Epsilon::new(report.epsilon_exact).unwrap(),
        delta: Delta::new(report.delta).unwrap(),
        noise: noise.to_owned(),
    }
}

/// A run that a test build began with noise from a seed is not finished by the shipped command as if its noise were exact.
#[test]
fn the_shipped_command_does_not_finish_what_a_test_build_began() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    study(at);
    new_plan(at, 200, "plan.toml", &["--algorithm", "p-admm"]);
    ok(at, &["plan", "accept", "plan.toml", "--home", "south", "--cards", "cards", "--yes"]);
    let home = Home::open(&at.join("south")).unwrap();
    let contract = Contract::read(&at.join("plan.toml")).unwrap();
    let seeded = padmm_privacy::NoiseSource::description(&padmm_sim::InsecureSeededNoise::new(7, 0, 1));
    let start = start_of(&contract, 1, seeded);
    let fingerprint = fingerprint(home.dataset_key(), &at.join("south.csv")).unwrap();
    let cap = Budget::new(6.0, 1e-3).unwrap();
    let opening = Opening { data_set: "south".to_owned(), fingerprint, cap };
    let path = home.ledgers().join("south.ledger");
    let mut ledger = SiteLedger::create(&path, opening).unwrap();
    ledger.start_run(&start).unwrap();
    let before = ledger.head();
    drop(ledger);
    let out = padmm(at, &["site", "run", "--home", "south", "--run", "trial"]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains(seeded) && said.contains("was begun in the ledger"), "{said}");
    assert!(said.contains("Nothing was charged or sent"), "{said}");
    assert_eq!(SiteLedger::read(&path).unwrap().head(), before);
    assert!(!at.join("south/runs/trial/egress.csv").exists());
}
