//! `padmm simulate` as a user runs it: the `--json` contract, files, repeatability, labels.

use crate::common;

use common::{SCHEMA, json, ok, padmm, table, write_study};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

const STUDY: [&str; 7] = ["simulate", "--data", "t.csv", "--schema", "s.toml", "--rounds", "6"];

fn study() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_study(folder.path(), &table(120), SCHEMA);
    folder
}

/// Runs the study with `flags`, writing to `out`, and gives back the `--json` object.
fn run(folder: &Path, out: &str, flags: &[&str]) -> Value {
    json(&ok(folder, &[&STUDY[..], &["--quiet", "--json", "--out", out], flags].concat()))
}

fn read(folder: &Path, file: &str) -> String {
    std::fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The record without the one line that is a wall time.
fn timeless(folder: &Path, out: &str) -> String {
    let text = read(folder, &format!("{out}/record.json"));
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("\"seconds\"")).collect();
    assert_eq!(lines.len() + 1, text.lines().count(), "one line is about time");
    lines.join("\n")
}

/// All keys of the contract, with their types; `rounds` numbers in the curve.
fn assert_contract(answer: &Value, rounds: u64, is_private: bool) {
    let number = |pointer: &str| {
        let value = answer.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is missing in {answer}"));
        value.as_f64().unwrap_or_else(|| panic!("{pointer} is no number: {value}"))
    };
    assert!(answer["algorithm"].is_string());
    for key in [
        "agents",
        "rounds",
        "runs",
        "features",
        "records/used",
        "records/dropped",
        "records/train",
        "records/test",
    ] {
        let value = answer.pointer(&format!("/{key}")).unwrap();
        assert!(value.is_u64(), "{key} is no count: {value}");
    }
    assert_eq!(answer["rounds"], rounds);
    for key in ["average_loss", "pooled_loss", "model_loss", "model_objective"] {
        assert!(number(&format!("/{key}/mean")) > 0.0 && number(&format!("/{key}/std")) >= 0.0);
    }
    let curve = answer["average_loss"]["per_round_mean"].as_array().unwrap();
    assert_eq!(curve.len() as u64, rounds);
    assert!(curve.iter().all(Value::is_f64));
    assert_eq!(curve.last(), answer.pointer("/average_loss/mean"));
    assert!(number("/optimum/objective") > 0.0 && number("/optimum/loss") > 0.0);
    assert!(number("/model_objective/mean") >= number("/optimum/objective"), "nothing is below the optimum");
    assert!((0.5..=1.0).contains(&number("/majority_accuracy")));
    assert!(number("/calibration/intercept").is_finite() && number("/calibration/slope").is_finite());
    assert_eq!(answer["weights"], "records");
    assert!((0.0..=1.0).contains(&number("/accuracy")) && (0.0..=1.0).contains(&number("/auc")));
    assert!(number("/seconds") >= 0.0);
    if !is_private {
        assert!(answer["privacy"].is_null());
        return;
    }
    for key in [
        "epsilon_exact",
        "epsilon_paper",
        "delta",
        "delta_slack",
        "rho_total",
        "noise_std_first",
        "noise_std_last",
        "sensitivity",
    ] {
        assert!(number(&format!("/privacy/{key}")) > 0.0, "{key}");
    }
    assert!(number("/privacy/epsilon_exact") < number("/privacy/epsilon_paper"));
}

#[test]
fn the_contract_on_a_file_with_sites() {
    let folder = study();
    let answer = run(folder.path(), "out", &["--epsilon", "2", "--runs", "2"]);
    assert_contract(&answer, 6, true);
    assert_eq!(
        (&answer["agents"], &answer["runs"], &answer["algorithm"]),
        (&3.into(), &2.into(), &"p-admm".into())
    );
    assert_eq!(answer["records"], serde_json::json!({"used": 120, "dropped": 0, "train": 120, "test": 0}));
    assert_eq!(answer["features"], 6);
    assert_eq!(answer["evaluated_on"], "training records");
    let epsilon = answer["privacy"]["epsilon_exact"].as_f64().unwrap();
    assert!(epsilon <= 2.0 && epsilon > 1.999, "{epsilon}");

    let plain = run(folder.path(), "plain", &["--algorithm", "admm"]);
    assert_contract(&plain, 6, false);
    assert_eq!(plain["average_loss"]["std"], 0.0);

    let held = run(folder.path(), "held", &["--holdout", "0.25", "--agents", "4"]);
    assert_eq!(held["records"], serde_json::json!({"used": 120, "dropped": 0, "train": 90, "test": 30}));
    assert_eq!((&held["agents"], &held["evaluated_on"]), (&4.into(), &"held-out records".into()));
}

