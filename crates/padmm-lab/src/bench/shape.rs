//! Records made for a benchmark: as many as wanted, in the shape of Adult or of any width.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail};
use padmm_core::data::{Dataset, FeatureSpace};
use padmm_data::{Source, load};
use padmm_sim::split::partition;
use padmm_sim::{Holdout, Split};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Categorical columns of a wide sparse record.
const SPARSE_COLUMNS: usize = 10;

/// Adult's numeric columns, and the values of its categorical ones.
const ADULT_NUMBERS: usize = 6;
const ADULT_VALUES: [usize; 8] = [8, 16, 7, 14, 6, 5, 2, 40];

/// Seed of splits, random graphs and noise; made records have seeds of their own.
pub const SEED: u64 = 1;

/// What the records of a case look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The records of Adult themselves.
    Adult,
    /// Like Adult's: six numbers and eight categorical columns with as many values each as Adult's have.
    OneHot,
    /// This many numbers, and nothing categorical.
    Dense(usize),
    /// One-hot columns, so many in all, ten of them one in each record.
    Sparse(usize),
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adult => write!(f, "adult"),
            Self::OneHot => write!(f, "one-hot"),
            Self::Dense(d) => write!(f, "dense:{d}"),
            Self::Sparse(d) => write!(f, "sparse:{d}"),
        }
    }
}

impl FromStr for Shape {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let width = |d: &str| d.parse::<usize>().with_context(|| format!("'{d}' is no number of columns"));
        match text.split_once(':') {
            None if text == "adult" => Ok(Self::Adult),
            None if text == "one-hot" => Ok(Self::OneHot),
            Some(("dense", d)) => Ok(Self::Dense(width(d)?)),
            Some(("sparse", d)) => Ok(Self::Sparse(width(d)?)),
            _ => bail!("'{text}' is no shape of records: use adult, one-hot, dense:D or sparse:D"),
        }
    }
}

/// Records of several agents, and the columns that they share.
pub struct Made {
    /// One data set for each agent.
    pub shards: Vec<Dataset>,
    /// The encoded columns, which all of them share.
    pub space: FeatureSpace,
}

impl Shape {
    /// `n_records` dealt to `n_agents`, each made where it stays: nothing is held twice. Of Adult itself there are as many as there are.
    pub fn make(self, n_records: usize, n_agents: usize) -> anyhow::Result<Made> {
        if self == Self::Adult {
            let adult = load(&Source::Shipped("adult".to_owned()))?.encoded;
            let shards = partition(&adult, Some(n_agents), Split::Even, Holdout::None, SEED)?.shards;
            return Ok(Made { shards, space: adult.features });
        }
        let (n_numeric, values) = self.columns();
        let space = FeatureSpace::numeric(n_numeric + values.iter().sum::<usize>());
        // Any weights will do; they are the same for all agents.
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let planted: Vec<f64> = (0..space.n_features()).map(|_| 4.0 * rng.random::<f64>() - 2.0).collect();
        let size = |i: usize| (i + 1) * n_records / n_agents - i * n_records / n_agents;
        let shards =
            (0..n_agents).into_par_iter().map(|i| shard(size(i), i as u64, n_numeric, &values, &planted));
        Ok(Made { shards: shards.collect(), space })
    }

    /// How many numbers a record has, and how many values each of its categorical columns.
    fn columns(self) -> (usize, Vec<usize>) {
        match self {
            Self::Adult | Self::OneHot => (ADULT_NUMBERS, ADULT_VALUES.to_vec()),
            Self::Dense(d) => (d, vec![]),
            Self::Sparse(d) => {
                let n = SPARSE_COLUMNS.min(d);
                (0, (0..n).map(|k| (k + 1) * d / n - k * d / n).collect())
            }
        }
    }
}

fn shard(n: usize, seed: u64, n_numeric: usize, values: &[usize], planted: &[f64]) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
    let mut data = Dataset::new(planted.len(), n_numeric, values.len(), 1.0);
    data.reserve(n);
    let (mut numeric, mut hot) = (vec![0.0; n_numeric], vec![0; values.len()]);
    for _ in 0..n {
        numeric.iter_mut().for_each(|v| *v = 2.0 * rng.random::<f64>() - 1.0);
        let mut first = n_numeric;
        for (h, &n_values) in hot.iter_mut().zip(values) {
            // Some values are common and some are rare, as in tables of people.
            *h = (first + (n_values as f64 * rng.random::<f64>().powi(2)) as usize) as u32;
            first += n_values;
        }
        let margin = numeric.iter().zip(planted).map(|(v, w)| v * w).sum::<f64>()
            + hot.iter().map(|&j| planted[j as usize]).sum::<f64>();
        let is_positive = rng.random::<f64>() * (1.0 + (-margin).exp()) < 1.0;
        data.push(&numeric, &hot, if is_positive { 1.0 } else { -1.0 });
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_records_have_adults_shape_and_the_shapes_that_are_asked_for() {
        let adult = Shape::Adult.make(0, 5).unwrap();
        let like = Shape::OneHot.make(1000, 3).unwrap();
        let shape = |d: &Dataset| (d.n_features(), d.n_numeric(), d.n_hot());
        assert_eq!(shape(&adult.shards[0]), shape(&like.shards[0]));
        assert_eq!(like.shards.iter().map(Dataset::n_records).collect::<Vec<_>>(), [333, 333, 334]);
        for text in ["dense:10", "sparse:10", "sparse:1003"] {
            let made = text.parse::<Shape>().unwrap().make(50, 1).unwrap();
            assert_eq!(
                made.space.n_features(),
                text.split(':').next_back().unwrap().parse::<usize>().unwrap()
            );
            assert_eq!(text, text.parse::<Shape>().unwrap().to_string());
        }
        assert!("round".parse::<Shape>().is_err());
    }
}
