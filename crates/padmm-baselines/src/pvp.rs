//! PVP, primal variable perturbation (Zhang and Zhu 2017) in the form that composes: the minimiser plus noise of density
//! ∝ `exp(−ξ‖e‖)`, and nothing but what was broadcast is used afterwards.
//!
//! Updates as in [`ConsensusAdmm`]: it is P-ADMM with another noise of constant scale. A round costs `ε = ξΔ`.

use padmm_core::algorithm::{
    Algorithm, AlgorithmInputs, AlgorithmSpec, ConsensusAdmm, Description, GraphNeeded, Guarantee, Needs,
};
use padmm_core::calibration::{CalibrationInputs, SiteCalibration};
use padmm_core::plan::Plan;
use padmm_privacy::PrivacyError;

use crate::accounting::composition_rule;
use crate::dvp::gamma_relative_noise;
use crate::mechanism::{PureRequest, PureSchedule, PureStep, PureTarget};

/// Gamma-norm noise on the minimiser before it is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pvp;

impl AlgorithmSpec for Pvp {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "pvp",
            title: "PVP",
            reference: "Zhang, Zhu 2017",
            summary: "gamma-norm noise on the minimiser before it is sent",
            needs: Needs::Nothing,
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
        let bare = site.without_noise(site.modulus());
        let step = PureStep { share: 1.0, modulus: bare.modulus };
        let schedule = PureSchedule::calibrate(&PureRequest {
            budget: site.plan.budget(),
            rule: composition_rule(site.settings().accountant),
            target: PureTarget::Output(site.sensitivity(&bare)?),
            steps: vec![Some(step); site.settings().rounds as usize],
            n_features: site.n_features,
        })?;
        Ok(bare.with_noise(schedule))
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(ConsensusAdmm::new(inputs.penalty, inputs.n_features, inputs.degree()))
    }

    fn relative_noise(&self, plan: &Plan, n_features: usize, mu: f64) -> Result<f64, PrivacyError> {
        gamma_relative_noise(plan, n_features, mu, plan.settings().rounds)
    }
}
