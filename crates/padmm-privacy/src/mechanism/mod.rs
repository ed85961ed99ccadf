//! Mechanisms: noise and its price in one value, so that one cannot be used without the other.

mod clipped_sum;
mod grid_gaussian;
mod payload;
mod whitened_sum;

pub use clipped_sum::{ClippedSum, Terms};
pub(crate) use clipped_sum::{MOST_COORDINATES, bits_for};
pub use grid_gaussian::{GridGaussian, RequiredCertificate};
pub use payload::Payload;
pub use whitened_sum::{RecordRows, WhitenedRows, Workers};

use std::fmt;

use self::payload::check_finite;
use crate::error::PrivacyError;
use crate::event::Event;
use crate::report::PrivacyReport;
use crate::sample::NoiseSource;

/// What turns a computed point into something that may leave. The gate calls the parts in a fixed order.
///
/// An implementation is trusted: what [`Mechanism::describe`] says must be true of what [`Mechanism::seal`] returns.
pub trait Mechanism: Send {
    /// What the release of `round` will do to the data; does not look at data.
    fn describe(&self, round: u32) -> Result<Event, PrivacyError>;

    /// Draws the noise of `round`; does not look at data, so its timing cannot depend on any.
    fn draw(&self, round: u32, source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError>;

    /// Checks the certificate and the range, adds the noise, and returns what may leave, or an error and nothing.
    fn seal(&self, round: u32, computed: Computed, drawn: Drawn) -> Result<Payload, PrivacyError>;

    /// The guarantee over all rounds; `None` if there is none.
    fn report(&self) -> Option<PrivacyReport>;

    /// Whether the guarantee holds for the very bytes that leave, finite precision of noise and solver included. Where it does not, the
    /// mechanism is for comparison in simulation.
    fn is_exact(&self) -> bool;
}

/// A solver's result with its certificate. `Debug` hides it: it is computed from records and has no noise yet.
#[derive(Clone)]
pub struct Certified {
    /// Where the solver stopped, before rounding and noise.
    pub point: Vec<f64>,
    /// Norm of the (sub)gradient at the point: the exact minimiser is within `residual / modulus` of it.
    pub residual: f64,
}

impl fmt::Debug for Certified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certified(hidden)")
    }
}

/// What a site computes from its records for a release: something that a mechanism can bound one record's influence on.
#[derive(Debug)]
pub enum Computed {
    /// Near the minimiser of a strongly convex problem.
    Point(Certified),
    /// Added up from terms that are bounded one by one.
    Sum(ClippedSum),
}

impl From<Certified> for Computed {
    fn from(certified: Certified) -> Self {
        Self::Point(certified)
    }
}

impl From<ClippedSum> for Computed {
    fn from(sum: ClippedSum) -> Self {
        Self::Sum(sum)
    }
}

/// Noise that was drawn for one round. Not `Clone`: sealing consumes it. `Debug` hides it.
///
/// Output perturbation keeps the noise out of reach of the computation; objective perturbation has to show it.
pub struct Drawn {
    round: u32,
    noise: Noise,
}

enum Noise {
    None,
    Hidden(Vec<i64>),
    Visible(Vec<f64>),
}

impl Drawn {
    /// Noise that the computation may see, for mechanisms that perturb the objective.
    pub fn visible(round: u32, noise: Vec<f64>) -> Self {
        Self { round, noise: Noise::Visible(noise) }
    }

    /// Noise that only the mechanism's own seal can open.
    pub fn hidden(round: u32, noise: Vec<i64>) -> Self {
        Self { round, noise: Noise::Hidden(noise) }
    }

    /// No noise, for a mechanism that has no guarantee either.
    pub fn nothing(round: u32) -> Self {
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
            Noise::None | Noise::Hidden(_) => None,
        }
    }

    /// The integers of [`Drawn::hidden`], for the seal that consumes them.
    pub fn into_integers(self) -> Option<Vec<i64>> {
        if let Noise::Hidden(noise) = self.noise { Some(noise) } else { None }
    }
}

impl fmt::Debug for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Drawn(round {}, hidden)", self.round)
    }
}

impl Certified {
    /// Refuses a point of another length, one that is not finite, and one whose certificate is missing or too weak. NaN and negative
    /// residuals are no certificate at all, whatever the tolerance.
    pub fn check(&self, n_features: usize, tolerance: f64) -> Result<(), PrivacyError> {
        if !(self.residual >= 0.0 && self.residual.is_finite()) {
            return Err(PrivacyError::CertificateMissing);
        }
        if self.residual > tolerance {
            return Err(PrivacyError::ResidualTooLarge { tolerance });
        }
        self.check_point(n_features)
    }

    /// Length and finiteness of the point alone.
    pub fn check_point(&self, n_features: usize) -> Result<(), PrivacyError> {
        let found = self.point.len();
        if found != n_features {
            return Err(PrivacyError::WrongLength { expected: n_features, found });
        }
        check_finite(&self.point)
    }
}
