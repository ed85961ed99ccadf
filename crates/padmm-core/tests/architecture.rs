//! What must be absent from the sources, read from the sources.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every Rust file under `folder`, with its path from the root; an absent folder has none.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    let (root, mut pending, mut files) = (root(), vec![root().join(folder)], vec![]);
    while let Some(next) = pending.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for path in entries.map(|e| e.unwrap().path()) {
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// The sources of some crates, tests left out.
fn sources(crates: &[&str]) -> Vec<(String, String)> {
    let files: Vec<_> = crates.iter().flat_map(|c| rust_files(&format!("crates/{c}/src"))).collect();
    assert!(files.len() >= crates.len(), "every crate has sources");
    files
}

/// Names of all crates.
fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).filter(|n| n != "target").collect();
    names.sort();
    names
}

/// The code of a file: comment lines out.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(n, l)| (n + 1, l)).filter(|(_, l)| !l.trim_start().starts_with("//"))
}

/// Whether `word` stands in `line` and is not a part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(is_name)
            && !line[at + word.len()..].chars().next().is_some_and(is_name)
    })
}

/// Fails with every place where one of `words` occurs in code.
fn absent(files: &[(String, String)], words: &[&str]) {
    let mut found = vec![];
    for (name, text) in files {
        for (number, line) in code(text) {
            let hits = words.iter().filter(|w| has_word(line, w));
            found.extend(hits.map(|word| format!("{name}:{number}: {word}")));
        }
    }
    assert!(found.is_empty(), "these do not belong there:\n{}", found.join("\n"));
}

/// Crates of ours that a manifest names.
fn own_dependencies(name: &str) -> Vec<String> {
    dependencies_in(name, &["dependencies", "dev-dependencies", "build-dependencies"])
}

fn dependencies_in(name: &str, sections: &[&str]) -> Vec<String> {
    let manifest = fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
    let table: toml::Table = manifest.parse().unwrap();
    let keys = |section: &str| {
        let entries = table.get(section).and_then(|s| s.as_table()).cloned().unwrap_or_default();
        entries.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    let mut found: Vec<String> =
        sections.iter().flat_map(|s| keys(s)).filter(|k| k.starts_with("padmm")).collect();
    found.sort();
    found
}

#[test]
fn dependencies_point_one_way() {
    assert_eq!(own_dependencies("padmm-privacy"), [""; 0]);
    assert_eq!(own_dependencies("padmm-core"), ["padmm-privacy"]);
    assert!(own_dependencies("padmm-data").iter().all(|d| d == "padmm-core" || d == "padmm-privacy"));
    // Python gets the simulator and the accountant; a site that talks to others is the command's business.
    assert_eq!(own_dependencies("padmm-py"), ["padmm-core", "padmm-data", "padmm-privacy", "padmm-sim"]);
    // A hospital's program may attack itself, so the attack must not bring the simulator with it.
    assert_eq!(own_dependencies("padmm-audit"), ["padmm-core", "padmm-node", "padmm-privacy"]);
    for name in crates() {
        // Simulation and the command are leaves: what holds real records must not reach seeded noise.
        let is_test_build = name == "padmm-testbuild";
        let may_simulate = is_test_build || ["padmm-bench", "padmm-cli", "padmm-py"].contains(&name.as_str());
        // The tests of a site may compare it with the simulator; the site itself cannot reach it.
        let reached = match name.as_str() {
            "padmm-node" => dependencies_in(&name, &["dependencies", "build-dependencies"]),
            _ => own_dependencies(&name),
        };
        assert!(may_simulate || !reached.contains(&"padmm-sim".to_owned()), "{name} depends on padmm-sim");
        assert!(is_test_build || !reached.contains(&"padmm-cli".to_owned()), "{name} depends on padmm-cli");
        assert!(!reached.contains(&"padmm-testbuild".to_owned()), "{name} depends on the test build");
    }
}

#[test]
fn every_crate_forbids_unsafe_code() {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"forbid\""));
    for name in crates() {
        let manifest = fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name} does not take the workspace's lints");
    }
}

