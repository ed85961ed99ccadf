//! The noise of a whole run at one site, whatever its kind.

use std::any::Any;
use std::fmt;

use crate::error::PrivacyError;
use crate::event::Event;
use crate::gaussian::NoiseSchedule;
use crate::mechanism::{Mechanism, RequiredCertificate};
use crate::outward::add_up;
use crate::report::{PrivacyReport, SpentEpsilon};

/// Calibrated noise with its price. This crate has one kind, [`NoiseSchedule`], which is all that a real site can use; the compared
/// methods bring theirs. Rounds are counted from 1, and there is nothing to say about a round that is free or outside the schedule.
///
/// An implementation is trusted: its events must be true of the noise that its mechanism draws.
pub trait Schedule: Any + fmt::Debug + Send + Sync {
    /// Number of rounds, free ones included.
    fn rounds(&self) -> u32;

    /// Coordinates of the last release: the model's coefficients.
    fn n_features(&self) -> usize;

    /// What the round does to the data.
    fn event(&self, round: u32) -> Option<Event>;

    /// Coordinates of the round's release, where rounds differ.
    fn n_coordinates(&self, _round: u32) -> usize {
        self.n_features()
    }

    /// Exponent of the step of the grid that the round is released on; `None` without a grid, too.
    fn grid_exponent(&self, _round: u32) -> Option<i32> {
        None
    }

    /// Standard deviation of one coordinate of the round's noise.
    fn noise_std(&self, round: u32) -> Option<f64>;

    /// Epsilon after each round, rounded up, in one pass.
    ///
    /// `exact` is the best valid epsilon at delta. `paper` is the paper's conversion from zCDP, but for pure noise, whose
    /// publications add up epsilons, it is that sum.
    fn epsilon_curve(&self) -> Vec<SpentEpsilon>;

    /// Everything that a reader of the guarantee needs.
    fn report(&self) -> PrivacyReport;

    /// What the noise was calibrated for; `None` where that was not a proved bound.
    fn premise(&self) -> Option<Premise>;

    /// The mechanism that draws this noise, tied to what solvers must certify.
    fn mechanism(&self, required: RequiredCertificate) -> Result<Box<dyn Mechanism>, PrivacyError>;

    /// The schedule of exact Gaussian noise on certified points, if it is one.
    fn as_gaussian(&self) -> Option<&NoiseSchedule> {
        None
    }

    /// What the round costs in zCDP, rounded up; zero for a free round.
    fn rho(&self, round: u32) -> f64 {
        self.event(round)
            .map_or(0.0, |event| event.rho().expect("checked when the schedule was made").value())
    }

    /// What rounds 1 to `after_round` cost together in zCDP, rounded up.
    fn rho_spent(&self, after_round: u32) -> f64 {
        (1..=after_round.min(self.rounds())).fold(0.0, |sum, round| add_up(sum, self.rho(round)))
    }

    /// What all rounds cost together in zCDP, rounded up.
    fn rho_total(&self) -> f64 {
        self.rho_spent(self.rounds())
    }
}

/// The problem that noise was calibrated for. Who is about to solve a problem compares the two, so that noise for one problem never
/// protects another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Premise {
    /// `B`: no record's gradient has a larger norm.
    pub gradient_bound: f64,
    /// No record's curvature is larger; `None` where the noise does not depend on it.
    pub curvature_bound: Option<f64>,
    /// Records that the local loss is an average of.
    pub n_records: usize,
    /// Strong convexity of the local problem, the smallest over rounds.
    pub modulus: f64,
    /// Largest residual of a solve; `None` where the charge is for exact minimisers.
    pub tolerance: Option<f64>,
}
