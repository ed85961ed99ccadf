//! The paper's Theorem 4: strongly convex objectives.

use serde::Serialize;

use super::TheoryInput;
use crate::graph::Spectrum;

/// The constants that Theorem 4 leaves open; those that are not given are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FreeParameters {
    /// The paper's `b` in (0, 1). If open: half the largest that the precondition allows.
    pub split: Option<f64>,
    /// The paper's `κ₂ > 1`. If open: 1000, or twice the smallest that meets the precondition where
    /// that is more.
    pub gradient_weight: Option<f64>,
    /// The paper's `κ₄ > 1`. If open: 2.
    pub noise_weight: Option<f64>,
    /// The paper's `θ > 0`. If open: half of `min(H₁, H₂)`.
    pub slack: Option<f64>,
}

/// What Theorem 4 says about a run, or why it says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StrongVerdict {
    /// The objective is not strongly convex, or not smooth: the theorem is about others.
    NotStronglyConvexAndSmooth,
    /// No choice of the free constants meets `(1 − b)(1 + ζ) φ_min²(L₊) > φ_max²(L₊)`.
    PreconditionFails,
    /// The precondition holds on paper, but the graph is bipartite and the proof divides by a zero of `L₊`.
    SignlessSingular,
    /// The precondition can be met, but not with the constants that were given.
    ConstantsFail,
    /// There is a rate, but the noise decays no faster than it.
    DecayTooSlow,
    /// There is a rate and the noise decays faster, but the penalty is not the one that the theorem fixes.
    OtherPenalty,
    /// All conditions hold: the rate is a promise.
    Applies,
}

/// Theorem 4, evaluated; what was not reached is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StrongReport {
    /// Which condition fails first, or that none does.
    pub verdict: StrongVerdict,
    /// What `1 + ζ` must exceed even for `b → 0`: `φ_max²(L₊) / φ_min²(L₊)`.
    pub needed: f64,
    /// The limit of `1 + ζ` for `κ₂ → ∞`, which it never reaches.
    pub available: f64,
    /// `needed / available`: at 1 or above the precondition cannot hold, and this is by how much it fails. Below 1
    /// it is the best rate `W` there is, for `b, θ → 0`.
    pub shortfall: f64,
    /// The smallest `κ₂` that meets the precondition for some `b`.
    pub smallest_gradient_weight: Option<f64>,
    /// The rate with its constants; `None` unless they meet the precondition.
    pub rate: Option<Rate>,
}

/// The rate of Theorem 4 for one choice of constants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// `κ₂`, given or chosen: see [`FreeParameters`].
    pub gradient_weight: f64,
    /// `κ₄`, given or chosen: see [`FreeParameters`].
    pub noise_weight: f64,
    /// `ζ` at this `κ₂`.
    pub gain: f64,
    /// `b`, given or chosen: see [`FreeParameters`].
    pub split: f64,
    /// `min(H₁, H₂)`, which `θ` must stay below.
    pub slack_limit: f64,
    /// `θ`, given or chosen: see [`FreeParameters`].
    pub slack: f64,
    /// `W`: errors shrink at least by this factor in each round.
    pub contraction: f64,
    /// The penalty `η` that the theorem's lemma fixes for these constants.
    pub required_penalty: f64,
    /// `S₂`, the weight of `‖r⁰ − r*‖²`.
    pub dual_weight: f64,
    /// `S₃`, the weight of the noise.
    pub noise_factor: f64,
    /// `p S₃ Σ_i(σ²)_i^1 W/(W − R)`, none unless `R < W`.
    pub noise_constant: Option<f64>,
    /// `W^K`, the factor that everything is multiplied by after `K` rounds.
    pub after_all_rounds: f64,
}

/// How near the penalty must be to the one that the theorem fixes to count as it.
const PENALTY_TOLERANCE: f64 = 1e-6;

