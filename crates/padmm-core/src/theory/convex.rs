//! The paper's Theorem 5: general convex objectives.

use serde::Serialize;

use super::{TheoryInput, geometric_sum};
use crate::graph::{Graph, Spectrum};

/// Three bounds on `E[f(x̂) − f*]`, with their terms.
///
/// `f(x̂) = Σ_i f_i(x̂_i)` with `x̂_i` the average over rounds of agent `i`'s *un-noised* iterates. Those are
/// never released, and as agents may disagree the left side can be negative: the bound says nothing about
/// consensus.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConvexReport {
    /// `(η/K) ‖Qx⁰‖²`: what disagreement at the start costs.
    pub disagreement_term: f64,
    /// `(η/K) ‖x⁰ − x*‖²_{L₊/2}`: what distance from the optimum costs.
    pub distance_term: f64,
    /// The paper's noise term; none for a decay of 1, where it is infinite.
    pub paper_noise_term: Option<f64>,
    /// What the paper's proof leaves out: `(1/K) ½ηp Σ_k Σ_i d_i (σ²)_i^k`.
    pub dropped_term: f64,
    /// What noise costs through the next round's step, in place of the paper's noise term.
    pub rederived_cross_term: f64,
    /// The bound as printed in the paper.
    pub paper: Option<f64>,
    /// The bound as printed, and the term that its proof leaves out.
    pub corrected: Option<f64>,
    /// The bound that follows without the paper's step from `‖Qx‖²` to `‖x − x*‖²`; finite for every decay.
    pub rederived: f64,
}

impl ConvexReport {
    pub(super) fn of(input: &TheoryInput, spectrum: &Spectrum) -> Self {
        let scale = input.penalty / input.rounds as f64;
        let disagreement_term = scale * input.start.disagreement_squared;
        let distance_term = scale * input.start.signless_squared;
        let start = disagreement_term + distance_term;
        let paper_noise_term = paper_noise_term(input, spectrum);
        let dropped_term = dropped_term(input);
        let rederived_cross_term = rederived_cross_term(input);
        Self {
            disagreement_term,
            distance_term,
            paper_noise_term,
            dropped_term,
            rederived_cross_term,
            paper: paper_noise_term.map(|noise| start + noise),
            corrected: paper_noise_term.map(|noise| start + noise + dropped_term),
            rederived: start + rederived_cross_term + dropped_term,
        }
    }
}

/// The paper's Theorem 5, third term:
///
/// ```text
/// (1/K) · η p φ_max²(L₊) Σ_i (σ²)_i^1 / (2 φ_min(L₋) (1 − R))
/// ```
///
/// `K` rounds, `η` penalty, `p` n_features, `φ_max(L₊)` signless_max, `(σ²)_i^1` first_noise_vars, `φ_min(L₋)`
/// signed_min, `R` decay. None for `R = 1`, where the paper's geometric series has no sum.
fn paper_noise_term(input: &TheoryInput, spectrum: &Spectrum) -> Option<f64> {
    let total: f64 = input.first_noise_vars.iter().sum();
    let factor = spectrum.signless_max.powi(2) / (2.0 * spectrum.signed_min);
    let term = input.penalty * input.n_features as f64 * factor * total
        / ((1.0 - input.decay) * input.rounds as f64);
    (input.decay < 1.0).then_some(term)
}

/// What the proof of the paper's Theorem 5 leaves out:
///
/// ```text
/// (1/K) · ½ η p Σ_{k=1}^{K} Σ_i d_i (σ²)_i^k,      (σ²)_i^k = R^{k−1} (σ²)_i^1
/// ```
///
/// `K` rounds, `η` penalty, `p` n_features, `d_i` degree, `(σ²)_i^1` first_noise_vars, `R` decay.
///
/// Departs from the paper: it sets `E⟨ξ^{k+1}, 2Qr^{k+1}⟩` to zero, but `r^{k+1}` contains `Qξ^{k+1}`, so the
/// expectation is `2E‖Qξ^{k+1}‖² = p Σ_i d_i (σ²)_i^{k+1}`. Half of it is paid for by `−‖Qξ^{k+1}‖²`, which the
/// paper throws away one line earlier.
fn dropped_term(input: &TheoryInput) -> f64 {
    let weighted: f64 =
        input.first_noise_vars.iter().enumerate().map(|(i, var)| input.graph.degree(i) as f64 * var).sum();
    let rounds = geometric_sum(input.decay, input.rounds);
    0.5 * input.penalty * input.n_features as f64 * weighted * rounds / input.rounds as f64
}

/// The cross term of the paper's Lemma 6 (general convex case), bounded without its faulty step:
///
/// ```text
/// (η/K) Σ_{k=1}^{K−1} E⟨L₊(x^{k+1} − x*), ξ^k⟩
///     ≤ (η/K) p √( Σ_j s_j (d_j² + d_j) · Σ_j s_j Σ_{i∈V_j} 1/d_i² ) Σ_{k=1}^{K−1} R^{k−1},    s_j = (σ²)_j^1
/// ```
///
/// `K` rounds, `η` penalty, `p` n_features, `d_j` degree, `V_j` neighbours, `s_j` first_noise_vars, `R` decay.
///
/// Departs from the paper: it bounds the cross term with `‖Qx‖² ≥ ½φ_min(L₋)‖x − x*‖²`, which fails whenever
/// the agents' mean is not the optimum, because `Q` does not see the mean. In its place: let `y` be the
/// `x^{k+1}` that would have come of `ξ^k = 0`. It does not depend on `ξ^k`, so `E⟨L₊(y − x*), ξ^k⟩ = 0`. The
/// primal step maps `ηL₊x̃^k − α^k` to `x^{k+1}` and contracts agent `i`'s part by `2ηd_i`; `ξ^k` enters it as
/// `η(L₊ − L₋)ξ^k = 2ηAξ^k`; so `‖x^{k+1} − y‖ ≤ ‖D⁻¹Aξ^k‖`, and Cauchy–Schwarz gives the line above. `x̃⁰`
/// carries no noise, hence the sum from 1.
fn rederived_cross_term(input: &TheoryInput) -> f64 {
    let (columns, pulls) = cross_factors(&input.graph, &input.first_noise_vars);
    let rounds = geometric_sum(input.decay, input.rounds - 1);
    input.penalty * input.n_features as f64 * (columns * pulls).sqrt() * rounds / input.rounds as f64
}

/// `Σ_j s_j (d_j² + d_j)` (squared columns of `L₊`) and `Σ_j s_j Σ_{i∈V_j} 1/d_i²` (squared columns of `D⁻¹A`).
fn cross_factors(graph: &Graph, first_noise_vars: &[f64]) -> (f64, f64) {
    let mut columns = 0.0;
    let mut pulls = 0.0;
    for (j, var) in first_noise_vars.iter().enumerate() {
        let degree = graph.degree(j) as f64;
        columns += var * (degree * degree + degree);
        pulls += var * graph.neighbours(j).iter().map(|&i| (graph.degree(i) as f64).powi(-2)).sum::<f64>();
    }
    (columns, pulls)
}
