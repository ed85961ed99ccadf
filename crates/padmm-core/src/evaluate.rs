//! How well a model fits records. Computed from records, so for a site's own eyes or a simulation.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use std::cell::Cell;
use std::ops::Range;

use rayon::prelude::*;

use crate::data::Dataset;
use crate::kernel::{self, MODELS};
use crate::loss::Loss;
use crate::metrics::{Recalibration, area};
use crate::vector::simd;

/// How well a model fits some records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Mean loss over all records of all parts, without the regulariser.
    pub mean_loss: f64,
    /// Mean loss over the records of each part, in the order of the parts.
    pub part_losses: Vec<f64>,
    /// Part of the records on the right side; `None` for regression.
    pub accuracy: Option<f64>,
    /// Area under the ROC curve; `None` for regression, for a single class, or if it was not asked for.
    pub auc: Option<f64>,
}

/// Scores `model` on all records of `parts` together; ranking (accuracy and AUC) only if asked.
pub fn score(loss: Loss, parts: &[&Dataset], model: &[f64], rank: bool) -> Scores {
    score_all(loss, parts, &[model], usize::from(rank)).remove(0)
}

/// Scores several models in one pass over the records; the first `n_ranked` of them are ranked (accuracy and AUC) too.
pub fn score_all(loss: Loss, parts: &[&Dataset], models: &[&[f64]], n_ranked: usize) -> Vec<Scores> {
    let n_ranked = if loss.is_classification() { n_ranked } else { 0 };
    let groups = models.chunks(MODELS).enumerate();
    let scores = groups.map(|(g, group)| {
        let n_ranked = n_ranked.saturating_sub(g * MODELS).min(group.len());
        score_group(loss, parts, group, n_ranked)
    });
    scores.flatten().collect()
}

/// Mean over each part's records of the loss that is minimised, which is another one than [`score`]'s where slopes are capped.
pub fn minimized_losses(loss: Loss, parts: &[&Dataset], model: &[f64]) -> Vec<f64> {
    let of_part = |part: &&Dataset| {
        let mut weights = kernel::Weights::default();
        weights.set_head(part, model);
        let n = part.n_records();
        kernel::loss(loss, part, 0..n, weights.at(model)) / n as f64
    };
    parts.par_iter().map(of_part).collect()
}

/// Whether the margins of each model are log-odds: their [`Recalibration`] on all records of `parts` together. None for regression.
pub fn recalibrations(loss: Loss, parts: &[&Dataset], models: &[&[f64]]) -> Vec<Option<Recalibration>> {
    if !loss.is_classification() {
        return vec![None; models.len()];
    }
    let mut lines: Vec<Option<Recalibration>> = vec![];
    for (m, model) in models.iter().enumerate() {
        // Sites that agree have one model, which is worth a look.
        let line = if m > 0 && models[m - 1] == *model { lines[m - 1] } else { recalibration(parts, model) };
        lines.push(line);
    }
    lines
}

fn recalibration(parts: &[&Dataset], model: &[f64]) -> Option<Recalibration> {
    let mut tasks = vec![];
    for part in parts {
        let n = part.n_records();
        tasks.extend((0..n).step_by(TASK).map(|start| (*part, start..(start + TASK).min(n))));
    }
    let classes = |(part, range): &(&Dataset, Range<usize>)| {
        let mut weights = kernel::Weights::default();
        weights.set_head(part, model);
        let mut margins = vec![0.0; range.len()];
        kernel::margins_into(part, range.clone(), weights.at(model), &mut margins);
        let labels = &part.labels()[range.clone()];
        let class = |positive: bool| -> Vec<f64> {
            let members = margins.iter().zip(labels).filter(|&(_, &z)| (z > 0.0) == positive);
            members.map(|(&t, _)| t).collect()
        };
        (class(true), class(false))
    };
    let (positive, negative): (Vec<Vec<f64>>, Vec<Vec<f64>>) = tasks.par_iter().map(classes).unzip();
    let positive: Vec<&[f64]> = positive.iter().map(|c| &c[..]).collect();
    let negative: Vec<&[f64]> = negative.iter().map(|c| &c[..]).collect();
    Recalibration::of_classes(&positive, &negative)
}

/// Records that one task handles on one thread.
const TASK: usize = 2048;

/// Records whose margins are formed together: few enough for the first-level cache.
const BLOCK: usize = 128;

