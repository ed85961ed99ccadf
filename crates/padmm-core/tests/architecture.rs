//! What must be absent from the sources, read from the sources.

#![allow(clippy::disallowed_methods, reason = "a test may read the files that it is about")]

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

/// The macros in which texts are put together, each from its name to its closing parenthesis, with the line where it begins.
fn formatting(text: &str) -> Vec<(usize, &str)> {
    let mut found = vec![];
    for name in [
        "format!(",
        "format_args!(",
        "write!(",
        "writeln!(",
        "print!(",
        "println!(",
        "eprint!(",
        "eprintln!(",
        "bail!(",
        "ensure!(",
        "error(",
    ] {
        for (start, _) in text.match_indices(name) {
            let (mut depth, mut in_text, mut end) = (0usize, false, text.len());
            let mut bytes = text.bytes().enumerate().skip(start);
            while let Some((at, byte)) = bytes.next() {
                match byte {
                    b'\\' if in_text => drop(bytes.next()),
                    b'"' => in_text = !in_text,
                    b'(' if !in_text => depth += 1,
                    b')' if !in_text => {
                        depth -= 1;
                        if depth == 0 {
                            end = at;
                            break;
                        }
                    }
                    _ => {}
                }
            }
            found.push((1 + text[..start].matches('\n').count(), &text[start..end]));
        }
    }
    found
}

