//! A site's own model: better than either part where both know something, no worse than own records where the joint model knows nothing,
//! and sound on records that are awkward.

use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::evaluate::score;
use padmm_core::loss::Loss;
use padmm_core::own::{FEWEST_RECORDS, OwnFit, OwnInputs, fit};

const N_NUMERIC: usize = 6;
const N_FEATURES: usize = 12;

/// Six numbers, two categorical columns of three and two values, an intercept.
fn space() -> FeatureSpace {
    FeatureSpace {
        names: (0..N_FEATURES).map(|j| format!("x{j}")).collect(),
        groups: (0..N_NUMERIC).map(|j| j..j + 1).chain([6..9, 9..11]).collect(),
        intercept: Some(11),
        n_numeric: N_NUMERIC,
    }
}

/// Uniform numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

const TRUTH: [f64; N_FEATURES] = [6.0, -5.0, 4.0, -3.0, 2.0, 0.0, 1.5, -1.5, 0.0, 1.0, -1.0, -1.0];

/// Records whose labels follow a logistic model with these coefficients.
fn records(n: usize, truth: &[f64], seed: u64) -> Dataset {
    let mut random = Random(seed);
    let mut data = Dataset::new(N_FEATURES, N_NUMERIC, 3, 2.0);
    for _ in 0..n {
        let numbers: Vec<f64> = (0..N_NUMERIC).map(|_| random.next()).collect();
        let hot = [6 + (random.next() * 3.0) as u32, 9 + (random.next() * 2.0) as u32, 11];
        let mut one = data.empty_like();
        one.push(&numbers, &hot, 1.0);
        let probability = 1.0 / (1.0 + (-one.margins(truth)[0]).exp());
        data.push(&numbers, &hot, if random.next() < probability { 1.0 } else { -1.0 });
    }
    data
}

fn own(records: &Dataset, joint: &[f64], compare: bool) -> OwnFit {
    fit(&OwnInputs { records, space: &space(), loss: Loss::Logistic, joint }, compare)
}

fn loss(data: &Dataset, model: &[f64]) -> f64 {
    score(Loss::Logistic, &[data], model, false).mean_loss
}

/// Mean losses of own records alone, joint and combined on fresh records, over sites of `n` records.
fn mean_losses(n: usize, sites: u64, truth: &[f64], joint: &[f64]) -> [f64; 3] {
    let test = records(4000, truth, 99);
    let mut sums = [0.0; 3];
    for site in 0..sites {
        let found = own(&records(n, truth, 1000 + site), joint, false);
        let models = [&found.alone[..], joint, &found.combined];
        sums.iter_mut().zip(models).for_each(|(sum, model)| *sum += loss(&test, model) / sites as f64);
    }
    sums
}

#[test]
fn a_good_joint_model_is_kept_and_a_useless_one_is_left() {
    let [alone, joint, combined] = mean_losses(60, 10, &TRUTH, &TRUTH);
    assert!(combined < 0.85 * alone && combined < 1.1 * joint, "{alone} {joint} {combined}");
    let wrong: Vec<f64> = TRUTH.iter().map(|v| -2.0 * v).collect();
    let [alone, joint, combined] = mean_losses(400, 5, &TRUTH, &wrong);
    assert!(combined < 1.005 * alone && combined < 0.6 * joint, "{alone} {joint} {combined}");
}

#[test]
fn a_base_rate_of_its_own_makes_the_combined_model_better_than_both() {
    let mut here = TRUTH;
    here[11] -= 3.0;
    let [alone, joint, combined] = mean_losses(80, 10, &here, &TRUTH);
    assert!(combined < 0.97 * alone && combined < 0.8 * joint, "{alone} {joint} {combined}");
}

#[test]
fn labels_that_mean_nothing_look_like_nothing() {
    // The comparison must not profit from having chosen among dozens of candidates: no model can be below ln 2 but by chance.
    let data = records(150, &[0.0; N_FEATURES], 5);
    let c = own(&data, &TRUTH, true).comparison.unwrap();
    assert_eq!((c.records, c.folds), (150, 10));
    let ln2 = std::f64::consts::LN_2;
    for measures in [&c.own, &c.combined] {
        assert!(measures.loss.high > ln2 && measures.loss.value < ln2 + 0.1, "{measures:?}");
        let auc = measures.auc.unwrap();
        assert!(auc.value < 0.65, "{auc:?}");
    }
    assert!(c.joint.loss.value > ln2 + 0.1, "{:?}", c.joint);
}

