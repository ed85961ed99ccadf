//! Report pages, made from records alone: what was run, what it cost in words, figures, tables, how to cite, how to repeat.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use padmm_figure::html::{Block, CalloutKind, Column, Page, Section, Table};
use padmm_figure::{Figure, Panel, Series, Style};
use padmm_privacy::words::{delta_text, epsilon_text, noise_text, upper_text};
use padmm_privacy::{AccountantKind, SensitivityBasis, outward};
use padmm_sim::metrics::ModelMetrics;
use padmm_sim::record::{MeanStd, PrivacyRecord, Record};

use crate::cmd::reproduce::Drawn;
use crate::plot;
use crate::reproduce::experiment::{Case, Shows};
use crate::reproduce::figures::optimum_line;
use crate::reproduce::runs::Store;

/// The page of one simulation.
pub fn simulation(record: &Record) -> Page {
    let settings = record.setting.plan.settings();
    Page {
        title: format!("{} on {}", settings.algorithm.title(), record.setting.dataset),
        subtitle: format!(
            "{} sites, {} graph, {} rounds, {} of a simulated network.",
            record.setting.sites.len(),
            record.setting.graph,
            settings.rounds,
            if record.runs.len() == 1 { "one run".to_owned() } else { format!("{} runs", record.runs.len()) },
        ),
        sections: vec![
            section("The guarantee", guarantee(record)),
            section(
                "Convergence and privacy",
                vec![Block::Figure(Box::new(plot::figure(record)), "run".into())],
            ),
            section("Results", vec![Block::Table(losses(record))]),
            section("What was run", vec![Block::Facts(facts(record)), Block::Table(sites(record))]),
            section("Repeat and cite", repeat(&simulate_command(record))),
        ],
        footer: footer(record),
    }
}

/// The page that compares several records.
pub fn comparison(records: &[(PathBuf, Record)]) -> Page {
    let names = names(records);
    let blocks = vec![
        Block::Figure(Box::new(comparison_figure(records, &names)), "comparison".into()),
        Block::Table(comparison_table(records, &names)),
    ];
    let mut sections = vec![section("Comparison", blocks)];
    for ((path, record), name) in records.iter().zip(&names) {
        let mut blocks = vec![Block::Facts(facts(record))];
        blocks.extend(guarantee(record));
        blocks.push(Block::Command(simulate_command(record)));
        blocks.push(Block::Text(format!("Record: {}", path.display())));
        sections.push(section(name, blocks));
    }
    sections.push(section("Cite", vec![cite()]));
    Page {
        title: format!("{} runs compared", records.len()),
        subtitle: "Every number is read from the records that are named below.".into(),
        sections,
        footer: records.first().map_or(String::new(), |(_, r)| footer(r)),
    }
}

/// The page of `padmm reproduce`.
pub fn reproduction(
    drawn: &[Drawn],
    cases: &[Case],
    records: &BTreeMap<String, Record>,
    command: &str,
) -> anyhow::Result<Page> {
    let any = records.values().next().expect("an experiment has records");
    let mut sections = vec![section(
        "What this is",
        vec![
            Block::Text(
                "The figures of \"Differentially Private ADMM for Distributed Medical Machine Learning\" on the real data, and some \
                 that the paper does not have. Every method is charged for what it provably spends, every method has the \
                 penalty that is best for it on one and the same grid, and methods whose papers only add up ε are shown both \
                 ways: with the best valid accounting and with basic composition."
                    .into(),
            ),
            Block::Callout {
                kind: CalloutKind::Note,
                title: "What is compared".into(),
                text: "Average loss is the paper's measure: the mean over agents of the loss of each agent's model on its own records, \
                       without the regulariser. Curves are computed from all records and exist in a simulation only; so does the choice \
                       of the penalties, which looks at records without any privacy, for every method alike."
                    .into(),
            },
        ],
    )];
    for d in drawn {
        let own: Vec<&Case> = cases.iter().filter(|c| c.experiment == d.experiment.name).collect();
        let blocks = vec![
            Block::Text(d.experiment.claim.clone()),
            Block::Figure(Box::new(d.figure.clone()), d.experiment.name.clone()),
            Block::Table(ends(d)),
            Block::Table(setting_table(d, &own, records)?),
            Block::Command(format!("padmm reproduce {}", d.experiment.name)),
        ];
        sections.push(section(&d.experiment.title, blocks));
    }
    sections.push(section("Repeat and cite", repeat(command)));
    Ok(Page {
        title: "Private ADMM, reproduced".into(),
        subtitle: format!("{} simulated settings, {} figures.", records.len(), drawn.len()),
        sections,
        footer: footer(any),
    })
}

