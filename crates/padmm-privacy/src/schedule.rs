//! The noise of a whole run at one site, whatever its kind.

use serde::Serialize;

use crate::calibrate::NoiseSchedule;
use crate::error::PrivacyError;
use crate::event::Event;
use crate::gaussian_objective::GaussianObjectiveSchedule;
use crate::mechanism::{GammaOutput, GridGaussian, Mechanism, ObjectivePerturbation, RequiredCertificate};
use crate::outward::add_up;
use crate::promise::Stopping;
use crate::pure::{PureSchedule, PureTarget};
use crate::report::{PrivacyReport, SpentEpsilon};

/// A calibrated schedule of one of three kinds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Discrete Gaussian noise on the output.
    Gaussian(NoiseSchedule),
    /// Noise of density proportional to `exp(-rate |b|)` on the objective or on the output.
    Pure(PureSchedule),
    /// Gaussian noise on the objective.
    GaussianObjective(GaussianObjectiveSchedule),
}

impl Schedule {
    /// The schedule of Gaussian noise on the output, if it is one.
    pub fn as_gaussian(&self) -> Option<&NoiseSchedule> {
        match self {
            Self::Gaussian(schedule) => Some(schedule),
            Self::Pure(_) | Self::GaussianObjective(_) => None,
        }
    }

    /// Number of rounds, free ones included.
    pub fn rounds(&self) -> u32 {
        match self {
            Self::Gaussian(schedule) => schedule.rounds(),
            Self::Pure(schedule) => schedule.rounds(),
            Self::GaussianObjective(schedule) => schedule.rounds(),
        }
    }

    /// Coordinates of a release.
    pub fn n_features(&self) -> usize {
        match self {
            Self::Gaussian(schedule) => schedule.n_features(),
            Self::Pure(schedule) => schedule.n_features(),
            Self::GaussianObjective(schedule) => schedule.n_features(),
        }
    }

    /// What round `round`, counted from 1, does to the data; `None` for a free round and outside the schedule.
    pub fn event(&self, round: u32) -> Option<Event> {
        match self {
            Self::Gaussian(schedule) => {
                (1..=schedule.rounds()).contains(&round).then(|| schedule.event(round))
            }
            Self::Pure(schedule) => schedule.event(round),
            Self::GaussianObjective(schedule) => schedule.event(round),
        }
    }

    /// Standard deviation of one coordinate of round `round`'s noise; `None` for a free round and outside the schedule.
    pub fn noise_std(&self, round: u32) -> Option<f64> {
        match self {
            Self::Gaussian(schedule) => {
                (1..=schedule.rounds()).contains(&round).then(|| schedule.noise_std(round))
            }
            Self::Pure(schedule) => schedule.noise_std(round),
            Self::GaussianObjective(schedule) => schedule.event(round).map(|_| schedule.noise_std()),
        }
    }

    /// What round `round` costs in zCDP, rounded up; zero for a free round.
    pub fn rho(&self, round: u32) -> f64 {
        self.event(round)
            .map_or(0.0, |event| event.rho().expect("checked when the schedule was made").value())
    }

    /// What rounds 1 to `after_round` cost together in zCDP, rounded up.
    pub fn rho_spent(&self, after_round: u32) -> f64 {
        (1..=after_round.min(self.rounds())).fold(0.0, |sum, round| add_up(sum, self.rho(round)))
    }

    /// What all rounds cost together in zCDP, rounded up.
    pub fn rho_total(&self) -> f64 {
        self.rho_spent(self.rounds())
    }

    /// Epsilon after each round, rounded up, in one pass.
    ///
    /// `exact` is the best valid epsilon at delta. `paper` is the paper's conversion from zCDP, but for pure noise, whose
    /// publications add up epsilons, it is that sum.
    pub fn epsilon_curve(&self) -> Vec<SpentEpsilon> {
        match self {
            Self::Gaussian(schedule) => schedule.epsilon_curve(),
            Self::Pure(schedule) => schedule.epsilon_curve(),
            Self::GaussianObjective(schedule) => schedule.epsilon_curve(),
        }
    }

    /// Everything that a reader of the guarantee needs.
    pub fn report(&self) -> PrivacyReport {
        match self {
            Self::Gaussian(schedule) => schedule.report(),
            Self::Pure(schedule) => schedule.report(),
            Self::GaussianObjective(schedule) => schedule.report(),
        }
    }

    /// The same schedule for a site of which it is known what decides whether it stops. Noise on the objective always needs the solver.
    #[must_use]
    pub fn with_stopping(self, stopping: Stopping) -> Self {
        match self {
            Self::Gaussian(schedule) => Self::Gaussian(schedule.with_stopping(stopping)),
            other => other,
        }
    }

    /// The mechanism that draws this noise, tied to what solvers must certify.
    pub fn mechanism(&self, required: RequiredCertificate) -> Result<Box<dyn Mechanism>, PrivacyError> {
        Ok(match self {
            Self::Gaussian(schedule) => Box::new(GridGaussian::new(schedule.clone(), required)?),
            Self::Pure(schedule) => match schedule.target() {
                PureTarget::Objective(_) => {
                    Box::new(ObjectivePerturbation::pure(schedule.clone(), required)?)
                }
                PureTarget::Output(_) => Box::new(GammaOutput::new(schedule.clone(), required)?),
            },
            Self::GaussianObjective(schedule) => {
                Box::new(ObjectivePerturbation::gaussian(schedule.clone(), required)?)
            }
        })
    }
}

impl From<NoiseSchedule> for Schedule {
    fn from(schedule: NoiseSchedule) -> Self {
        Self::Gaussian(schedule)
    }
}

impl From<PureSchedule> for Schedule {
    fn from(schedule: PureSchedule) -> Self {
        Self::Pure(schedule)
    }
}

impl From<GaussianObjectiveSchedule> for Schedule {
    fn from(schedule: GaussianObjectiveSchedule) -> Self {
        Self::GaussianObjective(schedule)
    }
}
