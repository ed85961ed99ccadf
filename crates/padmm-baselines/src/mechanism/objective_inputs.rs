//! What objective perturbation is charged by: Lemma B.

use padmm_privacy::outward::{div_up, mul_down};
use padmm_privacy::{Premise, PrivacyError, require_count, require_positive};
use serde::{Deserialize, Serialize};

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
    /// Records that the local loss is an average of.
    pub n_records: usize,
}

impl ObjectiveInputs {
    /// The problem that noise is calibrated for, with problems of this strong convexity.
    pub(crate) fn premise(&self, modulus: f64) -> Premise {
        let Self { gradient_bound, curvature_bound, n_records } = *self;
        let curvature_bound = Some(curvature_bound);
        Premise { gradient_bound, curvature_bound, n_records, modulus, tolerance: None }
    }

    /// EQUATIONS §3 for objective perturbation: how far one record moves the gradient of the local objective, rounded up.
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

    /// EQUATIONS §3 for objective perturbation: what the change of volume costs, rounded up.
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
    /// [`padmm_privacy::Sensitivity::per_record`].
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
