//! Made-up records: what a schema says, and a signal of assumed strength.
//!
//! Real columns lean on each other, and on what is to be predicted. So each made-up column follows one hidden number of the record,
//! more or less closely, and the planted model weights it mostly by how closely. Numbers are skewed to different degrees, and some
//! categories are common while others are rare. Loadings and weights were set once, so that runs on Adult and Heart Disease came out
//! about right, and tried on other data (experiments/README.md).

use std::f64::consts::{SQRT_2, TAU};

use crate::data::{Dataset, FeatureSpace};
use crate::graph::PublicSeed;
use crate::loss::Loss;
use crate::metrics::auc;

/// How closely columns follow the hidden number, on average.
const LOADING: f64 = 0.5;
/// No column follows it more closely.
const MOST_LOADING: f64 = 0.9;
/// The part of the planted weights that has nothing to do with the hidden number.
const SCATTER: f64 = 0.2;
/// Every third column repeats most of what the one before it says, as in many tables: how much of its own part is the other's.
const REPEATED: f64 = 0.95;
/// The distributions of numbers between 0 and 1, in turn: `1 − (1 − vᵃ)ᵇ` is the probability to be below `v` (Kumaraswamy).
const SHAPES: [(f64, f64); 3] = [(2.0, 2.5), (1.5, 3.5), (0.8, 6.0)];
/// Records that the planted model is scaled on.
const SCALED_ON: usize = 4000;

/// Standard normal numbers from a public seed, for noise that protects nobody.
pub(super) struct Normal(PublicSeed);

impl Normal {
    pub(super) fn new(seed: u64) -> Self {
        Self(PublicSeed::new(seed))
    }

    /// Box and Muller's, the cosine only.
    pub(super) fn draw(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.0.unit())).sqrt();
        radius * libm::cos(TAU * self.0.unit())
    }
}

/// The probability of a standard normal number below `x`.
fn below(x: f64) -> f64 {
    0.5 * libm::erfc(-x / SQRT_2)
}

/// Where it is `share`, to the accuracy that a made-up weight needs.
fn quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if below(middle) < share { low = middle } else { high = middle }
    }
    low
}

/// A column of the table.
struct Column {
    /// How closely it follows the hidden number; the sign is the direction.
    loading: f64,
    kind: Kind,
}

enum Kind {
    Number {
        shape: (f64, f64),
    },
    /// Upper ends of the categories' shares, and the first of their columns.
    Category {
        ends: Vec<f64>,
        first: usize,
    },
}

/// What records are made from.
pub(super) struct Maker {
    columns: Vec<Column>,
    space: FeatureSpace,
    norm_bound: f64,
    /// The planted model, scaled, and its offset.
    model: Vec<f64>,
    offset: f64,
    random: PublicSeed,
    normal: Normal,
}

impl Maker {
    /// For records of these columns, of which `positive` are positive, and which the best model ranks with an area `signal` under its
    /// ROC curve.
    pub(super) fn new(space: &FeatureSpace, norm_bound: f64, signal: f64, positive: f64, seed: u64) -> Self {
        let (mut random, mut normal) = (PublicSeed::new(seed), Normal::new(!seed));
        let (mut columns, mut model) = (vec![], vec![0.0; space.n_features()]);
        for group in &space.groups {
            let drawn = (2.0 * LOADING * random.unit()).min(MOST_LOADING);
            let closeness = match columns.last() {
                Some(Column { loading, .. }) if is_repetition(columns.len()) => loading.abs(),
                _ => drawn,
            };
            let is_number = group.start < space.n_numeric;
            let direction = if is_number && random.unit() < 0.5 { -1.0 } else { 1.0 };
            let loading = direction * closeness;
            let systematic = (1.0 - SCATTER) * loading / LOADING;
            let kind = if is_number {
                let shape = SHAPES[columns.len() % SHAPES.len()];
                let weight = systematic + SCATTER * normal.draw();
                model[group.start] = weight / deviation(shape);
                Kind::Number { shape }
            } else {
                // The k-th most common category has a share that goes with k^−1.5; the order along the hidden number is another one.
                let mut shares: Vec<f64> = (1..=group.len()).map(|k| libm::pow(k as f64, -1.5)).collect();
                random.shuffle(&mut shares);
                let total: f64 = shares.iter().sum();
                let mut end = 0.0;
                for (j, share) in group.clone().zip(&mut shares) {
                    let middle = end + 0.5 * *share / total;
                    end += *share / total;
                    *share = end;
                    model[j] = systematic * quantile(middle) + SCATTER * normal.draw();
                }
                Kind::Category { ends: shares, first: group.start }
            };
            columns.push(Column { loading, kind });
        }
        let offset = 0.0;
        let space = space.clone();
        let mut maker = Self { columns, space, norm_bound, model, offset, random, normal };
        maker.scale(signal, positive);
        maker
    }

