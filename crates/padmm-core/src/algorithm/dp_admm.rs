//! DP-ADMM (Huang, Hu, Guo, Chan-Tin, Gong 2019): a star whose middle is also the server. Every agent takes a linearised step
//! towards the server's model `w`, adds Gaussian noise and sends it to the server, which sends back the new `w`.
//!
//! ```text
//! x_i^k = ( ηw^{k−1} + y_i^{k−1} + x̃_i^{k−1}/τ_k − ∇f_i(x̃_i^{k−1}) ) / (η + 1/τ_k),     x̃_i^k = x_i^k + noise
//! w^k   = (1/N) Σ_i (x̃_i^k − y_i^{k−1}/η),                y_i^k = y_i^{k−1} − η(x̃_i^k − w^k)
//! 1/τ_k = c₃ + 2√2·B·(σ/Δ)·√(pk) / (n_i c_w)
//! ```
//!
//! A round has two turns: the leaves' releases go in, then `w` goes out. The server is one of the sites and its own release
//! goes through the gate like the others'. Both sides can compute `y_i`, so it is not sent.
//!
//! Departs from its paper: the charge of a step is the Gaussian one with the exact sensitivity `2B/(n(η + 1/τ_k))` and
//! adds up exactly, in place of an (ε, δ) per step that holds for ε ≤ 1 only and a constant that is not given.

use std::sync::Arc;

use padmm_privacy::{Computed, Decay, Drawn, NoiseSchedule, PrivacyError, PublicVector, Schedule};

use super::gradient_step::gradient_step;
use super::{
    Algorithm, AlgorithmInputs, AlgorithmKind, AlgorithmSpec, DP_ADMM, Description, Emission, GraphNeeded,
    Guarantee, Local, Needs, Peers, TurnAction, padmm,
};
use crate::agent::AgentError;
use crate::calibration::{CalibrationInputs, SiteCalibration};
use crate::plan::OwnSetting;
use crate::regularizer::norm_up;
use crate::solvable::Demand;

/// Linearised ADMM with a server agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct DpAdmm;

/// `c_w`: it shapes the step sizes, no guarantee rests on it.
const MODEL_BOUND: OwnSetting = OwnSetting {
    name: "model-bound",
    value: "C",
    help: "Norm that models are expected to stay below; shapes step sizes only",
    default: 5.0,
    allows: |bound| bound > 0.0 && bound.is_finite(),
    rule: "a positive number",
};

/// State of one agent; the server has a few things more.
struct ServerAdmm {
    penalty: f64,
    /// `1/τ_k` of every round, from the first.
    inverse_steps: Vec<f64>,
    n_agents: usize,
    own: PublicVector,
    dual: PublicVector,
    model: PublicVector,
    /// Memory for what a step is taken from.
    center: PublicVector,
    server: Option<Server>,
}

/// What the server knows of the leaves: their last releases, and their duals, which it computes for itself.
struct Server {
    releases: Vec<Arc<PublicVector>>,
    duals: Vec<PublicVector>,
}

impl ServerAdmm {
    /// The start, with everything at zero. The site with a neighbour for every other site is the server.
    fn new(start: &AlgorithmInputs<'_>) -> Self {
        let zero = PublicVector::zeros(start.n_features);
        let is_server = start.site == 0;
        assert!(
            !is_server || start.degree() + 1 == start.n_agents,
            "the first site is the middle of the star"
        );
        let leaves = start.degree();
        let start_at = Arc::new(zero.clone());
        let server = Server { releases: vec![start_at; leaves], duals: vec![zero.clone(); leaves] };
        Self {
            penalty: start.penalty,
            inverse_steps: start.calibration.inverse_steps.clone(),
            n_agents: start.n_agents,
            own: zero.clone(),
            dual: zero.clone(),
            model: zero.clone(),
            center: zero,
            server: is_server.then_some(server),
        }
    }

    fn weight(&self, round: u32) -> f64 {
        self.penalty + self.inverse_steps[round as usize - 1]
    }

    /// Sets the center to `ηw + y_i + x̃_i/τ_k`.
    fn place_center(&mut self, round: u32) {
        let inverse_step = self.inverse_steps[round as usize - 1];
        self.center.clone_from(&self.dual);
        self.center.add_scaled(self.penalty, &self.model);
        self.center.add_scaled(inverse_step, &self.own);
    }

    /// `w = (1/N) Σ_i (x̃_i − y_i/η)`
    fn gather(&mut self) {
        let server = self.server.as_ref().expect("only the server gathers");
        let mean = 1.0 / self.n_agents as f64;
        self.model.clear();
        let leaves = server.releases.iter().map(|r| &**r).zip(&server.duals);
        for (release, dual) in std::iter::once((&self.own, &self.dual)).chain(leaves) {
            self.model.add_scaled(mean, release);
            self.model.add_scaled(-mean / self.penalty, dual);
        }
    }

