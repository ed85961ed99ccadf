//! M-ADMM (Zhang, Khalili, Liu 2018): DVP with a primal penalty that grows from round to round, `η^t = θq₁^{t−1}`, while the
//! dual step keeps to `θ`, and noise whose rate grows too, `a^t = a¹q₂^{t−1}`, entering as `b = 2η^t d_i e` with
//! `e ~ exp(−a^t‖e‖)`, that is `b ~ exp(−β^t‖b‖)` with `β^t = a^t/(2η^t d_i)`.
//!
//! Updates as in [`padmm_core::algorithm::ConsensusAdmm`]. A round costs `S a^t/(n η^t d_i) + ln(1 + χ^t)`; the published bound is looser and has a
//! condition.

use padmm_core::algorithm::{
    Algorithm, AlgorithmInputs, AlgorithmSpec, Description, GraphNeeded, Guarantee, Needs,
};
use padmm_core::calibration::{CalibrationInputs, SiteCalibration};
use padmm_core::plan::{OwnSetting, Plan};
use padmm_core::step;
use padmm_privacy::PrivacyError;

use crate::dvp::{self, gamma_relative_noise, objective_calibration};
use crate::mechanism::PureStep;

/// DVP with growing penalties and noise rates.
#[derive(Clone, Copy, Debug, Default)]
pub struct MAdmm;

/// `q₁`: how fast the penalty grows.
pub(crate) const PENALTY_GROWTH: OwnSetting = OwnSetting {
    name: "penalty-growth",
    value: "Q",
    help: "Factor of the penalty from one charged round to the next",
    default: 1.02,
    allows: |growth| (1.0..=2.0).contains(&growth),
    rule: "between 1 and 2",
};

/// `q₂`: how fast the noise rate grows, or falls if it is below 1.
const RATE_GROWTH: OwnSetting = OwnSetting {
    name: "rate-growth",
    value: "Q",
    help: "Factor of the noise rate from round to round",
    default: 1.02,
    allows: |growth| (0.5..=2.0).contains(&growth),
    rule: "between 0.5 and 2",
};

impl AlgorithmSpec for MAdmm {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "m-admm",
            title: "M-ADMM",
            reference: "Zhang, Khalili, Liu 2018",
            summary: "DVP with penalties and noise rates that grow from round to round",
            needs: Needs::TwiceDifferentiable,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::Pure,
            uses: &[],
            own: &[PENALTY_GROWTH, RATE_GROWTH],
            between_sites: false,
            survives_loss: true,
        }
    }

    /// Charges in the proportions of the schedule.
    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        let own = &site.settings().own;
        let (growth, rate_growth) = (own.value(&PENALTY_GROWTH), own.value(&RATE_GROWTH));
        let step = |round: u32| {
            let penalty = step::grown_penalty(site.penalty, growth, round);
            Some(PureStep {
                share: (rate_growth / growth).powi(round as i32 - 1),
                modulus: site.modulus_with(penalty),
            })
        };
        objective_calibration(site, (1..=site.settings().rounds).map(step).collect())
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(dvp::start(inputs).with_growth(inputs.settings.own.value(&PENALTY_GROWTH)))
    }

    fn relative_noise(&self, plan: &Plan, n_features: usize, mu: f64) -> Result<f64, PrivacyError> {
        gamma_relative_noise(plan, n_features, mu, plan.settings().rounds)
    }
}
