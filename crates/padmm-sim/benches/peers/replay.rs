//! The solves of a run one after another, for counting: the same linear terms from the same releases.

use padmm_core::loss::Loss;
use padmm_core::objective::{Objective, Part};
use padmm_core::regularizer::Penalty;
use padmm_core::solver::Solver;
use padmm_core::step;
use padmm_privacy::Public;
use padmm_sim::Simulation;

use crate::timed;

/// What the solves of a run cost.
#[derive(Default)]
pub struct Cost {
    /// Solves.
    pub n_solves: usize,
    /// Evaluations of value and gradient.
    pub n_evaluations: usize,
    /// Hessians formed and factored.
    pub n_factorizations: usize,
    /// Seconds in the solver, one agent after another.
    pub seconds: f64,
}

/// Solves every agent's problem of every round on the complete graph from `releases`, warm.
pub fn replay(simulation: &Simulation, releases: &[Vec<Public>], penalty: &Penalty) -> Cost {
    let (terms, shards) = (simulation.terms(), simulation.shards());
    let (n, p) = (shards.len(), shards[0].n_features());
    let zero = vec![Public::zeros(p); n];
    let mut cost = Cost::default();
    for (i, shard) in shards.iter().enumerate() {
        let (mut solver, mut warm, mut dual) = (Solver::new(), vec![0.0; p], Public::zeros(p));
        let mut linear = vec![];
        for (k, after) in releases.iter().enumerate() {
            let before = if k == 0 { &zero } else { &releases[k - 1] };
            let others: Vec<&Public> = (0..n).filter(|&j| j != i).map(|j| &before[j]).collect();
            step::primal_linear(&dual, terms.penalty, &before[i], &others, &mut linear);
            let quadratic = step::primal_quadratic(terms.penalty, n - 1);
            let parts = [Part::mean(shard)];
            let objective = Objective::new(&parts, Loss::Logistic, penalty, &linear, quadratic);
            let (seconds, solution) = timed(|| solver.solve(&objective, &warm, terms.agents[i].tolerance));
            cost.n_solves += 1;
            cost.n_evaluations += solution.n_evaluations;
            cost.n_factorizations += solution.n_factorizations;
            cost.seconds += seconds;
            warm = solution.point;
            after.iter().for_each(|other| step::dual_edge(&mut dual, terms.penalty, &after[i], other));
        }
    }
    cost
}
