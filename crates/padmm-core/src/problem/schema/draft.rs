//! What a schema file may say, and the check that makes a [`Schema`] of it.

use super::{
    Column, ColumnKind, Label, MissingRule, RangeRule, Schema, SchemaError, Site, UnknownRule, canonical,
};
use crate::printable::is_control;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A number or a text: `fill = 240` and `values = [0, 1]` read as naturally as `values = ["0", "1"]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A number written without a decimal point.
    Integer(i64),
    /// A number written with a decimal point or an exponent.
    Float(f64),
    /// Anything written in quotation marks.
    Text(String),
}

impl Scalar {
    /// The text that a cell would hold.
    fn text(&self) -> String {
        match self {
            Self::Integer(v) => v.to_string(),
            Self::Float(v) => canonical(&v.to_string()).to_owned(),
            Self::Text(text) => text.trim().to_owned(),
        }
    }

    /// The number, if it is one.
    fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(v) => Some(*v as f64),
            Self::Float(v) => Some(*v),
            Self::Text(text) => text.trim().parse().ok(),
        }
    }
}

/// A schema as written, before it is known to be consistent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaDraft {
    /// Every encoded row is scaled down to this Euclidean norm.
    #[serde(default = "one")]
    pub norm_bound: f64,
    /// Whether a column of ones is added, which no regulariser penalises.
    #[serde(default)]
    pub intercept: bool,
    /// What becomes of a record with missing cells.
    #[serde(default = "drop_record")]
    pub missing: MissingRule,
    /// Texts that mean "missing" in every column.
    #[serde(default = "usual_missing_values")]
    pub missing_values: Vec<String>,
    /// Rule for numbers outside their bounds.
    #[serde(default = "clip")]
    pub on_out_of_range: RangeRule,
    /// Rule for categories that are not listed.
    #[serde(default = "unknown_is_error")]
    pub on_unknown_category: UnknownRule,
    /// The column that is to be predicted.
    #[serde(default)]
    pub label: LabelDraft,
    /// The column that says which site a record belongs to, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteDraft>,
    /// Every column but label and site.
    #[serde(default)]
    pub columns: Vec<ColumnDraft>,
}

fn one() -> f64 {
    1.0
}
fn drop_record() -> MissingRule {
    MissingRule::Drop
}
fn usual_missing_values() -> Vec<String> {
    ["?", "", "NA"].map(str::to_owned).to_vec()
}
fn clip() -> RangeRule {
    RangeRule::Clip
}
fn unknown_is_error() -> UnknownRule {
    UnknownRule::Error
}

/// The label's column before it is checked: which fields it needs depends on its kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelDraft {
    /// Its name in the file's header.
    #[serde(default)]
    pub column: String,
    /// Either `binary` or `numeric`; it must be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Texts that mean +1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub positive: Vec<Scalar>,
    /// Texts that mean −1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub negative: Vec<Scalar>,
    /// Public lower bound of a numeric label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Public upper bound of a numeric label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

/// The site's column before it is checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteDraft {
    /// Its name in the file's header.
    pub column: String,
    /// The sites that may occur; left out, any may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Scalar>>,
}

/// A column before it is checked: which fields it needs depends on its kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnDraft {
    /// Its name in the file's header.
    pub name: String,
    /// Either `numeric`, `categorical` or `ignored`; it must be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Public lower bound of a numeric column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// Public upper bound of a numeric column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// Public values of a categorical column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Scalar>>,
    /// Public value that stands in for a missing one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Scalar>,
    /// Further texts that mean "missing" in this column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_values: Vec<Scalar>,
    /// Texts that mean "not measured" and take `fill`, even where missing cells drop the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fill_values: Vec<Scalar>,
}

impl SchemaDraft {
    /// Checks that the draft is complete and consistent.
    pub fn check(self) -> Result<Schema, SchemaError> {
        if !(self.norm_bound > 0.0 && self.norm_bound.is_finite()) {
            return Err(setting("norm_bound", "must be a positive number; 1.0 is usual"));
        }
        if self.label.column.is_empty() {
            return Err(setting("label", "has no `column`; name the column that is to be predicted"));
        }
        let missing_values: Vec<String> =
            self.missing_values.iter().map(|v| canonical(v).to_owned()).collect();
        if let Some((name, what)) = self.controlled() {
            return Err(column(
                name,
                &format!(
                    "has {what} with a line break or another control character; remove it there and in the file"
                ),
            ));
        }
        let mut names = BTreeSet::new();
        let site_column = self.site.iter().map(|s| &s.column);
        for name in
            [&self.label.column].into_iter().chain(site_column).chain(self.columns.iter().map(|c| &c.name))
        {
            if name.trim() != name || name.is_empty() {
                return Err(column(
                    name,
                    "must have a name without surrounding spaces, as in the file's header",
                ));
            }
            if !names.insert(name.as_str()) {
                return Err(column(name, "is described twice; keep one description"));
            }
        }
        let schema = Schema {
            norm_bound: self.norm_bound,
            intercept: self.intercept,
            missing: self.missing,
            on_out_of_range: self.on_out_of_range,
            on_unknown_category: self.on_unknown_category,
            label: check_label(self.label, &missing_values)?,
            site: self.site.map(check_site).transpose()?,
            columns: (self.columns.into_iter())
                .map(|c| c.check(self.missing, &missing_values))
                .collect::<Result<_, _>>()?,
            missing_values,
        };
        let features = schema.feature_space();
        if schema.columns.iter().all(|c| c.kind == ColumnKind::Ignored) {
            return Err(setting(
                "columns",
                "has no numeric or categorical column, so there is nothing to learn from",
            ));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = features.names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(column(twice, "names two encoded columns; rename a column or a value"));
        }
        if u32::try_from(features.names.len()).is_err() {
            return Err(setting("columns", "gives more encoded columns than can be indexed"));
        }
        Ok(schema)
    }
}

impl SchemaDraft {
    /// The first column with a name or a value that could forge a line where it is shown. Plans and models bring schemas of others, and
    /// names and categories stand in tables and messages everywhere.
    fn controlled(&self) -> Option<(&str, &'static str)> {
        let is_bad = |text: &str| text.contains(is_control);
        let in_values =
            |values: &[Scalar]| values.iter().any(|v| matches!(v, Scalar::Text(text) if is_bad(text)));
        let label = [(
            self.label.column.as_str(),
            in_values(&self.label.positive) || in_values(&self.label.negative),
        )];
        let site = self.site.iter().map(|s| (s.column.as_str(), s.values.as_deref().is_some_and(in_values)));
        let columns =
            self.columns.iter().map(|c| (c.name.as_str(), c.values.as_deref().is_some_and(in_values)));
        for (name, has_bad_value) in label.into_iter().chain(site).chain(columns) {
            if is_bad(name) {
                return Some((name, "a name"));
            }
            if has_bad_value {
                return Some((name, "a value"));
            }
        }
        None
    }
}

impl ColumnDraft {
    fn check(self, rule: MissingRule, schema_missing: &[String]) -> Result<Column, SchemaError> {
        let problem = |text: &str| column(&self.name, text);
        let kind = match self.kind.as_deref() {
            Some("numeric") => {
                if self.values.is_some() {
                    return Err(problem("is numeric but has `values`; remove them or make it categorical"));
                }
                let (lower, upper) = bounds(&self.name, self.lower, self.upper)?;
                let number = |fill: &Scalar| {
                    fill.number()
                        .filter(|v| (lower..=upper).contains(v))
                        .ok_or_else(|| problem("has a `fill` that is not a number within its bounds"))
                };
                ColumnKind::Numeric { lower, upper, fill: self.fill.as_ref().map(number).transpose()? }
            }
            Some("categorical") => {
                if self.lower.is_some() || self.upper.is_some() {
                    return Err(problem(
                        "is categorical but has `lower` or `upper`; remove them or make it numeric",
                    ));
                }
                let values = texts(self.values.as_deref().unwrap_or_default());
                if values.is_empty() {
                    return Err(problem(
                        "is categorical and needs `values`: the list of its public categories",
                    ));
                }
                distinct(&self.name, &values)?;
                if let Some(value) = values.iter().find(|v| is_in(v, schema_missing)) {
                    return Err(problem(&format!("lists `{value}`, which `missing_values` says is missing")));
                }
                let fill = self.fill.as_ref().map(Scalar::text);
                if fill.as_ref().is_some_and(|fill| !is_in(fill, &values)) {
                    return Err(problem("has a `fill` that is not one of its `values`"));
                }
                ColumnKind::Categorical { values, fill }
            }
            Some("ignored") => ColumnKind::Ignored,
            Some(other) => {
                let text = format!("has kind = \"{other}\"; use \"numeric\", \"categorical\" or \"ignored\"");
                return Err(problem(&text));
            }
            None => return Err(problem("has no `kind`; say \"numeric\", \"categorical\" or \"ignored\"")),
        };
        let has_fill = match &kind {
            ColumnKind::Numeric { fill, .. } => fill.is_some(),
            ColumnKind::Categorical { fill, .. } => fill.is_some(),
            ColumnKind::Ignored => true,
        };
        if !has_fill && rule == MissingRule::Fill {
            return Err(problem("needs a public `fill`, because missing = \"fill\""));
        }
        if !has_fill && !self.fill_values.is_empty() {
            return Err(problem("has `fill_values` but no `fill` to replace them by"));
        }
        let (missing_values, fill_values) = (texts(&self.missing_values), texts(&self.fill_values));
        Ok(Column { kind, missing_values, fill_values, name: self.name })
    }
}

fn check_label(draft: LabelDraft, missing_values: &[String]) -> Result<Label, SchemaError> {
    let problem = |text: &str| Err(column(&draft.column, text));
    match draft.kind.as_deref() {
        Some("binary") => {
            if draft.lower.is_some() || draft.upper.is_some() {
                return problem(
                    "is a binary label but has `lower` or `upper`; remove them or make it numeric",
                );
            }
            let (positive, negative) = (texts(&draft.positive), texts(&draft.negative));
            if positive.is_empty() || negative.is_empty() {
                return problem(
                    "is a binary label and needs `positive` and `negative`: the texts of each class",
                );
            }
            let all = [positive.as_slice(), negative.as_slice()].concat();
            distinct(&draft.column, &all)?;
            if let Some(value) = all.iter().find(|v| is_in(v, missing_values)) {
                return problem(&format!("lists `{value}`, which `missing_values` says is missing"));
            }
            Ok(Label::Binary { column: draft.column, positive, negative })
        }
        Some("numeric") => {
            if !draft.positive.is_empty() || !draft.negative.is_empty() {
                return problem(
                    "is a numeric label but has `positive` or `negative`; remove them or make it binary",
                );
            }
            let (lower, upper) = bounds(&draft.column, draft.lower, draft.upper)?;
            Ok(Label::Numeric { column: draft.column, lower, upper })
        }
        Some(other) => problem(&format!("has kind = \"{other}\"; a label is \"binary\" or \"numeric\"")),
        None => problem("is the label and has no `kind`; say \"binary\" or \"numeric\""),
    }
}

fn check_site(draft: SiteDraft) -> Result<Site, SchemaError> {
    let values = draft.values.as_deref().map(texts);
    if let Some(values) = &values {
        if values.is_empty() {
            return Err(column(&draft.column, "lists no site; name them or leave `values` out"));
        }
        distinct(&draft.column, values)?;
    }
    Ok(Site { column: draft.column, values })
}

fn bounds(name: &str, lower: Option<f64>, upper: Option<f64>) -> Result<(f64, f64), SchemaError> {
    let (Some(lower), Some(upper)) = (lower, upper) else {
        let text = "is numeric and needs both `lower` and `upper`: public bounds from outside the data, for \
                    example from clinical practice, never its own minimum and maximum";
        return Err(column(name, text));
    };
    if !(lower < upper && (upper - lower).is_finite()) {
        return Err(column(name, "needs finite bounds with `lower` below `upper`"));
    }
    Ok((lower, upper))
}

fn texts(values: &[Scalar]) -> Vec<String> {
    values.iter().map(Scalar::text).collect()
}

fn is_in(text: &str, values: &[String]) -> bool {
    values.iter().any(|value| canonical(value) == canonical(text))
}

fn distinct(name: &str, values: &[String]) -> Result<(), SchemaError> {
    let mut seen = BTreeSet::new();
    match values.iter().find(|value| !seen.insert(canonical(value))) {
        Some(value) => Err(column(name, &format!("lists `{value}` twice (`1` and `1.0` count as the same)"))),
        None => Ok(()),
    }
}

fn setting(setting: &'static str, problem: &str) -> SchemaError {
    SchemaError::Setting { setting, problem: problem.to_owned() }
}

fn column(name: &str, problem: &str) -> SchemaError {
    SchemaError::Column { column: name.to_owned(), problem: problem.to_owned() }
}

impl TryFrom<SchemaDraft> for Schema {
    type Error = SchemaError;

    fn try_from(draft: SchemaDraft) -> Result<Self, SchemaError> {
        draft.check()
    }
}

impl From<Schema> for SchemaDraft {
    fn from(schema: Schema) -> Self {
        let scalars = |texts: Vec<String>| texts.into_iter().map(Scalar::Text).collect::<Vec<_>>();
        let label = match schema.label {
            Label::Binary { column, positive, negative } => LabelDraft {
                column,
                kind: Some("binary".to_owned()),
                positive: scalars(positive),
                negative: scalars(negative),
                ..LabelDraft::default()
            },
            Label::Numeric { column, lower, upper } => LabelDraft {
                column,
                kind: Some("numeric".to_owned()),
                lower: Some(lower),
                upper: Some(upper),
                ..LabelDraft::default()
            },
        };
        let column = |column: Column| {
            let mut draft = ColumnDraft {
                name: column.name,
                missing_values: scalars(column.missing_values),
                fill_values: scalars(column.fill_values),
                ..ColumnDraft::default()
            };
            let kind = match column.kind {
                ColumnKind::Numeric { lower, upper, fill } => {
                    (draft.lower, draft.upper, draft.fill) =
                        (Some(lower), Some(upper), fill.map(Scalar::Float));
                    "numeric"
                }
                ColumnKind::Categorical { values, fill } => {
                    (draft.values, draft.fill) = (Some(scalars(values)), fill.map(Scalar::Text));
                    "categorical"
                }
                ColumnKind::Ignored => "ignored",
            };
            draft.kind = Some(kind.to_owned());
            draft
        };
        Self {
            norm_bound: schema.norm_bound,
            intercept: schema.intercept,
            missing: schema.missing,
            missing_values: schema.missing_values,
            on_out_of_range: schema.on_out_of_range,
            on_unknown_category: schema.on_unknown_category,
            label,
            site: schema.site.map(|site| SiteDraft { column: site.column, values: site.values.map(scalars) }),
            columns: schema.columns.into_iter().map(column).collect(),
        }
    }
}
