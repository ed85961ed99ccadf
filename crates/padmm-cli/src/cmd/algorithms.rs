//! `padmm algorithms`: what there is, what each needs and guarantees.

use padmm_commands::terminal::{print, print_json};
use padmm_core::algorithm::{AlgorithmKind, Description, GraphNeeded, Guarantee, Needs};
use serde_json::{Value, json};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.json {
        let all: Vec<Value> = padmm_baselines::ALL.iter().map(|a| object(*a)).collect();
        return print_json(&json!({ "algorithms": all }));
    }
    let mut text = String::from("Algorithms for `padmm simulate --algorithm NAME`\n");
    for kind in padmm_baselines::ALL {
        let d = kind.describe();
        let settings: Vec<String> = d.settings().map(|name| format!("--{name}")).collect();
        let settings = if settings.is_empty() { "none".to_owned() } else { settings.join(", ") };
        text.push_str(&format!(
            "\n{:<20}{}, {}\n  {}\n  needs      {}\n  guarantee  {}\n  settings   {settings}\n  runs in    {}\n",
            kind.name(),
            kind.title(),
            d.reference,
            d.summary,
            needs(d),
            guarantee(d.guarantee),
            if kind.runs_between_sites() { "simulations, and between sites" } else { "simulations only" },
        ));
    }
    text.push_str(
        "\nEvery noise is calibrated to --epsilon and --delta by the best valid accounting; --accountant paper takes the\n\
         accounting of each method's own paper. All are run on any loss and regulariser that they are proved for.\n",
    );
    print(&text)
}

fn needs(d: &Description) -> String {
    let graph = match d.graph {
        GraphNeeded::Any => "any connected graph",
        GraphNeeded::Star => "a star whose middle, the first site, is also the server",
        GraphNeeded::Complete => "a complete graph",
    };
    let problem = match d.needs {
        Needs::Nothing => "any loss with bounded slope, any regulariser",
        Needs::TwiceDifferentiable => "a twice differentiable loss (logistic), no regulariser or l2",
        Needs::SmoothLoss => "a smooth loss (any but hinge)",
        Needs::SmoothLossSeparableRegularizer => "a smooth loss (any but hinge); none, l1, l2 or elastic-net",
        Needs::SeparableRegularizer => "any loss with bounded slope; none, l1, l2 or elastic-net",
    };
    format!("{graph}; {problem}")
}

fn guarantee(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::Nothing => "none: exact models are exchanged",
        Guarantee::ExactGaussian => {
            "(ε, δ) by exact composition of Gaussian noise, drawn exactly on a grid: holds for the bytes that leave"
        }
        Guarantee::Pure => {
            "ε of every charged round, added up by the best of basic, zCDP, Rényi and optimal composition; noise in floating point: simulation only"
        }
        Guarantee::Experimental => {
            "EXPERIMENTAL: Rényi bounds by an argument of this project (PRIVACY.md); noise in floating point: simulation only"
        }
    }
}

fn object(kind: AlgorithmKind) -> Value {
    let d = kind.describe();
    json!({
        "name": kind.name(),
        "title": kind.title(),
        "reference": d.reference,
        "summary": d.summary,
        "needs": needs(d),
        "guarantee": guarantee(d.guarantee),
        "settings": d.settings().map(|name| format!("--{name}")).collect::<Vec<_>>(),
        "between_sites": kind.runs_between_sites(),
        "experimental": d.guarantee == Guarantee::Experimental,
    })
}
