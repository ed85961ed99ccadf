//! Against the vectors of the specification (ACCURACY §3), which were printed by a program of its own.

mod numbers;
mod robust;

use padmm_privacy::{
    Budget, Computed, Gate, MemoryLedger, NoiseSource, Payload, PrivacyError, PublicVector,
    RequiredCertificate, Schedule, SumRound, Terms,
};

use super::metric::Shape;
use super::records::{Prepared, Whitener, add_moments, add_whole_moments};
use super::*;
use crate::algorithm::LocalProblem;
use crate::data::{Dataset, FeatureSpace};
use crate::loss::Loss;
use crate::matrix::Square;
use crate::objective::{Objective, ObjectiveBuffers, Part};
use crate::regularizer::{Regularizer, RegularizerTerm};
use crate::solver::Solver;

/// Our order of columns is number, two categories, intercept; the specification has the number third.
const PLACES: [usize; 4] = [1, 2, 0, 3];
const PENALTY: f64 = 0.02;
const MU: f64 = 0.313_902;

fn layout() -> Layout {
    Layout { n_features: 4, n_numeric: 1, groups: std::iter::once(1..3).collect(), intercept: Some(3) }
}

/// Some of the six records of the specification.
fn problem(range: Range<usize>, labels: [f64; 6]) -> LocalProblem {
    let rows = [(1, 0.2), (1, 0.9), (2, 0.5), (2, 0.1), (1, 0.4), (2, 0.8)];
    let mut data = Dataset::new(4, 1, 2, 1.0);
    for ((category, number), label) in rows[range.clone()].iter().zip(&labels[range]) {
        data.push(&[*number], &[*category, 3], 2.0 * label - 1.0);
    }
    LocalProblem { data: Arc::new(data), loss: Loss::Logistic, penalty: RegularizerTerm::none(), weight: 1.0 }
}

/// What is released where all noise happens to be zero.
struct Silence;

impl NoiseSource for Silence {
    fn fill(&mut self, _scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        out.fill(0);
        Ok(())
    }
    fn description(&self) -> &'static str {
        "zeros, for a test"
    }
    fn is_secure(&self) -> bool {
        false
    }
}

fn released(
    sum: padmm_privacy::ClippedSum,
    terms: Terms,
    n_coordinates: usize,
    n_records: usize,
) -> (PublicVector, Vec<i64>) {
    let round = SumRound { n_coordinates, terms, share: 1.0 };
    let schedule = NoiseSchedule::for_sums(Budget::new(1.0, 1e-4).unwrap(), n_records, &[round]).unwrap();
    let mechanism = schedule.mechanism(RequiredCertificate { modulus: 1.0, tolerance: 0.0 }).unwrap();
    let ledger = Box::new(MemoryLedger::new());
    let mut gate = Gate::new("run".into(), "site".into(), mechanism, Box::new(Silence), ledger);
    let release = gate.release(1, |_| Ok::<Computed, PrivacyError>(sum.into())).unwrap();
    let Payload::Grid { values, .. } = release.value().clone() else { panic!("sums are integers") };
    (PublicVector::from(&release), values)
}

fn near(found: &[f64], expected: &[f64], by: f64) {
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(off <= by, "{found:?} is not {expected:?}");
}

/// One way is for records of numbers, the other for those most of whose entries are zero.
#[test]
fn moments_are_the_same_integers_however_they_are_added() {
    let (problem, layout) = (problem(0..6, [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]), layout());
    let empty = || padmm_privacy::ClippedSum::new(Terms::NonNegative, layout.n_moments(), 6);
    let (mut some, mut whole) = (empty(), empty());
    add_moments(&problem, &layout, 0..6, &mut some);
    add_whole_moments(&problem, &layout, 0..6, &mut whole);
    let integers = |sum| released(sum, Terms::NonNegative, layout.n_moments(), 6).1;
    let (some, whole) = (integers(some), integers(whole));
    assert!(some.iter().all(|m| *m > 0), "each class and category has records: {some:?}");
    assert_eq!(some, whole);
}

