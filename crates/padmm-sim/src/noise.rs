//! Seeded noise for simulations. It lives in this crate, and a site's program does not depend on this crate, so an
//! agent that holds real records in production cannot reach it.

use padmm_privacy::{NoiseSource, PrivacyError};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

/// **Not private.** Gaussian integers by floating point from a known seed: repeatable and fast, and anybody who knows the
/// seed can subtract them.
pub struct InsecureSeededNoise {
    generator: ChaCha12Rng,
}

impl InsecureSeededNoise {
    /// The stream of one agent in one run.
    pub fn new(seed: u64, run: u32, agent: usize) -> Self {
        let mut generator = ChaCha12Rng::seed_from_u64(seed);
        generator.set_stream((u64::from(run) << 32) | agent as u64);
        Self { generator }
    }

    /// The stream after so many integers, as a process that starts again needs it.
    #[must_use]
    pub fn after(mut self, drawn: u64) -> Self {
        for _ in 0..drawn {
            let _: f64 = StandardNormal.sample(&mut self.generator);
        }
        self
    }
}

impl NoiseSource for InsecureSeededNoise {
    fn fill(&mut self, scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        for o in out {
            let z: f64 = StandardNormal.sample(&mut self.generator);
            *o = (scale * z).round() as i64;
        }
        Ok(())
    }

    fn description(&self) -> &'static str {
        "seeded floating-point Gaussian: insecure, for simulation only"
    }

    fn is_secure(&self) -> bool {
        false
    }
}
