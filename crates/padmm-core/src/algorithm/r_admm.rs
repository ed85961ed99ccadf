//! R-ADMM and MR-ADMM (Zhang, Khalili, Liu 2018, 2019): every second round recycles what was released before.
//!
//! Odd rounds solve the perturbed problem of DVP; even rounds take a linearised step that, by the optimality condition of the
//! round before, needs only what was broadcast. `K` rounds therefore cost `⌈K/2⌉` charges. MR-ADMM lets the penalty
//! grow from odd round to odd round, in all three places where it stands.

use std::sync::Arc;

use padmm_privacy::{Certified, Drawn, PrivacyError, Public, PureStep};

use super::{Algorithm, ConsensusAdmm, Duty, Local, Speech, Start, dvp};
use crate::agent::AgentError;
use crate::step;
use crate::terms::{AgentTerms, SiteFacts};

/// State of one agent.
pub struct RecycledAdmm {
    consensus: ConsensusAdmm,
    penalty: f64,
    growth: f64,
    /// `γ`
    damping: f64,
    /// What this agent and its neighbours had said before the last odd round.
    before: (Public, Vec<Arc<Public>>),
}

/// Which odd round a round belongs to, from 1: rounds 2k − 1 and 2k are k's.
fn pair(round: u32) -> u32 {
    round.div_ceil(2)
}

fn is_odd(round: u32) -> bool {
    round % 2 == 1
}

impl RecycledAdmm {
    /// The start, with everything at zero.
    pub fn new(start: &Start<'_>) -> Self {
        let consensus =
            ConsensusAdmm::new(start.penalty, start.n_features, start.degree()).with_ridge(start.terms.ridge);
        RecycledAdmm {
            before: (consensus.own.clone(), consensus.others.clone()),
            consensus,
            penalty: start.penalty,
            growth: start.settings.growth(),
            damping: start.settings.even_damping() * start.penalty,
        }
    }

    fn penalty_at(&self, round: u32) -> f64 {
        step::grown_penalty(self.penalty, self.growth, pair(round))
    }
}

impl Algorithm for RecycledAdmm {
    fn duty(&self, turn: u32) -> Duty {
        Duty { speech: if is_odd(turn) { Speech::Release } else { Speech::Derived }, ..Duty::BROADCAST }
    }

    fn compute(&mut self, round: u32, drawn: &Drawn, local: Local<'_>) -> Result<Certified, AgentError> {
        let penalty = self.penalty_at(round);
        if self.growth != 1.0 {
            local.solver.forget_gradient();
        }
        self.consensus.solve(round, penalty, drawn, local)
    }

    fn derive(&mut self, turn: u32) -> Public {
        let (own, others) = &self.before;
        let mut pairs: Vec<(&Public, &Public)> =
            others.iter().zip(&self.consensus.others).map(|(b, n)| (&**b, &**n)).collect();
        // A lost neighbour is taken for a copy of the agent itself, as in the primal step.
        pairs.resize(self.consensus.planned_degree(), (own, &self.consensus.own));
        step::recycled_step(self.penalty_at(turn), self.damping, (own, &self.consensus.own), &pairs)
    }

    fn conclude(&mut self, turn: u32, own: Option<&Public>, others: &[Arc<Public>]) {
        let own = own.expect("every agent speaks in every round");
        if is_odd(turn) {
            self.before.0.clone_from(&self.consensus.own);
            self.before.1.clone_from(&self.consensus.others);
            self.consensus.keep(own, others);
            self.consensus.ascend(self.penalty_at(turn));
        } else {
            self.consensus.keep(own, others);
        }
    }

    fn model(&self) -> &Public {
        self.consensus.model()
    }

    fn modulus(&self, strong_convexity: f64) -> f64 {
        self.consensus.modulus(strong_convexity)
    }

    fn drop_edge(&mut self, slot: usize) {
        self.before.1.remove(slot);
        self.consensus.drop_edge(slot);
    }

    fn dual(&self) -> &Public {
        self.consensus.dual()
    }

    fn edge_duals(&self) -> &[Public] {
        self.consensus.edge_duals()
    }
}

/// Objective perturbation in the odd rounds, nothing in the even ones.
pub(super) fn terms(site: &SiteFacts<'_>) -> Result<AgentTerms, PrivacyError> {
    let growth = site.settings().growth();
    let steps = (1..=site.settings().rounds).map(|round| {
        is_odd(round).then(|| PureStep {
            share: 1.0,
            modulus: site.modulus_with(step::grown_penalty(site.penalty, growth, pair(round))),
        })
    });
    dvp::objective_terms(site, steps.collect())
}
