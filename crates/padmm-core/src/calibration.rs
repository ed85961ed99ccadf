//! What follows from a plan and public facts alone, before any record is touched: penalty, moduli, tolerances,
//! sensitivities, noise. A site can look at all of it before it spends anything.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use padmm_privacy::outward::{add_down, mul_down, mul_up};
use padmm_privacy::{NoiseSchedule, PrivacyError, Schedule, SensitivityBasis, Stopping, gdp_mu};
use serde::Serialize;

use crate::algorithm::AlgorithmKind;

use crate::data::FeatureSpace;
use crate::graph::Graph;
use crate::loss::Loss;
use crate::plan::{Plan, PlanDraft};
use crate::regularizer::RegularizerTerm;
use crate::solvable::{Demand, Judgement, LocalBounds, MOST_RATIO, PLANNED_DRIFT, PLANNED_RATIO};

/// Public facts of a network of sites.
pub struct NetworkFacts<'a> {
    /// The network; sites are named by their places in it.
    pub graph: &'a Graph,
    /// Records of each site; public under replace-one adjacency.
    pub n_records: &'a [usize],
    /// The encoded columns, which all sites share.
    pub space: &'a FeatureSpace,
    /// `S`: rows are cut to this norm.
    pub norm_bound: f64,
}

impl NetworkFacts<'_> {
    /// The norm that no row exceeds in a run of this plan: the schema's bound; if slopes are capped, rows are left as long as they are.
    pub fn row_bound(&self, settings: &PlanDraft) -> f64 {
        if settings.slope_cap.is_some() { self.space.largest_norm() } else { self.norm_bound }
    }
}

/// What follows from a plan and public facts: the numbers that every site computes alike.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// `η`, given by the plan or derived from public facts.
    pub penalty: f64,
    /// How often the sites' averages are passed on after the last round until everybody has all of them: the graph's diameter, or
    /// nothing where models are not averaged.
    pub averaging_turns: u32,
    /// What each agent is held to.
    pub agents: Vec<SiteCalibration>,
}

/// What one agent is held to: tolerance, noise and the bounds behind them.
#[derive(Clone, Debug)]
pub struct SiteCalibration {
    /// `d_i`: how many neighbours it has.
    pub degree: usize,
    /// `n_i`: how many records it has, which is public.
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
    pub noise: Option<Arc<dyn Schedule>>,
    /// What public numbers say about the rounds; none where no guarantee is stated for the bytes that leave.
    pub solvability: Option<Solvability>,
}

/// What is known of a site's rounds before any record is touched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Solvability {
    /// The bounds that every round is judged by before it is charged.
    #[serde(skip)]
    pub bounds: LocalBounds,
    /// The judgement for models of the size that honest sites send.
    pub planned: Judgement,
    /// A neighbour's model that is longer is not used.
    pub message_limit: f64,
    /// What decides whether the site stops.
    pub stopping: Stopping,
}

/// Why no terms follow from a plan and a network.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum CalibrationError {
    /// The algorithm runs on one kind of graph only.
    #[error(
        "`algorithm = {algorithm}` runs on a {needed} graph of at least two sites only: use `graph = {needed}`, or another `algorithm`"
    )]
    GraphNeeded { algorithm: &'static str, needed: &'static str },
    /// Whether a site can certify its solves would hang on rounding, and so on records.
    #[error(
        "site {site}, with {n_records} records, cannot be sure to reach its tolerance: rounding and the spacing of floating-point numbers may take {ratio:.3} of it, and at most {MOST_RATIO} is allowed, because whether a site stops must not depend on its records. Use a `tolerance` that is {looser:.1} times looser (it enters the noise), a larger `penalty`, or a loss with a wider corner"
    )]
    Marginal {
        site: usize,
        n_records: usize,
        ratio: f64,
        /// By how much the tolerance is too tight.
        looser: f64,
    },
    /// A budget or a schedule that the privacy core refuses.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
}

/// The public facts of one site that its terms follow from.
pub struct CalibrationInputs<'a> {
    /// The plan that all sites share.
    pub plan: &'a Plan,
    /// `η`, given by the plan or derived.
    pub penalty: f64,
    /// `d_i`: how many neighbours the site has.
    pub degree: usize,
    /// `n_i`: how many records the site has, which is public.
    pub n_records: usize,
    /// `N`: how many sites take part.
    pub n_agents: usize,
    /// `p`: how many coefficients a model has.
    pub n_features: usize,
    /// `Nω_i`: what the site's mean loss is multiplied by.
    pub weight: f64,
    /// `Nω_i·B`, where `B = L₁S`, or `c` if slopes are capped: no record's gradient is longer, with its site's weight.
    pub gradient_bound: f64,
    /// `Nω_i·L₂S²`, of a smooth loss; less if slopes are capped.
    pub curvature_bound: Option<f64>,
    /// `m_R`: strong convexity of the site's share of the regulariser.
    pub strong_convexity: f64,
    /// The largest curvature of the regulariser's smooth part.
    pub regularizer_curvature: f64,
    /// The solver's tolerance as a part of `2B/n_i`.
    pub relative_tolerance: f64,
    /// What is public about the whole network, this site included.
    pub network: &'a NetworkFacts<'a>,
}

