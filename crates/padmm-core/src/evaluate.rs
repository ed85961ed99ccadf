//! How well a model fits records. Computed from records, so for a site's own eyes or a simulation.

use rayon::prelude::*;

use crate::data::Dataset;
use crate::kernel;
use crate::loss::{Loss, LossShape, LossVisitor};
use crate::metrics::Auc;

/// How well a model fits some records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Mean loss, without regulariser.
    pub mean_loss: f64,
    /// Mean loss of each part.
    pub part_losses: Vec<f64>,
    /// Part of the records on the right side; `None` for regression.
    pub accuracy: Option<f64>,
    /// Area under the ROC curve; `None` for regression, for a single class, or if it was not asked for.
    pub auc: Option<f64>,
}

/// Scores `model` on all records of `parts` together; ranking (accuracy and AUC) only if asked.
pub fn score(loss: Loss, parts: &[&Dataset], model: &[f64], rank: bool) -> Scores {
    let n: usize = parts.iter().map(|p| p.n_records()).sum();
    let scored: Vec<(Vec<f64>, f64)> = parts
        .par_iter()
        .map(|part| {
            let mut margins = vec![0.0; part.n_records()];
            kernel::margins_into(part, 0..part.n_records(), model, &mut margins);
            let sum = loss.with(SumOfLosses { margins: &margins, labels: part.labels() });
            (margins, sum)
        })
        .collect();
    let mut scores = Scores {
        mean_loss: scored.iter().map(|s| s.1).sum::<f64>() / n as f64,
        part_losses: scored.iter().zip(parts).map(|(s, p)| s.1 / p.n_records() as f64).collect(),
        ..Scores::default()
    };
    if rank && loss.is_classification() {
        let mut auc = Auc::new();
        let mut right = 0;
        for ((margins, _), part) in scored.iter().zip(parts) {
            right += margins.iter().zip(part.labels()).filter(|(t, z)| (**t > 0.0) == (**z > 0.0)).count();
            auc.add(margins, part.labels());
        }
        scores.accuracy = Some(right as f64 / n as f64);
        scores.auc = auc.area();
    }
    scores
}

struct SumOfLosses<'a> {
    margins: &'a [f64],
    labels: &'a [f64],
}

impl LossVisitor for SumOfLosses<'_> {
    type Output = f64;
    fn visit<S: LossShape>(self, shape: &S) -> f64 {
        kernel::sum_of_losses(shape, self.labels, self.margins)
    }
}
