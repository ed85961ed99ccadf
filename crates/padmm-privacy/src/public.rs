//! What peers send, and vectors that are functions of releases only.

use serde::{Deserialize, Serialize};

use crate::error::PrivacyError;
use crate::gate::Release;
use crate::mechanism::Payload;

/// What a peer sent: claims to be a release of that peer. Checked for range when it is decoded, and for nothing else: that
/// it is the peer's, and of the right length, is for the receiver to check.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PeerRelease {
    site: String,
    round: u32,
    value: Payload,
}

impl PeerRelease {
    /// What a peer said in a round; refused unless every number is finite and exact.
    pub fn new(site: String, round: u32, value: Payload) -> Result<Self, PrivacyError> {
        value.check()?;
        Ok(Self { site, round, value })
    }

    /// The site that the sender claims to be.
    pub fn site(&self) -> &str {
        &self.site
    }

    /// The round that the sender claims.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// What was sent; only its range has been checked.
    pub fn payload(&self) -> &Payload {
        &self.value
    }
}

impl From<&Release<Payload>> for PeerRelease {
    fn from(release: &Release<Payload>) -> Self {
        Self { site: release.site().to_owned(), round: release.round(), value: release.value().clone() }
    }
}

/// A vector computed from releases and public constants only, so that it may go anywhere free of charge.
///
/// It starts as zeros or as a release, and linear operations with other such vectors and public proximal steps are all that
/// can be done to it. There
/// is no constructor from a plain vector (what a peer sent comes in through [`PeerRelease`], which is for received bytes only):
///
/// ```compile_fail,E0451
/// use padmm_privacy::PublicVector;
/// let smuggled = PublicVector { values: vec![1.0] };
/// ```
///
/// The factors are plain numbers and must be public themselves (step sizes, weights by round): the type cannot see that.
#[derive(Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct PublicVector {
    values: Vec<f64>,
}

impl Clone for PublicVector {
    fn clone(&self) -> Self {
        Self { values: self.values.clone() }
    }

    /// In the memory that is there, which a derived one would not use.
    fn clone_from(&mut self, source: &Self) {
        self.values.clone_from(&source.values);
    }
}

impl PublicVector {
    /// The zero vector with `n` coordinates.
    pub fn zeros(n: usize) -> Self {
        Self { values: vec![0.0; n] }
    }

    /// Sets every coordinate to zero and keeps the memory.
    pub fn clear(&mut self) {
        self.values.fill(0.0);
    }

    /// Adds `factor · (plus − minus)`, the difference first: swapping the two negates the result to the bit, which keeps
    /// the duals at both ends of an edge exact opposites.
    pub fn add_scaled_difference(&mut self, factor: f64, plus: &Self, minus: &Self) {
        assert!(
            self.len() == plus.len() && self.len() == minus.len(),
            "public vectors of one run have one length"
        );
        for ((value, plus), minus) in self.values.iter_mut().zip(&plus.values).zip(&minus.values) {
            *value += factor * (plus - minus);
        }
    }

    /// `self += factor * other`. Panics if the lengths differ: lengths are checked when a message is accepted.
    pub fn add_scaled(&mut self, factor: f64, other: &Self) {
        assert_eq!(self.len(), other.len(), "public vectors of one run have one length");
        for (value, other) in self.values.iter_mut().zip(&other.values) {
            *value += factor * other;
        }
    }

    /// Multiplies every coordinate by `factor`, which must be public.
    pub fn scale(&mut self, factor: f64) {
        for value in &mut self.values {
            *value *= factor;
        }
    }

    /// The proximal step of a public regulariser, coordinate by coordinate:
    ///
    /// ```text
    /// v_j <- factors_j * sign(v_j) * max(|v_j| - thresholds_j, 0)
    /// ```
    ///
    /// Thresholds and factors must be public, like every number that is handed to this type. Panics if the lengths differ.
    pub fn shrink(&mut self, thresholds: &[f64], factors: &[f64]) {
        assert!(
            self.len() == thresholds.len() && self.len() == factors.len(),
            "a proximal step has a threshold and a factor for every coordinate"
        );
        for ((value, threshold), factor) in self.values.iter_mut().zip(thresholds).zip(factors) {
            *value = factor * (value.abs() - threshold).max(0.0).copysign(*value);
        }
    }

    /// Rewrites the coordinates by a computation that reads nothing but releases and public constants. The type cannot see that: like the
    /// factors above, what the closure captures must be public. The place for it is a function that is handed nothing else, such as
    /// the end of an algorithm's turn.
    pub fn rewrite(&mut self, compute: impl FnOnce(&mut [f64])) {
        compute(&mut self.values);
    }

    /// The coordinates, for reading only.
    pub fn as_slice(&self) -> &[f64] {
        &self.values
    }

    /// How many coordinates it has.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it has no coordinates.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl From<&Release<Payload>> for PublicVector {
    fn from(release: &Release<Payload>) -> Self {
        Self { values: release.value().to_vec() }
    }
}

impl From<&PeerRelease> for PublicVector {
    fn from(release: &PeerRelease) -> Self {
        Self { values: release.payload().to_vec() }
    }
}
