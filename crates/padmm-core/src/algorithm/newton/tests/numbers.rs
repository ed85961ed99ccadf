//! Losses of numbers and of counts on made data of 39 columns: what share of the gain over the best constant the noise of a whole run
//! costs, at the noise of five sites that share 45,222 records. Private gradients are measured beside it.

use padmm_privacy::{Budget, gdp_mu};

use super::robust::Numbers;
use super::*;
use crate::algorithm::private_gradient::rehearse;
use crate::metrics::BestConstant;
use crate::solver::Status;

const SEEDS: u64 = 20;
/// `A = √N/n`
const NOISE_FACTOR: f64 = 4.944_6e-5;
/// Four numbers, these categories and an intercept.
const WIDTHS: [usize; 6] = [2, 3, 5, 8, 8, 8];

/// Records whose labels depend on a linear signal of standard deviation 0.6, each drawn by `label` from the signal.
fn records(label: impl Fn(f64, &mut Numbers) -> f64) -> (Dataset, FeatureSpace) {
    let mut rng = Numbers(5);
    let p = 4 + WIDTHS.iter().sum::<usize>() + 1;
    let mut groups: Vec<Range<usize>> = (0..4).map(|j| j..j + 1).collect();
    for width in WIDTHS {
        let start = groups.last().map_or(0, |group| group.end);
        groups.push(start..start + width);
    }
    let slopes: Vec<f64> = (0..p).map(|j| rng.normal() * if j < 4 { 0.6 } else { 0.25 }).collect();
    let mut data = Dataset::new(p, 4, WIDTHS.len() + 1, 1.0);
    for _ in 0..6000 {
        let numbers: Vec<f64> = (0..4).map(|_| rng.uniform()).collect();
        let mut signal: f64 = numbers.iter().zip(&slopes).map(|(v, s)| (v - 0.5) * s).sum();
        let mut ones = vec![];
        for group in &groups[4..] {
            let place = group.start + (rng.uniform() * group.len() as f64) as usize;
            signal += slopes[place] - slopes[group.clone()].iter().sum::<f64>() / group.len() as f64;
            ones.push(place as u32);
        }
        ones.push(p as u32 - 1);
        data.push(&numbers, &ones, label(signal, &mut rng));
    }
    let names = (0..p).map(|j| format!("column {j}")).collect();
    (data, FeatureSpace { names, groups, intercept: Some(p - 1), n_numeric: 4 })
}

/// A count of this mean, by how many exponential waits fit into it.
fn count(mean: f64, rng: &mut Numbers) -> f64 {
    let (mut waited, mut found) = (0.0, 0.0);
    loop {
        waited -= rng.uniform().max(1e-300).ln();
        if waited > mean {
            return found;
        }
        found += 1.0;
    }
}

/// The shares that consensus Newton and private gradients lose at this ε.
fn lost((records, space): &(Dataset, FeatureSpace), loss: Loss, epsilon: f64) -> [f64; 2] {
    let term = RegularizerTerm::new(&Regularizer::L2 { strength: 1e-3 }, space, 0.2);
    let parts = [Part::mean(records)];
    // Where all labels are beyond the corner there is no curvature in the intercept's direction, and a solver would have no way to go.
    let objective = Objective::new(&parts, loss, &term, &[], 1e-9);
    let value = |x: &[f64]| objective.value(x, &mut ObjectiveBuffers::default());
    let optimum = Solver::new().solve(&objective, &vec![0.0; records.n_features()], 1e-8);
    assert_eq!(optimum.status, Status::Solved, "{loss}");
    let best = value(&optimum.point);
    let constant = BestConstant::of(loss, &[records]).loss;
    let mu = gdp_mu(Budget::new(epsilon, 1e-4).unwrap()).value();
    let rehearsal =
        Rehearsal { records, space, loss, regularizer: &term, noise_factor: NOISE_FACTOR, mu, rounds: None };
    let mean = |run: &dyn Fn(&mut dyn FnMut() -> f64) -> Vec<f64>| {
        let of_seed = |seed: u64| {
            let mut rng = Numbers(1000 * seed);
            value(&run(&mut || rng.normal()))
        };
        let found = (1..=SEEDS).map(of_seed).sum::<f64>() / SEEDS as f64;
        (found - best) / (constant - best)
    };
    [mean(&|normal| rehearsal.run(normal)), mean(&|normal| rehearse(&rehearsal, normal))]
}

#[test]
fn numbers_and_counts_cost_little_of_what_there_is_to_gain() {
    let quantile = |level| Loss::Quantile { level, width: 0.05 };
    // Spread grows with the signal, so that quantiles are no shifted means.
    let spread = |by: f64| {
        move |signal: f64, rng: &mut Numbers| {
            (0.4 + by * (2.0 * signal + (0.8 + 0.5 * signal.abs()) * rng.normal())).clamp(0.0, 1.0)
        }
    };
    let visits =
        |mean: f64| move |signal: f64, rng: &mut Numbers| (count(mean * signal.exp(), rng) / 20.0).min(1.0);
    let cases = [
        ("median", records(spread(0.1)), quantile(0.5), 0.02, 0.005),
        ("quantile 0.9", records(spread(0.1)), quantile(0.9), 0.04, 0.005),
        ("quantile 0.1", records(spread(0.1)), quantile(0.1), 0.04, 0.005),
        ("narrow labels", records(spread(0.03)), quantile(0.9), 0.08, 0.01),
        ("a sharp corner", records(spread(0.1)), Loss::Quantile { level: 0.9, width: 0.005 }, 0.04, 0.005),
        ("counts of 3", records(visits(3.0)), Loss::Poisson { cap: 20.0 }, 0.1, 0.02),
        ("counts of 0.5", records(visits(0.5)), Loss::Poisson { cap: 20.0 }, 0.3, 0.04),
    ];
    for (name, data, loss, at_one, at_five) in cases {
        let [one, five] = [1.0, 5.0].map(|epsilon| lost(&data, loss, epsilon));
        println!(
            "{name}: lost {:.2} % at epsilon 1 (private gradients {:.1}), {:.2} % at 5 ({:.1})",
            100.0 * one[0],
            100.0 * one[1],
            100.0 * five[0],
            100.0 * five[1]
        );
        assert!(one[0] < at_one && five[0] < at_five, "{name}: {one:?}, {five:?}");
    }
}