    /// Scales the planted model to the signal, and sets its offset.
    fn scale(&mut self, signal: f64, positive: f64) {
        let unlabelled = self.rows(SCALED_ON);
        let margins: Vec<f64> = unlabelled.rows().map(|row| margin(&self.model, row)).collect();
        let mean = margins.iter().sum::<f64>() / margins.len() as f64;
        let spread = margins.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / margins.len() as f64;
        let deviation = spread.sqrt().max(f64::MIN_POSITIVE);
        let standard: Vec<f64> = margins.iter().map(|t| (t - mean) / deviation).collect();
        let offset_for = |strength: f64| {
            let rate = |offset: f64| {
                standard.iter().map(|t| chance(strength * t + offset)).sum::<f64>() / standard.len() as f64
            };
            bisect(-40.0, 40.0, |offset| rate(offset) < positive)
        };
        let strength = bisect(0.0, 20.0, |strength| {
            let offset = offset_for(strength);
            expected_auc(&standard, |t| chance(strength * t + offset)) < signal
        });
        self.model.iter_mut().for_each(|w| *w *= strength / deviation);
        self.offset = offset_for(strength) - strength * mean / deviation;
    }

    /// Records without labels.
    fn rows(&mut self, n: usize) -> Dataset {
        let n_categories = self.columns.iter().filter(|c| matches!(c.kind, Kind::Category { .. })).count();
        let n_hot = n_categories + usize::from(self.space.intercept.is_some());
        let mut rows = Dataset::new(self.space.n_features(), self.space.n_numeric, n_hot, self.norm_bound);
        let (mut numeric, mut hot) = (vec![], vec![]);
        for _ in 0..n {
            numeric.clear();
            hot.clear();
            let hidden = self.normal.draw();
            let mut own = 0.0;
            for (k, Column { loading, kind }) in self.columns.iter().enumerate() {
                let drawn = self.normal.draw();
                let part = if is_repetition(k) { REPEATED } else { 0.0 };
                own = part * own + (1.0 - part * part).sqrt() * drawn;
                let direction = loading.signum();
                let place =
                    below(direction * (loading.abs() * hidden + (1.0 - loading * loading).sqrt() * own));
                match kind {
                    Kind::Number { shape } => numeric.push(number(*shape, place)),
                    Kind::Category { ends, first } => {
                        let category = ends.partition_point(|&end| end < place).min(ends.len() - 1);
                        hot.push((first + category) as u32);
                    }
                }
            }
            hot.extend(self.space.intercept.map(|j| j as u32));
            rows.push(&numeric, &hot, -1.0);
        }
        rows
    }

    /// `n` records with their labels.
    pub(super) fn records(&mut self, n: usize) -> Dataset {
        let rows = self.rows(n);
        let mut records = rows.empty_like();
        for row in rows.rows() {
            let is_positive = self.random.unit() < chance(margin(&self.model, row) + self.offset);
            let label = if is_positive { 1.0 } else { -1.0 };
            records.push(row.numeric, row.hot, label);
        }
        records
    }
}