#[test]
fn the_contract_on_the_hospitals() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["simulate", "--dataset", "heart", "--rounds", "4", "--json", "--no-reference", "--out"];
    for (algorithm, is_private) in [("p-admm", true), ("admm", false)] {
        let args = [&flags[..], &[algorithm, "--algorithm", algorithm]].concat();
        let answer = json(&ok(folder.path(), &args));
        assert_contract(&answer, 4, is_private);
        assert_eq!((&answer["agents"], &answer["records"]["used"]), (&4.into(), &740.into()));
    }
}

#[test]
fn every_loss_ends_in_a_model_that_is_scored_alike() {
    let folder = study();
    let at = folder.path();
    for loss in ["logistic", "hinge", "huberized-hinge"] {
        let answer = run(at, loss, &["--loss", loss]);
        let model = format!("{loss}/model.json");
        let scores = json(&ok(at, &["evaluate", "--model", &model, "--data", "t.csv", "--json"]));
        // Gossip has brought all sites to one model, so the first site's is as good as their mean.
        let (mean, own) =
            (answer["model_loss"]["mean"].as_f64().unwrap(), scores["mean_loss"].as_f64().unwrap());
        assert!((mean - own).abs() < 1e-3 * mean, "{loss}: {mean} {own}");
        ok(at, &["predict", "--model", &model, "--data", "t.csv", "--json"]);
    }
    let numeric = SCHEMA.replace(
        "{ column = \"ill\", kind = \"binary\", positive = [\"yes\"], negative = [\"no\"] }",
        "{ column = \"dose\", kind = \"numeric\", lower = 0, upper = 1 }",
    );
    let numeric = numeric.replace(
        "{ name = \"dose\", kind = \"numeric\", lower = 0, upper = 1 }",
        "{ name = \"ill\", kind = \"categorical\", values = [\"yes\", \"no\"] }",
    );
    write_study(at, &table(120), &numeric);
    let level = ["--quantile-level", "0.8", "--loss-width", "0.02"];
    for (loss, flags) in [("huber", &[][..]), ("squared", &["--algorithm", "admm"]), ("quantile", &level)] {
        let answer = run(at, loss, &[&["--loss", loss], flags].concat());
        for measure in ["accuracy", "auc", "majority_accuracy", "calibration"] {
            assert!(answer[measure].is_null(), "{measure}");
        }
        let model = format!("{loss}/model.json");
        let scores = json(&ok(at, &["evaluate", "--model", &model, "--data", "t.csv", "--json"]));
        let (mean, own) =
            (answer["model_loss"]["mean"].as_f64().unwrap(), scores["mean_loss"].as_f64().unwrap());
        assert!((mean - own).abs() < 1e-3 * mean, "{loss}: {mean} {own}");
        assert!(scores["accuracy"].is_null());
    }
    assert_eq!(json(&read(at, "huber/model.json"))["loss"], serde_json::json!({"huber": {"width": 0.1}}));
    let quantile = serde_json::json!({"quantile": {"level": 0.8, "width": 0.02}});
    assert_eq!(json(&read(at, "quantile/model.json"))["loss"], quantile);
}

/// The study with a count from 0 to `upper` in place of the two classes.
fn counts(at: &Path, upper: u32, lower: i32) {
    let label = "{ column = \"ill\", kind = \"binary\", positive = [\"yes\"], negative = [\"no\"] }";
    let counted = format!("{{ column = \"visits\", kind = \"numeric\", lower = {lower}, upper = {upper} }}");
    let mut text = String::new();
    for (r, line) in table(300).lines().enumerate() {
        let (cells, ill) = line.rsplit_once(',').unwrap();
        // More than the bound here and there, which is clipped.
        let visits = if ill == "yes" { 3 + r % 8 } else { r % 3 };
        text += &if r == 0 { format!("{cells},visits\n") } else { format!("{cells},{visits}\n") };
    }
    let schema = SCHEMA.replace(label, &counted).replace("range = \"error\"", "range = \"clip\"");
    write_study(at, &text, &schema);
}

