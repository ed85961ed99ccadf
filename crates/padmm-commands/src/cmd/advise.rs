//! `padmm advise`: what a plan may be expected to come to, before anybody signs it.

mod picture;
mod render;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use padmm_core::advice::{Advice, EPSILONS, Effort, Question, Signal, advise};
use padmm_core::calibration::NetworkFacts;
use padmm_core::graph::{Graph, GraphSpec};
use padmm_core::loss::Loss;
use padmm_core::plan::{PlanDraft, SiteWeights};
use padmm_core::regularizer::Regularizer;
use padmm_core::schema::{Purpose, Schema, SchemaDraft};
use padmm_data::{encode_file, read_schema, write_atomically};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::terminal::{print, print_json};

/// Part of the records that are positive, unless something else is said.
pub const POSITIVE: f64 = 0.3;
/// The strengths of signal that are assumed unless one is said; the middle one is that of single sites.
const SIGNALS: [f64; 3] = [0.65, 0.75, 0.85];

/// Flags of `advise`, the same in both programs.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// What records look like, a schema.toml; no record is read
    #[arg(long, value_name = "FILE", required_unless_present = "plan", conflicts_with = "plan")]
    schema: Option<PathBuf>,
    /// Sites with their numbers of records: oslo=4000,bergen=350
    #[arg(
        long,
        value_name = "NAME=N,...",
        value_delimiter = ',',
        required_unless_present = "plan",
        conflicts_with = "plan"
    )]
    sites: Vec<String>,
    /// A plan.toml in place of schema, sites, graph and budget
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Who talks to whom, as in `plan new`
    #[arg(long, default_value = "complete", conflicts_with = "plan")]
    graph: GraphSpec,
    /// Total epsilon of every site [default: the plan's, or 1]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// Delta at which it holds [default: the plan's, or 0.0001]
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// How much a site counts: records, sites or damped [default: the plan's, or records]
    #[arg(long, value_name = "WHICH")]
    weights: Option<SiteWeights>,
    /// Strength of the L2 regulariser [default: the plan's, or 0.001]
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    regularization: Option<f64>,
    /// Assumed areas under the ROC curve of the best model [default: 0.65,0.75,0.85]
    #[arg(long, value_name = "A,...", value_delimiter = ',', allow_negative_numbers = true)]
    auc: Vec<f64>,
    /// Assumed part of positive records
    #[arg(long, value_name = "P", default_value_t = POSITIVE, allow_negative_numbers = true)]
    positive: f64,
    /// A public table of the schema's columns, to take the signal from in place of assuming one. Never records of a site
    #[arg(long, value_name = "FILE", conflicts_with = "auc")]
    public: Option<PathBuf>,
    /// How much of the area under the ROC curve privacy may cost: which epsilon is enough?
    #[arg(long, value_name = "A", default_value_t = 0.02, allow_negative_numbers = true)]
    wanted_auc_loss: f64,
    /// Draw what privacy costs, as SVG
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
    /// Replace an existing figure
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The public facts that advice is about.
struct Facts {
    schema: Schema,
    names: Vec<String>,
    n_records: Vec<usize>,
    graph: Graph,
    settings: PlanDraft,
}

/// What is read of a plan.toml; the rest is for sites.
#[derive(Deserialize)]
struct PlanFile {
    settings: PlanDraft,
    #[serde(default)]
    site: Vec<PlanSite>,
    edges: Vec<(String, String)>,
    schema: SchemaDraft,
}

#[derive(Deserialize)]
struct PlanSite {
    name: String,
    records: usize,
}

/// Advice by the signal that was assumed; none is the one of a public table.
type BySignal = Vec<(Option<f64>, Advice)>;

/// Prints the advice as tables or as JSON.
pub fn run(args: Args) -> anyhow::Result<()> {
    let mut facts = match &args.plan {
        Some(path) => Facts::of_plan(path)?,
        None => Facts::of_flags(&args)?,
    };
    let settings = &mut facts.settings;
    settings.epsilon = args.epsilon.unwrap_or(settings.epsilon);
    settings.delta = args.delta.unwrap_or(settings.delta);
    settings.weights = args.weights.unwrap_or(settings.weights);
    if let Some(strength) = args.regularization {
        settings.regularizer = Regularizer::L2 { strength };
    }
    ensure!(
        facts.schema.label().is_binary(),
        "the label {} is a number, and there is advice for two classes only",
        facts.schema.label().column()
    );
    let found = by_signal(&args, &facts)?;
    if let Some(path) = &args.figure {
        write_atomically(path, args.force, picture::figure(&found).to_svg().as_bytes())?;
    }
    if args.json {
        print_json(&in_json(&args, &facts, &found)?)
    } else {
        print(&render::text(&facts, &found))
    }
}

