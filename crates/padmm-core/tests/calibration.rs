//! What follows from a plan and public facts: moduli, sensitivities, noise, and the penalty that a plan leaves open.

use crate::common;

use common::graph;
use padmm_baselines::ADMM;
use padmm_core::calibration::{Calibration, NetworkFacts};
use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::plan::{AccountantKind, PlanDraft, SiteWeights};
use padmm_core::regularizer::Regularizer;
use padmm_privacy::{Schedule, Sensitivity, SensitivityBasis, gdp_mu};

#[test]
fn section_9_vector_through_a_plan() {
    // n = 8000, d = 4, η = 1/1750, m_R = 0.22/8750 = 2Λ/N, S = L₁ = 1, τ → 0; K = 50, ε = 5, δ = 1e-4.
    let (graph, space) = (graph("complete", 5), FeatureSpace::numeric(1));
    let derive = |decay: f64| {
        let plan = PlanDraft {
            penalty: Some(1.0 / 1750.0),
            regularizer: Regularizer::L2 { strength: 5.0 * 0.22 / 8750.0 / 2.0 },
            tolerance: Some(1e-15),
            accountant: AccountantKind::Paper,
            decay,
            ..PlanDraft::default()
        };
        let network = NetworkFacts { graph: &graph, n_records: &[8000; 5], space: &space, norm_bound: 1.0 };
        Calibration::derive(&plan.check().unwrap(), &network).unwrap()
    };
    let agent = &derive(0.995).agents[3];
    assert!((agent.modulus - 4.5965714e-3).abs() < 0.5e-10);
    let noise = agent.noise.as_ref().unwrap().as_gaussian().unwrap();
    let sensitivity = Sensitivity::per_record(noise.sensitivity().inputs().unwrap()).unwrap().value();
    assert!((sensitivity - 0.05438836).abs() < 0.5e-8, "{sensitivity}");
    // What is charged also contains the grid, half a millionth here.
    let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-6, "{found}");
    near(noise.rho(1), 9.52589e-3);
    near(noise.noise_std(1).unwrap(), 0.39403810);
    near(noise.noise_std(50).unwrap(), 0.34850074);
    let flat = derive(1.0);
    near(flat.agents[0].noise.as_ref().unwrap().noise_std(1).unwrap(), 0.37008643);
    near(flat.agents[0].noise.as_ref().unwrap().noise_std(50).unwrap(), 0.37008643);
}

#[test]
fn section_3_the_papers_sensitivity_is_thousands_of_times_larger() {
    let (graph, space) = (graph("complete", 5), FeatureSpace::numeric(104));
    let derive = |sensitivity| {
        let plan = PlanDraft { sensitivity, penalty: Some(1e-3), ..PlanDraft::default() }.check().unwrap();
        let network = NetworkFacts { graph: &graph, n_records: &[9044; 5], space: &space, norm_bound: 1.0 };
        let calibration = Calibration::derive(&plan, &network).unwrap();
        calibration.agents[0].noise.as_ref().unwrap().as_gaussian().unwrap().sensitivity()
    };
    let ours = derive(SensitivityBasis::Record);
    let papers = derive(SensitivityBasis::Paper);
    assert!((papers.value() / (1.0 / (1e-3 * 4.0)) - 1.0).abs() < 1e-3);
    assert!(papers.value() / ours.value() > 9000.0);
}

#[test]
fn the_default_penalty_is_the_documented_rule() {
    let (graph, space) = (graph("path", 3), FeatureSpace::numeric(20));
    let n_records = [100, 400, 250];
    let network = NetworkFacts { graph: &graph, n_records: &n_records, space: &space, norm_bound: 2.0 };
    let draft = PlanDraft { epsilon: 2.0, weights: SiteWeights::Sites, ..PlanDraft::default() };
    let plan = draft.clone().check().unwrap();
    let mu = gdp_mu(plan.budget()).value();
    let rms = (((100.0f64).powi(-2) + (800.0f64).powi(-2) + (250.0f64).powi(-2)) / 3.0).sqrt();
    let noise = 1.1 * (2.0 * 1.0 * 4.0 * 20f64.sqrt() / (mu * 3f64.powf(0.25))) * rms;
    let curvature = 0.008 * 0.25 * 4.0 / (4.0 / 3.0);
    let found = Calibration::derive(&plan, &network).unwrap().penalty;
    assert!((2.0 * found / (noise + curvature) - 1.0).abs() < 1e-12);
    // With capped slopes a record's gradient is at most 0.5 long, and a row of twenty numbers spread over [0, 1] has norm √(20/3).
    let capped = PlanDraft { slope_cap: Some(0.5), ..draft }.check().unwrap();
    let found = Calibration::derive(&capped, &network).unwrap().penalty;
    let row = (20.0f64 / 3.0).sqrt();
    let expected = noise / 4.0 * 0.5 * row + curvature / 4.0 * row * row;
    assert!((2.0 * found / expected - 1.0).abs() < 1e-12);
    let without = plan.with_algorithm(ADMM).unwrap();
    let found = Calibration::derive(&without, &network).unwrap().penalty;
    assert!((2.0 * found / curvature - 1.0).abs() < 1e-12, "no noise, no first term");
}

#[test]
fn an_empty_set_of_records_is_no_site() {
    // The bound's 1/n needs n ≥ 1: the terms of an agent without records do not exist.
    let (graph, space) = (graph("path", 2), FeatureSpace::numeric(3));
    let empty = Dataset::new(3, 3, 0, 1.0);
    let n_records = [10, empty.n_records()];
    let network = NetworkFacts { graph: &graph, n_records: &n_records, space: &space, norm_bound: 1.0 };
    let plan = PlanDraft { penalty: Some(0.1), ..PlanDraft::default() }.check().unwrap();
    assert!(Calibration::derive(&plan, &network).is_err());
}