#[test]
fn counts_are_predicted_as_expected_counts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    counts(at, 9, 0);
    for (algorithm, rounds) in
        [("p-admm", "20"), ("consensus-newton", "8"), ("private-gradient", "8"), ("admm", "60")]
    {
        let study = ["simulate", "--data", "t.csv", "--schema", "s.toml", "--loss", "poisson"];
        let flags = ["--algorithm", algorithm, "--rounds", rounds, "--quiet", "--json", "--out", algorithm];
        let answer = json(&ok(at, &[&study[..], &flags].concat()));
        let model = format!("{algorithm}/model.json");
        let made = json(&read(at, &model));
        assert_eq!(made["loss"], serde_json::json!({"poisson": {"cap": 9.0}}));
        let scores = json(&ok(at, &["evaluate", "--model", &model, "--data", "t.csv", "--json"]));
        let (mean, own) =
            (answer["model_loss"]["mean"].as_f64().unwrap(), scores["mean_loss"].as_f64().unwrap());
        assert!((mean - own).abs() < 1e-3 * mean, "{algorithm}: {mean} {own}");
        assert!(scores["accuracy"].is_null() && scores["base_rate_loss"].as_f64().unwrap() > 0.0);
        if algorithm == "admm" {
            assert!(own < 0.9 * scores["base_rate_loss"].as_f64().unwrap(), "{scores}");
        }
        let predicted = json(&ok(at, &["predict", "--model", &model, "--data", "t.csv", "--json"]));
        for row in predicted["predictions"].as_array().unwrap() {
            let margin = row["margin"].as_f64().unwrap();
            let count: f64 = row["predicted"].as_str().unwrap().parse().unwrap();
            assert!((count - margin.exp().min(9.0)).abs() < 1e-9, "{row}");
        }
        // The flags that a record names make the same run again; the cap is not among them.
        let again = read(at, &format!("{algorithm}/record.json"));
        assert!(again.contains("\"cap\": 9.0"), "{again}");
    }
    // A model whose cap is not its schema's is none.
    let altered = read(at, "admm/model.json").replace("\"cap\": 9.0", "\"cap\": 8.0");
    std::fs::write(at.join("altered.json"), altered).unwrap();
    let refused = padmm(at, &["predict", "--model", "altered.json", "--data", "t.csv"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("bounds of its schema's label"));
    counts(at, 9, 1);
    let refused = padmm(at, &[&STUDY[..], &["--loss", "poisson", "--quiet"]].concat());
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("bounds in the schema are 1 and 9: set the label's `lower` to 0"), "{text}");
}

#[test]
fn a_plan_is_the_same_as_its_flags_and_flags_win() {
    let folder = study();
    let at = folder.path();
    let flags = [
        "--epsilon",
        "3",
        "--delta",
        "1e-5",
        "--decay",
        "0.9",
        "--graph",
        "edges:north-south,south-west",
        "--seed",
        "7",
        "--regularizer",
        "elastic-net",
        "--l1-ratio",
        "0.2",
        "--holdout",
        "0.2",
        "--accountant",
        "paper",
        "--runs",
        "2",
    ];
    run(at, "flags", &flags);
    let plan = r#"
        data = "t.csv"
        schema = "s.toml"
        rounds = 6
        epsilon = 3
        delta = 1e-5
        decay = 0.9
        graph = [["north", "south"], ["south", "west"]]
        seed = 7
        regularizer = "elastic-net"
        l1-ratio = 0.2
        holdout = 0.2
        accountant = "paper"
        runs = 2
    "#;
    std::fs::write(at.join("plan.toml"), plan).unwrap();
    ok(at, &["simulate", "--plan", "plan.toml", "--quiet", "--out", "plan"]);
    assert_eq!(timeless(at, "flags"), timeless(at, "plan"));
    let args = ["simulate", "--plan", "plan.toml", "--rounds", "2", "--quiet", "--json", "--out", "both"];
    assert_eq!(json(&ok(at, &args))["rounds"], 2);
    let args =
        ["simulate", "--plan", "plan.toml", "--dataset", "heart", "--graph", "ring", "--quiet", "--json"];
    assert_eq!(json(&ok(at, &[&args[..], &["--out", "heart"]].concat()))["records"]["used"], 740);
}

