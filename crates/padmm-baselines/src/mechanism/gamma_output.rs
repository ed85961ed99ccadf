//! Output perturbation with noise of density proportional to `exp(-rate |e|)`.

use padmm_privacy::{
    Computed, Drawn, Event, Mechanism, NoiseSource, Payload, PrivacyError, PrivacyReport, RequiredCertificate,
};

use super::gamma::{gamma_integers, gamma_norm_vector};
use super::point_of;
use super::pure_schedule::{OUTPUT_GRID_BITS, PureSchedule, PureTarget};
use super::refusal::missing_round;

/// Adds hidden noise to the certified point and rounds the sum to a public grid, 2^24 steps to the noise.
///
/// Guarantee: with noise of exactly that density, replacing a record moves the point by at most the sensitivity, the
/// solver's tolerance included, so the density of the sum changes by a factor of at most `exp(rate * sensitivity)`; rounding
/// is post-processing.
///
/// What that leaves open, unlike for [`padmm_privacy::GridGaussian`]: the noise and the sum are doubles, whose low bits do not follow
/// a continuous law. Rounding to the grid hides most of them, but nothing is proved about the rest. This mechanism
/// is for comparison in simulation; [`Mechanism::is_exact`] says so.
#[derive(Debug, Clone)]
pub struct GammaOutput {
    schedule: PureSchedule,
    required: RequiredCertificate,
}

impl GammaOutput {
    /// Ties a schedule to the certificate that its sensitivity was derived with; weaker requirements are refused, and so is a
    /// schedule for noise on the objective.
    pub fn new(schedule: PureSchedule, required: RequiredCertificate) -> Result<Self, PrivacyError> {
        required.check()?;
        let PureTarget::Output(sensitivity) = schedule.target() else {
            let (name, allowed) = ("noise on the objective", "noise on the output for this mechanism");
            return Err(PrivacyError::OutOfRange { name, value: 1.0, allowed });
        };
        required.check_covers(sensitivity)?;
        Ok(Self { schedule, required })
    }

    fn grid_exponent(&self, round: u32) -> Result<i32, PrivacyError> {
        let rounds = self.schedule.rounds();
        let noise_std = self.schedule.noise_std(round).ok_or_else(|| missing_round(round, rounds))?;
        Ok(libm::ilogb(noise_std).clamp(-4096, 4096) - OUTPUT_GRID_BITS as i32)
    }
}

impl Mechanism for GammaOutput {
    fn describe(&self, round: u32) -> Result<Event, PrivacyError> {
        self.schedule.event(round).ok_or_else(|| missing_round(round, self.schedule.rounds()))
    }

    fn draw(&self, round: u32, source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError> {
        self.describe(round)?;
        Ok(Drawn::hidden(round, gamma_integers(source, self.schedule.n_features())?))
    }

    fn seal(&self, round: u32, computed: Computed, drawn: Drawn) -> Result<Payload, PrivacyError> {
        let certified = point_of(computed)?;
        self.describe(round)?;
        if drawn.round() != round {
            return Err(PrivacyError::ForeignNoise { round });
        }
        let integers = drawn.into_integers().filter(|drawn| drawn.len() == 3 * self.schedule.n_features());
        let integers = integers.ok_or(PrivacyError::ForeignNoise { round })?;
        let rate = self.schedule.noise_rate(round).expect("a round that can be described has noise");
        let noise = gamma_norm_vector(&integers, rate)?;
        certified.check(self.schedule.n_features(), self.required.tolerance)?;
        let exponent = self.grid_exponent(round)?;
        let sum: Vec<f64> = certified.point.iter().zip(&noise).map(|(value, noise)| value + noise).collect();
        Payload::rounded(&sum, exponent)
    }

    fn report(&self) -> Option<PrivacyReport> {
        Some(self.schedule.report())
    }

    fn is_exact(&self) -> bool {
        false
    }
}
