//! `padmm schema`: a first schema from a header, and a check of a file against a schema.

use super::OWN_EYES;
use crate::terminal::{print, print_json, warn};
use anyhow::bail;
use clap::{Args as ClapArgs, Subcommand};
use padmm_core::schema::{Unusable, unlisted_note};
use padmm_data::{CheckReport, check_file, draft_schema, read_schema, write_atomically};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// A file that loses this part of its records does not fit its schema, whatever the reasons are.
const MUCH: f64 = 0.2;

/// Flags of `schema`, the same in both programs.
#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Draft a schema from a file's header; no record is read
    Draft {
        /// A CSV or Parquet file
        file: PathBuf,
        /// Where to write the draft; without it, standard output
        #[arg(long, value_name = "FILE.toml")]
        out: Option<PathBuf>,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
    /// Check a file against a schema; no record is shown
    Check {
        /// A CSV or Parquet file
        file: PathBuf,
        /// The schema that the file has to fit
        #[arg(long, value_name = "FILE.toml")]
        schema: PathBuf,
    },
}

/// Drafts a schema or checks a file; a file that does not fit is an error.
pub fn run(args: Args) -> anyhow::Result<()> {
    match args.action {
        Action::Draft { file, out, force } => draft(&file, out.as_deref(), force, args.json),
        Action::Check { file, schema } => check(&file, &schema, args.json),
    }
}

fn draft(file: &Path, out: Option<&Path>, force: bool, json: bool) -> anyhow::Result<()> {
    let text = draft_schema(file)?;
    if let Some(out) = out {
        write_atomically(out, force, text.as_bytes())?;
    }
    match (out, json) {
        (_, true) => print_json(&json!({ "schema": text, "out": out })),
        (None, false) => print(&text),
        (Some(out), false) => print(&format!(
            "Wrote {}. Fill in what is marked FILL IN, then: padmm schema check {} --schema {}\n",
            out.display(),
            file.display(),
            out.display()
        )),
    }
}

fn check(file: &Path, schema: &Path, json: bool) -> anyhow::Result<()> {
    let report = check_file(file, &read_schema(schema)?)?;
    if json {
        let clipped: Map<String, Value> =
            report.n_clipped.iter().map(|(k, n)| (k.clone(), json!(n))).collect();
        warn(&format!("{OWN_EYES}\n"));
        print_json(&json!({
            "ok": !report.has_problems(), "records": report.n_records, "usable": report.n_usable,
            "dropped": report.n_dropped, "refused": report.n_refused, "clipped": clipped, "features": report.n_features,
            "unlisted": report.unlisted, "missing": report.missing.iter().map(counted).collect::<Vec<_>>(),
            "problems": problems(&report),
        }))?;
    } else {
        print(&in_words(&report))?;
    }
    if report.has_problems() {
        let n = problems(&report).len();
        bail!("{}: {n} problem{}; see the list above", file.display(), if n == 1 { "" } else { "s" });
    }
    Ok(())
}

fn problems(report: &CheckReport) -> Vec<String> {
    let all = report.problems.iter().map(counted);
    all.chain(report.untrainable.iter().map(ToString::to_string)).collect()
}

/// A problem of some records, in the first of which it is shown.
fn counted(problem: &Unusable) -> String {
    match problem.n_records {
        1 => problem.first.to_string(),
        n => format!("{n} rows, the first: {}", problem.first),
    }
}

fn in_words(report: &CheckReport) -> String {
    let mut text = format!(
        "{} rows: this is the number of records for a plan. Every row is a record, whatever it says. {} encoded columns.\n\
         For this site's own eyes: {} are usable, {} lack a value that is not filled, {} do not fit the schema. At a real site those that are not \
         usable count for nothing.\n",
        report.n_records, report.n_features, report.n_usable, report.n_dropped, report.n_refused
    );
    if let Some(note) = unlisted_note(&report.unlisted) {
        text += &format!("  {note}\n");
    }
    for (column, n) in report.n_clipped.iter().filter(|(_, n)| *n > 0) {
        text += &format!("  {column}: {n} values are outside the bounds and are clipped\n");
    }
    for missing in &report.missing {
        text += &format!("  missing: {}\n", counted(missing));
    }
    for problem in problems(report) {
        text += &format!("  problem: {problem}\n");
    }
    let percent = (100.0 * report.lost()).ceil();
    if report.lost() >= MUCH {
        text += &format!(
            "MANY RECORDS ARE LOST: {percent} % of them count for nothing. Look at the columns above before you sign a plan.\n"
        );
    } else if !report.has_problems() {
        text += "The file fits the schema.\n";
    }
    text + OWN_EYES + "\n"
}
