//! The decentralised token algorithm of Cyffers, Bellet and Basu (2023), in its corrected form and with local accounting.
//!
//! ```text
//! x_i = prox_{γf_i}(2z − u_i),      u_i⁺ = u_i + 2λ(x̃_i − z),   x̃_i = x_i + ½ξ
//! ẑ⁺  = ẑ + (u_i⁺ − u_i)/N,         z⁺ = prox_{γr}(ẑ⁺)
//! ```
//!
//! `f_i` is the mean loss of a site, `r = R/N` the regulariser, which only the token's side applies. The token is `ẑ`; it visits
//! every agent once a round, in an order drawn from a public seed. `γ = 1/(2η(N − 1))`, so that a penalty `η` means the
//! same sensitivity as in P-ADMM on the complete graph.
//!
//! Departs from its paper: Algorithms 3 and 4 add to the `z` after the proximal step, which applies that step again and
//! again and ends at the minimiser of `r`; here `ẑ` is carried, as in the paper's own centralised Algorithm 2. The amplification by
//! the token's secret whereabouts is not claimed: its proof treats `z` alone. Whoever sees every message is accounted for.

use std::sync::Arc;

use padmm_privacy::{Computed, Decay, Drawn, PrivacyError, PublicVector};

use super::{
    Algorithm, AlgorithmInputs, AlgorithmKind, AlgorithmSpec, Description, Emission, GraphNeeded, Guarantee,
    Local, Needs, Peers, TOKEN, TurnAction, padmm,
};
use crate::agent::AgentError;
use crate::calibration::{CalibrationInputs, SiteCalibration};
use crate::graph::PublicSeed;
use crate::objective::Objective;
use crate::plan::OwnSetting;
use crate::regularizer::{RegularizerTerm, norm_up};
use crate::solvable::Demand;
use crate::step;

/// Seed of the token's walk: public and the same for all, because who is next must not depend on anything private.
const WALK_SEED: u64 = 0x70_6164_6d6d;

/// A token walking from agent to agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Token;

/// `λ` of the token's step.
const RELAXATION: OwnSetting = OwnSetting {
    name: "relaxation",
    value: "L",
    help: "Relaxation of the token's step",
    default: 0.5,
    allows: |relaxation| relaxation > 0.0 && relaxation <= 1.0,
    rule: "above 0 and at most 1",
};

struct TokenAdmm {
    site: usize,
    n_agents: usize,
    /// Who acts in step `s` of the run, from 0.
    walk: Vec<u32>,
    /// `1/γ = 2η(N − 1)`, from the plan's penalty.
    inverse_step: f64,
    relaxation: f64,
    no_penalty: RegularizerTerm,
    /// `prox_{γr}`: thresholds and factors of every coordinate.
    prox: (Vec<f64>, Vec<f64>),
    /// `u_i`: what this agent keeps between two visits of the token.
    memory: PublicVector,
    /// `ẑ` as it was when the token was last here.
    token: PublicVector,
    /// `z = prox_{γr}(ẑ)`, which is the model.
    model: PublicVector,
    linear: Vec<f64>,
}

impl TokenAdmm {
    /// The start, with everything at zero.
    fn new(start: &AlgorithmInputs<'_>) -> Self {
        let zero = PublicVector::zeros(start.n_features);
        let inverse_step = step::primal_quadratic(start.penalty, start.n_agents - 1);
        Self {
            site: start.site,
            n_agents: start.n_agents,
            walk: token_walk(start.n_agents, start.settings.rounds),
            inverse_step,
            relaxation: start.settings.own.value(&RELAXATION),
            no_penalty: RegularizerTerm::none(),
            prox: start.regularizer.prox_by_coordinate(1.0 / inverse_step, start.n_features),
            memory: zero.clone(),
            token: zero.clone(),
            model: zero,
            linear: vec![],
        }
    }

    /// The step that a turn belongs to, from 0, and whether it is the step's first turn.
    fn step_of(turn: u32) -> (usize, bool) {
        ((turn as usize - 1) / 2, turn % 2 == 1)
    }

    fn acts_in(&self, step: usize) -> usize {
        self.walk[step] as usize
    }

    /// Place of `site` among this agent's neighbours, which are all the others in order.
    fn slot(&self, site: usize) -> Peers {
        Peers::Only(if site < self.site { site } else { site - 1 })
    }

    /// `−(2z − u_i)/γ`, into `self.linear`.
    fn linear_term(&mut self) -> &[f64] {
        let pull = |(z, u): (&f64, &f64)| -self.inverse_step * (2.0 * z - u);
        self.linear.clear();
        self.linear.extend(self.model.as_slice().iter().zip(self.memory.as_slice()).map(pull));
        &self.linear
    }

    fn take_token(&mut self) {
        self.model.clone_from(&self.token);
        let (thresholds, factors) = &self.prox;
        self.model.rewrite(|model| shrink(model, thresholds, factors));
    }
}

