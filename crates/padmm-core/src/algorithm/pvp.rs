//! PVP, primal variable perturbation (Zhang and Zhu 2017) in the form that composes: the minimiser plus noise of density
//! ∝ `exp(−ξ‖e‖)`, and nothing but what was broadcast is used afterwards.
//!
//! Updates as in [`super::consensus`]: it is P-ADMM with another noise of constant scale. A round costs `ε = ξΔ`.

use padmm_privacy::{PrivacyError, PureRequest, PureSchedule, PureStep, PureTarget};

use crate::terms::{AgentTerms, SiteFacts};

/// The same charge in every round; the starting state is P-ADMM's.
pub(super) fn terms(site: &SiteFacts<'_>) -> Result<AgentTerms, PrivacyError> {
    let bare = site.bare_terms(site.modulus());
    let step = PureStep { share: 1.0, modulus: bare.modulus };
    let schedule = PureSchedule::calibrate(&PureRequest {
        budget: site.plan.budget(),
        rule: site.settings().accountant.composition_rule(),
        target: PureTarget::Output(site.sensitivity(&bare)?),
        steps: vec![Some(step); site.settings().rounds as usize],
        n_features: site.n_features,
    })?;
    Ok(AgentTerms { noise: Some(schedule.into()), ..bare })
}
