//! `docs/settings.md` is the table of declarations, written out. `PADMM_WRITE_SETTINGS=1 cargo test --release --workspace --test
//! sim_tests settings_reference` writes it again.

use std::fmt::Write;
use std::path::Path;

use padmm_core::settings::{Kind, Setting};
use padmm_sim::{simulation_settings, source_settings};

const INTRODUCTION: &str = "# Settings

Every setting has one declaration, from which this page, the flags of the commands, the keys of a
`plan.toml` and the keywords of Python are made: `loss-width` is `--loss-width`, `loss-width = 0.1`
and `loss_width=0.1`. `padmm-site plan new` takes those that sites have to agree on.
";

fn page() -> String {
    let all: Vec<Setting> = source_settings().into_iter().chain(simulation_settings()).collect();
    let mut groups: Vec<_> = all.iter().map(|setting| setting.group).collect();
    groups.sort();
    groups.dedup();
    let mut text = INTRODUCTION.to_owned();
    for group in groups {
        writeln!(text, "\n## {}\n\n| setting | value | what it does |\n|---|---|---|", group.title())
            .unwrap();
        for setting in all.iter().filter(|setting| setting.group == group) {
            let kind = match setting.kind {
                Kind::Text => "text",
                Kind::Number => "number",
                Kind::Count => "whole number",
            };
            writeln!(text, "| `{}` | {kind} | {} |", setting.name, setting.help.replace('|', "\\|")).unwrap();
        }
    }
    text
}

#[test]
fn the_page_of_settings_is_what_is_declared() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    if std::env::var_os("PADMM_WRITE_SETTINGS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page(), "docs/settings.md is out of date");
}
