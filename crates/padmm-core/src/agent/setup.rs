//! What an agent starts from, and the check that its noise was calibrated for the problem that it will solve.

use std::sync::Arc;

use crate::algorithm::{Algorithm, Audience, LocalProblem, SharedWork};
use crate::calibration::{Calibration, SiteCalibration, Solvability};
use crate::data::{Dataset, FeatureSpace};
use crate::graph::Graph;
use crate::message::SiteIndex;
use crate::plan::Plan;
use crate::regularizer::RegularizerTerm;

/// Everything that an agent starts from.
pub struct AgentSetup {
    /// Which of the plan's sites it is.
    pub site: SiteIndex,
    /// How many sites the plan has, this one included.
    pub n_agents: usize,
    /// Those whose models it hears, in ascending order.
    pub neighbours: Vec<SiteIndex>,
    /// The settings that all sites share.
    pub plan: Plan,
    /// `η` as the terms were derived with it.
    pub penalty: f64,
    /// Tolerance, modulus and noise of this site.
    pub calibration: SiteCalibration,
    /// Records of every site.
    pub n_records: Vec<usize>,
    /// The encoded columns.
    pub space: FeatureSpace,
    /// Computations that it does once with all other agents that have the same; a new one where it has none beside it.
    pub shared: SharedWork,
}

impl AgentSetup {
    /// The setup of the agent at `site`, and its share of the problem.
    pub fn of(
        plan: &Plan,
        graph: &Graph,
        calibration: &Calibration,
        site: SiteIndex,
        space: &FeatureSpace,
        data: Arc<Dataset>,
    ) -> (Self, LocalProblem) {
        let n_agents = calibration.agents.len();
        let settings = plan.settings();
        let neighbours = match settings.algorithm.spec().audience() {
            Audience::Neighbours => graph.neighbours(site.0).iter().copied().map(SiteIndex).collect(),
            Audience::Everybody => (0..n_agents).map(SiteIndex).filter(|&other| other != site).collect(),
        };
        let setup = Self {
            site,
            n_agents,
            neighbours,
            plan: plan.clone(),
            penalty: calibration.penalty,
            calibration: calibration.agents[site.0].clone(),
            n_records: calibration.agents.iter().map(|agent| agent.n_records).collect(),
            space: space.clone(),
            shared: SharedWork::default(),
        };
        let penalty = RegularizerTerm::new(&settings.regularizer, space, 1.0 / n_agents as f64);
        let weight = settings.weights.factors(&setup.n_records)[site.0];
        let data = if data.slope_cap() == settings.slope_cap {
            data
        } else {
            Arc::new(settings.records_of_run(Arc::unwrap_or_clone(data), space))
        };
        (setup, LocalProblem { data, loss: settings.loss, penalty, weight })
    }
}

/// The noise was calibrated for a problem: stops if that is not the problem that will be solved.
pub(super) fn check_calibration(
    calibration: &SiteCalibration,
    algorithm: &dyn Algorithm,
    solves: bool,
    problem: &LocalProblem,
) {
    assert_eq!(
        calibration.n_records,
        problem.data.n_records(),
        "the calibration is that of this number of records"
    );
    let values = problem.data.n_numeric() + problem.data.n_hot();
    let is_bounded =
        |s: Solvability| s.bounds.covers(problem.data.n_records(), values, calibration.tolerance);
    assert!(calibration.solvability.is_none_or(is_bounded), "rounds are judged by bounds for these records");
    let modulus = if solves { algorithm.modulus(problem.penalty.strong_convexity()) } else { f64::INFINITY };
    assert!(
        modulus >= calibration.modulus,
        "the calibration is that of this penalty, degree and regulariser: `AlgorithmSpec::calibrate` assumed a modulus of {}, and \
         `Algorithm::modulus` is {modulus}",
        calibration.modulus
    );
    let Some(premise) = calibration.noise.as_ref().and_then(|noise| noise.premise()) else { return };
    let (row, cap) = (problem.data.norm_bound(), problem.data.slope_cap());
    let gradient =
        problem.loss.gradient_bound(row, cap).expect("a loss under privacy has a bounded gradient");
    assert!(
        gradient * problem.weight <= premise.gradient_bound,
        "the noise is for this loss, norm bound and weight"
    );
    assert_eq!(
        premise.n_records, calibration.n_records,
        "noise and calibration agree on the number of records"
    );
    assert!(calibration.modulus >= premise.modulus, "noise and calibration agree");
    assert!(
        premise.tolerance.is_none_or(|tolerance| calibration.tolerance <= tolerance),
        "noise and calibration agree"
    );
    if let Some(bound) = premise.curvature_bound {
        let curvature =
            problem.loss.record_curvature(row, cap).expect("noise on the objective needs a smooth loss");
        assert!(curvature * problem.weight <= bound, "the noise is for this loss and weight");
    }
}
