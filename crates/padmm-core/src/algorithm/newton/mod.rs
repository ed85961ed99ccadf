//! Consensus Newton: all sites take a gradient at the same public point, in a metric that was learned privately, and step with a public
//! matrix.
//!
//! Stage 0, the first round, releases noisy moments of the records, from which everybody forms the metric `M = LLᵀ`, a prior and a start.
//! In every round after it a site releases
//!
//! ```text
//! u_i = Σ clip(ℓ'(aᵀx), ± c/‖L⁻¹a‖) L⁻¹a / c  +  discrete Gaussian noise
//! ```
//!
//! a sum over its records in units of the clipping bound `c`. The releases go to all sites, and all of them step alike:
//!
//! ```text
//! g = c L Σ_i (ω_i/n_i) u_i + 2λx + Γ(x − x_b),      d = −B⁻¹g/ρ,      x ← x + γ_k d
//! ```
//!
//! No problem is solved at a site, so there is no certificate and no convexity in the proof: a record's term is at most 1 long by
//! construction ([`ClippedSum`](padmm_privacy::ClippedSum), [`WhitenedRows`](padmm_privacy::WhitenedRows)), whatever `M`, `c` and `x` are, and these depend on releases only. Hostile
//! releases, and sites that have different points, can spoil the model, not the guarantee.
//!
//! With absolute values in the regulariser a step ends in their proximal map in the metric `B`:
//!
//! ```text
//! z ← (1 − γ_k)z + γ_k(x − B⁻¹g/ρ),      x ← argmin ½‖x − z‖²_B + R₁(x)
//! ```
//!
//! There is no theorem about convergence; `rule` says where the constants come from, and docs/guides/researchers.md where the method is weak.

mod diagonal;
mod full;
mod link;
mod metric;
mod prox;
mod records;
mod rehearsal;
mod rule;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use padmm_privacy::{
    Budget, Computed, Drawn, NoiseSchedule, PrivacyError, PublicVector, SumRound, Terms, gdp_mu,
};

use diagonal::DiagonalMetric;
use full::FullMetric;
use link::Link;
use metric::{Layout, Lesson, Metric, Moments};
pub(crate) use rehearsal::{Rehearsal, picked};
use rule::{FIRST_SHARE, Rule};

use super::shared_point::{self, LONGEST_MODEL, Voices, digest};
use super::{
    Algorithm, AlgorithmInputs, AlgorithmKind, AlgorithmSpec, Audience, CONSENSUS_NEWTON, Description,
    GraphNeeded, Guarantee, Local, Needs, SharedWork,
};
use crate::agent::AgentError;
use crate::calibration::{CalibrationInputs, NetworkFacts, SiteCalibration};
use crate::data::FeatureSpace;
use crate::message::StateDigest;
use crate::plan::PlanDraft;
use crate::privacy_noise::PrivacyNoise;
use crate::vector::{dot, norm, norm_up};

/// Of its standard deviation, how far noise may stray before a release counts as made up.
const PLAUSIBLE: f64 = 8.0;
/// More columns than this have no room for a matrix.
const WIDEST_MATRIX: usize = 1000;

/// Gradients of all sites at one public point, in a metric that was learned privately.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConsensusNewton;

/// State of one agent: the same at all agents that heard the same releases, and all of it public.
struct NewtonState {
    rule: Rule,
    layout: Layout,
    /// `β_k`
    shares: Vec<f64>,
    voices: Voices,
    /// Standard deviation of a coordinate of each round's release.
    noise: Vec<f64>,
    link: Link,
    /// `2λ`, column by column.
    penalty: Vec<f64>,
    /// Weights of absolute values, column by column.
    absolute: Vec<f64>,
    learned: Option<Learned>,
    shared: SharedWork,
    /// Of the metric and all points so far.
    digest: StateDigest,
    /// What the agent has: zero before stage 0, then the point, and after the last round the point drawn towards the base rate's.
    model: PublicVector,
}

/// What there is after stage 0.
struct Learned {
    metric: Box<dyn Metric>,
    /// `x`
    point: Vec<f64>,
    /// `z`: the point before the proximal map of the absolute values, if there are any.
    unshrunk: Vec<f64>,
    /// The last step's direction, and the slope along it where it was made.
    last_step: Option<(Vec<f64>, f64)>,
    /// `ρ`: by how much steps are shortened, because an earlier one went too far.
    damping: f64,
    /// Part of the budget that is spent.
    spent: f64,
}

impl Rule {
    /// The rule for a plan and its sites.
    fn of(settings: &PlanDraft, n_features: usize, n_records: &[usize]) -> Result<Self, PrivacyError> {
        let mu = gdp_mu(Budget::new(settings.epsilon, settings.delta)?).value();
        let picked = Self::pick(n_features, shared_point::noise_factor(settings.weights, n_records), mu);
        // Stage 0 is a round too.
        Ok(if settings.rounds > 1 { picked.with_rounds(settings.rounds - 1) } else { picked })
    }
}

