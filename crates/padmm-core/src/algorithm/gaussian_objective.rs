//! Gaussian objective perturbation: DVP with Gaussian noise in place of the heavy one. **Experimental**: the argument is
//! the one of the privacy core's proof note (`padmm_privacy::GaussianObjectiveSchedule`), not a published theorem.
//!
//! Updates as in [`super::consensus`]; noise of norm about `σ√p` where DVP's is `p/β`.

use padmm_privacy::{GaussianObjectiveRequest, GaussianObjectiveSchedule, PrivacyError};

use crate::terms::{AgentTerms, SiteFacts};

/// The same charge in every round; the starting state is DVP's.
pub(super) fn terms(site: &SiteFacts<'_>) -> Result<AgentTerms, PrivacyError> {
    let modulus = site.modulus();
    let schedule = GaussianObjectiveSchedule::calibrate(&GaussianObjectiveRequest {
        budget: site.plan.budget(),
        inputs: site.objective_inputs(),
        modulus,
        rounds: site.settings().rounds,
        n_features: site.n_features,
    })?;
    let tolerance = site.exact_tolerance();
    Ok(AgentTerms { tolerance, noise: Some(schedule.into()), ..site.bare_terms(modulus) })
}
