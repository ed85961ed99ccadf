//! What `advice` expects, against runs: from public facts alone, within a factor of two.

use padmm_core::advice::{Effort, Question, Signal, advise};
use padmm_core::algorithm::{AlgorithmKind, CONSENSUS_NEWTON, P_ADMM, PRIVATE_GRADIENT};
use padmm_core::calibration::NetworkFacts;
use padmm_core::data::FeatureSpace;
use padmm_core::graph::Graph;
use padmm_core::plan::PlanDraft;
use padmm_data::Loaded;
use padmm_privacy::Budget;
use padmm_sim::{Holdout, Simulation};

const SITES: usize = 4;

/// Heart Disease's four hospitals, whose records advice never sees.
fn heart() -> Loaded {
    padmm_data::load(&padmm_data::Source::Shipped("heart".to_owned())).unwrap()
}

/// Mean excess objective over a few seeds, in parts of the pooled optimum's.
fn measured(kind: AlgorithmKind, epsilon: f64) -> f64 {
    let seeds = 1..=6u64;
    let excess = |seed: u64| {
        let finished = Simulation::new(heart())
            .algorithm(kind)
            .privacy(Budget::new(epsilon, 1e-4).unwrap())
            .holdout(Holdout::None)
            // Zero leaves the rounds to the method's rule.
            .rounds(if kind == P_ADMM { 50 } else { 0 })
            .seed(seed)
            .run()
            .unwrap();
        let (record, space) = (finished.record(), heart().encoded.features);
        let free = space.intercept;
        let values = finished.model().values().iter().enumerate();
        let square: f64 = values.filter(|(j, _)| Some(*j) != free).map(|(_, v)| v * v).sum();
        let objective = record.summary.model_loss.mean + 1e-3 / SITES as f64 * square;
        objective / record.optimum.as_ref().unwrap().objective - 1.0
    };
    let n = seeds.clone().count() as f64;
    seeds.map(excess).sum::<f64>() / n
}

fn predicted(n_records: &[usize], space: &FeatureSpace, epsilons: &[f64]) -> Vec<(String, f64, f64)> {
    let plan = PlanDraft { epsilon: epsilons[0], ..PlanDraft::default() }.check().unwrap();
    let graph = Graph::complete(n_records.len()).unwrap();
    let network = NetworkFacts { graph: &graph, n_records, space, norm_bound: 1.0 };
    let names: Vec<String> = n_records.iter().map(ToString::to_string).collect();
    let advice = advise(&Question {
        plan: &plan,
        network: &network,
        names: &names,
        signal: Signal::Assumed { auc: 0.85, positive: 0.3 },
        epsilons,
        wanted_auc_loss: None,
        effort: Effort::Full,
    })
    .unwrap();
    advice.frontier.into_iter().map(|e| (e.algorithm, e.epsilon, e.excess_objective)).collect()
}

#[test]
fn predictions_are_within_a_factor_of_two_of_runs_on_heart_disease() {
    let loaded = heart();
    let sites = loaded.encoded.sites.as_ref().unwrap();
    let mut n_records = vec![0; sites.names.len()];
    sites.of_record.iter().for_each(|&site| n_records[site as usize] += 1);
    for (algorithm, epsilon, predicted) in predicted(&n_records, &loaded.encoded.features, &[1.0, 5.0]) {
        let methods = [P_ADMM, PRIVATE_GRADIENT, CONSENSUS_NEWTON];
        let kind = methods.into_iter().find(|kind| kind.name() == algorithm).unwrap();
        let measured = measured(kind, epsilon);
        let ratio = predicted / measured;
        assert!((0.5..2.0).contains(&ratio), "{algorithm}, ε = {epsilon}: {predicted} and {measured}");
    }
}
