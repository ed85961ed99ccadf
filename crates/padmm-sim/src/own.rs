//! What each site would make of the joint model for itself, measured: own records alone, joint, combined.

use padmm_core::data::Dataset;
use padmm_core::evaluate::score_all;
use padmm_core::own::{Measures, OwnInputs, fit};
use serde::{Deserialize, Serialize};

/// One model at one site.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// A mean over the site's records.
    pub loss: f64,
    /// Area under the ROC curve; none for regression or a single class.
    pub auc: Option<f64>,
}

/// How well a site would do alone, with the joint model, and with both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteModels {
    /// From the site's own records alone.
    pub own: Scored,
    /// The joint model as it is.
    pub joint: Scored,
    /// Both together.
    pub combined: Scored,
    /// How much of the combined model comes from candidates that use the joint one.
    pub joint_share: f64,
    /// Whether they are scored on records that were set aside; otherwise by cross-validation on the site's own.
    pub held_out: bool,
}

impl SiteModels {
    /// Fits a site's models and scores them on `test`, or by cross-validation where that is empty.
    pub fn of(inputs: &OwnInputs<'_>, test: &Dataset) -> Self {
        let held_out = test.n_records() > 0;
        let found = fit(inputs, !held_out);
        let joint_share = found.joint_share;
        if let Some(c) = &found.comparison {
            let scored = |m: &Measures| Scored { loss: m.loss.value, auc: m.auc.map(|a| a.value) };
            let [own, joint, combined] = [&c.own, &c.joint, &c.combined].map(scored);
            return Self { own, joint, combined, joint_share, held_out };
        }
        // A handful of records cannot be cross-validated, and there is but one model: it is scored on them as they are.
        let on = if held_out { test } else { inputs.records };
        let models = [&found.alone[..], inputs.joint, &found.combined];
        let scores = score_all(inputs.loss, &[on], &models, models.len());
        let scored = |m: usize| Scored { loss: scores[m].mean_loss, auc: scores[m].auc };
        Self { own: scored(0), joint: scored(1), combined: scored(2), joint_share, held_out }
    }
}
