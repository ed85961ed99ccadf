//! Files that others sent: what their authors wrote is shown within the line that tells of it, whatever it contains.

use crate::common;
use crate::pair;

use common::{ok, refused};
use pair::{Pair, RUN};

const FORGED: &str = "info north: epsilon so far 0.0000";
const BREAKS: [&str; 6] = ["\n", "\r", "\u{1b}[2K\u{1b}[1A", "\u{85}", "\u{2028}", "\u{202e}"];

/// A text in quotation marks as TOML reads it, keys included, which take one line.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// One line, as `refused` has seen to, that tells of the forged one and drives no terminal.
fn assert_forged_nothing(said: &str) {
    assert!(said.contains("epsilon so far 0.0000"), "the words were not shown: {said:?}");
    let hidden = |c: char| c != '\n' && padmm_core::printable::is_hidden(c);
    assert!(!said.contains(hidden), "{said:?}");
}

#[test]
fn the_name_on_a_card_cannot_forge_a_line() {
    let folder = tempfile::tempdir().unwrap();
    for before in BREAKS {
        let name = quoted(&format!("ash{before}{FORGED}"));
        std::fs::write(folder.path().join("card.toml"), format!("format = 1\nname = {name}\n")).unwrap();
        assert_forged_nothing(&refused(folder.path(), &["site", "card", "card.toml"]));
    }
}

#[test]
fn the_text_of_a_plan_cannot_forge_a_line() {
    let pair = Pair::new();
    let at = pair.at();
    let plan = std::fs::read_to_string(pair.home(0).join("runs").join(RUN).join("plan.toml")).unwrap();
    let line = |start: &str| plan.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    for before in BREAKS {
        let hostile = quoted(&format!("x{before}{FORGED}"));
        for (key, old) in [("program", line("program = ")), ("name", "name = \"age\"".to_owned())] {
            assert!(plan.contains(&old), "{plan}");
            std::fs::write(at.join("hostile.toml"), plan.replace(&old, &format!("{key} = {hostile}")))
                .unwrap();
            assert_forged_nothing(&refused(at, &["plan", "check", "hostile.toml"]));
        }
        // An unknown key is named in the error as well.
        std::fs::write(at.join("hostile.toml"), format!("{hostile} = 1\n{plan}")).unwrap();
        assert_forged_nothing(&refused(at, &["plan", "check", "hostile.toml"]));
    }
}

/// Of an authority's certificate the text around it is free; two plans that differ in it are compared line by line.
#[test]
fn a_difference_between_plans_is_one_line() {
    let pair = Pair::new();
    let plan = std::fs::read_to_string(pair.home(0).join("runs").join(RUN).join("plan.toml")).unwrap();
    std::fs::write(pair.at().join("a.toml"), &plan).unwrap();
    std::fs::write(pair.at().join("b.toml"), plan.replace("epsilon = 4.0", "epsilon = 3.0")).unwrap();
    let said = ok(pair.at(), &["plan", "diff", "a.toml", "b.toml"]);
    assert_eq!(said.lines().count(), 2, "{said}");
    let shown = padmm_node::contract::Difference {
        field: "trust.ca\u{1b}[2K".to_owned(),
        here: None,
        there: Some(format!("\n{FORGED}")),
    };
    let text = shown.to_string();
    assert!(text.lines().count() == 1 && !text.contains('\u{1b}'), "{text:?}");
}
