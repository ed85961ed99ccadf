//! The simulator: the same bits whatever the number of threads, and metrics against a second computation.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use crate::common;

use common::{Random, dense, naive_mean_loss};
use padmm_baselines::{ADMM, M_ADMM};
use padmm_core::agent::AgentError;
use padmm_core::data::Dataset;
use padmm_core::evaluate::score;
use padmm_core::graph::GraphSpec;
use padmm_core::loss::Loss;
use padmm_core::plan::{Output, OwnSettings, PlanDraft};
use padmm_core::regularizer::Regularizer;
use padmm_core::schema::Encoded;
use padmm_data::{Source, load};
use padmm_privacy::NoiseSource;
use padmm_sim::split::{Sites, partition};
use padmm_sim::{
    Holdout, InsecureSeededNoise, NoiseKind, PreparedSimulation, Progress, Record, RunOptions, SimError,
    SimulationPlan, Split, simulate,
};

fn shipped(name: &str) -> Encoded {
    load(&Source::Shipped(name.into())).unwrap().encoded
}

/// The first `n` records of Adult: no sites, no published test file.
fn some_adults(n: usize) -> Encoded {
    let mut encoded = shipped("adult");
    let mut records = encoded.records.empty_like();
    (0..n).for_each(|r| records.push_row(encoded.records.row(r)));
    encoded.records = records;
    encoded.official_test = None;
    encoded
}

fn setting(plan: PlanDraft) -> SimulationPlan {
    SimulationPlan {
        dataset: "adult".into(),
        n_agents: Some(5),
        graph: "ring".parse().unwrap(),
        split: Split::Even,
        holdout: Holdout::Fraction(0.2),
        runs: 2,
        seed: 4,
        noise: NoiseKind::Seeded,
        reference: true,
        rank_rounds: true,
        measures: true,
        plan: plan.check().unwrap(),
    }
}

fn short() -> PlanDraft {
    PlanDraft { rounds: 4, ..PlanDraft::default() }
}

fn quiet(_: Progress) {}

/// A record without the one thing in it that is a clock.
fn text(mut record: Record) -> String {
    record.seconds = 0.0;
    serde_json::to_string(&record).unwrap()
}

fn error_of(setting: SimulationPlan, encoded: Encoded) -> SimError {
    match simulate(setting, encoded, &quiet) {
        Err(error) => error,
        Ok(_) => panic!("an error was expected"),
    }
}

// Threads and seeds.