fn section(title: &str, blocks: Vec<Block>) -> Section {
    Section { title: title.to_owned(), blocks }
}

/// What the run promises, or that it promises nothing.
fn guarantee(record: &Record) -> Vec<Block> {
    let Some(privacy) = &record.privacy else {
        return vec![callout(
            CalloutKind::Warning,
            "No privacy",
            "The agents exchanged their exact models. Nothing is promised.",
        )];
    };
    let is_proved = privacy.sensitivity_basis == SensitivityBasis::Record;
    let kind =
        if is_proved && privacy.noise_is_exact { CalloutKind::Guarantee } else { CalloutKind::Warning };
    let title = if is_proved {
        format!("ε = {} at δ = {}", epsilon_text(privacy.epsilon_exact), delta_text(privacy.delta))
    } else {
        "No guarantee is stated".to_owned()
    };
    let mut blocks = vec![callout(kind, &title, &privacy.statement)];
    blocks.extend(simulated_noise(record).map(|text| callout(CalloutKind::Note, "Simulated noise", text)));
    blocks.extend(privacy.compositions.map(|_| Block::Table(compositions(privacy))));
    blocks
}

/// What noise from a seed means for the statement; none if the noise was secure.
pub fn simulated_noise(record: &Record) -> Option<&'static str> {
    let privacy = record.privacy.as_ref()?;
    if !record.noise_source.contains("insecure") {
        return None;
    }
    Some(if privacy.noise_is_exact {
        "This was a simulation with noise from a seed: the statement is what the same plan guarantees between real sites, which draw \
         secure noise."
    } else {
        "This was a simulation with noise from a seed: whoever knows the seed can take the noise off."
    })
}

fn callout(kind: CalloutKind, title: &str, text: &str) -> Block {
    Block::Callout { kind, title: title.to_owned(), text: text.to_owned() }
}

fn compositions(privacy: &PrivacyRecord) -> Table {
    let all = privacy.compositions.expect("only asked for where there are some");
    let row = |name: &str, epsilon: f64, delta: String| vec![name.to_owned(), epsilon_text(epsilon), delta];
    Table {
        caption: "The same noise under every composition rule".into(),
        columns: vec![Column::text("rule"), Column::number("ε"), Column::number("δ")],
        rows: vec![
            row("basic: the sum of the rounds (as published)", all.basic, "0".into()),
            row("zCDP", all.zcdp, delta_text(privacy.delta)),
            row("Rényi, best order", all.rdp, delta_text(privacy.delta)),
            row("optimal composition", all.exact, delta_text(privacy.delta)),
        ],
        highlight: vec![],
    }
}

/// Losses, accuracy and AUC of what the run gives, beside what it could have given.
fn losses(record: &Record) -> Table {
    let number = |m: Option<MeanStd>| match m {
        None => "–".to_owned(),
        Some(m) if record.runs.len() > 1 => format!("{:.4} ± {:.4}", m.mean, m.std),
        Some(m) => format!("{:.4}", m.mean),
    };
    let row = |name: &str, all: Vec<ModelMetrics>| {
        let of = |f: fn(&ModelMetrics) -> Option<f64>| {
            let values: Option<Vec<f64>> = all.iter().map(f).collect();
            values.filter(|v| !v.is_empty()).map(|v| MeanStd::of(v.into_iter()))
        };
        vec![name.to_owned(), number(of(|m| Some(m.loss))), number(of(|m| m.accuracy)), number(of(|m| m.auc))]
    };
    let o = &record.optimum;
    let mut rows = vec![
        row("smoothed model", record.runs.iter().map(|r| r.smoothed).collect()),
        row("model after the last round (the paper's output)", record.runs.iter().map(|r| r.last).collect()),
    ];
    if let Some(reference) = &record.reference {
        rows.push(row("without noise, same rounds", vec![reference.last]));
    }
    let optimum = ModelMetrics { loss: o.loss, accuracy: o.accuracy, auc: o.auc };
    rows.push(row("pooled optimum", vec![optimum]));
    Table {
        caption: format!("Loss on all training records; accuracy and AUC on {}", record.summary.evaluated_on),
        columns: vec![
            Column::text("model"),
            Column::number("loss"),
            Column::number("accuracy"),
            Column::number("AUC"),
        ],
        rows,
        highlight: vec![0],
    }
}

