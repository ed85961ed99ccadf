//! Encoded records: what the mathematics sees of a table.
//!
//! A record's feature vector is `a = scale · (numeric values, ones at the hot columns)`. Categorical values
//! and the intercept are stored as the *index* of the column that is one, never as dense zeros and ones, so
//! a record of Adult takes 14 numbers in place of 104.

mod crossed;

use std::ops::Range;

pub(crate) use crossed::{CrossedColumns, FEWEST_RECORDS, MOST_CELLS};

/// The columns of the encoded feature vector: their names, and which belong together.
///
/// Numeric columns come first, then one column for each public value of each categorical column, then the
/// intercept if there is one.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FeatureSpace {
    /// One name a column: `age`, `workclass=Private`, `(intercept)`.
    pub names: Vec<String>,
    /// The columns that one source column became; the intercept is in no group.
    pub groups: Vec<Range<usize>>,
    /// The column of ones, which no regulariser touches.
    pub intercept: Option<usize>,
    /// How many of the first columns are numbers.
    #[serde(skip)]
    pub n_numeric: usize,
}

impl FeatureSpace {
    /// Number of encoded columns, the intercept included.
    pub fn n_features(&self) -> usize {
        self.names.len()
    }

    /// A norm that no encoded row exceeds before it is scaled: numbers are in \[0, 1\], and of a category one column is 1.
    pub fn largest_norm(&self) -> f64 {
        let values = self.groups.len() + usize::from(self.intercept.is_some());
        // Longer than any row by more than rounding, so that none is scaled.
        (values.max(1) as f64).sqrt() * (1.0 + 1e-9)
    }

    /// The norm of a row whose numbers are spread evenly over \[0, 1\].
    pub fn usual_norm(&self) -> f64 {
        let n_hot =
            self.groups.len() - self.n_numeric.min(self.groups.len()) + usize::from(self.intercept.is_some());
        (n_hot as f64 + self.n_numeric as f64 / 3.0).max(1.0 / 3.0).sqrt()
    }

    /// A space of `n` unnamed numeric columns, for tests and synthetic problems.
    pub fn numeric(n: usize) -> Self {
        Self {
            names: (0..n).map(|j| format!("x{j}")).collect(),
            groups: (0..n).map(|j| j..j + 1).collect(),
            intercept: None,
            n_numeric: n,
        }
    }
}

/// Rows of numbers are padded to a multiple of this, so that loops over them have no remainder.
pub(crate) const LANES: usize = 4;

/// Encoded records of one site. Every row satisfies `‖a‖₂ ≤ norm_bound`; [`Dataset::push`] enforces it.
#[derive(Clone, PartialEq)]
pub struct Dataset {
    n_features: usize,
    n_numeric: usize,
    /// Stored values of a row of numbers: `n_numeric` and zeros up to the next multiple of [`LANES`], at least one.
    stride: usize,
    n_hot: usize,
    norm_bound: f64,
    /// `c`, if slopes are capped at `c/‖a‖`.
    slope_cap: Option<f64>,
    numeric: Vec<f64>,
    hot: Vec<u32>,
    scale: Vec<f64>,
    /// `c/‖a‖` of every record, rounded down; empty without a cap.
    caps: Vec<f64>,
    labels: Vec<f64>,
    crossed: crossed::OnDemand,
}

/// Counts only: a debug print must not show a record.
impl std::fmt::Debug for Dataset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dataset({} records × {} features)", self.n_records(), self.n_features)
    }
}

/// One encoded record: `a = scale · (numeric, ones at hot)`.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// Values of the first columns, before `scale`.
    pub numeric: &'a [f64],
    /// Records that are one, before `scale`.
    pub hot: &'a [u32],
    /// What the whole row is multiplied by, so that its norm is at most the bound.
    pub scale: f64,
    /// The label: −1 or +1 for classification, a number for regression.
    pub label: f64,
}

