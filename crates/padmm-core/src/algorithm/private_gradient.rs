//! Private gradients: all sites take a gradient at the same public point, and step along it.
//!
//! ```text
//! u_i = Σ clip(ℓ'(aᵀz), ± c/‖a‖) a / c  +  discrete Gaussian noise
//! x ← prox_{ηR}(z − η c Σ_i (ω_i/n_i) u_i),      z ← x + (k−1)/(k+2) (x − x_before)
//! ```
//!
//! It is consensus Newton without the metric: nothing has to be learned before the first step, and a row costs as many operations as it
//! has entries that are not zero. That is better where there are too many columns, or too few records, for a metric to be learned.
//!
//! The rounds are what regularises. After `K` accelerated steps a direction of curvature `h` has come as far as a gradient flow in the
//! time `T = K²η/8`, and the noise of all rounds, `σ = 2cA/μ` a coordinate, has moved it by `σ(1 − e^{−hT})/h`. Against a coefficient of
//! variance `v` that is best at `e^{hT} = 1 + h²v/σ²`. The rule takes `T` for a typical direction, `h = w S²/p` and `v = 3/S²`.

use std::sync::Arc;

use padmm_privacy::{
    Budget, ClippedSum, Computed, Drawn, NoiseSchedule, PrivacyError, PublicVector, SumRound, Terms, gdp_mu,
};

use super::newton::Rehearsal;
use super::shared_point::{self, LONGEST_MODEL, Voices, digest, sum_over_records};
use super::{
    Algorithm, AlgorithmInputs, AlgorithmKind, AlgorithmSpec, Audience, Description, GraphNeeded, Guarantee,
    Local, LocalProblem, Needs, PRIVATE_GRADIENT,
};
use crate::agent::AgentError;
use crate::calibration::{CalibrationInputs, NetworkFacts, SiteCalibration};
use crate::data::Row;
use crate::loss::Loss;
use crate::message::StateDigest;
use crate::plan::PlanDraft;
use crate::vector::{norm, norm_up, sum_of_squares};

/// Of the largest curvature of a loss, what records of balanced labels have on average.
const TYPICAL_CURVATURE: f64 = 0.75;
/// Variance of a coefficient that is expected, in units of the row's squared length.
const PRIOR: f64 = 3.0;
const FEWEST_ROUNDS: f64 = 8.0;
const MOST_ROUNDS: f64 = 100.0;

/// Accelerated gradient steps of all sites at one public point.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrivateGradient;

/// What a run is set to, from public facts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rule {
    /// `c`: no record's gradient is longer.
    clip: f64,
    /// `K`
    rounds: u32,
    /// `η`
    step: f64,
}

impl Rule {
    fn of(
        settings: &PlanDraft,
        p: usize,
        norm_bound: f64,
        n_records: &[usize],
    ) -> Result<Self, PrivacyError> {
        let mu = gdp_mu(Budget::new(settings.epsilon, settings.delta)?).value();
        let noise_factor = shared_point::noise_factor(settings.weights, n_records);
        let rounds = Some(settings.rounds).filter(|rounds| *rounds > 0);
        Ok(Self::pick(settings.loss, p, norm_bound, noise_factor / mu, rounds))
    }

    /// For noise of `A/μ`, in these rounds or in as many as are best.
    fn pick(loss: Loss, p: usize, norm_bound: f64, noise: f64, rounds: Option<u32>) -> Self {
        let (slope, curvature) = (loss.slope_bound(), loss.curvature_bound());
        let (slope, curvature) = (slope.unwrap_or(1.0), curvature.unwrap_or(1.0));
        let p = p as f64;
        let nu = p * noise;
        let clip = slope * norm_bound * (0.186 / libm::cbrt(nu)).clamp(0.25, 1.0);
        let noise = 2.0 * clip * noise;
        let typical = TYPICAL_CURVATURE * curvature * norm_bound * norm_bound / p;
        let signal = typical * typical * PRIOR / (norm_bound * norm_bound);
        let time = libm::log(1.0 + signal / (noise * noise)) / typical;
        let steepest = curvature * norm_bound * norm_bound;
        let by_rule = (8.0 * time * steepest).sqrt().ceil().clamp(FEWEST_ROUNDS, MOST_ROUNDS) as u32;
        let rounds = rounds.unwrap_or(by_rule);
        let step = (1.0 / steepest).min(8.0 * time / f64::from(rounds).powi(2));
        Self { clip, rounds, step }
    }
}

/// State of one agent: the same at all agents that heard the same releases, and all of it public.
struct PrivateGradientState {
    rule: Rule,
    voices: Voices,
    noise: Vec<f64>,
    /// `prox_{ηR}`, coordinate by coordinate: a threshold and a factor.
    shrinks: (Vec<f64>, Vec<f64>),
    /// `z`: where gradients are taken.
    point: Vec<f64>,
    digest: StateDigest,
    /// `x`
    model: PublicVector,
}

/// Σ of every record's `clip(ℓ'(aᵀz), ± c/‖a‖) · a/c`.
fn gradient(problem: &LocalProblem, clip: f64, point: &[f64]) -> ClippedSum {
    sum_over_records(
        problem,
        point,
        #[inline(always)]
        |sum, entries, row, slope| {
            entries.clear();
            entries.extend_from_slice(row.numeric);
            entries.resize(row.numeric.len() + row.hot.len(), 1.0);
            let length = row.scale * sum_of_squares(entries).sqrt();
            let cap = clip / length.max(f64::MIN_POSITIVE);
            sum.add_at(slope.clamp(-cap, cap) * row.scale / clip, row.hot, entries);
        },
    )
}