impl Layout {
    fn of(space: &FeatureSpace) -> Self {
        let is_categorical = |g: &&Range<usize>| g.start >= space.n_numeric;
        Self {
            n_features: space.n_features(),
            n_numeric: space.n_numeric,
            groups: space.groups.iter().filter(is_categorical).cloned().collect(),
            intercept: space.intercept,
        }
    }
}

impl NewtonState {
    fn new(inputs: &AlgorithmInputs<'_>) -> Self {
        let rule =
            Rule::of(inputs.settings, inputs.n_features, inputs.n_records).expect("the plan's budget is one");
        Self {
            rule,
            layout: Layout::of(inputs.space),
            shares: rule.shares(),
            voices: Voices::of(inputs),
            noise: shared_point::noise_of(inputs),
            link: Link::of(inputs.settings.loss),
            penalty: inputs.regularizer.ridge(inputs.n_features),
            absolute: inputs.regularizer.prox_by_coordinate(1.0, inputs.n_features).0,
            learned: None,
            shared: inputs.shared.clone(),
            digest: StateDigest::default(),
            model: PublicVector::zeros(inputs.n_features),
        }
    }
}

impl NewtonState {
    /// The end of stage 0: metric, prior and start.
    fn learn(&mut self, own: &PublicVector, others: &[Arc<PublicVector>]) {
        let stray = PLAUSIBLE * self.noise[0];
        let is_plausible = |release: &[f64], n: f64| release.iter().all(|v| (-stray..=n + stray).contains(v));
        let (mut sum, noise_factor) = self.voices.sum(own, others, is_plausible);
        let bound = self.layout.moment_bound();
        sum.iter_mut().for_each(|v| *v *= bound);
        let moments = Moments::of(&self.layout, &sum, self.noise[0] * bound * noise_factor);
        // The noise of all rounds at once: 1/σ² adds up.
        let precision: f64 = self.noise[1..].iter().map(|s| 1.0 / (s * s)).sum();
        let rounds_noise = noise_factor / precision.sqrt();
        let lesson = Lesson {
            layout: &self.layout,
            rule: &self.rule,
            link: self.link,
            moments: &moments,
            penalty: &self.penalty,
            rounds_noise,
        };
        let (metric, point): (Box<dyn Metric>, _) = if self.layout.n_features > WIDEST_MATRIX {
            let (metric, point) = DiagonalMetric::learn(&lesson);
            (Box::new(metric), point)
        } else {
            let learned = FullMetric::learn(&lesson, &self.shared);
            let (metric, point) = learned.expect("moments within their range make a positive metric");
            (Box::new(metric), point)
        };
        self.digest = digest(&self.digest, [metric.coordinates(), &[metric.clip()], &point]);
        let unshrunk = point.clone();
        self.learned =
            Some(Learned { metric, point, unshrunk, last_step: None, damping: 1.0, spent: FIRST_SHARE });
        self.keep_point();
    }

    /// The end of a round after it: one step, and after the last a little way back.
    fn step(&mut self, round: usize, own: &PublicVector, others: &[Arc<PublicVector>]) {
        let noise = self.noise[round];
        let stray = noise * ((self.model.len() as f64).sqrt() + 6.0);
        let (sum, noise_factor) = self.voices.sum(own, others, |release, n| norm_up(release) <= n + stray);
        let Self { rule, shares, learned, absolute, .. } = self;
        let Learned { metric, point, unshrunk, last_step, damping, spent } =
            learned.as_mut().expect("stage 0 comes before every other round");
        let whitened: Vec<f64> = sum.iter().map(|u| metric.clip() * u).collect();
        let deviation = noise * metric.clip() * noise_factor;
        let gradient = metric.gradient(&whitened, point);
        // The last step went too far if the gradient now points along it by more than noise explains.
        if let Some((direction, slope)) = last_step {
            let along = dot(&gradient, direction);
            if along > 3.0 * deviation * metric.noise_along(direction) {
                *damping *= 1.0 - along / *slope;
            }
        }
        let share = shares[round - 1];
        *spent += share;
        let step = rule.step.max(share / *spent);
        let direction: Vec<f64> = metric.direction(&gradient).iter().map(|v| v / *damping).collect();
        let next = if has_corners(absolute) {
            let towards = unshrunk.iter().zip(&*point).zip(&direction);
            *unshrunk = towards.map(|((z, x), d)| (1.0 - step) * z + step * (x + d)).collect();
            metric.shrunk(absolute, unshrunk)
        } else {
            // Corners bend a step, and whether it went too far is not seen from its direction; so it is asked here only.
            *last_step = Some((direction.clone(), dot(&gradient, &direction)));
            point.iter().zip(&direction).map(|(x, d)| x + step * d).collect()
        };
        metric.spread(step / *damping, deviation);
        if norm(&next) <= LONGEST_MODEL {
            *point = next;
        }
        if round == shares.len() {
            let from = if has_corners(absolute) { &*unshrunk } else { &*point };
            let away: Vec<f64> = from.iter().zip(metric.base()).map(|(x, b)| x - b).collect();
            let length = metric.length(&away);
            let kept = metric.kept(metric.noise() / length.max(f64::MIN_POSITIVE));
            *point = metric.base().iter().zip(&away).map(|(b, d)| b + kept * d).collect();
            if has_corners(absolute) {
                *point = metric.shrunk(absolute, point);
            }
            metric.scale_spread(kept * kept);
        }
        self.digest = digest(&self.digest, [point.as_slice()]);
        self.keep_point();
    }

