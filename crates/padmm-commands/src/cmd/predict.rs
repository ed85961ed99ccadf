//! `padmm predict`: a saved model applied to a file.

use crate::terminal::{print, print_json, warn};
use clap::Args as ClapArgs;
use padmm_core::model::Model;
use padmm_core::schema::{Label, Purpose};
use padmm_data::{encode_file, read_model_inside, write_atomically};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Flags of `predict`, the same in both programs.
#[derive(ClapArgs)]
pub struct Args {
    /// The saved model, a model.json or, at the site that it belongs to, an own-model.json
    #[arg(long, value_name = "model.json")]
    model: PathBuf,
    /// A CSV or Parquet file with the model's columns; the label may be absent
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Where to write the predictions; without it, standard output
    #[arg(long, value_name = "FILE.csv")]
    out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is predicted for one row.
struct Prediction {
    row: u64,
    margin: f64,
    probability: Option<f64>,
    label: String,
}

/// Predicts every complete row; rows with missing values are counted on standard error.
pub fn run(args: Args) -> anyhow::Result<()> {
    let model = read_model_inside(&args.model)?;
    let data = encode_file(&args.data, model.schema(), Purpose::Predict)?;
    if data.n_dropped > 0 {
        warn(&format!(
            "{} of {} rows have missing values and get no prediction.\n",
            data.n_dropped, data.n_read
        ));
    }
    let margins = model.margins(&data.records);
    let predictions: Vec<Prediction> =
        data.row_numbers.iter().zip(margins).map(|(&row, margin)| predict(&model, row, margin)).collect();
    if let Some(out) = &args.out {
        write_atomically(out, args.force, as_csv(&predictions).as_bytes())?;
        warn(&format!("Wrote {} predictions to {}.\n", predictions.len(), out.display()));
    }
    let (n_predicted, n_dropped) = (predictions.len(), data.n_dropped);
    match (&args.out, args.json) {
        (Some(out), true) => {
            print_json(&json!({ "predicted": n_predicted, "dropped": n_dropped, "out": out }))
        }
        (None, true) => {
            let list: Vec<Value> = predictions.iter().map(as_json).collect();
            print_json(&json!({ "predicted": n_predicted, "dropped": n_dropped, "predictions": list }))
        }
        (None, false) => print(&as_csv(&predictions)),
        (Some(_), false) => Ok(()),
    }
}

fn predict(model: &Model, row: u64, margin: f64) -> Prediction {
    let label = match model.schema().label() {
        // A margin of exactly zero counts as negative, as in the accuracy.
        Label::Binary { positive, .. } if margin > 0.0 => positive[0].clone(),
        Label::Binary { negative, .. } => negative[0].clone(),
        Label::Numeric { .. } => model.predicted_number(margin).unwrap_or(margin).to_string(),
    };
    Prediction { row, margin, probability: model.probability(margin), label }
}

fn as_json(p: &Prediction) -> Value {
    json!({ "row": p.row, "margin": p.margin, "probability": p.probability, "predicted": p.label })
}

fn as_csv(predictions: &[Prediction]) -> String {
    let mut text = "row,margin,probability,predicted\n".to_owned();
    for p in predictions {
        let probability = p.probability.map(|v| v.to_string()).unwrap_or_default();
        text += &format!("{},{},{probability},{}\n", p.row, p.margin, quoted(&p.label));
    }
    text
}

/// A CSV cell, in quotation marks where it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
