//! Vectors that are functions of releases only: this site's, and those that peers sent.

use serde::Serialize;

use crate::error::PrivacyError;
use crate::gate::Release;
use crate::mechanism::Payload;

/// A vector computed from releases and public constants only, so that it may go anywhere free of charge.
///
/// It starts as zeros or as a release, and linear operations with other such vectors and rewriting by public rules are all that
/// can be done to it. There is no constructor from a plain vector ([`PublicVector::received`] is for received bytes only):
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

    /// What a peer sent, which claims to be a release of that peer. Its range is checked, every number being finite and exact, and nothing
    /// else: that it is the peer's, and of the right length, is for the receiver to check.
    pub fn received(payload: &Payload) -> Result<Self, PrivacyError> {
        payload.check()?;
        Ok(Self { values: payload.to_vec() })
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
