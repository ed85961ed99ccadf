//! The algorithms, one file each, behind one trait.
//!
//! An algorithm says, turn by turn, what an agent has to do ([`Algorithm::action`]), what it computes from its records
//! ([`Algorithm::compute`], inside the gate), what it says without them ([`Algorithm::derive`]) and what it does once the
//! neighbours have been heard ([`Algorithm::finish_turn`]); the last two see public values only. It never sends, never draws noise
//! and never charges: the agent and the gate do.
//!
//! A file holds an algorithm's updates and, beside them, its noise, charge and calibration (`calibration`), so that a reader finds
//! in one place what a method does and what that costs.
//!
//! | file | algorithm |
//! |---|---|
//! | [`consensus`] | the updates that most of them share: decentralised ADMM with noise in the objective, in the output, or none |
//! | `padmm` | P-ADMM, and ADMM without privacy |
//! | `dvp`, `pvp` | dual and primal variable perturbation |
//! | `m_admm` | penalty perturbation with growing penalties |
//! | `r_admm` | R-ADMM and MR-ADMM: every second round is free |
//! | `dp_admm` | linearised ADMM with a server agent |
//! | `newton` | consensus Newton: gradients of all sites at one public point, in a learned metric |
//! | `private_gradient` | the same without a metric: accelerated gradient steps |
//! | `linearized` | its decentralised form |
//! | `token` | a token that walks from agent to agent |
//! | `gaussian_objective` | Gaussian objective perturbation (experimental) |

pub mod consensus;
mod dp_admm;
mod gradient_step;
mod linearized;
pub(crate) mod newton;
mod padmm;
pub(crate) mod private_gradient;
mod shared_point;
mod shared_work;
mod spec;
mod token;

use std::sync::{Arc, LazyLock};

use padmm_privacy::{Certified, Computed, Drawn, PublicVector};

pub use consensus::ConsensusAdmm;
pub use dp_admm::DpAdmm;
pub use linearized::Linearized;
pub use newton::ConsensusNewton;
pub use padmm::PAdmm;
pub use private_gradient::PrivateGradient;
pub(crate) use shared_point::noise_factor;
pub use shared_work::SharedWork;
pub use spec::{
    AlgorithmInputs, AlgorithmKind, AlgorithmSpec, Audience, Description, GraphNeeded, Guarantee, Needs,
};
pub use token::{Token, token_walk};

use crate::agent::AgentError;
use crate::data::Dataset;
use crate::loss::Loss;
use crate::message::StateDigest;
use crate::objective::{Objective, Part};
use crate::privacy_noise::PrivacyNoise;
use crate::regularizer::RegularizerTerm;
use crate::solvable::Demand;
use crate::solver::{Solver, Status, proved};

/// The paper's algorithm: Gaussian noise of decaying variance on every release.
pub const P_ADMM: AlgorithmKind = AlgorithmKind::new(&PAdmm);
/// Linearised ADMM with a server agent.
pub const DP_ADMM: AlgorithmKind = AlgorithmKind::new(&DpAdmm);
/// Linearised ADMM without a server.
pub const LINEARIZED: AlgorithmKind = AlgorithmKind::new(&Linearized);
/// A token walking from agent to agent.
pub const TOKEN: AlgorithmKind = AlgorithmKind::new(&Token);

/// Gradients of all sites at one public point, in a metric that was learned privately.
pub const CONSENSUS_NEWTON: AlgorithmKind = AlgorithmKind::new(&ConsensusNewton);
/// The same without a metric: accelerated gradient steps.
pub const PRIVATE_GRADIENT: AlgorithmKind = AlgorithmKind::new(&PrivateGradient);

/// The algorithms whose guarantee holds for the bytes that leave. `padmm-baselines` has the others.
pub const ALL: [AlgorithmKind; 6] = [P_ADMM, CONSENSUS_NEWTON, PRIVATE_GRADIENT, LINEARIZED, DP_ADMM, TOKEN];

