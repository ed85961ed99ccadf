//! What algorithms share in which all sites compute at the same public point: everybody's releases, weighed and added up.

use std::sync::Arc;

use padmm_privacy::{ClippedSum, PublicVector, Terms};
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use super::{AlgorithmInputs, LocalProblem};
use crate::data::Row;
use crate::kernel::{self, Weights};
use crate::message::StateDigest;
use crate::plan::SiteWeights;
use crate::vector::simd;

/// Records whose margins are computed together.
const BLOCK: usize = 256;

/// A model longer than this means nothing any more; what would make it longer is not done.
pub(super) const LONGEST_MODEL: f64 = 1e6;

/// `A = √Σ(ω_i/n_i)²`: the noise of the weighted mean, where a site's sum has noise of 1.
pub(crate) fn noise_factor(weights: SiteWeights, n_records: &[usize]) -> f64 {
    let term = |(w, &n): (f64, &usize)| (w / n as f64) * (w / n as f64);
    weights.of(n_records).into_iter().zip(n_records).map(term).sum::<f64>().sqrt()
}

/// Standard deviation of a coordinate of each round's release; the same at all sites, because no term of a sum is longer than 1.
pub(super) fn noise_of(inputs: &AlgorithmInputs<'_>) -> Vec<f64> {
    let noise = inputs.calibration.noise.as_ref().expect("sums are released with noise");
    (1..=noise.rounds()).map(|round| noise.noise_std(round).expect("the round exists")).collect()
}

/// Of the state before and what has changed.
pub(super) fn digest<'a>(before: &StateDigest, changes: impl IntoIterator<Item = &'a [f64]>) -> StateDigest {
    let mut hash = Sha256::new_with_prefix(before);
    changes.into_iter().flatten().for_each(|v| hash.update(v.to_le_bytes()));
    hash.finalize().into()
}

/// Σ over records of what `term`, which must be marked `#[inline(always)]`, adds for a record and its slope `ℓ'(aᵀx)`, with some room to
/// work in.
pub(super) fn sum_over_records(
    problem: &LocalProblem,
    point: &[f64],
    term: impl Fn(&mut ClippedSum, &mut Vec<f64>, Row<'_>, f64) + Sync,
) -> ClippedSum {
    let data = &*problem.data;
    let mut weights = Weights::default();
    weights.set_head(data, point);
    let empty = || ClippedSum::new(Terms::Signed, point.len(), data.n_records());
    let sum = problem.part().tasks().collect::<Vec<_>>().into_par_iter().map(|range| {
        let (mut sum, mut room, mut margins) = (empty(), vec![], [0.0; BLOCK]);
        for from in range.clone().step_by(BLOCK) {
            let block = from..(from + BLOCK).min(range.end);
            let margins = &mut margins[..block.len()];
            kernel::margins_into(data, block.clone(), weights.at(point), margins);
            simd(
                #[inline(always)]
                || {
                    for (r, &margin) in block.zip(&*margins) {
                        let row = data.row(r);
                        let slope = problem.loss.slope(row.label, margin);
                        term(&mut sum, &mut room, row, slope);
                    }
                },
            );
        }
        sum
    });
    sum.reduce(empty, merged)
}

/// Sums over parts of the records are exact, so that their order does not matter.
pub(super) fn merged(mut sum: ClippedSum, other: ClippedSum) -> ClippedSum {
    sum.merge(other);
    sum
}

/// A site as the sum sees it.
struct Voice {
    /// `ω_j`
    weight: f64,
    /// `n_j`
    n_records: f64,
}

/// An agent and those that it hears, in the order of sites.
pub(super) struct Voices {
    voices: Vec<Voice>,
    /// Which of them is the agent.
    place: usize,
}

impl Voices {
    pub(super) fn of(inputs: &AlgorithmInputs<'_>) -> Self {
        let weights = inputs.settings.weights.of(inputs.n_records);
        let place = inputs.neighbours.partition_point(|&j| j < inputs.site);
        let mut heard = inputs.neighbours.to_vec();
        heard.insert(place, inputs.site);
        let voice = |j: usize| Voice { weight: weights[j], n_records: inputs.n_records[j] as f64 };
        Self { voices: heard.into_iter().map(voice).collect(), place }
    }

    /// The first of `n` sites of equal size.
    pub(super) fn equal(n: usize, n_records: f64) -> Self {
        let voice = |_| Voice { weight: 1.0 / n as f64, n_records };
        Self { voices: (0..n).map(voice).collect(), place: 0 }
    }

    /// The site in place `slot` of those that are heard is gone.
    pub(super) fn drop(&mut self, slot: usize) {
        self.voices.remove(if slot < self.place { slot } else { slot + 1 });
        if slot < self.place {
            self.place -= 1;
        }
    }

    /// `Σ_j (ω_j/n_j) u_j` over the releases that can be true, and the noise factor `A` of that sum. Weights are those of the sites that
    /// are left, and the sum is in the order of sites, so that all of them find the same bits.
    pub(super) fn sum<'a>(
        &self,
        own: &'a PublicVector,
        others: &'a [Arc<PublicVector>],
        is_plausible: impl Fn(&[f64], f64) -> bool,
    ) -> (Vec<f64>, f64) {
        let (before, after) = others.split_at(self.place);
        let others = |from: &'a [Arc<PublicVector>]| from.iter().map(|o| o.as_slice());
        let releases = others(before).chain([own.as_slice()]).chain(others(after));
        let kept: Vec<(&Voice, &'a [f64])> = self
            .voices
            .iter()
            .zip(releases)
            .enumerate()
            .filter(|(j, (voice, release))| {
                *j == self.place || (release.len() == own.len() && is_plausible(release, voice.n_records))
            })
            .map(|(_, pair)| pair)
            .collect();
        let total: f64 = kept.iter().map(|(voice, _)| voice.weight).sum();
        let (mut sum, mut squares) = (vec![0.0; own.len()], 0.0);
        for (voice, release) in kept {
            let factor = voice.weight / total / voice.n_records;
            sum.iter_mut().zip(release).for_each(|(s, u)| *s += factor * u);
            squares += factor * factor;
        }
        (sum, squares.sqrt())
    }
}
