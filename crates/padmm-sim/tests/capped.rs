//! Runs with capped slopes: rows are as long as they are, and a record's gradient is at most the cap.

use padmm_baselines::{ADMM, DVP};
use padmm_core::algorithm::{CONSENSUS_NEWTON, P_ADMM};
use padmm_core::data::Dataset;
use padmm_core::loss::Loss;
use padmm_core::plan::{Output, PlanDraft, PlanError};
use padmm_core::schema::{Encoded, Schema};
use padmm_data::{Source, load};
use padmm_sim::{Holdout, NoiseKind, PreparedSimulation, RunOptions, SimulationPlan, Split};

const CAP: f64 = 0.5;

fn heart() -> (Schema, Encoded) {
    let loaded = load(&Source::Shipped("heart".into())).unwrap();
    (loaded.schema, loaded.encoded)
}

fn prepare(plan: PlanDraft) -> PreparedSimulation {
    let graph = plan.algorithm.graph_needed().unwrap_or("complete");
    let setting = SimulationPlan {
        dataset: "heart".into(),
        n_agents: None,
        graph: graph.parse().unwrap(),
        split: Split::Site,
        holdout: Holdout::None,
        runs: 1,
        seed: 2,
        noise: NoiseKind::Seeded,
        reference: false,
        rank_rounds: false,
        measures: true,
        plan: plan.check().unwrap(),
    };
    PreparedSimulation::prepare(setting, heart().1).unwrap()
}

/// `aᵀx` and `‖a‖` of a row that is not scaled.
fn unscaled(data: &Dataset, r: usize, x: &[f64]) -> (f64, f64) {
    let row = data.row(r);
    let margin = row.numeric.iter().zip(x).map(|(a, x)| a * x).sum::<f64>();
    let square = row.numeric.iter().map(|a| a * a).sum::<f64>() + row.hot.len() as f64;
    (margin + row.hot.iter().map(|&j| x[j as usize]).sum::<f64>(), square.sqrt())
}

#[test]
fn without_noise_a_run_reaches_the_minimiser_of_the_capped_problem() {
    let plan = PlanDraft {
        algorithm: ADMM,
        rounds: 400,
        penalty: Some(0.02),
        output: Output::Last,
        slope_cap: Some(CAP),
        ..PlanDraft::default()
    };
    let simulation = prepare(plan);
    let x = simulation.optimum();
    let n: usize = simulation.shards().iter().map(|s| s.n_records()).sum();
    // The gradient by its definition: slopes are clipped record by record, and every record counts the same.
    let free = simulation.space().intercept;
    let mut gradient: Vec<f64> =
        (0..x.len()).map(|j| if Some(j) == free { 0.0 } else { 2e-3 / 4.0 * x[j] }).collect();
    let mut n_capped = 0;
    for shard in simulation.shards() {
        assert_eq!(shard.slope_cap(), Some(CAP));
        for (r, row) in shard.rows().enumerate() {
            let (margin, length) = unscaled(shard, r, x);
            let slope = -row.label / (1.0 + (row.label * margin).exp());
            let clipped = slope.clamp(-CAP / length, CAP / length);
            n_capped += usize::from(slope.abs() > CAP / length);
            row.numeric.iter().enumerate().for_each(|(j, a)| gradient[j] += clipped * a / n as f64);
            row.hot.iter().for_each(|&j| gradient[j as usize] += clipped / n as f64);
        }
    }
    let longest = gradient.iter().fold(0.0f64, |most, g| most.max(g.abs()));
    assert!(longest < 1e-7, "{longest:e}");
    assert!(n_capped > 100, "the cap is not felt: {n_capped}");

    let run = simulation.run(&RunOptions::default()).unwrap();
    let record = simulation.record(vec![run.record]);
    let excess = record.excess_objective().unwrap();
    assert!((-1e-9..1e-3).contains(&excess), "{excess:e}");
}

#[test]
fn every_algorithm_runs_with_the_cap_or_refuses_it() {
    let mut ran = vec![];
    for algorithm in padmm_baselines::ALL {
        let plan = PlanDraft { algorithm, rounds: 2, slope_cap: Some(CAP), ..PlanDraft::default() };
        match plan.clone().check() {
            Ok(_) => {
                prepare(plan).run(&RunOptions::default()).unwrap();
                ran.push(algorithm.name());
            }
            Err(error) => assert!(error.to_string().contains("`slope-cap`"), "{error}"),
        }
    }
    assert!(ran.contains(&P_ADMM.name()) && ran.contains(&ADMM.name()) && ran.len() >= 5, "{ran:?}");
    for refused in [DVP, CONSENSUS_NEWTON] {
        let plan = PlanDraft { algorithm: refused, rounds: 5, slope_cap: Some(CAP), ..PlanDraft::default() };
        assert!(matches!(plan.check(), Err(PlanError::NotSupported { .. })));
    }
    for cap in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = PlanDraft { slope_cap: Some(cap), ..PlanDraft::default() }.check().unwrap_err();
        assert!(error.to_string().contains("slope-cap"), "{error}");
    }
}

#[test]
fn the_noise_is_for_the_cap_and_every_loss_runs() {
    for loss in [Loss::Logistic, Loss::HuberizedHinge { width: 0.5 }, Loss::Hinge] {
        let plan =
            |slope_cap| PlanDraft { rounds: 2, loss, slope_cap, penalty: Some(0.05), ..PlanDraft::default() };
        let sensitivity = |slope_cap| {
            let calibration = prepare(plan(slope_cap)).calibration().agents[0].clone();
            calibration.noise.unwrap().report().sensitivity
        };
        // Without the cap rows have norm 1 and slopes are at most 1.
        let ratio = sensitivity(Some(CAP)) / sensitivity(None);
        assert!((ratio / CAP - 1.0).abs() < 0.01, "{loss}: {ratio}");
        prepare(plan(Some(CAP))).run(&RunOptions::default()).unwrap();
    }
}

#[test]
fn a_model_sees_rows_as_the_run_did() {
    let (schema, encoded) = heart();
    let settings = PlanDraft { slope_cap: Some(CAP), ..PlanDraft::default() };
    let own = settings.schema_of_model(schema.clone());
    assert_eq!(PlanDraft::default().schema_of_model(schema.clone()), schema);
    let x: Vec<f64> = (0..schema.feature_space().n_features()).map(|j| (j as f64).sin()).collect();
    let provenance = padmm_core::model::Provenance {
        version: "0".into(),
        algorithm: "p-admm".into(),
        output: "last".into(),
    };
    let model = padmm_core::model::Model::new(own.clone(), Loss::Logistic, &x, None, provenance).unwrap();
    // Encoded by the model's own schema, as `predict` does.
    let seen = encoded.records.clone().with_norm_bound(own.norm_bound());
    assert!(encoded.records.rows().any(|row| row.scale < 1.0), "the schema's bound cuts rows");
    for (r, margin) in model.margins(&seen).into_iter().enumerate() {
        assert!((margin - unscaled(&seen, r, &x).0).abs() < 1e-12);
    }
    let shards = prepare(PlanDraft { rounds: 2, ..settings });
    assert!(shards.shards().iter().flat_map(|s| s.rows()).all(|row| row.scale.to_bits() == 1.0f64.to_bits()));
    assert_eq!(shards.shards()[0].norm_bound().to_bits(), own.norm_bound().to_bits());
}
