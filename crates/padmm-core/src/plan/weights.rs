//! Whose records count how much.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};

/// How much a site counts in the problem that all of them solve: `Σ_i f_i`, `f_i = Nω_i · mean_i ℓ + R/N`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Display, EnumString, VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SiteWeights {
    /// `ω_i = n_i/n`: every record counts the same, and sites of equal degree have the same noise.
    #[default]
    Records,
    /// `ω_i = 1/N`: every site counts the same, as in the paper. A record of a small site then counts for many, and so does that site's
    /// noise.
    Sites,
    /// `ω_i ∝ n_i · min(1, n_i/n̄)`: records of sites below the average size count less. A small site adds as much noise as a large one;
    /// this lets it add less of both noise and knowledge.
    Damped,
}

impl SiteWeights {
    /// `ω_i` of every site; they add up to 1.
    pub fn of(self, n_records: &[usize]) -> Vec<f64> {
        let mean = n_records.iter().sum::<usize>() as f64 / n_records.len() as f64;
        let raw = |&n: &usize| match self {
            Self::Records => n as f64,
            Self::Sites => 1.0,
            Self::Damped => n as f64 * (n as f64 / mean).min(1.0),
        };
        let total: f64 = n_records.iter().map(raw).sum();
        n_records.iter().map(|n| raw(n) / total).collect()
    }

    /// `Nω_i` of every site: what its mean loss is multiplied by. Exactly 1 where all sites count the same.
    pub fn factors(self, n_records: &[usize]) -> Vec<f64> {
        if self == Self::Sites || n_records.iter().all(|n| *n == n_records[0]) {
            return vec![1.0; n_records.len()];
        }
        self.of(n_records).into_iter().map(|weight| weight * n_records.len() as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_and_damped_ones_leave_small_sites_less() {
        let sizes = [10, 100, 400, 490];
        for weights in [SiteWeights::Records, SiteWeights::Sites, SiteWeights::Damped] {
            assert!((weights.of(&sizes).iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert_eq!(weights.factors(&[7; 3]), [1.0; 3]);
        }
        assert_eq!(SiteWeights::Records.of(&sizes), [0.01, 0.1, 0.4, 0.49]);
        let damped = SiteWeights::Damped.of(&sizes);
        assert!((damped[0] / damped[2] - 0.04 * 10.0 / 400.0).abs() < 1e-12, "{damped:?}");
    }
}
