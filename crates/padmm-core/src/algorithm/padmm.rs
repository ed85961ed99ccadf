//! P-ADMM — the paper's Algorithm 1 in the form of MATH §2 — and, with the noise off, ADMM without privacy (Shi et al. 2014).
//!
//! Updates as in [`super::consensus`]; Gaussian noise on every release, whose variance decays geometrically.

use padmm_privacy::{
    Decay, NoiseRequest, NoiseSchedule, PrivacyError, Sensitivity, SensitivityBasis, SensitivityInputs,
};

use super::{ConsensusAdmm, Start};
use crate::terms::{AgentTerms, SiteFacts};

pub(super) fn start(start: &Start<'_>) -> ConsensusAdmm {
    ConsensusAdmm::new(start.penalty, start.n_features, start.degree())
}

/// ADMM without privacy.
pub(super) fn plain_terms(site: &SiteFacts<'_>) -> AgentTerms {
    AgentTerms { noise: None, ..site.bare_terms(site.modulus()) }
}

/// Output perturbation: (Δ) of MATH §3, and the calibration of MATH §5.
pub(super) fn terms(site: &SiteFacts<'_>) -> Result<AgentTerms, PrivacyError> {
    let bare = site.bare_terms(site.modulus());
    let sensitivity = match site.settings().sensitivity {
        SensitivityBasis::Record => site.sensitivity(&bare)?,
        SensitivityBasis::Paper => Sensitivity::paper(site.gradient_bound, site.penalty, site.degree)?,
    };
    Ok(AgentTerms { noise: Some(gaussian(site, sensitivity, site.plan.decay(), None)?.into()), ..bare })
}

/// Gaussian noise of decaying variance for releases of this sensitivity.
pub(super) fn gaussian(
    site: &SiteFacts<'_>,
    sensitivity: Sensitivity,
    decay: Decay,
    scales: Option<Vec<f64>>,
) -> Result<NoiseSchedule, PrivacyError> {
    NoiseSchedule::calibrate(&NoiseRequest {
        budget: site.plan.budget(),
        accountant: site.settings().accountant,
        decay,
        sensitivity,
        n_features: site.n_features,
        scales,
    })
}

impl SiteFacts<'_> {
    /// (Δ) for a point with the certificate of `terms`.
    pub(super) fn sensitivity(&self, terms: &AgentTerms) -> Result<Sensitivity, PrivacyError> {
        Sensitivity::per_record(&SensitivityInputs {
            gradient_bound: self.gradient_bound,
            n_records: self.n_records,
            tolerance: terms.tolerance,
            modulus: terms.modulus,
        })
    }
}
