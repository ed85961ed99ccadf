//! What each site gains by joining, and which sites add more noise than knowledge.

use rayon::prelude::*;
use serde::Serialize;

use super::rehearse::is_newton;
use super::{AdviceError, Curve, Expected, Question, Rehearsals};
use crate::algorithm::AlgorithmKind;
use crate::algorithm::noise_factor;
use crate::plan::SiteWeights;

/// Different sizes of sites that are tried; what lies between is interpolated.
const MOST_SIZES: usize = 6;

/// What one site may expect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteAdvice {
    /// As the question names it.
    pub site: String,
    /// Its number of records, which is public.
    pub records: usize,
    /// Area under the ROC curve of what it can learn alone.
    pub own_auc: f64,
    /// The same of the joint model, at this site.
    pub joint_auc: f64,
    /// The same of a model of its own that starts from the joint one.
    pub combined_auc: f64,
    /// Whether the others would do better without it.
    pub adds_more_noise_than_knowledge: bool,
}

/// What could be done about sites that add more noise than knowledge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// A sentence that says what to change.
    pub what: String,
    /// Sites that are left.
    pub sites: usize,
    /// Records that are left.
    pub records: usize,
    /// `A`: the noise of the weighted mean, where a site's sum has noise of 1.
    pub noise_factor: f64,
    /// What the recommended method is then expected to lose.
    pub excess_objective: f64,
    /// Area under the ROC curve that is then expected.
    pub auc: f64,
}

impl Rehearsals<'_> {
    /// What each site may expect of `here`, the expected run of `kind`.
    pub(super) fn sites(
        &self,
        kind: AlgorithmKind,
        here: &Expected,
        curve: &Curve,
    ) -> Result<Vec<SiteAdvice>, AdviceError> {
        let question = self.question;
        let n_records = question.network.n_records;
        let plan = self.plan(kind, here.epsilon, None)?;
        let mut models = self.models(&plan)?;
        // One joint model a population is enough: sites differ in their size, not in their noise.
        models.dedup_by_key(|m| m.0);
        let sizes = representative(n_records);
        let tried: Vec<(f64, f64)> = sizes
            .par_iter()
            .map(|&n| {
                let gains = models.iter().map(|(k, m)| self.populations[*k].of_a_site(question, n, m));
                let sum = gains.fold((0.0, 0.0), |sum, gain| (sum.0 + gain.0, sum.1 + gain.1));
                (sum.0 / models.len() as f64, sum.1 / models.len() as f64)
            })
            .collect();
        let noisy = noisy_sites(question, here, curve, is_newton(&plan));
        let site = |(i, &n): (usize, &usize)| {
            let (own_auc, combined_auc) = between(&sizes, &tried, n);
            SiteAdvice {
                site: question.names[i].clone(),
                records: n,
                own_auc,
                joint_auc: here.auc,
                combined_auc,
                adds_more_noise_than_knowledge: noisy[i],
            }
        };
        Ok(n_records.iter().enumerate().map(site).collect())
    }
}

/// The smallest and the largest size and some between, in order.
fn representative(n_records: &[usize]) -> Vec<usize> {
    let mut sizes = n_records.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() <= MOST_SIZES {
        return sizes;
    }
    let (low, high) = (sizes[0] as f64, sizes[sizes.len() - 1] as f64);
    let at = |k: usize| (low * libm::pow(high / low, k as f64 / (MOST_SIZES - 1) as f64)).round() as usize;
    let mut sizes: Vec<usize> = (0..MOST_SIZES).map(at).collect();
    sizes.dedup();
    sizes
}

/// Values at `n`, linear in its logarithm between the sizes that were tried.
fn between(sizes: &[usize], values: &[(f64, f64)], n: usize) -> (f64, f64) {
    let after = sizes.partition_point(|&size| size < n).clamp(1, sizes.len().max(2) - 1).min(sizes.len() - 1);
    let before = after.saturating_sub(1);
    if before == after {
        return values[0];
    }
    let log = |n: usize| libm::log(n as f64);
    let part = ((log(n) - log(sizes[before])) / (log(sizes[after]) - log(sizes[before]))).clamp(0.0, 1.0);
    let mix = |a: f64, b: f64| a + part * (b - a);
    (mix(values[before].0, values[after].0), mix(values[before].1, values[after].1))
}

/// Which sites the others would do better without: what leaving one out takes away of the noise, against what its records add.
///
/// Two errors add up: that of privacy, a power of the noise factor whose exponent the curve tells, and that of having drawn `n` records,
/// about `p/(2n)`.
fn noisy_sites(question: &Question<'_>, here: &Expected, curve: &Curve, is_newton: bool) -> Vec<bool> {
    let network = question.network;
    let (n_records, p) = (network.n_records, network.space.n_features() as f64);
    let factor = noise_factor(SiteWeights::Records, n_records);
    let exponent = if is_newton && curve.points.len() > 1 {
        let (more, less) = (curve.at(1.1 * factor).0, curve.at(factor / 1.1).0);
        (libm::log(more / less) / (2.0 * libm::log(1.1))).clamp(0.3, 2.0)
    } else {
        1.5
    };
    let n: usize = n_records.iter().sum();
    let privacy = here.excess_objective.max(0.0) * here.loss;
    let is_noisy = |i: usize| {
        if n_records.len() < 3 {
            return false;
        }
        let mut others = n_records.to_vec();
        others.remove(i);
        let left = (n - n_records[i]) as f64;
        let ratio = noise_factor(SiteWeights::Records, &others) / factor;
        let privacy_change = privacy * (libm::pow(ratio, exponent) - 1.0);
        let sampling_change = 0.5 * p * (1.0 / left - 1.0 / n as f64);
        privacy_change + sampling_change < 0.0
    };
    (0..n_records.len()).map(is_noisy).collect()
}

/// Damping the noisy sites, letting them take part together with another one, and leaving them out; nothing where there are none.
pub(super) fn alternatives(
    question: &Question<'_>,
    sites: &[SiteAdvice],
    curve: &Curve,
) -> Result<Vec<Alternative>, AdviceError> {
    let n_records = question.network.n_records;
    let (noisy, kept): (Vec<&SiteAdvice>, Vec<&SiteAdvice>) =
        sites.iter().partition(|s| s.adds_more_noise_than_knowledge);
    if noisy.is_empty() || kept.is_empty() {
        return Ok(vec![]);
    }
    let sizes = |sites: &[&SiteAdvice]| sites.iter().map(|s| s.records).collect::<Vec<_>>();
    let of = |what: &str, n_records: &[usize], weights: SiteWeights| {
        let noise_factor = noise_factor(weights, n_records);
        let (excess_objective, auc) = curve.at(noise_factor);
        Alternative {
            what: what.to_owned(),
            sites: n_records.len(),
            records: n_records.iter().sum(),
            noise_factor,
            excess_objective,
            auc,
        }
    };
    let mut together = sizes(&kept);
    together.sort_unstable();
    together[0] += noisy.iter().map(|s| s.records).sum::<usize>();
    Ok(vec![
        of("all sites, every record counts the same", n_records, SiteWeights::Records),
        of("all sites, damped weights", n_records, SiteWeights::Damped),
        of("those together with the smallest other site", &together, SiteWeights::Records),
        of("without them", &sizes(&kept), SiteWeights::Records),
    ])
}
