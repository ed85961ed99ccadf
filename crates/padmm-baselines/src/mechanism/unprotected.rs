//! No noise at all, for algorithms that are compared without privacy.

use padmm_privacy::{
    Computed, Drawn, Event, Mechanism, NoiseSource, Payload, PrivacyError, PrivacyReport, require,
};

use super::point_of;

/// Releases the point as it is. Its event is [`Event::NonPrivate`], which every accountant and every capped ledger refuses.
#[derive(Debug, Clone)]
pub struct Unprotected {
    n_features: usize,
}

impl Unprotected {
    /// For points with this many coordinates.
    pub fn new(n_features: usize) -> Result<Self, PrivacyError> {
        require(n_features >= 1, "n_features", n_features as f64, "at least 1")?;
        Ok(Self { n_features })
    }
}

impl Mechanism for Unprotected {
    fn describe(&self, _round: u32) -> Result<Event, PrivacyError> {
        Ok(Event::NonPrivate)
    }

    fn draw(&self, round: u32, _source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError> {
        Ok(Drawn::nothing(round))
    }

    fn seal(&self, round: u32, computed: Computed, drawn: Drawn) -> Result<Payload, PrivacyError> {
        let certified = point_of(computed)?;
        if drawn.round() != round {
            return Err(PrivacyError::ForeignNoise { round });
        }
        certified.check_point(self.n_features)?;
        Ok(Payload::Plain(certified.point.clone()))
    }

    fn report(&self) -> Option<PrivacyReport> {
        None
    }

    /// There is no guarantee that could be exact.
    fn is_exact(&self) -> bool {
        false
    }
}
