//! Renyi divergences of what a round may do, added up order by order, and the epsilon that they amount to.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use std::f64::consts::FRAC_1_SQRT_2;

use padmm_privacy::outward::{add_up, ln_down, mul_up};
use padmm_privacy::{
    Delta, Event, PrivacyError, ZcdpRho, paper_epsilon, renyi_epsilon_at, smallest_over_orders,
};

use super::charge::{charge, folded_mean_up};

/// How far back an equal event is looked for; grouping saves time and changes nothing else.
const RECENT: usize = 8;

/// The divergence of order `a = 1 + order_minus_one` between the two answers of an epsilon-private mechanism, rounded up.
///
/// ```text
/// D_a = [ln cosh((a - 1/2) epsilon) - ln cosh(epsilon/2)] / (a - 1)
/// ```
///
/// Guarantee: no epsilon-private mechanism exceeds it, for each is a post-processing of randomised response (Kairouz, Oh,
/// Viswanath 2015), whose divergence this is. With `h = (a - 1) epsilon` the bracket is
/// `ln(cosh h + tanh(epsilon/2) sinh h)`, which is formed without cancellation: below h = 1 by `log1p` of positive terms,
/// above it by `h + ln(1 + e^(-epsilon - 2h)) - ln(1 + e^-epsilon)`. About 12 units in the last place are lost; 32 go on top.
pub(crate) fn pure_divergence_up(epsilon: f64, order_minus_one: f64) -> f64 {
    let h = order_minus_one * epsilon;
    let log_ratio = if h < 1.0 {
        let half = libm::sinh(0.5 * h);
        libm::log1p(2.0 * half * half + libm::tanh(0.5 * epsilon) * libm::sinh(h))
    } else {
        h + libm::log1p(libm::exp(-epsilon - 2.0 * h)) - libm::log1p(libm::exp(-epsilon))
    };
    // The divergence never exceeds epsilon, and `min` also disposes of an order that overflowed.
    (log_ratio / order_minus_one * (1.0 + 32.0 * f64::EPSILON)).min(epsilon)
}

/// The divergence of order `a = 1 + order_minus_one` of Gaussian objective perturbation, rounded up.
///
/// ```text
/// D_a = jacobian + a s^2/2 + ln(2 Phi((a - 1) s)) / (a - 1),   s = shift
/// ```
///
/// The proof is in the module `gaussian_objective`. `2 Phi(z) = 1 + erf(z/sqrt 2)`, so the logarithm is a `log1p` without
/// cancellation; it is at most `s sqrt(2/pi)` after the division, see [`charge`].
pub(crate) fn objective_divergence_up(shift: f64, jacobian: f64, order_minus_one: f64) -> f64 {
    let fold = libm::log1p(libm::erf(order_minus_one * shift * FRAC_1_SQRT_2)) / order_minus_one;
    let fold = (fold * (1.0 + 16.0 * f64::EPSILON)).min(folded_mean_up(shift));
    let square = mul_up(add_up(1.0, order_minus_one), 0.5 * mul_up(shift, shift));
    add_up(add_up(jacobian, square), fold)
}

/// Everything composed so far, as one divergence curve. Equal events that follow each other are kept once with their number.
#[derive(Debug, Clone, Default)]
pub(crate) struct RenyiCurve {
    /// Sum of zCDP charges of Gaussian events.
    gaussian_rho: f64,
    /// Epsilon of each pure event, and how many of them.
    pure: Vec<(f64, f64)>,
    /// Shift and Jacobian of each noisy objective, and how many of them.
    objective: Vec<(f64, f64, f64)>,
    /// Sum of the zCDP charges of all events, Gaussian or not.
    rho: f64,
}

impl RenyiCurve {
    /// Adds an event, or refuses it and stays as it was.
    pub(crate) fn add(&mut self, event: &Event) -> Result<(), PrivacyError> {
        self.add_many(event, 1)
    }

