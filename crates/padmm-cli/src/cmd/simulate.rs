//! `padmm simulate`: a whole network in one process.

use std::path::{Path, PathBuf};

use padmm_commands::out_folder::OutFolder;
use padmm_commands::progress;
use padmm_commands::table::{align_right, plain};
use padmm_commands::terminal::{print, print_json, start_threads, warn};
use padmm_core::algorithm::{CONSENSUS_NEWTON, P_ADMM};
use padmm_core::plan::Plan;
use padmm_data::{Loaded, load, write_model};
use padmm_privacy::SensitivityBasis;
use padmm_privacy::words::{delta_text, epsilon_text, lower_text, upper_text};
use padmm_sim::metrics::ModelMetrics;
use padmm_sim::own::{Scored, SiteModels};
use padmm_sim::record::{MeanStd, Record};
use padmm_sim::{Kept, PreparedSimulation, Progress, RunOptions};
use serde_json::{Value, json};

use crate::png::to_png;
use crate::report;
use crate::settings::Settings;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Settings from a TOML file with the flags' names as keys; flags win
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Threads [default: all cores]; results do not depend on it
    #[arg(long, value_name = "N", help_heading = "Run", allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Folder for the record, the trace, the plot and the model [default: a new one under runs/]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    out: Option<PathBuf>,
    /// Leave out the run without noise beside the private one
    #[arg(long, help_heading = "Run")]
    no_reference: bool,
    /// Also fit what each site would make of the model for itself, and show own records alone, joint and combined
    #[arg(long, help_heading = "Run")]
    own: bool,
    /// Print one JSON object on standard output, everything else on standard error
    #[arg(long, help_heading = "Run")]
    json: bool,
    /// No progress bar and no table
    #[arg(long, short, help_heading = "Run")]
    quiet: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let settings = match &args.plan {
        Some(path) => args.settings.or(Settings::read(path)?),
        None => args.settings,
    };
    start_threads(args.threads)?;
    // Settings are checked before the records are read, and everything before anything is written.
    settings.draft()?.check()?;
    let loaded = load(&settings.source()?)?;
    if let Some(note) = loaded.encoded.unlisted_note().filter(|_| !args.quiet) {
        warn(&format!("note: {note}\n"));
    }
    let plan = settings.simulation(&loaded, !args.no_reference)?;
    let bar = progress::bar(0, "{bar:30} {pos}/{len} rounds  {msg}  {eta} left", args.quiet);
    let watch = |p: Progress| {
        bar.set_length(p.total);
        bar.set_position(p.done);
        let epsilon =
            p.epsilon.map_or(String::from("no privacy"), |e| format!("ε spent {}", epsilon_text(e)));
        let loss = p.average_loss.map_or(String::new(), |loss| format!("average loss {loss:.4}, "));
        bar.set_message(format!("{loss}{epsilon}"));
        true
    };
    let Loaded { schema, encoded, .. } = loaded;
    let dataset = plan.dataset.clone();
    let simulation = PreparedSimulation::prepare(plan, encoded)?.with_own_models(args.own);
    let folder_name = folder_name(&dataset, simulation.plan());
    let folder = match args.out {
        Some(out) => OutFolder::at(&out)?,
        None => OutFolder::numbered(&folder_name)?,
    };
    let (record, model) = simulation.run_all(&watch)?;
    let beside = if args.quiet { None } else { recommended(&simulation, &record)? };
    bar.finish_and_clear();
    write_outputs(&record, schema, &model, folder.path())?;
    let out = folder.keep();
    if let Some(reason) = record.worthless() {
        warn(&format!("warning: {reason}\n"));
    }
    if args.json {
        print_json(&contract(&record))?;
    }
    if !args.quiet {
        let text = format!("{}{}\n{}", summary(&record), beside.unwrap_or_default(), places(&out));
        if args.json { warn(&text) } else { print(&text)? }
    }
    Ok(())
}