impl CalibrationInputs<'_> {
    /// The checked settings of [`Self::plan`].
    pub fn settings(&self) -> &PlanDraft {
        self.plan.settings()
    }

    /// `m_i = 2ηd_i + m_R` with a penalty of its own, rounded down.
    pub fn modulus_with(&self, penalty: f64) -> f64 {
        add_down(mul_down(2.0 * penalty, self.degree as f64), self.strong_convexity)
    }

    /// `m_i = 2ηd_i + m_R` with the plan's penalty, rounded down.
    pub fn modulus(&self) -> f64 {
        self.modulus_with(self.penalty)
    }

    /// A bound on the curvature of `f_i`: `L₂S²` and the regulariser's.
    pub fn smoothness(&self) -> f64 {
        self.curvature_bound.expect("the plan asks for a smooth loss") + self.regularizer_curvature
    }

    /// The solver tolerance that adds the fraction `relative` to the sensitivity: `tau = relative * 2B/n`.
    ///
    /// Rounding does not matter here: whatever number comes out is the one that the sensitivity is derived with.
    pub fn tolerance_for(&self, relative: f64) -> f64 {
        relative * (2.0 * self.gradient_bound / self.n_records as f64)
    }

    /// Terms without noise, for a problem of this modulus.
    pub fn without_noise(&self, modulus: f64) -> SiteCalibration {
        SiteCalibration {
            degree: self.degree,
            n_records: self.n_records,
            modulus,
            tolerance: self.tolerance_for(self.relative_tolerance),
            ridge: 0.0,
            inverse_steps: vec![],
            noise: None,
            solvability: None,
        }
    }
}

impl Calibration {
    /// Derives the terms of every agent — EQUATIONS §3 (Δ) and §5 calibration.
    pub fn derive(plan: &Plan, network: &NetworkFacts<'_>) -> Result<Self, CalibrationError> {
        let settings = plan.settings();
        let kind = settings.algorithm;
        if let Some(needed) = kind.graph_needed().filter(|_| !kind.fits(network.graph)) {
            return Err(CalibrationError::GraphNeeded { algorithm: kind.name(), needed });
        }
        // A loss that does not know its bounds yet would be calibrated for none.
        padmm_privacy::require(
            !settings.loss.awaits_label(),
            "upper bound of the counts",
            0.0,
            "known from the schema of the records (`Plan::for_label`)",
        )?;
        let n_agents = network.n_records.len();
        let penalty = match settings.penalty {
            Some(penalty) => penalty,
            None => default_penalty(plan, network)?,
        };
        let regularizer = RegularizerTerm::new(&settings.regularizer, network.space, 1.0 / n_agents as f64);
        let row = network.row_bound(settings);
        let gradient = match settings.slope_cap {
            None => mul_up(settings.loss.slope_bound().unwrap_or(1.0), row),
            Some(_) => {
                settings.loss.gradient_bound(mul_up(row, 1.0 + 1e-12), settings.slope_cap).unwrap_or(1.0)
            }
        };
        let curvature = match settings.slope_cap {
            None => settings.loss.curvature_bound().map(|c| mul_up(mul_up(c, row), row)),
            Some(_) => settings.loss.record_curvature(mul_up(row, 1.0 + 1e-12), settings.slope_cap),
        };
        let weights = settings.weights.factors(network.n_records);
        let facts = |i: usize| CalibrationInputs {
            plan,
            penalty,
            degree: network.graph.degree(i),
            n_records: network.n_records[i],
            n_agents,
            n_features: network.space.n_features(),
            weight: weights[i],
            gradient_bound: mul_up(gradient, weights[i]),
            curvature_bound: curvature.map(|c| mul_up(c, weights[i])),
            strong_convexity: regularizer.strong_convexity(),
            regularizer_curvature: regularizer.curvature,
            relative_tolerance: 0.0,
            network,
        };
        // Sites of one size and degree have the same terms, and some calibrations take a while.
        let key = |i: usize| (network.graph.degree(i), network.n_records[i]);
        let mut tolerances: BTreeMap<(usize, usize), f64> = (0..n_agents)
            .map(|i| {
                (key(i), settings.tolerance.unwrap_or_else(|| default_tolerance(settings.loss, key(i).1)))
            })
            .collect();
        let mut agents: Vec<SiteCalibration> = vec![];
        for attempt in 0.. {
            let facts = |i: usize| CalibrationInputs { relative_tolerance: tolerances[&key(i)], ..facts(i) };
            let mut known: BTreeMap<(usize, usize), SiteCalibration> = BTreeMap::new();
            for i in 0..n_agents {
                if let Entry::Vacant(place) = known.entry(key(i)) {
                    place.insert(kind.spec().calibrate(&facts(i))?);
                }
            }
            if kind.is_exact() && kind.spec().solves() && settings.sensitivity == SensitivityBasis::Record {
                let noise = known.values().filter_map(SiteCalibration::noise_length).fold(0.0, f64::max);
                for i in 0..n_agents {
                    let calibration = known.get_mut(&key(i)).expect("every site has terms");
                    if calibration.solvability.is_none() {
                        let solvability =
                            solvability(kind, &facts(i), calibration, network.space, row, noise);
                        calibration.state(solvability);
                    }
                }
            }
            let mut looser = tolerances.clone();
            for (key, calibration) in known.iter().filter(|_| settings.tolerance.is_none()) {
                if let Some(Solvability { planned, .. }) = &calibration.solvability {
                    looser.insert(*key, loosened(planned, tolerances[key]));
                }
            }
            if looser == tolerances || attempt == LOOSENINGS {
                agents.extend((0..n_agents).map(|i| known[&key(i)].clone()));
                break;
            }
            tolerances = looser;
        }
        let averaging_turns = if kind.spec().is_averaged() { network.graph.diameter() as u32 } else { 0 };
        Ok(Self { penalty, averaging_turns, agents })
    }
}

