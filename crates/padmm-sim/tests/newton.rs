//! Consensus Newton on real data: what it costs in the objective, and that all sites end with the same bits.

use padmm_core::algorithm::CONSENSUS_NEWTON;
use padmm_core::data::Dataset;
use padmm_core::evaluate::score;
use padmm_core::graph::GraphSpec;
use padmm_core::loss::Loss;
use padmm_core::plan::PlanDraft;
use padmm_data::{Source, load};
use padmm_sim::{Holdout, NoiseKind, PreparedSimulation, RunOptions, SimulationPlan, Split};

fn adult(n_agents: usize, epsilon: f64) -> PreparedSimulation {
    let encoded = load(&Source::Shipped("adult".into())).unwrap().encoded;
    let setting = SimulationPlan {
        dataset: "adult".into(),
        n_agents: Some(n_agents),
        graph: "ring".parse::<GraphSpec>().unwrap(),
        split: Split::Even,
        holdout: Holdout::None,
        runs: 1,
        seed: 7,
        noise: NoiseKind::Seeded,
        reference: false,
        rank_rounds: false,
        plan: PlanDraft { algorithm: CONSENSUS_NEWTON, rounds: 0, epsilon, ..PlanDraft::default() }
            .check()
            .unwrap(),
    };
    PreparedSimulation::prepare(setting, encoded).unwrap()
}

/// Mean over runs of how far the model's objective is above the pooled optimum's, as a part of it.
fn excess(simulation: &PreparedSimulation, runs: u32) -> f64 {
    let shards: Vec<&Dataset> = simulation.shards().iter().map(|s| &**s).collect();
    let n = shards.len() as f64;
    let objective = |x: &[f64]| {
        let free = simulation.space().intercept;
        let squares = x.iter().enumerate().filter(|(j, _)| Some(*j) != free).map(|(_, v)| v * v).sum::<f64>();
        score(Loss::Logistic, &shards, x, false).mean_loss + 1e-3 / n * squares
    };
    let best = objective(simulation.optimum());
    let of_run = |run| {
        let outcomes = simulation.run(&RunOptions::number(run)).unwrap().outcomes;
        let first = outcomes[0].last.as_slice();
        assert!(
            outcomes.iter().all(|o| o.last.as_slice() == first && o.smoothed.as_slice() == first),
            "all sites agree"
        );
        objective(first) / best - 1.0
    };
    (0..runs).map(of_run).sum::<f64>() / f64::from(runs)
}

#[test]
fn a_model_costs_little_more_than_the_pooled_one() {
    for (n_agents, epsilon, most) in [(5, 1.0, 0.005), (5, 0.1, 0.08), (20, 1.0, 0.03)] {
        let simulation = adult(n_agents, epsilon);
        let found = excess(&simulation, 5);
        println!("{n_agents} sites, epsilon {epsilon}: excess objective {:.3} %", 100.0 * found);
        assert!(found < most, "{n_agents} sites, epsilon {epsilon}: {found}");
    }
}
