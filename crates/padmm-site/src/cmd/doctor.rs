//! `padmm doctor`: whether this site can run, before anything is spent.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args as ClapArgs;
use padmm_commands::terminal::{FAILED, print, print_json};
use padmm_core::printable::printable;
use padmm_node::clock;
use padmm_node::doctor::{Check, Diagnosis, examine};
use padmm_node::identity::SiteName;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The site's home: its folder of keys, plans and ledgers
    #[arg(long, value_name = "DIR")]
    home: PathBuf,
    /// The name of the accepted plan; without it, the only one that has no model yet
    #[arg(long, value_name = "NAME")]
    run: Option<SiteName>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let found = examine(&args.home, args.run.as_ref(), clock::now());
    if args.json {
        print_json(&found)?;
    } else {
        print(&text(&found))?;
    }
    Ok(if found.ok { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn text(found: &Diagnosis) -> String {
    let width = found.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or_default();
    let line = |check: &Check| {
        let mark = if check.ok { "ok  " } else { "FAIL" };
        let advice = match check.advice.is_empty() {
            true => String::new(),
            false => format!("{:indent$}→ {}\n", "", printable(&check.advice), indent = width + 8),
        };
        format!("{mark}  {:width$}  {}\n{advice}", printable(&check.name), printable(&check.message))
    };
    let lines: String = found.checks.iter().map(line).collect();
    let n_bad = found.checks.iter().filter(|check| !check.ok).count();
    let end = match n_bad {
        0 => "This site can run. Nothing was spent, and nothing computed from records was sent.",
        1 => "One thing is in the way. Nothing was spent, and nothing computed from records was sent.",
        _ => {
            return format!(
                "{lines}\n{n_bad} things are in the way. Nothing was spent, and nothing computed from records was sent.\n"
            );
        }
    };
    format!("{lines}\n{end}\n")
}