impl Calibration {
    /// Refuses terms under which a site could not be sure to certify its solves: then records would decide whether it stops.
    pub fn check_solvable(&self) -> Result<(), CalibrationError> {
        for (i, agent) in self.agents.iter().enumerate() {
            let Some(Solvability { planned, .. }) = agent.solvability else { continue };
            if planned.ratio.is_nan() || planned.ratio > MOST_RATIO {
                let (site, n_records, ratio) = (i + 1, agent.n_records, planned.ratio);
                return Err(CalibrationError::Marginal {
                    site,
                    n_records,
                    ratio,
                    looser: ratio / PLANNED_RATIO,
                });
            }
        }
        Ok(())
    }
}

impl SiteCalibration {
    /// Adds calibrated noise; tolerance and modulus stay as they are.
    pub fn with_noise(self, schedule: impl Schedule) -> Self {
        Self { noise: Some(Arc::new(schedule)), ..self }
    }

    /// The noise, where it is exact Gaussian noise on the output.
    pub fn gaussian(&self) -> Option<&NoiseSchedule> {
        self.noise.as_ref()?.as_gaussian()
    }

    /// Exponents of the grids of all rounds; empty where releases are not made on grids.
    pub fn grids(&self) -> Vec<i32> {
        let Some(schedule) = &self.noise else { return vec![] };
        (1..=schedule.rounds()).map_while(|round| schedule.grid_exponent(round)).collect()
    }

    /// What a round of one gradient step asks for, towards models that are pulled to with this weight.
    pub(crate) fn step_demand(&self, pull: f64, size: f64, walk: f64) -> Demand {
        let slowest = self.inverse_steps.last().copied().unwrap_or_default();
        Demand::Step { at: size, center: pull * (size + walk) + slowest * size, weight: self.modulus }
    }

    /// A bound on the length of a release's noise that is hardly ever exceeded.
    fn noise_length(&self) -> Option<f64> {
        let schedule = self.gaussian()?;
        Some(schedule.noise_std(1)? * ((schedule.n_features() as f64).sqrt() + 6.0))
    }

    /// Keeps what is known of the rounds, and says so in the guarantee.
    fn state(&mut self, solvability: Solvability) {
        if let Some(schedule) = self.gaussian().cloned() {
            self.noise = Some(Arc::new(schedule.with_stopping(solvability.stopping)));
        }
        self.solvability = Some(solvability);
    }
}