/// What the recommended method makes of the same records at the same ε, in a sentence; none beside another method than the paper's, or
/// where it cannot solve the problem.
fn recommended(simulation: &PreparedSimulation, record: &Record) -> anyhow::Result<Option<String>> {
    if record.setting.plan.settings().algorithm != P_ADMM {
        return Ok(None);
    }
    let Ok((plan, calibration)) = simulation.by(CONSENSUS_NEWTON) else { return Ok(None) };
    let mut kept = vec![];
    for run in &record.runs {
        let options = RunOptions { instead: Some((&plan, &calibration)), ..RunOptions::number(run.run) };
        kept.push(simulation.run(&options)?.record.smoothed);
    }
    let mean = |of: fn(&ModelMetrics) -> Option<f64>| {
        let known: Option<Vec<f64>> = kept.iter().map(of).collect();
        known.filter(|v| !v.is_empty()).map(|v| MeanStd::of(v.into_iter()).mean)
    };
    let Some(optimum) = &record.optimum else { return Ok(None) };
    let percent = |v: f64, best: f64| format!("{v:.4} ({:+.2} %)", 100.0 * (v / best - 1.0));
    let parts = [
        mean(|m| Some(m.loss)).map(|v| format!("loss {}", percent(v, optimum.loss))),
        mean(|m| m.objective).map(|v| format!("objective {}", percent(v, optimum.objective))),
        mean(|m| m.accuracy).map(|v| format!("accuracy {v:.4}")),
        mean(|m| m.auc).map(|v| format!("AUC {v:.4}")),
    ];
    Ok(Some(format!(
        "\nRecommended at the same ε: {} (--algorithm {}), {} rounds: {}.\n",
        CONSENSUS_NEWTON.title(),
        CONSENSUS_NEWTON.name(),
        plan.settings().rounds,
        parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
    )))
}

fn folder_name(dataset: &str, plan: &Plan) -> String {
    let dataset = Path::new(dataset).file_stem().map_or("data".into(), |s| s.to_string_lossy());
    format!("{dataset}-{}", plan.settings().algorithm.name())
}

fn write_outputs(
    record: &Record,
    schema: padmm_core::schema::Schema,
    model: &Kept,
    out: &Path,
) -> anyhow::Result<()> {
    let write = |name: &str, bytes: &[u8]| padmm_data::write_atomically(&out.join(name), true, bytes);
    write("trace.csv", record.trace_csv().as_bytes())?;
    let figure = crate::plot::figure(record);
    write("plot.svg", figure.to_svg().as_bytes())?;
    write("plot.png", &to_png(&figure, 2.0)?)?;
    write_model(&out.join("model.json"), &model.model(record, schema)?, true)?;
    write("record.json", serde_json::to_string_pretty(record)?.as_bytes())?;
    let page = report::simulation(record);
    write("report.html", page.to_html().as_bytes())?;
    Ok(())
}

fn places(out: &Path) -> String {
    let file = |name: &str| out.join(name).display().to_string();
    format!(
        "\nreport  {}\nplot    {}\nrecord  {}\nmodel   {}\n",
        file("report.html"),
        file("plot.png"),
        file("record.json"),
        file("model.json")
    )
}

fn contract(record: &Record) -> Value {
    let s = &record.summary;
    let mean_std = |m: &MeanStd| json!({ "mean": m.mean, "std": m.std });
    let per_round: Vec<f64> = s.average_loss_per_round.iter().map(|m| m.mean).collect();
    let mut answer = json!({
        "algorithm": record.setting.plan.settings().algorithm.name(),
        "agents": record.setting.sites.len(),
        "rounds": record.setting.plan.settings().rounds,
        "runs": record.runs.len(),
        "records": record.setting.records,
        "features": record.setting.features,
        "penalty": record.setting.penalty,
        "weights": record.setting.plan.settings().weights,
        "privacy": record.privacy,
        "average_loss": {
            "mean": s.average_loss.as_ref().map(|m| m.mean),
            "std": s.average_loss.as_ref().map(|m| m.std),
            "per_round_mean": per_round,
        },
        "pooled_loss": mean_std(&s.pooled_loss),
        "model_loss": mean_std(&s.model_loss),
        "model_objective": s.model_objective.as_ref().map(mean_std),
        "optimum": record.optimum.as_ref().map(|o| json!({ "loss": o.loss, "objective": o.objective })),
        "accuracy": s.accuracy.as_ref().map(|m| m.mean),
        "majority_accuracy": record.constant.and_then(|c| c.accuracy),
        "auc": s.auc.as_ref().map(|m| m.mean),
        "calibration": s.calibration,
        "evaluated_on": s.evaluated_on,
        "seconds": record.seconds,
    });
    if let Some(noise) = record.runs.first().and_then(|run| run.privacy_noise.as_ref()) {
        answer["privacy_noise"] = json!(noise);
    }
    let own: Vec<_> = record.runs.iter().map(|r| &r.own_models).filter(|m| !m.is_empty()).collect();
    if !own.is_empty() {
        answer["own_models"] = json!(own);
    }
    answer
}