/// A vector of the specification in our order.
fn ours(v: [f64; 4]) -> Vec<f64> {
    let mut out = vec![0.0; 4];
    PLACES.iter().zip(v).for_each(|(&j, v)| out[j] = v);
    out
}

/// A run without noise of two sites of three records, calibrated for a noise factor `A`; `see` looks at it after every turn.
fn run(noise_factor: f64, mut see: impl FnMut(u32, &NewtonState)) -> NewtonState {
    let labels = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
    let problems = [problem(0..3, labels), problem(3..6, labels)];
    let rule = Rule::pick(4, noise_factor, MU);
    // Two sites of three records have the factor √2/6.
    let per_site = 6.0 * noise_factor / 2f64.sqrt();
    let mut noise = vec![per_site * 2f64.sqrt() / (MU * FIRST_SHARE.sqrt())];
    noise.extend(rule.shares().iter().map(|share| per_site * 2.0 / (MU * share.sqrt())));
    let mut state = NewtonState {
        rule,
        layout: layout(),
        shares: rule.shares(),
        voices: Voices::equal(2, 3.0),
        noise,
        link: Link::of(Loss::Logistic),
        penalty: vec![PENALTY; 4],
        absolute: vec![0.0; 4],
        learned: None,
        shared: SharedWork::default(),
        digest: StateDigest::default(),
        model: PublicVector::zeros(4),
    };
    for turn in 1..=rule.rounds + 1 {
        let said: Vec<PublicVector> = problems
            .iter()
            .map(|problem| match &mut state.learned {
                None => released(records::moments(problem, &state.layout), Terms::NonNegative, 9, 3).0,
                Some(l) => released(l.metric.sum(problem, &l.point), Terms::Signed, 4, 3).0,
            })
            .collect();
        state.finish_turn(turn, Some(&said[0]), &[Arc::new(said[1].clone())]);
        see(turn, &state);
    }
    state
}

#[test]
fn a_run_without_noise_is_that_of_the_specification() {
    let expected = [
        ours([-0.023_180_30, 0.001_455_69, 0.048_060_32, -0.021_724_62]),
        ours([-0.035_012_31, 0.002_298_05, 0.073_209_31, -0.032_714_26]),
        ours([-0.028_881_56, 0.001_885_19, 0.060_319_55, -0.026_996_38]),
    ];
    let state = run(2f64.sqrt() / 6.0, |turn, state| {
        if turn == 1 {
            let metric = &state.learned.as_ref().unwrap().metric;
            near(&[metric.clip()], &[0.339_449_10], 2e-6);
        } else {
            near(state.model().as_slice(), &expected[turn as usize - 2], 2e-6);
        }
    });
    assert_eq!(state.rule.rounds, 3);
}

#[test]
fn privacy_noise_is_that_of_the_specification() {
    let state = run(1e-3, |turn, state| assert_eq!(state.privacy_noise().is_some(), turn >= 1));
    near(state.model().as_slice(), &ours([-1.211_647_27, 0.414_374_69, 2.626_739_07, -0.797_272_58]), 2e-5);
    let noise = state.privacy_noise().unwrap();
    near(&noise.standard_deviations, &ours([0.099_738_42, 0.096_890_21, 0.084_524_01, 0.083_053_84]), 2e-6);
    let covariance = noise.covariance.unwrap();
    let diagonal: Vec<f64> = (0..4).map(|j| covariance[j][j].sqrt()).collect();
    assert_eq!(diagonal, noise.standard_deviations);
}

