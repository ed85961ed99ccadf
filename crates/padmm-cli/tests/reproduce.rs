//! `padmm reproduce`, `padmm report` and `padmm algorithms` as a user runs them.

use crate::common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use common::{SCHEMA, json, ok, refused, table, write_study};
use serde_json::Value;

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn records(out: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let entries = std::fs::read_dir(out.join("records")).unwrap().map(|e| e.unwrap().path());
    let files = entries.filter(|p| p.is_file());
    files.map(|p| (p.clone(), p.metadata().unwrap().modified().unwrap())).collect()
}

#[test]
fn a_figure_has_its_files_its_contract_and_repeats_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    let first = ["reproduce", "heart", "--runs", "1", "--seed", "7", "--json", "--out", "a"];
    let answer = json(&ok(folder.path(), &first));
    let curves = answer["figures"]["heart"]["curves"].as_array().unwrap();
    assert!(answer["seconds"].as_f64().unwrap() > 0.0);
    let panels: Vec<&str> = curves.iter().map(|c| c["panel"].as_str().unwrap()).collect();
    assert_eq!(panels.iter().filter(|p| p.starts_with("Every hospital")).count(), 8, "of two methods");
    let of_mean = curves.iter().filter(|c| c["panel"] == "Mean of the four hospitals");
    assert_eq!(of_mean.count(), 4, "two methods, ADMM without privacy and the pooled model");
    for curve in curves {
        let length = |key: &str| curve[key].as_array().unwrap().len();
        // Sums of whole numbers have no noise as narrow as ε = 50.
        let is_newton = |key: &str| curve[key].as_str().unwrap().to_lowercase().contains("consensus newton");
        let n_points = if is_newton("panel") || is_newton("label") { 8 } else { 9 };
        assert_eq!([length("x"), length("mean"), length("std")], [n_points; 3], "{curve}");
        assert!(curve["label"].is_string());
        let means = curve["mean"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap());
        assert!(means.into_iter().all(|v| (0.0..=1.0).contains(&v)), "accuracies: {curve}");
    }
    let a = folder.path().join("a");
    for file in ["heart.csv", "heart.svg", "heart.png", "report.html"] {
        assert!(!read(&a.join(file)).is_empty(), "{file}");
    }
    assert!(!a.join("records/unfinished").exists());

    // Again: nothing is run a second time, and one thread gives the same digits as two.
    let before = records(&a);
    ok(folder.path(), &first);
    assert_eq!(records(&a), before, "finished records stay as they are");
    let again =
        ["reproduce", "heart", "--runs", "1", "--seed", "7", "--quiet", "--threads", "1", "--out", "b"];
    ok(folder.path(), &again);
    let csv = read(&a.join("heart.csv"));
    assert_eq!(read(&folder.path().join("b/heart.csv")), csv);
    let other = ["reproduce", "heart", "--runs", "1", "--seed", "8", "--quiet", "--out", "c"];
    ok(folder.path(), &other);
    assert_ne!(read(&folder.path().join("c/heart.csv")), csv, "another seed, other numbers");

    // A record that was damaged is made again.
    let victim = before.keys().next().unwrap();
    std::fs::write(victim, "{").unwrap();
    ok(folder.path(), &first);
    assert_eq!(read(&a.join("heart.csv")), csv);
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["reproduce", "fig1", "--runs", "2", "--quiet", "--out"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_padmm"))
        .current_dir(folder.path())
        .args(flags)
        .arg("killed")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Killed as soon as the second record is there, in the middle of the third.
    let killed = folder.path().join("killed");
    while !killed.join("records").is_dir() || records(&killed).len() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it is still at work");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let finished = records(&killed);
    assert!(!killed.join("fig1.csv").exists());
    ok(folder.path(), &[&flags[..], &["killed"]].concat());
    let all = records(&killed);
    assert!(finished.iter().all(|(path, time)| all.get(path) == Some(time)), "no finished run is repeated");
    ok(folder.path(), &[&flags[..], &["whole"]].concat());
    for file in ["fig1.csv", "fig1.svg"] {
        assert_eq!(read(&killed.join(file)), read(&folder.path().join("whole").join(file)), "{file}");
    }
}