/// The table and the guarantee, for people.
fn summary(record: &Record) -> String {
    let (s, settings) = (&record.summary, record.setting.plan.settings());
    let counts = record.setting.records;
    let mut text = format!(
        "{} on {}: {} agents, {} graph, {} rounds, {} records of {} features ({} dropped), penalty {:.3e}\n\n",
        settings.algorithm.title(),
        record.setting.dataset,
        record.setting.sites.len(),
        record.setting.graph,
        settings.rounds,
        counts.train,
        record.setting.features,
        counts.dropped,
        record.setting.penalty,
    );
    text.push_str(&losses(record));
    text.push_str(&format!(
        "\nLoss and objective on all training records, with sites weighted by {}; in brackets, above the pooled optimum.\n\
         Accuracy, AUC and calibration (intercept, slope; 0, 1 is ideal) on {}.\n",
        settings.weights, s.evaluated_on
    ));
    text.push_str(&noise_line(record).unwrap_or_default());
    text.push_str(&own_models(record));
    text.push_str(&privacy_lines(record));
    text
}

/// What privacy noise has put on the coefficients; none where the algorithm cannot tell.
fn noise_line(record: &Record) -> Option<String> {
    let mut deviations = record.runs.first()?.privacy_noise.as_ref()?.standard_deviations.clone();
    deviations.sort_by(f64::total_cmp);
    let (least, most) = (deviations.first()?, deviations.last()?);
    Some(format!(
        "Privacy noise alone puts ± {:.3} on a coefficient (standard deviation; half of them have less), from {least:.3} to {most:.3}; \
         model.json has it for each.\n",
        deviations[deviations.len() / 2]
    ))
}

/// Own records alone, joint and combined at every site, means over runs; nothing unless it was asked for.
fn own_models(record: &Record) -> String {
    let Some(first) = record.runs.first().and_then(|r| r.own_models.first()) else { return String::new() };
    let mut table =
        plain(["site", "records", "own loss", "joint", "combined", "own AUC", "joint", "combined"]);
    align_right(&mut table, 1..8);
    for (i, site) in record.setting.sites.iter().enumerate() {
        let at = |of: fn(&SiteModels) -> Scored| record.runs.iter().map(move |r| of(&r.own_models[i]));
        let loss = |of| format!("{:.4}", MeanStd::of(at(of).map(|s| s.loss)).mean);
        let auc = |of| {
            let known: Option<Vec<f64>> = at(of).map(|s| s.auc).collect();
            known.map_or("–".to_owned(), |v| format!("{:.4}", MeanStd::of(v.into_iter()).mean))
        };
        let models: [fn(&SiteModels) -> Scored; 3] = [|m| m.own, |m| m.joint, |m| m.combined];
        let numbers = models.map(loss).into_iter().chain(models.map(auc));
        table.add_row([site.name.clone(), site.records.to_string()].into_iter().chain(numbers));
    }
    let scored = if first.held_out { "held-out records" } else { "each site's own records, cross-validated" };
    format!(
        "\n{table}\nWhat each site would have for itself, on {scored}: a model from its own records alone, the joint model, and \
         both combined.\n"
    )
}

/// What the run cost, and whether that is a guarantee.
fn privacy_lines(record: &Record) -> String {
    let Some(p) = &record.privacy else {
        return "\nno privacy: the agents exchanged their exact models\n".to_owned();
    };
    let warning = match p.sensitivity_basis {
        SensitivityBasis::Record => "",
        SensitivityBasis::Paper => ": NOT PROVED, no guarantee is stated",
    };
    let simulated = report::simulated_noise(record).unwrap_or_default();
    let spent = match &p.compositions {
        None => format!(
            "ε exact {}, by the paper's formula {}, δ {} (of which {} for the noise being discrete)",
            epsilon_text(p.epsilon_exact),
            epsilon_text(p.epsilon_paper),
            delta_text(p.delta),
            delta_text(p.delta_slack),
        ),
        Some(all) => format!(
            "ε {} at δ {}: by optimal composition {}, Rényi {}, zCDP {}; {} at δ 0 by adding up {} rounds",
            epsilon_text(p.epsilon_exact),
            delta_text(p.delta),
            epsilon_text(all.exact),
            epsilon_text(all.rdp),
            epsilon_text(all.zcdp),
            epsilon_text(all.basic),
            p.rounds_charged,
        ),
    };
    format!(
        "\n{spent}\n\
         ρ {}, noise std {} in the first round and {} in the last\n\
         sensitivity {}: {}{warning}\n\n{}\n",
        upper_text(p.rho_total),
        lower_text(p.noise_std_first),
        lower_text(p.noise_std_last),
        upper_text(p.sensitivity),
        p.sensitivity_basis,
        wrapped(&format!("{} {simulated}", p.statement), 110),
    )
}

fn losses(record: &Record) -> String {
    let mut table = plain(report::MEASURES);
    align_right(&mut table, 1..report::MEASURES.len());
    report::measures(record).into_iter().for_each(|row| {
        table.add_row(row);
    });
    format!("{table}\n")
}

/// Lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}