impl StrongReport {
    /// Preconditions first, then the rate.
    pub(super) fn of(input: &TheoryInput, spectrum: &Spectrum) -> Self {
        let needed = spectrum.signless_condition_squared();
        let convex_and_smooth = input.strong_convexity > 0.0 && input.smoothness.is_finite();
        let limit = if convex_and_smooth { gain_limit(input, spectrum) } else { 0.0 };
        let available = 1.0 + limit;
        let mut report = Self {
            verdict: StrongVerdict::NotStronglyConvexAndSmooth,
            needed,
            available,
            shortfall: needed / available,
            smallest_gradient_weight: None,
            rate: None,
        };
        if !convex_and_smooth {
            return report;
        }
        // The limit is not attained, so equality fails too.
        if available <= needed {
            report.verdict = StrongVerdict::PreconditionFails;
            return report;
        }
        report.smallest_gradient_weight = Some(weight_for_gain(input, spectrum, needed - 1.0));
        report.rate = rate(input, spectrum);
        report.verdict = match &report.rate {
            _ if spectrum.bipartite => StrongVerdict::SignlessSingular,
            None => StrongVerdict::ConstantsFail,
            Some(rate) if input.decay >= rate.contraction => StrongVerdict::DecayTooSlow,
            Some(rate) if (input.penalty / rate.required_penalty - 1.0).abs() > PENALTY_TOLERANCE => {
                StrongVerdict::OtherPenalty
            }
            Some(_) => StrongVerdict::Applies,
        };
        report
    }
}

/// The paper's Lemma 5, the gain `ζ`:
///
/// ```text
/// ζ = 2(κ₂ − 1) μ φ_min²(Q) φ_min²(L₊) / (κ₂ v² φ_min²(L₊) + 2μ φ_max²(L₊))
/// ```
///
/// `κ₂` gradient_weight, `μ` strong_convexity, `v` smoothness, `φ_min(Q)` root_min, `φ_min(L₊)` signless_min,
/// `φ_max(L₊)` signless_max.
///
/// As printed, `ζ` compares `v²` with `μ`, so it depends on the unit in which the objective is measured: scaling
/// `f` and the penalty by the same factor leaves every iterate as it is and changes `ζ`. No rate should be
/// believed where it rests on small numbers in `f`.
fn gain(input: &TheoryInput, spectrum: &Spectrum, gradient_weight: f64) -> f64 {
    let (convexity, low, high) = (input.strong_convexity, spectrum.signless_min, spectrum.signless_max);
    2.0 * (gradient_weight - 1.0) * convexity * spectrum.root_min.powi(2) * low.powi(2)
        / (gradient_weight * input.smoothness.powi(2) * low.powi(2) + 2.0 * convexity * high.powi(2))
}

/// The limit of the paper's Lemma 5's `ζ` for `κ₂ → ∞`, which is its supremum because `ζ` grows with `κ₂`:
///
/// ```text
/// sup ζ = 2μ φ_min²(Q) / v²
/// ```
///
/// `μ` strong_convexity, `v` smoothness, `φ_min(Q)` root_min.
fn gain_limit(input: &TheoryInput, spectrum: &Spectrum) -> f64 {
    2.0 * input.strong_convexity * spectrum.root_min.powi(2) / input.smoothness.powi(2)
}

/// The `κ₂` at which [`gain`] has the given value, below its limit.
///
/// From `ζ (κ₂ a + c) = (κ₂ − 1) e` with `a = v² φ_min²(L₊)`, `c = 2μ φ_max²(L₊)`, `e = 2μ φ_min²(Q) φ_min²(L₊)`:
/// `κ₂ = (e + ζc) / (e − ζa)`.
fn weight_for_gain(input: &TheoryInput, spectrum: &Spectrum, gain: f64) -> f64 {
    let low = spectrum.signless_min.powi(2);
    let smooth = input.smoothness.powi(2) * low;
    let condition = 2.0 * input.strong_convexity * spectrum.signless_max.powi(2);
    let scale = 2.0 * input.strong_convexity * spectrum.root_min.powi(2) * low;
    (scale + gain * condition) / (scale - gain * smooth)
}