/// One site's records and its share of the problem: the private side of an agent.
pub struct LocalProblem {
    /// The site's encoded records, for use inside the gate only.
    pub data: Arc<Dataset>,
    /// The plan's loss, the same at every site.
    pub loss: Loss,
    /// `R(x)/N`: this site's share of the regulariser.
    pub penalty: RegularizerTerm,
    /// `Nω_i`: what the mean loss of the records is multiplied by.
    pub weight: f64,
}

impl LocalProblem {
    /// The records with their weight, as they enter the objective.
    pub fn part(&self) -> Part<'_> {
        Part { data: &self.data, weight: self.weight / self.data.n_records() as f64 }
    }
}

/// What an algorithm may use inside the gate.
pub struct Local<'a> {
    /// Records, loss and regulariser of the site.
    pub problem: &'a LocalProblem,
    /// The solver with what it keeps between rounds.
    pub solver: &'a mut Solver,
    /// The last un-noised minimiser, good for nothing but starting the solver.
    pub warm_start: &'a mut Vec<f64>,
    /// The certificate that the sensitivity was derived with.
    pub tolerance: f64,
}

impl Local<'_> {
    /// Minimises `objective` to the tolerance, from where the last minimiser was; without a certificate the round stops.
    ///
    /// Certificates are formed with the public radius of the judgement. Where it proves a number of passes sufficient, a solver
    /// that stalled is followed by one that cannot.
    pub fn solve(self, round: u32, objective: Objective<'_>) -> Result<Computed, AgentError> {
        let judgement = self.solver.judgement;
        let objective = objective.within(judgement.map_or(0.0, |j| j.radius));
        let mut solution = self.solver.solve(&objective, self.warm_start, self.tolerance);
        if solution.status != Status::Solved
            && let Some(passes) = judgement.and_then(|j| j.passes)
        {
            solution = proved::solve(self.solver, &objective, passes, self.tolerance);
        }
        if solution.status != Status::Solved {
            let (residual, tolerance) = (solution.residual, self.tolerance);
            return Err(AgentError::ToleranceNotReached { round, residual, tolerance });
        }
        self.warm_start.clone_from(&solution.point);
        Ok(Certified { point: solution.point, residual: solution.residual }.into())
    }
}

/// What an agent says in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emission {
    /// A release: computed from records, through the gate.
    Release,
    /// A function of what was released before: free.
    Derived,
    /// Nothing in this turn, not even a derived vector.
    Silence,
}

/// Some of an agent's neighbours, by their place among those that are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Every neighbour that has not been lost.
    All,
    /// The neighbour at this place alone.
    Only(usize),
    /// None: what is released stays with the agent until it has gone into something that is derived.
    Nobody,
}

/// What an agent has to do in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnAction {
    /// What kind of message it sends, if any.
    pub emission: Emission,
    /// Which neighbours it sends it to.
    pub to: Peers,
    /// Which neighbours it waits for before the turn is over.
    pub hears: Peers,
}

impl TurnAction {
    /// A release to all neighbours, then their releases.
    pub const BROADCAST: Self = Self { emission: Emission::Release, to: Peers::All, hears: Peers::All };
    /// Neither speaks nor waits: the turn is for others.
    pub const IDLE: Self = Self { emission: Emission::Silence, to: Peers::Nobody, hears: Peers::Nobody };
}

/// The per-agent mathematics of an algorithm.
///
/// A round consists of one or more turns, the same number for every agent; an agent makes at most one release a round.
pub trait Algorithm: Send {
    /// How many turns make a round, the same at every agent.
    fn turns_per_round(&self) -> u32 {
        1
    }

    /// What the agent does in turn `turn` of the whole run, from 1.
    fn action(&self, _turn: u32) -> TurnAction {
        TurnAction::BROADCAST
    }

    /// What the round will ask for, from what is public; none where no guarantee is stated for the bytes that leave.
    fn demand(&mut self, _round: u32) -> Option<Demand> {
        None
    }

