//! Records whose bit is as visible as the claim allows, and the plan that they are used in.
//!
//! Record `j` is the unit row `e_j`, and its secret is its label, −1 or +1; all other rows are zero. With the hinge, no regulariser
//! and no intercept, (primal) falls apart into coordinates, and on the hinge's slope the two labels lead to points that are exactly
//! `2B/(n·m)` apart, which is all of Δ but the tolerance's share. An algorithm that takes a gradient step gets the huberised hinge, whose
//! slope at a public point on its straight part is exactly ±1. Rows are orthogonal and the noise is independent by coordinate,
//! so one run holds as many independent tests as it has columns.
//!
//! A penalty is chosen so large that releases stay far inside the straight part of the loss: then the attack is tight.

use padmm_core::algorithm::{AlgorithmKind, DP_ADMM, Guarantee, LINEARIZED, P_ADMM, TOKEN};
use padmm_core::data::FeatureSpace;
use padmm_core::graph::{Graph, default_names};
use padmm_core::loss::Loss;
use padmm_core::plan::PlanDraft;
use padmm_core::regularizer::Regularizer;
use padmm_privacy::NoiseSchedule;

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
}

impl Attacked {
    /// None for an algorithm without a canary.
    pub(crate) fn by(kind: AlgorithmKind) -> Option<Self> {
        let all = [
            (P_ADMM, Self::Solve),
            (LINEARIZED, Self::GradientStep),
            (DP_ADMM, Self::Server),
            (TOKEN, Self::Token),
        ];
        all.into_iter().find(|(known, _)| *known == kind).map(|(_, attacked)| attacked)
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
        let loss = match Attacked::by(algorithm) {
            Some(Attacked::Solve | Attacked::Token) => Loss::Hinge,
            Some(Attacked::GradientStep | Attacked::Server) => Loss::HuberizedHinge { width: WIDTH },
            None => {
                let known = Self::algorithms().iter().map(|k| k.name()).collect::<Vec<_>>().join(", ");
                return Err(AuditError::NoCanary { algorithm: algorithm.name(), known });
            }
        };
        let draft = PlanDraft {
            algorithm,
            rounds,
            epsilon,
            delta,
            decay: DECAY,
            loss,
            regularizer: Regularizer::None,
            ..PlanDraft::default()
        };
        let n_records = 2 * n_tests;
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
                space: FeatureSpace::numeric(n_tests),
                n_records: vec![n_records; 2],
                norm_bound: 1.0,
                site,
            };
            let calibration = crate::target::Shipped.calibration(&scene)?;
            if schedule(&scene, &calibration)?.noise_std(1) <= LARGEST_NOISE {
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

    /// The records that hold these secrets; columns without one have no record.
    pub fn rows(&self, secrets: &[f64]) -> Vec<(Vec<f64>, f64)> {
        let p = self.n_tests;
        let row = |r: usize| {
            let mut features = vec![0.0; p];
            let Some(&label) = secrets.get(r) else {
                return (features, if r.is_multiple_of(2) { 1.0 } else { -1.0 });
            };
            features[r] = RAW_LENGTH;
            (features, label)
        };
        (0..self.scene.n_records[self.scene.site]).map(row).collect()
    }
}

/// The noise that the attacked site claims.
pub(crate) fn schedule<'a>(
    scene: &Scene,
    calibration: &'a Calibration,
) -> Result<&'a NoiseSchedule, AuditError> {
    let noise = calibration.agents[scene.site].noise.as_ref();
    noise
        .and_then(|schedule| schedule.as_gaussian())
        .ok_or_else(|| AuditError::Protocol("does not claim Gaussian noise".to_owned()))
}