fn by_signal(args: &Args, facts: &Facts) -> anyhow::Result<BySignal> {
    let plan = facts.settings.clone().check()?;
    let space = facts.schema.feature_space();
    let network = NetworkFacts {
        graph: &facts.graph,
        n_records: &facts.n_records,
        space: &space,
        norm_bound: facts.schema.norm_bound(),
    };
    let ask = |signal| {
        advise(&Question {
            plan: &plan,
            network: &network,
            names: &facts.names,
            signal,
            epsilons: &EPSILONS,
            wanted_auc_loss: Some(args.wanted_auc_loss),
            effort: Effort::Full,
        })
    };
    if let Some(path) = &args.public {
        let table = encode_file(path, &facts.schema, Purpose::Evaluate)?.records;
        return Ok(vec![(None, ask(Signal::Table(&table))?)]);
    }
    let signals = if args.auc.is_empty() { SIGNALS.to_vec() } else { args.auc.clone() };
    let mut found = vec![];
    for auc in signals {
        found.push((Some(auc), ask(Signal::Assumed { auc, positive: args.positive })?));
    }
    Ok(found)
}

/// The advice of which single sites are shown: the middle signal's.
fn middle(found: &BySignal) -> &(Option<f64>, Advice) {
    &found[found.len() / 2]
}

fn in_json(args: &Args, facts: &Facts, found: &BySignal) -> anyhow::Result<Value> {
    let (signal, advice) = middle(found);
    let mut json = serde_json::to_value(advice)?;
    let with_signal =
        |list: fn(&Advice) -> &Vec<padmm_core::advice::Expected>| -> anyhow::Result<Vec<Value>> {
            let mut all = vec![];
            for (signal, advice) in found {
                for expected in list(advice) {
                    let mut point = serde_json::to_value(expected)?;
                    point["assumed_auc"] = json!(signal);
                    all.push(point);
                }
            }
            Ok(all)
        };
    json["frontier"] = json!(with_signal(|a| &a.frontier)?);
    json["by_rounds"] = json!(with_signal(|a| &a.by_rounds)?);
    json["assumed"] = json!({
        "auc": signal,
        "positive": if signal.is_some() { Some(args.positive) } else { None },
        "public_table": args.public,
        "epsilon": facts.settings.epsilon,
        "delta": facts.settings.delta,
    });
    Ok(json)
}

impl Facts {
    fn of_plan(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the plan '{}' cannot be read", path.display()))?;
        let file: PlanFile = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            anyhow::anyhow!(
                "the plan '{}' is not understood, line {line}: {}",
                path.display(),
                error.message()
            )
        })?;
        let names: Vec<String> = file.site.iter().map(|s| s.name.clone()).collect();
        let place = |name: &String| {
            names.iter().position(|n| n == name).with_context(|| {
                format!("the plan '{}' has an edge to {name}, which is none of its sites", path.display())
            })
        };
        let edges: anyhow::Result<Vec<(usize, usize)>> =
            file.edges.iter().map(|(a, b)| Ok((place(a)?, place(b)?))).collect();
        Ok(Self {
            schema: file.schema.check()?,
            graph: Graph::of_edges(names.len(), edges?)?,
            n_records: file.site.iter().map(|s| s.records).collect(),
            names,
            settings: file.settings,
        })
    }

    fn of_flags(args: &Args) -> anyhow::Result<Self> {
        let Some(path) = &args.schema else { bail!("--schema FILE says what records look like") };
        let (mut names, mut n_records) = (vec![], vec![]);
        for site in &args.sites {
            let (name, n) = site
                .split_once('=')
                .with_context(|| format!("--sites {site} has no number of records: write {site}=N"))?;
            let n: usize = n.trim().replace('_', "").parse().ok().with_context(|| {
                format!("--sites {site}: {n} is no number of records; write a whole number")
            })?;
            ensure!(!names.iter().any(|known| known == name.trim()), "--sites names {name} twice");
            names.push(name.trim().to_owned());
            n_records.push(n);
        }
        ensure!(names.len() > 1, "--sites names {} site: name two or more", names.len());
        let graph = args.graph.build(names.len(), &names, 0).context("--graph")?;
        let settings = PlanDraft { epsilon: 1.0, loss: Loss::Logistic, ..PlanDraft::default() };
        Ok(Self { schema: read_schema(path)?, names, n_records, graph, settings })
    }
}