/// The site's bounds, and what they say about models that are as long as `noise`, the longest noise of any site.
fn solvability(
    kind: AlgorithmKind,
    site: &CalibrationInputs<'_>,
    calibration: &SiteCalibration,
    space: &FeatureSpace,
    row: f64,
    noise: f64,
) -> Solvability {
    let settings = site.settings();
    let regularizer = RegularizerTerm::new(&settings.regularizer, space, 1.0 / site.n_agents as f64);
    let penalty = kind.spec().local_regularizer(regularizer);
    let values = space.groups.len() + usize::from(space.intercept.is_some());
    let bounds = LocalBounds::new(
        settings.loss,
        site.weight,
        &penalty,
        site.n_records,
        site.n_features,
        values,
        row,
        settings.slope_cap,
        calibration.tolerance,
    );
    // The duals add up differences of releases, whose noise is independent from round to round.
    let walk = noise * f64::from(settings.rounds).sqrt();
    let demand = |size: f64, walk: f64| {
        let demand = kind.spec().demand(site, calibration, size, walk);
        demand.unwrap_or_else(|| {
            panic!(
                "{} states a guarantee for the bytes that leave, so it needs `AlgorithmSpec::demand`",
                kind.name()
            )
        })
    };
    let planned = bounds.judge(demand(noise, walk));
    let stopping = LocalBounds::stopping(&planned);
    let message_limit = bounds.message_limit(|size| demand(size, 0.0), stopping);
    Solvability { bounds, planned, message_limit, stopping }
}

/// How often the tolerance is loosened at most; each time it should be the last.
const LOOSENINGS: usize = 8;

/// The default tolerance of a site after a look at what it leaves to rounding: it gives way where it must, since a looser one costs next
/// to no noise.
fn loosened(planned: &Judgement, relative: f64) -> f64 {
    let by_drift = if planned.drift.is_finite() { planned.drift / PLANNED_DRIFT } else { 0.0 };
    let factor = by_drift.max(planned.ratio / PLANNED_RATIO);
    // A little more than needed, so that the next look finds it enough. A tolerance beyond a record's own influence helps nobody.
    if factor > 1.0 { (1.05 * factor * relative).min(1.0) } else { relative }
}

/// Relative tolerance: EQUATIONS §3's 10⁻⁶, looser where floating point cannot certify it.
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
/// 2η = a · 2 L₁ S² √p / (μ N^¼) · rms_i(Nω_i/(n_i d_i))  +  b · L₂ S² / mean(d),      a = 1.1, b = 0.008
/// ```
///
/// Averaged over `K` rounds, the noise of one agent's releases has a norm of about `√p·Δ_i/μ` with `Δ_i ≈ 2B·Nω_i/(2η n_i d_i)`,
/// whatever `K` is; averaged over the network too, it is `√N` times smaller. The first kind of noise bends the local solves, the
/// second ends up in the model that is kept; the first term holds their geometric mean at `1/a` in units of 1/S: a smaller
/// penalty drowns in noise. The second term keeps a share `b` of the loss's largest curvature: a larger penalty needs more
/// rounds, a smaller one lets releases of neighbours scatter. `a` and `b` were fixed once on Adult, which is public
/// (EQUATIONS.md says how), and serve all data sets.
///
/// If slopes are capped, `S` is the norm of a row whose numbers are spread evenly ([`FeatureSpace::usual_norm`]), and `L₁` is at most `c/S`.
///
/// Gamma-norm noise is longer than Gaussian noise of the same total budget, by a factor of about `√p·μ/(ε₀√K)` a release; the
/// first term is multiplied by it for the algorithms that use such noise.
pub fn default_penalty(plan: &Plan, network: &NetworkFacts<'_>) -> Result<f64, PrivacyError> {
    let settings = plan.settings();
    let n_agents = network.n_records.len() as f64;
    let degree = |i: usize| network.graph.degree(i).max(1) as f64;
    let slope = settings.loss.slope_bound().unwrap_or(1.0);
    let curvature = settings.loss.curvature_bound().unwrap_or(0.25).min(1.0);
    // With capped slopes a record's gradient is `c` long, and its row as long as it happens to be.
    let (slope, square) = match settings.slope_cap {
        None => (slope, network.norm_bound * network.norm_bound),
        Some(cap) => {
            let row = network.space.usual_norm();
            (slope.min(cap / row), row * row)
        }
    };
    let noise = if settings.algorithm.is_private() {
        let weights = settings.weights.factors(network.n_records);
        let influence = |(i, &n): (usize, &usize)| (n as f64 * degree(i) / weights[i]).powi(-2);
        let rms = (network.n_records.iter().enumerate().map(influence).sum::<f64>() / n_agents).sqrt();
        let mu = gdp_mu(plan.budget()).value();
        settings.algorithm.spec().relative_noise(plan, network.space.n_features(), mu)?
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
