//! Decentralised ADMM by broadcast: the updates that P-ADMM, ADMM without privacy (Shi et al. 2014), DVP, PVP, M-ADMM and
//! Gaussian objective perturbation share. They differ in where the noise is and in what it costs, which is the business of their
//! own files and of the gate.
//!
//! The dual is kept for each edge, so that an edge can be dropped exactly: `α_i = Σ_j λ_ij`.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use std::sync::Arc;

use padmm_privacy::{Computed, Drawn, PublicVector};

use super::{Algorithm, Local};
use crate::agent::AgentError;
use crate::objective::Objective;
use crate::regularizer::norm_up;
use crate::solvable::Demand;
use crate::step;

/// State of one agent: what it released last, what its neighbours did, and the duals. All of it is public.
pub struct ConsensusAdmm {
    penalty: f64,
    /// Factor of the primal penalty from round to round; the dual step keeps to `penalty`.
    growth: f64,
    /// Curvature that is added to the objective beside the problem's own.
    ridge: f64,
    /// The degree that the plan started with. It stays in the quadratic term when a neighbour is lost, with the agent's own
    /// last release in the neighbour's place: the modulus, and with it the sensitivity, must not shrink mid-run.
    planned_degree: usize,
    pub(super) own: PublicVector,
    pub(super) others: Vec<Arc<PublicVector>>,
    edge_duals: Vec<PublicVector>,
    dual: PublicVector,
    /// Memory for the linear term of a solve; empty between solves.
    pub(super) linear: Vec<f64>,
}

impl ConsensusAdmm {
    /// The start: `x̃⁰ = 0` everywhere, known to all, and zero duals.
    pub fn new(penalty: f64, n_features: usize, degree: usize) -> Self {
        let zero = PublicVector::zeros(n_features);
        let start = Arc::new(zero.clone());
        Self {
            penalty,
            growth: 1.0,
            ridge: 0.0,
            planned_degree: degree,
            own: zero.clone(),
            others: vec![start; degree],
            edge_duals: vec![zero.clone(); degree],
            dual: zero,
            linear: vec![],
        }
    }

    /// The same with a primal penalty that is multiplied by `growth` from round to round.
    #[must_use]
    pub fn with_growth(mut self, growth: f64) -> Self {
        self.growth = growth;
        self
    }

    /// The same with `½·ridge·‖x‖²` added to every local objective.
    #[must_use]
    pub fn with_ridge(mut self, ridge: f64) -> Self {
        self.ridge = ridge;
        self
    }

    /// What the agent released last.
    pub fn own(&self) -> &PublicVector {
        &self.own
    }

    /// What its neighbours released last, in their order.
    pub fn others(&self) -> &[Arc<PublicVector>] {
        &self.others
    }

    /// Neighbours that the plan gave the agent, lost ones included.
    pub fn planned_degree(&self) -> usize {
        self.planned_degree
    }

    /// The linear term of (primal) with `penalty`, into `self.linear`, with the agent's own last release in the place of every
    /// neighbour that is lost.
    pub(super) fn linear_term(&mut self, penalty: f64) -> &mut Vec<f64> {
        let lost = std::iter::repeat_n(&self.own, self.planned_degree - self.others.len());
        let others = self.others.iter().map(|o| &**o).chain(lost);
        step::primal_linear(&self.dual, penalty, &self.own, others, &mut self.linear);
        &mut self.linear
    }

    /// (primal) with a penalty of this round's own, and with the noise of objective perturbation if it was drawn:
    /// `x_i = argmin_x f_i(x) + ⟨α_i + b, x⟩ + η Σ_{j∈V_i} ‖x − ½(x̃_i + x̃_j)‖² + ½·ridge·‖x‖²`
    pub fn solve(
        &mut self,
        round: u32,
        penalty: f64,
        drawn: &Drawn,
        local: Local<'_>,
    ) -> Result<Computed, AgentError> {
        let quadratic = step::primal_quadratic(penalty, self.planned_degree) + self.ridge;
        let linear = self.linear_term(penalty);
        if let Some(noise) = drawn.visible_noise() {
            linear.iter_mut().zip(noise).for_each(|(l, b)| *l += b);
        }
        let parts = [local.problem.part()];
        let problem = local.problem;
        let objective = Objective::new(&parts, problem.loss, &problem.penalty, linear, quadratic);
        let certified = local.solve(round, objective);
        // With noise in it, the linear term is no longer public: together with the release it tells a gradient.
        self.linear.clear();
        certified
    }

    /// Keeps what was said, without a dual step.
    pub fn keep(&mut self, own: &PublicVector, others: &[Arc<PublicVector>]) {
        self.own.clone_from(own);
        self.others.iter_mut().zip(others).for_each(|(kept, other)| kept.clone_from(other));
    }

    /// (dual) with a step of this round's own: `α_i ← α_i + η Σ_{j∈V_i} (x̃_i − x̃_j)`, edge by edge.
    pub fn ascend(&mut self, penalty: f64) {
        for (edge, other) in self.edge_duals.iter_mut().zip(&self.others) {
            step::dual_edge(edge, penalty, &self.own, other);
        }
        self.sum_edge_duals();
    }

    fn sum_edge_duals(&mut self) {
        self.dual.clear();
        for edge in &self.edge_duals {
            self.dual.add_scaled(1.0, edge);
        }
    }
}

impl Algorithm for ConsensusAdmm {
    fn demand(&mut self, round: u32) -> Option<Demand> {
        let penalty = step::grown_penalty(self.penalty, self.growth, round);
        let quadratic = step::primal_quadratic(penalty, self.planned_degree) + self.ridge;
        let linear = norm_up(self.linear_term(penalty));
        self.linear.clear();
        Some(Demand::Solve { linear, quadratic })
    }

    /// (primal): `x_i^{k+1} = argmin_x f_i(x) + ⟨α_i^k, x⟩ + η Σ_{j∈V_i} ‖x − ½(x̃_i^k + x̃_j^k)‖²`
    fn compute(&mut self, round: u32, drawn: &Drawn, local: Local<'_>) -> Result<Computed, AgentError> {
        let penalty = step::grown_penalty(self.penalty, self.growth, round);
        if self.growth != 1.0 {
            local.solver.forget_gradient();
        }
        self.solve(round, penalty, drawn, local)
    }

    /// (dual): `α_i^{k+1} = α_i^k + η Σ_{j∈V_i} (x̃_i^{k+1} − x̃_j^{k+1})`, edge by edge.
    fn finish_turn(&mut self, _turn: u32, own: Option<&PublicVector>, others: &[Arc<PublicVector>]) {
        self.keep(own.expect("every agent releases in every round"), others);
        self.ascend(self.penalty);
    }

    fn model(&self) -> &PublicVector {
        &self.own
    }

    fn modulus(&self, strong_convexity: f64) -> f64 {
        // Added up in the order of the terms, so that the two agree to the bit.
        step::primal_quadratic(self.penalty, self.planned_degree) + strong_convexity + self.ridge
    }

    fn drop_edge(&mut self, slot: usize) {
        self.others.remove(slot);
        self.edge_duals.remove(slot);
        self.sum_edge_duals();
    }

    fn dual(&self) -> &PublicVector {
        &self.dual
    }

    fn edge_duals(&self) -> &[PublicVector] {
        &self.edge_duals
    }
}
