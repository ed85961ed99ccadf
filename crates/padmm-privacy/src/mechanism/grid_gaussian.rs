//! The mechanism of the private algorithm: discrete Gaussian noise on a public grid.

use super::payload::round_to_grid;
use super::{Computed, Drawn, Mechanism, Payload};
use crate::calibrate::NoiseSchedule;
use crate::error::{PrivacyError, require};
use crate::event::Event;
use crate::report::PrivacyReport;
use crate::sample::{NoiseSource, check_scale};
use crate::sensitivity::Sensitivity;

/// What a solver must certify before its point may leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequiredCertificate {
    /// Strong convexity of the local problem.
    pub modulus: f64,
    /// Largest norm of the remaining gradient that is accepted.
    pub tolerance: f64,
}

impl RequiredCertificate {
    /// Refuses what no solver can be held to.
    pub fn check(&self) -> Result<(), PrivacyError> {
        let Self { modulus, tolerance } = *self;
        require(modulus > 0.0 && modulus.is_finite(), "modulus", modulus, "a finite number above 0")?;
        require(tolerance >= 0.0 && tolerance.is_finite(), "tolerance", tolerance, "a finite number >= 0")
    }

    /// Refuses certificates that are weaker than those the sensitivity was derived with.
    pub fn check_covers(&self, sensitivity: &Sensitivity) -> Result<(), PrivacyError> {
        let Some(inputs) = sensitivity.inputs() else { return Ok(()) };
        let mismatch =
            |name, required, derived| Err(PrivacyError::CertificateMismatch { name, required, derived });
        if self.tolerance > inputs.tolerance {
            return mismatch("tolerance", self.tolerance, inputs.tolerance);
        }
        if self.modulus < inputs.modulus {
            return mismatch("modulus", self.modulus, inputs.modulus);
        }
        Ok(())
    }
}

/// Output perturbation on a grid: `g * (round(point / g) + discrete Gaussian of scale noise_std / g)`.
///
/// Guarantee: if the residuals are true, the releases of all rounds together satisfy what [`NoiseSchedule::report`]
/// states. The sensitivity in each event includes what rounding to the grid adds.
///
/// Departs from the paper: the paper adds a continuous Gaussian, which floating-point arithmetic cannot do without
/// leaking through the low bits (Mironov 2012).
#[derive(Debug, Clone)]
pub struct GridGaussian {
    schedule: NoiseSchedule,
    required: RequiredCertificate,
}

impl GridGaussian {
    /// Ties a schedule to the certificate that its sensitivity was derived with; weaker requirements are refused.
    pub fn new(schedule: NoiseSchedule, required: RequiredCertificate) -> Result<Self, PrivacyError> {
        required.check()?;
        required.check_covers(&schedule.sensitivity())?;
        Ok(Self { schedule, required })
    }

    /// The calibrated noise that this mechanism draws, with its charges.
    pub fn schedule(&self) -> &NoiseSchedule {
        &self.schedule
    }

    fn check_round(&self, round: u32) -> Result<(), PrivacyError> {
        let rounds = self.schedule.rounds();
        if (1..=rounds).contains(&round) {
            Ok(())
        } else {
            Err(PrivacyError::RoundOutsideSchedule { round, rounds })
        }
    }
}

impl Mechanism for GridGaussian {
    fn describe(&self, round: u32) -> Result<Event, PrivacyError> {
        self.check_round(round)?;
        Ok(self.schedule.event(round))
    }

    fn draw(&self, round: u32, source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError> {
        self.check_round(round)?;
        // Division by the step, a power of two, is exact, so the noise has the standard deviation that is charged.
        let scale = libm::scalbn(self.schedule.noise_std(round), -self.schedule.grid_exponent(round));
        check_scale(scale)?;
        let mut noise = vec![0; self.schedule.n_features()];
        source.fill(scale, &mut noise)?;
        Ok(Drawn::hidden(round, noise))
    }

    fn seal(&self, round: u32, computed: Computed, drawn: Drawn) -> Result<Payload, PrivacyError> {
        let certified = computed.into_point()?;
        self.check_round(round)?;
        if drawn.round() != round {
            return Err(PrivacyError::ForeignNoise { round });
        }
        let noise = drawn.into_integers().ok_or(PrivacyError::ForeignNoise { round })?;
        certified.check(self.schedule.n_features(), self.required.tolerance)?;
        let exponent = self.schedule.grid_exponent(round);
        let mut values = round_to_grid(&certified.point, exponent)?;
        if noise.len() != values.len() {
            return Err(PrivacyError::ForeignNoise { round });
        }
        for (value, noise) in values.iter_mut().zip(noise) {
            *value = value.checked_add(noise).ok_or(PrivacyError::BeyondGrid { exponent })?;
        }
        let payload = Payload::Grid { exponent, values };
        payload.check()?;
        Ok(payload)
    }

    fn report(&self) -> Option<PrivacyReport> {
        Some(self.schedule.report())
    }

    fn is_exact(&self) -> bool {
        true
    }
}
