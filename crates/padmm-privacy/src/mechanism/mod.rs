//! Mechanisms: noise and its price in one value, so that one cannot be used without the other.

pub(crate) mod gamma;
mod gamma_output;
mod grid_gaussian;
mod objective;
mod payload;
mod unprotected;

pub use gamma_output::GammaOutput;
pub use grid_gaussian::{GridGaussian, RequiredCertificate};
pub use objective::ObjectivePerturbation;
pub use payload::Payload;
pub use unprotected::Unprotected;

use std::fmt;

use crate::error::{PrivacyError, require};
use crate::event::Event;
use crate::report::PrivacyReport;
use crate::sample::NoiseSource;
use crate::sensitivity::Sensitivity;

/// What turns a computed point into something that may leave. The gate calls the parts in a fixed order.
///
/// An implementation is trusted: what [`Mechanism::describe`] says must be true of what [`Mechanism::seal`] returns.
pub trait Mechanism: Send {
    /// What the release of `round` will do to the data; does not look at data.
    fn describe(&self, round: u32) -> Result<Event, PrivacyError>;

    /// Draws the noise of `round`; does not look at data, so its timing cannot depend on any.
    fn draw(&self, round: u32, source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError>;

    /// Checks the certificate and the range, adds the noise, and returns what may leave, or an error and nothing.
    fn seal(&self, round: u32, certified: &Certified, drawn: Drawn) -> Result<Payload, PrivacyError>;

    /// The guarantee over all rounds; `None` if there is none.
    fn report(&self) -> Option<PrivacyReport>;

    /// Whether the guarantee holds for the very bytes that leave, finite precision of noise and solver included. Where it
    /// does not, the mechanism is for comparison in simulation.
    fn is_exact(&self) -> bool;
}

/// A solver's result with its certificate. `Debug` hides it: it is computed from records and has no noise yet.
#[derive(Clone)]
pub struct Certified {
    /// The point.
    pub point: Vec<f64>,
    /// Norm of the (sub)gradient at the point: the exact minimiser is within `residual / modulus` of it.
    pub residual: f64,
}

impl fmt::Debug for Certified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certified(hidden)")
    }
}

/// Noise that was drawn for one round. Not `Clone`: sealing consumes it. `Debug` hides it.
///
/// Output perturbation keeps the noise out of reach of the computation; objective perturbation has to show it.
pub struct Drawn {
    round: u32,
    noise: Noise,
}

pub(crate) enum Noise {
    None,
    Hidden(Vec<i64>),
    HiddenReal(Vec<f64>),
    Visible(Vec<f64>),
}

impl Drawn {
    /// Noise that the computation may see, for mechanisms that perturb the objective.
    pub fn visible(round: u32, noise: Vec<f64>) -> Self {
        Self { round, noise: Noise::Visible(noise) }
    }

    /// Noise that only the mechanism's own seal can open.
    pub(crate) fn hidden(round: u32, noise: Vec<i64>) -> Self {
        Self { round, noise: Noise::Hidden(noise) }
    }

    /// The same for noise that is not on a grid.
    pub(crate) fn hidden_real(round: u32, noise: Vec<f64>) -> Self {
        Self { round, noise: Noise::HiddenReal(noise) }
    }

    pub(crate) fn nothing(round: u32) -> Self {
        Self { round, noise: Noise::None }
    }

    /// The round that this was drawn for.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// The noise, where the mechanism perturbs the objective; `None` where it perturbs the output.
    pub fn visible_noise(&self) -> Option<&[f64]> {
        match &self.noise {
            Noise::Visible(noise) => Some(noise),
            Noise::None | Noise::Hidden(_) | Noise::HiddenReal(_) => None,
        }
    }

    pub(crate) fn into_noise(self) -> Noise {
        self.noise
    }
}

impl fmt::Debug for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Drawn(round {}, hidden)", self.round)
    }
}

/// Length and finiteness of a point that is about to be sealed.
fn check_point(point: &[f64], n_features: usize) -> Result<(), PrivacyError> {
    if point.len() != n_features {
        return Err(PrivacyError::WrongLength { expected: n_features, found: point.len() });
    }
    if point.iter().all(|value| value.is_finite()) { Ok(()) } else { Err(PrivacyError::NotFinite) }
}

/// What may be required of a solver at all.
fn check_required(required: RequiredCertificate) -> Result<(), PrivacyError> {
    let RequiredCertificate { modulus, tolerance } = required;
    require(modulus > 0.0 && modulus.is_finite(), "modulus", modulus, "a finite number above 0")?;
    require(tolerance >= 0.0 && tolerance.is_finite(), "tolerance", tolerance, "a finite number >= 0")
}

/// Refuses certificates that are weaker than those the sensitivity was derived with.
fn check_derived(sensitivity: &Sensitivity, required: RequiredCertificate) -> Result<(), PrivacyError> {
    let Some(inputs) = sensitivity.inputs() else { return Ok(()) };
    let mismatch =
        |name, required, derived| Err(PrivacyError::CertificateMismatch { name, required, derived });
    if required.tolerance > inputs.tolerance {
        return mismatch("tolerance", required.tolerance, inputs.tolerance);
    }
    if required.modulus < inputs.modulus {
        return mismatch("modulus", required.modulus, inputs.modulus);
    }
    Ok(())
}

/// NaN and negative residuals are no certificate at all, whatever the tolerance.
fn check_certificate(residual: f64, tolerance: f64) -> Result<(), PrivacyError> {
    if !(residual >= 0.0 && residual.is_finite()) {
        return Err(PrivacyError::CertificateMissing);
    }
    if residual <= tolerance { Ok(()) } else { Err(PrivacyError::ResidualTooLarge { tolerance }) }
}
