//! `padmm report`: one page from the records of earlier runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use padmm_commands::terminal::print;
use padmm_data::write_atomically;
use padmm_sim::record::{FORMAT, Record};

use crate::report;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders with a record.json each (as `padmm simulate` makes them), folders of records, or record files
    #[arg(value_name = "DIR", required = true)]
    from: Vec<PathBuf>,
    /// The HTML page to write
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut records = vec![];
    for path in &args.from {
        for file in record_files(path)? {
            records.push((file.clone(), read(&file)?));
        }
    }
    let page = match records.as_slice() {
        [(_, record)] => report::simulation(record),
        several => report::comparison(several),
    };
    write_atomically(&args.out, true, page.to_html().as_bytes())?;
    print(&format!("report  {} ({} records)\n", args.out.display(), records.len()))
}

/// The record files that a path stands for.
fn record_files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let own = path.join("record.json");
    if own.is_file() {
        return Ok(vec![own]);
    }
    let entries = std::fs::read_dir(path)
        .with_context(|| format!("'{}' is neither a record nor a folder that can be read", path.display()))?;
    let mut files: Vec<PathBuf> = entries
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<Vec<_>, _>>()
        .with_context(|| format!("the folder '{}' cannot be read", path.display()))?
        .into_iter()
        .map(|p| if p.is_dir() { p.join("record.json") } else { p })
        .collect();
    files.retain(|f: &PathBuf| f.is_file() && f.extension().is_some_and(|e| e == "json"));
    files.sort();
    if files.is_empty() {
        bail!(
            "there is no record in '{}': name a folder that `padmm simulate --out` has filled, or a record.json",
            path.display()
        );
    }
    Ok(files)
}

fn read(path: &Path) -> anyhow::Result<Record> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the record '{}' cannot be read", path.display()))?;
    let record: Record = serde_json::from_str(&text).with_context(|| {
        format!("'{}' is not a whole record: make it again with `padmm simulate`", path.display())
    })?;
    ensure!(
        record.format == FORMAT,
        "'{}' has the format {:?}, and this program reads {FORMAT:?}",
        path.display(),
        record.format
    );
    Ok(record)
}
