//! Gaussian objective perturbation: DVP with Gaussian noise in place of the heavy one. **Experimental**: the argument is
//! the proof note of [`GaussianObjectiveSchedule`], not a published theorem.
//!
//! Updates as in [`padmm_core::algorithm::ConsensusAdmm`]; noise of norm about `σ√p` where DVP's is `p/β`.

use padmm_core::algorithm::{
    Algorithm, AlgorithmInputs, AlgorithmSpec, Description, GraphNeeded, Guarantee, Needs,
};
use padmm_core::calibration::{CalibrationInputs, SiteCalibration};
use padmm_privacy::PrivacyError;

use crate::dvp::{self, exact_tolerance, objective_inputs};
use crate::mechanism::{GaussianObjectiveRequest, GaussianObjectiveSchedule};

/// DVP with Gaussian noise; its guarantee rests on this project's argument, not on a publication.
#[derive(Clone, Copy, Debug, Default)]
pub struct GaussianObjective;

impl AlgorithmSpec for GaussianObjective {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "gaussian-objective",
            title: "Gaussian objective perturbation",
            reference: "argument in PRIVACY.md",
            summary: "DVP with Gaussian noise",
            needs: Needs::TwiceDifferentiable,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::Experimental,
            uses: &[],
            own: &[],
            between_sites: false,
            survives_loss: true,
        }
    }

    /// The same charge in every round.
    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        let modulus = site.modulus();
        let schedule = GaussianObjectiveSchedule::calibrate(&GaussianObjectiveRequest {
            budget: site.plan.budget(),
            inputs: objective_inputs(site),
            modulus,
            rounds: site.settings().rounds,
            n_features: site.n_features,
        })?;
        let bare = site.without_noise(modulus);
        Ok(SiteCalibration { tolerance: exact_tolerance(site), ..bare }.with_noise(schedule))
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(dvp::start(inputs))
    }
}
