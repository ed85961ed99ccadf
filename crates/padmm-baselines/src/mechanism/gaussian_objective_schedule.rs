//! Gaussian objective perturbation (experimental): a schedule, and the proof of what it costs.
//!
//! In each round the site draws `b ~ N(0, noise_std^2 I)`, fresh and independent, and releases the exact minimiser x of its
//! m-strongly convex objective with `<b, x>` added. A record enters the objective as `L(u . x)/n` with `|L'| <= L1`,
//! `0 <= L'' <= c1`, `|u| <= S`; B = L1 S. With `s = 2B/(n noise_std)` and `chi = c1 S^2/(n m)`, for every order a > 1:
//!
//! ```text
//! D_a <= ln(1 + chi) + a s^2/2 + ln(2 Phi((a - 1) s)) / (a - 1)
//! ```
//!
//! Proof. Let D, D' differ in one record, u against u', and let p, q be the densities of x. As in Lemma B
//! ([`ObjectiveInputs::jacobian`]) `p(x) = nu(b_D(x)) det H_D(x)`, and the determinants contribute at most `1 + chi` to p/q.
//! Take x from p. Then `b = b_D(x)` is the noise that was drawn, and `b_D'(x) = b + g` with
//! `g = (L'(u.x) u - L'(u'.x) u')/n`, because both are minus a gradient at the same x. For the Gaussian density
//!
//! ```text
//! ln nu(b)/nu(b + g) = <b, g>/noise_std^2 + |g|^2/(2 noise_std^2)
//! ```
//!
//! and `|g| <= 2B/n` bounds the second term by `s^2/2`. In the first, g depends on x and so on b; but u and u' do not, and
//! `<b, g> <= (L1/n) (|<b, u>| + |<b, u'>|)`. Put `X = L1 <b, u>/(n noise_std^2)` and X' likewise: centred Gaussians with
//! standard deviations of at most `L1 S/(n noise_std) = s/2`. With t = a - 1 and Cauchy-Schwarz,
//!
//! ```text
//! E (p/q)^t <= (1 + chi)^t e^(t s^2/2) E e^(t|X| + t|X'|) <= (1 + chi)^t e^(t s^2/2) sqrt(E e^(2t|X|) E e^(2t|X'|))
//! E e^(r|X|) = 2 e^(r^2 v^2/2) Phi(r v) for X ~ N(0, v^2), which grows with v; at r = 2t, v = s/2: 2 e^(t^2 s^2/2) Phi(t s)
//! ```
//!
//! so `E (p/q)^t <= (1 + chi)^t e^(t s^2/2 + t^2 s^2/2) 2 Phi(t s)`. Taking logarithms and dividing by t gives the claim, as
//! `s^2/2 + t s^2/2 = a s^2/2`. The roles of D and D' may be exchanged. Given the transcript a round depends on the data
//! through x alone, and b is fresh, so divergences add up over rounds, adaptively. QED
//!
//! The term `a s^2/2` alone, as for Gaussian noise on an output, would not be justified: g is correlated with b.

use padmm_privacy::outward::{add_up, div_up, mul_up};
use padmm_privacy::{
    Adjacency, Budget, Delta, Event, ExactMethod, Mechanism, Premise, PrivacyError, PrivacyReport,
    RequiredCertificate, Schedule, SensitivityBasis, SpentEpsilon, Stopping, ZcdpRho, check_features,
    paper_epsilon, require, rho_to_mu,
};
use serde::Serialize;

use crate::accounting::charge;
use crate::accounting::composition::{SEARCH_PRECISION, largest_within};
use crate::accounting::renyi::RenyiCurve;
use crate::mechanism::ObjectiveInputs;
use crate::mechanism::ObjectivePerturbation;
use crate::mechanism::refusal::jacobian_spends_budget;

/// What Gaussian noise on the objective is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianObjectiveRequest {
    /// What one site may spend over the whole run.
    pub budget: Budget,
    /// What the charge is derived from.
    pub inputs: ObjectiveInputs,
    /// Strong convexity of every round's problem.
    pub modulus: f64,
    /// Rounds; all of them use data.
    pub rounds: u32,
    /// Coordinates of the noise, and of a release.
    pub n_features: usize,
}

/// The same Gaussian noise in every round, and what it adds up to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GaussianObjectiveSchedule {
    inputs: ObjectiveInputs,
    modulus: f64,
    rounds: u32,
    n_features: usize,
    delta: Delta,
    /// `2B/n`, rounded up: how far one record moves the gradient.
    distance: f64,
    noise_std: f64,
    event: Event,
    rho_total: ZcdpRho,
    epsilon: f64,
}

