//! Output perturbation with noise of density proportional to `exp(-rate |e|)`.

use super::gamma::gamma_norm_vector;
use super::objective::missing_round;
use super::payload::round_to_grid;
use super::{
    Certified, Drawn, Mechanism, Noise, Payload, RequiredCertificate, check_certificate, check_derived,
    check_point, check_required,
};
use crate::error::{PrivacyError, require};
use crate::event::Event;
use crate::grid::is_exact_exponent;
use crate::pure::{OUTPUT_GRID_BITS, PureSchedule, PureTarget};
use crate::report::PrivacyReport;
use crate::sample::NoiseSource;

/// Adds hidden noise to the certified point and rounds the sum to a public grid, 2^24 steps to the noise.
///
/// Guarantee: with noise of exactly that density, replacing a record moves the point by at most the sensitivity, the
/// solver's tolerance included, so the density of the sum changes by a factor of at most `exp(rate * sensitivity)`; rounding
/// is post-processing.
///
/// What that leaves open, unlike for [`super::GridGaussian`]: the noise and the sum are doubles, whose low bits do not follow
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
        check_required(required)?;
        let PureTarget::Output(sensitivity) = schedule.target() else {
            let (name, allowed) = ("noise on the objective", "noise on the output for this mechanism");
            return Err(PrivacyError::OutOfRange { name, value: 1.0, allowed });
        };
        check_derived(sensitivity, required)?;
        Ok(Self { schedule, required })
    }

    fn grid_exponent(&self, round: u32) -> Result<i32, PrivacyError> {
        let rounds = self.schedule.rounds();
        let noise_std = self.schedule.noise_std(round).ok_or_else(|| missing_round(round, rounds))?;
        let exponent = libm::ilogb(noise_std).clamp(-4096, 4096) - OUTPUT_GRID_BITS as i32;
        require(is_exact_exponent(exponent), "grid exponent", f64::from(exponent), "between -1022 and 970")?;
        Ok(exponent)
    }
}

impl Mechanism for GammaOutput {
    fn describe(&self, round: u32) -> Result<Event, PrivacyError> {
        self.schedule.event(round).ok_or_else(|| missing_round(round, self.schedule.rounds()))
    }

    fn draw(&self, round: u32, source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError> {
        self.describe(round)?;
        let rate = self.schedule.noise_rate(round).expect("a round that can be described has noise");
        Ok(Drawn::hidden_real(round, gamma_norm_vector(source, self.schedule.n_features(), rate)?))
    }

    fn seal(&self, round: u32, certified: &Certified, drawn: Drawn) -> Result<Payload, PrivacyError> {
        self.describe(round)?;
        if drawn.round() != round {
            return Err(PrivacyError::ForeignNoise { round });
        }
        let noise = match drawn.into_noise() {
            Noise::HiddenReal(noise) if noise.len() == self.schedule.n_features() => noise,
            _ => return Err(PrivacyError::ForeignNoise { round }),
        };
        check_certificate(certified.residual, self.required.tolerance)?;
        check_point(&certified.point, self.schedule.n_features())?;
        let exponent = self.grid_exponent(round)?;
        let sum: Vec<f64> = certified.point.iter().zip(&noise).map(|(value, noise)| value + noise).collect();
        let payload = Payload::Grid { exponent, values: round_to_grid(&sum, exponent)? };
        payload.check()?;
        Ok(payload)
    }

    fn report(&self) -> Option<PrivacyReport> {
        Some(self.schedule.report())
    }

    fn is_exact(&self) -> bool {
        false
    }
}