impl Row<'_> {
    /// Whether the record counts for nothing ([`Dataset::push_empty`]).
    pub fn is_empty(&self) -> bool {
        self.scale == 0.0
    }
}

/// Consecutive encoded records, as they are stored: each kind of value in one slice.
#[derive(Clone, Copy)]
pub(crate) struct Records<'a> {
    /// Rows of [`Dataset::stride`] values.
    pub numeric: &'a [f64],
    pub hot: &'a [u32],
    pub scale: &'a [f64],
    /// Empty where slopes are not capped.
    pub caps: &'a [f64],
    pub labels: &'a [f64],
}

impl Dataset {
    /// An empty set of records of `n_numeric` dense values and `n_hot` one-hot indices in `n_features` columns.
    pub fn new(n_features: usize, n_numeric: usize, n_hot: usize, norm_bound: f64) -> Self {
        assert!(n_numeric <= n_features && n_features <= u32::MAX as usize, "columns must fit");
        assert!(norm_bound > 0.0 && norm_bound.is_finite(), "the norm bound must be positive and finite");
        Self {
            n_features,
            n_numeric,
            stride: n_numeric.max(1).next_multiple_of(LANES),
            n_hot,
            norm_bound,
            slope_cap: None,
            numeric: vec![],
            hot: vec![],
            scale: vec![],
            caps: vec![],
            labels: vec![],
            crossed: crossed::OnDemand::default(),
        }
    }

    /// An empty set with the same columns and bound as `self`.
    pub fn empty_like(&self) -> Self {
        let empty = Self::new(self.n_features, self.n_numeric, self.n_hot, self.norm_bound);
        Self { slope_cap: self.slope_cap, ..empty }
    }

    /// The same records with slopes capped at `cap/‖a‖` — EQUATIONS §3, "capped slopes" — and rows cut to `norm_bound` in place of the bound
    /// that they had: no record's gradient is longer than `cap`, so the bound may be one that no row exceeds
    /// ([`FeatureSpace::largest_norm`]).
    pub fn with_slope_cap(mut self, cap: f64, norm_bound: f64) -> Self {
        assert!(cap > 0.0 && cap.is_finite(), "the cap must be positive and finite");
        self.slope_cap = Some(cap);
        self.with_norm_bound(norm_bound)
    }