#[test]
fn records_that_are_not_shipped_are_asked_for_and_their_figure_is_percent_above_the_optimum() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let flags = ["reproduce", "further", "--runs", "1", "--json", "--quiet", "--out", "out"];
    let text = refused(at, &flags);
    assert!(text.contains("experiments/fetch.py") && text.contains("fair.csv"), "{text}");
    assert!(!at.join("out").exists());

    let fetched = at.join("experiments/fetched");
    std::fs::create_dir_all(&fetched).unwrap();
    for name in ["fair", "rand", "brfss"] {
        std::fs::write(fetched.join(format!("{name}.csv")), table(2000)).unwrap();
        std::fs::write(fetched.join(format!("{name}.toml")), SCHEMA).unwrap();
    }
    let answer = json(&ok(at, &flags));
    let curves = answer["figures"]["further"]["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 18, "three methods in six panels");
    let value = |panel: &str, k: usize| {
        let is_it = |c: &&Value| c["panel"] == panel && c["label"] == "consensus Newton";
        let curve = curves.iter().find(is_it).unwrap();
        assert_eq!(curve["x"][k], [0.1, 0.5, 1.0, 5.0][k]);
        curve["mean"][k].as_f64().unwrap()
    };
    let of_case = |record: &Value, epsilon: f64| {
        let setting = &record["setting"];
        setting["plan"]["algorithm"] == "consensus-newton"
            && setting["plan"]["epsilon"] == epsilon
            && setting["dataset"].as_str().unwrap().contains("rand")
    };
    let all: Vec<Value> =
        records(&at.join("out")).keys().map(|path| json(&String::from_utf8(read(path)).unwrap())).collect();
    assert_eq!(all.len(), 36, "three sets, three methods, four budgets");
    for (k, epsilon) in [0.1, 0.5, 1.0, 5.0].into_iter().enumerate() {
        let record = all.iter().find(|r| of_case(r, epsilon)).unwrap();
        let kept = &record["runs"][0]["smoothed"];
        let number = |v: &Value| v.as_f64().unwrap();
        let excess = number(&kept["objective"]) / number(&record["optimum"]["objective"]) - 1.0;
        assert!(excess >= 0.0 && (value("RAND: objective", k) - 100.0 * excess).abs() < 1e-9, "{excess}");
        assert!((value("RAND: AUC", k) - number(&kept["auc"])).abs() < 1e-12);
    }
}

#[test]
fn every_algorithm_is_listed_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let listed = json(&ok(folder.path(), &["algorithms", "--json"]));
    let listed = listed["algorithms"].as_array().unwrap();
    assert_eq!(listed.len(), 13);
    let text = ok(folder.path(), &["algorithms"]);
    for algorithm in listed {
        let name = algorithm["name"].as_str().unwrap();
        assert!(text.contains(name) && algorithm["guarantee"].is_string() && algorithm["needs"].is_string());
        let flags = [
            "simulate",
            "--dataset",
            "heart",
            "--rounds",
            "4",
            "--json",
            "--quiet",
            "--out",
            name,
            "--algorithm",
            name,
        ];
        let answer = json(&ok(folder.path(), &flags));
        assert_eq!(answer["algorithm"], *name);
        if name == "admm" {
            assert_eq!(answer["privacy"], Value::Null);
            continue;
        }
        let exact = answer["privacy"]["epsilon_exact"].as_f64().unwrap();
        assert!(exact <= 5.0 && exact > 4.99, "{name}: {exact}");
        let is_pure = ["dvp", "pvp", "m-admm", "r-admm", "mr-admm"].contains(&name);
        let rules = ["basic", "zcdp", "rdp", "exact"].map(|r| answer["privacy"]["compositions"][r].as_f64());
        assert_eq!(rules.iter().all(Option::is_some), is_pure, "{name}: {rules:?}");
        let html = String::from_utf8(read(&folder.path().join(name).join("report.html"))).unwrap();
        assert_eq!(html.contains("optimal composition"), is_pure, "{name}");
        assert_eq!(answer["privacy"]["noise_is_exact"], !is_pure && name != "gaussian-objective", "{name}");
    }
    let basic = ["simulate", "--dataset", "heart", "--rounds", "4", "--json", "--quiet", "--out", "basic"];
    let answer =
        json(&ok(folder.path(), &[&basic[..], &["--algorithm", "dvp", "--accountant", "basic"]].concat()));
    let sum = answer["privacy"]["compositions"]["basic"].as_f64().unwrap();
    assert!(sum <= 5.0 && sum > 4.999, "{sum}");
}