#[test]
fn only_the_gate_makes_a_release() {
    let mut makers = vec![];
    for (name, text) in sources(&["padmm-privacy", "padmm-core", "padmm-data", "padmm-sim"]) {
        for (_, line) in code(&text) {
            let declares = line.contains("struct ") || line.contains("impl");
            // Another type's name may end in the same letters.
            let mut places = line.match_indices("Release {");
            if !declares && places.any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric)) {
                makers.push(name.clone());
            }
        }
    }
    assert_eq!(makers, ["crates/padmm-privacy/src/gate.rs"]);
}

#[test]
fn nothing_here_is_asynchronous() {
    absent(
        &sources(&["padmm-privacy", "padmm-core", "padmm-data", "padmm-sim", "padmm-figure", "padmm-audit"]),
        &["async", "await", "tokio"],
    );
    // The one door to the network is asynchronous; the sessions behind it are not.
    let is_door = |name: &str| name.ends_with("padmm-node/src/transport/quic.rs");
    let node: Vec<_> = sources(&["padmm-node"]).into_iter().filter(|(name, _)| !is_door(name)).collect();
    assert!(node.len() > 20, "the walk found the crate");
    absent(&node, &["async", "await", "tokio"]);
    for name in crates() {
        let manifest = fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        assert!(name == "padmm-py" || !manifest.contains("pyo3"), "{name} depends on PyO3");
    }
}

#[test]
fn no_order_depends_on_a_hash() {
    absent(&sources(&["padmm-privacy", "padmm-core", "padmm-sim"]), &["HashMap", "HashSet", "hash_map"]);
}

#[test]
fn seeded_noise_is_out_of_reach_of_real_records() {
    let files = sources(&["padmm-privacy", "padmm-core", "padmm-data", "padmm-node", "padmm-audit"]);
    absent(&files, &["InsecureSeededNoise", "padmm_sim"]);
    for (name, text) in files {
        assert!(!text.contains("InsecureSeeded"), "{name} mentions the simulator's noise");
    }
    // The command simulates, and it runs sites; only the test build, which is another program, brings the two together.
    let command = sources(&["padmm-cli"]);
    absent(&command, &["InsecureSeededNoise"]);
    for (name, text) in command {
        assert!(!text.contains("World::for_tests"), "{name} makes a world for tests");
    }
}

#[test]
fn the_mathematics_does_no_io_and_knows_no_clock_and_no_chance() {
    let files = sources(&["padmm-privacy", "padmm-core"]);
    absent(&files, &["Instant", "SystemTime", "println", "eprintln", "print", "eprint"]);
    for (name, text) in files {
        let production = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code(production) {
            for module in ["std::fs", "std::net", "std::time", "std::process", "std::env", "rand::"] {
                assert!(!line.contains(module), "{name}:{number} uses {module}");
            }
        }
    }
}

#[test]
fn metrics_over_all_data_exist_in_the_simulator_only() {
    absent(
        &sources(&["padmm-privacy", "padmm-core", "padmm-data"]),
        &["RoundMetrics", "ModelMetrics", "Evaluation"],
    );
}

#[test]
fn files_stay_readable() {
    let files = rust_files("crates");
    assert!(files.len() > 50, "the walk found the crates");
    for (name, text) in &files {
        let lines = text.lines().count();
        assert!(lines <= 600, "{name} has {lines} lines: look for its second subject");
    }
}

#[test]
fn nothing_is_left_unfinished() {
    // Put together here, so that this file does not contain them.
    let words = ["TO", "FIX", "XX"].iter().zip(["DO", "ME", "X"]).map(|(a, b)| format!("{a}{b}"));
    let macros = ["dbg", "todo", "unimplemented"].map(|m| format!("{m}!"));
    for (name, text) in rust_files("crates") {
        for (number, line) in text.lines().enumerate() {
            for word in words.clone() {
                assert!(!has_word(line, &word), "{name}:{}: {word}", number + 1);
            }
            for word in &macros {
                assert!(!line.contains(word.as_str()), "{name}:{}: {word}", number + 1);
            }
        }
    }
}
