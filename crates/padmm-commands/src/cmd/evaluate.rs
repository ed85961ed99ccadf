//! `padmm evaluate`: a saved model scored on records with labels.

use super::OWN_EYES;
use crate::terminal::{print, print_json};
use anyhow::{bail, ensure};
use clap::Args as ClapArgs;
use padmm_core::evaluate::score;
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

/// Scores the model and prints accuracy, AUC and mean loss, which are for the site's own eyes.
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
    if args.json {
        eprintln!("{OWN_EYES}");
        return print_json(&json!({
            "records": n_records, "dropped": data.n_dropped, "accuracy": scores.accuracy, "auc": scores.auc,
            "mean_loss": scores.mean_loss, "loss": model.loss(), "privacy": model.privacy(),
        }));
    }
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |v| format!("{v:.6}"));
    print(&format!(
        "{name}: {n_records} records ({} dropped for missing values)\naccuracy   {}\nAUC        {}\nmean loss  {} \
         ({})\n{OWN_EYES}\n",
        data.n_dropped,
        number(scores.accuracy),
        number(scores.auc),
        number(Some(scores.mean_loss)),
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
            if set.schema() != *model.schema() {
                bail!(
                    "the model was trained with another schema than that of the shipped `{name}`; export it \
                       (padmm data export {name}) and use --data"
                );
            }
            Ok((name.clone(), set.encode()?))
        }
        (None, None) => bail!("name the records: --data FILE or --dataset NAME"),
    }
}
