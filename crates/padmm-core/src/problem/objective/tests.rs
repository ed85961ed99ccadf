#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use super::*;
use crate::data::FeatureSpace;
use crate::regularizer::Regularizer;

#[path = "../../../tests/common/double.rs"]
mod double;
use double::Double;

/// What a handful of records' gradient is, to some 30 digits.
fn gradient(data: &Dataset, x: &[f64], linear: &[f64], quadratic: f64) -> Vec<Double> {
    let inverse_n = Double::of(data.n_records() as f64).inverse();
    let mut gradient: Vec<Double> = x
        .iter()
        .zip(linear)
        .map(|(&x, &l)| Double::of(quadratic).times(Double::of(x)).plus(Double::of(l)))
        .collect();
    for row in data.rows() {
        let scale = Double::of(row.scale);
        let mut a = vec![Double::of(0.0); x.len()];
        row.numeric.iter().enumerate().for_each(|(j, &v)| a[j] = Double::of(v).times(scale));
        row.hot.iter().for_each(|&j| a[j as usize] = scale);
        let margin = a.iter().zip(x).fold(Double::of(0.0), |sum, (a, &x)| sum.plus(a.times(Double::of(x))));
        let error = margin.times(Double::of(row.label)).exp().plus(Double::of(1.0)).inverse();
        let slope = error.times(Double::of(-row.label)).times(inverse_n);
        gradient.iter_mut().zip(&a).for_each(|(g, a)| *g = g.plus(a.times(slope)));
    }
    gradient
}

/// The certificate of few records has little room beside the rounding of their own operations.
#[test]
fn the_bound_on_rounding_holds_for_a_handful_of_records() {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let mut closest = 0.0f64;
    for case in 0..3000 {
        let (n, n_numeric) = (1 + case % 12, 1 + case % 5);
        let values = if case % 3 == 0 { 0 } else { 4 };
        let p = n_numeric + values;
        let mut data = Dataset::new(p, n_numeric, values.min(1), 1.0);
        for _ in 0..n {
            let numbers: Vec<f64> = (0..n_numeric).map(|_| 2.0 * uniform()).collect();
            let hot = n_numeric as u32 + (2.0 * (1.0 + uniform())) as u32;
            data.push(&numbers, &[hot][..values.min(1)], uniform().signum());
        }
        let size = [0.1, 1.0, 8.0][case % 7 % 3];
        let x: Vec<f64> = (0..p).map(|_| size * uniform()).collect();
        let linear: Vec<f64> = (0..p).map(|_| 0.3 * uniform()).collect();
        let regularizer = RegularizerTerm::new(&Regularizer::None, &FeatureSpace::numeric(p), 1.0);
        let parts = [Part::mean(&data)];
        let objective = Objective::new(&parts, Loss::Logistic, &regularizer, &linear, 0.05);
        let mut found = vec![0.0; p];
        objective.gradient(&x, &mut found, &mut ObjectiveBuffers::default());
        let expected = gradient(&data, &x, &linear, 0.05);
        let off: Vec<f64> = expected.iter().zip(&found).map(|(e, &f)| e.plus(Double::of(-f)).0).collect();
        let bound = objective.gradient_rounding(&x);
        assert!(norm(&off) <= bound, "case {case}: off by {:e}, bound {bound:e}", norm(&off));
        closest = closest.max(norm(&off) / bound);
    }
    // The reference sees the rounding that is bounded: it is not the doubles again.
    assert!(closest > 0.02, "{closest}");
}