/// [`score_all`] of at most [`MODELS`] models.
fn score_group(loss: Loss, parts: &[&Dataset], models: &[&[f64]], n_ranked: usize) -> Vec<Scores> {
    let n_features = parts.first().map_or(0, |p| p.n_features());
    let weights = kernel::by_feature(n_features, models);
    let cell_weights: Vec<Option<Vec<_>>> = parts.par_iter().map(|p| kernel::by_cell(p, &weights)).collect();
    let mut tasks = vec![];
    for (p, part) in parts.iter().enumerate() {
        let n = part.n_records();
        tasks.extend((0..n).step_by(TASK).map(|start| (p, start..(start + TASK).min(n))));
    }
    let mut memory = MARGINS.take();
    memory.resize(n_ranked * parts.iter().map(|p| p.n_records()).sum::<usize>(), 0.0);
    let mut rest = &mut memory[..];
    let pieces = tasks.iter().map(|(_, range)| {
        let (piece, others) = std::mem::take(&mut rest).split_at_mut(n_ranked * range.len());
        rest = others;
        piece
    });
    let pieces: Vec<&mut [f64]> = pieces.collect();
    let scored: Vec<Scored<'_>> = tasks
        .par_iter()
        .zip(pieces)
        .map(|((p, range), margins)| {
            let weights = (&weights[..], cell_weights[*p].as_deref());
            simd(
                #[inline(always)]
                || Scored::of(loss, parts[*p], range.clone(), weights, models.len(), margins),
            )
        })
        .collect();

    let sizes: Vec<f64> = parts.iter().map(|p| p.n_records() as f64).collect();
    let n: f64 = sizes.iter().sum();
    let of_model = |m: usize| {
        let mut sums = vec![0.0; parts.len()];
        tasks.iter().zip(&scored).for_each(|((p, _), s)| sums[*p] += s.losses[m]);
        let mut scores = Scores {
            mean_loss: sums.iter().sum::<f64>() / n,
            part_losses: sums.iter().zip(&sizes).map(|(s, n)| s / n).collect(),
            ..Scores::default()
        };
        if m < n_ranked {
            let right: usize = scored.iter().map(|s| s.right[m]).sum();
            let pieces =
                |positive: bool| -> Vec<&[f64]> { scored.iter().map(|s| s.class(m, positive)).collect() };
            scores.accuracy = Some(right as f64 / n);
            scores.auc = area(&pieces(true), &pieces(false));
        }
        scores
    };
    let scores = (0..models.len()).into_par_iter().map(of_model).collect();
    drop(scored);
    MARGINS.set(memory);
    scores
}

thread_local! {
    /// Memory for margins, kept from round to round: to be given fresh memory takes as long as to fill it.
    static MARGINS: Cell<Vec<f64>> = const { Cell::new(vec![]) };
}

/// What one task finds of every model.
struct Scored<'a> {
    losses: [f64; MODELS],
    right: [usize; MODELS],
    /// Of every ranked model, the margins of the positive records and then those of the others.
    margins: &'a [f64],
    n_records: usize,
    n_positive: usize,
}

impl<'a> Scored<'a> {
    #[inline(always)]
    fn of(
        loss: Loss,
        part: &Dataset,
        range: Range<usize>,
        (weights, cell_weights): (&[[f64; MODELS]], Option<&[[f64; MODELS]]>),
        n_models: usize,
        kept: &'a mut [f64],
    ) -> Self {
        let all_labels = &part.labels()[range.clone()];
        let (n_records, n_positive) = (range.len(), all_labels.iter().filter(|z| **z > 0.0).count());
        let n_ranked = kept.len() / n_records;
        let (mut losses, mut right) = ([0.0; MODELS], [0; MODELS]);
        let (mut positive_end, mut negative_end) = (0, n_positive);
        let mut rows = [[0.0; MODELS]; BLOCK];
        let mut margins = [0.0; BLOCK];
        for start in range.clone().step_by(BLOCK) {
            let block = start..(start + BLOCK).min(range.end);
            let n = block.len();
            // Margins are laid out class by class, in an order that is found once for all models.
            let (places, labels, n_positive) = by_class(&part.labels()[block.clone()]);
            kernel::margins_of_models(part, block, weights, cell_weights, &places, &mut rows);
            let labels = &labels[..n];
            for m in 0..n_models {
                let margins = &mut margins[..n];
                margins.iter_mut().zip(&rows).for_each(|(t, row)| *t = row[m]);
                losses[m] += match loss {
                    Loss::Logistic => kernel::sum_of_logistic_losses(labels, margins),
                    _ => kernel::sum_of_losses(loss, labels, margins),
                };
                if m < n_ranked {
                    let (positive, negative) = margins.split_at(n_positive);
                    let above = |t: &[f64]| t.iter().filter(|t| **t > 0.0).count();
                    right[m] += above(positive) + negative.len() - above(negative);
                    let kept = &mut kept[m * n_records..][..n_records];
                    kept[positive_end..][..positive.len()].copy_from_slice(positive);
                    kept[negative_end..][..negative.len()].copy_from_slice(negative);
                }
            }
            positive_end += n_positive;
            negative_end += n - n_positive;
        }
        Scored { losses, right, margins: kept, n_records, n_positive }
    }

    /// The margins of one class by ranked model `m`.
    fn class(&self, m: usize, positive: bool) -> &[f64] {
        let (p, n) = self.margins[m * self.n_records..][..self.n_records].split_at(self.n_positive);
        if positive { p } else { n }
    }
}