/// The metric of a run in which noise is small, from exact moments.
#[test]
fn the_metric_and_the_start_are_those_of_the_specification() {
    let moments = |labels: [f64; 6], noise_factor: f64| {
        let (sum, _) =
            released(records::moments(&problem(0..6, labels), &layout()), Terms::NonNegative, 9, 6);
        let layout = layout();
        let mean: Vec<f64> = sum.as_slice().iter().map(|v| v * layout.moment_bound() / 6.0).collect();
        let noise = 2f64.sqrt() * layout.moment_bound() * noise_factor / (MU * FIRST_SHARE.sqrt());
        Moments::of(&layout, &mean, noise)
    };
    let shape = |labels, noise_factor| Shape::new(&layout(), &moments(labels, noise_factor));
    let labels = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
    near(&[shape(labels, 2f64.sqrt() / 6.0).rate], &[0.499_830_35], 2e-6);
    near(&[shape(labels, 1e-3).rate], &[0.473_937_17], 2e-6);
    near(&[shape([0.0, 1.0, 0.0, 0.0, 0.0, 0.0], 1e-3).rate], &[0.151_430_43], 2e-6);

    let rule = Rule::pick(4, 1e-3, MU);
    assert_eq!(rule.rounds, 24);
    let rounds_noise = 2e-3 / (MU * (1.0 - FIRST_SHARE).sqrt());
    let lesson = Lesson {
        layout: &layout(),
        rule: &rule,
        link: Link::of(Loss::Logistic),
        moments: &moments(labels, 1e-3),
        penalty: &[PENALTY; 4],
        rounds_noise,
    };
    let (metric, start) = FullMetric::learn(&lesson, &SharedWork::default()).unwrap();
    near(&[metric.clip()], &[1.329_446_97], 2e-6);
    near(&start, &ours([-0.911_024_90, 0.260_886_85, 2.072_099_70, -0.650_138_05]), 2e-5);
}

/// Records of two categorical columns, two numbers and an intercept, with a label that depends on all but the last column.
fn made_up(loss: Loss, n_categories: usize, n: usize) -> (Dataset, FeatureSpace) {
    let p = 2 + n_categories + 3 + 1;
    let space = FeatureSpace {
        n_numeric: 2,
        groups: vec![0..1, 1..2, 2..2 + n_categories, 2 + n_categories..p - 1],
        intercept: Some(p - 1),
        names: (0..p).map(|j| format!("column {j}")).collect(),
    };
    let mut data = Dataset::new(p, 2, 3, 1.0);
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for r in 0..n {
        let (x, category) = ([uniform(), uniform()], r % n_categories);
        let signal = 3.0 * (x[0] - 0.5) + ((category as f64 * 0.7).sin());
        let label = if loss.is_classification() {
            if 0.3 * signal + uniform() - 0.5 > 0.0 { 1.0 } else { -1.0 }
        } else {
            (0.5 + 0.15 * signal + 0.1 * (uniform() - 0.5)).clamp(0.0, 1.0)
        };
        let other = 2 + n_categories + (uniform() * 3.0) as usize;
        data.push(&x, &[(2 + category) as u32, other as u32, p as u32 - 1], label);
    }
    (data, space)
}