#[test]
fn requests_that_make_no_sense_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert!(refused(at, &["reproduce", "fig9"]).contains("fig9"));
    assert!(refused(at, &["reproduce", "fig1", "--runs", "0"]).contains("--runs"));
    assert!(refused(at, &["simulate", "--algorithm", "dvp", "--loss", "hinge"]).contains("dvp needs"));
    assert!(refused(at, &["simulate", "--algorithm", "token", "--graph", "ring"]).contains("complete graph"));
    assert!(refused(at, &["simulate", "--relaxation", "0.5"]).contains("not a setting of p-admm"));
    assert!(refused(at, &["simulate", "--accountant", "basic"]).contains("basic"));
    std::fs::create_dir(at.join("empty")).unwrap();
    assert!(refused(at, &["report", "empty"]).contains("no record in 'empty'"));
    assert!(refused(at, &["report", "nowhere"]).contains("nowhere"));
    std::fs::write(at.join("half.json"), "{\"format\": \"padmm-rec").unwrap();
    assert!(refused(at, &["report", "half.json"]).contains("half.json"));
    assert!(!at.join("report.html").exists() && !at.join("runs").exists(), "nothing is left behind");
}

#[test]
fn a_report_names_the_runs_that_it_compares() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_study(at, &table(120), SCHEMA);
    let study =
        ["simulate", "--data", "t.csv", "--schema", "s.toml", "--rounds", "6", "--runs", "2", "--quiet"];
    ok(at, &[&study[..], &["--out", "one"]].concat());
    ok(at, &[&study[..], &["--out", "two", "--algorithm", "r-admm", "--epsilon", "2"]].concat());
    ok(at, &[&study[..], &["--out", "three", "--algorithm", "admm"]].concat());
    ok(at, &["report", "one", "two", "three", "--out", "compared.html"]);
    let text = String::from_utf8(read(&at.join("compared.html"))).unwrap();
    for name in ["P-ADMM, ε = 5", "R-ADMM, ε = 2", "ADMM without privacy", "padmm simulate --data t.csv"] {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn the_command_in_a_report_repeats_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let flags = [
        "simulate",
        "--dataset",
        "heart",
        "--algorithm",
        "mr-admm",
        "--rounds",
        "6",
        "--epsilon",
        "3",
        "--holdout",
        "stratified:0.3",
        "--penalty-growth",
        "1.1",
        "--runs",
        "2",
        "--seed",
        "4",
        "--quiet",
        "--out",
        "a",
    ];
    ok(at, &flags);
    let html = String::from_utf8(read(&at.join("a/report.html"))).unwrap();
    let start = html.find("padmm simulate").unwrap();
    let command: String = html[start..].chars().take_while(|c| *c != '<').collect();
    let mut words: Vec<&str> = command.split_whitespace().skip(1).collect();
    words.extend(["--quiet", "--out", "b"]);
    ok(at, &words);
    assert_eq!(read(&at.join("a/trace.csv")), read(&at.join("b/trace.csv")), "{command}");
}