/// The proximal step of a public regulariser, coordinate by coordinate:
///
/// ```text
/// v_j <- factors_j * sign(v_j) * max(|v_j| - thresholds_j, 0)
/// ```
fn shrink(values: &mut [f64], thresholds: &[f64], factors: &[f64]) {
    for ((value, threshold), factor) in values.iter_mut().zip(thresholds).zip(factors) {
        *value = factor * (value.abs() - threshold).max(0.0).copysign(*value);
    }
}

/// Whom the token visits: a random order of all agents for every round, one after the other. Public.
pub fn token_walk(n_agents: usize, rounds: u32) -> Vec<u32> {
    let mut seed = PublicSeed::new(WALK_SEED);
    let mut order: Vec<u32> = (0..n_agents as u32).collect();
    let mut walk = Vec::with_capacity(n_agents * rounds as usize);
    for _ in 0..rounds {
        seed.shuffle(&mut order);
        walk.extend_from_slice(&order);
    }
    walk
}

impl Algorithm for TokenAdmm {
    fn turns_per_round(&self) -> u32 {
        2 * self.n_agents as u32
    }

    /// In a step's first turn the agent that holds the token acts; in the second it passes the token on, and after the last step
    /// shows it to everybody.
    fn action(&self, turn: u32) -> TurnAction {
        let (step, is_first) = Self::step_of(turn);
        let acts = self.acts_in(step) == self.site;
        if is_first {
            return if acts {
                TurnAction { emission: Emission::Release, ..TurnAction::IDLE }
            } else {
                TurnAction::IDLE
            };
        }
        let Some(&next) = self.walk.get(step + 1) else {
            return if acts {
                TurnAction { emission: Emission::Derived, to: Peers::All, hears: Peers::Nobody }
            } else {
                TurnAction { hears: self.slot(self.acts_in(step)), ..TurnAction::IDLE }
            };
        };
        match (acts, next as usize == self.site) {
            (true, false) => {
                TurnAction { emission: Emission::Derived, to: self.slot(next as usize), hears: Peers::Nobody }
            }
            (false, true) => TurnAction { hears: self.slot(self.acts_in(step)), ..TurnAction::IDLE },
            // Nobody passes the token to itself.
            _ => TurnAction::IDLE,
        }
    }

    fn demand(&mut self, _round: u32) -> Option<Demand> {
        let linear = norm_up(self.linear_term());
        Some(Demand::Solve { linear, quadratic: self.inverse_step })
    }

    fn compute(&mut self, round: u32, _drawn: &Drawn, local: Local<'_>) -> Result<Computed, AgentError> {
        self.linear_term();
        let parts = [local.problem.part()];
        let loss = local.problem.loss;
        let objective = Objective::new(&parts, loss, &self.no_penalty, &self.linear, self.inverse_step);
        local.solve(round, objective)
    }

    fn derive(&mut self, _turn: u32) -> PublicVector {
        self.token.clone()
    }

    fn finish_turn(&mut self, turn: u32, own: Option<&PublicVector>, others: &[Arc<PublicVector>]) {
        if let (Some(release), (_, true)) = (own, Self::step_of(turn)) {
            let factor = 2.0 * self.relaxation;
            self.memory.add_scaled_difference(factor, release, &self.model);
            self.token.add_scaled_difference(factor / self.n_agents as f64, release, &self.model);
            self.take_token();
        }
        if let [token] = others {
            self.token.clone_from(token);
            self.take_token();
        }
    }

    fn model(&self) -> &PublicVector {
        &self.model
    }

    fn modulus(&self, _strong_convexity: f64) -> f64 {
        self.inverse_step
    }

    /// `u_i`, which plays the dual's part.
    fn dual(&self) -> &PublicVector {
        &self.memory
    }
}

impl AlgorithmSpec for Token {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "token",
            title: "token ADMM",
            reference: "Cyffers, Bellet, Basu 2023, corrected",
            summary: "a token visits one agent after the other; accounted for whoever sees all messages",
            needs: Needs::SeparableRegularizer,
            graph: GraphNeeded::Complete,
            guarantee: Guarantee::ExactGaussian,
            uses: &[],
            own: &[RELAXATION],
            between_sites: false,
            survives_loss: false,
        }
    }

    /// P-ADMM's noise for the sensitivity `2B/(n/γ)` of the proximal point: every agent acts once a round.
    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        let bare = site.without_noise(step::primal_quadratic(site.penalty, site.n_agents - 1));
        let flat = Decay::new(site.settings().rounds, 1.0)?;
        let schedule = padmm::gaussian(site, site.sensitivity(&bare)?, flat, None)?;
        Ok(bare.with_noise(schedule))
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(TokenAdmm::new(inputs))
    }

    fn demand(
        &self,
        _site: &CalibrationInputs<'_>,
        calibration: &SiteCalibration,
        size: f64,
        walk: f64,
    ) -> Option<Demand> {
        let quadratic = calibration.modulus;
        Some(Demand::Solve { linear: quadratic * (3.0 * size + walk), quadratic })
    }

    /// The token's side applies the regulariser.
    fn local_regularizer(&self, _regularizer: RegularizerTerm) -> RegularizerTerm {
        RegularizerTerm::none()
    }
}

impl From<Token> for AlgorithmKind {
    fn from(_: Token) -> Self {
        TOKEN
    }
}
