//! Metrics that see all data. They exist in the simulator only: nothing here may leave a real site (EQUATIONS §8).

use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::evaluate::{Scores, minimized_losses, recalibrations, score_all};
use padmm_core::loss::Loss;
use padmm_core::metrics::Recalibration;
use padmm_core::plan::Plan;
use padmm_core::regularizer::RegularizerTerm;
use padmm_privacy::PublicVector;
use serde::{Deserialize, Serialize};

/// Agents whose models are scored on all records in every round; the last round scores all of them.
pub const PANEL: usize = 16;

/// One round of one run, over the whole network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundMetrics {
    /// Counted from 1; the averaging has none.
    pub round: u32,
    /// Mean over agents of the loss of each agent's release on its own records: the paper's "average loss". Losses are `None` where they
    /// were not asked for.
    pub average_loss: Option<f64>,
    /// Mean over agents of the loss of each agent's release on all training records.
    pub pooled_loss: Option<f64>,
    /// Loss on all training records of the smoothed model that sites would keep if the run stopped here.
    pub smoothed_loss: Option<f64>,
    /// Root mean square distance of the agents' releases from their mean.
    pub consensus_error: f64,
    /// Root mean square distance of the agents' releases from the pooled optimum; `None` where it was not asked for.
    pub distance_to_optimum: Option<f64>,
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
    /// What the run minimises, on all training records ([`RunObjective`]); `None` where it was not asked for.
    #[serde(default)]
    pub objective: Option<f64>,
    /// On the evaluation records; `None` for regression, and where it was not asked for.
    pub accuracy: Option<f64>,
    /// Area under the ROC curve on the evaluation records.
    pub auc: Option<f64>,
    /// Whether margins are log-odds, on the evaluation records; `None` for regression, where classes do not overlap, and where it was not
    /// asked for.
    #[serde(default)]
    pub calibration: Option<Recalibration>,
}

/// What a run minimises, as one number for each model: `Σ_i ω_i · mean_i ℓ + R/N`, with the weights of the sites.
///
/// If slopes are capped, `ℓ` is the capped loss. The loss alone leaves out the regulariser, and so flatters noisy models that the regulariser would have pulled back.
pub struct RunObjective {
    weights: Vec<f64>,
    regularizer: RegularizerTerm,
}

impl RunObjective {
    /// That of `plan` for sites of these sizes.
    pub fn new(plan: &Plan, space: &FeatureSpace, n_records: &[usize]) -> Self {
        let (settings, n_agents) = (plan.settings(), n_records.len() as f64);
        let weights = settings.weights.factors(n_records).iter().map(|factor| factor / n_agents).collect();
        Self { weights, regularizer: RegularizerTerm::new(&settings.regularizer, space, 1.0 / n_agents) }
    }

    /// Of a model with these mean losses at the sites.
    pub fn value(&self, site_losses: &[f64], model: &[f64]) -> f64 {
        assert_eq!(site_losses.len(), self.weights.len(), "one loss a site");
        let losses = self.weights.iter().zip(site_losses).map(|(weight, loss)| weight * loss);
        losses.sum::<f64>() + self.regularizer.value(model)
    }
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
    pub fn mean(&self, models: &[&[f64]]) -> (ModelMetrics, Vec<Vec<f64>>) {
        let (mean, at_sites, _) = self.mean_and_losses(models, &[]);
        (mean, at_sites)
    }

    /// The same, and the mean losses of `others` on all training records, which cost less in the same pass.
    pub fn mean_and_losses(
        &self,
        models: &[&[f64]],
        others: &[&[f64]],
    ) -> (ModelMetrics, Vec<Vec<f64>>, Vec<f64>) {
        let (mut scores, mut at_sites) = self.all(models, others);
        let others = scores.split_off(models.len()).iter().map(|s| s.loss).collect();
        at_sites.truncate(models.len());
        let n = scores.len() as f64;
        let mean = |f: fn(&ModelMetrics) -> Option<f64>| {
            scores.iter().map(f).collect::<Option<Vec<f64>>>().map(|v| v.iter().sum::<f64>() / n)
        };
        let loss = scores.iter().map(|s| s.loss).sum::<f64>() / n;
        let metrics = ModelMetrics {
            loss,
            accuracy: mean(|s| s.accuracy),
            auc: mean(|s| s.auc),
            ..ModelMetrics::default()
        };
        (metrics, at_sites, others)
    }

    /// Everything about the models at the end of a run, mean over them; recalibrated are those of up to [`PANEL`] agents.
    pub fn finished(&self, models: &[&[f64]], objective: &RunObjective) -> ModelMetrics {
        let (mean, at_sites) = self.mean(models);
        let is_capped = self.train.iter().any(|part| part.slope_cap().is_some());
        let value = |(model, losses): (&&[f64], &Vec<f64>)| {
            if is_capped {
                return objective.value(&minimized_losses(self.loss, self.train, model), model);
            }
            objective.value(losses, model)
        };
        let values = models.iter().zip(&at_sites).map(value);
        let chosen: Vec<&[f64]> = panel(models.len()).into_iter().map(|i| models[i]).collect();
        let measured = if self.test.n_records() > 0 { &[self.test][..] } else { self.train };
        let lines = recalibrations(self.loss, measured, &chosen).into_iter().collect::<Option<Vec<_>>>();
        ModelMetrics {
            objective: Some(values.sum::<f64>() / models.len() as f64),
            calibration: lines.map(|lines| mean_line(&lines)),
            ..mean
        }
    }

    /// Scores of `models`, then those of `others` without ranking; and everyone's mean loss at each site.
    fn all(&self, models: &[&[f64]], others: &[&[f64]]) -> (Vec<ModelMetrics>, Vec<Vec<f64>>) {
        let has_test = self.rank && self.test.n_records() > 0;
        let ranked_here = if has_test || !self.rank { 0 } else { models.len() };
        let train = score_all(self.loss, self.train, &[models, others].concat(), ranked_here);
        let test = if has_test { score_all(self.loss, &[self.test], models, models.len()) } else { vec![] };
        let metrics = |(m, s): (usize, &Scores)| {
            let ranked = test.get(m).unwrap_or(s);
            let (accuracy, auc) = (ranked.accuracy, ranked.auc);
            ModelMetrics { loss: s.mean_loss, accuracy, auc, ..ModelMetrics::default() }
        };
        (
            train.iter().enumerate().map(metrics).collect(),
            train.iter().map(|s| s.part_losses.clone()).collect(),
        )
    }
}

/// The mean of some lines, of which there must be at least one.
pub(crate) fn mean_line(lines: &[Recalibration]) -> Recalibration {
    let mean = |f: fn(&Recalibration) -> f64| lines.iter().map(f).sum::<f64>() / lines.len() as f64;
    Recalibration { intercept: mean(|l| l.intercept), slope: mean(|l| l.slope) }
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
