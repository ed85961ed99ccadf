//! Linearised decentralised DP-ADMM: P-ADMM with one gradient step in place of the local solve. The decentralised analogue of
//! Huang et al. (2019), in the manner of Gauthier et al.; noise as P-ADMM's.
//!
//! ```text
//! x_i^{k+1} = [ η(d_i x̃_i^k + Σ_j x̃_j^k) + x̃_i^k/τ − α_i^k − ∇f_i(x̃_i^k) ] / (2ηd_i + 1/τ)
//! ```
//!
//! No solver and no certificate beyond rounding: the sensitivity `2B/(n(2ηd_i + 1/τ))` holds by arithmetic alone.

use std::sync::Arc;

use padmm_privacy::{Computed, Drawn, PrivacyError, PublicVector};

use super::gradient_step::gradient_step;
use super::{
    Algorithm, AlgorithmInputs, AlgorithmKind, AlgorithmSpec, ConsensusAdmm, Description, GraphNeeded,
    Guarantee, LINEARIZED, Local, Needs, padmm,
};
use crate::agent::AgentError;
use crate::calibration::{CalibrationInputs, SiteCalibration};
use crate::regularizer::norm_up;
use crate::solvable::Demand;
use crate::step;

/// P-ADMM with one gradient in place of the local solve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linearized;

struct LinearizedAdmm {
    consensus: ConsensusAdmm,
    penalty: f64,
    /// `1/τ`, the same in every round.
    inverse_step: f64,
}

impl LinearizedAdmm {
    /// The start, with everything at zero.
    fn new(start: &AlgorithmInputs<'_>) -> Self {
        Self {
            consensus: ConsensusAdmm::new(start.penalty, start.n_features, start.degree()),
            penalty: start.penalty,
            inverse_step: start.calibration.inverse_steps[0],
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

    /// `2ηd_i + 1/τ`, by which a step is divided.
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

    fn compute(&mut self, _round: u32, _drawn: &Drawn, local: Local<'_>) -> Result<Computed, AgentError> {
        let mut center = self.center();
        let certified = gradient_step(&center, &self.consensus.own, self.weight(), local);
        center.clear();
        self.consensus.linear = center;
        Ok(certified.into())
    }

    fn finish_turn(&mut self, turn: u32, own: Option<&PublicVector>, others: &[Arc<PublicVector>]) {
        self.consensus.finish_turn(turn, own, others);
    }

    fn model(&self) -> &PublicVector {
        self.consensus.model()
    }

    fn modulus(&self, _strong_convexity: f64) -> f64 {
        self.weight()
    }

    fn drop_edge(&mut self, slot: usize) {
        self.consensus.drop_edge(slot);
    }

    fn dual(&self) -> &PublicVector {
        self.consensus.dual()
    }

    fn edge_duals(&self) -> &[PublicVector] {
        self.consensus.edge_duals()
    }
}

impl AlgorithmSpec for Linearized {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "linearized",
            title: "linearised P-ADMM",
            reference: "after Huang et al. 2019 and Gauthier et al.",
            summary: "P-ADMM with one gradient in place of the local solve",
            needs: Needs::SmoothLoss,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::ExactGaussian,
            uses: &["decay"],
            own: &[],
            between_sites: true,
            survives_loss: true,
        }
    }

    /// P-ADMM's noise for this sensitivity. `1/τ` is the public bound on the curvature of `f_i`, with which the steps descend.
    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        let inverse_step = site.smoothness();
        let modulus = step::primal_quadratic(site.penalty, site.degree) + inverse_step;
        let bare = SiteCalibration { inverse_steps: vec![inverse_step], ..site.without_noise(modulus) };
        let schedule = padmm::gaussian(site, site.sensitivity(&bare)?, site.plan.decay(), None)?;
        Ok(bare.with_noise(schedule))
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(LinearizedAdmm::new(inputs))
    }

    fn demand(
        &self,
        site: &CalibrationInputs<'_>,
        calibration: &SiteCalibration,
        size: f64,
        walk: f64,
    ) -> Option<Demand> {
        let pull = step::primal_quadratic(site.penalty, site.degree);
        Some(calibration.step_demand(pull, size, walk))
    }
}

impl From<Linearized> for AlgorithmKind {
    fn from(_: Linearized) -> Self {
        LINEARIZED
    }
}