#[test]
fn the_comparison_is_about_what_fresh_records_say() {
    let (data, test) = (records(300, &TRUTH, 3), records(20_000, &TRUTH, 4));
    let mut joint = TRUTH;
    joint[0] = 0.0;
    let found = own(&data, &joint, true);
    let c = found.comparison.as_ref().unwrap();
    for (measures, model) in
        [(&c.own, &found.alone[..]), (&c.joint, &joint[..]), (&c.combined, &found.combined[..])]
    {
        let fresh = loss(&test, model);
        assert!((measures.loss.value - fresh).abs() < 3.0 * measures.loss.std_error, "{measures:?} {fresh}");
        assert!(measures.loss.low < measures.loss.value && measures.loss.value < measures.loss.high);
    }
    assert!((c.gain.value - (c.own.loss.value - c.combined.loss.value)).abs() < 1e-12);
    // Paired: two models that are nearly the same differ by less than each by itself is uncertain.
    assert!(c.gain.std_error < c.own.loss.std_error);
    let again = own(&data, &joint, true);
    assert_eq!(found, again);
}

#[test]
fn awkward_records_give_finite_models() {
    let mut one_class = records(50, &TRUTH, 6).empty_like();
    for row in records(50, &TRUTH, 6).rows() {
        one_class.push(row.numeric, row.hot, 1.0);
    }
    let mut separable = one_class.empty_like();
    let mut constant = one_class.empty_like();
    for r in 0..50u32 {
        let z = if r % 2 == 0 { 1.0 } else { -1.0 };
        separable.push(&[f64::from(r % 2), 0.0, 0.0, 0.0, 0.0, 0.0], &[6, 9 + r % 2, 11], z);
        constant.push(&[0.5; N_NUMERIC], &[6, 9, 11], if r % 3 == 0 { 1.0 } else { -1.0 });
    }
    let huge = TRUTH.map(|v| 1e6 * v);
    for data in [&one_class, &separable, &constant, &records(FEWEST_RECORDS, &TRUTH, 8)] {
        for joint in [&TRUTH, &[0.0; N_FEATURES], &huge] {
            let found = own(data, joint, true);
            assert!(found.combined.iter().chain(&found.alone).all(|v| v.is_finite()));
            assert!((0.0..=1.0 + 1e-12).contains(&found.joint_share), "{}", found.joint_share);
            let c = found.comparison.unwrap();
            assert!(c.combined.loss.value.is_finite() && c.combined.loss.std_error >= 0.0, "{c:?}");
        }
    }
    assert!(own(&one_class, &TRUTH, true).comparison.unwrap().own.auc.is_none());
}

#[test]
fn too_few_records_keep_the_joint_model_and_empty_ones_do_not_count() {
    let few = records(FEWEST_RECORDS - 1, &TRUTH, 1);
    let found = own(&few, &TRUTH, true);
    assert_eq!((found.combined, found.comparison), (TRUTH.to_vec(), None));
    let data = records(60, &TRUTH, 2);
    let mut padded = data.clone();
    (0..30).for_each(|_| padded.push_empty(&[6, 9, 11], -1.0));
    assert_eq!(own(&data, &TRUTH, true), own(&padded, &TRUTH, true));
}

#[test]
fn numbers_and_hinges_have_own_models_too() {
    let space = FeatureSpace::numeric(3);
    let joint = [0.3, 0.2, 0.1];
    for regression in [Loss::Huber { width: 0.3 }, Loss::Squared, Loss::Quantile { level: 0.5, width: 0.1 }] {
        let mut random = Random(9);
        let mut data = Dataset::new(3, 3, 0, 2.0);
        for _ in 0..120 {
            let a = [random.next(), random.next(), random.next()];
            data.push(&a, &[], 0.4 * a[0] + 0.2 * a[1] + 0.1 * a[2] + 0.1 * (random.next() - 0.5));
        }
        let found = fit(&OwnInputs { records: &data, space: &space, loss: regression, joint: &joint }, true);
        let c = found.comparison.unwrap();
        assert!(c.combined.loss.value < c.joint.loss.value && c.own.auc.is_none(), "{c:?}");
        assert!((found.combined[0] - 0.4).abs() < 0.05, "{:?}", found.combined);
    }
    let (mut random, mut counts) = (Random(9), Dataset::new(3, 3, 0, 2.0));
    for _ in 0..200 {
        let a = [random.next(), random.next(), random.next()];
        // Of eight at most, and expected to be e to the linear predictor.
        let count = ((1.5 * a[0] + 0.5 * a[1]).exp() + random.next() - 0.5).round().clamp(0.0, 8.0);
        counts.push(&a, &[], count / 8.0);
    }
    let loss = Loss::Poisson { cap: 8.0 };
    let found = fit(&OwnInputs { records: &counts, space: &space, loss, joint: &joint }, true);
    let c = found.comparison.unwrap();
    assert!(c.combined.loss.value < 0.8 * c.joint.loss.value && c.own.auc.is_none(), "{c:?}");
    assert!((found.combined[0] - 1.5).abs() < 0.3, "{:?}", found.combined);
    let data = records(120, &TRUTH, 12);
    let inputs = OwnInputs { records: &data, space: &self::space(), loss: Loss::Hinge, joint: &TRUTH };
    let c = fit(&inputs, true).comparison.unwrap();
    assert!(
        c.combined.loss.value.is_finite() && c.combined.calibration.is_none() && c.combined.auc.is_some()
    );
}
