//! Noise of the compared methods. All of it is made of doubles, which cannot follow a continuous law exactly: it serves comparison in
//! simulation, and a site cannot link this crate.

mod gamma;
mod gamma_output;
mod gaussian_objective_schedule;
mod objective;
mod objective_inputs;
mod pure_schedule;
mod refusal;
mod unprotected;

pub use gamma_output::GammaOutput;
pub use gaussian_objective_schedule::{GaussianObjectiveRequest, GaussianObjectiveSchedule};
pub use objective::ObjectivePerturbation;
pub use objective_inputs::ObjectiveInputs;
pub use pure_schedule::{PureRequest, PureSchedule, PureStep, PureTarget};
pub use unprotected::Unprotected;

use padmm_privacy::{Certified, Computed, PrivacyError};

/// The point that was computed, for a mechanism that releases one.
fn point_of(computed: Computed) -> Result<Certified, PrivacyError> {
    if let Computed::Point(certified) = computed { Ok(certified) } else { Err(PrivacyError::WrongKind) }
}
