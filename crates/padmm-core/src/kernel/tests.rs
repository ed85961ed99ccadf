//! Every loop over records against its plain specification, [`plain`].
//!
//! Both sides round, and add up in different orders. Each of the `n` additions of terms of size at most `b` rounds a partial sum
//! of at most `n·b`, so a side is off by at most `n²·b·2⁻⁵³`; equal terms, as at the origin, round the same way each time and come
//! within a factor of ten of it. A margin is off by at most `(values + 4)·S‖x‖·2⁻⁵²`, which a slope or a curvature passes on. No term
//! here is larger than `(1 + S‖x‖)²`, a squared loss. [`tolerance`] is that with room for the constants: a record left out or
//! counted twice is millions of times more.

use proptest::prelude::*;

use super::*;
use crate::vector::{dot_in_order, largest_difference, norm};

/// Bound on the norm of every made record.
const NORM_BOUND: f64 = 1.5;

/// How far a sum over `n` records may be from the same sum in another order, at points of norm at most `size`.
fn tolerance(n: usize, size: f64) -> f64 {
    (1000 + n * n) as f64 * 4.0 * (1.0 + NORM_BOUND * size).powi(2) * f64::EPSILON
}

/// Records with independent hot columns of these numbers of values, every 17th of them empty.
pub(crate) fn records(n_numeric: usize, values: &[u32], n: usize, seed: u64) -> Dataset {
    let mut state = seed;
    let mut draw = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32
    };
    let p = n_numeric + values.iter().sum::<u32>() as usize;
    let mut data = Dataset::new(p, n_numeric, values.len(), NORM_BOUND);
    for r in 0..n {
        let numbers: Vec<f64> =
            (0..n_numeric).map(|_| f64::from(draw()) / f64::from(1u32 << 30) - 1.0).collect();
        let mut first = n_numeric as u32;
        let mut hot = vec![];
        for &v in values {
            hot.push(first + draw() % v);
            first += v;
        }
        let label = if draw() % 3 == 0 { 1.0 } else { -1.0 };
        if r % 17 == 16 { data.push_empty(&hot, label) } else { data.push(&numbers, &hot, label) }
    }
    data
}

fn losses() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::Logistic),
        Just(Loss::Hinge),
        Just(Loss::HuberizedHinge { width: 0.4 }),
        Just(Loss::Huber { width: 0.7 }),
        Just(Loss::Squared),
        Just(Loss::Quantile { level: 0.7, width: 0.4 }),
        Just(Loss::Poisson { cap: 2.5 }),
    ]
}

/// What each special path is for: no numbers, one chunk of them, two, three, many; none to thirteen hot columns, so that both loops of
/// known and of counted length occur; records few, enough to be crossed, and enough
/// but with too many pairs of values.
fn shapes() -> impl Strategy<Value = (usize, Vec<u32>, usize)> {
    let numeric =
        prop_oneof![Just(0usize), 1usize..5, 5usize..9, 9usize..13, Just(MANY_NUMBERS), 33usize..41];
    let hot = prop_oneof![
        prop::collection::vec(1u32..7, 0..5),
        prop::collection::vec(1u32..4, 5..14),
        Just(vec![40, 3]),
        Just(vec![20, 15]),
    ];
    let n = prop_oneof![1usize..80, 500usize..700, Just(FEWEST_RECORDS + 77)];
    (numeric, hot, n).prop_filter("a record has a column", |(numbers, hot, _)| numbers + hot.len() > 0)
}

/// Two points of some size, the second a direction.
fn points(p: usize, size: f64) -> (Vec<f64>, Vec<f64>) {
    (0..p).map(|j| (size * (j as f64 * 0.7).cos(), (j as f64 * 1.3).sin())).unzip()
}

