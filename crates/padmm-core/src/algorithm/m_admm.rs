//! M-ADMM (Zhang, Khalili, Liu 2018): DVP with a primal penalty that grows from round to round, `η^t = θq₁^{t−1}`, while the
//! dual step keeps to `θ`, and noise whose rate grows too, `a^t = a¹q₂^{t−1}`, entering as `b = 2η^t d_i e` with
//! `e ~ exp(−a^t‖e‖)`, that is `b ~ exp(−β^t‖b‖)` with `β^t = a^t/(2η^t d_i)`.
//!
//! Updates as in [`super::consensus`]. A round costs `S a^t/(n η^t d_i) + ln(1 + χ^t)`; the published bound is looser and has a
//! condition.

use padmm_privacy::{PrivacyError, PureStep};

use super::{ConsensusAdmm, Start, dvp};
use crate::step;
use crate::terms::{AgentTerms, SiteFacts};

pub(super) fn start(start: &Start<'_>) -> ConsensusAdmm {
    dvp::start(start).with_growth(start.settings.growth())
}

/// Charges in the proportions of the schedule.
pub(super) fn terms(site: &SiteFacts<'_>) -> Result<AgentTerms, PrivacyError> {
    let (growth, rate_growth) = (site.settings().growth(), site.settings().rate_growth());
    let step = |round: u32| {
        let penalty = step::grown_penalty(site.penalty, growth, round);
        Some(PureStep {
            share: (rate_growth / growth).powi(round as i32 - 1),
            modulus: site.modulus_with(penalty),
        })
    };
    dvp::objective_terms(site, (1..=site.settings().rounds).map(step).collect())
}