    /// The same records cut to another bound on the norm of rows.
    pub fn with_norm_bound(mut self, norm_bound: f64) -> Self {
        assert!(norm_bound > 0.0 && norm_bound.is_finite(), "the norm bound must be positive and finite");
        self.norm_bound = norm_bound;
        let fitted = |row: Row<'_>| {
            let (scale, cap) = self.scale_and_cap(row.numeric, row.hot);
            (if row.is_empty() { 0.0 } else { scale }, cap)
        };
        (self.scale, self.caps) = self.rows().map(fitted).unzip();
        if self.slope_cap.is_none() {
            self.caps.clear();
        }
        self
    }

    /// What a row is multiplied by so that its norm is at most the bound, and the cap on its slope, if there is one. The scale is rounded so
    /// that the bound holds of the floating-point values that are later used, and so is the cap: cap times norm is at most `c`.
    fn scale_and_cap(&self, numeric: &[f64], hot: &[u32]) -> (f64, f64) {
        let norm = (numeric.iter().map(|v| v * v).sum::<f64>() + hot.len() as f64).sqrt();
        // The computed norm carries a relative error below (terms + 2) · 2⁻⁵³; take twice that off the scale.
        let slack = 1.0 - (numeric.len() + hot.len() + 4) as f64 * f64::EPSILON;
        let scale = if norm > self.norm_bound * slack { self.norm_bound / norm * slack } else { 1.0 };
        // The scaled norm is not longer than the unscaled one. What underflowed in a square is below 1e-150.
        let cap = self.slope_cap.map_or(f64::INFINITY, |cap| cap / (norm + 1e-150) * slack);
        (scale, cap)
    }

    /// Makes room for `n` more records, so that a large set is not moved while it grows.
    pub fn reserve(&mut self, n: usize) {
        self.numeric.reserve_exact(n * self.stride);
        self.hot.reserve_exact(n * self.n_hot);
        self.scale.reserve_exact(n);
        self.labels.reserve_exact(n);
    }

    /// Adds a record, scaling it down to `‖a‖₂ ≤ norm_bound` where it is longer — EQUATIONS §3.
    ///
    /// The scale is rounded so that the bound holds of the floating-point values that are later used.
    pub fn push(&mut self, numeric: &[f64], hot: &[u32], label: f64) {
        assert_eq!((numeric.len(), hot.len()), (self.n_numeric, self.n_hot), "a row has the set's shape");
        assert!(hot.windows(2).all(|w| w[0] < w[1]), "hot columns ascend, so that none counts twice");
        assert!(
            hot.iter().all(|&j| (j as usize) >= self.n_numeric && (j as usize) < self.n_features),
            "hot columns exist"
        );
        assert!(label.is_finite() && numeric.iter().all(|v| v.is_finite()), "encoded values are finite");
        let (scale, cap) = self.scale_and_cap(numeric, hot);
        self.numeric.extend_from_slice(numeric);
        self.numeric.resize((self.labels.len() + 1) * self.stride, 0.0);
        self.hot.extend_from_slice(hot);
        self.scale.push(scale);
        if self.slope_cap.is_some() {
            self.caps.push(cap);
        }
        self.labels.push(label);
        self.crossed = crossed::OnDemand::default();
    }

    /// Adds a record that counts for nothing: its feature vector is exactly zero, so its gradient is zero whatever the model.
    ///
    /// At a real site every row of a file is a record (EQUATIONS §3), and one that cannot be read as its schema says becomes this. It is in
    /// the number of records like any other. The hot columns must exist because loops follow them; what they lead to is
    /// multiplied by zero.
    pub fn push_empty(&mut self, hot: &[u32], label: f64) {
        let zeros = vec![0.0; self.n_numeric];
        self.push(&zeros, hot, label);
        if let Some(scale) = self.scale.last_mut() {
            *scale = 0.0;
        }
    }

    /// Adds a copy of a record of another set of the same shape and bound; one that counts for nothing stays so.
    pub fn push_row(&mut self, row: Row<'_>) {
        if row.is_empty() {
            self.push_empty(row.hot, row.label);
        } else {
            self.push(row.numeric, row.hot, row.label);
        }
    }

    /// The records that count for something. For what people are told about records, such as an accuracy; never for what a site
    /// learns from, because how many they are depends on records.
    pub fn counted(&self) -> Self {
        let mut counted = self.empty_like();
        self.rows().filter(|row| !row.is_empty()).for_each(|row| counted.push_row(row));
        counted
    }

    /// Adds all records of another set of the same shape and bound, as they are.
    pub fn append(&mut self, other: &Self) {
        let bounds = |set: &Self| (set.norm_bound.to_bits(), set.slope_cap.map(f64::to_bits));
        let shape = |set: &Self| (set.n_features, set.n_numeric, set.n_hot, bounds(set));
        assert_eq!(shape(self), shape(other), "the sets have one shape and one bound");
        self.numeric.extend_from_slice(&other.numeric);
        self.hot.extend_from_slice(&other.hot);
        self.scale.extend_from_slice(&other.scale);
        self.caps.extend_from_slice(&other.caps);
        self.labels.extend_from_slice(&other.labels);
        self.crossed = crossed::OnDemand::default();
    }

    /// Number of records, those that count for nothing included.
    pub fn n_records(&self) -> usize {
        self.labels.len()
    }

    /// Number of encoded columns, `p`, the intercept included.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Dense columns, which come first; all others are one-hot.
    pub fn n_numeric(&self) -> usize {
        self.n_numeric
    }

    /// Stored values of a row of numbers, zeros at the end included.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Number of one-hot indices a record has.
    pub fn n_hot(&self) -> usize {
        self.n_hot
    }

    /// The bound `S` on every row's Euclidean norm.
    pub fn norm_bound(&self) -> f64 {
        self.norm_bound
    }

    /// `c`, if slopes are capped at `c/‖a‖`.
    pub fn slope_cap(&self) -> Option<f64> {
        self.slope_cap
    }

    /// What record `r`'s slope is capped at: `c/‖a‖`, rounded down; infinite if slopes are not capped.
    pub fn cap(&self, r: usize) -> f64 {
        self.caps.get(r).copied().unwrap_or(f64::INFINITY)
    }

    /// The caps of records `range`; empty if slopes are not capped.
    pub(crate) fn caps(&self, range: Range<usize>) -> &[f64] {
        if self.caps.is_empty() { &[] } else { &self.caps[range] }
    }

    /// Labels in the order of the records: −1 or +1 for classification, numbers for regression.
    pub fn labels(&self) -> &[f64] {
        &self.labels
    }

    /// The encoded record `r`, counted from zero; panics if there is none.
    pub fn row(&self, r: usize) -> Row<'_> {
        Row {
            numeric: &self.numeric[r * self.stride..][..self.n_numeric],
            hot: &self.hot[r * self.n_hot..(r + 1) * self.n_hot],
            scale: self.scale[r],
            label: self.labels[r],
        }
    }

    /// All records in the order in which they were added.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.n_records()).map(|r| self.row(r))
    }

    /// The margin `aᵀx` of each record.
    pub fn margins(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(self.n_features, x.len(), "a model has one coefficient a column");
        let margin = |row: Row<'_>| {
            let dense: f64 = row.numeric.iter().zip(x).map(|(a, x)| a * x).sum();
            row.scale * (dense + row.hot.iter().map(|&j| x[j as usize]).sum::<f64>())
        };
        self.rows().map(margin).collect()
    }

    /// Records `range`, for loops over many of them.
    pub(crate) fn records(&self, range: Range<usize>) -> Records<'_> {
        Records {
            numeric: &self.numeric[range.start * self.stride..range.end * self.stride],
            hot: &self.hot[range.start * self.n_hot..range.end * self.n_hot],
            scale: &self.scale[range.clone()],
            caps: self.caps(range.clone()),
            labels: &self.labels[range],
        }
    }

    /// Hot columns crossed with each other; `None` where that would not help.
    pub(crate) fn crossed(&self) -> Option<&CrossedColumns> {
        self.crossed.get(&self.hot, self.n_hot)
    }

    /// [`Self::records`] with cells of `crossed` in place of the hot columns.
    pub(crate) fn crossed_records<'a>(
        &'a self,
        crossed: &'a CrossedColumns,
        range: Range<usize>,
    ) -> Records<'a> {
        let hot = &crossed.cells()[range.start * crossed.n_crossed()..range.end * crossed.n_crossed()];
        Records { hot, ..self.records(range) }
    }

    /// Bytes that a gradient cannot do without: a record's numbers, one index for each crossed column, its scale and its label.
    pub fn pass_bytes(&self) -> usize {
        let n_indices = self.crossed().map_or(self.n_hot, CrossedColumns::n_crossed);
        self.n_records() * (8 * self.n_numeric + 4 * n_indices + 16)
    }

    /// Additions and multiplications of a gradient: each stored value is used in a margin and in the sum, and a slope takes about 30.
    pub fn pass_flops(&self) -> usize {
        let n_indices = self.crossed().map_or(self.n_hot, CrossedColumns::n_crossed);
        self.n_records() * (4 * self.n_numeric + 2 * n_indices + 30)
    }

    /// Bytes that the encoded records take.
    pub fn memory_bytes(&self) -> usize {
        8 * (self.numeric.len() + self.scale.len() + self.caps.len() + self.labels.len())
            + 4 * self.hot.len()
            + self.crossed.memory_bytes()
    }
}
