//! Decentralised ADMM without noise and without any privacy (Shi et al. 2014): the reference.

use padmm_core::algorithm::{
    Algorithm, AlgorithmInputs, AlgorithmSpec, ConsensusAdmm, Description, GraphNeeded, Guarantee, Needs,
};
use padmm_core::calibration::{CalibrationInputs, SiteCalibration};
use padmm_privacy::PrivacyError;

/// P-ADMM's updates with the noise off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Admm;

impl AlgorithmSpec for Admm {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "admm",
            title: "ADMM without privacy",
            reference: "Shi et al. 2014",
            summary: "decentralised ADMM, the reference",
            needs: Needs::Nothing,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::Nothing,
            uses: &[],
            own: &[],
            between_sites: false,
            survives_loss: true,
        }
    }

    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        Ok(site.without_noise(site.modulus()))
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(ConsensusAdmm::new(inputs.penalty, inputs.n_features, inputs.degree()))
    }

    fn charged_rounds(&self, _rounds: u32) -> u32 {
        0
    }
}
