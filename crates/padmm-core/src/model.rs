//! A trained model as it is kept and handed on: schema, coefficients by name, privacy statement.
//!
//! A model carries the whole schema, because coefficients mean nothing without the bounds and categories that the
//! records were encoded with. All of it is public: coefficients come from releases that were paid for.
//!
//! The exception is a site's own model ([`crate::own`]), which was fitted to records without noise. It has a format of its own, which
//! [`Model::from_json`] refuses: only what is used inside the site reads it, by [`Model::from_json_inside`].

use crate::data::Dataset;
use crate::loss::Loss;
use crate::own::{NEVER_SENT, OwnFit};
use crate::privacy_noise::PrivacyNoise;
use crate::schema::Schema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The format's name and version, the first field of the file.
pub const FORMAT: &str = "padmm-model/1";

/// The same of a site's own model, so that whatever expects a model that may leave refuses it, older programs included.
pub const OWN_FORMAT: &str = "padmm-own-model/1";

/// Why a text is not a model.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum ModelError {
    /// Not JSON, or cut short, or a field is wrong.
    #[error("not a complete padmm model: {0}; if the file was cut short, copy it again or repeat the run")]
    Json(#[from] serde_json::Error),
    /// The file was written in another format, or by another version.
    #[error(
        "the model's format is \"{found}\" and this program reads \"{FORMAT}\"; use the version that wrote it"
    )]
    Format {
        /// The format as the file names it.
        found: String,
    },
    /// A site's own model, where only one that may leave is accepted.
    #[error(
        "this is a site's own model, {NEVER_SENT}; only `predict` and `evaluate` read it, and what is shared is model.json"
    )]
    Own,
    /// Coefficients that do not belong to the schema's columns.
    #[error(
        "coefficient {index} should be that of `{expected}` by the model's own schema; the file has been altered"
    )]
    Name {
        /// Position in the list, from 1.
        index: usize,
        /// The encoded column at this place.
        expected: String,
    },
    /// More or fewer coefficients than encoded columns.
    #[error(
        "the model has {found} coefficients and its schema gives {expected} columns; the file has been altered"
    )]
    Length {
        /// Columns of the schema's feature space.
        expected: usize,
        /// Coefficients in the file.
        found: usize,
    },
    /// A coefficient that is infinite or not a number.
    #[error("the coefficient of `{name}` is not finite")]
    NotFinite { name: String },
    /// What is said about privacy noise does not belong to the coefficients.
    #[error(
        "the model's privacy_noise needs {expected} standard deviations, one for each coefficient, and as many rows of covariances; the file has been altered"
    )]
    PrivacyNoise {
        /// Coefficients of the model.
        expected: usize,
    },
    /// A loss that no run has: its width is not positive, or it is for the other kind of label.
    #[error("the model's loss, {loss}, does not fit {with}; the file has been altered")]
    Loss { loss: String, with: &'static str },
}

/// An encoded column with its weight in the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficient {
    /// Name of the encoded column.
    pub name: String,
    /// What an encoded value is multiplied by in the margin.
    pub value: f64,
}

/// Which program and which algorithm made a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of the program that made it.
    pub version: String,
    /// Name of the algorithm that trained it.
    pub algorithm: String,
    /// Which output of the run it is: `smoothed` or `last`.
    pub output: String,
}

/// A model that is known to fit its schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ModelFile", into = "ModelFile")]
pub struct Model {
    schema: Schema,
    loss: Loss,
    coefficients: Vec<Coefficient>,
    values: Vec<f64>,
    privacy: Option<serde_json::Value>,
    provenance: Provenance,
    privacy_noise: Option<PrivacyNoise>,
    own: Option<serde_json::Value>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    format: String,
    schema: Schema,
    loss: Loss,
    coefficients: Vec<Coefficient>,
    privacy: Option<serde_json::Value>,
    provenance: Provenance,
    /// Where the algorithm can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    privacy_noise: Option<PrivacyNoise>,
    /// What a site's own model says about itself; absent from all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    own: Option<serde_json::Value>,
}

