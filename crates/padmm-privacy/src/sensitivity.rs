//! How far one record can move the model that a site releases: derived from enforced bounds, never a knob.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::error::{PrivacyError, require};
use crate::mechanism::Terms;
use crate::outward::{add_up, div_up, mul_down};
use crate::schedule::Premise;

/// Largest count that a double holds exactly.
const EXACT_COUNT: usize = 1 << 53;

/// Which argument a sensitivity rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensitivityBasis {
    /// Derived for the replacement of one record; this is the one that is proved.
    Record,
    /// The paper's Lemma 4, offered for comparison only.
    Paper,
}

impl fmt::Display for SensitivityBasis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Record => "derived per record",
            Self::Paper => "the paper's Lemma 4 (for comparison only)",
        })
    }
}

/// What the per-record sensitivity is derived from; all of it public.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SensitivityInputs {
    /// `B = L1 * S`: slope bound of the loss times the enforced row norm; no record's gradient is longer.
    pub gradient_bound: f64,
    /// `n`: records that the local loss is an average of.
    pub n_records: usize,
    /// `tau`: the residual that the local solver certifies.
    pub tolerance: f64,
    /// `m = 2 * penalty * degree + m_R`: strong convexity of the local problem.
    pub modulus: f64,
}

/// An L2 sensitivity together with where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sensitivity {
    value: f64,
    basis: SensitivityBasis,
    #[serde(skip)]
    inputs: Option<SensitivityInputs>,
}

impl Sensitivity {
    /// The sensitivity of one private step, equation (Delta) of the specification, rounded up:
    ///
    /// ```text
    /// Delta = (2B/n + 2 tau) / m
    /// ```
    ///
    /// with `B = gradient_bound`, `n = n_records`, `tau = tolerance`, `m = modulus`.
    ///
    /// Guarantee: if every record's gradient is at most B long everywhere, if the local objective is m-strongly convex,
    /// and if a point leaves only with a residual of at most tau, then replacing one record moves that point by at
    /// most Delta in the L2 norm.
    ///
    /// Proof. Let F, F' be the local objectives on neighbouring data, x, x' their minimisers. Strong monotonicity gives
    /// `m |x - x'|^2 <= <grad F(x') - grad F(x), x' - x> = <grad F(x') - grad F'(x'), x' - x> <= (2B/n) |x' - x|`,
    /// since `grad F(x) = grad F'(x') = 0` and F, F' differ in one of n averaged terms. A returned point with residual
    /// at most tau lies within tau/m of its minimiser, on either data set. The triangle inequality adds the three.
    ///
    /// Departs from the paper: Lemma 4 of the paper has `V/(penalty * degree)`, see [`Sensitivity::paper`].
    pub fn per_record(inputs: &SensitivityInputs) -> Result<Self, PrivacyError> {
        let &SensitivityInputs { gradient_bound, n_records, tolerance, modulus } = inputs;
        require_positive("gradient bound", gradient_bound)?;
        require_count("n_records", n_records)?;
        require(tolerance >= 0.0 && tolerance.is_finite(), "tolerance", tolerance, "a finite number >= 0")?;
        require_positive("modulus", modulus)?;
        let moved = div_up(2.0 * gradient_bound, n_records as f64);
        let value = div_up(add_up(moved, 2.0 * tolerance), modulus);
        require_positive("sensitivity", value)?;
        Ok(Self { value, basis: SensitivityBasis::Record, inputs: Some(*inputs) })
    }

    /// The paper's Lemma 4, `Delta = V / (penalty * degree)` with `V = gradient_bound`, rounded up. For comparison only.
    ///
    /// It lacks the 1/n of an average over n records, it subtracts gradients at two different points, and with a
    /// quadratic regulariser no bound V exists. Nothing is guaranteed by this number.
    pub fn paper(gradient_bound: f64, penalty: f64, degree: usize) -> Result<Self, PrivacyError> {
        require_positive("gradient bound", gradient_bound)?;
        require_positive("penalty", penalty)?;
        require_count("degree", degree)?;
        let value = div_up(gradient_bound, mul_down(penalty, degree as f64));
        require_positive("sensitivity", value)?;
        Ok(Self { value, basis: SensitivityBasis::Paper, inputs: None })
    }

    /// How far replacing one term moves a sum, in units of the bound that is enforced on terms.
    pub(crate) fn of_sum(terms: Terms) -> Self {
        Self { value: terms.sensitivity(), basis: SensitivityBasis::Record, inputs: None }
    }

    /// The bound on the L2 distance.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Whether the bound is derived for one record or is the paper's.
    pub fn basis(&self) -> SensitivityBasis {
        self.basis
    }

    /// What the bound was derived from; `None` for the paper's, which is not derived.
    pub fn inputs(&self) -> Option<&SensitivityInputs> {
        self.inputs.as_ref()
    }

    /// The problem that the bound was derived for.
    pub fn premise(&self) -> Option<Premise> {
        let SensitivityInputs { gradient_bound, n_records, tolerance, modulus } = self.inputs?;
        let tolerance = Some(tolerance);
        Some(Premise { gradient_bound, curvature_bound: None, n_records, modulus, tolerance })
    }

    /// The same bound enlarged to `value`, for what rounding to the release grid adds.
    pub(crate) fn enlarged_to(mut self, value: f64) -> Self {
        assert!(value >= self.value, "a sensitivity may only grow by rounding to a grid");
        self.value = value;
        self
    }
}

/// Refuses what is not a finite number above 0.
pub fn require_positive(name: &'static str, value: f64) -> Result<(), PrivacyError> {
    require(value > 0.0 && value.is_finite(), name, value, "a finite number above 0")
}

/// Refuses counts that are 0 or that doubles cannot hold exactly.
pub fn require_count(name: &'static str, count: usize) -> Result<(), PrivacyError> {
    require((1..=EXACT_COUNT).contains(&count), name, count as f64, "between 1 and 2^53")
}
