//! Metrics that see all data. They exist in the simulator only: nothing here may leave a real site (EQUATIONS §8).

use padmm_core::data::Dataset;
use padmm_core::evaluate::{Scores, score_all};
use padmm_core::loss::Loss;
use padmm_privacy::PublicVector;
use serde::{Deserialize, Serialize};

/// Agents whose models are scored on all records in every round; the last round scores all of them.
pub const PANEL: usize = 16;

/// One round of one run, over the whole network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundMetrics {
    /// Counted from 1; gossip rounds have no metrics.
    pub round: u32,
    /// Mean over agents of the loss of each agent's release on its own records: the paper's "average loss".
    pub average_loss: f64,
    /// Mean over agents of the loss of each agent's release on all training records.
    pub pooled_loss: f64,
    /// Loss on all training records of the smoothed model that sites would keep if the run stopped here.
    pub smoothed_loss: f64,
    /// Root mean square distance of the agents' releases from their mean.
    pub consensus_error: f64,
    /// Root mean square distance of the agents' releases from the pooled optimum.
    pub distance_to_optimum: f64,
    /// Mean accuracy of the releases on the evaluation records; `None` for regression.
    pub accuracy: Option<f64>,
    /// Mean area under the ROC curve of the releases on the evaluation records.
    pub auc: Option<f64>,
    /// ρ charged for this round, the largest over agents: the dynamic zCDP curve.
    pub rho: f64,
    /// ρ charged so far, the largest over agents.
    pub rho_spent: f64,
    /// ε spent so far by exact accounting, the largest over agents; `None` without privacy.
    pub epsilon_exact: Option<f64>,
    /// The same by the paper's formula.
    pub epsilon_paper: Option<f64>,
}

/// Scores of models on all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelMetrics {
    /// Mean loss on all training records.
    pub loss: f64,
    /// On the evaluation records; `None` for regression, and where it was not asked for.
    pub accuracy: Option<f64>,
    /// Area under the ROC curve on the evaluation records.
    pub auc: Option<f64>,
}

/// What models are scored on: training records, and those set aside.
pub struct Evaluation<'a> {
    /// The plan's loss, without the regulariser.
    pub loss: Loss,
    /// All training records, site by site.
    pub train: &'a [&'a Dataset],
    /// Records that were set aside; empty if none were.
    pub test: &'a Dataset,
    /// Whether accuracy and AUC are wanted, which cost most.
    pub rank: bool,
}

impl Evaluation<'_> {
    /// Mean scores of `models`, and each model's mean loss at each site.
    pub fn mean(&self, models: &[&PublicVector]) -> (ModelMetrics, Vec<Vec<f64>>) {
        let (mean, at_sites, _) = self.mean_and_losses(models, &[]);
        (mean, at_sites)
    }

    /// The same, and the mean losses of `others` on all training records, which cost less in the same pass.
    pub fn mean_and_losses(
        &self,
        models: &[&PublicVector],
        others: &[&[f64]],
    ) -> (ModelMetrics, Vec<Vec<f64>>, Vec<f64>) {
        let values: Vec<&[f64]> = models.iter().map(|m| m.as_slice()).collect();
        let (mut scores, mut at_sites) = self.all(&values, others);
        let others = scores.split_off(models.len()).iter().map(|s| s.loss).collect();
        at_sites.truncate(models.len());
        let n = scores.len() as f64;
        let mean = |f: fn(&ModelMetrics) -> Option<f64>| {
            scores.iter().map(f).collect::<Option<Vec<f64>>>().map(|v| v.iter().sum::<f64>() / n)
        };
        let loss = scores.iter().map(|s| s.loss).sum::<f64>() / n;
        (ModelMetrics { loss, accuracy: mean(|s| s.accuracy), auc: mean(|s| s.auc) }, at_sites, others)
    }

    /// Scores of one model, and its mean loss at each site.
    pub fn one(&self, model: &[f64]) -> (ModelMetrics, Vec<f64>) {
        let (mut scores, mut at_sites) = self.all(&[model], &[]);
        (scores.remove(0), at_sites.remove(0))
    }

    /// Scores of `models`, then those of `others` without ranking; and everyone's mean loss at each site.
    fn all(&self, models: &[&[f64]], others: &[&[f64]]) -> (Vec<ModelMetrics>, Vec<Vec<f64>>) {
        let has_test = self.rank && self.test.n_records() > 0;
        let ranked_here = if has_test || !self.rank { 0 } else { models.len() };
        let train = score_all(self.loss, self.train, &[models, others].concat(), ranked_here);
        let test = if has_test { score_all(self.loss, &[self.test], models, models.len()) } else { vec![] };
        let metrics = |(m, s): (usize, &Scores)| {
            let ranked = test.get(m).unwrap_or(s);
            ModelMetrics { loss: s.mean_loss, accuracy: ranked.accuracy, auc: ranked.auc }
        };
        (
            train.iter().enumerate().map(metrics).collect(),
            train.iter().map(|s| s.part_losses.clone()).collect(),
        )
    }
}

/// Root mean square distance of `models` from `center`.
pub fn spread(models: &[&PublicVector], center: &[f64]) -> f64 {
    let square =
        |m: &&PublicVector| m.as_slice().iter().zip(center).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    (models.iter().map(square).sum::<f64>() / models.len() as f64).sqrt()
}

/// Mean of `models`, of which there must be at least one.
pub fn center(models: &[&PublicVector]) -> Vec<f64> {
    let mut mean = PublicVector::zeros(models[0].len());
    models.iter().for_each(|m| mean.add_scaled(1.0 / models.len() as f64, m));
    mean.as_slice().to_vec()
}

/// Up to [`PANEL`] of `n` agents, evenly spaced.
pub fn panel(n: usize) -> Vec<usize> {
    let m = n.min(PANEL);
    (0..m).map(|i| i * n / m).collect()
}
