//! Records whose bit is as visible as the claim allows, and the plan that they are used in.
//!
//! Record `j` is the unit row `e_j`, and its secret is its label, −1 or +1; all other rows are zero. With the hinge, no regulariser
//! and no intercept, (primal) falls apart into coordinates, and on the hinge's slope the two labels lead to points that are exactly
//! `2B/(n·m)` apart, which is all of Δ but the tolerance's share. An algorithm that takes a gradient step gets the huberised hinge, whose
//! slope at a public point on its straight part is exactly ±1. Rows are orthogonal and the noise is independent by coordinate,
//! so one run holds as many independent tests as it has columns.
//!
//! A penalty is chosen so large that releases stay far inside the straight part of the loss: then the attack is tight.
//!
//! Algorithms that release sums of clipped gradients get a regulariser so strong that the public point, at which gradients are taken,
//! stays at zero. There every record's gradient is longer than the bound that it is cut to, so its term is exactly 1 long, and the other
//! label turns it round: the sum moves by 2. Consensus Newton first releases the sums of `y a` and `(1−y) a`, between which the label
//! moves a term of length 1: by √2. It needs a categorical column; record `j` has category `j`, and the metric that is learned is
//! diagonal, so tests stay independent.

use padmm_core::algorithm::{
    AlgorithmKind, CONSENSUS_NEWTON, DP_ADMM, Guarantee, LINEARIZED, P_ADMM, PRIVATE_GRADIENT, TOKEN,
};
use padmm_core::data::FeatureSpace;
use padmm_core::graph::{Graph, default_names};
use padmm_core::loss::Loss;
use padmm_core::plan::PlanDraft;
use padmm_core::regularizer::Regularizer;
use padmm_privacy::{Event, Schedule};

use crate::error::{AuditError, require};
use crate::target::{Scene, Target};
use padmm_core::calibration::Calibration;

/// Half the length of the rounded part of the huberised hinge: its slope is exactly ±1 below 1 − this.
pub(crate) const WIDTH: f64 = 0.5;
/// The noise of the first round is at most this; the straight part of the losses reaches to one half, 250 times further.
const LARGEST_NOISE: f64 = 0.002;
/// Rows are handed in longer than the norm bound, so that cutting them is part of what is attacked.
const RAW_LENGTH: f64 = 2.0;
/// By which the variance of the noise is multiplied from round to round, where the algorithm has such a setting: far enough
/// from 1 that noise which decays by another rule stands out.
const DECAY: f64 = 0.9;
/// Of the regulariser that keeps a public point at zero: noise moves the point by about as many millionths as it is large.
const HOLDING: f64 = 1e6;
/// Consensus Newton clips at a larger part of a gradient's typical length the less noise there is. Up to this ε the bound is below one
/// half, the slope of the logistic loss at zero, for every record.
const LARGEST_EPSILON: f64 = 10.0;

/// What is asked of a canary.
#[derive(Clone, Copy, Debug)]
pub struct CanaryRequest {
    /// The algorithm whose claim is attacked.
    pub algorithm: AlgorithmKind,
    /// The ε that the plan promises and the attack tries to refute.
    pub epsilon: f64,
    /// The δ that the ε holds at.
    pub delta: f64,
    /// Private rounds of one run.
    pub rounds: u32,
    /// Secret bits of one run, each in a record and a column of its own.
    pub n_tests: usize,
}

/// The plan and the network of an attack, with records that each hide one bit.
#[derive(Clone, Debug)]
pub struct Canary {
    scene: Scene,
    n_tests: usize,
}

/// Which computation a canary foresees, and so which it can attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attacked {
    /// P-ADMM minimises the hinge loss of its records in every round.
    Solve,
    /// A linearised step between neighbours, on the huberised hinge.
    GradientStep,
    /// The linearised step towards a server.
    Server,
    /// The proximal step of the site that holds the token.
    Token,
    /// Clipped gradients of the huberised hinge at a public point.
    Gradients,
    /// Moments of the records, then clipped gradients of the logistic loss.
    MomentsAndGradients,
}

impl Attacked {
    /// None for an algorithm without a canary.
    pub(crate) fn by(kind: AlgorithmKind) -> Option<Self> {
        let all = [
            (P_ADMM, Self::Solve),
            (LINEARIZED, Self::GradientStep),
            (DP_ADMM, Self::Server),
            (TOKEN, Self::Token),
            (PRIVATE_GRADIENT, Self::Gradients),
            (CONSENSUS_NEWTON, Self::MomentsAndGradients),
        ];
        all.into_iter().find(|(known, _)| *known == kind).map(|(_, attacked)| attacked)
    }

    fn loss(self) -> Loss {
        match self {
            Self::Solve | Self::Token => Loss::Hinge,
            Self::GradientStep | Self::Server | Self::Gradients => Loss::HuberizedHinge { width: WIDTH },
            Self::MomentsAndGradients => Loss::Logistic,
        }
    }

    fn regularizer(self) -> Regularizer {
        if self.releases_sums() { Regularizer::L2 { strength: HOLDING } } else { Regularizer::None }
    }