#[test]
fn results_are_the_same_bits_for_any_number_of_threads() {
    // 45,222 records and 5 agents: objectives of several tasks as well as several agents run in parallel.
    let encoded = shipped("adult");
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let holdout = Holdout::None;
        let (record, model) = pool
            .install(|| simulate(SimulationPlan { holdout, ..setting(short()) }, encoded.clone(), &quiet))
            .unwrap();
        (text(record), model.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>())
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

#[test]
fn a_seed_repeats_and_another_does_not() {
    let run = |seed| {
        let (record, model) =
            simulate(SimulationPlan { seed, ..setting(short()) }, some_adults(600), &quiet).unwrap();
        (text(record), model)
    };
    assert_eq!(run(4), run(4));
    assert_ne!(run(4).1, run(5).1);
}

#[test]
fn runs_differ_in_their_noise_and_in_nothing_else() {
    let simulation = PreparedSimulation::prepare(setting(short()), some_adults(600)).unwrap();
    let trace = |run| simulation.run(&RunOptions::number(run)).unwrap().record.trace;
    assert_eq!(trace(1), trace(1), "run 1 alone is run 1 among others");
    assert_ne!(trace(0), trace(1));
    assert_eq!(simulation.run_all(&|_| true).unwrap().0.runs[1].trace, trace(1));
    let (plain, calibration) = simulation.reference().unwrap();
    let trace = |run| {
        simulation
            .run(&RunOptions { run, instead: Some((&plain, &calibration)), ..RunOptions::default() })
            .unwrap()
            .record
            .trace
    };
    assert_eq!(trace(0), trace(1), "without noise all runs are one");
}

#[test]
fn every_agent_and_run_has_its_own_noise() {
    let draw = |seed, run, agent| {
        let mut out = [0; 8];
        InsecureSeededNoise::new(seed, run, agent).fill(1e6, &mut out).unwrap();
        out
    };
    let mut seen = vec![];
    for seed in [0, 1, u64::MAX] {
        for run in [0, 1, 2] {
            for agent in [0, 1, 2, 1000] {
                let drawn = draw(seed, run, agent);
                assert_eq!(drawn, draw(seed, run, agent));
                assert!(!seen.contains(&drawn), "seed {seed}, run {run}, agent {agent}");
                seen.push(drawn);
            }
        }
    }
    let mut noise = InsecureSeededNoise::new(7, 0, 0);
    assert!(!noise.is_secure() && noise.description().contains("insecure"));
    // 100,000 draws: mean and variance within six standard errors (a false alarm in 5e8).
    let mut out = vec![0; 100_000];
    noise.fill(1e4, &mut out).unwrap();
    let mean = out.iter().map(|&v| v as f64).sum::<f64>() / 1e5;
    let var = out.iter().map(|&v| (v as f64).powi(2)).sum::<f64>() / 1e5;
    assert!(mean.abs() < 6.0 * 1e4 / 1e5f64.sqrt());
    assert!((var / 1e8 - 1.0).abs() < 6.0 * (2.0f64 / 1e5).sqrt());
}

#[test]
fn the_samplers_of_real_sites_can_be_simulated() {
    let plan = PlanDraft { rounds: 2, ..PlanDraft::default() };
    let run = |noise| {
        simulate(SimulationPlan { noise, runs: 1, ..setting(plan.clone()) }, some_adults(300), &quiet)
    };
    let (secure, _) = run(NoiseKind::Secure).unwrap();
    assert!(secure.noise_source.contains("exact discrete Gaussian"));
    assert!(run(NoiseKind::Seeded).unwrap().0.noise_source.contains("insecure"));
    assert_ne!(secure.runs[0].trace, run(NoiseKind::Secure).unwrap().0.runs[0].trace, "nobody can repeat it");
}

#[test]
fn a_watcher_hears_of_every_round() {
    let heard = std::sync::Mutex::new(vec![]);
    let watch = |p: Progress| heard.lock().unwrap().push(p);
    simulate(setting(short()), some_adults(300), &watch).unwrap();
    let mut done: Vec<u64> = heard.lock().unwrap().iter().map(|p| p.done).collect();
    done.sort_unstable();
    assert_eq!(done, (1..=12).collect::<Vec<u64>>(), "4 rounds of 2 runs and the reference");
    assert!(heard.lock().unwrap().iter().all(|p| p.total == 12 && p.average_loss > Some(0.0)));
}

#[test]
fn a_run_that_is_stopped_ends_after_its_round() {
    let heard = std::sync::atomic::AtomicU64::new(0);
    let watch = |p: Progress| {
        heard.store(p.done, std::sync::atomic::Ordering::Relaxed);
        p.done < 3
    };
    let simulation = PreparedSimulation::prepare(setting(short()), some_adults(300)).unwrap();
    let stopped = simulation.run_all(&watch);
    assert!(matches!(stopped, Err(SimError::Stopped)));
    assert_eq!(heard.into_inner(), 3, "the reference runs alone, and its third round was the last");
}

#[test]
fn settings_by_name_are_the_plan_and_unknown_names_are_listed() {
    let settings = padmm_sim::Settings::default()
        .with("algorithm", "dp-admm")
        .with("loss", "huberized-hinge")
        .with("loss-width", 0.25)
        .with("holdout", 0.5);
    let plan = SimulationPlan::from_settings(&settings, "x", true, false).unwrap();
    assert_eq!(plan.graph, GraphSpec::Star, "the graph that the algorithm needs");
    assert_eq!((plan.split, plan.holdout, plan.seed), (Split::Site, Holdout::Fraction(0.5), 1));
    assert_eq!(plan.plan.settings().loss, Loss::HuberizedHinge { width: 0.25 });
    let wrong = padmm_sim::Settings::default().with("output", "both");
    let error = wrong.draft(&padmm_baselines::ALL).unwrap_err();
    assert_eq!(error.to_string(), "`output = both` is not known: choose one of smoothed, last");
}

// Errors.

#[test]
fn what_cannot_be_simulated_is_said() {
    let adult = || some_adults(60);
    let e = error_of(SimulationPlan { runs: 0, ..setting(short()) }, adult());
    assert!(matches!(e, SimError::NoRuns), "{e}");
    let e = error_of(setting(PlanDraft { loss: Loss::Huber { width: 1.0 }, ..short() }), adult());
    assert!(matches!(e, SimError::LabelKind { needed: "numeric", found: "binary", .. }), "{e}");
    let unconnected = GraphSpec::Edges(vec![("agent-1".into(), "agent-2".into())]);
    let e = error_of(SimulationPlan { graph: unconnected, ..setting(short()) }, adult());
    assert!(matches!(e, SimError::Graph(_)), "{e}");
    // A site alone without strong convexity has no sensitivity.
    let alone = PlanDraft { regularizer: Regularizer::None, ..short() };
    let e = error_of(SimulationPlan { n_agents: Some(1), ..setting(alone) }, adult());
    assert!(matches!(e, SimError::Calibration(_)), "{e}");
    let e = error_of(setting(PlanDraft { tolerance: Some(1e-14), ..short() }), adult());
    let SimError::Agent { site, problem: AgentError::ToleranceNotReached { round: 1, .. } } = &e else {
        panic!("{e}");
    };
    assert!(site.starts_with("agent-") && e.to_string().contains(site.as_str()));
    // A corner so sharp that floating point cannot certify any point of it.
    let e = error_of(setting(PlanDraft { loss: Loss::HuberizedHinge { width: 1e-14 }, ..short() }), adult());
    assert!(matches!(e, SimError::NoOptimum { .. }), "{e}");
    let e: SimError = PlanDraft { epsilon: 0.0, ..short() }.check().unwrap_err().into();
    assert!(matches!(e, SimError::Plan(_)), "{e}");
}

// Metrics.

/// Area under the ROC curve by its definition.
fn naive_auc(margins: &[f64], labels: &[f64]) -> f64 {
    let (mut won, mut pairs) = (0.0, 0.0);
    for (t, _) in margins.iter().zip(labels).filter(|(_, z)| **z > 0.0) {
        for (u, _) in margins.iter().zip(labels).filter(|(_, z)| **z < 0.0) {
            pairs += 1.0;
            won += if t > u {
                1.0
            } else if t == u {
                0.5
            } else {
                0.0
            };
        }
    }
    won / pairs
}

fn margins(data: &Dataset, x: &[f64]) -> Vec<f64> {
    (0..data.n_records()).map(|r| dense(data, r).iter().zip(x).map(|(a, x)| a * x).sum()).collect()
}

#[test]
fn scores_agree_with_their_definitions() {
    let mut random = Random::new(3);
    let encoded = some_adults(700);
    let mut second = encoded.records.empty_like();
    (0..300).for_each(|r| second.push_row(encoded.records.row(2 * r)));
    let parts = [&encoded.records, &second];
    for loss in [Loss::Logistic, Loss::Hinge, Loss::HuberizedHinge { width: 0.5 }] {
        let x = random.normals(104);
        let scores = score(loss, &parts, &x, true);
        let mean =
            (700.0 * naive_mean_loss(parts[0], loss, &x) + 300.0 * naive_mean_loss(parts[1], loss, &x)) / 1e3;
        assert!((scores.mean_loss - mean).abs() < 1e-13);
        let t: Vec<f64> = parts.iter().flat_map(|d| margins(d, &x)).collect();
        let z: Vec<f64> = parts.iter().flat_map(|d| d.labels()).copied().collect();
        let right = t.iter().zip(&z).filter(|(t, z)| **t * **z > 0.0).count() as f64 / 1e3;
        assert_eq!(scores.accuracy, Some(right));
        assert!((scores.auc.unwrap() - naive_auc(&t, &z)).abs() < 1e-12);
        assert_eq!(
            (score(loss, &parts, &x, false).accuracy, score(loss, &parts, &x, false).auc),
            (None, None)
        );
    }
}

#[test]
fn a_trace_agrees_with_a_second_computation() {
    // One round without gossip's help: what the simulator reports of the last round, from the models that it returns.
    for holdout in [Holdout::None, Holdout::Fraction(0.3)] {
        let encoded = some_adults(500);
        let plan = PlanDraft { rounds: 3, ..PlanDraft::default() };
        let setting = SimulationPlan { holdout, runs: 1, reference: false, ..setting(plan) };
        let Sites { shards, test, .. } =
            partition(&encoded, setting.n_agents, setting.split.clone(), holdout, setting.seed).unwrap();
        let simulation = PreparedSimulation::prepare(setting.clone(), encoded).unwrap();
        let run = simulation.run(&RunOptions::default()).unwrap();
        let models: Vec<&[f64]> = run.outcomes.iter().map(|o| o.last.as_slice()).collect();
        let seen = run.record.trace[2];
        let mean = |f: &dyn Fn(usize) -> f64| (0..5).map(f).sum::<f64>() / 5.0;
        let loss = Loss::Logistic;
        let near = |found: f64, expected: f64| {
            assert!(
                (found - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                "{found} against {expected}"
            );
        };
        near(seen.average_loss.unwrap(), mean(&|i| naive_mean_loss(&shards[i], loss, models[i])));
        let mut train = test.empty_like();
        shards.iter().for_each(|s| (0..s.n_records()).for_each(|r| train.push_row(s.row(r))));
        let pooled = mean(&|i| naive_mean_loss(&train, loss, models[i]));
        near(seen.pooled_loss.unwrap(), pooled);
        near(run.record.last.loss, pooled);
        let center: Vec<f64> = (0..104).map(|c| mean(&|i| models[i][c])).collect();
        let rms = |from: &[f64]| mean(&|i| common::distance(models[i], from).powi(2)).sqrt();
        near(seen.consensus_error, rms(&center));
        near(seen.distance_to_optimum.unwrap(), rms(simulation.optimum()));
        let ranked = if test.n_records() > 0 { &test } else { &train };
        near(seen.auc.unwrap(), mean(&|i| naive_auc(&margins(ranked, models[i]), ranked.labels())));
        let right = |i: usize| {
            let t = margins(ranked, models[i]);
            let hits = t.iter().zip(ranked.labels()).filter(|(t, z)| (**t > 0.0) == (**z > 0.0)).count();
            hits as f64 / ranked.n_records() as f64
        };
        near(seen.accuracy.unwrap(), mean(&right));
        let smoothed = mean(&|i| naive_mean_loss(&train, loss, run.outcomes[i].smoothed.as_slice()));
        near(run.record.smoothed.loss, smoothed);
        assert!(run.record.trace.windows(2).all(|w| w[0].rho_spent < w[1].rho_spent));
        assert!(run.record.trace.windows(2).all(|w| w[0].epsilon_exact < w[1].epsilon_exact));
    }
}

#[test]
fn summaries_are_means_over_runs_and_the_csv_has_every_round() {
    for output in [Output::Smoothed, Output::Last] {
        let plan = PlanDraft { rounds: 3, output, ..PlanDraft::default() };
        let (record, model) =
            simulate(SimulationPlan { runs: 3, ..setting(plan) }, some_adults(400), &quiet).unwrap();
        let mean_std = |values: [f64; 3]| {
            let mean = values.iter().sum::<f64>() / 3.0;
            (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 3.0).sqrt())
        };
        let runs: [&padmm_sim::record::RunRecord; 3] = [&record.runs[0], &record.runs[1], &record.runs[2]];
        let kept =
            |r: &padmm_sim::record::RunRecord| if output == Output::Last { r.last } else { r.smoothed };
        for (found, expected) in [
            (&record.summary.model_loss, mean_std(runs.map(|r| kept(r).loss))),
            (&record.summary.pooled_loss, mean_std(runs.map(|r| r.last.loss))),
            (
                record.summary.average_loss.as_ref().unwrap(),
                mean_std(runs.map(|r| r.trace[2].average_loss.unwrap())),
            ),
            (
                &record.summary.average_loss_per_round[0],
                mean_std(runs.map(|r| r.trace[0].average_loss.unwrap())),
            ),
            (record.summary.accuracy.as_ref().unwrap(), mean_std(runs.map(|r| kept(r).accuracy.unwrap()))),
            (record.summary.auc.as_ref().unwrap(), mean_std(runs.map(|r| kept(r).auc.unwrap()))),
        ] {
            assert!((found.mean - expected.0).abs() < 1e-14 && (found.std - expected.1).abs() < 1e-12);
        }
        assert_eq!(record.summary.evaluated_on, "held-out records");
        assert_eq!((record.setting.records.train, record.setting.records.test), (320, 80));
        assert!(record.reference.is_some());
        assert_eq!(model.values.len(), 104);
        let csv = record.trace_csv();
        assert_eq!(csv.lines().count(), 1 + 9);
        let columns = csv.lines().next().unwrap().split(',').count();
        assert!(csv.lines().all(|l| l.split(',').count() == columns && !l.contains("NaN")));
    }
}

#[test]
fn without_privacy_nothing_is_charged() {
    let plan = PlanDraft { algorithm: ADMM, ..short() };
    let (record, _) =
        simulate(SimulationPlan { runs: 1, ..setting(plan) }, some_adults(300), &quiet).unwrap();
    assert!(record.privacy.is_none() && record.charges.is_empty() && record.reference.is_none());
    assert!(record.runs[0].trace.iter().all(|m| m.rho_spent == 0.0 && m.epsilon_exact.is_none()));
}

#[test]
fn more_agents_than_the_panel_are_scored_at_the_end() {
    use padmm_sim::metrics::{PANEL, panel};
    for n in [1, 5, PANEL, PANEL + 1, 1000] {
        let chosen = panel(n);
        assert_eq!(chosen.len(), n.min(PANEL));
        assert!(chosen.windows(2).all(|w| w[0] < w[1]) && chosen.iter().all(|&i| i < n));
    }
    let plan = PlanDraft { rounds: 2, ..PlanDraft::default() };
    let setting = SimulationPlan { n_agents: Some(40), runs: 1, reference: false, ..setting(plan) };
    let simulation = PreparedSimulation::prepare(setting.clone(), some_adults(500)).unwrap();
    let run = simulation.run(&RunOptions::default()).unwrap();
    assert_eq!(run.outcomes.len(), 40);
    assert!(run.record.last.loss.is_finite() && run.record.smoothed.loss < run.record.last.loss);
}

#[test]
fn the_curve_of_a_run_is_the_largest_over_sites_in_every_round() {
    // Sites of very different sizes whose charges grow: the one with the larger total is not ahead in every round.
    let plan = PlanDraft {
        algorithm: M_ADMM,
        rounds: 20,
        penalty: Some(2e-3),
        own: OwnSettings::default().with("penalty-growth", 1.0).with("rate-growth", 1.03),
        accountant: padmm_core::plan::AccountantKind::Basic,
        ..short()
    };
    let skewed = SimulationPlan { split: Split::SizeSkew(0.3), n_agents: Some(3), ..setting(plan) };
    let simulation = PreparedSimulation::prepare(skewed, some_adults(3000)).unwrap();
    let trace = simulation.run(&RunOptions::default()).unwrap().record.trace;
    let curves: Vec<_> =
        simulation.calibration().agents.iter().map(|a| a.noise.as_ref().unwrap().epsilon_curve()).collect();
    for (k, metrics) in trace.iter().enumerate() {
        let largest = curves.iter().map(|c| c[k].paper).fold(0.0, f64::max);
        assert_eq!(metrics.epsilon_paper, Some(largest), "round {}", k + 1);
    }
}
