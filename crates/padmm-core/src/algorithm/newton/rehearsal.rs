//! A run on made-up records, to see beforehand what real ones may come to (`advice`): by consensus Newton here, by private gradients in
//! their own file.
//!
//! All of a run's noise enters through `A = √Σ(ω_i/n_i)²`, so a network is as good as one site of `1/A` records: its releases have the law
//! of the sum of all sites'. What follows a release is the code of a real run.

use padmm_privacy::PublicVector;

use super::metric::{Layout, Metric};
use super::rule::{FIRST_SHARE, Rule};
use super::{Link, NewtonState};
use crate::algorithm::shared_point::Voices;
use crate::algorithm::{Algorithm, SharedWork};
use crate::data::{Dataset, FeatureSpace, Row};
use crate::loss::Loss;
use crate::message::StateDigest;
use crate::regularizer::RegularizerTerm;
use crate::vector::norm;

/// What a rehearsal is about; all of it is public, the records included.
pub(crate) struct Rehearsal<'a> {
    /// Made up, or published: never those of a site.
    pub records: &'a Dataset,
    pub space: &'a FeatureSpace,
    pub loss: Loss,
    /// `R/N`
    pub regularizer: &'a RegularizerTerm,
    /// `A`
    pub noise_factor: f64,
    /// `μ` of the whole budget.
    pub mu: f64,
    /// Stage 0 included; none leaves them to the rule.
    pub rounds: Option<u32>,
}

/// Rounds of the rule, stage 0 included, and `ν`.
pub(crate) fn picked(n_features: usize, noise_factor: f64, mu: f64) -> (u32, f64) {
    let rule = Rule::pick(n_features, noise_factor, mu);
    (rule.rounds + 1, rule.nu)
}

impl Rehearsal<'_> {
    /// The model that sites would keep, for noise made of these standard normal numbers.
    pub(crate) fn run(&self, normal: &mut dyn FnMut() -> f64) -> Vec<f64> {
        let p = self.space.n_features();
        let picked = Rule::pick(p, self.noise_factor, self.mu);
        let rule = match self.rounds {
            Some(rounds) => Rule { rounds: rounds.max(2) - 1, ..picked },
            None => picked,
        };
        let n_records = 1.0 / self.noise_factor;
        let shares = rule.shares();
        let mut noise = vec![2f64.sqrt() / (self.mu * FIRST_SHARE.sqrt())];
        noise.extend(shares.iter().map(|share| 2.0 / (self.mu * share.sqrt())));
        let mut state = NewtonState {
            rule,
            layout: Layout::of(self.space),
            shares,
            voices: Voices::equal(1, n_records),
            digest: StateDigest::default(),
            noise,
            link: Link::of(self.loss),
            penalty: self.regularizer.ridge(p),
            absolute: self.regularizer.prox_by_coordinate(1.0, p).0,
            learned: None,
            shared: SharedWork::default(),
            model: PublicVector::zeros(p),
        };
        let mut caps = vec![];
        for turn in 0..state.noise.len() {
            let mean = match &state.learned {
                None => mean_moments(self.records, self.loss, &state.layout),
                Some(learned) => {
                    if caps.is_empty() {
                        let length = |row| whitened_length(&*learned.metric, row);
                        caps = self.records.rows().map(|row| learned.metric.clip() / length(row)).collect();
                    }
                    let mean = self.mean_gradient(&caps, &learned.point);
                    let whitened = learned.metric.whitened(&mut mean.into_iter().enumerate());
                    whitened.into_iter().map(|v| v / learned.metric.clip()).collect()
                }
            };
            let mut release = PublicVector::zeros(mean.len());
            let deviation = state.noise[turn];
            release.rewrite(|release| {
                release.iter_mut().zip(&mean).for_each(|(r, m)| *r = n_records * m + deviation * normal());
            });
            state.finish_turn(turn as u32 + 1, Some(&release), &[]);
        }
        state.model.as_slice().to_vec()
    }

    /// The mean of `clip(ℓ'(aᵀx), ± cap) a`.
    pub(in crate::algorithm) fn mean_gradient(&self, caps: &[f64], point: &[f64]) -> Vec<f64> {
        let (mut mean, share) = (vec![0.0; point.len()], 1.0 / caps.len() as f64);
        for (row, cap) in self.records.rows().zip(caps) {
            let numbers: f64 = row.numeric.iter().zip(point).map(|(v, x)| v * x).sum();
            let ones: f64 = row.hot.iter().map(|&j| point[j as usize]).sum();
            let slope = self.loss.slope(row.label, row.scale * (numbers + ones)).clamp(-cap, *cap);
            let factor = share * row.scale * slope;
            mean.iter_mut().zip(row.numeric).for_each(|(m, v)| *m += factor * v);
            row.hot.iter().for_each(|&j| mean[j as usize] += factor);
        }
        mean
    }
}

/// The mean of `(y a, (1−y) a, a_num²)/Φ`.
fn mean_moments(data: &Dataset, loss: Loss, layout: &Layout) -> Vec<f64> {
    let (p, mut mean) = (layout.n_features, vec![0.0; layout.n_moments()]);
    let share = 1.0 / (data.n_records() as f64 * layout.moment_bound());
    for row in data.rows() {
        let y = Link::of(loss).unit_label(row.label);
        for (j, v) in row.numeric.iter().enumerate() {
            let a = row.scale * v;
            mean[j] += share * y * a;
            mean[p + j] += share * (1.0 - y) * a;
            mean[2 * p + j] += share * a * a;
        }
        for &j in row.hot {
            mean[j as usize] += share * y * row.scale;
            mean[p + j as usize] += share * (1.0 - y) * row.scale;
        }
    }
    mean
}

/// `‖L⁻¹a‖`
fn whitened_length(metric: &dyn Metric, row: Row<'_>) -> f64 {
    let hot = row.hot.iter().map(|&j| (j as usize, 1.0));
    let mut entries = row.numeric.iter().copied().enumerate().chain(hot);
    (row.scale * norm(&metric.whitened(&mut entries))).max(f64::MIN_POSITIVE)
}