impl Algorithm for PrivateGradientState {
    fn state(&self) -> Option<StateDigest> {
        Some(self.digest)
    }

    fn compute(&mut self, _round: u32, _drawn: &Drawn, local: Local<'_>) -> Result<Computed, AgentError> {
        Ok(gradient(local.problem, self.rule.clip, &self.point).into())
    }

    fn finish_turn(&mut self, turn: u32, own: Option<&PublicVector>, others: &[Arc<PublicVector>]) {
        let own = own.expect("every agent releases in every round");
        let stray = self.noise[turn as usize - 1] * ((own.len() as f64).sqrt() + 6.0);
        let (sum, _) = self.voices.sum(own, others, |release, n| norm_up(release) <= n + stray);
        let Self { rule: Rule { clip, step, .. }, shrinks: (thresholds, factors), point, model, .. } = self;
        let next: Vec<f64> = (0..sum.len())
            .map(|j| {
                let moved = point[j] - *step * *clip * sum[j];
                factors[j] * (moved - moved.clamp(-thresholds[j], thresholds[j]))
            })
            .collect();
        if norm(&next) <= LONGEST_MODEL {
            let momentum = f64::from(turn - 1) / f64::from(turn + 2);
            let ahead = next.iter().zip(model.as_slice()).map(|(new, old)| new + momentum * (new - old));
            *point = ahead.collect();
            model.rewrite(|model| model.copy_from_slice(&next));
        }
        self.digest = digest(&self.digest, [self.point.as_slice()]);
    }

    fn model(&self) -> &PublicVector {
        &self.model
    }

    fn drop_edge(&mut self, slot: usize) {
        self.voices.drop(slot);
    }
}

/// A run on records that nobody has to protect, to see beforehand what real ones may come to: the model that sites would keep, for noise
/// made of these standard normal numbers.
pub(crate) fn rehearse(rehearsal: &Rehearsal<'_>, normal: &mut dyn FnMut() -> f64) -> Vec<f64> {
    let &Rehearsal { records, loss, regularizer, noise_factor, mu, rounds, .. } = rehearsal;
    let p = records.n_features();
    let rule = Rule::pick(loss, p, records.norm_bound(), noise_factor / mu, rounds);
    let n_records = 1.0 / noise_factor;
    let deviation = 2.0 * f64::from(rule.rounds).sqrt() / mu;
    let mut state = PrivateGradientState {
        rule,
        voices: Voices::equal(1, n_records),
        noise: vec![deviation; rule.rounds as usize],
        shrinks: regularizer.prox_by_coordinate(rule.step, p),
        point: vec![0.0; p],
        digest: StateDigest::default(),
        model: PublicVector::zeros(p),
    };
    let length = |row: Row<'_>| {
        row.scale * (sum_of_squares(row.numeric) + row.hot.len() as f64).sqrt().max(f64::MIN_POSITIVE)
    };
    let caps: Vec<f64> = records.rows().map(|row| rule.clip / length(row)).collect();
    for turn in 1..=rule.rounds {
        let mean = rehearsal.mean_gradient(&caps, &state.point);
        let mut release = PublicVector::zeros(p);
        release.rewrite(|release| {
            let noisy = mean.iter().map(|m| n_records * m / rule.clip + deviation * normal());
            release.iter_mut().zip(noisy).for_each(|(r, v)| *r = v);
        });
        state.finish_turn(turn, Some(&release), &[]);
    }
    state.model.as_slice().to_vec()
}

impl AlgorithmSpec for PrivateGradient {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "private-gradient",
            title: "private gradients",
            reference: "this project",
            summary: "accelerated gradient steps of all sites at one public point",
            needs: Needs::SmoothLossSeparableRegularizer,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::ExactGaussian,
            uses: &[],
            own: &[],
            between_sites: true,
            survives_loss: true,
        }
    }

    /// Noise on sums whose terms are at most 1 long, the same in every round.
    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        let NetworkFacts { n_records, norm_bound, .. } = *site.network;
        let rule = Rule::of(site.settings(), site.n_features, norm_bound, n_records)?;
        let share = 1.0 / f64::from(rule.rounds);
        let round = SumRound { n_coordinates: site.n_features, terms: Terms::Signed, share };
        let rounds = vec![round; rule.rounds as usize];
        let schedule = NoiseSchedule::for_sums(site.plan.budget(), site.n_records, &rounds)?;
        Ok(site.without_noise(1.0).with_noise(schedule))
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        let rule = Rule::of(inputs.settings, inputs.n_features, inputs.norm_bound, inputs.n_records)
            .expect("the plan's budget is one");
        Box::new(PrivateGradientState {
            rule,
            voices: Voices::of(inputs),
            noise: shared_point::noise_of(inputs),
            shrinks: inputs.regularizer.prox_by_coordinate(rule.step, inputs.n_features),
            point: vec![0.0; inputs.n_features],
            digest: StateDigest::default(),
            model: PublicVector::zeros(inputs.n_features),
        })
    }

    fn audience(&self) -> Audience {
        Audience::Everybody
    }

    fn rounds_by_rule(&self, plan: &PlanDraft, network: &NetworkFacts<'_>) -> Option<u32> {
        let p = network.space.n_features();
        Rule::of(plan, p, network.norm_bound, network.n_records).ok().map(|rule| rule.rounds)
    }

    fn has_rule_for_rounds(&self) -> bool {
        true
    }
}

impl From<PrivateGradient> for AlgorithmKind {
    fn from(_: PrivateGradient) -> Self {
        PRIVATE_GRADIENT
    }
}
