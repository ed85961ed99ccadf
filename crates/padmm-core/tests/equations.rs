//! EQUATIONS.md against the sources, both ways. Its "Convention" section says what is read here.

#![allow(clippy::disallowed_methods, reason = "a test may read the files that it is about")]

use std::fs;
use std::path::{Path, PathBuf};

/// A function whose first doc line contains one of these names an equation.
const MARKS: [&str; 10] = [
    "EQUATIONS §",
    "EQUATIONS §",
    "(primal)",
    "(perturb)",
    "(dual)",
    "(Δ)",
    "(Delta)",
    "paper's Theorem",
    "paper's Lemma",
    "paper's conversion",
];

const CRATES: [&str; 4] = ["padmm-privacy", "padmm-core", "padmm-baselines", "padmm-sim"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page() -> String {
    fs::read_to_string(root().join("EQUATIONS.md")).unwrap()
}

/// A function of the sources: `padmm_core::step::gossip`, and the first line of its documentation.
struct Function {
    path: String,
    first_line: String,
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

/// `Objective` of `impl<'a> Objective<'a> {`, `ConsensusAdmm` of `impl Algorithm for ConsensusAdmm {`.
fn implemented_type(line: &str) -> Option<String> {
    let mut rest = line.strip_prefix("impl")?;
    if let Some((_, after)) = rest.split_once(" for ") {
        rest = after;
    } else if rest.starts_with('<') {
        rest = rest.split_once("> ")?.1;
    }
    Some(rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
}

/// The name after `fn` in a line that begins a function.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().take_while(|w| !w.contains('=') && !w.starts_with("//"));
    words.find(|w| *w == "fn")?;
    let rest = words.next()?;
    Some(&rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())])
}

fn functions() -> Vec<Function> {
    let mut found = vec![];
    for name in CRATES {
        let source = root().join("crates").join(name).join("src");
        let mut files = vec![];
        rust_files(&source, &mut files);
        for file in files {
            let relative = file.strip_prefix(&source).unwrap().with_extension("");
            let mut path = vec![name.replace('-', "_")];
            path.extend(relative.iter().map(|s| s.to_string_lossy().into_owned()));
            path.retain(|s| s != "mod" && s != "lib");
            let (mut owner, mut doc): (Option<String>, Option<String>) = (None, None);
            for line in fs::read_to_string(&file).unwrap().lines() {
                let trimmed = line.trim_start();
                if line.starts_with("impl") {
                    owner = implemented_type(line);
                } else if line.starts_with('}') {
                    owner = None;
                }
                if let Some(text) = trimmed.strip_prefix("///") {
                    doc.get_or_insert_with(|| text.trim().to_owned());
                } else if trimmed.starts_with("#[") {
                    // Attributes stand between the documentation and the function.
                } else {
                    if let Some(function) = function_name(trimmed) {
                        let mut full = path.clone();
                        full.extend(owner.clone());
                        full.push(function.to_owned());
                        found.push(Function {
                            path: full.join("::"),
                            first_line: doc.clone().unwrap_or_default(),
                        });
                    }
                    doc = None;
                }
            }
        }
    }
    assert!(found.len() > 200, "the sources were read");
    found
}

/// What stands between backquotes, line by line.
fn quoted(text: &str) -> Vec<&str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

fn is_function(token: &str) -> bool {
    token.starts_with("padmm_")
}

fn is_test(token: &str) -> bool {
    token.contains(".rs::")
}

/// Rows of all tables, each with the section that it stands in.
fn rows(page: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut rows = vec![];
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.to_owned();
        } else if line.starts_with("| ") && !line.starts_with("| Equation") {
            rows.push((section.clone(), line.to_owned()));
        }
    }
    rows
}

/// Whether `crates/{file}` holds a test of this name.
fn test_exists(file: &str, name: &str) -> bool {
    let Ok(text) = fs::read_to_string(root().join("crates").join(file)) else { return false };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(n, line)| {
        let above = lines[..n].iter().rev().take_while(|l| l.starts_with("#[") || l.starts_with("//"));
        function_name(line) == Some(name) && above.into_iter().any(|l| l.starts_with("#[test]"))
    })
}

#[test]
fn every_row_names_a_function_and_a_test() {
    let page = page();
    for (section, row) in rows(&page) {
        let tokens = quoted(&row);
        assert!(tokens.iter().any(|t| is_function(t)), "§ {section}: no function in {row}");
        assert!(tokens.iter().any(|t| is_test(t)), "§ {section}: no test in {row}");
    }
    for number in 1..=6 {
        let title = format!("{number}. ");
        assert!(rows(&page).iter().any(|(s, _)| s.starts_with(&title)), "section {number} has no equations");
    }
}

#[test]
fn every_function_on_the_page_exists() {
    let functions = functions();
    for token in quoted(&page()).into_iter().filter(|t| is_function(t)) {
        assert!(
            functions.iter().any(|f| f.path == token),
            "EQUATIONS.md names {token}, which does not exist"
        );
    }
}

#[test]
fn every_test_on_the_page_exists() {
    for token in quoted(&page()).into_iter().filter(|t| is_test(t)) {
        let (file, name) = token.split_once("::").unwrap();
        assert!(test_exists(file, name), "EQUATIONS.md names the test {token}, which does not exist");
    }
}

#[test]
fn every_function_that_names_an_equation_is_on_the_page() {
    let page = page();
    let listed = quoted(&page);
    let marked = functions().into_iter().filter(|f| MARKS.iter().any(|m| f.first_line.contains(m)));
    let mut n_marked = 0;
    for function in marked {
        n_marked += 1;
        let Function { path, first_line } = function;
        assert!(
            listed.contains(&path.as_str()),
            "{path} names an equation (\"{first_line}\"): add it to EQUATIONS.md"
        );
    }
    assert!(n_marked >= 20, "the convention is in use: {n_marked}");
}

#[test]
fn departures_are_told_on_the_page() {
    let page = page();
    let section = page.split("## Departures from the paper").nth(1).expect("the section exists");
    let section = section.split("\n## ").next().unwrap();
    assert!(section.lines().filter(|l| l.starts_with("- ")).count() >= 10);
    assert!(page.contains("## Default penalty"));
}
