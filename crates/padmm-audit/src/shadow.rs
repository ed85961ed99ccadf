//! What the attacked site would have computed with either label, from what everybody in the run knows.
//!
//! The attacker follows the site's public state with its own arithmetic, in closed form; it shares no code with the site.

use std::f64::consts::FRAC_1_SQRT_2;

use padmm_core::calibration::Calibration;

use crate::canary::{Attacked, WIDTH};
use crate::target::Scene;

/// The public state of the attacked site, coordinate by coordinate, with one neighbour.
#[derive(Clone, Debug)]
pub struct Shadow {
    kind: Attacked,
    penalty: f64,
    n_records: f64,
    /// `1/τ_k` of an algorithm that takes gradient steps.
    inverse_steps: Vec<f64>,
    relaxation: f64,
    /// What the site released last.
    own: Vec<f64>,
    /// What its neighbour said last; the token, for the algorithm that has one.
    other: Vec<f64>,
    /// The dual; the token algorithm's memory.
    dual: Vec<f64>,
}

impl Shadow {
    /// Before the first round, where everything is zero.
    pub fn new(scene: &Scene, calibration: &Calibration) -> Self {
        let settings = scene.plan.settings();
        let zeros = vec![0.0; scene.space.n_features()];
        Self {
            kind: Attacked::by(settings.algorithm).expect("a scene has a canary"),
            penalty: calibration.penalty,
            n_records: scene.n_records[scene.site] as f64,
            inverse_steps: calibration.agents[scene.site].inverse_steps.clone(),
            relaxation: settings.own_value("relaxation").unwrap_or_default(),
            own: zeros.clone(),
            other: zeros.clone(),
            dual: zeros,
        }
    }

    /// The un-noised point of `round` in coordinate `j` if that record's label is `label`.
    ///
    /// ```text
    /// hinge:     x = z·max(zu, min(1, zu + 1/(nm))),  u = −linear/m      the minimiser of max(1 − zx, 0)/n + linear·x + ½m·x²
    /// gradient:  x = (center + z·s/n)/weight,  s = min(max((1 + h − z·x̃)/(2h), 0), 1)
    /// clipped:   −z, the slope's sign at zero; of moments, (1 or 0) less (0 or 1) as [`Shadow::view`] shows them
    /// ```
    pub fn point(&self, round: u32, j: usize, label: f64) -> f64 {
        let (own, other, dual) = (self.own[j], self.other[j], self.dual[j]);
        let inverse = |round: u32| {
            let steps = &self.inverse_steps;
            steps[(round as usize - 1).min(steps.len() - 1)]
        };
        match self.kind {
            Attacked::MomentsAndGradients if round == 1 => label * FRAC_1_SQRT_2,
            Attacked::Gradients | Attacked::MomentsAndGradients => -label,
            Attacked::Token => self.hinge(2.0 * other - dual, 2.0 * self.penalty, label),
            Attacked::GradientStep => {
                let center = inverse(round) * own - dual + self.penalty * (own + other);
                self.step(center, 2.0 * self.penalty + inverse(round), own, label)
            }
            Attacked::Server => {
                let center = dual + self.penalty * other + inverse(round) * own;
                self.step(center, self.penalty + inverse(round), own, label)
            }
            Attacked::Solve => {
                let modulus = 2.0 * self.penalty;
                self.hinge((self.penalty * (own + other) - dual) / modulus, modulus, label)
            }
        }
    }

    fn hinge(&self, center: f64, modulus: f64, label: f64) -> f64 {
        let margin = label * center;
        label * margin.max((margin + 1.0 / (self.n_records * modulus)).min(1.0))
    }

    fn step(&self, center: f64, weight: f64, at: f64, label: f64) -> f64 {
        let slope = ((1.0 + WIDTH - label * at) / (2.0 * WIDTH)).clamp(0.0, 1.0);
        (center + label * slope / self.n_records) / weight
    }

    /// A release as one number for each test, with noise of the release's own deviation: all that it says about the secrets.
    ///
    /// A release of moments has two coordinates for a record, `y` and `1 − y`. The secret is in their difference, divided by √2.
    pub fn view(&self, round: u32, release: &[f64]) -> Vec<f64> {
        if self.kind != Attacked::MomentsAndGradients || round > 1 {
            return release.to_vec();
        }
        let (positive, negative) = release.split_at(release.len() / 2);
        positive.iter().zip(negative).map(|(p, n)| (p - n) * FRAC_1_SQRT_2).collect()
    }

    /// Follows a release of the site; the token and its memory move with it.
    pub fn released(&mut self, release: &[f64]) {
        if self.kind.releases_sums() {
            return;
        }
        if self.kind == Attacked::Token {
            let factor = 2.0 * self.relaxation;
            for ((x, token), memory) in release.iter().zip(&mut self.other).zip(&mut self.dual) {
                let moved = x - *token;
                *memory += factor * moved;
                *token += factor / 2.0 * moved;
            }
        }
        self.own.copy_from_slice(release);
    }

    /// Its neighbour has said this, and the round is over.
    pub fn heard(&mut self, said: &[f64]) {
        let step = match self.kind {
            // The token moves with releases alone, and a public point that is held at zero does not move.
            Attacked::Token | Attacked::Gradients | Attacked::MomentsAndGradients => return,
            // y ← y − η(x̃ − w)
            Attacked::Server => -self.penalty,
            // λ ← λ + η(x̃ − x̃_j)
            Attacked::Solve | Attacked::GradientStep => self.penalty,
        };
        self.other.copy_from_slice(said);
        for ((dual, own), other) in self.dual.iter_mut().zip(&self.own).zip(&self.other) {
            *dual += step * (own - other);
        }
    }

    /// What the site has to say without its records: the token.
    pub fn derived(&self) -> &[f64] {
        &self.other
    }
}
