//! Every bad input of a simulation or a saved model: exit code 2, one paragraph that names the culprit, and nothing written.

use crate::common;

use common::{SCHEMA, ok, padmm, refused, table, write_study};
use std::path::Path;

/// Names of everything in a folder, sorted.
fn listing(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = std::fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

/// Runs `simulate` with `flags` on a study; it must refuse, name all of `needles`, and leave the folder as it was.
fn refused_study(table: &str, schema: &str, flags: &[&str], needles: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    write_study(folder.path(), table, schema);
    let study = ["simulate", "--data", "t.csv", "--schema", "s.toml"];
    refused_in(folder.path(), &[&study[..], flags].concat(), needles);
}

fn refused_in(folder: &Path, args: &[&str], needles: &[&str]) {
    let before = listing(folder);
    let args = [args, &["--quiet", "--json", "--out", "deep/out"]].concat();
    let error = refused(folder, &args);
    assert!(!error.contains("multiple times"), "the test gives a flag twice: {error}");
    for needle in needles {
        assert!(error.contains(needle), "`{needle}` is not in: {error}");
    }
    assert_eq!(listing(folder), before, "nothing is written: {args:?}");
}

/// One flag, on a study that is good.
fn refused_flags(flags: &[&str], needles: &[&str]) {
    refused_study(&table(30), SCHEMA, flags, needles);
}

#[test]
fn the_study_itself_is_good() {
    let folder = tempfile::tempdir().unwrap();
    write_study(folder.path(), &table(30), SCHEMA);
    let args = [
        "simulate", "--data", "t.csv", "--schema", "s.toml", "--rounds", "3", "--quiet", "--out", "deep/out",
    ];
    assert_eq!(ok(folder.path(), &args), "");
    assert!(listing(&folder.path().join("deep/out")).contains(&"record.json".to_owned()));
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    write_study(folder.path(), &table(30), SCHEMA);
    let at = folder.path();
    refused_in(at, &["simulate", "--data", "none.csv", "--schema", "s.toml"], &["none.csv"]);
    refused_in(at, &["simulate", "--data", "t.csv", "--schema", "none.toml"], &["none.toml"]);
    refused_in(at, &["simulate", "--data", ".", "--schema", "s.toml"], &["."]);
    refused_in(at, &["simulate", "--data", "s.toml", "--schema", "s.toml"], &["s.toml", ".csv"]);
    refused_in(at, &["simulate", "--plan", "none.toml"], &["none.toml"]);
    std::fs::write(at.join("zero.csv"), "").unwrap();
    refused_in(at, &["simulate", "--data", "zero.csv", "--schema", "s.toml"], &["zero.csv", "empty"]);
    std::fs::write(at.join("bytes.csv"), b"age,dose\xff").unwrap();
    refused_in(at, &["simulate", "--data", "bytes.csv", "--schema", "s.toml"], &["bytes.csv", "UTF-8"]);
    #[cfg(feature = "parquet")]
    {
        std::fs::write(at.join("bad.parquet"), "PAR1 nothing PAR1").unwrap();
        refused_in(at, &["simulate", "--data", "bad.parquet", "--schema", "s.toml"], &["bad.parquet"]);
    }
    std::fs::write(at.join("cut.toml"), "norm_bound = ").unwrap();
    refused_in(at, &["simulate", "--data", "t.csv", "--schema", "cut.toml"], &["cut.toml", "line 1"]);
}

#[test]
fn tables_that_do_not_fit_their_schema() {
    let good = table(30);
    let header = good.replacen("dose", "Dose", 1);
    refused_study(&header, SCHEMA, &[], &["t.csv", "`dose`", "capital letters"]);
    let header = good.replacen("dose", "amount", 1);
    refused_study(&header, SCHEMA, &[], &["t.csv", "lacks `dose`", "`amount`"]);
    refused_study(&(good.clone() + "101,0.5,A,north,no\n"), SCHEMA, &[], &["t.csv", "row 32", "`age`"]);
    refused_study(&(good.clone() + "50,0.5,AB,north,no\n"), SCHEMA, &[], &["t.csv", "row 32", "`blood`"]);
    refused_study(&(good.clone() + "50,x,A,north,no\n"), SCHEMA, &[], &["t.csv", "row 32", "`dose`"]);
    refused_study(&(good.clone() + "50,0.5,A,north\n"), SCHEMA, &[], &["t.csv", "row 32"]);
    refused_study(&(good.clone() + "50,0.5,A,north,maybe\n"), SCHEMA, &[], &["t.csv", "row 32", "`ill`"]);
    refused_study(&good.replace(",yes", ",no"), SCHEMA, &[], &["t.csv", "`ill`", "same class"]);
    refused_study("age,dose,blood,hospital,ill\n", SCHEMA, &[], &["t.csv", "no records"]);
}

#[test]
fn sites_and_splits_that_do_not_work_out() {
    let good = table(30);
    refused_study(&(good.clone() + "?,0.5,A,east,no\n"), SCHEMA, &[], &["site 'east'"]);
    let listed = SCHEMA.replace(
        "site = { column = \"hospital\" }",
        "site = { column = \"hospital\", values = [\"north\", \"south\", \"west\", \"east\"] }",
    );
    refused_study(&good, &listed, &[], &["site 'east'"]);
    refused_flags(&["--agents", "31"], &["--agents 31", "30"]);
    refused_flags(&["--agents", "0"], &["--agents"]);
    refused_flags(&["--agents", "-3"], &["--agents", "-3"]);
    refused_flags(&["--agents", "4", "--split", "site"], &["--agents 4", "3 sites"]);
    let no_site = SCHEMA
        .replace("site = { column = \"hospital\" }\n", "")
        .replace("columns = [\n", "columns = [\n  { name = \"hospital\", kind = \"ignored\" },\n");
    refused_study(&good, &no_site, &["--split", "site"], &["--split site", "site column"]);
    refused_flags(&["--split", "thirds"], &["--split thirds"]);
    refused_flags(&["--split", "label-skew:-1"], &["--split label-skew:-1"]);
    for nonsense in ["half", "1.5", "-0.1", "NaN", "1"] {
        refused_flags(&["--holdout", nonsense], &["--holdout", nonsense]);
    }
    refused_flags(&["--holdout", "0.001"], &["--holdout 0.001", "30"]);
    refused_flags(&["--holdout", "official"], &["--holdout official"]);
    let folder = tempfile::tempdir().unwrap();
    refused_in(
        folder.path(),
        &["simulate", "--dataset", "heart", "--holdout", "official"],
        &["--holdout official"],
    );
}

#[test]
fn budgets_and_schedules_outside_their_ranges() {
    for epsilon in ["0", "-1", "NaN", "inf"] {
        refused_flags(&["--epsilon", epsilon], &["--epsilon"]);
    }
    refused_flags(&["--epsilon", "1e9"], &["epsilon", "1e6"]);
    for delta in ["0", "1", "-0.5", "2", "NaN"] {
        refused_flags(&["--delta", delta], &["--delta"]);
    }
    for decay in ["0", "-0.5", "1.0001", "NaN"] {
        refused_flags(&["--decay", decay], &["--decay"]);
    }
    refused_flags(&["--decay", "1e-9", "--rounds", "500"], &["decay", "500 rounds"]);
    refused_flags(&["--rounds", "0"], &["--rounds"]);
    refused_flags(&["--rounds", "-1"], &["--rounds", "-1"]);
    refused_flags(&["--threads", "-1"], &["--threads", "-1"]);
    refused_flags(&["--runs", "0"], &["--runs"]);
    refused_flags(&["--threads", "0"], &["--threads"]);
    for penalty in ["0", "-1", "NaN"] {
        refused_flags(&["--penalty", penalty], &["--penalty"]);
    }
    refused_flags(&["--tolerance", "0"], &["--tolerance"]);
    refused_flags(&["--regularization", "-1"], &["--regularization"]);
    refused_flags(&["--regularizer", "elastic-net", "--l1-ratio", "2"], &["--l1-ratio"]);
    refused_flags(&["--loss", "huberized-hinge", "--loss-width", "0"], &["--loss-width"]);
    refused_flags(&["--loss", "quantile", "--loss-width", "-1"], &["--loss-width"]);
    for level in ["0", "1", "NaN"] {
        refused_flags(&["--loss", "quantile", "--quantile-level", level], &["--quantile-level"]);
    }
}

#[test]
fn graphs_that_are_none() {
    refused_flags(&["--graph", "edges:north-south"], &["not connected", "`west`"]);
    refused_flags(&["--graph", "edges:north-north,north-south,south-west"], &["`north`", "itself"]);
    refused_flags(&["--graph", "edges:north-south,south-wset"], &["`wset`", "`west`"]);
    refused_flags(&["--graph", "web"], &["--graph", "web"]);
    refused_flags(&["--graph", "regular:9"], &["regular:9", "3 agents"]);
    refused_flags(&["--graph", "erdos-renyi:0"], &["erdos-renyi:0"]);
}

#[test]
fn names_that_nobody_knows() {
    for flag in ["algorithm", "loss", "regularizer", "accountant", "sensitivity", "noise", "output"] {
        let flag = format!("--{flag}");
        refused_flags(&[&flag, "bogus"], &[&flag, "bogus"]);
    }
    refused_flags(&["--bogus"], &["--bogus"]);
    refused_flags(&["--seed", "x"], &["--seed", "x"]);
    refused_flags(&["--loss", "squared"], &["squared", "--algorithm admm"]);
    for loss in ["huber", "quantile", "poisson"] {
        refused_flags(&["--loss", loss], &[&format!("--loss {loss}"), "binary"]);
    }
    let folder = tempfile::tempdir().unwrap();
    write_study(folder.path(), &table(30), SCHEMA);
    let at = folder.path();
    refused_in(at, &["simulate", "--dataset", "iris"], &["`iris`", "adult, heart"]);
    refused_in(at, &["simulate", "--data", "t.csv"], &["--data t.csv", "--schema"]);
    refused_in(at, &["simulate", "--schema", "s.toml"], &["--schema", "--data"]);
    refused_in(at, &["simulate", "--dataset", "heart", "--schema", "s.toml"], &["--schema"]);
    refused_in(at, &["simulate", "--dataset", "heart", "--data", "t.csv"], &["--dataset", "--data"]);
    refused_in(at, &["simulted"], &["simulted"]);
}

#[test]
fn plans_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    write_study(folder.path(), &table(30), SCHEMA);
    let at = folder.path();
    for (plan, needles) in [
        ("rounds = 3\nepsilom = 5\n", &["line 2", "`epsilom`"][..]),
        ("rounds = \"three\"\n", &["line 1"]),
        ("rounds = -1\n", &["line 1", "-1"]),
        ("rounds = 3\nholdout = [1]\n", &["line 2", "holdout"]),
        ("rounds =", &["line 1"]),
        ("graph = \"web\"\n", &["web"]),
    ] {
        std::fs::write(at.join("plan.toml"), plan).unwrap();
        refused_in(at, &["simulate", "--plan", "plan.toml"], &[&["plan.toml"], needles].concat());
    }
    for (plan, needle) in [
        ("epsilon = 0\n", "epsilon"),
        ("delta = nan\n", "delta"),
        ("decay = 1.5\n", "decay"),
        ("loss = \"bogus\"\n", "bogus"),
        ("holdout = 2.0\n", "holdout"),
        ("runs = 0\n", "runs"),
        ("dataset = \"heart\"\ndata = \"t.csv\"\n", "dataset"),
    ] {
        let heart = if plan.contains("dataset") { "" } else { "dataset = \"heart\"\nrounds = 2\n" };
        std::fs::write(at.join("plan.toml"), format!("{heart}{plan}")).unwrap();
        refused_in(at, &["simulate", "--plan", "plan.toml"], &[needle]);
    }
}

