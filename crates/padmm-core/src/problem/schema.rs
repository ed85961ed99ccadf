//! What a table means, written down in public before anybody looks at a record.
//!
//! A [`Schema`] names every column of a file and says how it becomes numbers. All of it is public: bounds,
//! categories, fill values and the norm bound are constants that a person wrote, never statistics of the
//! records, because a scale computed from private data would itself leak (EQUATIONS §3).
//!
//! A schema exists only if it is consistent: [`SchemaDraft`] is what a file may say, [`SchemaDraft::check`]
//! turns it into a [`Schema`], and deserialising goes through the same check.

mod draft;
mod encode;
mod encoded;
mod error;
mod look;
mod matrix;

pub use draft::{ColumnDraft, LabelDraft, Scalar, SchemaDraft, SiteDraft};
pub use encode::{Cell, Encoder, Purpose, looks_like_header};
pub use encoded::{Encoded, OWN_EYES, Sites, Unusable, unlisted_note};
pub use error::SchemaError;
pub use look::{NumberLook, separator_of};
pub use matrix::MatrixEncoder;

use crate::data::FeatureSpace;
use serde::{Deserialize, Serialize};

/// What happens to a record with a missing cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MissingRule {
    /// The record is left out; at a real site, where leaving it out would show in the number of records, it counts for nothing
    /// ([`Purpose::Site`]). The rule looks at one record at a time, so adjacency survives it.
    Drop,
    /// The cell takes its column's public `fill`.
    Fill,
}

/// What happens to a number outside its public bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RangeRule {
    /// It becomes the nearer of the two bounds.
    Clip,
    /// It is an error that names row and column.
    Error,
}

/// What happens to a category that the schema does not list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownRule {
    /// It is an error that names row and column.
    Error,
    /// It goes to one more column, `name=(other)`.
    Other,
}

/// The column that a model learns to predict.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// Two classes, encoded as +1 and −1; any text outside both lists is an error.
    Binary {
        /// Its name in the file's header.
        column: String,
        /// Texts that mean +1.
        positive: Vec<String>,
        /// Texts that mean −1.
        negative: Vec<String>,
    },
    /// A number for regression, scaled from its public bounds to \[0, 1\].
    Numeric {
        /// Its name in the file's header.
        column: String,
        /// The number that becomes 0.
        lower: f64,
        /// The number that becomes 1.
        upper: f64,
    },
}

impl Label {
    /// Name of the label's column in the file.
    pub fn column(&self) -> &str {
        match self {
            Self::Binary { column, .. } | Self::Numeric { column, .. } => column,
        }
    }

    /// Whether the label has two classes.
    pub fn is_binary(&self) -> bool {
        matches!(self, Self::Binary { .. })
    }

    /// The numbers that become 0 and 1; `None` for two classes.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        match *self {
            Self::Numeric { lower, upper, .. } => Some((lower, upper)),
            Self::Binary { .. } => None,
        }
    }
}

/// The column that says which site a record belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Its name in the file's header.
    pub column: String,
    /// The sites that may occur, in the order they are numbered; if absent, sites are numbered as they appear.
    pub values: Option<Vec<String>>,
}

/// A column that is neither label nor site.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name in the file's header.
    pub name: String,
    /// What its cells become in an encoded record.
    pub kind: ColumnKind,
    /// Texts that mean "missing" in this column, beside the schema's own.
    pub missing_values: Vec<String>,
    /// Texts that mean "not measured" and take `fill`, even where missing cells drop the record.
    pub fill_values: Vec<String>,
}

/// What a column becomes in the encoded record.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnKind {
    /// One number, `(value − lower) / (upper − lower)`.
    Numeric {
        /// Public lower bound; becomes 0.
        lower: f64,
        /// Public upper bound; becomes 1.
        upper: f64,
        /// Public value that stands in for a missing one.
        fill: Option<f64>,
    },
    /// One column of zeros and ones for each public value.
    Categorical {
        /// The public values, in column order.
        values: Vec<String>,
        /// Public value that stands in for a missing one.
        fill: Option<String>,
    },
    /// Left out of the encoded record; it may hold anything.
    Ignored,
}

/// A consistent schema. See the [module](self) for how one comes to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SchemaDraft", into = "SchemaDraft")]
pub struct Schema {
    norm_bound: f64,
    intercept: bool,
    missing: MissingRule,
    missing_values: Vec<String>,
    on_out_of_range: RangeRule,
    on_unknown_category: UnknownRule,
    label: Label,
    site: Option<Site>,
    columns: Vec<Column>,
}

impl Schema {
    /// The bound on every encoded row's Euclidean norm.
    pub fn norm_bound(&self) -> f64 {
        self.norm_bound
    }

    /// The same schema with another bound on the norm of rows.
    pub fn with_norm_bound(self, norm_bound: f64) -> Self {
        assert!(norm_bound > 0.0 && norm_bound.is_finite(), "the norm bound must be positive and finite");
        Self { norm_bound, ..self }
    }

    /// Whether a column of ones is added; it counts in the norm.
    pub fn intercept(&self) -> bool {
        self.intercept
    }

    /// What happens to records with missing cells.
    pub fn missing(&self) -> MissingRule {
        self.missing
    }

    /// The column that is to be predicted.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// The site's column, if the file has one.
    pub fn site(&self) -> Option<&Site> {
        self.site.as_ref()
    }

    /// Every column but label and site, in the schema's order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The encoded columns: numeric ones in schema order, then `name=value` for each public value (and
    /// `name=(other)` where unknown categories are allowed), then `(intercept)`.
    pub fn feature_space(&self) -> FeatureSpace {
        let mut names = Vec::new();
        let mut groups = Vec::new();
        for column in &self.columns {
            if let ColumnKind::Numeric { .. } = column.kind {
                groups.push(names.len()..names.len() + 1);
                names.push(column.name.clone());
            }
        }
        for column in &self.columns {
            if let ColumnKind::Categorical { values, .. } = &column.kind {
                let start = names.len();
                names.extend(values.iter().map(|value| format!("{}={value}", column.name)));
                if self.on_unknown_category == UnknownRule::Other {
                    names.push(format!("{}=(other)", column.name));
                }
                groups.push(start..names.len());
            }
        }
        let intercept = self.intercept.then_some(names.len());
        if self.intercept {
            names.push("(intercept)".to_owned());
        }
        FeatureSpace { names, groups, intercept, n_numeric: self.n_numeric() }
    }

    fn n_numeric(&self) -> usize {
        self.columns.iter().filter(|c| matches!(c.kind, ColumnKind::Numeric { .. })).count()
    }

    /// Number of columns that are one in every record: one for each categorical column, and the intercept.
    fn n_hot(&self) -> usize {
        let categorical = |c: &&Column| matches!(c.kind, ColumnKind::Categorical { .. });
        self.columns.iter().filter(categorical).count() + usize::from(self.intercept)
    }
}

/// The form in which texts are compared: no surrounding white space, and `1.0` is `1`.
///
/// Programs that hold whole numbers with gaps write them as `1.0`; the same code at another site is `1`. Nothing
/// else is touched: `01` and `1` stay different codes.
fn canonical(text: &str) -> &str {
    let text = text.trim();
    let Some((whole, fraction)) = text.split_once('.') else { return text };
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let is_whole = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && fraction.bytes().all(|b| b == b'0');
    if is_whole { whole } else { text }
}

#[cfg(test)]
mod tests;