/// A group's subgradient `w·v/‖v‖` is as long as its weight, however small the rest of the gradient is; what it rounds must be in
/// the certificate. Without it the bound of a heavy group lasso was too small by far.
#[test]
fn the_certificate_covers_what_group_norms_and_absolute_values_round() {
    let mut state = 5u64;
    let mut uniform = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let (mut closest, mut beyond_the_rest) = (0.0f64, 0);
    for case in 0..2000 {
        let p = 4 + case % 9;
        let space = FeatureSpace { groups: vec![0..3, 3..p], ..FeatureSpace::numeric(p) };
        let strength = [1.0, 1e3, 1e6][case % 3];
        let regularizer =
            if case % 4 == 0 { Regularizer::L1 { strength } } else { Regularizer::GroupLasso { strength } };
        let regularizer = RegularizerTerm::new(&regularizer, &space, 1.0);
        let mut data = Dataset::new(p, p, 0, 1.0);
        data.push(&vec![0.0; p], &[], 1.0);
        let x: Vec<f64> = (0..p).map(|_| 3.0 * uniform()).collect();
        // The linear term nearly cancels the subgradient, as it does at a minimiser.
        let exact = exact_subgradient(&regularizer, &x);
        let linear: Vec<f64> =
            exact.iter().map(|s| -(s.0 * (1.0 + 4.0 * f64::EPSILON * uniform()))).collect();
        let parts = [Part::mean(&data)];
        let objective = Objective::new(&parts, Loss::Logistic, &regularizer, &linear, 0.0);
        let mut gradient = vec![0.0; p];
        objective.gradient(&x, &mut gradient, &mut ObjectiveBuffers::default());
        let size = regularizer.smallest_subgradient(&x, &gradient);
        let truth: Vec<f64> = exact.iter().zip(&linear).map(|(s, &l)| s.plus(Double::of(l)).0).collect();
        let certificate = objective.certificate(size, &x);
        assert!(norm(&truth) <= certificate, "case {case}: {:e} > {certificate:e}", norm(&truth));
        let off = norm(&truth) - size;
        closest = closest.max(off / (certificate - size));
        let rest = certificate - size - regularizer.rounding(p) - 8.0 * UNIT * norm(&linear);
        beyond_the_rest += usize::from(off > rest);
    }
    assert!(closest > 0.005, "{closest}");
    assert!(beyond_the_rest > 100, "{beyond_the_rest}: group norms are what this is about");
}

/// The nonsmooth part's subgradient where no entry is zero, to some 30 digits.
fn exact_subgradient(regularizer: &RegularizerTerm, x: &[f64]) -> Vec<Double> {
    let mut subgradient: Vec<Double> = x.iter().map(|v| Double::of(regularizer.l1 * v.signum())).collect();
    for (range, weight) in &regularizer.groups {
        let square =
            range.clone().fold(Double::of(0.0), |sum, j| sum.plus(Double::of(x[j]).times(Double::of(x[j]))));
        let root = Double::of(square.0.sqrt());
        // One step of Newton: (r + s/r)/2.
        let root = root.plus(square.times(root.inverse())).times(Double::of(0.5));
        let factor = Double::of(*weight).times(root.inverse());
        range.clone().for_each(|j| subgradient[j] = factor.times(Double::of(x[j])));
    }
    subgradient
}

/// Some records, and the same with records of zeros among them.
fn with_and_without_zeros(n: usize, n_numeric: usize) -> (Dataset, Dataset) {
    let p = n_numeric + 9;
    let mut with = Dataset::new(p, n_numeric, 3, 1.2);
    let mut state = 3u64;
    for r in 0..n {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let draw = (state >> 33) as u32;
        let first = n_numeric as u32;
        let hot = [first + draw % 4, first + 4 + draw / 4 % 4, first + 8];
        let label = if draw.is_multiple_of(3) { 1.0 } else { -1.0 };
        if draw.is_multiple_of(5) {
            with.push_empty(&hot, label);
        } else {
            let numbers: Vec<f64> = (0..n_numeric).map(|k| ((r * (k + 3)) as f64).sin()).collect();
            with.push(&numbers, &hot, label);
        }
    }
    let without = with.counted();
    assert!(without.n_records() > n / 2 && without.n_records() < n);
    (with, without)
}