#[test]
fn a_folder_that_cannot_be_made_or_written() {
    let folder = tempfile::tempdir().unwrap();
    write_study(folder.path(), &table(30), SCHEMA);
    let at = folder.path();
    let study = ["simulate", "--data", "t.csv", "--schema", "s.toml", "--rounds", "2", "--quiet", "--json"];
    let before = listing(at);
    for out in ["t.csv", "t.csv/deeper/still"] {
        let error = refused(at, &[&study[..], &["--out", out]].concat());
        assert!(error.contains("--out") && error.contains(out), "{error}");
        assert_eq!(listing(at), before);
    }
    // Without --out the folder is made under runs/, here a file.
    std::fs::write(at.join("runs"), "").unwrap();
    assert!(refused(at, &study).contains("'runs'"));
}

#[test]
fn a_run_that_stops_half_way_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write_study(folder.path(), &table(30), SCHEMA);
    let at = folder.path();
    // No solver certifies a residual this small.
    let args =
        ["simulate", "--data", "t.csv", "--schema", "s.toml", "--rounds", "2", "--tolerance", "1e-200"];
    refused_in(at, &args, &["site 'north'"]);
}

#[test]
fn models_that_are_damaged() {
    let folder = tempfile::tempdir().unwrap();
    write_study(folder.path(), &table(30), SCHEMA);
    let at = folder.path();
    ok(
        at,
        &["simulate", "--data", "t.csv", "--schema", "s.toml", "--rounds", "3", "--quiet", "--out", "out"],
    );
    let whole = std::fs::read_to_string(at.join("out/model.json")).unwrap();
    ok(at, &["evaluate", "--model", "out/model.json", "--data", "t.csv"]);
    let damaged = [
        (whole[..whole.len() / 2].to_owned(), "complete"),
        (String::new(), "complete"),
        (whole.replace("padmm-model/1", "padmm-model/9"), "padmm-model/9"),
        (whole.replace("\"logistic\"", "\"median\""), "median"),
        (whole.replace("\"logistic\"", "{\"poisson\": {\"cap\": 5.0}}"), "label"),
        (whole.replace("\"logistic\"", "{\"huberized-hinge\": {\"width\": -1.0}}"), "loss"),
        (whole.replace("\"logistic\"", "\"squared\""), "label"),
        (whole.replacen("\"name\": \"age\"", "\"name\": \"Age\"", 1), "altered"),
    ];
    for (text, needle) in damaged {
        assert_ne!(text, whole);
        std::fs::write(at.join("cut.json"), text).unwrap();
        for command in ["predict", "evaluate"] {
            let error = refused(at, &[command, "--model", "cut.json", "--data", "t.csv"]);
            assert!(error.contains("cut.json") && error.contains(needle), "{error}");
        }
        let before = listing(at);
        refused(at, &["predict", "--model", "cut.json", "--data", "t.csv", "--out", "p.csv"]);
        assert_eq!(listing(at), before);
    }
    assert!(refused(at, &["predict", "--model", "none.json", "--data", "t.csv"]).contains("none.json"));
    assert!(refused(at, &["predict", "--data", "t.csv"]).contains("--model"));
}

