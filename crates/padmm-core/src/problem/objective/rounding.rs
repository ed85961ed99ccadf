//! What floating point does to a gradient, bounded by public numbers: so that whether a point can be certified is known
//! before any record is looked at.

use crate::data::MOST_CELLS;
use crate::kernel;
use crate::loss::Loss;
use crate::regularizer::RegularizerTerm;

/// Unit roundoff of a double.
pub(crate) const UNIT: f64 = f64::EPSILON / 2.0;

/// How much is added up for one gradient; all of it public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sums {
    /// Records of the part that has most.
    pub largest_part: usize,
    /// Number of parts, each with cells of its own.
    pub n_parts: usize,
    /// Number of tasks of all parts together: so many sums are added at the end.
    pub n_tasks: usize,
    /// Encoded columns, which the sums have entries for.
    pub n_features: usize,
    /// Values that are stored of each record.
    pub values_per_record: usize,
}

/// What no record exceeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rows {
    /// `S ≥ ‖a‖`
    pub norm: f64,
    /// `c`, if slopes are capped at `c/‖a‖`.
    pub slope_cap: Option<f64>,
}

/// Bounds on rounding errors as functions of the sizes of the point and of the linear term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rounding {
    depth: f64,
    values: f64,
    n_features: f64,
    slope: Option<f64>,
    curvature: Option<f64>,
    row: f64,
    slope_cap: Option<f64>,
    weight: f64,
    quadratic: f64,
    regularizer: f64,
}

impl Rounding {
    /// For records within `rows` whose weights add up to `weight`. Slopes that count as weights of the hinge's certificate
    /// (`slopes_are_weights`) are what they are, whatever margin they belong to.
    pub(crate) fn new(
        sums: Sums,
        loss: Loss,
        slopes_are_weights: bool,
        rows: Rows,
        weight: f64,
        quadratic: f64,
        regularizer: &RegularizerTerm,
    ) -> Self {
        let Sums { largest_part, n_parts, n_tasks, n_features, values_per_record } = sums;
        let block = kernel::gradient_block(n_features);
        // A column's cells are added one by one; those of one part are in `b`.
        let more_cells = (n_parts - 1) * MOST_CELLS;
        let (within, blocks) = (block.min(largest_part), largest_part / block);
        Self {
            depth: (within + blocks + values_per_record + n_tasks + more_cells + 16) as f64,
            values: values_per_record as f64,
            n_features: n_features as f64,
            slope: loss.slope_bound(),
            curvature: loss.curvature_bound().filter(|_| !slopes_are_weights),
            row: rows.norm,
            slope_cap: rows.slope_cap,
            weight,
            quadratic: quadratic + regularizer.curvature,
            regularizer: regularizer.rounding(n_features),
        }
    }

    /// A bound on the rounding error of a computed (sub)gradient at a point of norm `x`, in Euclidean norm.
    ///
    /// Sums over records are formed in blocks of `b`, at most `n`, and then over blocks, so each entry carries a relative
    /// error below `(b + n/b + values + 16)·2⁻⁵³` of the sum of absolute terms, which is at most `B` times
    /// the weights (of the 16, eight are the exponential's, and its sum, the quotient, the scale, the product and the
    /// weight have one each); the other terms are a handful of operations each. A margin is off by what its own sum rounds, and a
    /// slope by `L₂` times that, which a loss with a sharp corner makes large; a cap on slopes adds nothing to it. Absolute values and group norms add what
    /// their own subgradients round.
    pub(crate) fn at(&self, x: f64, linear: f64) -> f64 {
        // The squared loss has no slope bound; its residuals are then bounded by what the margins can be.
        let slope = self.slope.unwrap_or(1.0 + self.row * x);
        let records = match self.slope_cap {
            None => self.depth * UNIT * slope * self.row * self.weight,
            Some(cap) => self.depth * UNIT * cap.min(slope * self.row) * self.weight,
        };
        let corner = self.curvature.map_or(0.0, |c| c * self.margin(x) * self.row * self.weight);
        records + corner + 8.0 * UNIT * (linear + self.quadratic * x) + self.regularizer
    }

    /// A bound on the rounding error of a margin: `Σ|a_j x_j| ≤ S‖x‖`.
    pub(crate) fn margin(&self, x: f64) -> f64 {
        (self.values + 4.0) * f64::EPSILON * (1.0 + self.row * x)
    }

    /// The certificate of a computed residual of size `size`: the norm itself is a sum of squares that rounds too.
    pub(crate) fn certificate(&self, size: f64, x: f64, linear: f64) -> f64 {
        size * (1.0 + (self.n_features + 8.0) * f64::EPSILON) + self.at(x, linear)
    }
}