fn facts(record: &Record) -> Vec<(String, String)> {
    let settings = record.setting.plan.settings();
    let mut facts = vec![
        ("Algorithm", settings.algorithm.title().to_owned()),
        (
            "Data",
            format!(
                "{}, {} records of {} features",
                record.setting.dataset, record.setting.records.train, record.setting.features
            ),
        ),
        (
            "Network",
            format!(
                "{} sites, {} graph, split {}",
                record.setting.sites.len(),
                record.setting.graph,
                record.setting.split
            ),
        ),
        ("Problem", format!("{} loss, R(x) = {}", settings.loss, settings.regularizer)),
        ("Rounds and penalty", format!("{} rounds, η = {:.4e}", settings.rounds, record.setting.penalty)),
        ("Runs and seed", format!("{} from seed {}", record.runs.len(), record.setting.seed)),
    ];
    if let Some(p) = &record.privacy {
        let spent = format!(
            "ε {} exact, {} by the method's own paper, δ {}, ρ {}",
            epsilon_text(p.epsilon_exact),
            epsilon_text(p.epsilon_paper),
            delta_text(p.delta),
            upper_text(p.rho_total)
        );
        facts.push(("Privacy", spent));
        facts.push((
            "Noise",
            format!(
                "standard deviation {} first, {} last; sensitivity {}",
                noise_text(p.noise_std_first),
                noise_text(p.noise_std_last),
                upper_text(p.sensitivity)
            ),
        ));
    }
    facts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

fn sites(record: &Record) -> Table {
    let charge = |name: &str| {
        let own = record.charges.iter().find(|c| c.site == name);
        own.map_or("–".to_owned(), |c| {
            upper_text(c.rho_per_round.iter().copied().fold(0.0, outward::add_up))
        })
    };
    Table {
        caption: "Sites".into(),
        columns: vec![
            Column::text("site"),
            Column::number("records"),
            Column::number("neighbours"),
            Column::number("ρ charged"),
        ],
        rows: record
            .setting
            .sites
            .iter()
            .map(|s| vec![s.name.clone(), s.records.to_string(), s.degree.to_string(), charge(&s.name)])
            .collect(),
        highlight: vec![],
    }
}

fn repeat(command: &str) -> Vec<Block> {
    vec![
        Block::Text("The same numbers, to the last digit, come from this command:".into()),
        Block::Command(command.to_owned()),
        cite(),
    ]
}

fn cite() -> Block {
    Block::List(vec![
        "J. Ding, X. Qin, W. Xu, Y. Gong, C. Zhang, M. Pan: Differentially Private ADMM for Distributed Medical Machine Learning.".into(),
        format!("padmm {}, differentially private ADMM between sites that may not pool their records.", env!("CARGO_PKG_VERSION")),
        "Data: B. Becker, R. Kohavi: Adult (1996), and A. Janosi, W. Steinbrunn, M. Pfisterer, R. Detrano: Heart Disease (1989), UCI Machine Learning Repository, CC BY 4.0.".into(),
    ])
}

fn footer(record: &Record) -> String {
    format!(
        "padmm {}. Curves and losses are computed from all records and exist in a simulation only. Noise: {}.",
        record.version, record.noise_source
    )
}

/// The command that repeats a simulation of a shipped data set.
fn simulate_command(record: &Record) -> String {
    let (setting, s) = (&record.setting, record.setting.plan.settings());
    let dataset = if Path::new(&setting.dataset).extension().is_some() {
        format!("--data {} --schema SCHEMA", setting.dataset)
    } else {
        format!("--dataset {}", setting.dataset)
    };
    let accountant = match s.accountant {
        AccountantKind::Exact => "",
        AccountantKind::Paper => " --accountant paper",
        AccountantKind::Basic => " --accountant basic",
    };
    let mut text = format!(
        "padmm simulate {dataset} --algorithm {} --split {} --graph {} --rounds {} --epsilon {} --delta {} --decay {} --penalty {}{accountant}",
        s.algorithm.name(),
        setting.split,
        setting.graph,
        s.rounds,
        s.epsilon,
        s.delta,
        s.decay,
        setting.penalty,
    );
    if setting.split.to_string() != "site" {
        text.push_str(&format!(" --agents {}", setting.sites.len()));
    }
    if setting.holdout.to_string() != "none" {
        text.push_str(&format!(" --holdout {}", setting.holdout));
    }
    text.push_str(&problem_flags(s));
    text.push_str(&format!(" --runs {} --seed {}", record.runs.len(), setting.seed));
    text
}

fn problem_flags(s: &padmm_core::plan::PlanDraft) -> String {
    use padmm_core::loss::Loss;
    use padmm_core::regularizer::Regularizer;
    let mut text = match s.loss {
        Loss::Logistic => String::new(),
        Loss::Hinge => " --loss hinge".into(),
        Loss::HuberizedHinge { width } => format!(" --loss huberized-hinge --loss-width {width}"),
        Loss::Huber { width } => format!(" --loss huber --loss-width {width}"),
        Loss::Squared => " --loss squared".into(),
    };
    text.push_str(&match s.regularizer {
        Regularizer::None => " --regularizer none".into(),
        Regularizer::L2 { strength } => format!(" --regularization {strength}"),
        Regularizer::L1 { strength } => format!(" --regularizer l1 --regularization {strength}"),
        Regularizer::ElasticNet { strength, l1_ratio } => {
            format!(" --regularizer elastic-net --regularization {strength} --l1-ratio {l1_ratio}")
        }
        Regularizer::GroupLasso { strength } => {
            format!(" --regularizer group-lasso --regularization {strength}")
        }
    });
    let own = [
        ("penalty-growth", s.penalty_growth),
        ("rate-growth", s.rate_growth),
        ("even-damping", s.even_damping),
        ("relaxation", s.relaxation),
        ("model-bound", s.model_bound),
        ("tolerance", s.tolerance),
    ];
    for (flag, value) in own {
        if let Some(value) = value {
            text.push_str(&format!(" --{flag} {value}"));
        }
    }
    if s.sensitivity == SensitivityBasis::Paper {
        text.push_str(" --sensitivity paper");
    }
    if s.output == padmm_core::plan::Output::Last {
        text.push_str(" --output last");
    }
    text
}

/// A name for every record: its algorithm, told apart by its folder where that is not enough.
fn names(records: &[(PathBuf, Record)]) -> Vec<String> {
    let title = |r: &Record| {
        let s = r.setting.plan.settings();
        if s.algorithm.is_private() {
            format!("{}, ε = {}", s.algorithm.title(), s.epsilon)
        } else {
            s.algorithm.title().to_owned()
        }
    };
    let titles: Vec<String> = records.iter().map(|(_, r)| title(r)).collect();
    let stem = |path: &Path| {
        let file = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        match path.parent().and_then(Path::file_name) {
            Some(folder) if file == "record" => folder.to_string_lossy().into_owned(),
            _ => file,
        }
    };
    let is_alone = |t: &String| titles.iter().filter(|o| *o == t).count() == 1;
    let pairs = titles.iter().zip(records);
    pairs
        .map(|(t, (path, _))| if is_alone(t) { t.clone() } else { format!("{t} ({})", stem(path)) })
        .collect()
}

fn comparison_figure(records: &[(PathBuf, Record)], names: &[String]) -> Figure {
    let line = |of: fn(&padmm_sim::metrics::RoundMetrics) -> Option<f64>| -> Vec<Series> {
        let one = |(n, (_, record)): (usize, &(PathBuf, Record))| {
            plot::over_runs_optional(record, &names[n], Style::nth(n), of)
        };
        records.iter().enumerate().filter_map(one).collect()
    };
    let panel = |title: &str, y: &str, series: Vec<Series>, references| Panel {
        title: title.into(),
        x_label: "round".into(),
        y_label: y.into(),
        series,
        references,
        ..Panel::default()
    };
    let mut panels = vec![
        panel(
            "Average loss of the models",
            "average loss",
            line(|m| Some(m.average_loss)),
            vec![optimum_line(&records[0].1)],
        ),
        panel(
            "Smoothed model, if stopped here",
            "loss on all records",
            line(|m| Some(m.smoothed_loss)),
            vec![optimum_line(&records[0].1)],
        ),
    ];
    let spent = line(|m| m.epsilon_exact);
    if !spent.is_empty() {
        panels.push(panel("Privacy loss so far", "ε, exact", spent, vec![]));
    }
    Figure::new("Convergence and privacy", panels)
}

fn comparison_table(records: &[(PathBuf, Record)], names: &[String]) -> Table {
    let number = |m: &MeanStd| format!("{:.4} ± {:.4}", m.mean, m.std);
    let row = |(name, (_, r)): (&String, &(PathBuf, Record))| {
        let s = &r.summary;
        let epsilon =
            |f: fn(&PrivacyRecord) -> f64| r.privacy.as_ref().map_or("–".into(), |p| epsilon_text(f(p)));
        vec![
            name.clone(),
            epsilon(|p| p.epsilon_exact),
            epsilon(|p| p.epsilon_paper),
            number(&s.average_loss),
            number(&s.model_loss),
            s.accuracy.as_ref().map_or("–".into(), number),
            r.runs.len().to_string(),
        ]
    };
    Table {
        caption: "Where the runs end".into(),
        columns: vec![
            Column::text("run"),
            Column::number("ε exact"),
            Column::number("ε, own paper's"),
            Column::number("average loss"),
            Column::number("loss of the model kept"),
            Column::number("accuracy"),
            Column::number("runs"),
        ],
        rows: names.iter().zip(records).map(row).collect(),
        highlight: vec![],
    }
}

/// Where every curve of a figure ends.
fn ends(d: &Drawn) -> Table {
    let is_privacy = |panel: &str| {
        d.experiment.panels.iter().any(|p| p.title == panel && p.shows == Shows::EpsilonByRound)
    };
    let row = |c: &crate::reproduce::figures::Curve| {
        let last = |v: &[f64]| v.last().copied().unwrap_or(f64::NAN);
        vec![
            c.panel.clone(),
            c.label.clone(),
            last(&c.x).to_string(),
            format!("{:.4}", last(&c.mean)),
            format!("{:.4}", last(&c.std)),
        ]
    };
    Table {
        caption: "Where every line ends".into(),
        columns: vec![
            Column::text("panel"),
            Column::text("line"),
            Column::number("at"),
            Column::number("mean"),
            Column::number("standard deviation"),
        ],
        // Where ε ends is the budget; the table of settings has it.
        rows: d.curves.iter().filter(|c| !is_privacy(&c.panel)).map(row).collect(),
        highlight: vec![],
    }
}

/// Penalty and privacy of every setting of an experiment.
fn setting_table(d: &Drawn, cases: &[&Case], records: &BTreeMap<String, Record>) -> anyhow::Result<Table> {
    let mut rows: Vec<Vec<String>> = vec![];
    for case in cases {
        let record = &records[&Store::key(case)?];
        let epsilon = |f: fn(&PrivacyRecord) -> f64| {
            record.privacy.as_ref().map_or("–".to_owned(), |p| epsilon_text(f(p)))
        };
        let series = d.experiment.find(&case.series).map_or(String::new(), |s| s.label.clone());
        let row = vec![
            series,
            d.experiment.point_name(case.point),
            format!("{:.3e}", record.setting.penalty),
            epsilon(|p| p.epsilon_exact),
            epsilon(|p| p.epsilon_paper),
            format!("{:.4}", record.summary.model_loss.mean),
        ];
        if rows.last() != Some(&row) && !case_is_repeated(&rows, &row) {
            rows.push(row);
        }
    }
    let swept = d.experiment.sweep.as_ref().map_or("", |s| &s.label);
    Ok(Table {
        caption: "Settings: the penalty that was best on the grid, and ε at the end by the best valid and by each method's own accounting".into(),
        columns: vec![
            Column::text("line"),
            Column::text(swept),
            Column::number("penalty"),
            Column::number("ε, best valid"),
            Column::number("ε, own paper's"),
            Column::number("loss of the model kept"),
        ],
        rows,
        highlight: vec![],
    })
}

/// Splits that are dealt anew for each run give one row, the first.
fn case_is_repeated(rows: &[Vec<String>], row: &[String]) -> bool {
    rows.iter().any(|r| r[..2] == row[..2])
}
