//! DVP, dual variable perturbation (Zhang and Zhu 2017): noise `b` of density ∝ `exp(−β‖b‖)` on the dual, fresh in every
//! round and not kept in it; the minimiser is broadcast as it is.
//!
//! Updates as in [`ConsensusAdmm`]. What a round costs is Lemma B of [`ObjectiveInputs::jacobian`]: `ε = 2Bβ/n + ln(1 + χ)`.

use padmm_core::algorithm::{
    Algorithm, AlgorithmInputs, AlgorithmSpec, ConsensusAdmm, Description, GraphNeeded, Guarantee, Needs,
};
use padmm_core::calibration::{CalibrationInputs, SiteCalibration};
use padmm_core::plan::Plan;
use padmm_privacy::PrivacyError;
use padmm_privacy::outward::add_down;

use crate::accounting::{composition_rule, per_step_epsilon};
use crate::mechanism::{ObjectiveInputs, PureRequest, PureSchedule, PureStep, PureTarget};

/// Gamma-norm noise on the dual, inside the local problem; the minimiser is sent as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dvp;

impl AlgorithmSpec for Dvp {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "dvp",
            title: "DVP",
            reference: "Zhang, Zhu 2017",
            summary: "gamma-norm noise on the dual inside the local problem",
            needs: Needs::TwiceDifferentiable,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::Pure,
            uses: &[],
            own: &[],
            between_sites: false,
            survives_loss: true,
        }
    }

    /// The same charge in every round.
    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        let step = PureStep { share: 1.0, modulus: site.modulus() };
        objective_calibration(site, vec![Some(step); site.settings().rounds as usize])
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(start(inputs))
    }

    fn relative_noise(&self, plan: &Plan, n_features: usize, mu: f64) -> Result<f64, PrivacyError> {
        gamma_relative_noise(plan, n_features, mu, plan.settings().rounds)
    }
}

/// The state before the first round, for all that perturb the dual.
pub(crate) fn start(inputs: &AlgorithmInputs<'_>) -> ConsensusAdmm {
    let consensus = ConsensusAdmm::new(inputs.penalty, inputs.n_features, inputs.degree());
    consensus.with_ridge(inputs.calibration.ridge)
}

/// How much longer gamma-norm noise is than Gaussian noise of the same total budget, a release of which `charged` share it: about
/// `√p·μ/(ε₀√K)`.
pub(crate) fn gamma_relative_noise(
    plan: &Plan,
    n_features: usize,
    mu: f64,
    charged: u32,
) -> Result<f64, PrivacyError> {
    let settings = plan.settings();
    let per_step = per_step_epsilon(plan.budget(), charged, composition_rule(settings.accountant))?;
    Ok((n_features as f64).sqrt() * mu / (per_step * f64::from(settings.rounds).sqrt()))
}

/// Objective perturbation with these steps, calibrated to the plan's budget.
///
/// Where the Jacobian's part `ln(1 + χ)` alone would take a step's share of the budget, `½Φ‖x‖²` is added to the
/// objective so that it takes half, as Chaudhuri, Monteleoni and Sarwate (2011) do:
///
/// ```text
/// Φ = c₁S² / (n (e^{ε₀/2} − 1)) − m
/// ```
pub(crate) fn objective_calibration(
    site: &CalibrationInputs<'_>,
    mut steps: Vec<Option<PureStep>>,
) -> Result<SiteCalibration, PrivacyError> {
    let inputs = objective_inputs(site);
    let rule = composition_rule(site.settings().accountant);
    let charged = steps.iter().flatten().count() as u32;
    let per_step = per_step_epsilon(site.plan.budget(), charged, rule)?;
    let smallest = steps.iter().flatten().map(|s| s.modulus).fold(f64::INFINITY, f64::min);
    let mut ridge = 0.0;
    if inputs.jacobian(smallest)? >= per_step {
        ridge = inputs.curvature_bound / (site.n_records as f64 * (0.5 * per_step).exp_m1()) - smallest;
        steps.iter_mut().flatten().for_each(|s| s.modulus = add_down(s.modulus, ridge));
    }
    let schedule = PureSchedule::calibrate(&PureRequest {
        budget: site.plan.budget(),
        rule,
        target: PureTarget::Objective(inputs),
        steps,
        n_features: site.n_features,
    })?;
    let bare = site.without_noise(add_down(smallest, ridge));
    Ok(SiteCalibration { ridge, tolerance: exact_tolerance(site), ..bare }.with_noise(schedule))
}

/// What Lemma B needs of a site.
pub(crate) fn objective_inputs(site: &CalibrationInputs<'_>) -> ObjectiveInputs {
    ObjectiveInputs {
        gradient_bound: site.gradient_bound,
        curvature_bound: site.curvature_bound.expect("the plan asks for a smooth loss"),
        n_records: site.n_records,
    }
}

/// Objective perturbation is proved for the exact minimiser. Its solves go about as far as floating point can certify: 10⁻¹⁰ of
/// `2B/n`, or what the rounding of a sum over n records leaves. A plan can ask for more, not for less: nothing is charged for
/// the difference.
pub(crate) fn exact_tolerance(site: &CalibrationInputs<'_>) -> f64 {
    let certifiable = 1e-10_f64.max(2e-12 * site.n_records as f64);
    let relative = site.settings().tolerance.map_or(certifiable, |t| t.min(certifiable));
    site.tolerance_for(relative)
}
