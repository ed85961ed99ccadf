//! What follows from a plan and public facts alone, before any record is touched: penalty, moduli, tolerances,
//! sensitivities, noise. A site can look at all of it before it spends anything.

use std::collections::BTreeMap;

use padmm_privacy::outward::{add_down, mul_down, mul_up};
use padmm_privacy::{PrivacyError, Schedule, gdp_mu, per_step_epsilon};
use serde::Serialize;

use crate::algorithm::Guarantee;

use crate::data::FeatureSpace;
use crate::graph::{Graph, gossip_contraction, gossip_rounds};
use crate::loss::Loss;
use crate::plan::{Plan, PlanDraft};
use crate::regularizer::Penalty;

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
    /// `m_i`, the smallest over rounds: `2ηd_i + m_R` where an algorithm solves (primal).
    pub modulus: f64,
    /// `τ_i`: no release without a certificate this good.
    pub tolerance: f64,
    /// Curvature that objective perturbation adds to the local problem; nearly always 0.
    pub ridge: f64,
    /// `1/τ_k` of the algorithms that take a gradient step: one for all rounds, or one for each.
    pub inverse_steps: Vec<f64>,
    /// Noise of every round; none without privacy.
    pub noise: Option<Schedule>,
}

/// Why no terms follow from a plan and a network.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TermsError {
    /// The algorithm runs on one kind of graph only.
    #[error(
        "--algorithm {algorithm} runs on a {needed} graph of at least two sites only: use --graph {needed}, or another --algorithm"
    )]
    GraphNeeded {
        /// The algorithm's name.
        algorithm: &'static str,
        /// The graph.
        needed: &'static str,
    },
    /// The privacy core refuses.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
}

/// The public facts of one site that its terms follow from.
pub struct SiteFacts<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// `η`
    pub penalty: f64,
    /// `d_i`
    pub degree: usize,
    /// `n_i`
    pub n_records: usize,
    /// `N`
    pub n_agents: usize,
    /// `p`
    pub n_features: usize,
    /// `B = L₁S`
    pub gradient_bound: f64,
    /// `L₂S²`, of a smooth loss
    pub curvature_bound: Option<f64>,
    /// `m_R`
    pub strong_convexity: f64,
    /// The largest curvature of the regulariser's smooth part.
    pub regularizer_curvature: f64,
}

impl SiteFacts<'_> {
    /// The plan's settings.
    pub fn settings(&self) -> &PlanDraft {
        self.plan.settings()
    }

    /// `m_i = 2ηd_i + m_R` with a penalty of its own, rounded down.
    pub(crate) fn modulus_with(&self, penalty: f64) -> f64 {
        add_down(mul_down(2.0 * penalty, self.degree as f64), self.strong_convexity)
    }

    /// `m_i = 2ηd_i + m_R`
    pub(crate) fn modulus(&self) -> f64 {
        self.modulus_with(self.penalty)
    }

    /// A bound on the curvature of `f_i`: `L₂S²` and the regulariser's.
    pub(crate) fn smoothness(&self) -> f64 {
        self.curvature_bound.expect("the plan asks for a smooth loss") + self.regularizer_curvature
    }

    /// Terms without noise, for a problem of this modulus.
    pub(crate) fn bare_terms(&self, modulus: f64) -> AgentTerms {
        let settings = self.settings();
        let relative = settings.tolerance.unwrap_or_else(|| default_tolerance(settings.loss, self.n_records));
        AgentTerms {
            degree: self.degree,
            n_records: self.n_records,
            modulus,
            tolerance: padmm_privacy::default_tolerance(self.gradient_bound, self.n_records, relative),
            ridge: 0.0,
            inverse_steps: vec![],
            noise: None,
        }
    }
}

impl Terms {
    /// Derives the terms of every agent — MATH §3 (Δ) and §5 calibration.
    pub fn derive(plan: &Plan, network: &Network<'_>) -> Result<Terms, TermsError> {
        let settings = plan.settings();
        let kind = settings.algorithm;
        if let Some(needed) = kind.graph_needed().filter(|_| !kind.fits(network.graph)) {
            return Err(TermsError::GraphNeeded { algorithm: kind.name(), needed });
        }
        let n_agents = network.n_records.len();
        let penalty = match settings.penalty {
            Some(penalty) => penalty,
            None => default_penalty(plan, network)?,
        };
        let regularizer = Penalty::new(&settings.regularizer, network.space, 1.0 / n_agents as f64);
        let row = network.norm_bound;
        let facts = |i: usize| SiteFacts {
            plan,
            penalty,
            degree: network.graph.degree(i),
            n_records: network.n_records[i],
            n_agents,
            n_features: network.space.n_features(),
            gradient_bound: mul_up(settings.loss.slope_bound().unwrap_or(1.0), row),
            curvature_bound: settings.loss.curvature_bound().map(|c| mul_up(mul_up(c, row), row)),
            strong_convexity: regularizer.strong_convexity(),
            regularizer_curvature: regularizer.curvature,
        };
        let mut agents: Vec<AgentTerms> = Vec::with_capacity(n_agents);
        // Sites of one size and degree have the same terms, and some calibrations take a while.
        let mut known: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for i in 0..n_agents {
            let site = facts(i);
            let key = (site.degree, site.n_records);
            let terms = match known.get(&key) {
                Some(&same) => agents[same].clone(),
                None => kind.terms(&site)?,
            };
            known.entry(key).or_insert(i);
            agents.push(terms);
        }
        let gossip = gossip_rounds(gossip_contraction(network.graph), GOSSIP_TARGET, GOSSIP_LIMIT);
        Ok(Terms { penalty, gossip_rounds: gossip as u32, agents })
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
///
/// Gamma-norm noise is longer than Gaussian noise of the same total budget, by a factor of about `√p·μ/(ε₀√K)` a release; the
/// first term is multiplied by it for the algorithms that use such noise.
pub fn default_penalty(plan: &Plan, network: &Network<'_>) -> Result<f64, PrivacyError> {
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
        noise_length(plan, network, mu)?
            * PENALTY_NOISE
            * 2.0
            * slope
            * square
            * (network.space.n_features() as f64).sqrt()
            / (mu * n_agents.powf(0.25))
            * rms
    } else {
        0.0
    };
    let mean_degree = (0..network.n_records.len()).map(degree).sum::<f64>() / n_agents;
    Ok(0.5 * (noise + PENALTY_CURVATURE * curvature * square / mean_degree))
}

/// How much longer one release's noise is than P-ADMM's at the same sensitivity and total budget.
fn noise_length(plan: &Plan, network: &Network<'_>, mu: f64) -> Result<f64, PrivacyError> {
    let settings = plan.settings();
    if settings.algorithm.describe().guarantee != Guarantee::Pure {
        return Ok(1.0);
    }
    let charged = settings.algorithm.charged_rounds(settings.rounds);
    let per_step = per_step_epsilon(plan.budget(), charged, settings.accountant.composition_rule())?;
    Ok((network.space.n_features() as f64).sqrt() * mu / (per_step * f64::from(settings.rounds).sqrt()))
}
