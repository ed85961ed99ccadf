//! What the paper's convergence theorems say about a run, and whether they say anything.
//!
//! [`Theory::of`] evaluates the paper's Theorem 4 (strongly convex, [`strong`]) and the paper's Theorem 5 (general convex,
//! [`convex`]) for one graph, penalty and noise schedule. Preconditions come before rates: where a theorem's
//! conditions cannot be met, the report says by how much they fail and no rate is computed. Nothing here is a
//! guarantee, and nothing here bears on privacy.
//!
//! `μ` and `v` are the paper's: `f(y) ≥ f(x) + ⟨∇f(x), y−x⟩ + μ‖y−x‖²`, so `μ` is *half* the usual constant.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

pub mod convex;
mod render;
pub mod strong;

use serde::Serialize;

use crate::graph::{Graph, Spectrum};

pub use convex::ConvexReport;
pub use strong::{FreeParameters, StrongReport, StrongVerdict};

/// What the theorems ask about a run. All of it is public.
#[derive(Clone, Debug)]
pub struct TheoryInput {
    /// The network, of at least two agents.
    pub graph: Graph,
    /// The paper's `μ`: half the usual modulus of the least strongly convex `f_i`; zero if there is none.
    pub strong_convexity: f64,
    /// The paper's `v`: the Lipschitz constant of the gradient of the least smooth `f_i`; infinite if not smooth.
    pub smoothness: f64,
    /// `η`, which Theorem 4 fixes and a run may choose.
    pub penalty: f64,
    /// The variance decay `R`, in (0, 1].
    pub decay: f64,
    /// `K`, over which the bounds are evaluated.
    pub rounds: usize,
    /// The length `p` of the model.
    pub n_features: usize,
    /// The variance `(σ²)_i^1` of each coordinate's noise in the first round, one for each agent.
    pub first_noise_vars: Vec<f64>,
    /// How far the start is from the optimum.
    pub start: StartDistance,
    /// The constants that Theorem 4 leaves open.
    pub free: FreeParameters,
}

/// The distances between the starting point `x⁰` and the consensus optimum `x* = (w*, …, w*)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StartDistance {
    /// `‖Qx⁰‖²`: how much the agents' starting points disagree.
    pub disagreement_squared: f64,
    /// `‖x⁰ − x*‖²` in the norm of `L₊/2`.
    pub signless_squared: f64,
    /// `‖x⁰ − x*‖²` in the ordinary norm.
    pub plain_squared: f64,
}

impl StartDistance {
    /// The distances of a start at zero from a consensus optimum of norm `model_norm`.
    ///
    /// ```text
    /// Qx⁰ = 0,   ‖x⁰ − x*‖²_{L₊/2} = ½ ‖w*‖² 1ᵀL₊1 = ‖w*‖² Σ_i d_i,   ‖x⁰ − x*‖² = N ‖w*‖²
    /// ```
    ///
    /// `w*` has norm `model_norm`; every row of `L₊ = D + A` sums to `2d_i`.
    pub fn from_zero(graph: &Graph, model_norm: f64) -> Self {
        let degrees = 2.0 * graph.n_edges() as f64;
        Self {
            disagreement_squared: 0.0,
            signless_squared: model_norm * model_norm * degrees,
            plain_squared: model_norm * model_norm * graph.n_agents() as f64,
        }
    }
}

/// Why the theorems cannot be evaluated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum TheoryError {
    /// One agent has no neighbours, so the theorems are about nothing.
    #[error("the theorems are about agents that talk to each other; a single agent has no neighbours")]
    SingleAgent,
    /// A number lies outside the range that the theorems are about.
    #[error("{what} is {value}, but it must be {must}")]
    OutOfRange { what: &'static str, value: f64, must: &'static str },
    /// Not one variance for each agent.
    #[error("{n_vars} noise variances were given for {n_agents} agents; give one to each")]
    NoiseCount { n_agents: usize, n_vars: usize },
}