/// The paper's Theorem 4, the rate `W` and the constants around it:
///
/// ```text
/// W  = (1+4θ) φ_max²(L₊) / ((1−b)(1+ζ−4θ) φ_min²(L₊))
/// H₁ = b(1+ζ) φ_min²(L₊) (1−1/κ₄) / (4b φ_min²(L₊) (1−1/κ₄) + 16 φ_max²(M))
/// H₂ = ((1−b)(1+ζ) φ_min²(L₊) − φ_max²(L₊)) / (4φ_max²(L₊) + 4(1−b) φ_min²(L₊))
/// η  = v √( κ₁κ₂ / ((κ₂−1)(1+√θ)) ) / (φ_min(Q) φ_min(L₊)),      κ₁ = 1 + 2μφ_max²(L₊) / (v²φ_min²(L₊))
/// S₂ = 4 / ((1+4θ) φ_max²(L₊))
/// S₃ = (4ζκ₂ φ_max²(M)/φ_min²(Q) + φ_max²(L₊) (√ζ + √(2(κ₂−1)φ_min²(Q)/(θκ₁κ₂)))²)
///        / ((1−b)(1+ζ)(1+ζ−4θ) φ_min²(L₊))  +  b(κ₄−1)/(1−b)
/// ```
///
/// `θ` slack, `b` split, `ζ` gain, `κ₂` gradient_weight, `κ₄` noise_weight, `φ(L₊)` signless, `φ(M)` degree,
/// `φ(Q)` root, `v` smoothness, `μ` strong_convexity, `W` contraction. The paper's `κ₃ = 1 + √((v²φ_min²(L₊) +
/// 2μφ_max²(L₊)) / (θκ₁v²φ_min²(L₊)))` is `1 + 1/√θ`, and its `(κ₃ − 1)/κ₃` in `η` is `1/(1 + √θ)`.
///
/// Departs from the paper: a bare `φ_max²` in `S₃` is read as `φ_max²(L₊)`. None if the constants that were
/// given are not feasible.
fn rate(input: &TheoryInput, spectrum: &Spectrum) -> Option<Rate> {
    let low = spectrum.signless_min.powi(2);
    let high = spectrum.signless_max.powi(2);
    let root = spectrum.root_min.powi(2);
    let degree = spectrum.degree_max.powi(2);
    let needed = spectrum.signless_condition_squared();

    let least = weight_for_gain(input, spectrum, needed - 1.0);
    let gradient_weight = input.free.gradient_weight.unwrap_or(1000.0f64.max(2.0 * least));
    let gain = gain(input, spectrum, gradient_weight);
    let split_limit = 1.0 - needed / (1.0 + gain);
    let split = input.free.split.unwrap_or(split_limit / 2.0);
    if !(split > 0.0 && split < split_limit) {
        return None;
    }
    let noise_weight = input.free.noise_weight.unwrap_or(2.0);
    let kept = split * low * (1.0 - 1.0 / noise_weight);
    let first = kept * (1.0 + gain) / (4.0 * kept + 16.0 * degree);
    let rest = (1.0 - split) * low;
    let second = (rest * (1.0 + gain) - high) / (4.0 * high + 4.0 * rest);
    let slack_limit = first.min(second);
    let slack = input.free.slack.unwrap_or(slack_limit / 2.0);
    if !(slack > 0.0 && slack < slack_limit) {
        return None;
    }
    let contraction = (1.0 + 4.0 * slack) * high / (rest * (1.0 + gain - 4.0 * slack));

    let smooth = input.smoothness.powi(2);
    let first_weight = 1.0 + 2.0 * input.strong_convexity * high / (smooth * low);
    let ratio = gradient_weight / (gradient_weight - 1.0);
    let required_penalty = (first_weight * ratio * smooth / ((1.0 + slack.sqrt()) * root * low)).sqrt();
    let inner = gain.sqrt() + (2.0 * root / (ratio * slack * first_weight)).sqrt();
    let noise_factor = (4.0 * gain * gradient_weight * degree / root + high * inner * inner)
        / (rest * (1.0 + gain) * (1.0 + gain - 4.0 * slack))
        + split * (noise_weight - 1.0) / (1.0 - split);
    let total: f64 = input.first_noise_vars.iter().sum();
    let noise_constant = (input.decay < contraction)
        .then(|| input.n_features as f64 * noise_factor * total * contraction / (contraction - input.decay));
    Some(Rate {
        gradient_weight,
        noise_weight,
        gain,
        split,
        slack_limit,
        slack,
        contraction,
        required_penalty,
        dual_weight: 4.0 / ((1.0 + 4.0 * slack) * high),
        noise_factor,
        noise_constant,
        after_all_rounds: contraction.powf(input.rounds as f64),
    })
}
