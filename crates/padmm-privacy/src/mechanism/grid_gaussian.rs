//! The mechanism of real sites: discrete Gaussian noise on a public grid.

use super::payload::round_to_grid;
use super::{Computed, Drawn, Mechanism, Payload};
use crate::error::{PrivacyError, require};
use crate::event::Event;
use crate::gaussian::{NoiseSchedule, Round};
use crate::report::PrivacyReport;
use crate::sample::{NoiseSource, check_scale};
use crate::schedule::Schedule;
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

/// Output perturbation in whole steps g of a grid: `g * (q + discrete Gaussian of scale noise_std / g)`, where q is a point, divided by g
/// and rounded, or the integers of a sum, of which g is the unit.
///
/// Guarantee: the releases of all rounds together satisfy what the schedule reports: for points, if the residuals are true; for sums, for
/// any records, if every record has one term in a sum, which depends on it and on public values alone. How long a term is,
/// [`super::ClippedSum`] and [`super::WhitenedRows`] bound themselves. The sensitivity in each event includes what rounding a point to the
/// grid adds.
///
/// Departs from the paper: the paper adds a continuous Gaussian, which floating-point arithmetic cannot do without
/// leaking through the low bits (Mironov 2012).
#[derive(Debug, Clone)]
pub struct GridGaussian {
    schedule: NoiseSchedule,
    /// Of points; a sum needs no certificate.
    required: RequiredCertificate,
}

impl GridGaussian {
    /// Ties a schedule to the certificate that its sensitivity was derived with; weaker requirements are refused.
    pub fn new(schedule: NoiseSchedule, required: RequiredCertificate) -> Result<Self, PrivacyError> {
        if schedule.as_gaussian().is_some() {
            required.check()?;
            required.check_covers(&schedule.sensitivity())?;
        }
        Ok(Self { schedule, required })
    }

    fn round(&self, round: u32) -> Result<&Round, PrivacyError> {
        let rounds = self.schedule.rounds();
        self.schedule.round(round).ok_or(PrivacyError::RoundOutsideSchedule { round, rounds })
    }
}

impl Mechanism for GridGaussian {
    fn describe(&self, round: u32) -> Result<Event, PrivacyError> {
        self.round(round).map(Round::event)
    }

    fn draw(&self, round: u32, source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError> {
        let planned = self.round(round)?;
        check_scale(planned.scale())?;
        let mut noise = vec![0; planned.n_coordinates];
        source.fill(planned.scale(), &mut noise)?;
        Ok(Drawn::hidden(round, noise))
    }

    fn seal(&self, round: u32, computed: Computed, drawn: Drawn) -> Result<Payload, PrivacyError> {
        let &Round { n_coordinates, terms, exponent, .. } = self.round(round)?;
        let is_own = drawn.round() == round;
        let noise = drawn.into_integers().filter(|noise| is_own && noise.len() == n_coordinates);
        let noise = noise.ok_or(PrivacyError::ForeignNoise { round })?;
        let mut values = match (terms, computed) {
            (None, Computed::Point(certified)) => {
                certified.check(n_coordinates, self.required.tolerance)?;
                round_to_grid(&certified.point, exponent)?
            }
            (Some(terms), Computed::Sum(sum)) => sum.into_integers(terms, n_coordinates, exponent)?,
            _ => return Err(PrivacyError::WrongKind),
        };
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
