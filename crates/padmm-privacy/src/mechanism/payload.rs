//! What is stored, sent and used: integers on a public grid.

use serde::{Deserialize, Serialize};

use crate::error::{PrivacyError, require};
use crate::grid::is_exact_exponent;

/// Integers below this in magnitude are exact as doubles.
const EXACT_INTEGERS: u64 = 1 << 53;

/// The content of a release, ours or a peer's. Whoever uses one from outside, the gate and [`crate::PublicVector::received`], calls
/// [`Payload::check`] first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// The vector `values * 2^exponent`, exact in doubles.
    Grid {
        /// Binary exponent of the grid's step, from -1022 to 970.
        exponent: i32,
        /// Whole multiples of the step, below `2^53` in magnitude.
        values: Vec<i64>,
    },
    /// Plain doubles, from a mechanism without noise of its own. Never made by a private output mechanism.
    Plain(Vec<f64>),
}

impl Payload {
    /// Refuses integers that doubles cannot hold, steps outside the doubles' range, NaN and infinity.
    pub fn check(&self) -> Result<(), PrivacyError> {
        match self {
            &Self::Grid { exponent, ref values } => {
                let allowed = "between -1022 and 970";
                require(is_exact_exponent(exponent), "grid exponent", f64::from(exponent), allowed)?;
                let fits = values.iter().all(|value| value.unsigned_abs() < EXACT_INTEGERS);
                if fits { Ok(()) } else { Err(PrivacyError::BeyondGrid { exponent }) }
            }
            Self::Plain(values) => check_finite(values),
        }
    }

    /// A point rounded to the grid with step `2^exponent`, half away from zero, or why it does not fit.
    pub fn rounded(point: &[f64], exponent: i32) -> Result<Self, PrivacyError> {
        let payload = Self::Grid { exponent, values: round_to_grid(point, exponent)? };
        payload.check()?;
        Ok(payload)
    }

    /// How many coordinates the vector has.
    pub fn len(&self) -> usize {
        match self {
            Self::Grid { values, .. } => values.len(),
            Self::Plain(values) => values.len(),
        }
    }

    /// Whether the vector has no coordinates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vector as doubles; exact for a payload that passed [`Payload::check`].
    pub fn to_vec(&self) -> Vec<f64> {
        match self {
            Self::Grid { exponent, values } => {
                values.iter().map(|&value| libm::scalbn(value as f64, *exponent)).collect()
            }
            Self::Plain(values) => values.clone(),
        }
    }
}

/// Refuses NaN and infinity.
pub(super) fn check_finite(values: &[f64]) -> Result<(), PrivacyError> {
    if values.iter().all(|value| value.is_finite()) { Ok(()) } else { Err(PrivacyError::NotFinite) }
}

/// Rounds a point to the grid: `round(point / 2^exponent)`, half away from zero; moves a coordinate by half a step at most.
pub(super) fn round_to_grid(point: &[f64], exponent: i32) -> Result<Vec<i64>, PrivacyError> {
    let to_integer = |&value: &f64| {
        // A power of two only shifts the exponent. Where the quotient underflows, it is far below a half.
        let steps = libm::round(libm::scalbn(value, -exponent));
        if steps.abs() < EXACT_INTEGERS as f64 {
            Ok(steps as i64)
        } else {
            Err(PrivacyError::BeyondGrid { exponent })
        }
    };
    point.iter().map(to_integer).collect()
}