    /// `y_i ← y_i − η(x̃_i − w)`, and the server's copies of the leaves'.
    fn descend(&mut self) {
        self.dual.add_scaled_difference(-self.penalty, &self.own, &self.model);
        if let Some(Server { releases, duals }) = &mut self.server {
            for (dual, release) in duals.iter_mut().zip(releases) {
                dual.add_scaled_difference(-self.penalty, release, &self.model);
            }
        }
    }
}

impl Algorithm for ServerAdmm {
    fn turns_per_round(&self) -> u32 {
        2
    }

    fn action(&self, turn: u32) -> TurnAction {
        let going_in = turn % 2 == 1;
        match (going_in, self.server.is_some()) {
            (true, true) => TurnAction { emission: Emission::Release, to: Peers::Nobody, hears: Peers::All },
            (true, false) => {
                TurnAction { emission: Emission::Release, to: Peers::Only(0), hears: Peers::Nobody }
            }
            (false, true) => TurnAction { emission: Emission::Derived, to: Peers::All, hears: Peers::Nobody },
            (false, false) => TurnAction { hears: Peers::Only(0), ..TurnAction::IDLE },
        }
    }

    fn demand(&mut self, round: u32) -> Option<Demand> {
        self.place_center(round);
        let [at, center] = [&self.own, &self.center].map(|v| norm_up(v.as_slice()));
        Some(Demand::Step { at, center, weight: self.weight(round) })
    }

    fn compute(&mut self, round: u32, _drawn: &Drawn, local: Local<'_>) -> Result<Computed, AgentError> {
        self.place_center(round);
        Ok(gradient_step(self.center.as_slice(), &self.own, self.weight(round), local).into())
    }

    fn derive(&mut self, _turn: u32) -> PublicVector {
        self.model.clone()
    }

    fn finish_turn(&mut self, turn: u32, own: Option<&PublicVector>, others: &[Arc<PublicVector>]) {
        if turn % 2 == 1 {
            self.own.clone_from(own.expect("every agent releases in every round"));
            if let Some(server) = &mut self.server {
                server.releases.clone_from_slice(others);
                self.gather();
            }
        } else {
            if let Some(model) = others.first() {
                self.model.clone_from(model);
            }
            self.descend();
        }
    }

    fn model(&self) -> &PublicVector {
        &self.model
    }

    fn modulus(&self, _strong_convexity: f64) -> f64 {
        self.weight(1)
    }

    fn dual(&self) -> &PublicVector {
        &self.dual
    }
}

impl AlgorithmSpec for DpAdmm {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "dp-admm",
            title: "DP-ADMM (server)",
            reference: "Huang et al. 2019",
            summary: "linearised steps towards a server's model, Gaussian noise",
            needs: Needs::SmoothLoss,
            graph: GraphNeeded::Star,
            guarantee: Guarantee::ExactGaussian,
            uses: &[],
            own: &[MODEL_BOUND],
            between_sites: false,
            survives_loss: false,
        }
    }

    /// Gaussian noise with the same charge in every round, on a sensitivity that shrinks as `1/τ_k` grows.
    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        let rounds = site.settings().rounds;
        // The step needs the noise multiplier, which follows from the budget whatever the sensitivity is.
        let flat = Decay::new(rounds, 1.0)?;
        let guess = site.sensitivity(&site.without_noise(1.0))?;
        let multiplier = padmm::gaussian(site, guess, flat, None)?.report().noise_multiplier_first;
        let growth = 8f64.sqrt() * site.gradient_bound * multiplier
            / (site.n_records as f64 * site.settings().own.value(&MODEL_BOUND));
        let inverse = |k: u32| site.smoothness() + growth * (site.n_features as f64 * f64::from(k)).sqrt();
        let inverse_steps: Vec<f64> = (1..=rounds).map(inverse).collect();
        let modulus = site.penalty + inverse_steps[0];
        let bare = SiteCalibration { inverse_steps, ..site.without_noise(modulus) };
        let scale = |step: &f64| padmm_privacy::outward::div_up(modulus, site.penalty + step).min(1.0);
        let scales = bare.inverse_steps.iter().map(scale).collect();
        let schedule: NoiseSchedule = padmm::gaussian(site, site.sensitivity(&bare)?, flat, Some(scales))?;
        Ok(bare.with_noise(schedule))
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(ServerAdmm::new(inputs))
    }

    fn demand(
        &self,
        site: &CalibrationInputs<'_>,
        calibration: &SiteCalibration,
        size: f64,
        walk: f64,
    ) -> Option<Demand> {
        Some(calibration.step_demand(site.penalty, size, walk))
    }
}

impl From<DpAdmm> for AlgorithmKind {
    fn from(_: DpAdmm) -> Self {
        DP_ADMM
    }
}
