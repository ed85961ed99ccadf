//! DVP, dual variable perturbation (Zhang and Zhu 2017): noise `b` of density ∝ `exp(−β‖b‖)` on the dual, fresh in every
//! round and not kept in it; the minimiser is broadcast as it is.
//!
//! Updates as in [`super::consensus`]. What a round costs is Lemma B of the privacy core: `ε = 2Bβ/n + ln(1 + χ)`.

use padmm_privacy::outward::add_down;
use padmm_privacy::{
    ObjectiveInputs, PrivacyError, PureRequest, PureSchedule, PureStep, PureTarget, per_step_epsilon,
};

use super::{ConsensusAdmm, Start};
use crate::terms::{AgentTerms, SiteFacts};

pub(super) fn start(start: &Start<'_>) -> ConsensusAdmm {
    ConsensusAdmm::new(start.penalty, start.n_features, start.degree()).with_ridge(start.terms.ridge)
}

/// The same charge in every round.
pub(super) fn terms(site: &SiteFacts<'_>) -> Result<AgentTerms, PrivacyError> {
    let step = PureStep { share: 1.0, modulus: site.modulus() };
    objective_terms(site, vec![Some(step); site.settings().rounds as usize])
}

/// Objective perturbation with these steps, calibrated to the plan's budget.
///
/// Where the Jacobian's part `ln(1 + χ)` alone would take a step's share of the budget, `½Φ‖x‖²` is added to the
/// objective so that it takes half, as Chaudhuri, Monteleoni and Sarwate (2011) do:
///
/// ```text
/// Φ = c₁S² / (n (e^{ε₀/2} − 1)) − m
/// ```
pub(super) fn objective_terms(
    site: &SiteFacts<'_>,
    mut steps: Vec<Option<PureStep>>,
) -> Result<AgentTerms, PrivacyError> {
    let inputs = site.objective_inputs();
    let rule = site.settings().accountant.composition_rule();
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
    Ok(AgentTerms {
        ridge,
        tolerance: site.exact_tolerance(),
        noise: Some(schedule.into()),
        ..site.bare_terms(add_down(smallest, ridge))
    })
}

impl SiteFacts<'_> {
    /// What Lemma B needs of this site.
    pub(super) fn objective_inputs(&self) -> ObjectiveInputs {
        ObjectiveInputs {
            gradient_bound: self.gradient_bound,
            curvature_bound: self.curvature_bound.expect("the plan asks for a smooth loss"),
            n_records: self.n_records,
        }
    }

    /// Objective perturbation is proved for the exact minimiser. Its solves go about as far as floating point can certify:
    /// 10⁻¹⁰ of `2B/n`, or what the rounding of a sum over n records leaves. A plan can ask for more, not for less: nothing is
    /// charged for the difference.
    pub(super) fn exact_tolerance(&self) -> f64 {
        let certifiable = 1e-10_f64.max(2e-12 * self.n_records as f64);
        let relative = self.settings().tolerance.map_or(certifiable, |t| t.min(certifiable));
        padmm_privacy::default_tolerance(self.gradient_bound, self.n_records, relative)
    }
}