/// What a formatting macro prints with so many decimals or with an exponent: the names within braces, or the arguments that stand for them.
fn rounded_arguments(call: &str) -> Vec<String> {
    let Some(open) = call.find('"') else { return vec![] };
    let bytes = call.as_bytes();
    let close =
        (open + 1..call.len()).find(|&i| bytes[i] == b'"' && bytes[i - 1] != b'\\').unwrap_or(call.len() - 1);
    let (mut arguments, mut depth, mut last) = (vec![], 0i32, close + 1);
    for (i, byte) in bytes.iter().enumerate().skip(close + 1) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                arguments.push(call[last..i].trim());
                last = i + 1;
            }
            _ => {}
        }
    }
    arguments.push(call[last..].trim());
    // What comes before the first comma is nothing.
    let arguments = &arguments[1..];
    let (mut found, mut place) = (vec![], 0);
    for piece in call[open..close].replace("{{", "").split('{').skip(1) {
        let Some((inside, _)) = piece.split_once('}') else { continue };
        let (name, spec) = inside.split_once(':').unwrap_or((inside, ""));
        let argument = if name.is_empty() {
            place += 1;
            arguments.get(place - 1).copied().unwrap_or_default()
        } else {
            name
        };
        if spec.contains('.') || spec.ends_with('e') {
            found.push(argument.to_owned());
        }
    }
    found
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
    let links = |name: &str| dependencies_in(name, &["dependencies", "build-dependencies"]);
    assert_eq!(own_dependencies("padmm-privacy"), [""; 0]);
    assert_eq!(links("padmm-core"), ["padmm-privacy"]);
    assert_eq!(links("padmm-baselines"), ["padmm-core", "padmm-privacy"]);
    assert!(links("padmm-data").iter().all(|d| d == "padmm-core" || d == "padmm-privacy"));
    assert_eq!(links("padmm-sim"), ["padmm-baselines", "padmm-core", "padmm-data", "padmm-privacy"]);
    // What both commands share brings neither the simulator nor the network with it.
    assert_eq!(links("padmm-commands"), ["padmm-core", "padmm-data", "padmm-privacy"]);
    // A hospital's program may attack itself, so the attack must not bring the simulator with it.
    assert_eq!(links("padmm-audit"), ["padmm-core", "padmm-node", "padmm-privacy"]);
    // Python gets the simulator and the accountant; a site that talks to others is the command's business.
    let python = ["padmm-baselines", "padmm-core", "padmm-data", "padmm-privacy", "padmm-sim"];
    assert_eq!(links("padmm-py"), python);
    for name in crates() {
        let reached = links(&name);
        let reaches = |other: &str| reached.contains(&other.to_owned());
        // Simulation and the commands are leaves: what holds real records must not reach seeded noise, nor noise made of doubles.
        let may_simulate =
            ["padmm", "padmm-cli", "padmm-lab", "padmm-py", "padmm-sim"].contains(&name.as_str());
        assert!(may_simulate || !reaches("padmm-sim"), "{name} depends on padmm-sim");
        assert!(may_simulate || !reaches("padmm-baselines"), "{name} depends on padmm-baselines");
        for command in ["padmm-cli", "padmm-relay", "padmm-site"] {
            assert!(name == "padmm-lab" || !reaches(command), "{name} depends on {command}");
        }
        assert!(!reaches("padmm-lab"), "{name} depends on the test build");
        // The doors to the network and to signals are asynchronous, and only Python's crate is Python's.
        let manifest = fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        let names = |dependency: &str| manifest.lines().any(|line| line.starts_with(dependency));
        assert!(
            ["padmm-node", "padmm-relay", "padmm-lab"].contains(&name.as_str()) || !names("tokio"),
            "{name} depends on tokio"
        );
        assert!(name == "padmm-py" || !names("pyo3"), "{name} depends on PyO3");
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

/// Tests of a crate are one program (`tests/main.rs`), so a file that no program names would never run.
#[test]
fn every_file_of_tests_is_run() {
    for name in crates() {
        let folder = format!("crates/{name}/tests");
        let files = rust_files(&folder);
        let Some((_, main)) = files.iter().find(|(path, _)| *path == format!("{folder}/main.rs")) else {
            continue;
        };
        let manifest = fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        for (path, _) in &files {
            let file = path.strip_prefix(&format!("{folder}/")).unwrap();
            // Either a file of the folder, or the first of a folder of its own.
            let module = match file.split_once('/') {
                None => file.strip_suffix(".rs").unwrap(),
                Some((module, "main.rs")) => module,
                Some(_) => continue,
            };
            let is_named = main.contains(&format!("mod {module};\n"));
            let is_apart = manifest.contains(&format!("path = \"tests/{file}\""));
            assert!(is_named || is_apart, "{path} is in no program: name it in {folder}/main.rs");
        }
    }
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

/// Whether an expression is about a privacy loss.
fn is_privacy_loss(expression: &str) -> bool {
    let words = expression.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_one = |word: &str| {
        ["epsilon", "delta", "spent"].iter().any(|name| word.starts_with(name))
            || ["e", "eps"].contains(&word)
    };
    words.into_iter().any(is_one)
}

/// An epsilon that is rounded to the nearest is half the time too small. One file rounds, outward; everybody else asks it.
#[test]
fn numbers_about_privacy_are_said_by_one_file() {
    let names = crates();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut found = vec![];
    for (name, text) in sources(&names).iter().filter(|(name, _)| name != "crates/padmm-privacy/src/words.rs")
    {
        // What unit tests say to a developer is not said to people.
        let text = text.split("#[cfg(test)]\nmod").next().unwrap_or_default();
        for (line, call) in formatting(text) {
            let rounded = rounded_arguments(call).into_iter().filter(|argument| is_privacy_loss(argument));
            found.extend(rounded.map(|argument| format!("{name}:{line}: {argument}")));
        }
        for (line, code) in code(text) {
            let by_hand = (3..=6).any(|digits| code.contains(&format!("* 1e{digits}).ceil()")));
            let factor = code.split(".exp()").next().is_some_and(|before| {
                before.len() < code.len()
                    && is_privacy_loss(
                        before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default(),
                    )
            });
            if by_hand || factor {
                found.push(format!("{name}:{line}: {}", code.trim()));
            }
        }
    }
    for entry in fs::read_dir(root().join("python/padmm")).unwrap().map(|e| e.unwrap().path()) {
        if entry.extension().is_none_or(|e| e != "py") {
            continue;
        }
        let text = fs::read_to_string(&entry).unwrap();
        for (line, code) in text.lines().enumerate() {
            for piece in code.split('{').skip(1).filter_map(|piece| piece.split_once('}')) {
                let is_rounded = piece.0.rsplit_once(":.").is_some_and(|(name, _)| is_privacy_loss(name));
                if is_rounded {
                    found.push(format!("{}:{}: {}", entry.display(), line + 1, piece.0));
                }
            }
        }
    }
    assert!(found.is_empty(), "say it with padmm_privacy::words:\n{}", found.join("\n"));
}

/// The test above sees what it is meant to see.
#[test]
fn rounding_by_hand_is_noticed() {
    let text = "let a = format!(\"loss {:.4}, {} and {:.4}\", f(x, y), z, up(p.epsilon_exact));\nlet b = format!(\"{spent:e}\");";
    let calls = formatting(text);
    assert_eq!(calls.iter().map(|c| c.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(rounded_arguments(calls[0].1), ["f(x, y)", "up(p.epsilon_exact)"]);
    assert_eq!(rounded_arguments(calls[1].1), ["spent"]);
    assert!(
        is_privacy_loss("up(p.epsilon_exact)") && is_privacy_loss("spent") && !is_privacy_loss("f(x, y)")
    );
}
