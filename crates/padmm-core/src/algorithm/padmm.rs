//! P-ADMM — the paper's Algorithm 1 in the form of MATH §2 — and, with the noise off, ADMM without privacy (Shi et al. 2014).
//!
//! The updates are the same; whether a release is noisy is the gate's business. The dual is kept for each edge, so
//! that an edge can be dropped exactly: `α_i = Σ_j λ_ij`.

use std::sync::Arc;

use padmm_privacy::{Certified, Drawn, Public};

use super::{Algorithm, Local};
use crate::agent::AgentError;
use crate::objective::{Objective, Part};
use crate::solver::Status;
use crate::step;

/// State of one agent: what it released last, what its neighbours did, and the duals. All of it is public.
pub struct ConsensusAdmm {
    penalty: f64,
    /// The degree that the plan started with. It stays in the quadratic term when a neighbour is lost, with the agent's own
    /// last release in the neighbour's place: the modulus, and with it the sensitivity, must not shrink mid-run.
    planned_degree: usize,
    own: Public,
    others: Vec<Arc<Public>>,
    edge_duals: Vec<Public>,
    dual: Public,
    linear: Vec<f64>,
}

impl ConsensusAdmm {
    /// The start: `x̃⁰ = 0` everywhere, known to all, and zero duals.
    pub fn new(penalty: f64, n_features: usize, degree: usize) -> Self {
        let zero = Public::zeros(n_features);
        let start = Arc::new(zero.clone());
        ConsensusAdmm {
            penalty,
            planned_degree: degree,
            own: zero.clone(),
            others: vec![start; degree],
            edge_duals: vec![zero.clone(); degree],
            dual: zero,
            linear: vec![],
        }
    }

    fn sum_edge_duals(&mut self) {
        self.dual.scale(0.0);
        for edge in &self.edge_duals {
            self.dual.add_scaled(1.0, edge);
        }
    }
}

impl Algorithm for ConsensusAdmm {
    /// (primal): `x_i^{k+1} = argmin_x f_i(x) + ⟨α_i^k, x⟩ + η Σ_{j∈V_i} ‖x − ½(x̃_i^k + x̃_j^k)‖²`
    fn compute(&mut self, round: u32, _drawn: &Drawn, local: Local<'_>) -> Result<Certified, AgentError> {
        let mut others: Vec<&Public> = self.others.iter().map(|o| &**o).collect();
        others.resize(self.planned_degree, &self.own);
        step::primal_linear(&self.dual, self.penalty, &self.own, &others, &mut self.linear);
        let quadratic = step::primal_quadratic(self.penalty, self.planned_degree);
        let parts = [Part::mean(&local.problem.data)];
        let problem = local.problem;
        let objective = Objective::new(&parts, problem.loss, &problem.penalty, &self.linear, quadratic);
        let solution = local.solver.solve(&objective, local.warm_start, local.tolerance);
        if solution.status != Status::Solved {
            let (residual, tolerance) = (solution.residual, local.tolerance);
            return Err(AgentError::ToleranceNotReached { round, residual, tolerance });
        }
        local.warm_start.clone_from(&solution.point);
        Ok(Certified { point: solution.point, residual: solution.residual })
    }

    /// (dual): `α_i^{k+1} = α_i^k + η Σ_{j∈V_i} (x̃_i^{k+1} − x̃_j^{k+1})`, edge by edge.
    fn conclude(&mut self, _round: u32, own: &Public, others: &[Arc<Public>]) {
        self.own.clone_from(own);
        for ((kept, edge), other) in self.others.iter_mut().zip(&mut self.edge_duals).zip(others) {
            step::dual_edge(edge, self.penalty, own, other);
            kept.clone_from(other);
        }
        self.sum_edge_duals();
    }

    fn drop_edge(&mut self, slot: usize) {
        self.others.remove(slot);
        self.edge_duals.remove(slot);
        self.sum_edge_duals();
    }

    fn dual(&self) -> &Public {
        &self.dual
    }

    fn edge_duals(&self) -> &[Public] {
        &self.edge_duals
    }
}
