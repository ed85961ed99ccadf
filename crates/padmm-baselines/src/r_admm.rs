//! R-ADMM and MR-ADMM (Zhang, Khalili, Liu 2018, 2019): every second round recycles what was released before.
//!
//! Odd rounds solve the perturbed problem of DVP; even rounds take a linearised step that, by the optimality condition of the
//! round before, needs only what was broadcast. `K` rounds therefore cost `⌈K/2⌉` charges. MR-ADMM lets the penalty
//! grow from odd round to odd round, in all three places where it stands.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use std::sync::Arc;

use padmm_core::agent::AgentError;
use padmm_core::algorithm::{
    Algorithm, AlgorithmInputs, AlgorithmSpec, ConsensusAdmm, Description, Emission, GraphNeeded, Guarantee,
    Local, Needs, TurnAction,
};
use padmm_core::calibration::{CalibrationInputs, SiteCalibration};
use padmm_core::plan::{OwnSetting, Plan};
use padmm_core::step;
use padmm_privacy::{Computed, Drawn, PrivacyError, PublicVector};

use crate::dvp::{self, gamma_relative_noise, objective_calibration};
use crate::m_admm;
use crate::mechanism::PureStep;

/// DVP in odd rounds; even rounds recycle what was sent and cost nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct RAdmm;

/// R-ADMM with a penalty that grows from odd round to odd round.
#[derive(Clone, Copy, Debug, Default)]
pub struct MrAdmm;

/// `γ/η`: damping of the even step.
const EVEN_DAMPING: OwnSetting = OwnSetting {
    name: "even-damping",
    value: "G",
    help: "Damping of the free even step, in units of the penalty",
    default: 0.5,
    allows: |damping| (0.0..=1e6).contains(&damping),
    rule: "zero or a positive number",
};

/// `q₁`, with a faster default than M-ADMM's.
const PENALTY_GROWTH: OwnSetting = OwnSetting { default: 1.04, ..m_admm::PENALTY_GROWTH };

impl AlgorithmSpec for RAdmm {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "r-admm",
            title: "R-ADMM",
            reference: "Zhang, Khalili, Liu 2018",
            summary: "DVP in odd rounds; even rounds recycle what was sent and cost nothing",
            needs: Needs::TwiceDifferentiable,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::Pure,
            uses: &[],
            own: &[EVEN_DAMPING],
            between_sites: false,
            survives_loss: true,
        }
    }

    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        calibrate(site, 1.0)
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(RecycledAdmm::new(inputs, 1.0))
    }

    fn charged_rounds(&self, rounds: u32) -> u32 {
        pair(rounds)
    }

    fn relative_noise(&self, plan: &Plan, n_features: usize, mu: f64) -> Result<f64, PrivacyError> {
        gamma_relative_noise(plan, n_features, mu, pair(plan.settings().rounds))
    }
}

impl AlgorithmSpec for MrAdmm {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "mr-admm",
            title: "MR-ADMM",
            reference: "Zhang, Khalili, Liu 2019",
            summary: "R-ADMM with growing penalties",
            needs: Needs::TwiceDifferentiable,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::Pure,
            uses: &[],
            own: &[EVEN_DAMPING, PENALTY_GROWTH],
            between_sites: false,
            survives_loss: true,
        }
    }

    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        calibrate(site, site.settings().own.value(&PENALTY_GROWTH))
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(RecycledAdmm::new(inputs, inputs.settings.own.value(&PENALTY_GROWTH)))
    }

    fn charged_rounds(&self, rounds: u32) -> u32 {
        pair(rounds)
    }

    fn relative_noise(&self, plan: &Plan, n_features: usize, mu: f64) -> Result<f64, PrivacyError> {
        gamma_relative_noise(plan, n_features, mu, pair(plan.settings().rounds))
    }
}

/// Objective perturbation in the odd rounds, nothing in the even ones.
fn calibrate(site: &CalibrationInputs<'_>, growth: f64) -> Result<SiteCalibration, PrivacyError> {
    let steps = (1..=site.settings().rounds).map(|round| {
        is_odd(round).then(|| PureStep {
            share: 1.0,
            modulus: site.modulus_with(step::grown_penalty(site.penalty, growth, pair(round))),
        })
    });
    objective_calibration(site, steps.collect())
}

struct RecycledAdmm {
    consensus: ConsensusAdmm,
    penalty: f64,
    growth: f64,
    /// `γ`, the setting times the first round's penalty.
    damping: f64,
    /// What this agent and its neighbours had said before the last odd round.
    before: (PublicVector, Vec<Arc<PublicVector>>),
}

/// Which odd round a round belongs to, from 1: rounds 2k − 1 and 2k are k's.
fn pair(round: u32) -> u32 {
    round.div_ceil(2)
}

fn is_odd(round: u32) -> bool {
    round % 2 == 1
}

impl RecycledAdmm {
    fn new(start: &AlgorithmInputs<'_>, growth: f64) -> Self {
        let consensus = dvp::start(start);
        Self {
            before: (consensus.own().clone(), consensus.others().to_vec()),
            consensus,
            penalty: start.penalty,
            growth,
            damping: start.settings.own.value(&EVEN_DAMPING) * start.penalty,
        }
    }

    fn penalty_at(&self, round: u32) -> f64 {
        step::grown_penalty(self.penalty, self.growth, pair(round))
    }
}

impl Algorithm for RecycledAdmm {
    fn action(&self, turn: u32) -> TurnAction {
        TurnAction {
            emission: if is_odd(turn) { Emission::Release } else { Emission::Derived },
            ..TurnAction::BROADCAST
        }
    }

    fn compute(&mut self, round: u32, drawn: &Drawn, local: Local<'_>) -> Result<Computed, AgentError> {
        let penalty = self.penalty_at(round);
        if self.growth != 1.0 {
            local.solver.forget_gradient();
        }
        self.consensus.solve(round, penalty, drawn, local)
    }

    fn derive(&mut self, turn: u32) -> PublicVector {
        let (own, others) = &self.before;
        let mut pairs: Vec<(&PublicVector, &PublicVector)> =
            others.iter().zip(self.consensus.others()).map(|(b, n)| (&**b, &**n)).collect();
        // A lost neighbour is taken for a copy of the agent itself, as in the primal step.
        pairs.resize(self.consensus.planned_degree(), (own, self.consensus.own()));
        step::recycled_step(self.penalty_at(turn), self.damping, (own, self.consensus.own()), &pairs)
    }

    fn finish_turn(&mut self, turn: u32, own: Option<&PublicVector>, others: &[Arc<PublicVector>]) {
        let own = own.expect("every agent speaks in every round");
        if is_odd(turn) {
            self.before.0.clone_from(self.consensus.own());
            self.before.1.clone_from_slice(self.consensus.others());
            self.consensus.keep(own, others);
            self.consensus.ascend(self.penalty_at(turn));
        } else {
            self.consensus.keep(own, others);
        }
    }

    fn model(&self) -> &PublicVector {
        self.consensus.model()
    }

    fn modulus(&self, strong_convexity: f64) -> f64 {
        self.consensus.modulus(strong_convexity)
    }

    fn drop_edge(&mut self, slot: usize) {
        self.before.1.remove(slot);
        self.consensus.drop_edge(slot);
    }

    fn dual(&self) -> &PublicVector {
        self.consensus.dual()
    }

    fn edge_duals(&self) -> &[PublicVector] {
        self.consensus.edge_duals()
    }
}
