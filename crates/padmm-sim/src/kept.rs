//! The model that a simulation hands on.

use padmm_core::agent::Outcome;
use padmm_core::model::{Model, ModelError, Provenance};
use padmm_core::plan::Output;
use padmm_core::privacy_noise::PrivacyNoise;
use padmm_core::schema::Schema;

use crate::record::Record;

/// What a site keeps of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Coefficients, in the order of the encoded columns.
    pub values: Vec<f64>,
    /// How far privacy noise may have moved them, where the algorithm can tell.
    pub privacy_noise: Option<PrivacyNoise>,
}

impl Kept {
    /// The one of a run's models that the plan says.
    pub(crate) fn of(outcome: &Outcome, output: Output) -> Self {
        let values = match output {
            Output::Smoothed => &outcome.smoothed,
            Output::Last => &outcome.last,
        };
        Self { values: values.as_slice().to_vec(), privacy_noise: outcome.privacy_noise.clone() }
    }

    /// The `model.json` of a run with this record, of records with this schema.
    ///
    /// # Errors
    /// Another schema than that of the run.
    pub fn model(&self, record: &Record, schema: Schema) -> Result<Model, ModelError> {
        let settings = record.setting.plan.settings();
        let provenance = Provenance {
            version: record.version.clone(),
            algorithm: settings.algorithm.name().to_owned(),
            output: match settings.output {
                Output::Smoothed => "smoothed",
                Output::Last => "last",
            }
            .to_owned(),
        };
        let privacy = record.privacy.as_ref().map(serde_json::to_value).transpose()?;
        let schema = settings.schema_of_model(schema);
        Model::new(schema, settings.loss, &self.values, privacy, provenance)?
            .with_privacy_noise(self.privacy_noise.clone())
    }
}
