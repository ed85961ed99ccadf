//! P-ADMM: the paper's Algorithm 1 in the form of EQUATIONS §2.
//!
//! Updates as in [`super::consensus`]; Gaussian noise on every release, whose variance decays geometrically.

use padmm_privacy::{
    Decay, NoiseRequest, NoiseSchedule, PrivacyError, Sensitivity, SensitivityBasis, SensitivityInputs,
};

use super::{
    Algorithm, AlgorithmInputs, AlgorithmKind, AlgorithmSpec, ConsensusAdmm, Description, GraphNeeded,
    Guarantee, Needs, P_ADMM,
};
use crate::calibration::{CalibrationInputs, SiteCalibration};
use crate::solvable::Demand;
use crate::step;

/// The paper's Algorithm 1, with Gaussian noise on every release.
#[derive(Clone, Copy, Debug, Default)]
pub struct PAdmm;

impl AlgorithmSpec for PAdmm {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "p-admm",
            title: "P-ADMM",
            reference: "Ding, Qin, Xu, Gong, Zhang, Pan",
            summary: "local solve, Gaussian noise of decaying variance on what is sent",
            needs: Needs::Nothing,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::ExactGaussian,
            uses: &["decay", "sensitivity"],
            own: &[],
            between_sites: true,
            survives_loss: true,
        }
    }

    /// Output perturbation: (Δ) of EQUATIONS §3, and the calibration of EQUATIONS §5.
    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        let bare = site.without_noise(site.modulus());
        let sensitivity = match site.settings().sensitivity {
            SensitivityBasis::Record => site.sensitivity(&bare)?,
            SensitivityBasis::Paper => Sensitivity::paper(site.gradient_bound, site.penalty, site.degree)?,
        };
        Ok(bare.with_noise(gaussian(site, sensitivity, site.plan.decay(), None)?))
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(ConsensusAdmm::new(inputs.penalty, inputs.n_features, inputs.degree()))
    }

    fn demand(
        &self,
        site: &CalibrationInputs<'_>,
        _calibration: &SiteCalibration,
        size: f64,
        walk: f64,
    ) -> Option<Demand> {
        let quadratic = step::primal_quadratic(site.penalty, site.degree);
        Some(Demand::Solve { linear: quadratic * (size + walk), quadratic })
    }
}

impl From<PAdmm> for AlgorithmKind {
    fn from(_: PAdmm) -> Self {
        P_ADMM
    }
}

/// Gaussian noise of decaying variance for releases of this sensitivity.
pub(super) fn gaussian(
    site: &CalibrationInputs<'_>,
    sensitivity: Sensitivity,
    decay: Decay,
    scales: Option<Vec<f64>>,
) -> Result<NoiseSchedule, PrivacyError> {
    NoiseSchedule::calibrate(&NoiseRequest {
        budget: site.plan.budget(),
        conversion: site.settings().accountant.conversion()?,
        decay,
        sensitivity,
        n_features: site.n_features,
        scales,
    })
}

impl CalibrationInputs<'_> {
    /// (Δ) for a point with the certificate of `calibration`.
    pub fn sensitivity(&self, calibration: &SiteCalibration) -> Result<Sensitivity, PrivacyError> {
        Sensitivity::per_record(&SensitivityInputs {
            gradient_bound: self.gradient_bound,
            n_records: self.n_records,
            tolerance: calibration.tolerance,
            modulus: calibration.modulus,
        })
    }
}