/// The theorems, evaluated. `Display` gives a short plain-text verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Theory {
    /// Eigenvalues of the graph's Laplacians, which both theorems use.
    pub spectrum: Spectrum,
    /// Theorem 4, strongly convex objectives.
    pub strongly_convex: StrongReport,
    /// Theorem 5, convex objectives.
    pub convex: ConvexReport,
}

impl Theory {
    /// Evaluates both theorems.
    ///
    /// # Errors
    /// A single agent, or a number outside its range.
    pub fn of(input: &TheoryInput) -> Result<Self, TheoryError> {
        input.check()?;
        let spectrum = Spectrum::of(&input.graph);
        Ok(Self {
            strongly_convex: StrongReport::of(input, &spectrum),
            convex: ConvexReport::of(input, &spectrum),
            spectrum,
        })
    }
}

impl TheoryInput {
    fn check(&self) -> Result<(), TheoryError> {
        let n_agents = self.graph.n_agents();
        if n_agents < 2 {
            return Err(TheoryError::SingleAgent);
        }
        if self.first_noise_vars.len() != n_agents {
            return Err(TheoryError::NoiseCount { n_agents, n_vars: self.first_noise_vars.len() });
        }
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let no_less_than_zero = |x: f64| x >= 0.0 && x.is_finite();
        let range = |ok: bool, what, value, must| {
            if ok { Ok(()) } else { Err(TheoryError::OutOfRange { what, value, must }) }
        };
        let (convexity, smoothness) = (self.strong_convexity, self.smoothness);
        range(no_less_than_zero(convexity), "the strong convexity", convexity, "zero or more, and finite")?;
        range(smoothness > 0.0, "the smoothness", smoothness, "above zero")?;
        // μ‖y−x‖² ≤ f(y) − f(x) − ⟨∇f(x), y−x⟩ ≤ ½v‖y−x‖².
        let consistent = 2.0 * convexity <= smoothness * (1.0 + 1e-12);
        range(consistent, "the strong convexity", convexity, "at most half the smoothness")?;
        range(positive(self.penalty), "the penalty", self.penalty, "above zero and finite")?;
        range(self.decay > 0.0 && self.decay <= 1.0, "the decay", self.decay, "above 0 and at most 1")?;
        range(self.rounds > 0, "the number of rounds", self.rounds as f64, "one or more")?;
        range(self.n_features > 0, "the number of features", self.n_features as f64, "one or more")?;
        for &var in &self.first_noise_vars {
            range(no_less_than_zero(var), "a noise variance", var, "zero or more, and finite")?;
        }
        for (what, value) in [
            ("the starting disagreement", self.start.disagreement_squared),
            ("the starting distance in the signless norm", self.start.signless_squared),
            ("the starting distance", self.start.plain_squared),
        ] {
            range(no_less_than_zero(value), what, value, "zero or more, and finite")?;
        }
        let above_one = "above 1 and finite";
        for (what, value, ok, must) in [
            ("the split b", self.free.split, (|x| x > 0.0 && x < 1.0) as fn(f64) -> bool, "between 0 and 1"),
            ("the gradient weight", self.free.gradient_weight, |x| x > 1.0 && x.is_finite(), above_one),
            ("the noise weight", self.free.noise_weight, |x| x > 1.0 && x.is_finite(), above_one),
            ("the slack", self.free.slack, |x| x > 0.0 && x.is_finite(), "above zero and finite"),
        ] {
            if let Some(value) = value {
                range(ok(value), what, value, must)?;
            }
        }
        Ok(())
    }
}

/// `1 + R + … + R^{n − 1}`, exact for `R = 1` and without cancellation near it.
fn geometric_sum(decay: f64, n: usize) -> f64 {
    if decay == 1.0 {
        return n as f64;
    }
    let log = decay.ln();
    (n as f64 * log).exp_m1() / log.exp_m1()
}
