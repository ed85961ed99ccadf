//! Accounting alone: what rounds of Gaussian noise cost together, and how much noise a budget asks for.
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use padmm::baselines::accounting::{Accountant, GdpAccountant, ZcdpAccountant, ZcdpConversion};
use padmm::privacy::{Budget, Delta, Event, PrivacyError};

fn main() -> Result<(), PrivacyError> {
    let delta = Delta::new(1e-5)?;
    let mut exact = GdpAccountant::new();
    let mut paper = ZcdpAccountant::new(ZcdpConversion::Paper);
    for round in 1..=50 {
        // Noise that shrinks from round to round, in units of the sensitivity.
        let event = Event::Gaussian { sensitivity: 1.0, noise_std: 20.0 * 0.995_f64.powi(round - 1) };
        exact.compose(&event)?;
        paper.compose(&event)?;
    }
    println!("50 rounds: ε = {} exactly, {} by the paper", exact.epsilon(delta), paper.epsilon(delta));
    assert!(exact.epsilon(delta) < paper.epsilon(delta));

    let budget = Budget::new(1.0, 1e-5)?;
    let mu = padmm::privacy::gdp_mu(budget).value();
    println!("ε = 1 over 50 rounds of equal noise: {:.1} times the sensitivity", 50_f64.sqrt() / mu);
    Ok(())
}
