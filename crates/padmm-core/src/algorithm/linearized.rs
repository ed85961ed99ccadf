//! Linearised decentralised DP-ADMM: P-ADMM with one gradient step in place of the local solve. The decentralised analogue of
//! Huang et al. (2019), in the manner of Gauthier et al.; noise as P-ADMM's.
//!
//! ```text
//! x_i^{k+1} = [ η(d_i x̃_i^k + Σ_j x̃_j^k) + x̃_i^k/τ − α_i^k − ∇f_i(x̃_i^k) ] / (2ηd_i + 1/τ)
//! ```
//!
//! No solver and no certificate beyond rounding: the sensitivity `2B/(n(2ηd_i + 1/τ))` holds by arithmetic alone.

use std::sync::Arc;

use padmm_privacy::{Certified, Drawn, PrivacyError, Public};

use super::gradient_step::gradient_step;
use super::{Algorithm, ConsensusAdmm, Local, Start, padmm};
use crate::agent::AgentError;
use crate::regularizer::norm_up;
use crate::solvable::Demand;
use crate::step;
use crate::terms::{AgentTerms, SiteFacts};

/// State of one agent.
pub struct LinearizedAdmm {
    consensus: ConsensusAdmm,
    penalty: f64,
    /// `1/τ`
    inverse_step: f64,
}

impl LinearizedAdmm {
    /// The start, with everything at zero.
    pub fn new(start: &Start<'_>) -> Self {
        LinearizedAdmm {
            consensus: padmm::start(start),
            penalty: start.penalty,
            inverse_step: start.terms.inverse_steps[0],
        }
    }
}

impl LinearizedAdmm {
    /// `η(d_i x̃_i + Σ_j x̃_j) + x̃_i/τ − α_i`, in the memory of the linear term.
    fn center(&mut self) -> Vec<f64> {
        let mut center = std::mem::take(self.consensus.linear_term(self.penalty));
        let own = self.consensus.own.as_slice();
        center.iter_mut().zip(own).for_each(|(c, x)| *c = self.inverse_step * x - *c);
        center
    }

    /// `2ηd_i + 1/τ`
    fn weight(&self) -> f64 {
        step::primal_quadratic(self.penalty, self.consensus.planned_degree()) + self.inverse_step
    }
}

impl Algorithm for LinearizedAdmm {
    fn demand(&mut self, _round: u32) -> Option<Demand> {
        let center = self.center();
        let at = norm_up(self.consensus.own.as_slice());
        let demand = Demand::Step { at, center: norm_up(&center), weight: self.weight() };
        self.consensus.linear = center;
        Some(demand)
    }

    fn compute(&mut self, _round: u32, _drawn: &Drawn, local: Local<'_>) -> Result<Certified, AgentError> {
        let mut center = self.center();
        let certified = gradient_step(&center, &self.consensus.own, self.weight(), local);
        center.clear();
        self.consensus.linear = center;
        Ok(certified)
    }

    fn conclude(&mut self, turn: u32, own: Option<&Public>, others: &[Arc<Public>]) {
        self.consensus.conclude(turn, own, others);
    }

    fn model(&self) -> &Public {
        self.consensus.model()
    }

    fn modulus(&self, _strong_convexity: f64) -> f64 {
        self.weight()
    }

    fn drop_edge(&mut self, slot: usize) {
        self.consensus.drop_edge(slot);
    }

    fn dual(&self) -> &Public {
        self.consensus.dual()
    }

    fn edge_duals(&self) -> &[Public] {
        self.consensus.edge_duals()
    }
}

/// P-ADMM's noise for this sensitivity. `1/τ` is the public bound on the curvature of `f_i`, with which the steps descend.
pub(super) fn terms(site: &SiteFacts<'_>) -> Result<AgentTerms, PrivacyError> {
    let inverse_step = site.smoothness();
    let modulus = step::primal_quadratic(site.penalty, site.degree) + inverse_step;
    let bare = AgentTerms { inverse_steps: vec![inverse_step], ..site.bare_terms(modulus) };
    let schedule = padmm::gaussian(site, site.sensitivity(&bare)?, site.plan.decay(), None)?;
    Ok(AgentTerms { noise: Some(schedule.into()), ..bare })
}