/// Few and many numbers, with crossed columns and without, all loops: a record of zeros adds to no sum but the constant of the loss.
#[test]
fn records_of_zeros_count_for_nothing() {
    for (n, n_numeric) in [(60, 3), (700, 6), (2600, 11), (2600, 40)] {
        let (with, without) = with_and_without_zeros(n, n_numeric);
        assert_eq!(with.crossed().is_some(), n > 2048);
        let p = with.n_features();
        let space = FeatureSpace { intercept: Some(p - 1), ..FeatureSpace::numeric(p) };
        let regularizer = RegularizerTerm::new(&Regularizer::None, &space, 1.0);
        let weight = 1.0 / n as f64;
        let (x, v): (Vec<f64>, Vec<f64>) =
            (0..p).map(|j| ((j as f64 * 0.7).cos(), (j as f64 * 1.3).sin())).unzip();
        let near = |a: &[f64], b: &[f64], what: &str| {
            let off = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-13, "{what}: off by {off:e} with {n} records, {n_numeric} numbers");
        };
        let losses = [
            Loss::Logistic,
            Loss::HuberizedHinge { width: 0.5 },
            Loss::Huber { width: 0.5 },
            Loss::Squared,
            Loss::Hinge,
            Loss::Quantile { level: 0.8, width: 0.5 },
            Loss::Poisson { cap: 3.0 },
        ];
        for loss in losses {
            let of = |data: &Dataset| {
                let parts = [Part { data, weight }];
                let objective = Objective::new(&parts, loss, &regularizer, &[], 0.0);
                let mut buffers = ObjectiveBuffers::default();
                let (mut gradient, mut hessian) = (vec![0.0; p], vec![0.0; p * p]);
                let (mut diagonal, mut product) = (vec![0.0; p], vec![0.0; p]);
                objective.gradient(&x, &mut gradient, &mut buffers);
                let value = objective.value(&x, &mut buffers);
                let excess = objective.hinge_excess(&x, 0.5, &mut buffers);
                if loss.curvature_bound().is_some() {
                    objective.hessian(&x, &mut hessian, &mut buffers);
                    objective.prepare_hessian_vector(&x, &mut diagonal, &mut buffers);
                    objective.hessian_vector(&v, &mut product, &mut buffers);
                }
                (gradient, [hessian, diagonal, product].concat(), value, excess)
            };
            let (found, expected) = (of(&with), of(&without));
            near(&found.0, &expected.0, &format!("{loss}, gradient"));
            near(&found.1, &expected.1, &format!("{loss}, Hessian"));
            near(&[found.3], &[expected.3], &format!("{loss}, excess"));
            // At a model of zeros every record has the margin of a record of zeros.
            let constant = |z: f64| match loss {
                Loss::Logistic => 2f64.ln(),
                Loss::Hinge | Loss::HuberizedHinge { .. } => 1.0,
                Loss::Huber { width } => width * (z.abs() - width / 2.0),
                Loss::Quantile { .. } | Loss::Poisson { .. } => loss.value(z, 0.0),
                _ => 0.5 * z * z,
            };
            let zeros = with.rows().filter(|row| row.is_empty()).map(|row| constant(row.label)).sum::<f64>();
            near(&[found.2 - weight * zeros], &[expected.2], &format!("{loss}, value"));
        }
    }
}

/// Not nearly nothing: nothing, intercept included, so that no model brings such a record to light.
#[test]
fn a_set_of_zeros_has_no_gradient_at_all() {
    let mut data = Dataset::new(5, 2, 2, 1.0);
    (0..100).for_each(|r| data.push_empty(&[2 + r % 2, 4], if r % 3 == 0 { 1.0 } else { -1.0 }));
    let mut copy = data.empty_like();
    data.rows().for_each(|row| copy.push_row(row));
    copy.append(&data);
    assert_eq!((copy.n_records(), copy.counted().n_records()), (200, 0));
    let regularizer = RegularizerTerm::new(&Regularizer::None, &FeatureSpace::numeric(5), 1.0);
    let parts = [Part::mean(&copy)];
    for size in [0.0, 1.0, 1e6, 1e150] {
        let mut gradient = [1.0; 5];
        let objective = Objective::new(&parts, Loss::Logistic, &regularizer, &[], 0.0);
        objective.gradient(
            &[size, -size, size, size, -size],
            &mut gradient,
            &mut ObjectiveBuffers::default(),
        );
        assert_eq!(gradient, [0.0; 5]);
    }
}