    fn keep_point(&mut self) {
        let Self { learned, model, .. } = self;
        if let Some(learned) = learned {
            model.rewrite(|model| model.copy_from_slice(&learned.point));
        }
    }
}

/// Whether the regulariser has absolute values.
fn has_corners(absolute: &[f64]) -> bool {
    absolute.iter().any(|&weight| weight > 0.0)
}

impl Algorithm for NewtonState {
    fn state(&self) -> Option<StateDigest> {
        Some(self.digest)
    }

    fn n_coordinates(&self, turn: u32) -> Option<usize> {
        (turn == 1).then(|| self.layout.n_moments())
    }

    fn compute(&mut self, _round: u32, _drawn: &Drawn, local: Local<'_>) -> Result<Computed, AgentError> {
        let sum = match &mut self.learned {
            None => records::moments(local.problem, &self.layout),
            Some(Learned { metric, point, .. }) => metric.sum(local.problem, point),
        };
        Ok(sum.into())
    }

    fn finish_turn(&mut self, turn: u32, own: Option<&PublicVector>, others: &[Arc<PublicVector>]) {
        let own = own.expect("every agent releases in every round");
        match turn {
            1 => self.learn(own, others),
            _ => self.step(turn as usize - 1, own, others),
        }
    }

    fn model(&self) -> &PublicVector {
        &self.model
    }

    fn drop_edge(&mut self, slot: usize) {
        self.voices.drop(slot);
    }

    /// Corners bend what noise does, and are left without an answer.
    fn privacy_noise(&self) -> Option<PrivacyNoise> {
        let learned = self.learned.as_ref().filter(|_| !has_corners(&self.absolute));
        learned.map(|learned| learned.metric.privacy_noise())
    }
}

impl AlgorithmSpec for ConsensusNewton {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "consensus-newton",
            title: "consensus Newton",
            reference: "this project",
            summary: "gradients of all sites at one public point, in a metric that was learned privately",
            needs: Needs::SmoothLossSeparableRegularizer,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::ExactGaussian,
            uses: &[],
            own: &[],
            between_sites: true,
            survives_loss: true,
        }
    }

    /// Noise on sums whose terms are at most 1 long: stage 0's are not negative, those of gradients are.
    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        let layout = Layout::of(site.network.space);
        padmm_privacy::require(
            layout.n_units() > 0,
            "number of categorical columns and intercepts",
            0.0,
            "at least 1 for consensus Newton; add an intercept to the schema",
        )?;
        let rule = Rule::of(site.settings(), site.n_features, site.network.n_records)?;
        let first =
            SumRound { n_coordinates: layout.n_moments(), terms: Terms::NonNegative, share: FIRST_SHARE };
        let round = |share| SumRound { n_coordinates: site.n_features, terms: Terms::Signed, share };
        let rounds = std::iter::once(first).chain(rule.shares().into_iter().map(round)).collect::<Vec<_>>();
        let schedule = NoiseSchedule::for_sums(site.plan.budget(), site.n_records, &rounds)?;
        Ok(site.without_noise(1.0).with_noise(schedule))
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(NewtonState::new(inputs))
    }

    fn audience(&self) -> Audience {
        Audience::Everybody
    }

    fn rounds_by_rule(&self, plan: &PlanDraft, network: &NetworkFacts<'_>) -> Option<u32> {
        let rule = Rule::of(plan, network.space.n_features(), network.n_records).ok()?;
        Some(rule.rounds + 1)
    }

    fn has_rule_for_rounds(&self) -> bool {
        true
    }

    fn fewest_rounds(&self) -> (u32, &'static str) {
        (2, "at least 2: the first learns the metric; 0 lets the rule choose")
    }
}

impl From<ConsensusNewton> for AlgorithmKind {
    fn from(_: ConsensusNewton) -> Self {
        CONSENSUS_NEWTON
    }
}
