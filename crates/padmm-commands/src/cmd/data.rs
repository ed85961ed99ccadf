//! `padmm data`: what is shipped, and the way to get it out.

use crate::table::plain;
use crate::terminal::{print, print_json};
use clap::{Args as ClapArgs, Subcommand};
use padmm_core::schema::{ColumnKind, Label, MissingRule, Schema};
use padmm_data::{ShippedSet, export, shipped, shipped_set};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Flags of `data`, the same in both programs.
#[derive(ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// List the data sets (the default)
    List,
    /// Say what a data set holds, where it comes from and how it is encoded
    Describe {
        /// Name of the data set
        name: String,
    },
    /// Write a data set as one CSV file, with its schema beside it
    Export {
        /// Name of the data set
        name: String,
        /// The CSV file to write; the schema is written to STEM.schema.toml
        #[arg(long, value_name = "FILE.csv")]
        out: PathBuf,
        /// Replace the files if they exist
        #[arg(long)]
        force: bool,
    },
}

/// Lists, describes or exports the data sets that are built in.
pub fn run(args: Args) -> anyhow::Result<()> {
    match args.action.unwrap_or(Action::List) {
        Action::List if args.json => {
            let sets: Vec<Value> = shipped().iter().map(summary).collect();
            print_json(&json!({ "datasets": sets }))
        }
        Action::List => {
            let mut table = plain(["name", "records", "title", "licence"]);
            for set in shipped() {
                table.add_row([set.name, &set.n_records.to_string(), set.title, "CC BY 4.0"]);
            }
            print(&format!("{table}\n\nMore: padmm data describe NAME\n"))
        }
        Action::Describe { name } => {
            let set = shipped_set(&name)?;
            let data = set.encode()?;
            let facts =
                json!({ "complete": data.records.n_records(), "features": data.features.n_features() });
            if args.json {
                let mut value = summary(set);
                value
                    .as_object_mut()
                    .into_iter()
                    .for_each(|v| v.extend(facts.as_object().cloned().into_iter().flatten()));
                return print_json(&value);
            }
            print(&describe(set, data.records.n_records(), data.features.n_features()))
        }
        Action::Export { name, out, force } => {
            let exported = export(&name, &out, force)?;
            if args.json {
                return print_json(&json!({
                    "table": exported.table, "schema": exported.schema, "records": exported.n_records
                }));
            }
            print(&format!(
                "Wrote {} records to {} and the schema to {}.\n",
                exported.n_records,
                exported.table.display(),
                exported.schema.display()
            ))
        }
    }
}

fn summary(set: &ShippedSet) -> Value {
    let files: Vec<Value> = set.files.iter().map(|f| json!({ "name": f.name, "sha256": f.sha256 })).collect();
    json!({
        "name": set.name, "title": set.title, "description": set.description, "records": set.n_records,
        "licence": set.licence, "citation": set.citation, "files": files,
    })
}

fn describe(set: &ShippedSet, n_complete: usize, n_features: usize) -> String {
    let schema = set.schema();
    let mut table = plain(["column", "kind", "public values"]);
    for (name, kind, values) in columns(&schema) {
        table.add_row([name, kind, values]);
    }
    let files: String = set.files.iter().map(|f| format!("  {}  {}\n", f.sha256, f.name)).collect();
    let missing = match schema.missing() {
        MissingRule::Drop => "dropped",
        MissingRule::Fill => "filled from public constants",
    };
    format!(
        "{} ({})\n\n{}\n\n{} records; those with missing values are {missing}, which leaves {n_complete}. Encoded: \
         {n_features} columns, norm at most {}, {} intercept.\n\n{table}\n\nLicence: {}\nCite: {}\n\nSHA-256 of the \
         published files:\n{files}",
        set.title,
        set.name,
        set.description,
        set.n_records,
        schema.norm_bound(),
        if schema.intercept() { "with" } else { "no" },
        set.licence,
        set.citation,
    )
}

fn columns(schema: &Schema) -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    let label = match schema.label() {
        Label::Binary { positive, negative, .. } => {
            format!("{} / {}", positive.join(" "), negative.join(" "))
        }
        Label::Numeric { lower, upper, .. } => format!("{lower} to {upper}"),
    };
    rows.push((schema.label().column().to_owned(), "label".to_owned(), label));
    if let Some(site) = schema.site() {
        rows.push((
            site.column.clone(),
            "site".to_owned(),
            site.values.clone().unwrap_or_default().join(", "),
        ));
    }
    for column in schema.columns() {
        let (kind, values) = match &column.kind {
            ColumnKind::Numeric { lower, upper, .. } => ("numeric", format!("{lower} to {upper}")),
            ColumnKind::Categorical { values, .. } if values.len() > 8 => {
                ("categorical", format!("{} values", values.len()))
            }
            ColumnKind::Categorical { values, .. } => ("categorical", values.join(", ")),
            ColumnKind::Ignored => ("ignored", String::new()),
        };
        rows.push((column.name.clone(), kind.to_owned(), values));
    }
    rows
}
