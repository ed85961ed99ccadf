//! `padmm reproduce`: the paper's figures and some more, from the records of simulations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use indicatif::ProgressBar;
use padmm_commands::chart::Figure;
use padmm_commands::out_folder::OutFolder;
use padmm_commands::progress;
use padmm_commands::terminal::{print, print_json, start_threads, warn};
use padmm_data::write_atomically;
use padmm_sim::record::Record;
use serde_json::{Map, Value, json};

use crate::png::to_png;
use crate::report;
use crate::reproduce::experiment::{Case, Experiment, Repetition};
use crate::reproduce::figures::{Curve, Records, csv, curves, figure};
use crate::reproduce::penalties::Penalties;
use crate::reproduce::runs::{Store, complete};
use crate::reproduce::tune::tune;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// fig1, fig2, fig3, fig4 (the paper's), accounting, graphs, heart, own (beyond it) or all of these; by name alone: frontier,
    /// unequal, unequal-35, further
    #[arg(value_name = "WHICH", default_value = "all")]
    which: Vec<String>,
    /// Independent runs of every setting; the hospitals' splits get twice as many
    #[arg(long, value_name = "N", default_value_t = 10)]
    runs: u32,
    /// Seed of splits, random graphs and noise
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Threads [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Folder for records, figures and the report; what is finished there is not repeated
    #[arg(long, value_name = "DIR", default_value = "reproduction")]
    out: PathBuf,
    /// Print one JSON object with every curve on standard output
    #[arg(long)]
    json: bool,
    /// No progress bar and no table
    #[arg(long, short)]
    quiet: bool,
    /// Choose every penalty from the grid again and write DIR/penalties.csv, without drawing anything
    #[arg(long)]
    tune: bool,
}

pub(crate) struct Drawn {
    pub experiment: Experiment,
    pub curves: Vec<Curve>,
    pub figure: Figure,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    anyhow::ensure!(args.runs > 0, "--runs must be at least 1");
    start_threads(args.threads)?;
    let experiments = chosen(&args.which)?;
    experiments.iter().try_for_each(Experiment::check_files)?;
    let folder = OutFolder::at(&args.out)?;
    let bar = progress::bar(0, "{bar:30} {percent}%  {msg}  {elapsed} gone, {eta} left", args.quiet);
    if args.tune {
        return choose_penalties(&experiments, folder, &bar);
    }
    let penalties = Penalties::shipped()?;
    let repetition = Repetition { runs: args.runs, seed: args.seed };
    let cases: Vec<Vec<Case>> =
        experiments.iter().map(|e| e.cases(repetition, &penalties)).collect::<Result<_, _>>()?;
    let store = Store::under(folder.path())?;
    let records = complete(&cases.concat(), &store, &bar)?;
    bar.finish_and_clear();
    let out = folder.keep();
    let mut drawn = vec![];
    for (experiment, cases) in experiments.into_iter().zip(&cases) {
        let own = of_experiment(cases, &records)?;
        let curves = curves(&experiment, &own);
        let figure = figure(&experiment, &curves, &own);
        let stem = |ending: &str| out.join(format!("{}.{ending}", experiment.name));
        write_atomically(&stem("csv"), true, &csv(&curves)?)?;
        write_atomically(&stem("svg"), true, figure.to_svg().as_bytes())?;
        write_atomically(&stem("png"), true, &to_png(&figure, 1.5)?)?;
        drawn.push(Drawn { experiment, curves, figure });
    }
    let command = command(args);
    let page = report::reproduction(&drawn, &cases.concat(), &records, &command)?;
    write_atomically(&out.join("report.html"), true, page.to_html().as_bytes())?;
    let seconds = start.elapsed().as_secs_f64();
    if args.json {
        print_json(&contract(&drawn, seconds))?;
    }
    if !args.quiet {
        let text = summary(&drawn, &out);
        if args.json { warn(&text) } else { print(&text)? }
    }
    Ok(())
}

/// The experiments that were asked for, in the order of the report.
fn chosen(which: &[String]) -> anyhow::Result<Vec<Experiment>> {
    let all = which.iter().any(|w| w == "all");
    for name in which.iter().filter(|w| *w != "all") {
        Experiment::named(name)?;
    }
    let is_wanted = |e: &Experiment| (all && !e.only_by_name) || which.contains(&e.name);
    let known: Vec<Experiment> = Experiment::names().map(Experiment::named).collect::<Result<_, _>>()?;
    Ok(known.into_iter().filter(is_wanted).collect())
}

fn choose_penalties(experiments: &[Experiment], folder: OutFolder, bar: &ProgressBar) -> anyhow::Result<()> {
    let mut penalties = Penalties::shipped()?;
    for experiment in experiments.iter().filter(|e| !e.derived_penalties) {
        bar.reset();
        bar.set_message(format!("penalties of {}", experiment.name));
        penalties.replace(tune(experiment, bar)?);
        write_atomically(&folder.path().join("penalties.csv"), true, &penalties.to_csv()?)?;
    }
    bar.finish_and_clear();
    print(&format!("penalties  {}\n", folder.keep().join("penalties.csv").display()))
}

/// The records of one experiment's cases, by series and point.
fn of_experiment<'a>(cases: &[Case], records: &'a BTreeMap<String, Record>) -> anyhow::Result<Records<'a>> {
    let mut own: Records<'a> = BTreeMap::new();
    for case in cases {
        let record = records.get(&Store::key(case)?).context("every case has a record by now")?;
        own.entry((case.series.clone(), case.point)).or_default().push(record);
    }
    Ok(own)
}

fn contract(drawn: &[Drawn], seconds: f64) -> Value {
    let figures: Map<String, Value> =
        drawn.iter().map(|d| (d.experiment.name.clone(), json!({ "curves": d.curves }))).collect();
    json!({ "figures": figures, "seconds": seconds })
}

/// The command that gives the same figures.
fn command(args: &Args) -> String {
    let mut text = format!("padmm reproduce {}", args.which.join(" "));
    if args.runs != 10 {
        text.push_str(&format!(" --runs {}", args.runs));
    }
    if args.seed != 1 {
        text.push_str(&format!(" --seed {}", args.seed));
    }
    text
}

/// Where every line ends, for people.
fn summary(drawn: &[Drawn], out: &Path) -> String {
    let mut text = String::new();
    for d in drawn {
        text.push_str(&format!("{}\n", d.experiment.title));
        let mut panel = "";
        for c in &d.curves {
            if c.panel != panel {
                panel = &c.panel;
                text.push_str(&format!("  {panel}\n"));
            }
            let (x, mean, std) = (c.x.last(), c.mean.last(), c.std.last());
            if let (Some(x), Some(mean), Some(std)) = (x, mean, std) {
                text.push_str(&format!("    {:<42} {mean:>10.4} ± {std:.4}  at {x}\n", c.label));
            }
        }
        text.push('\n');
    }
    text.push_str(&format!("report  {}\n", out.join("report.html").display()));
    text
}