#[test]
fn results_depend_on_the_seed_and_not_on_threads() {
    let folder = study();
    let at = folder.path();
    run(at, "one", &["--threads", "1", "--runs", "3"]);
    run(at, "two", &["--threads", "2", "--runs", "3"]);
    run(at, "again", &["--runs", "3"]);
    let first = timeless(at, "one");
    assert_eq!(first, timeless(at, "two"));
    assert_eq!(first, timeless(at, "again"));
    for file in ["trace.csv", "model.json"] {
        assert_eq!(read(at, &format!("one/{file}")), read(at, &format!("two/{file}")), "{file}");
    }
    run(at, "other", &["--seed", "2", "--runs", "3"]);
    let runs = |out: &str| json(&read(at, &format!("{out}/record.json")))["runs"].clone();
    assert_ne!(runs("one"), runs("other"));
    assert_ne!(runs("one")[0]["trace"], runs("one")[1]["trace"], "runs have noise of their own");
}

#[test]
fn the_secure_sampler_runs_and_never_repeats() {
    let folder = study();
    let at = folder.path();
    let first = run(at, "first", &["--noise", "secure"]);
    let second = run(at, "second", &["--noise", "secure"]);
    assert_contract(&first, 6, true);
    assert_ne!(first["average_loss"], second["average_loss"]);
    let source = |out: &str| json(&read(at, &format!("{out}/record.json")))["noise_source"].clone();
    run(at, "seeded", &[]);
    assert_ne!(source("first"), source("seeded"));
    assert!(source("seeded").as_str().unwrap().contains("insecure"));
}

/// The paper's sensitivity proves nothing, and every output says so.
#[test]
fn the_papers_sensitivity_is_labelled_everywhere() {
    let folder = study();
    let at = folder.path();
    let args = [&STUDY[..], &["--sensitivity", "paper", "--out", "out"]].concat();
    let text = ok(at, &args);
    assert!(text.contains("for comparison only") && text.contains("NOT PROVED"), "{text}");
    let answer = run(at, "json", &["--sensitivity", "paper"]);
    let record = json(&read(at, "out/record.json"));
    let model = json(&read(at, "out/model.json"));
    for privacy in [&answer["privacy"], &record["privacy"], &model["privacy"]] {
        assert_eq!(privacy["sensitivity_basis"], "paper");
        assert!(privacy["statement"].as_str().unwrap().starts_with("NO GUARANTEE"), "{privacy}");
    }
    let proved = ok(at, &[&STUDY[..], &["--out", "proved"]].concat());
    assert!(proved.contains("derived per record") && !proved.contains("NOT PROVED"), "{proved}");
    common::assert_promise(&proved);
    let statement = json(&read(at, "proved/model.json"))["privacy"]["statement"].clone();
    common::assert_promise(statement.as_str().unwrap());
    ok(at, &["report", "proved", "--out", "proved.html"]);
    common::assert_promise(&read(at, "proved.html"));
}

#[test]
fn standard_output_is_one_object_or_one_table() {
    let folder = study();
    let at = folder.path();
    let output = padmm(at, &[&STUDY[..], &["--json"]].concat());
    assert!(output.status.success());
    json(&String::from_utf8(output.stdout).unwrap());
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("runs/t-p-admm-1"), "{notes}");
    assert!(ok(at, &STUDY).contains("runs/t-p-admm-2"), "the next run has a folder of its own");
    for file in ["record.json", "trace.csv", "model.json"] {
        assert!(!read(at, &format!("runs/t-p-admm-2/{file}")).is_empty());
    }
    assert_eq!(read(at, "runs/t-p-admm-2/trace.csv").lines().count(), 7);
}
