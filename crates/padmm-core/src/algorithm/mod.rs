//! The algorithms, one file each, behind one trait.
//!
//! An algorithm says what an agent computes from its records in a round ([`Algorithm::compute`], inside the gate) and
//! what it does once the neighbours' releases are there ([`Algorithm::conclude`], public values only). It never sends, never
//! draws noise and never charges: the agent and the gate do.

mod padmm;

use std::sync::Arc;

use padmm_privacy::{Certified, Drawn, Public};
use serde::{Deserialize, Serialize};

pub use padmm::ConsensusAdmm;

use crate::agent::AgentError;
use crate::data::Dataset;
use crate::loss::Loss;
use crate::regularizer::Penalty;
use crate::solver::Solver;

/// Which algorithm a plan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlgorithmKind {
    /// The paper's algorithm: Gaussian noise of decaying variance on every release.
    PAdmm,
    /// The same without noise and without any privacy: the reference.
    Admm,
}

impl AlgorithmKind {
    /// Every algorithm, for listings and messages.
    pub const ALL: [AlgorithmKind; 2] = [AlgorithmKind::PAdmm, AlgorithmKind::Admm];

    /// The name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            AlgorithmKind::PAdmm => "p-admm",
            AlgorithmKind::Admm => "admm",
        }
    }

    /// The name in headings.
    pub fn title(self) -> &'static str {
        match self {
            AlgorithmKind::PAdmm => "P-ADMM",
            AlgorithmKind::Admm => "ADMM without privacy",
        }
    }

    /// Whether what it releases is protected.
    pub fn is_private(self) -> bool {
        self != AlgorithmKind::Admm
    }

    /// The algorithm for one agent with `degree` neighbours.
    pub fn start(self, penalty: f64, n_features: usize, degree: usize) -> Box<dyn Algorithm> {
        match self {
            AlgorithmKind::PAdmm | AlgorithmKind::Admm => {
                Box::new(ConsensusAdmm::new(penalty, n_features, degree))
            }
        }
    }
}

/// One site's records and its share of the problem: the private side of an agent.
pub struct LocalProblem {
    /// The records.
    pub data: Arc<Dataset>,
    /// The loss.
    pub loss: Loss,
    /// `R(x)/N`.
    pub penalty: Penalty,
}

/// What an algorithm may use inside the gate.
pub struct Local<'a> {
    /// The records and the problem.
    pub problem: &'a LocalProblem,
    /// The solver with what it keeps between rounds.
    pub solver: &'a mut Solver,
    /// The last un-noised minimiser, good for nothing but starting the solver.
    pub warm_start: &'a mut Vec<f64>,
    /// The certificate that the sensitivity was derived with.
    pub tolerance: f64,
}

/// The per-agent mathematics of an algorithm.
pub trait Algorithm: Send {
    /// This round's point from the records, with its certificate. Called by the gate after the charge and the draw.
    fn compute(&mut self, round: u32, drawn: &Drawn, local: Local<'_>) -> Result<Certified, AgentError>;

    /// The round's releases are there: `own`, and `others` in the order of the neighbours that are left.
    fn conclude(&mut self, round: u32, own: &Public, others: &[Arc<Public>]);

    /// The neighbour in place `slot` of those that are left is gone for good.
    fn drop_edge(&mut self, slot: usize);

    /// The dual variable `α_i`.
    fn dual(&self) -> &Public;

    /// The dual `λ_ij` of each edge that is left.
    fn edge_duals(&self) -> &[Public];
}
