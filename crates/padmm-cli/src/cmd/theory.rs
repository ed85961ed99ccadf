//! `padmm theory`: the graph's spectrum, whether the theorems' preconditions can hold, and the bounds.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use comfy_table::{CellAlignment, Table, presets};
use padmm_commands::terminal::{print, print_json};
use padmm_core::calibration::{Calibration, NetworkFacts};
use padmm_core::data::FeatureSpace;
use padmm_core::graph::{Graph, GraphSpec, Spectrum, gossip_contraction, gossip_rounds};
use padmm_core::plan::{AccountantKind, PlanDraft};
use padmm_core::regularizer::Regularizer;
use padmm_core::theory::{FreeParameters, StartDistance, Theory, TheoryInput};
use padmm_privacy::Schedule;
use padmm_privacy::words::delta_text;
use serde::Serialize;

/// What the paper's convergence theorems say about a run with these settings, and whether they say anything.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Number of agents in the network
    #[arg(long, default_value_t = 5, allow_negative_numbers = true)]
    pub agents: usize,
    /// Communication graph: ring, path, star, complete, grid, torus, erdos-renyi:P, geometric:RADIUS,
    /// small-world:K,BETA, regular:D, or edges:1-2,2-3 between agents 1 to N
    #[arg(long, default_value = "complete")]
    pub graph: GraphSpec,
    /// Penalty of disagreement, the paper's eta [default: derived from public facts, as in a simulation]
    #[arg(long, allow_negative_numbers = true)]
    pub penalty: Option<f64>,
    /// Factor by which the noise variance shrinks each round, in (0, 1]
    #[arg(long, default_value_t = 0.995, allow_negative_numbers = true)]
    pub decay: f64,
    /// Private rounds that share the budget
    #[arg(long, default_value_t = 50, allow_negative_numbers = true)]
    pub rounds: u32,
    /// Strength of the L2 regulariser, shared by all agents: each has this / N times the squared norm
    #[arg(long, default_value_t = 1e-3, allow_negative_numbers = true)]
    pub regularization: f64,
    /// Epsilon that every agent may spend in all rounds together
    #[arg(long, default_value_t = 5.0, allow_negative_numbers = true)]
    pub epsilon: f64,
    /// Delta at which that epsilon holds
    #[arg(long, default_value_t = 1e-4, allow_negative_numbers = true)]
    pub delta: f64,
    /// Conversion that calibrates the noise: exact or paper
    #[arg(long, default_value_t)]
    pub accountant: AccountantKind,
    /// Length of the model (104 for Adult)
    #[arg(long, default_value_t = 104, allow_negative_numbers = true)]
    pub features: usize,
    /// Records of each agent (about 9,044 for Adult among five)
    #[arg(long, default_value_t = 9044, allow_negative_numbers = true)]
    pub records: usize,
    /// Bound on the curvature of a record's loss: 0.25 for logistic loss with rows of norm at most 1. The
    /// regulariser's share is added to it
    #[arg(long, default_value_t = 0.25, allow_negative_numbers = true)]
    pub smoothness: f64,
    /// Norm of the best model, which decides how far away the start at zero is. It is unknown before a run, and
    /// 10 is a cautious round number for rows of norm at most 1: set what you expect
    #[arg(long, default_value_t = 10.0, allow_negative_numbers = true)]
    pub model_norm: f64,
    /// Public seed of the random graph families
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub seed: u64,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Everything that `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    agents: usize,
    graph: String,
    degrees: Vec<usize>,
    penalty: f64,
    accountant: AccountantKind,
    gossip_contraction: f64,
    first_noise_variances: &'a [f64],
    theory: &'a Theory,
}

/// Evaluates the theorems and prints them as tables or as JSON.
///
/// # Errors
/// Arguments outside their ranges, or a graph that cannot be built.
pub(crate) fn run(args: Args) -> Result<()> {
    ensure!(args.agents != 1, "--agents is 1, but the theorems are about agents that talk to each other");
    ensure!(args.records > 0, "--records is 0, but every agent needs at least one record");
    ensure!(
        (1..=10_000_000).contains(&args.features),
        "--features is {}, but it must be at least 1 and at most 10000000",
        args.features
    );
    let graph = args.graph.build(args.agents, &[], args.seed).context("--graph")?;
    let calibration = calibration(&args, &graph)?;
    let per_agent = args.regularization / args.agents as f64;
    let first_noise_var = |noise: &Arc<dyn Schedule>| noise.noise_std(1).map(|std| std.powi(2));
    let first_noise_vars: Vec<f64> =
        calibration.agents.iter().filter_map(|a| a.noise.as_ref()).filter_map(first_noise_var).collect();
    let theory = Theory::of(&TheoryInput {
        // f_i has the modulus 2Λ/N in the usual sense, and the paper's is half of that.
        strong_convexity: per_agent,
        smoothness: args.smoothness + 2.0 * per_agent,
        penalty: calibration.penalty,
        decay: args.decay,
        rounds: args.rounds as usize,
        n_features: args.features,
        first_noise_vars: first_noise_vars.clone(),
        start: StartDistance::from_zero(&graph, args.model_norm),
        free: FreeParameters::default(),
        graph: graph.clone(),
    })?;
    let contraction = gossip_contraction(&graph);
    if args.json {
        let report = Report {
            agents: args.agents,
            graph: args.graph.to_string(),
            degrees: graph.degrees(),
            penalty: calibration.penalty,
            accountant: args.accountant,
            gossip_contraction: contraction,
            first_noise_variances: &first_noise_vars,
            theory: &theory,
        };
        return print_json(&report);
    }
    let mut text = format!("Graph `{}` over {} agents, {} edges\n", args.graph, args.agents, graph.n_edges());
    text += &format!(
        "Penalty η = {:.6e}{}; noise for ε = {}, δ = {} ({} accountant)\n",
        calibration.penalty,
        if args.penalty.is_none() { " (derived)" } else { "" },
        args.epsilon,
        delta_text(args.delta),
        args.accountant,
    );
    text += &format!("{}\n", spectrum_table(&theory.spectrum));
    text += &format!(
        "Gossip: disagreement shrinks by a factor of {contraction:.6} a round; rounds to a thousandth of it: {}.\n\n",
        gossip_rounds(contraction, 1e-3, 100_000_000)
    );
    text += &format!("{}\n\n{}\n{}\n", theory.strongly_convex, theory.convex, bounds_table(&theory));
    print(&text)
}

/// Penalty and noise of every agent, as a run with these settings would have them; EQUATIONS §3 (Δ) and §5.
///
/// The loss is taken to have slopes up to 1 and rows of norm up to 1, as logistic regression on a shipped data set has.
fn calibration(args: &Args, graph: &Graph) -> Result<Calibration> {
    let plan = PlanDraft {
        rounds: args.rounds,
        penalty: args.penalty,
        decay: args.decay,
        epsilon: args.epsilon,
        delta: args.delta,
        accountant: args.accountant,
        regularizer: Regularizer::L2 { strength: args.regularization },
        ..PlanDraft::default()
    }
    .check()?;
    let n_records = vec![args.records; args.agents];
    let space = FeatureSpace::numeric(args.features);
    Ok(Calibration::derive(
        &plan,
        &NetworkFacts { graph, n_records: &n_records, space: &space, norm_bound: 1.0 },
    )?)
}

/// Two columns of numbers under the usual names.
fn spectrum_table(spectrum: &Spectrum) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["matrix", "largest", "smallest non-zero"]);
    for (name, largest, smallest) in [
        ("L₊ signless Laplacian", spectrum.signless_max, spectrum.signless_min),
        ("L₋ Laplacian", spectrum.signed_max, spectrum.signed_min),
        ("Q = √(L₋/2)", spectrum.root_max, spectrum.root_min),
        ("M degrees", spectrum.degree_max, spectrum.degree_min),
    ] {
        table.add_row([name.to_owned(), format!("{largest:.6}"), format!("{smallest:.6}")]);
    }
    right_align(&mut table);
    table
}

/// The three bounds, term by term.
fn bounds_table(theory: &Theory) -> Table {
    let number = |value: f64| match value.abs() {
        1e-3..1e4 => format!("{value:.4}"),
        _ => format!("{value:.3e}"),
    };
    let maybe = |value: Option<f64>| value.map_or("infinite".to_owned(), number);
    let convex = &theory.convex;
    let none = || "–".to_owned();
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["bound on E[f(x̂) − f*]", "as printed", "with dropped term", "rederived"]);
    let distance = number(convex.disagreement_term + convex.distance_term);
    table.add_row(["start".to_owned(), distance.clone(), distance.clone(), distance]);
    let printed = maybe(convex.paper_noise_term);
    table.add_row(["noise".to_owned(), printed.clone(), printed, number(convex.rederived_cross_term)]);
    let dropped = number(convex.dropped_term);
    table.add_row(["noise met by itself".to_owned(), none(), dropped.clone(), dropped]);
    table.add_row(["sum".to_owned(), maybe(convex.paper), maybe(convex.corrected), number(convex.rederived)]);
    right_align(&mut table);
    table
}

/// Numbers end where their column ends.
fn right_align(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

#[cfg(test)]
mod tests {
    use padmm_core::settings::as_flags;

    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn args(line: &[&str]) -> Args {
        Cli::parse_from(std::iter::once(&"theory").chain(line)).args
    }

    fn first_noise_std(line: &[&str]) -> f64 {
        let args = args(line);
        let graph = args.graph.build(args.agents, &[], args.seed).unwrap();
        calibration(&args, &graph).unwrap().agents[0].noise.as_ref().unwrap().noise_std(1).unwrap()
    }

    /// EQUATIONS §9: n = 8000, d = 4, η = 1/1750, m_R = 0.22/8750, K = 50, ε = 5, δ = 1e-4, R = 0.995. The vector has τ = 0,
    /// and a run has τ = 10⁻⁶ · 2B/n and a grid: a millionth and a little more.
    #[test]
    fn the_noise_is_that_of_the_test_vector() {
        // m_R = 2Λ/N
        let regularization = format!("--regularization={}", 0.5 * 5.0 * 0.22 / 8750.0);
        let line =
            ["--records=8000", "--penalty=5.714285714285714e-4", &regularization, "--accountant=paper"];
        let std = first_noise_std(&line);
        assert!((1.0..1.0 + 3e-5).contains(&(std / 0.394_038_10)), "{std}");
        assert!(first_noise_std(&line[..3]) < 0.9 * std, "the exact accountant needs less noise");
    }

    #[test]
    fn defaults_run_and_bad_arguments_name_their_flag() {
        run(args(&[])).unwrap();
        run(args(&["--json", "--graph=ring", "--decay=1"])).unwrap();
        for (line, needle) in [
            (vec!["--epsilon=0"], "--epsilon"),
            (vec!["--delta=1"], "--delta"),
            (vec!["--records=0"], "--records"),
            (vec!["--regularization=-1"], "--regularization"),
            (vec!["--graph=grid:2x2"], "--graph"),
            (vec!["--agents=1"], "--agents"),
            (vec!["--agents=0"], "--graph"),
            (vec!["--features=0"], "--features"),
            (vec!["--rounds=0"], "--rounds"),
            (vec!["--penalty=0"], "--penalty"),
            (vec!["--epsilon=NaN"], "--epsilon"),
            (vec!["--decay=0"], "decay"),
        ] {
            let error = format!("{:#}", run(args(&line)).unwrap_err());
            let told = as_flags(&error, &crate::settings::all_settings());
            assert!(told.contains(needle), "{told}");
        }
    }
}