    /// Whether releases are sums over records of clipped terms, and no points.
    pub(crate) fn releases_sums(self) -> bool {
        matches!(self, Self::Gradients | Self::MomentsAndGradients)
    }
}

impl Canary {
    /// The algorithms whose claim can be attacked: those that promise something about the bytes that leave.
    pub fn algorithms() -> Vec<AlgorithmKind> {
        let exact = |kind: &AlgorithmKind| kind.describe().guarantee == Guarantee::ExactGaussian;
        padmm_core::algorithm::ALL.into_iter().filter(exact).collect()
    }

    /// Raises the penalty until the noise stays within the straight part of the loss, where the
    /// attack is exact.
    pub fn new(request: &CanaryRequest) -> Result<Self, AuditError> {
        let CanaryRequest { algorithm, epsilon, delta, rounds, n_tests } = *request;
        require("tests", n_tests as f64, n_tests >= 1, "at least 1")?;
        let Some(attacked) = Attacked::by(algorithm) else {
            let known = Self::algorithms().iter().map(|k| k.name()).collect::<Vec<_>>().join(", ");
            return Err(AuditError::NoCanary { algorithm: algorithm.name(), known });
        };
        if attacked == Attacked::MomentsAndGradients {
            require("rounds", f64::from(rounds), rounds >= 2, "at least 2: moments, then gradients")?;
            let is_tight = epsilon <= LARGEST_EPSILON;
            require("epsilon", epsilon, is_tight, "at most 10, up to which this attack is tight")?;
        } else {
            // No rule may choose another number than the one that is reported.
            require("rounds", f64::from(rounds), rounds >= 1, "at least 1")?;
        }
        let draft = PlanDraft {
            algorithm,
            rounds,
            epsilon,
            delta,
            decay: DECAY,
            loss: attacked.loss(),
            regularizer: attacked.regularizer(),
            ..PlanDraft::default()
        };
        // A column of categories has no zero row.
        let (space, n_records) = match attacked {
            Attacked::MomentsAndGradients => (one_category_each(n_tests), n_tests),
            _ => (FeatureSpace::numeric(n_tests), 2 * n_tests),
        };
        let graph =
            Graph::from_edges(2, [(0, 1)], &default_names(2)).expect("two sites and an edge are a graph");
        // The server of a star is site 0, and a leaf is what it attacks.
        let site = usize::from(algorithm == DP_ADMM);
        let mut penalty = 1.0;
        loop {
            let plan = PlanDraft { penalty: Some(penalty), ..draft.clone() }.check()?;
            let scene = Scene {
                plan,
                graph: graph.clone(),
                space: space.clone(),
                n_records: vec![n_records; 2],
                norm_bound: 1.0,
                site,
            };
            let calibration = crate::target::Shipped.calibration(&scene)?;
            let noise_std = schedule(&scene, &calibration)?.noise_std(1);
            if attacked.releases_sums() || noise_std.is_some_and(|std| std <= LARGEST_NOISE) {
                return Ok(Self { scene, n_tests });
            }
            penalty *= 2.0;
        }
    }

    /// The same secrets in another run: record `j` of `scene` is the unit row of column `j`, whatever its file looks like.
    #[must_use]
    pub fn in_scene(&self, scene: Scene) -> Self {
        Self { scene, n_tests: self.n_tests }
    }

    /// The plan, the network and the attacked site.
    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    /// How many bits a run can hold: as many as there are columns.
    pub fn n_tests(&self) -> usize {
        self.n_tests
    }

    /// The records that hold these secrets. A column without one has no record, or the label of its record is known.
    pub fn rows(&self, secrets: &[f64]) -> Vec<(Vec<f64>, f64)> {
        let p = self.n_tests;
        let row = |r: usize| {
            let mut features = vec![0.0; p];
            let known = if r.is_multiple_of(2) { 1.0 } else { -1.0 };
            if r < secrets.len() || self.scene.space.n_numeric == 0 {
                features[r] = RAW_LENGTH;
            }
            (features, secrets.get(r).copied().unwrap_or(known))
        };
        (0..self.scene.n_records[self.scene.site]).map(row).collect()
    }
}

/// One categorical column of `n` categories, and nothing else.
fn one_category_each(n: usize) -> FeatureSpace {
    let names = (0..n).map(|j| format!("record=r{j}")).collect();
    FeatureSpace { names, groups: std::iter::once(0..n).collect(), intercept: None, n_numeric: 0 }
}

/// The noise that the attacked site claims: Gaussian, in every round.
pub(crate) fn schedule<'a>(
    scene: &Scene,
    calibration: &'a Calibration,
) -> Result<&'a dyn Schedule, AuditError> {
    let noise = calibration.agents[scene.site].noise.as_deref();
    let is_gaussian = |schedule: &&dyn Schedule| {
        let is = |round| matches!(schedule.event(round), Some(Event::Gaussian { .. }));
        (1..=schedule.rounds()).all(is)
    };
    noise.filter(is_gaussian).ok_or_else(|| AuditError::Protocol("does not claim Gaussian noise".to_owned()))
}
