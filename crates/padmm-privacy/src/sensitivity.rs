//! How far one record can move the model that a site releases: derived from enforced bounds, never a knob.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::error::{PrivacyError, require};
use crate::outward::{add_up, div_up, mul_down};

/// Largest count that a double holds exactly.
const EXACT_COUNT: usize = 1 << 53;

/// Where a sensitivity comes from.
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
    /// Records of the site.
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

    /// The bound on the L2 distance.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Where the bound comes from.
    pub fn basis(&self) -> SensitivityBasis {
        self.basis
    }

    /// What the bound was derived from; `None` for the paper's, which is not derived.
    pub fn inputs(&self) -> Option<&SensitivityInputs> {
        self.inputs.as_ref()
    }

    /// The same bound enlarged to `value`, for what rounding to the release grid adds.
    pub(crate) fn enlarged_to(mut self, value: f64) -> Self {
        assert!(value >= self.value, "a sensitivity may only grow by rounding to a grid");
        self.value = value;
        self
    }
}

/// What objective perturbation is charged by; all of it public.
///
/// The loss of a record must be a function of one linear form, `L(u . x)`, with a Lipschitz slope: then its Hessian has rank
/// one. Regularisers must be twice differentiable.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ObjectiveInputs {
    /// `B = L1 * S`: no record's gradient is longer.
    pub gradient_bound: f64,
    /// `c1 * S^2`: no record's curvature is larger in any direction.
    pub curvature_bound: f64,
    /// Records of the site.
    pub n_records: usize,
}

impl ObjectiveInputs {
    /// MATH §3 for objective perturbation: how far one record moves the gradient of the local objective, rounded up.
    ///
    /// ```text
    /// shift = 2B/n
    /// ```
    pub fn shift(&self) -> Result<f64, PrivacyError> {
        require_positive("gradient bound", self.gradient_bound)?;
        require_count("n_records", self.n_records)?;
        let shift = div_up(2.0 * self.gradient_bound, self.n_records as f64);
        require_positive("shift", shift)?;
        Ok(shift)
    }

    /// MATH §3 for objective perturbation: what the change of volume costs, rounded up.
    ///
    /// ```text
    /// jacobian = ln(1 + chi),   chi = c1 S^2 / (n m)
    /// ```
    ///
    /// Guarantee (Lemma B). Let the local objective be m-strongly convex, let b have a density proportional to
    /// `exp(-rate |b|)`, and let x be the exact minimiser of the objective with `<b, x>` added. Then the release of x is
    /// epsilon-private with `epsilon = rate * shift + jacobian`.
    ///
    /// Proof. At the minimiser `b = -grad F_D(x)`, where F_D is the objective on the data D, a bijection between x and b that
    /// is Lipschitz both ways, with the derivative `-H_D(x)` almost everywhere. So x has the density
    /// `p_D(x) = nu(b_D(x)) det H_D(x)`. Two factors change when a record is replaced.
    /// (i) `|b_D(x) - b_D'(x)| = |grad F_D(x) - grad F_D'(x)| <= 2B/n`, hence `nu(b_D)/nu(b_D') <= exp(rate * shift)`.
    /// (ii) `H_D = T + t t'` and `H_D' = T + v v'` with one T for both, `T >= m I` (in T are the other records, the
    /// regulariser and the penalty), and `|t|^2, |v|^2 <= c1 S^2/n`, since a record's Hessian is `L''(u . x) u u'`. The
    /// determinant lemma gives `det H_D / det H_D' = (1 + t' T^-1 t)/(1 + v' T^-1 v) <= 1 + chi`.
    /// Neither bound depends on which of the two data sets is called D.
    ///
    /// Departs from the published methods, which charge `2.8 chi` and ask for `chi < 1/2`: this is smaller and needs no
    /// condition. It does need the exact minimiser: there is no cheap allowance for a solver's error as in
    /// [`Sensitivity::per_record`].
    pub fn jacobian(&self, modulus: f64) -> Result<f64, PrivacyError> {
        require_positive("curvature bound", self.curvature_bound)?;
        require_count("n_records", self.n_records)?;
        require_positive("modulus", modulus)?;
        let chi = div_up(self.curvature_bound, mul_down(self.n_records as f64, modulus));
        let jacobian = libm::log1p(chi).next_up().next_up();
        require_positive("jacobian", jacobian)?;
        Ok(jacobian)
    }
}

/// The solver tolerance that adds the fraction `relative` to the sensitivity: `tau = relative * 2B/n`.
///
/// Rounding does not matter here: whatever number comes out is the one that the sensitivity is derived with.
pub fn default_tolerance(gradient_bound: f64, n_records: usize, relative: f64) -> f64 {
    relative * (2.0 * gradient_bound / n_records as f64)
}

fn require_positive(name: &'static str, value: f64) -> Result<(), PrivacyError> {
    require(value > 0.0 && value.is_finite(), name, value, "a finite number above 0")
}

fn require_count(name: &'static str, count: usize) -> Result<(), PrivacyError> {
    require((1..=EXACT_COUNT).contains(&count), name, count as f64, "between 1 and 2^53")
}
