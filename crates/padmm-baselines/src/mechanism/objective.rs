//! Objective perturbation: the noise goes into the linear term of the local problem, and its minimiser is released.

use padmm_privacy::outward::div_up;
use padmm_privacy::{
    Computed, Drawn, Event, Mechanism, NoiseSource, Payload, PrivacyError, PrivacyReport,
    RequiredCertificate, require,
};

use super::gamma::{gamma_integers, gamma_norm_vector, standard_normals};
use super::refusal::missing_round;
use super::{GaussianObjectiveSchedule, PureSchedule, PureTarget, point_of};

/// A release may be this many times (a power of two) larger than the noise makes it, and still fits the grid.
const RANGE_BITS: i32 = 17;
/// Doubles hold integers of up to this many bits exactly.
const INTEGER_BITS: i32 = 53;

/// Releases the minimiser of an objective whose linear term carries visible noise, rounded to a public grid.
///
/// Guarantee: if the noise had its density exactly, and if the released point were a function of the exact minimiser
/// alone, the releases would satisfy what the schedule's report states. Rounding to the grid is such a function.
///
/// What that leaves open, unlike for [`padmm_privacy::GridGaussian`]: the noise is made of doubles, and the point is the minimiser
/// only up to `tolerance / modulus`. The grid's step is not below that error, so most points round as the minimiser does,
/// but one near the edge of a cell may not, and no bound on what that reveals is proved. This mechanism is for
/// comparison in simulation; [`Mechanism::is_exact`] says so.
#[derive(Debug, Clone)]
pub struct ObjectivePerturbation {
    kind: Kind,
    required: RequiredCertificate,
}

#[derive(Debug, Clone)]
enum Kind {
    Pure(PureSchedule),
    Gaussian(GaussianObjectiveSchedule),
}

impl ObjectivePerturbation {
    /// With noise of density proportional to `exp(-rate |b|)`.
    ///
    /// `required.modulus` is the smallest over rounds; a modulus below the one that the charge was derived with is refused,
    /// and so is a schedule for noise on the output.
    pub fn pure(schedule: PureSchedule, required: RequiredCertificate) -> Result<Self, PrivacyError> {
        let objective = matches!(schedule.target(), PureTarget::Objective(_));
        require(objective, "noise on the output", 1.0, "noise on the objective for this mechanism")?;
        let moduli = (1..=schedule.rounds()).filter_map(|round| schedule.modulus(round));
        let derived = moduli.fold(f64::INFINITY, f64::min);
        Self::new(Kind::Pure(schedule), derived, required)
    }

    /// With Gaussian noise of the schedule's constant standard deviation; a modulus below the
    /// schedule's is refused.
    pub fn gaussian(
        schedule: GaussianObjectiveSchedule,
        required: RequiredCertificate,
    ) -> Result<Self, PrivacyError> {
        let derived = schedule.modulus();
        Self::new(Kind::Gaussian(schedule), derived, required)
    }

    fn new(kind: Kind, derived: f64, required: RequiredCertificate) -> Result<Self, PrivacyError> {
        required.check()?;
        if required.modulus < derived {
            let required = required.modulus;
            return Err(PrivacyError::CertificateMismatch { name: "modulus", required, derived });
        }
        Ok(Self { kind, required })
    }

    fn n_features(&self) -> usize {
        match &self.kind {
            Kind::Pure(schedule) => schedule.n_features(),
            Kind::Gaussian(schedule) => schedule.n_features(),
        }
    }

    /// Exponent of the grid's step in `round`: the step is not below the solver's error `tolerance / modulus`, and wide enough
    /// that points some 2^17 times larger than the noise makes them still fit.
    fn grid_exponent(&self, round: u32) -> Result<i32, PrivacyError> {
        let p = self.n_features() as f64;
        let (modulus, noise_norm) = match &self.kind {
            Kind::Pure(schedule) => match (schedule.modulus(round), schedule.noise_rate(round)) {
                (Some(modulus), Some(rate)) => (modulus, p / rate),
                _ => return Err(missing_round(round, schedule.rounds())),
            },
            Kind::Gaussian(schedule) => (schedule.modulus(), schedule.noise_std() * p.sqrt()),
        };
        let for_range = exponent_above(noise_norm / modulus) + RANGE_BITS - INTEGER_BITS;
        let error = div_up(self.required.tolerance, modulus);
        Ok(if error > 0.0 { for_range.max(exponent_above(error)) } else { for_range })
    }
}

/// Smallest e with `x <= 2^e`, or one more.
fn exponent_above(x: f64) -> i32 {
    libm::ilogb(x).saturating_add(1).clamp(-4096, 4096)
}

impl Mechanism for ObjectivePerturbation {
    fn describe(&self, round: u32) -> Result<Event, PrivacyError> {
        let (event, rounds) = match &self.kind {
            Kind::Pure(schedule) => (schedule.event(round), schedule.rounds()),
            Kind::Gaussian(schedule) => (schedule.event(round), schedule.rounds()),
        };
        event.ok_or_else(|| missing_round(round, rounds))
    }

    fn draw(&self, round: u32, source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError> {
        self.describe(round)?;
        let noise = match &self.kind {
            Kind::Pure(schedule) => {
                let rate = schedule.noise_rate(round).expect("a round that can be described has noise");
                gamma_norm_vector(&gamma_integers(source, schedule.n_features())?, rate)?
            }
            Kind::Gaussian(schedule) => {
                let normals = standard_normals(source, schedule.n_features())?;
                normals.into_iter().map(|z| schedule.noise_std() * z).collect()
            }
        };
        Ok(Drawn::visible(round, noise))
    }

    fn seal(&self, round: u32, computed: Computed, drawn: Drawn) -> Result<Payload, PrivacyError> {
        let certified = point_of(computed)?;
        self.describe(round)?;
        if drawn.round() != round {
            return Err(PrivacyError::ForeignNoise { round });
        }
        if drawn.visible_noise().is_none_or(|noise| noise.len() != self.n_features()) {
            return Err(PrivacyError::ForeignNoise { round });
        }
        certified.check(self.n_features(), self.required.tolerance)?;
        let exponent = self.grid_exponent(round)?;
        Payload::rounded(&certified.point, exponent)
    }

    fn report(&self) -> Option<PrivacyReport> {
        Some(match &self.kind {
            Kind::Pure(schedule) => schedule.report(),
            Kind::Gaussian(schedule) => schedule.report(),
        })
    }

    fn is_exact(&self) -> bool {
        false
    }
}
