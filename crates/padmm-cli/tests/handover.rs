//! `padmm site`, `plan`, `ledger`, `audit` and `demo` start `padmm-site`: here a script that stands in for it, beside a copy of `padmm`.

#![cfg(unix)]

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{json, ok};
use serde_json::{Value, json};

/// Says by which path it was started and with which arguments, one a line, and exits with 7.
const TELLTALE: &str = "#!/bin/sh\necho \"$0\"\nprintf '%s\\n' \"$@\"\nexit 7\n";

fn write_script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The program alone in a folder of its own.
fn copy_into(folder: &Path) -> PathBuf {
    let copy = folder.join("padmm");
    std::fs::create_dir_all(folder).unwrap();
    std::fs::hard_link(common::PROGRAM, &copy)
        .or_else(|_| std::fs::copy(common::PROGRAM, &copy).map(drop))
        .unwrap();
    copy
}

/// Runs a copy with nothing on the path but `path` and the system's shell.
fn run(program: &Path, path: &Path, args: &[&str]) -> Output {
    let path = std::env::join_paths([path, Path::new("/bin"), Path::new("/usr/bin")]).unwrap();
    loop {
        let output = Command::new(program).env("PATH", &path).args(args).output().unwrap();
        // A child of another test, between its fork and its exec, may still hold a script that was open for writing when it was
        // forked; the system refuses to start such a file.
        if !String::from_utf8_lossy(&output.stderr).contains("Text file busy") {
            return output;
        }
    }
}

fn lines(output: &Output) -> Vec<&str> {
    std::str::from_utf8(&output.stdout).unwrap().lines().collect()
}

#[test]
fn arguments_and_exit_code_pass_through() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy_into(folder.path());
    let beside = folder.path().join("padmm-site");
    write_script(&beside, TELLTALE);
    for args in [
        &["site", "run", "--home", "a b", "--json", "--", "-x"][..],
        &["plan", "--help"],
        &["ledger"],
        &["audit", "--unheard-of", "--version"],
        &["help", "plan", "new"],
    ] {
        let output = run(&program, folder.path(), args);
        assert_eq!(output.status.code(), Some(7), "{args:?}");
        assert_eq!(lines(&output)[0], beside.to_str().unwrap());
        assert_eq!(lines(&output)[1..], *args);
    }
}

#[test]
fn a_relay_is_a_program_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy_into(folder.path());
    let beside = folder.path().join("padmm-relay");
    let missing = run(&program, folder.path(), &["relay", "--cards", "x"]);
    let text = String::from_utf8(missing.stderr).unwrap();
    assert_eq!(missing.status.code(), Some(2), "{text}");
    assert!(text.contains("cargo build --release --bin padmm-relay"), "{text}");
    write_script(&beside, TELLTALE);
    for (args, handed) in [
        (&["relay", "--cards", "a b", "--plan", "p"][..], &["--cards", "a b", "--plan", "p"][..]),
        (&["help", "relay"], &["--help"]),
    ] {
        let output = run(&program, folder.path(), args);
        assert_eq!(output.status.code(), Some(7), "{args:?}");
        assert_eq!(lines(&output)[0], beside.to_str().unwrap());
        assert_eq!(lines(&output)[1..], *handed);
    }
}

#[test]
fn the_program_on_the_path_serves_where_there_is_none_beside() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy_into(&folder.path().join("bin"));
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    write_script(&elsewhere.join("padmm-site"), TELLTALE);
    let output = run(&program, &elsewhere, &["ledger", "show", "x"]);
    assert_eq!((output.status.code(), lines(&output).len()), (Some(7), 4));
    assert_eq!(lines(&output)[0], elsewhere.join("padmm-site").to_str().unwrap());
    // One beside goes first.
    write_script(&folder.path().join("bin/padmm-site"), "#!/bin/sh\nexit 3\n");
    assert_eq!(run(&program, &elsewhere, &["ledger"]).status.code(), Some(3));
}