/// Whether a record is at a corner of its loss within rounding, where a slope or a curvature may differ by all of it.
fn is_at_a_corner(loss: Loss, z: f64, t: f64, cap: f64) -> bool {
    if (loss.slope(z, t).abs() - cap).abs() < 1e-12 {
        return true;
    }
    let corners: &[f64] = match loss {
        Loss::Hinge => &[0.0],
        Loss::HuberizedHinge { width } => &[width, -width],
        Loss::Huber { width } | Loss::Quantile { width, .. } => return ((z - t).abs() - width).abs() < 1e-12,
        Loss::Poisson { cap } => return (t - cap.ln()).abs() < 1e-12,
        _ => &[],
    };
    corners.iter().any(|c| (1.0 - z * t - c).abs() < 1e-12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_loop_computes_its_plain_specification(
        loss in losses(), (n_numeric, values, n) in shapes(), seed in any::<u64>(), size in prop_oneof![Just(0.0), 0.1f64..3.0],
        (from, to) in (0usize..40, 0usize..40), cap in prop_oneof![3 => Just(None), 2 => (0.05f64..2.0).prop_map(Some)],
    ) {
        let data = records(n_numeric, &values, n, seed);
        let data = match cap {
            Some(cap) => data.with_slope_cap(cap, NORM_BOUND),
            None => data,
        };
        let p = data.n_features();
        // Ranges that begin and end within blocks and parts.
        let range = from.min(n / 3)..n - to.min(n / 3);
        let (x, v) = points(p, size);
        let most = tolerance(n, norm(&x).max(norm(&v)));
        let near = |found: &[f64], expected: &[f64], what: &str| -> Result<(), TestCaseError> {
            let off = largest_difference(found, expected);
            prop_assert!(off <= most, "{what}: off by {off:e}, at most {most:e}");
            Ok(())
        };
        let t: Vec<f64> = range.clone().map(|r| plain::margin(&data, r, &x)).collect();
        let caps: Vec<f64> = range.clone().map(|r| plain::cap(&data, r)).collect();
        let mut seen = t.iter().zip(&data.labels()[range.clone()]).zip(&caps);
        prop_assume!(!seen.any(|((&t, &z), &cap)| is_at_a_corner(loss, z, t, cap)));

        let mut weights = Weights::default();
        weights.set(&data, &x);
        let at = weights.at(&x);
        let mut margins = vec![f64::NAN; range.len()];
        margins_into(&data, range.clone(), at, &mut margins);
        near(&margins, &t, "margins")?;

        near(&[super::loss(loss, &data, range.clone(), at)], &[plain::loss(loss, &data, range.clone(), &x)], "loss")?;
        if matches!(loss, Loss::Logistic) && cap.is_none() {
            let labels = &data.labels()[range.clone()];
            let products = labels.chunks(BLOCK).zip(margins.chunks(BLOCK)).map(|(z, t)| sum_of_logistic_losses(z, t));
            near(&[products.sum()], &[plain::loss(loss, &data, range.clone(), &x)], "logistic losses by products")?;
        }

        // In one task, and in two whose sums are added; into memory that was used before.
        let expected = plain::gradient(loss, &data, range.clone(), &x);
        let (mut sums, mut others) = (GradientSums::default(), GradientSums::default());
        let middle = range.start + range.len() / 3;
        for cut in [range.end, middle] {
            let mut found = vec![0.0; p];
            gradient(loss, &data, range.start..cut, &weights, &mut sums);
            gradient(loss, &data, cut..range.end, &weights, &mut others);
            sums.add(&others);
            sums.fold(&data, 1.0, &mut found);
            near(&found, &expected, "gradient")?;
        }

        let expected = plain::hessian(loss, &data, range.clone(), &x);
        let mut found = vec![f64::NAN; p * p];
        gram(loss, &data, range.clone(), at, &mut GramSums::default(), &mut found);
        for i in 0..p {
            near(&found[i * p + i..(i + 1) * p], &expected[i * p + i..(i + 1) * p], "Hessian")?;
        }

        let (mut d, mut diagonal, mut product) = (vec![f64::NAN; range.len()], vec![f64::NAN; p], vec![f64::NAN; p]);
        curvatures(loss, &data, range.clone(), at, &mut d, &mut diagonal);
        let expected_d: Vec<f64> = range.clone().map(|r| plain::curvature(loss, &data, r, &x)).collect();
        near(&d, &expected_d, "curvatures")?;
        let expected_diagonal: Vec<f64> = (0..p).map(|j| expected[j * p + j]).collect();
        near(&diagonal, &expected_diagonal, "diagonal")?;
        let mut head = Weights::default();
        head.set_head(&data, &v);
        hessian_vector(&data, range.clone(), &d, head.at(&v), &mut sums, &mut product);
        near(&product, &plain::hessian_vector(loss, &data, range.clone(), &x, &v), "Hessian–vector product")?;

        let by_feature = by_feature(p, &[&x, &v]);
        let cells = by_cell(&data, &by_feature);
        let places: Vec<u8> = (0..range.len().min(200)).map(|k| k as u8).rev().collect();
        let some = range.start..range.start + places.len();
        let mut of_models = vec![[f64::NAN; MODELS]; places.len()];
        margins_of_models(&data, some.clone(), &by_feature, cells.as_deref(), &places, &mut of_models);
        for (r, &place) in some.zip(&places) {
            let expected = [plain::margin(&data, r, &x), plain::margin(&data, r, &v)];
            near(&of_models[place as usize][..2], &expected, "margins of several models")?;
        }
    }
}

/// Records beyond [`prefetch`]'s bound, which the other cases do not reach.
#[test]
fn a_gradient_of_many_records_is_its_plain_specification() {
    let data = records(6, &[2, 5, 7, 6], 150_000, 11);
    assert!(data.pass_bytes() > 8 << 20 && data.crossed().is_some());
    let (x, _) = points(data.n_features(), 1.0);
    let (mut weights, mut sums, mut found) =
        (Weights::default(), GradientSums::default(), vec![0.0; x.len()]);
    weights.set(&data, &x);
    gradient(Loss::Logistic, &data, 13..149_995, &weights, &mut sums);
    sums.fold(&data, 1.0, &mut found);
    let expected = plain::gradient(Loss::Logistic, &data, 13..149_995, &x);
    assert!(largest_difference(&found, &expected) < tolerance(150_000, norm(&x)));
}

/// Where the order of summation is the same, so are the bits: a margin of one number and no hot column is one product, and of small
/// whole numbers every sum is exact in any order.
#[test]
fn sums_without_rounding_are_equal_to_the_bit() {
    for (n_numeric, values) in [(1, &[][..]), (0, &[3, 4]), (6, &[2, 5, 7, 6]), (11, &[2, 3]), (40, &[2, 3])]
    {
        for n in [3, 70, FEWEST_RECORDS + 5] {
            let p = n_numeric + values.iter().sum::<u32>() as usize;
            // A bound so large that no record is scaled.
            let mut data = Dataset::new(p, n_numeric, values.len(), 1e6);
            let made = records(n_numeric, values, n, 5);
            for (r, row) in made.rows().enumerate() {
                let numbers: Vec<f64> = (0..n_numeric).map(|k| ((r * (k + 3)) % 7) as f64 - 3.0).collect();
                data.push(&numbers, row.hot, row.label);
            }
            let x: Vec<f64> = (0..p).map(|j| (j % 5) as f64 - 2.0).collect();
            let (mut weights, mut sums, mut found) =
                (Weights::default(), GradientSums::default(), vec![0.0; p]);
            weights.set(&data, &x);
            let mut margins = vec![f64::NAN; n];
            margins_into(&data, 0..n, weights.at(&x), &mut margins);
            let expected: Vec<f64> = (0..n).map(|r| dot_in_order(&plain::row(&data, r), &x)).collect();
            assert_eq!(margins, expected);
            gradient(Loss::Squared, &data, 0..n, &weights, &mut sums);
            sums.fold(&data, 1.0, &mut found);
            assert_eq!(found, plain::gradient(Loss::Squared, &data, 0..n, &x));
            let mut found = vec![0.0; p * p];
            gram(Loss::Squared, &data, 0..n, weights.at(&x), &mut GramSums::default(), &mut found);
            let expected = plain::hessian(Loss::Squared, &data, 0..n, &x);
            for i in 0..p {
                assert_eq!(found[i * p + i..(i + 1) * p], expected[i * p + i..(i + 1) * p]);
            }
        }
    }
}