impl TryFrom<ModelFile> for Model {
    type Error = ModelError;

    fn try_from(file: ModelFile) -> Result<Self, ModelError> {
        // Either sign is enough: a file whose format somebody changed by hand is still computed from records.
        if file.format == OWN_FORMAT || file.own.is_some() {
            return Err(ModelError::Own);
        }
        if file.format != FORMAT {
            return Err(ModelError::Format { found: file.format.chars().take(40).collect() });
        }
        Self::checked(file)
    }
}

impl Model {
    /// A model whose format was recognised.
    fn checked(file: ModelFile) -> Result<Self, ModelError> {
        check_loss(file.loss, &file.schema)?;
        let names = file.schema.feature_space().names;
        if names.len() != file.coefficients.len() {
            return Err(ModelError::Length { expected: names.len(), found: file.coefficients.len() });
        }
        for (index, (expected, coefficient)) in names.into_iter().zip(&file.coefficients).enumerate() {
            if expected != coefficient.name {
                return Err(ModelError::Name { index: index + 1, expected });
            }
            if !coefficient.value.is_finite() {
                return Err(ModelError::NotFinite { name: expected });
            }
        }
        let n = file.coefficients.len();
        if file.privacy_noise.as_ref().is_some_and(|noise| !noise.fits(n)) {
            return Err(ModelError::PrivacyNoise { expected: n });
        }
        Ok(Self {
            schema: file.schema,
            loss: file.loss,
            values: file.coefficients.iter().map(|c| c.value).collect(),
            coefficients: file.coefficients,
            privacy: file.privacy,
            provenance: file.provenance,
            privacy_noise: file.privacy_noise,
            own: file.own,
        })
    }
}

/// A run checks its loss before it starts; a file may say anything.
fn check_loss(loss: Loss, schema: &Schema) -> Result<(), ModelError> {
    let wrong = |with| Err(ModelError::Loss { loss: loss.to_string(), with });
    match loss {
        Loss::Huber { width } | Loss::HuberizedHinge { width } | Loss::Quantile { width, .. }
            if !(width > 0.0 && width.is_finite()) =>
        {
            wrong("its definition, which needs a positive width")
        }
        Loss::Quantile { level, .. } if !(level > 0.0 && level < 1.0) => {
            wrong("its definition, which needs a level between 0 and 1")
        }
        Loss::Poisson { .. } if loss.awaits_label() || loss.for_label(schema.label().bounds()).is_none() => {
            wrong("the bounds of its schema's label")
        }
        _ if loss.is_classification() != schema.label().is_binary() => {
            wrong("the kind of its schema's label")
        }
        _ => Ok(()),
    }
}

impl From<Model> for ModelFile {
    fn from(model: Model) -> Self {
        Self {
            format: if model.own.is_some() { OWN_FORMAT } else { FORMAT }.to_owned(),
            schema: model.schema,
            loss: model.loss,
            coefficients: model.coefficients,
            privacy: model.privacy,
            provenance: model.provenance,
            privacy_noise: model.privacy_noise,
            own: model.own,
        }
    }
}

impl Model {
    /// A model with these coefficients, in the order of the schema's feature space.
    ///
    /// `privacy` is the run's statement about what was spent, whatever its shape; `None` says that the model was
    /// trained without privacy.
    pub fn new(
        schema: Schema,
        loss: Loss,
        values: &[f64],
        privacy: Option<serde_json::Value>,
        provenance: Provenance,
    ) -> Result<Self, ModelError> {
        let names = schema.feature_space().names;
        if names.len() != values.len() {
            return Err(ModelError::Length { expected: names.len(), found: values.len() });
        }
        let coefficient = |(name, &value)| Coefficient { name, value };
        let coefficients = names.into_iter().zip(values).map(coefficient).collect();
        let format = FORMAT.to_owned();
        let file = ModelFile {
            format,
            schema,
            loss,
            coefficients,
            privacy,
            provenance,
            privacy_noise: None,
            own: None,
        };
        file.try_into()
    }