impl GaussianObjectiveSchedule {
    /// EQUATIONS §5 for Gaussian objective perturbation: the least noise, up to rounding, that the budget allows by Renyi divergences.
    ///
    /// ```text
    /// noise_std = (2B/n) / s,   s the largest for which K divergences (module documentation) give at most epsilon
    /// ```
    ///
    /// Guarantee: the noise is rounded up, the shift that is charged is computed upward from that noise, and its epsilon,
    /// rounded up, is at most `budget.epsilon` at `budget.delta`.
    pub fn calibrate(request: &GaussianObjectiveRequest) -> Result<Self, PrivacyError> {
        let &GaussianObjectiveRequest { budget, inputs, modulus, rounds, n_features } = request;
        let budget = budget.checked()?;
        check_features(n_features)?;
        require((1..=1_000_000).contains(&rounds), "rounds", f64::from(rounds), "between 1 and 1000000")?;
        let (distance, jacobian) = (inputs.shift()?, inputs.jacobian(modulus)?);
        let priced = |shift: f64| -> Result<(f64, Event, RenyiCurve), PrivacyError> {
            let noise_std = div_up(distance, shift);
            require(noise_std.is_normal(), "noise_std", noise_std, "a positive double; rescale the data")?;
            let event = Event::GaussianObjective { shift: div_up(distance, noise_std), jacobian };
            let mut curve = RenyiCurve::default();
            curve.add_many(&event, rounds)?;
            Ok((noise_std, event, curve))
        };
        let epsilon = budget.epsilon.value();
        let cost =
            |shift: f64| priced(shift).map_or(f64::INFINITY, |(.., curve)| curve.epsilon(budget.delta));
        let start = (epsilon / f64::from(rounds)).min(1.0);
        let Some(shift) = largest_within(epsilon, start, SEARCH_PRECISION, cost) else {
            let spent = mul_up(f64::from(rounds), jacobian);
            return Err(jacobian_spends_budget(rounds, spent, epsilon));
        };
        let (noise_std, event, curve) = priced(shift)?;
        // One by one, as a ledger adds them up.
        let charge = charge(&event)?.value();
        let rho_total = ZcdpRho::new((0..rounds).fold(0.0, |sum, _| add_up(sum, charge)))?;
        Ok(Self {
            inputs,
            modulus,
            rounds,
            n_features,
            delta: budget.delta,
            distance,
            noise_std,
            event,
            rho_total,
            epsilon: curve.epsilon(budget.delta),
        })
    }

    /// How many rounds the budget was spread over; all of them use data.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Standard deviation of every coordinate of the noise, in every round; rounded up.
    pub fn noise_std(&self) -> f64 {
        self.noise_std
    }

    /// What round `round` does to the data; `None` outside the schedule.
    pub fn event(&self, round: u32) -> Option<Event> {
        (1..=self.rounds).contains(&round).then_some(self.event)
    }

    /// What all rounds cost in zCDP, rounded up.
    pub fn rho_total(&self) -> ZcdpRho {
        self.rho_total
    }

    /// What the charge is derived from.
    pub fn inputs(&self) -> &ObjectiveInputs {
        &self.inputs
    }

    /// Strong convexity that the charge is derived with.
    pub fn modulus(&self) -> f64 {
        self.modulus
    }

    /// What one record can change: the shift `2B/n` of the gradient.
    pub fn distance(&self) -> f64 {
        self.distance
    }

    /// The delta at which epsilons are reported.
    pub fn delta(&self) -> Delta {
        self.delta
    }

    /// Coordinates of the noise, and of a release.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Epsilon after each round: by Renyi divergences, and through zCDP.
    pub fn epsilon_curve(&self) -> Vec<SpentEpsilon> {
        let (mut curve, mut rho) = (RenyiCurve::default(), 0.0);
        let charge = self.rho(1);
        let after = |round: u32| {
            curve.add(&self.event).expect("part of a sum that was checked");
            rho = add_up(rho, charge);
            let spent = ZcdpRho::new(rho).expect("part of a sum that was checked");
            // A beginning of a run is a post-processing of the run, so it costs no more.
            let exact =
                if round == self.rounds { self.epsilon } else { curve.epsilon(self.delta).min(self.epsilon) };
            SpentEpsilon { exact, paper: paper_epsilon(spent, self.delta).value() }
        };
        (1..=self.rounds).map(after).collect()
    }

    /// Everything that a reader of the guarantee needs.
    pub fn report(&self) -> PrivacyReport {
        let multiplier = self.noise_std / self.distance;
        PrivacyReport {
            adjacency: Adjacency::ReplaceOne,
            epsilon_exact: self.epsilon,
            exact_method: ExactMethod::Rdp,
            epsilon_paper: paper_epsilon(self.rho_total, self.delta).value(),
            delta: self.delta.value(),
            delta_slack: 0.0,
            rho_total: self.rho_total.value(),
            mu: rho_to_mu(self.rho_total).value(),
            noise_std_first: self.noise_std,
            noise_std_last: self.noise_std,
            noise_multiplier_first: multiplier,
            noise_multiplier_last: multiplier,
            sensitivity: self.distance,
            sensitivity_basis: SensitivityBasis::Record,
            grid_bits: 0,
            rounds: self.rounds,
            rounds_charged: self.rounds,
            decay: 1.0,
            compositions: None,
            noise_is_exact: false,
            stopping: Stopping::SolverMayStall,
        }
    }
}

impl Schedule for GaussianObjectiveSchedule {
    fn rounds(&self) -> u32 {
        self.rounds
    }

    fn n_features(&self) -> usize {
        self.n_features
    }

    fn event(&self, round: u32) -> Option<Event> {
        self.event(round)
    }

    fn rho(&self, round: u32) -> f64 {
        let of = |event| charge(&event).expect("checked when the schedule was made").value();
        self.event(round).map_or(0.0, of)
    }

    fn noise_std(&self, round: u32) -> Option<f64> {
        self.event(round).map(|_| self.noise_std)
    }

    fn epsilon_curve(&self) -> Vec<SpentEpsilon> {
        self.epsilon_curve()
    }

    fn report(&self) -> PrivacyReport {
        self.report()
    }

    fn premise(&self) -> Option<Premise> {
        Some(self.inputs.premise(self.modulus))
    }

    fn mechanism(&self, required: RequiredCertificate) -> Result<Box<dyn Mechanism>, PrivacyError> {
        Ok(Box::new(ObjectivePerturbation::gaussian(self.clone(), required)?))
    }
}
