//! The rule that picks a method and its settings from public facts alone: sites, their numbers of records, columns, budget and graph.

use padmm_privacy::{PrivacyError, gdp_mu};
use serde::Serialize;

use crate::algorithm::newton::picked;
use crate::algorithm::noise_factor;
use crate::algorithm::{AlgorithmKind, CONSENSUS_NEWTON, P_ADMM};
use crate::calibration::{NetworkFacts, default_penalty};
use crate::plan::{Plan, PlanError, SiteWeights};

/// Above this `ν = pA/μ` a model may be no better than the base rate.
pub const NOISY: f64 = 0.3;
/// Damped weights change whose records count, so they must take this part of the noise away at least. They gain where sites differ by
/// orders of magnitude. At the four hospitals of Heart Disease (200, 172, 31 and 86 records) they take a tenth of the noise away, and cost
/// a point of accuracy.
const WORTH_DAMPING: f64 = 0.2;

/// What the rule picks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommended {
    /// By its name in plans.
    pub algorithm: String,
    /// Private rounds, those of stage 0 included.
    pub rounds: u32,
    /// Whose records count how much.
    pub weights: SiteWeights,
    /// `η`, of the methods that have one.
    pub penalty: Option<f64>,
    /// `ν = pA/μ` with these weights: the noise, in units in which 0.3 is much.
    pub noise_level: f64,
    /// One sentence for each choice.
    pub reasons: Vec<String>,
    #[serde(skip)]
    kind: AlgorithmKind,
}

impl Recommended {
    /// The recommended method, as plans hold it.
    pub fn kind(&self) -> AlgorithmKind {
        self.kind
    }
}

/// Whether leaving site `i` out lowers the noise of the mean of all records: `A² = N/n²` of record weights falls exactly if the site has
/// fewer than `n(1 − √(1 − 1/N))` records, a little more than half the average.
pub fn is_mostly_noise(n_records: &[usize], i: usize) -> bool {
    let (n, sites) = (n_records.iter().sum::<usize>() as f64, n_records.len() as f64);
    sites > 2.0 && (n_records[i] as f64) < n * (1.0 - (1.0 - 1.0 / sites).sqrt())
}

/// Whether consensus Newton can do the plan's problem.
pub(super) fn newton_can(plan: &Plan, network: &NetworkFacts<'_>) -> bool {
    let space = network.space;
    let has_units = space.intercept.is_some() || space.groups.iter().any(|g| g.start >= space.n_numeric);
    has_units && plan.with_algorithm(CONSENSUS_NEWTON).is_ok()
}

/// Whose records are to count how much, and why.
pub fn recommended_weights(n_records: &[usize]) -> (SiteWeights, String) {
    let of = |weights| noise_factor(weights, n_records);
    let small = (0..n_records.len()).filter(|&i| is_mostly_noise(n_records, i)).count();
    let gain = 1.0 - of(SiteWeights::Damped) / of(SiteWeights::Records);
    if small > 0 && gain >= WORTH_DAMPING {
        let reason = format!(
            "damped weights: {small} of {} sites add more noise than knowledge, and damping takes {:.0} % of the noise away",
            n_records.len(),
            100.0 * gain
        );
        (SiteWeights::Damped, reason)
    } else {
        (SiteWeights::Records, "record weights: every record counts the same".to_owned())
    }
}

/// Picks from public facts alone:
///
/// - **Method.** Consensus Newton, wherever it is defined for the loss, the regulariser and the columns; P-ADMM elsewhere.
/// - **Weights.** Damped, if a site adds more noise than knowledge ([`is_mostly_noise`]) and they lower the noise by a fifth at least;
///   else every record counts the same.
/// - **Slope cap.** None: consensus Newton clips gradients itself.
/// - **Rounds and penalty.** Those of the method's own rule ([`AlgorithmSpec::rounds_by_rule`], [`default_penalty`]).
///
/// [`AlgorithmSpec::rounds_by_rule`]: crate::algorithm::AlgorithmSpec::rounds_by_rule
pub fn recommend(plan: &Plan, network: &NetworkFacts<'_>) -> Result<Recommended, PlanError> {
    let (n_records, p) = (network.n_records, network.space.n_features());
    let mu = gdp_mu(plan.budget()).value();
    let (weights, reason) = recommended_weights(n_records);
    let mut reasons = vec![reason];
    let (newton_rounds, noise_level) = picked(p, noise_factor(weights, n_records), mu);
    if newton_can(plan, network) {
        reasons.push(format!(
            "consensus Newton, {newton_rounds} rounds: its rule for a noise level of {noise_level:.3}"
        ));
        return Ok(Recommended {
            algorithm: CONSENSUS_NEWTON.name().to_owned(),
            rounds: newton_rounds,
            weights,
            penalty: None,
            noise_level,
            reasons,
            kind: CONSENSUS_NEWTON,
        });
    }
    reasons.push(
        "P-ADMM: consensus Newton needs a loss with bounded curvature, a regulariser that is a sum over coordinates, and a categorical \
         column or an intercept"
            .to_owned(),
    );
    let mut draft = plan.with_algorithm(P_ADMM)?.settings().clone();
    draft.weights = weights;
    draft.penalty = None;
    let rounds = draft.rounds;
    let plan = draft.check()?;
    let penalty = default_penalty(&plan, network).map_err(|e: PrivacyError| PlanError::Privacy(e))?;
    Ok(Recommended {
        algorithm: P_ADMM.name().to_owned(),
        rounds,
        weights,
        penalty: Some(penalty),
        noise_level,
        reasons,
        kind: P_ADMM,
    })
}