/// Each record's place in a block that has the positive ones first, the labels in that order, and how many are positive.
#[inline(always)]
fn by_class(labels: &[f64]) -> ([u8; BLOCK], [f64; BLOCK], usize) {
    let n_positive = labels.iter().filter(|z| **z > 0.0).count();
    let (mut places, mut sorted) = ([0; BLOCK], [0.0; BLOCK]);
    let (mut positive_end, mut negative_end) = (0, n_positive);
    for (place, &z) in places.iter_mut().zip(labels) {
        // Without a branch: labels are unpredictable.
        let is_positive = z > 0.0;
        let end = if is_positive { positive_end } else { negative_end };
        *place = end as u8;
        sorted[end % BLOCK] = z;
        positive_end += usize::from(is_positive);
        negative_end += usize::from(!is_positive);
    }
    (places, sorted, n_positive)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(n: usize, random: &mut impl FnMut() -> f64) -> Dataset {
        let mut data = Dataset::new(20, 5, 3, 2.0);
        for _ in 0..n {
            let numbers: Vec<f64> = (0..5).map(|_| 2.0 * random() - 1.0).collect();
            let hot = [0, 4, 11].map(|first| 5 + first + (random() * 4.0) as u32);
            data.push(&numbers, &hot, if random() < 0.3 { 1.0 } else { -1.0 });
        }
        data
    }

    #[test]
    fn many_models_at_once_have_the_scores_of_dot_products() {
        let mut state = 5u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        // With crossed columns and without, with an incomplete block, with a single record, and none at all.
        let parts = [2500, 300, 1, 0].map(|n| records(n, &mut random));
        assert!(parts[0].crossed().is_some() && parts[1].crossed().is_none());
        let parts: Vec<&Dataset> = parts.iter().collect();
        let models: Vec<Vec<f64>> =
            (0..11).map(|m| (0..20).map(|_| f64::from(m) * (random() - 0.5)).collect()).collect();
        let models: Vec<&[f64]> = models.iter().map(|m| &m[..]).collect();
        let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-13 * b.abs().max(1.0), "{a} against {b}");
        for (loss, n_ranked) in [
            (Loss::Logistic, 9),
            (Loss::Hinge, 3),
            (Loss::Huber { width: 0.5 }, 11),
            (Loss::Poisson { cap: 3.0 }, 11),
        ] {
            let scores = score_all(loss, &parts, &models, n_ranked);
            assert_eq!(scores.len(), models.len());
            for (m, (model, scores)) in models.iter().zip(&scores).enumerate() {
                let (mut t, mut z, mut total) = (vec![], vec![], 0.0);
                for (part, found) in parts.iter().zip(&scores.part_losses) {
                    let mut sum = 0.0;
                    for row in part.rows() {
                        let numbers: f64 = row.numeric.iter().zip(*model).map(|(a, x)| a * x).sum();
                        let hot: f64 = row.hot.iter().map(|&j| model[j as usize]).sum();
                        t.push((numbers + hot) * row.scale);
                        z.push(row.label);
                        let s = t[t.len() - 1] * row.label;
                        let residual = (t[t.len() - 1] - row.label).abs();
                        sum += match loss {
                            Loss::Logistic => (-s).exp().ln_1p(),
                            Loss::Hinge => (1.0 - s).max(0.0),
                            Loss::Poisson { .. } => loss.value(row.label, t[t.len() - 1]),
                            _ if residual < 0.5 => 0.5 * residual * residual,
                            _ => 0.5 * (residual - 0.25),
                        };
                    }
                    total += sum;
                    if part.n_records() > 0 {
                        near(*found, sum / part.n_records() as f64);
                    }
                }
                near(scores.mean_loss, total / t.len() as f64);
                if m >= n_ranked || !loss.is_classification() {
                    assert_eq!((scores.accuracy, scores.auc), (None, None));
                    continue;
                }
                let right = t.iter().zip(&z).filter(|(t, z)| (**t > 0.0) == (**z > 0.0)).count();
                assert_eq!(scores.accuracy, Some(right as f64 / t.len() as f64));
                let (mut won, mut pairs) = (0.0, 0.0);
                for (a, _) in t.iter().zip(&z).filter(|(_, z)| **z > 0.0) {
                    for (b, _) in t.iter().zip(&z).filter(|(_, z)| **z < 0.0) {
                        pairs += 1.0;
                        // The first model has margins of zero, so all its pairs tie.
                        won += if a > b { 1.0 } else { 0.5 * f64::from(u8::from(a == b)) };
                    }
                }
                near(scores.auc.unwrap(), won / pairs);
            }
        }
    }

    #[test]
    fn losses_far_below_rounding_are_summed() {
        let mut data = Dataset::new(1, 1, 0, 1.0);
        (0..1000).for_each(|_| data.push(&[1.0], &[], 1.0));
        let mean = |x: f64| score(Loss::Logistic, &[&data], &[x], false).mean_loss;
        assert!((mean(60.0) / (-60f64).exp() - 1.0).abs() < 1e-13);
        assert!((mean(-60.0) / 60.0 - 1.0).abs() < 1e-13);
        assert!(mean(f64::NAN).is_nan());
    }
}
