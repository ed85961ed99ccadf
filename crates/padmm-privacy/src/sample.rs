//! Where noise comes from.

use opendp::traits::samplers::sample_discrete_gaussian;

use crate::error::{PrivacyError, require};

/// A source of discrete Gaussian noise. It decides nothing about how much: scale and count come from the mechanism.
///
/// The seeded source of the simulator implements this trait in the simulator's own crate, so that a program without the
/// simulator cannot reach it.
pub trait NoiseSource: Send {
    /// Fills `out` with independent discrete Gaussian integers, `P(x)` proportional to `exp(-x^2 / (2 scale^2))`.
    ///
    /// `scale` is at least 1 and is taken as the exact rational number that the double is.
    fn fill(&mut self, scale: f64, out: &mut [i64]) -> Result<(), PrivacyError>;

    /// What this source is, for reports.
    fn description(&self) -> &'static str;

    /// Whether its noise may protect real data.
    fn is_secure(&self) -> bool;
}

/// The production source: the sampler of Canonne, Kamath and Steinke (2020) in exact rational arithmetic, by OpenDP.
///
/// Guarantee: every integer has exactly its discrete Gaussian probability if the underlying bits are uniform. The bits
/// come from a ChaCha generator that the operating system keys at start and again at intervals. It cannot be seeded.
#[derive(Debug, Clone, Copy, Default)]
pub struct SecureNoise;

impl NoiseSource for SecureNoise {
    fn fill(&mut self, scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        check_scale(scale)?;
        // The target of the conversion is OpenDP's rational type; from a finite double it is exact.
        let failed = |reason: String| PrivacyError::NoiseFailed { reason };
        for slot in out {
            let exact_scale = scale.try_into().map_err(|_| failed("the scale is not finite".into()))?;
            let integer = sample_discrete_gaussian(exact_scale).map_err(|e| failed(e.to_string()))?;
            *slot = integer.try_into().map_err(|_| failed("the noise does not fit 64 bits".into()))?;
        }
        Ok(())
    }

    fn description(&self) -> &'static str {
        "exact discrete Gaussian (Canonne, Kamath, Steinke 2020), bits from a ChaCha generator keyed by the operating system"
    }

    fn is_secure(&self) -> bool {
        true
    }
}

/// Scales that a source has to serve: from 1 up to where integers still fit doubles with room to spare.
pub(crate) fn check_scale(scale: f64) -> Result<(), PrivacyError> {
    require((1.0..=(1u64 << 50) as f64).contains(&scale), "noise scale", scale, "between 1 and 2^50")
}
