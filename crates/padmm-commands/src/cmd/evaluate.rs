//! `padmm evaluate`: a saved model scored on records with labels.

use super::OWN_EYES;
use crate::terminal::{print, print_json, warn};
use anyhow::{bail, ensure};
use clap::Args as ClapArgs;
use padmm_core::evaluate::{recalibrations, score};
use padmm_core::metrics::BestConstant;
use padmm_core::model::Model;
use padmm_core::schema::{Encoded, Purpose};
use padmm_data::{encode_file, read_model_inside, shipped_set};
use serde_json::json;
use std::path::PathBuf;

/// Flags of `evaluate`, the same in both programs.
#[derive(ClapArgs)]
pub struct Args {
    /// The saved model, a model.json or, at the site that it belongs to, an own-model.json
    #[arg(long, value_name = "model.json")]
    model: PathBuf,
    /// A CSV or Parquet file with the model's columns and the label
    #[arg(long, value_name = "FILE", required_unless_present = "dataset", conflicts_with = "dataset")]
    data: Option<PathBuf>,
    /// A shipped data set in place of a file
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Scores the model and prints accuracy, AUC, calibration and mean loss, beside what a constant would have; they are for the site's own eyes.
pub fn run(args: Args) -> anyhow::Result<()> {
    let model = read_model_inside(&args.model)?;
    let (name, data) = records(&args, &model)?;
    let n_records = data.records.n_records();
    ensure!(
        n_records > 0,
        "{name}: no records are left to score ({} dropped for missing values)",
        data.n_dropped
    );
    let scores = score(model.loss(), &[&data.records], model.values(), true);
    let calibration = recalibrations(model.loss(), &[&data.records], &[model.values()]).remove(0);
    let constant = BestConstant::of(model.loss(), &[&data.records]);
    if args.json {
        warn(&format!("{OWN_EYES}\n"));
        return print_json(&json!({
            "records": n_records, "dropped": data.n_dropped, "accuracy": scores.accuracy, "auc": scores.auc,
            "mean_loss": scores.mean_loss, "loss": model.loss(), "privacy": model.privacy(),
            "majority_accuracy": constant.accuracy, "base_rate_loss": constant.loss, "calibration": calibration,
        }));
    }
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |v| format!("{v:.6}"));
    let beside =
        |value: Option<f64>, what: &str| value.map_or(String::new(), |v| format!(" ({what}: {v:.6})"));
    let line = calibration
        .map_or("–".to_owned(), |c| format!("intercept {:.4}, slope {:.4}", c.intercept, c.slope));
    print(&format!(
        "{name}: {n_records} records ({} dropped for missing values)\n\
         accuracy     {}{}\nAUC          {}\ncalibration  {line}\nmean loss    {}{}, {}\n{OWN_EYES}\n",
        data.n_dropped,
        number(scores.accuracy),
        beside(constant.accuracy, "always the larger class"),
        number(scores.auc),
        number(Some(scores.mean_loss)),
        beside(Some(constant.loss), "the best constant"),
        model.loss(),
    ))
}

fn records(args: &Args, model: &Model) -> anyhow::Result<(String, Encoded)> {
    match (&args.data, &args.dataset) {
        (Some(path), _) => {
            Ok((path.display().to_string(), encode_file(path, model.schema(), Purpose::Evaluate)?))
        }
        (None, Some(name)) => {
            let set = shipped_set(name)?;
            // The norm bound is the model's own: a run with capped slopes does not scale rows down.
            if set.schema().with_norm_bound(model.schema().norm_bound()) != *model.schema() {
                bail!(
                    "the model was trained with another schema than that of the shipped `{name}`; export it \
                       (padmm data export {name}) and use --data"
                );
            }
            let mut encoded = set.encode()?;
            encoded.records = encoded.records.with_norm_bound(model.schema().norm_bound());
            Ok((name.clone(), encoded))
        }
        (None, None) => bail!("name the records: --data FILE or --dataset NAME"),
    }
}