/// With noise that hardly matters, every loss and regulariser comes to its optimum, in either form of the metric.
#[test]
fn a_run_with_little_noise_finds_the_optimum() {
    let cases = [
        (Loss::Logistic, Regularizer::L2 { strength: 1e-3 }, 5, 0.01),
        (Loss::HuberizedHinge { width: 0.5 }, Regularizer::L2 { strength: 1e-3 }, 5, 0.03),
        (Loss::Huber { width: 0.1 }, Regularizer::L2 { strength: 1e-4 }, 5, 0.01),
        (Loss::Logistic, Regularizer::L1 { strength: 2e-3 }, 5, 0.01),
        (Loss::Huber { width: 0.1 }, Regularizer::L1 { strength: 1e-3 }, 5, 0.01),
        (Loss::Quantile { level: 0.8, width: 0.05 }, Regularizer::L2 { strength: 1e-4 }, 5, 0.03),
        (Loss::Poisson { cap: 8.0 }, Regularizer::L2 { strength: 1e-3 }, 5, 0.01),
        (Loss::Poisson { cap: 8.0 }, Regularizer::L2 { strength: 1e-4 }, 1200, 0.05),
        (Loss::Logistic, Regularizer::ElasticNet { strength: 2e-3, l1_ratio: 0.5 }, 5, 0.01),
        (Loss::Logistic, Regularizer::L2 { strength: 1e-4 }, 1200, 0.05),
        (Loss::Logistic, Regularizer::L1 { strength: 2e-5 }, 1200, 0.05),
    ];
    for (loss, regularizer, n_categories, most) in cases {
        let (records, space) = made_up(loss, n_categories, 3600);
        let term = RegularizerTerm::new(&regularizer, &space, 1.0);
        let rehearsal = Rehearsal {
            records: &records,
            space: &space,
            loss,
            regularizer: &term,
            noise_factor: 1e-9,
            mu: 1.0,
            rounds: None,
        };
        let model = rehearsal.run(&mut || 0.5);
        let parts = [Part::mean(&records)];
        let objective = Objective::new(&parts, loss, &term, &[], 1e-9);
        let value = |x: &[f64]| objective.value(x, &mut ObjectiveBuffers::default());
        let constant = {
            let mut best = vec![0.0; records.n_features()];
            let at = |t: f64, x: &mut Vec<f64>| {
                x[records.n_features() - 1] = t;
                value(x)
            };
            (-300..=300).map(|k| at(f64::from(k) * 0.02, &mut best)).fold(f64::INFINITY, f64::min)
        };
        let best = value(&Solver::new().solve(&objective, &vec![0.0; records.n_features()], 1e-6).point);
        let lost = (value(&model) - best) / (constant - best);
        let case = format!("{loss}, {regularizer}, {n_categories} categories");
        assert!(lost < most, "{case}: {lost} of what there is to gain is lost");
        if term.is_nonsmooth() {
            // The last column's three categories say nothing.
            let zeros = model.iter().filter(|v| **v == 0.0).count();
            assert!(zeros >= 2, "{case}: {zeros} zeros in {model:?}");
        }
    }
}

/// More noise than a thousand columns can bear leaves the base rate's model.
#[test]
fn too_much_noise_for_many_columns_leaves_the_base_rate() {
    let (records, space) = made_up(Loss::Logistic, 1200, 1200);
    let term = RegularizerTerm::new(&Regularizer::L2 { strength: 1e-3 }, &space, 1.0);
    let rehearsal = Rehearsal {
        records: &records,
        space: &space,
        loss: Loss::Logistic,
        regularizer: &term,
        noise_factor: 1.0 / 1200.0,
        mu: 0.3,
        rounds: None,
    };
    let mut turn = 0u64;
    let model = rehearsal.run(&mut || {
        turn += 1;
        // Twelve numbers between 0 and 1 make a normal one.
        let of = |k: u64| ((turn * 12 + k) as f64 * 0.754_877_666_246_692_7).fract();
        (0..12).map(of).sum::<f64>() - 6.0
    });
    let parts = [Part::mean(&records)];
    let none = RegularizerTerm::none();
    let objective = Objective::new(&parts, Loss::Logistic, &none, &[], 0.0);
    let loss = objective.value(&model, &mut ObjectiveBuffers::default());
    assert!(loss < 1.05 * std::f64::consts::LN_2, "{loss}");
}

#[test]
fn a_records_term_is_that_of_the_specification() {
    let mut matrix = Square::zeros(4);
    matrix.add_to_diagonal(0.275);
    let whitener = Whitener::new(&matrix.cholesky().unwrap());
    let point = ours([0.5, -0.5, 1.0, 0.0]);
    for (label, sign) in [(0.0, 1), (1.0, -1)] {
        let problem = problem(0..1, [label; 6]);
        let sum = Prepared::new(&problem, &whitener, 0.4).gradient(&problem, &point);
        let (_, found) = released(sum, Terms::Signed, 4, 1);
        let expected = [751_769_645i64, 0, 150_353_929, 751_769_645];
        for (place, expected) in PLACES.iter().zip(expected) {
            // Slopes and matrix are whole numbers of up to 22 bits, rows of 18.
            assert!((found[*place] - sign * expected).abs() <= expected >> 16, "{found:?}");
        }
    }
}
