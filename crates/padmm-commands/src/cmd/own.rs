//! `padmm own`: what a site makes of the joint model for itself, with its own records.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args as ClapArgs;
use padmm_core::model::Model;
use padmm_core::own::{Comparison, Estimate, FEWEST_RECORDS, Measures, NEVER_SENT, OwnFit, OwnInputs, fit};
use padmm_core::schema::{Encoded, Purpose};
use padmm_data::{encode_file, read_model, write_model};
use serde_json::{Value, json};

use super::OWN_EYES;
use crate::table::{align_right, plain};
use crate::terminal::{print, print_json, warn};

/// Flags of `own`, the same in both programs.
#[derive(ClapArgs)]
pub struct Args {
    /// The joint model, a model.json; it brings the schema of the records
    #[arg(long, value_name = "model.json")]
    model: PathBuf,
    /// The site's own records with labels, a CSV or Parquet file
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Where to write the site's own model [default: own-model.json beside the joint one]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Fits the own model, writes it, and shows own, joint and combined on records that they had not seen.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let joint = read_model(&args.model)?;
    let encoded = encode_file(&args.data, joint.schema(), Purpose::Evaluate)?;
    ensure!(
        encoded.records.n_records() > 0,
        "{}: no records are left to learn from ({} dropped for missing values)",
        args.data.display(),
        encoded.n_dropped
    );
    let found = fit(&inputs(&joint, &encoded), true);
    let out = args.out.clone().unwrap_or_else(|| args.model.with_file_name("own-model.json"));
    write_model(&out, &joint.own(&found)?, args.force)?;
    if args.json {
        warn(&format!("{OWN_EYES}\n"));
        let mut object = contract(&found);
        object["out"] = json!(out);
        return print_json(&object);
    }
    print(&format!("{}\nown model  {}\n{NEVER_SENT}\n", comparison_text(&found), out.display()))
}

fn inputs<'a>(joint: &'a Model, encoded: &'a Encoded) -> OwnInputs<'a> {
    OwnInputs {
        records: &encoded.records,
        space: &encoded.features,
        loss: joint.loss(),
        joint: joint.values(),
    }
}

/// What the fit found, for programs.
fn contract(found: &OwnFit) -> Value {
    json!({ "joint_share": found.joint_share, "comparison": found.comparison })
}

/// Own, joint and combined with their intervals, for people of the site.
pub fn comparison_text(found: &OwnFit) -> String {
    let Some(c) = &found.comparison else {
        return format!("Fewer than {FEWEST_RECORDS} records: the joint model is kept as it is.\n");
    };
    let mut table = plain(["", "loss", "95 %", "AUC", "95 %", "slope", "intercept"]);
    align_right(&mut table, 1..7);
    let interval = |found: &Estimate| format!("{:.4} to {:.4}", found.low, found.high);
    let mut row = |name: &str, m: &Measures| {
        let none = || "–".to_owned();
        table.add_row([
            name.to_owned(),
            format!("{:.4}", m.loss.value),
            interval(&m.loss),
            m.auc.map_or_else(none, |a| format!("{:.4}", a.value)),
            m.auc.map_or_else(none, |a| interval(&a)),
            m.calibration.map_or_else(none, |c| format!("{:.2}", c.slope)),
            m.calibration.map_or_else(none, |c| format!("{:+.2}", c.intercept)),
        ]);
    };
    row("own records alone", &c.own);
    row("joint model", &c.joint);
    row("combined", &c.combined);
    format!(
        "{table}\nOn {} records of this site, cross-validated in {} parts: no model is judged by records that it was fitted to.\n{}\n\
         {OWN_EYES}\n",
        c.records,
        c.folds,
        verdict(c)
    )
}

/// Whether taking part has helped this site, in a sentence.
fn verdict(c: &Comparison) -> String {
    let numbers = format!("(loss {:.4} lower, 95 % {:.4} to {:.4})", c.gain.value, c.gain.low, c.gain.high);
    let sentence = match (c.gain.low > 0.0, c.gain.high < 0.0) {
        (true, _) => "Taking part has helped this site",
        (_, true) => "The combined model is worse here than own records alone",
        _ => "Whether taking part has helped this site cannot be told from so many records",
    };
    format!("{sentence} {numbers}.")
}