    /// This round's point from the records, with its certificate. Called by the gate after the charge and the draw.
    fn compute(&mut self, round: u32, drawn: &Drawn, local: Local<'_>) -> Result<Computed, AgentError>;

    /// Coordinates of what agents say in a turn, where that is not the model's length.
    fn n_coordinates(&self, _turn: u32) -> Option<usize> {
        None
    }

    /// The public state that this turn's release is computed at, where all agents compute at the same one: what was computed at another
    /// is left out.
    fn state(&self) -> Option<StateDigest> {
        None
    }

    /// What the agent says in a turn of [`Emission::Derived`].
    fn derive(&mut self, turn: u32) -> PublicVector {
        unreachable!("turn {turn} of this algorithm is not derived")
    }

    /// The turn is over: what the agent said itself, and what it waited for, in the order of its neighbours; an empty vector is from
    /// one that computed at another [`Algorithm::state`].
    fn finish_turn(&mut self, turn: u32, own: Option<&PublicVector>, others: &[Arc<PublicVector>]);

    /// The model that the agent has after the turns concluded so far: the paper's `x_i`.
    fn model(&self) -> &PublicVector;

    /// Strong convexity of the problems that [`Algorithm::compute`] solves, the smallest over rounds, where the
    /// regulariser's part is `strong_convexity`. Only for algorithms that solve ([`AlgorithmSpec::solves`]).
    fn modulus(&self, _strong_convexity: f64) -> f64 {
        unreachable!("an algorithm that solves says how convex its problems are")
    }

    /// The neighbour in place `slot` of those that are left is gone for good. Only for algorithms that
    /// [`AlgorithmKind::survives_loss`].
    fn drop_edge(&mut self, _slot: usize) {
        unreachable!("this algorithm needs every neighbour")
    }

    /// The dual variable `α_i`; an empty vector where there is none.
    fn dual(&self) -> &PublicVector {
        &NO_DUAL
    }

    /// The dual `λ_ij` of each edge that is left, where the dual is kept by edges.
    fn edge_duals(&self) -> &[PublicVector] {
        &[]
    }

    /// How far privacy noise may have moved the model so far, where the algorithm can tell; from releases and public facts alone.
    fn privacy_noise(&self) -> Option<PrivacyNoise> {
        None
    }
}

static NO_DUAL: LazyLock<PublicVector> = LazyLock::new(|| PublicVector::zeros(0));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solvable::{Judgement, LocalBounds};

    /// A start that is no number stops every fast solver at once. Where public numbers promise a certificate, there is one all the same.
    #[test]
    fn a_solver_that_stalls_is_followed_by_one_that_cannot() {
        let mut data = Dataset::new(3, 3, 0, 1.0);
        (0..20).for_each(|r| {
            let row = [0.3, f64::from(r) / 20.0, f64::from(r % 3) / 3.0];
            data.push(&row, &[], if r % 4 == 0 { 1.0 } else { -1.0 });
        });
        let (loss, tolerance, quadratic) = (Loss::Logistic, 1e-8, 0.1);
        let problem =
            LocalProblem { data: Arc::new(data), loss, penalty: RegularizerTerm::none(), weight: 1.0 };
        let bounds = LocalBounds::new(loss, 1.0, &problem.penalty, 20, 3, 3, 1.0, None, tolerance);
        let judgement = bounds.judge(Demand::Solve { linear: 0.0, quadratic });
        assert!(judgement.passes.is_some());
        let solve = |judgement: Option<Judgement>, start: f64| {
            let (mut solver, mut warm_start) = (Solver::new(), vec![start; 3]);
            solver.judgement = judgement;
            let parts = [problem.part()];
            let objective = Objective::new(&parts, loss, &problem.penalty, &[], quadratic);
            let local =
                Local { problem: &problem, solver: &mut solver, warm_start: &mut warm_start, tolerance };
            local.solve(1, objective).map(|computed| match computed {
                Computed::Point(certified) => certified,
                Computed::Sum(_) => panic!("a solve gives a point"),
            })
        };
        let stalled = solve(None, f64::NAN).unwrap_err();
        assert!(matches!(stalled, AgentError::ToleranceNotReached { .. }), "{stalled}");
        let (found, expected) = (solve(Some(judgement), f64::NAN).unwrap(), solve(None, 0.0).unwrap());
        assert!(found.residual <= tolerance);
        let off = found.point.iter().zip(&expected.point).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off <= 2.0 * tolerance / quadratic, "{off:e}");
    }
}