/// Whether the column with this number repeats the one before it.
fn is_repetition(column: usize) -> bool {
    column % 3 == 2
}

/// A made-up number for a place between 0 and 1.
fn number((a, b): (f64, f64), place: f64) -> f64 {
    libm::pow(1.0 - libm::pow(1.0 - place, 1.0 / b), 1.0 / a)
}

/// The standard deviation of such numbers.
fn deviation(shape: (f64, f64)) -> f64 {
    const STEPS: u32 = 200;
    let values: Vec<f64> =
        (0..STEPS).map(|k| number(shape, (f64::from(k) + 0.5) / f64::from(STEPS))).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64).sqrt()
}

fn margin(model: &[f64], row: crate::data::Row<'_>) -> f64 {
    let numbers: f64 = row.numeric.iter().zip(model).map(|(v, w)| v * w).sum();
    row.scale * (numbers + row.hot.iter().map(|&j| model[j as usize]).sum::<f64>())
}

fn chance(margin: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-margin))
}

/// The largest number at which `is_below` still holds, for a condition that holds first and then no longer.
fn bisect(low: f64, high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if is_below(middle) { low = middle } else { high = middle }
    }
    low
}

/// The area under the ROC curve that margins have on average over labels with these chances.
fn expected_auc(margins: &[f64], chance: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = margins.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (mut negatives, mut positives, mut won) = (0.0, 0.0, 0.0);
    for t in sorted {
        let positive = chance(t);
        won += positive * (negatives + 0.5 * (1.0 - positive));
        negatives += 1.0 - positive;
        positives += positive;
    }
    won / (positives * negatives)
}

/// What a model is worth on records: mean loss, area under the ROC curve, accuracy.
pub(super) fn worth(records: &Dataset, loss: Loss, model: &[f64]) -> (f64, f64, f64) {
    let margins: Vec<f64> = records.rows().map(|row| margin(model, row)).collect();
    let losses = margins.iter().zip(records.labels()).map(|(t, z)| loss.value(*z, *t));
    (
        losses.sum::<f64>() / margins.len() as f64,
        auc(&margins, records.labels()).unwrap_or(0.5),
        crate::metrics::accuracy(&margins, records.labels()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> FeatureSpace {
        FeatureSpace {
            names: (0..9).map(|j| j.to_string()).collect(),
            groups: vec![0..1, 1..2, 2..4, 4..8],
            intercept: Some(8),
            n_numeric: 2,
        }
    }

    /// 20,000 records: the share and the area each have a standard error below 0.004, so that 0.03 is missed by chance never.
    #[test]
    fn made_up_records_have_the_signal_and_the_share_that_were_asked_for() {
        for (signal, positive) in [(0.65, 0.5), (0.75, 0.1), (0.9, 0.3)] {
            let mut maker = Maker::new(&space(), 1.0, signal, positive, 7);
            let records = maker.records(20_000);
            let (_, area, _) = worth(&records, Loss::Logistic, &maker.model);
            let share =
                records.labels().iter().filter(|z| **z > 0.0).count() as f64 / records.n_records() as f64;
            assert!((area - signal).abs() < 0.03 && (share - positive).abs() < 0.03, "{area} {share}");
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_records() {
        let made = |seed| Maker::new(&space(), 1.0, 0.8, 0.3, seed).records(50);
        assert!(made(1) == made(1) && made(1) != made(2));
    }

    #[test]
    fn normal_numbers_are_normal() {
        let mut normal = Normal::new(3);
        let drawn: Vec<f64> = (0..40_000).map(|_| normal.draw()).collect();
        let mean = drawn.iter().sum::<f64>() / 40_000.0;
        let square = drawn.iter().map(|v| v * v).sum::<f64>() / 40_000.0;
        // Six standard errors.
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.043, "{mean} {square}");
        assert!((below(quantile(0.975)) - 0.975).abs() < 1e-9 && (quantile(0.975) - 1.959_964).abs() < 1e-5);
    }
}
