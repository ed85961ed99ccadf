//! What the events of the compared methods cost in zCDP.

use padmm_core::plan::not_pure;
use padmm_privacy::outward::{add_up, div_up, mul_up, sqrt_up};
use padmm_privacy::{Event, PrivacyError, ZcdpRho, require};

/// The charge of any event in zCDP, rounded up.
///
/// ```text
/// Gaussian:           rho = sensitivity^2 / (2 noise_std^2)             (Event::rho)
/// PureDp:             rho = epsilon^2 / 2                               (Bun, Steinke 2016)
/// GaussianObjective:  rho = jacobian + shift sqrt(2/pi) + shift^2 / 2
/// ```
///
/// NaN, negative numbers and [`Event::NonPrivate`] are errors, never a charge.
///
/// Proof of the third. With s the shift, the divergence of order a > 1 is at most
/// `jacobian + a s^2/2 + ln(2 Phi((a-1) s))/(a-1)` (module `gaussian_objective_schedule`). `ln(2 Phi(t))` is concave in t, as Phi is
/// log-concave, vanishes at t = 0 and has the slope `phi(0)/Phi(0) = sqrt(2/pi)` there, so it is at most `t sqrt(2/pi)` for
/// t >= 0. Hence the divergence is at most `jacobian + s sqrt(2/pi) + a s^2/2`, and since a >= 1 that is at most a times
/// the charge. Unlike the other two this charge is linear in s: many small steps are cheaper by Renyi divergences.
pub fn charge(event: &Event) -> Result<ZcdpRho, PrivacyError> {
    let not_negative =
        |name, value: f64| require(value >= 0.0 && value.is_finite(), name, value, "finite and >= 0");
    match *event {
        Event::Gaussian { .. } => event.rho(),
        Event::PureDp { epsilon } => {
            not_negative("epsilon", epsilon)?;
            ZcdpRho::new(mul_up(0.5, mul_up(epsilon, epsilon)))
        }
        Event::GaussianObjective { shift, jacobian } => {
            not_negative("shift", shift)?;
            not_negative("jacobian", jacobian)?;
            let square = mul_up(0.5, mul_up(shift, shift));
            ZcdpRho::new(add_up(add_up(jacobian, folded_mean_up(shift)), square))
        }
        Event::NonPrivate => Err(PrivacyError::Compared {
            reason: "a release without noise has no charge; choose a private mechanism".to_owned(),
            is_budget: false,
        }),
    }
}

/// `s sqrt(2/pi)`, rounded up: the mean of the absolute value of a Gaussian with standard deviation s.
pub(super) fn folded_mean_up(shift: f64) -> f64 {
    mul_up(shift, sqrt_up(div_up(2.0, std::f64::consts::PI)))
}

/// The epsilon of a pure event with its charge in zCDP, for accountants that know no other.
pub(super) fn pure_epsilon(event: &Event, accountant: &str) -> Result<(f64, f64), PrivacyError> {
    match *event {
        Event::PureDp { epsilon } => Ok((epsilon, charge(event)?.value())),
        _ => Err(not_pure(accountant)),
    }
}
