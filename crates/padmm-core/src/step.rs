//! One pure function for each equation of the algorithm — EQUATIONS §2.
//!
//! Symbols: `x̃_i` is `own`, `x̃_j` is `other`, `η` is `penalty`, `d_i` is `degree`, `λ_ij` is an edge's dual,
//! `α_i = Σ_j λ_ij` is `dual`.

use padmm_privacy::PublicVector;

/// Linear term of (primal): `α_i − η Σ_j (x̃_i + x̃_j)`.
///
/// Expanding `η Σ_j ‖x − ½(x̃_i + x̃_j)‖²` gives `½·(2ηd_i)‖x‖² − η⟨Σ_j(x̃_i + x̃_j), x⟩` and a constant.
///
/// Departs from the paper: Algorithm 1 read literally uses the agent's own un-noised `x_i^k` here; then the next
/// release depends on more than what was released, and composition over rounds fails.
pub fn primal_linear<'a>(
    dual: &PublicVector,
    penalty: f64,
    own: &PublicVector,
    others: impl Iterator<Item = &'a PublicVector>,
    out: &mut Vec<f64>,
) {
    out.clear();
    out.extend_from_slice(dual.as_slice());
    for other in others {
        for ((o, a), b) in out.iter_mut().zip(own.as_slice()).zip(other.as_slice()) {
            *o -= penalty * (a + b);
        }
    }
}

/// Quadratic term of (primal): `2ηd_i`, its Hessian's multiple of the identity.
pub fn primal_quadratic(penalty: f64, degree: usize) -> f64 {
    2.0 * penalty * degree as f64
}

/// (dual) of one edge: `λ_ij ← λ_ij + η(x̃_i − x̃_j)`.
///
/// The difference is formed first, so that `λ_ij = −λ_ji` holds to the bit on both sides of the edge.
pub fn dual_edge(edge_dual: &mut PublicVector, penalty: f64, own: &PublicVector, other: &PublicVector) {
    edge_dual.add_scaled_difference(penalty, own, other);
}

/// Weight of round `k` in the smoothed model: `k²` — EQUATIONS §2 "what a site keeps" (a).
///
/// Later rounds are closer to the optimum, earlier ones only add their noise.
pub fn smoothing_weight(round: u32) -> f64 {
    f64::from(round) * f64::from(round)
}

/// The mean of the sites' own averages — EQUATIONS §2 "what a site keeps" (b): `x̄ = Σ_{j∈S} x̄_j / n(S)`.
///
/// The sum is formed in the order of `averages`, which is that of the sites, so that all of them find the same bits.
pub fn mean(averages: &[&PublicVector]) -> PublicVector {
    let mut mean = PublicVector::zeros(averages.first().map_or(0, |first| first.len()));
    // Each by itself: the sum of what strangers send may be more than a number holds, the mean is not.
    averages.iter().for_each(|average| mean.add_scaled(1.0 / averages.len() as f64, average));
    mean
}

/// Primal penalty of round `k` in M-ADMM and MR-ADMM: `η^k = η·q^{k−1}`.
pub fn grown_penalty(penalty: f64, growth: f64, round: u32) -> f64 {
    penalty * growth.powi(round as i32 - 1)
}

/// The even step of R-ADMM in its broadcast-only form:
///
/// ```text
/// x_i^{2k} = x_i^{2k−1} − η/(2ηd_i + γ) · Σ_j [ x_i^{2k−2} + x_j^{2k−2} − 2 x_j^{2k−1} ]
/// ```
///
/// It sees public values only: no records, no dual, no gradient. That is why it is free of charge.
pub fn recycled_step(
    penalty: f64,
    damping: f64,
    own: (&PublicVector, &PublicVector),
    others: &[(&PublicVector, &PublicVector)],
) -> PublicVector {
    let (before, now) = own;
    let factor = penalty / (primal_quadratic(penalty, others.len()) + damping);
    let mut next = now.clone();
    for (other_before, other_now) in others {
        next.add_scaled(-factor, before);
        next.add_scaled(-factor, other_before);
        next.add_scaled(2.0 * factor, other_now);
    }
    next
}
