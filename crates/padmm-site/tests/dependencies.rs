//! What a hospital approves, crate by crate: the simulator, the compared methods, pictures and Python are absent from `padmm-site`, and the
//! network and the database from `padmm`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every crate that is linked into a package's program, by name.
fn linked(package: &str) -> BTreeSet<String> {
    let args = ["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(args)
        .args(["--package", package])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned);
    names.filter(|name| !name.is_empty()).collect()
}

fn assert_absent(package: &str, present: &[&str], forbidden: &[&str]) {
    let all = linked(package);
    for name in present {
        assert!(all.contains(*name), "the tree of {package} is not read: {name} is not in it");
    }
    let found: Vec<_> = forbidden.iter().filter(|name| all.contains(**name)).collect();
    assert!(found.is_empty(), "{package} links {found:?}");
}

#[test]
fn a_hospitals_program_has_no_simulator_no_pictures_and_no_python() {
    let forbidden = [
        "padmm-sim",
        "padmm-baselines",
        "padmm-bench",
        "padmm-lab",
        "padmm-cli",
        "padmm-py",
        "padmm-testbuild",
        "padmm-browser",
        // A relay is a program of its own: its server stays out of this one.
        "padmm-relay",
        "tokio-rustls-acme",
        "rustls-cert-reloadable-resolver",
        "resvg",
        "usvg",
        "tiny-skia",
        "dejavu",
        "pyo3",
        "numpy",
    ];
    assert_absent("padmm-site", &["padmm-node", "padmm-audit", "iroh", "rusqlite"], &forbidden);
}

#[test]
fn simulations_are_built_without_network_and_database() {
    let forbidden = [
        "padmm-site",
        "padmm-relay",
        "padmm-node",
        "padmm-audit",
        "iroh",
        "quinn",
        "tokio",
        "rustls",
        "rusqlite",
        "libsqlite3-sys",
        "pyo3",
    ];
    assert_absent("padmm-cli", &["padmm-sim", "padmm-commands", "resvg"], &forbidden);
}

/// Every Rust file below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (mut pending, mut files) = (vec![folder.to_owned()], vec![]);
    while let Some(next) = pending.pop() {
        for path in std::fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files
}

/// The only program that is ever started is the one that runs: `Command::new` stands where sites of this machine are started, and where
/// a site is asked for its word on neighbouring files.
#[test]
fn the_only_program_that_is_started_is_this_one() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut starters = vec![];
    for name in linked("padmm-site").iter().filter(|name| name.starts_with("padmm")) {
        let sources = crates.join(name).join("src");
        for path in rust_files(&sources) {
            let text = std::fs::read_to_string(&path).unwrap();
            // The flags' parser has a type of the same name, whose calls have other arguments.
            if text.contains("process::{Command")
                || text.contains("process::{Child, Command")
                || text.contains("process::Command")
            {
                starters.push((name.clone(), path.strip_prefix(&sources).unwrap().to_owned(), text));
            }
        }
    }
    starters.sort();
    let places: Vec<String> =
        starters.iter().map(|(name, path, _)| format!("{name}/{}", path.display())).collect();
    assert_eq!(places, ["padmm-site/cmd/audit/neighbours.rs", "padmm-site/network/processes.rs"]);
    for (_, _, text) in &starters {
        assert!(text.contains("std::env::current_exe()"), "it starts itself");
        assert_eq!(text.matches("Command::new(").count(), 1, "and nothing else");
    }
}