#[test]
fn account_and_theory_name_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["--epsilon", "0"], &["--epsilon"]),
        (&["--epsilon", "-1"], &["--epsilon"]),
        (&["--epsilon", "NaN"], &["--epsilon"]),
        (&["--epsilon", "2e6"], &["--epsilon"]),
        (&["--delta", "0"], &["--delta"]),
        (&["--delta", "1"], &["--delta"]),
        (&["--delta", "NaN"], &["--delta"]),
        (&["--decay", "0"], &["--decay"]),
        (&["--decay", "1.5"], &["--decay"]),
        (&["--rounds", "0"], &["--rounds"]),
        (&["--accountant", "bogus"], &["--accountant", "bogus"]),
    ];
    for (flags, needles) in cases {
        for command in ["account", "theory"] {
            let error = refused(folder.path(), &[&[command], *flags].concat());
            assert!(needles.iter().all(|n| error.contains(n.trim_start_matches('-'))), "{command}: {error}");
        }
    }
    for (flags, needle) in [
        (&["--noise-multiplier", "0"][..], "--noise-multiplier"),
        (&["--noise-multiplier", "1e-200"], "--noise-multiplier"),
        (&["--rho", "-1"], "--rho"),
        (&["--rho-first", "NaN"], "--rho-first"),
        (&["--rho", "1", "--epsilon", "1"], "--epsilon"),
        (&["--rho-first", "1", "--noise-multiplier", "1"], "--noise-multiplier"),
        (&["--features", "0"], "--features"),
        (&["--group-records", "0"], "--group-records"),
        (&["--group-sites", "0"], "--group-sites"),
        (&["--rounds", "2000000"], "--rounds"),
        (&["--rounds", "1000", "--decay", "0.01"], "--decay"),
        (&["--epsilon", "1e-300", "--accountant", "paper"], "--epsilon"),
    ] {
        let error = refused(folder.path(), &[&["account"], flags].concat());
        assert!(error.contains(needle), "{error}");
    }
    assert_eq!(padmm(folder.path(), &["account", "--help"]).status.code(), Some(0));
}
