//! What people are told of a run: objective beside loss, calibration beside AUC, a constant beside the model. Each against a second
//! computation.

use crate::common;

use common::{dense, naive_mean_loss};
use padmm_baselines::ADMM;
use padmm_core::data::Dataset;
use padmm_core::loss::Loss;
use padmm_core::metrics::Recalibration;
use padmm_core::plan::{Output, PlanDraft, SiteWeights};
use padmm_data::{Source, load};
use padmm_sim::split::{Sites, partition};
use padmm_sim::{
    Holdout, NoiseKind, PreparedSimulation, Record, RunOptions, SimulationPlan, Split, simulate,
};

fn setting(plan: PlanDraft, holdout: Holdout) -> SimulationPlan {
    SimulationPlan {
        dataset: "heart".into(),
        n_agents: None,
        graph: "complete".parse().unwrap(),
        split: Split::Site,
        holdout,
        runs: 2,
        seed: 4,
        noise: NoiseKind::Seeded,
        reference: false,
        rank_rounds: false,
        measures: true,
        plan: plan.check().unwrap(),
    }
}

/// Four hospitals of different size.
fn hospitals() -> padmm_core::schema::Encoded {
    load(&Source::Shipped("heart".into())).unwrap().encoded
}

fn run(plan: PlanDraft) -> Record {
    simulate(setting(plan, Holdout::None), hospitals(), &|_| ()).unwrap().0
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} against {expected}");
}

#[test]
fn the_objective_is_that_of_the_weighted_problem_and_calibration_that_of_the_measured_records() {
    for (weights, holdout) in [
        (SiteWeights::Records, Holdout::None),
        (SiteWeights::Sites, Holdout::Fraction(0.25)),
        (SiteWeights::Damped, Holdout::None),
    ] {
        let plan = PlanDraft { rounds: 3, epsilon: 20.0, weights, ..PlanDraft::default() };
        let setting = setting(plan, holdout);
        let Sites { shards, test, .. } =
            partition(&hospitals(), None, setting.split.clone(), holdout, setting.seed).unwrap();
        let simulation = PreparedSimulation::prepare(setting, hospitals()).unwrap();
        let run = simulation.run(&RunOptions::default()).unwrap();
        let n_sites = shards.len() as f64;
        let sizes: Vec<f64> = shards.iter().map(|s| s.n_records() as f64).collect();
        let raw: Vec<f64> = sizes
            .iter()
            .map(|n| match weights {
                SiteWeights::Records => *n,
                SiteWeights::Sites => 1.0,
                SiteWeights::Damped => n * (n * n_sites / sizes.iter().sum::<f64>()).min(1.0),
            })
            .collect();
        let free = simulation.space().intercept;
        let objective = |x: &[f64]| {
            let losses = shards.iter().zip(&raw).map(|(s, w)| w * naive_mean_loss(s, Loss::Logistic, x));
            let squares = x.iter().enumerate().filter(|(c, _)| Some(*c) != free).map(|(_, x)| x * x);
            losses.sum::<f64>() / raw.iter().sum::<f64>() + 1e-3 / n_sites * squares.sum::<f64>()
        };
        let record = simulation.record(vec![run.record.clone()]);
        near(record.optimum.as_ref().unwrap().objective, objective(simulation.optimum()));
        let kept: Vec<&[f64]> = run.outcomes.iter().map(|o| o.smoothed.as_slice()).collect();
        let mean = |f: &dyn Fn(&[f64]) -> f64| kept.iter().map(|x| f(x)).sum::<f64>() / n_sites;
        near(record.summary.model_objective.as_ref().unwrap().mean, mean(&objective));
        near(record.excess_objective().unwrap(), mean(&objective) / objective(simulation.optimum()) - 1.0);
        assert!(record.excess_objective().unwrap() > 0.0, "nothing is below the optimum");

        let mut train = test.empty_like();
        shards.iter().for_each(|s| train.append(s));
        let measured = if test.n_records() > 0 { &test } else { &train };
        let line = |x: &[f64]| Recalibration::of(&margins(measured, x), measured.labels()).unwrap();
        let found = record.summary.calibration.unwrap();
        near(found.slope, mean(&|x| line(x).slope));
        near(found.intercept, mean(&|x| line(x).intercept));
        let positive = measured.labels().iter().filter(|z| **z > 0.0).count() as f64;
        let share = positive / measured.n_records() as f64;
        near(record.constant.unwrap().accuracy.unwrap(), share.max(1.0 - share));
    }
}

fn margins(data: &Dataset, x: &[f64]) -> Vec<f64> {
    (0..data.n_records()).map(|r| dense(data, r).iter().zip(x).map(|(a, x)| a * x).sum()).collect()
}

#[test]
fn summaries_have_the_models_that_sites_keep() {
    for output in [Output::Smoothed, Output::Last] {
        let record = run(PlanDraft { rounds: 3, epsilon: 50.0, output, ..PlanDraft::default() });
        let kept: Vec<_> =
            record.runs.iter().map(|r| if output == Output::Last { r.last } else { r.smoothed }).collect();
        let mean = kept.iter().map(|m| m.objective.unwrap()).sum::<f64>() / 2.0;
        near(record.summary.model_objective.as_ref().unwrap().mean, mean);
        let slope = kept.iter().map(|m| m.calibration.unwrap().slope).sum::<f64>() / 2.0;
        near(record.summary.calibration.unwrap().slope, slope);
    }
}

#[test]
fn a_model_that_a_constant_beats_is_said_to_be_worthless() {
    // With next to no budget there is nothing but noise; without noise the records are learned from.
    let record = run(PlanDraft { rounds: 4, epsilon: 1e-3, ..PlanDraft::default() });
    let reason = record.worthless().expect("noise is worth nothing");
    assert!(reason.contains("base rate") && reason.contains("no better than"), "{reason}");
    assert!(record.summary.model_loss.mean >= record.constant.unwrap().loss);
    assert!(record.excess_objective().unwrap() > 0.1);

    let mut record = run(PlanDraft { algorithm: ADMM, rounds: 100, ..PlanDraft::default() });
    assert_eq!(record.worthless(), None);
    assert!(record.optimum.as_ref().unwrap().loss < record.constant.unwrap().loss);
    // One class in nine, and a model that always answers the other eight.
    let constant = record.constant.as_mut().unwrap();
    constant.accuracy = record.summary.accuracy.as_ref().map(|a| a.mean);
    assert!(record.worthless().unwrap().contains("always answering the larger class"));
    // Records of older programs know of no constant.
    record.constant = None;
    assert_eq!(record.worthless(), None);
}