    /// Adds the same event `count` times.
    pub(crate) fn add_many(&mut self, event: &Event, count: u32) -> Result<(), PrivacyError> {
        let rho = charge(event)?.value();
        let charged = if count == 1 { rho } else { mul_up(f64::from(count), rho) };
        let count = f64::from(count);
        let rho = ZcdpRho::new(add_up(self.rho, charged))?.value();
        match *event {
            Event::Gaussian { .. } => self.gaussian_rho = add_up(self.gaussian_rho, charged),
            Event::PureDp { epsilon } => {
                match self.pure.iter_mut().rev().take(RECENT).find(|p| p.0 == epsilon) {
                    Some(known) => known.1 += count,
                    None => self.pure.push((epsilon, count)),
                }
            }
            Event::GaussianObjective { shift, jacobian } => {
                match self.objective.iter_mut().rev().take(RECENT).find(|o| o.0 == shift && o.1 == jacobian) {
                    Some(known) => known.2 += count,
                    None => self.objective.push((shift, jacobian, count)),
                }
            }
            Event::NonPrivate => unreachable!("an event without a charge was refused above"),
        }
        self.rho = rho;
        Ok(())
    }

    /// The sum of zCDP charges, rounded up.
    pub(crate) fn rho(&self) -> ZcdpRho {
        ZcdpRho::new(self.rho).expect("checked when the last event was added")
    }

    /// The divergence of order `1 + order_minus_one` of everything composed, adaptively or not, rounded up.
    fn divergence_up(&self, order_minus_one: f64) -> f64 {
        let gaussian = (1.0 + order_minus_one) * self.gaussian_rho;
        let pure = self.pure.iter().map(|&(epsilon, n)| n * pure_divergence_up(epsilon, order_minus_one));
        let objective = self
            .objective
            .iter()
            .map(|&(shift, jacobian, n)| n * objective_divergence_up(shift, jacobian, order_minus_one));
        let sum = gaussian + pure.sum::<f64>() + objective.sum::<f64>();
        // All terms are positive, so adding them up loses at most a unit in the last place each.
        let roundings = (8 + 2 * (self.pure.len() + self.objective.len())) as f64;
        sum * (1.0 + roundings * f64::EPSILON)
    }

    /// The epsilon at `delta` by the best order, rounded up.
    ///
    /// ```text
    /// epsilon = min over a > 1 of D_a + ln((a - 1)/a) - (ln delta + ln a)/(a - 1)
    /// ```
    ///
    /// (Canonne, Kamath, Steinke 2020, Proposition 12.) Every order is valid, so the search needs no guarantee of its own.
    /// The zCDP charge bounds the curve as well, and so does the plain sum where all events are pure; the smallest counts.
    pub(crate) fn epsilon(&self, delta: Delta) -> f64 {
        if self.rho == 0.0 {
            return 0.0;
        }
        let log_inverse = -ln_down(delta.value());
        // The search is around the best order of a purely quadratic curve; the Jacobian parts are constant in the order. Pure
        // curves level off, which for few steps and a small delta moves the best order far up.
        let square = |x: f64, n: f64| 0.5 * n * x * x;
        let pure: f64 = self.pure.iter().map(|&(epsilon, n)| square(epsilon, n)).sum();
        let objective: f64 = self.objective.iter().map(|&(shift, _, n)| square(shift, n)).sum();
        let quadratic = (self.gaussian_rho + pure + objective).max(f64::MIN_POSITIVE);
        let centre = 0.5 * libm::log(log_inverse.max(1e-3) / quadratic);
        let at = |log_order: f64| {
            let order_minus_one = libm::exp(log_order);
            renyi_epsilon_at(self.divergence_up(order_minus_one), log_inverse, order_minus_one)
        };
        let best = smallest_over_orders(centre - 12.0, centre + 30.0, at)
            .min(paper_epsilon(self.rho(), delta).value());
        best.min(self.basic_up().unwrap_or(f64::INFINITY)).max(0.0)
    }

    /// The sum of all epsilons, rounded up, if all events are pure.
    fn basic_up(&self) -> Option<f64> {
        let pure_only = self.gaussian_rho == 0.0 && self.objective.is_empty();
        pure_only.then(|| self.pure.iter().fold(0.0, |sum, &(epsilon, n)| add_up(sum, mul_up(n, epsilon))))
    }
}
