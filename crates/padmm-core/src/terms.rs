//! What follows from a plan and public facts alone, before any record is touched: penalty, moduli, tolerances,
//! sensitivities, noise. A site can look at all of it before it spends anything.

use padmm_privacy::{
    NoiseRequest, NoiseSchedule, PrivacyError, Sensitivity, SensitivityBasis, SensitivityInputs, gdp_mu,
};
use serde::Serialize;

use crate::data::FeatureSpace;
use crate::graph::{Graph, gossip_contraction, gossip_rounds};
use crate::loss::Loss;
use crate::plan::Plan;
use crate::regularizer::Penalty;
use crate::step;

/// Gossip stops when it has shrunk disagreement by this factor.
const GOSSIP_TARGET: f64 = 1e-6;
/// Or after this many rounds.
const GOSSIP_LIMIT: usize = 1000;

/// Public facts of a network of sites.
pub struct Network<'a> {
    /// Who talks to whom.
    pub graph: &'a Graph,
    /// Records of each site; public under replace-one adjacency.
    pub n_records: &'a [usize],
    /// The encoded columns.
    pub space: &'a FeatureSpace,
    /// `S`
    pub norm_bound: f64,
}

/// The terms of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Terms {
    /// `η`
    pub penalty: f64,
    /// Gossip rounds after the private ones.
    pub gossip_rounds: u32,
    /// What each agent is held to.
    pub agents: Vec<AgentTerms>,
}

/// The terms of one agent.
#[derive(Clone, Debug, Serialize)]
pub struct AgentTerms {
    /// `d_i`
    pub degree: usize,
    /// `n_i`
    pub n_records: usize,
    /// `m_i = 2ηd_i + m_R`
    pub modulus: f64,
    /// `τ_i`: no release without a certificate this good.
    pub tolerance: f64,
    /// Noise of every round; none without privacy.
    pub noise: Option<NoiseSchedule>,
}

impl Terms {
    /// Derives the terms of every agent — MATH §3 (Δ) and §5 calibration.
    pub fn derive(plan: &Plan, network: &Network<'_>) -> Result<Terms, PrivacyError> {
        let settings = plan.settings();
        let n_agents = network.n_records.len();
        let slope = settings.loss.slope_bound();
        let penalty = match settings.penalty {
            Some(penalty) => penalty,
            None => default_penalty(plan, network),
        };
        let m_r =
            Penalty::new(&settings.regularizer, network.space, 1.0 / n_agents as f64).strong_convexity();
        let gradient_bound = slope.unwrap_or(1.0) * network.norm_bound;
        let agent = |i: usize| {
            let (degree, n_records) = (network.graph.degree(i), network.n_records[i]);
            let modulus = step::primal_quadratic(penalty, degree) + m_r;
            let relative = settings.tolerance.unwrap_or_else(|| default_tolerance(settings.loss, n_records));
            let tolerance = padmm_privacy::default_tolerance(gradient_bound, n_records, relative);
            let noise = if settings.algorithm.is_private() {
                let sensitivity = match settings.sensitivity {
                    SensitivityBasis::Record => Sensitivity::per_record(&SensitivityInputs {
                        gradient_bound,
                        n_records,
                        tolerance,
                        modulus,
                    })?,
                    SensitivityBasis::Paper => Sensitivity::paper(gradient_bound, penalty, degree)?,
                };
                Some(NoiseSchedule::calibrate(&NoiseRequest {
                    budget: plan.budget(),
                    accountant: settings.accountant,
                    decay: plan.decay(),
                    sensitivity,
                    n_features: network.space.n_features(),
                })?)
            } else {
                None
            };
            Ok(AgentTerms { degree, n_records, modulus, tolerance, noise })
        };
        Ok(Terms {
            penalty,
            gossip_rounds: gossip_rounds(gossip_contraction(network.graph), GOSSIP_TARGET, GOSSIP_LIMIT)
                as u32,
            agents: (0..n_agents).map(agent).collect::<Result<_, PrivacyError>>()?,
        })
    }
}

/// Relative tolerance: MATH §3's 10⁻⁶, looser where floating point cannot certify it.
///
/// The hinge's certificate goes with the square root of what rounding leaves, so it gets 10⁻³; sums over more than
/// 10⁵ records round more, so theirs grows with the (public) number of records. Either way the tolerance is inside the
/// sensitivity: 10⁻³ costs a thousandth more noise.
fn default_tolerance(loss: Loss, n_records: usize) -> f64 {
    let base: f64 = if loss == Loss::Hinge { 1e-3 } else { 1e-6 };
    base.max(1e-11 * n_records as f64)
}

/// Share of the loss's curvature bound that the proximal term takes without any noise.
const PENALTY_CURVATURE: f64 = 0.008;
/// Weight of the noise in the default penalty.
const PENALTY_NOISE: f64 = 1.1;

/// The penalty when a plan names none: a rule on public facts alone, so that nothing is tuned on private data.
///
/// ```text
/// 2η = a · 2 L₁ S² √p / (μ N^¼) · rms_i(1/(n_i d_i))  +  b · L₂ S² / mean(d),      a = 1.1, b = 0.008
/// ```
///
/// Averaged over `K` rounds, the noise of one agent's releases has a norm of about `√p·Δ_i/μ` with `Δ_i ≈ 2B/(2η n_i d_i)`,
/// whatever `K` is; averaged over the network too, it is `√N` times smaller. The first kind of noise bends the local solves, the
/// second ends up in the model that is kept; the first term holds their geometric mean at `1/a` in units of 1/S: a smaller
/// penalty drowns in noise. The second term keeps a share `b` of the loss's largest curvature: a larger penalty needs more
/// rounds, a smaller one lets releases of neighbours scatter. `a` and `b` were fixed once on Adult, which is public
/// (EQUATIONS.md says how), and serve all data sets.
pub fn default_penalty(plan: &Plan, network: &Network<'_>) -> f64 {
    let settings = plan.settings();
    let n_agents = network.n_records.len() as f64;
    let degree = |i: usize| network.graph.degree(i).max(1) as f64;
    let slope = settings.loss.slope_bound().unwrap_or(1.0);
    let curvature = settings.loss.curvature_bound().unwrap_or(0.25).min(1.0);
    let square = network.norm_bound * network.norm_bound;
    let noise = if settings.algorithm.is_private() {
        let inverse = |(i, &n): (usize, &usize)| (n as f64 * degree(i)).powi(-2);
        let rms = (network.n_records.iter().enumerate().map(inverse).sum::<f64>() / n_agents).sqrt();
        let mu = gdp_mu(plan.budget()).value();
        PENALTY_NOISE * 2.0 * slope * square * (network.space.n_features() as f64).sqrt()
            / (mu * n_agents.powf(0.25))
            * rms
    } else {
        0.0
    };
    let mean_degree = (0..network.n_records.len()).map(degree).sum::<f64>() / n_agents;
    0.5 * (noise + PENALTY_CURVATURE * curvature * square / mean_degree)
}
