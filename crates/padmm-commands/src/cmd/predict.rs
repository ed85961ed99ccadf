//! `padmm predict`: a saved model applied to a file.

use crate::terminal::{print, print_json, warn};
use clap::Args as ClapArgs;
use padmm_core::model::Model;
use padmm_core::schema::{Label, Purpose};
use padmm_data::{column_of, encode_file, read_model_inside, write_atomically};
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
    /// A column of the file, such as an identifier, that is written beside each prediction; the schema need not know it
    #[arg(long, value_name = "COLUMN")]
    id: Option<String>,
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
    /// What the column says that was asked for.
    id: Option<String>,
    margin: f64,
    probability: Option<f64>,
    label: String,
}

/// Predicts every complete row; rows with missing values are counted on standard error.
pub fn run(args: Args) -> anyhow::Result<()> {
    let model = read_model_inside(&args.model)?;
    let data = encode_file(&args.data, model.schema(), Purpose::Predict)?;
    let mut ids = args.id.as_deref().map(|column| column_of(&args.data, column)).transpose()?;
    if data.n_dropped > 0 {
        warn(&format!(
            "{} of {} rows have missing values and get no prediction.\n",
            data.n_dropped, data.n_read
        ));
    }
    let margins = model.margins(&data.records);
    let mut predictions: Vec<Prediction> =
        data.row_numbers.iter().zip(margins).map(|(&row, margin)| predict(&model, row, margin)).collect();
    if let Some(ids) = &mut ids {
        predictions.iter_mut().for_each(|p| p.id = Some(ids.remove(&p.row).unwrap_or_default()));
    }
    let csv = || as_csv(args.id.as_deref(), &predictions);
    if let Some(out) = &args.out {
        write_atomically(out, args.force, csv().as_bytes())?;
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
        (None, false) => print(&csv()),
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
    Prediction { row, id: None, margin, probability: model.probability(margin), label }
}

fn as_json(p: &Prediction) -> Value {
    let mut value =
        json!({ "row": p.row, "margin": p.margin, "probability": p.probability, "predicted": p.label });
    if let Some(id) = &p.id {
        value["id"] = json!(id);
    }
    value
}

/// With the column that was asked for, which comes first.
fn as_csv(id: Option<&str>, predictions: &[Prediction]) -> String {
    let beside = |text: Option<&str>| text.map(|text| quoted(text) + ",").unwrap_or_default();
    let mut text = format!("{}row,margin,probability,predicted\n", beside(id));
    for p in predictions {
        let probability = p.probability.map(|v| v.to_string()).unwrap_or_default();
        let id = beside(p.id.as_deref());
        text += &format!("{id}{},{},{probability},{}\n", p.row, p.margin, quoted(&p.label));
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
