//! What pooled records would give: the measure of every run.

use std::sync::Arc;

use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::evaluate::score;
use padmm_core::loss::Loss;
use padmm_core::metrics::BestConstant;
use padmm_core::objective::{Objective, Part};
use padmm_core::plan::Plan;
use padmm_core::regularizer::RegularizerTerm;
use padmm_core::solver::{Solver, Status};

use crate::SimError;
use crate::metrics::{Evaluation, RunObjective};
use crate::record::Optimum;

/// Accuracy of a model on one site's records that were set aside; none for regression or without records.
pub(crate) fn site_accuracy(loss: Loss, test: &Dataset, model: &[f64]) -> Option<f64> {
    if test.n_records() == 0 { None } else { score(loss, &[test], model, true).accuracy }
}

/// The best constant: its loss on the training records, its accuracy on those that are evaluated.
pub(crate) fn best_constant(loss: Loss, train: &[&Dataset], test: &Dataset) -> BestConstant {
    let constant = BestConstant::of(loss, train);
    if test.n_records() == 0 {
        return constant;
    }
    BestConstant { accuracy: BestConstant::of(loss, &[test]).accuracy, ..constant }
}

/// The minimiser of the pooled problem, and how good it is.
pub(crate) struct PooledOptimum {
    pub(crate) point: Vec<f64>,
    pub(crate) scores: Optimum,
}

/// Minimises `Σ_i f_i` over all records at once — EQUATIONS §1, eq. (1): what a pooled data set would give.
pub(crate) fn pooled_optimum(
    plan: &Plan,
    space: &FeatureSpace,
    shards: &[Arc<Dataset>],
    test: &Dataset,
    site_tests: &[Dataset],
) -> Result<PooledOptimum, SimError> {
    let settings = plan.settings();
    let n_agents = shards.len() as f64;
    let n_records: Vec<usize> = shards.iter().map(|s| s.n_records()).collect();
    let weights = settings.weights.factors(&n_records);
    let parts: Vec<Part> = shards
        .iter()
        .zip(weights)
        .map(|(data, weight)| Part { data, weight: weight / data.n_records() as f64 })
        .collect();
    // Σ_i R/N = R: the whole regulariser, once.
    let penalty = RegularizerTerm::new(&settings.regularizer, space, 1.0);
    // Without strong convexity a minimiser may not exist; a ridge far below any other term makes it one.
    let ridge = if penalty.strong_convexity() > 0.0 { 0.0 } else { 1e-9 * n_agents };
    let objective = Objective::new(&parts, settings.loss, &penalty, &[], ridge);
    let tolerance = if settings.loss.curvature_bound().is_some() { 1e-9 } else { 1e-6 } * n_agents;
    let solution = Solver::new().solve(&objective, &vec![0.0; space.n_features()], tolerance);
    if solution.status != Status::Solved {
        return Err(SimError::NoOptimum { tolerance, residual: solution.residual });
    }
    let point = solution.point;
    let train: Vec<&Dataset> = shards.iter().map(|s| &**s).collect();
    let evaluation = Evaluation { loss: settings.loss, train: &train, test, rank: true };
    let scores = evaluation.finished(&[&point], &RunObjective::new(plan, space, &n_records));
    let norm = point.iter().map(|v| v * v).sum::<f64>().sqrt();
    let at_site = |records: &Dataset| site_accuracy(settings.loss, records, &point);
    let scores = Optimum {
        loss: scores.loss,
        objective: scores.objective.unwrap_or(f64::NAN),
        norm,
        accuracy: scores.accuracy,
        auc: scores.auc,
        calibration: scores.calibration,
        site_accuracy: site_tests.iter().map(at_site).collect(),
    };
    Ok(PooledOptimum { point, scores })
}