#[test]
fn without_it_a_person_is_told_where_to_get_it_and_the_rest_works() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy_into(folder.path());
    for args in [
        &["site", "init"][..],
        &["plan"],
        &["ledger"],
        &["doctor"],
        &["audit"],
        &["demo", "sites", "--quiet"],
    ] {
        let output = run(&program, folder.path(), args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}: {text}");
        assert!(text.starts_with("error: ") && text.trim_end().lines().count() == 1, "{text}");
        assert!(text.contains("cargo build --release --bin padmm-site"), "{text}");
    }
    // A file that is no program is another matter.
    std::fs::write(folder.path().join("padmm-site"), "").unwrap();
    let output = run(&program, folder.path(), &["site"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be started"));
    assert!(run(&program, folder.path(), &["account", "--json"]).status.success());
    let help = run(&program, folder.path(), &["--help"]);
    for name in ["site", "plan", "ledger", "doctor", "audit", "relay", "demo", "simulate"] {
        let is_listed = |line: &&str| line.trim_start().starts_with(&format!("{name} "));
        assert!(lines(&help).iter().any(is_listed), "{name}: {}", String::from_utf8_lossy(&help.stdout));
    }
}

/// What `padmm-site demo` would have said about two sites that hold a half of the hospitals' records each.
fn outcome(folder: &Path) -> Value {
    ok(folder, &["data", "export", "heart", "--out", "heart.csv"]);
    ok(folder, &["simulate", "--dataset", "heart", "--rounds", "5", "--quiet", "--out", "run"]);
    let record = json(&std::fs::read_to_string(folder.join("run/record.json")).unwrap());
    let table = std::fs::read_to_string(folder.join("heart.csv")).unwrap();
    let (header, rows) = table.split_once('\n').unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    let mut sites = vec![];
    for (name, own) in ["north", "south"].iter().zip(rows.chunks(rows.len() / 2)) {
        let data = folder.join(format!("{name}.csv"));
        std::fs::write(&data, format!("{header}\n{}\n", own.join("\n"))).unwrap();
        let model = folder.join("run/model.json");
        sites.push(json!({
            "name": name, "records": own.len(), "data": data, "model": model, "epsilon": 4.99
        }));
    }
    json!({
        "dataset": "heart", "folder": folder, "sites": sites, "edges": [[0, 1]], "plan": record["setting"]["plan"],
        "seconds": 1.5, "payloads": 10, "verified": true,
    })
}

#[test]
fn a_demonstration_is_compared_with_the_simulator() {
    let folder = tempfile::tempdir().unwrap();
    let (at, program) = (folder.path(), copy_into(folder.path()));
    std::fs::write(at.join("said.json"), outcome(at).to_string()).unwrap();
    // The stand-in writes the outcome to the file that follows --outcome.
    let script = format!(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = --outcome ] && cp '{}' \"$2\"; shift; done\n",
        at.join("said.json").display()
    );
    write_script(&at.join("padmm-site"), &script);
    let output = run(&program, at, &["demo", "sites", "--rounds", "5"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for needle in [
        "north",
        "460",
        "4.9900",
        "verified",
        "2 sites, 5 rounds in 1.5 s, 10 payloads",
        "the simulator, with",
        "--out DIR",
    ] {
        assert!(text.contains(needle), "`{needle}` is not in {text}");
    }
    let output = run(&program, at, &["demo", "sites", "--json", "--out", "kept"]);
    let answer = json(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!((&answer["payloads"], &answer["identical_to_simulator"]), (&json!(10), &Value::Null));
    assert_eq!(answer["epsilon_exact"], json!({ "north": 4.99, "south": 4.99 }));
    // What fails over there fails here with the same code, and another version is named as such.
    write_script(&at.join("padmm-site"), TELLTALE);
    assert_eq!(run(&program, at, &["demo", "sites"]).status.code(), Some(7));
    std::fs::write(at.join("said.json"), "{\"sites\": 2}").unwrap();
    write_script(&at.join("padmm-site"), &script);
    let output = run(&program, at, &["demo", "sites"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("another version"));
}