    /// The same model with what is known of how far privacy noise may have moved it.
    pub fn with_privacy_noise(mut self, noise: Option<PrivacyNoise>) -> Result<Self, ModelError> {
        let expected = self.values.len();
        if noise.as_ref().is_some_and(|noise| !noise.fits(expected)) {
            return Err(ModelError::PrivacyNoise { expected });
        }
        self.privacy_noise = noise;
        Ok(self)
    }

    /// The site's own model that [`crate::own::fit`] made of this joint one. It is marked, and stays so in every file.
    pub fn own(&self, fit: &OwnFit) -> Result<Self, ModelError> {
        let provenance = Provenance { output: "own".to_owned(), ..self.provenance.clone() };
        let mut own = Self::new(self.schema.clone(), self.loss, &fit.combined, None, provenance)?;
        own.own = Some(serde_json::json!({
            "notice": NEVER_SENT,
            "joint_share": fit.joint_share,
            "comparison": fit.comparison,
        }));
        Ok(own)
    }

    /// Whether this is a site's own model, which must not leave it.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Reads a model from the text of a `model.json`, or of an `own-model.json`: for whoever uses it inside the site.
    pub fn from_json_inside(text: &str) -> Result<Self, ModelError> {
        let file: ModelFile = serde_json::from_str(text)?;
        if file.format == OWN_FORMAT && file.own.is_some() { Self::checked(file) } else { file.try_into() }
    }

    /// Reads a model from the text of a `model.json`; a site's own model is refused.
    pub fn from_json(text: &str) -> Result<Self, ModelError> {
        // Two steps, so that a wrong format is said as such and not as a JSON error.
        let file: ModelFile = serde_json::from_str(text)?;
        file.try_into()
    }

    /// The text of a `model.json`, indented for people who read it.
    pub fn to_json(&self) -> String {
        let file = ModelFile::from(self.clone());
        serde_json::to_string_pretty(&file).expect("a checked model has finite numbers and text keys")
    }

    /// What the records must look like.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The loss that was minimised, which decides what a margin means.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    /// Coefficients by name, in the order of the feature space.
    pub fn coefficients(&self) -> &[Coefficient] {
        &self.coefficients
    }

    /// Coefficients as plain numbers, in the order of the feature space.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The privacy statement of the run; `None` if it was not private.
    pub fn privacy(&self) -> Option<&serde_json::Value> {
        self.privacy.as_ref()
    }

    /// How far privacy noise may have moved the coefficients; `None` where the algorithm cannot tell.
    pub fn privacy_noise(&self) -> Option<&PrivacyNoise> {
        self.privacy_noise.as_ref()
    }

    /// Which program and which algorithm made it; nothing in it is about records.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The margin `aᵀx` of each record.
    pub fn margins(&self, records: &Dataset) -> Vec<f64> {
        records.margins(&self.values)
    }

    /// The probability of the positive class at a margin; only the logistic loss gives one.
    pub fn probability(&self, margin: f64) -> Option<f64> {
        (self.loss == Loss::Logistic).then(|| 1.0 / (1.0 + (-margin).exp()))
    }

    /// A prediction of a numeric label in the label's own unit, for counts the expected one; `None` for classification.
    pub fn predicted_number(&self, margin: f64) -> Option<f64> {
        let (lower, upper) = self.schema.label().bounds()?;
        Some(match self.loss {
            // What is no number stays none, which `min` would hide.
            Loss::Poisson { cap } if !margin.is_nan() => libm::exp(margin).min(cap),
            Loss::Poisson { .. } => margin,
            _ => lower + margin * (upper - lower),
        })
    }
}
