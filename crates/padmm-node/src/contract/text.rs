//! `plan.toml`: TOML that a person can read from top to bottom.

use std::collections::BTreeMap;
use std::path::Path;

use padmm_core::algorithm::Audience;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Contract, ContractDraft, ContractError};

/// Reads TOML; errors name file and line.
pub(super) fn parse<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, ContractError> {
    let line = |span: std::ops::Range<usize>| 1 + text[..span.start.min(text.len())].matches('\n').count();
    toml::from_str(text).map_err(|error| ContractError::Text {
        path: path.to_owned(),
        line: error.span().map(line),
        problem: error.message().to_owned(),
    })
}

/// The first keys of a plan, which stand above all tables.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Head<'a> {
    format: u32,
    name: &'a str,
    program: &'a str,
    schema_hash: &'a str,
}

/// The text of a plan. Every part is serialised by itself, so that comments can stand between them.
pub(super) fn write(contract: &Contract) -> String {
    let draft: &ContractDraft = contract.draft();
    let head = Head {
        format: draft.format,
        name: draft.name.as_str(),
        program: &draft.program,
        schema_hash: &draft.schema_hash,
    };
    let edges: String = draft.edges.iter().map(|(a, b)| format!("  [\"{a}\", \"{b}\"],\n")).collect();
    let hears = match draft.settings.algorithm.spec().audience() {
        Audience::Neighbours => " A site's noisy models go to its neighbours only.",
        Audience::Everybody => " What a site releases is passed on to all sites, with its signature.",
    };
    let mut text = format!(
        "# A plan of padmm: what the sites named here agree to compute together, and what it may cost the people in their\n\
         # records. Nothing in it is secret. Before accepting it: padmm-site plan check FILE\n\
         # Its hash (comments and layout do not count): {}\n\
         {}\n\
         # Who sends to whom.{}\n\
         edges = [\n{edges}]\n\n\
         # What is computed. `epsilon` and `delta` bound what one record of a site can change in all that the site sends, over\n\
         # all rounds together. Algorithm, weights, rounds and penalty were named, or fixed from public numbers alone.\n{}\n\
         # What happens if a site is not heard of: the others wait, or its neighbours leave it behind after some seconds.\n{}",
        contract.hash(),
        part(&head),
        hears,
        table("settings", &draft.settings),
        table("silence", &draft.silence),
    );
    if let Some(trust) = &draft.trust {
        text += "\n# Every site's certificate must have been issued by this authority.\n";
        text += &table("trust", trust);
    }
    text += "\n# The sites. `records` is public; `fingerprint` is that of the site's identity key: compare yours, and those of the\n\
             # others over the telephone.\n";
    text += &table("site", &draft.sites);
    text += "\n# What the columns mean. All bounds and categories are public constants, none is computed from records.\n";
    text + &table("schema", &draft.schema)
}

fn table<T: Serialize>(key: &str, value: &T) -> String {
    part(&BTreeMap::from([(key, value)]))
}

fn part<T: Serialize>(value: &T) -> String {
    toml::to_string(value).expect("a plan is plain text and finite numbers")
}
