//! Certificates against an independent solver, for every loss and regulariser, and for every method.

use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::loss::Loss;
use padmm_core::objective::{Objective, ObjectiveBuffers, Part};
use padmm_core::regularizer::{Regularizer, RegularizerTerm};
use padmm_core::solver::{Method, Solver, Status};
use serde::Deserialize;

/// What `testdata/solver/make.py` wrote.
#[derive(Deserialize)]
struct Reference {
    numeric: Vec<Vec<f64>>,
    hot: Vec<Vec<u32>>,
    sign: Vec<f64>,
    value: Vec<f64>,
    norm_bound: f64,
    linear: Vec<f64>,
    quadratic: f64,
    strength: f64,
    l1_ratio: f64,
    width_huberized_hinge: f64,
    width_huber: f64,
    problems: Vec<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    loss: String,
    regularizer: String,
    value: f64,
    x: Vec<f64>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../../../testdata/solver/problems.json")).unwrap()
}

impl Reference {
    fn loss(&self, name: &str) -> Loss {
        match name {
            "logistic" => Loss::Logistic,
            "hinge" => Loss::Hinge,
            "huberized-hinge" => Loss::HuberizedHinge { width: self.width_huberized_hinge },
            "huber" => Loss::Huber { width: self.width_huber },
            "squared" => Loss::Squared,
            other => panic!("no loss {other}"),
        }
    }

    fn regularizer(&self, name: &str) -> Regularizer {
        let strength = self.strength;
        match name {
            "none" => Regularizer::None,
            "l2" => Regularizer::L2 { strength },
            "l1" => Regularizer::L1 { strength },
            "elastic-net" => Regularizer::ElasticNet { strength, l1_ratio: self.l1_ratio },
            "group-lasso" => Regularizer::GroupLasso { strength },
            other => panic!("no regulariser {other}"),
        }
    }

    /// The records; `repeat` copies of each, which changes no minimiser.
    fn data(&self, loss: Loss, repeat: usize) -> Dataset {
        let labels = if loss.is_classification() { &self.sign } else { &self.value };
        let mut data = Dataset::new(11, 3, 3, self.norm_bound);
        for _ in 0..repeat {
            for ((numeric, hot), &label) in self.numeric.iter().zip(&self.hot).zip(labels) {
                data.push(numeric, hot, label);
            }
        }
        data
    }

    fn space(&self) -> FeatureSpace {
        let mut space = FeatureSpace::numeric(11);
        space.groups = vec![0..1, 1..2, 2..3, 3..6, 6..10];
        space.intercept = Some(10);
        space
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// The reference solver's own error: its values agree with ours to this much, and a value within `e` of the minimum
/// lies within √(2e/m) of the minimiser.
const REFERENCE_VALUE_ERROR: f64 = 1e-10;

fn check_certificates(method: Method) {
    let reference = reference();
    assert_eq!(reference.problems.len(), 25);
    for problem in &reference.problems {
        let name = format!("{} with {} by {method:?}", problem.loss, problem.regularizer);
        let loss = reference.loss(&problem.loss);
        let penalty =
            RegularizerTerm::new(&reference.regularizer(&problem.regularizer), &reference.space(), 1.0);
        if loss == Loss::Hinge && penalty.is_nonsmooth() && method == Method::MatrixFree {
            // A proximal gradient step on a hinge sharpened to 1e-6 would be a millionth long; only Newton gets there.
            continue;
        }
        let data = reference.data(loss, 1);
        let parts = [Part::mean(&data)];
        let objective = Objective::new(&parts, loss, &penalty, &reference.linear, reference.quadratic);
        let tolerance = if loss == Loss::Hinge { 1e-3 } else { 1e-9 } * 2.0 / data.n_records() as f64;
        let solution = Solver::with_method(method).solve(&objective, &[0.0; 11], tolerance);
        assert_eq!(
            solution.status,
            Status::Solved,
            "{name}: residual {:e} against {tolerance:e}",
            solution.residual
        );
        let modulus = objective.modulus();
        let radius = solution.residual / modulus + (2.0 * REFERENCE_VALUE_ERROR / modulus).sqrt();
        let found = distance(&solution.point, &problem.x);
        assert!(found <= radius, "{name}: {found:e} from the reference, certified {radius:e}");
        let value = objective.value(&solution.point, &mut ObjectiveBuffers::default());
        let slack = REFERENCE_VALUE_ERROR + solution.residual.powi(2) / modulus;
        assert!((value - problem.value).abs() <= slack, "{name}: value {value} against {}", problem.value);
    }
}

#[test]
fn certificates_hold_for_every_loss_and_regularizer_with_a_hessian() {
    check_certificates(Method::Dense);
}

#[test]
fn certificates_hold_for_every_loss_and_regularizer_without_a_matrix() {
    check_certificates(Method::MatrixFree);
}

#[test]
fn an_unreachable_tolerance_is_a_status() {
    let reference = reference();
    for name in ["logistic", "hinge", "huber"] {
        let loss = reference.loss(name);
        let data = reference.data(loss, 1);
        for regularizer in [Regularizer::None, Regularizer::L1 { strength: 0.02 }] {
            let penalty = RegularizerTerm::new(&regularizer, &reference.space(), 1.0);
            let parts = [Part::mean(&data)];
            let objective = Objective::new(&parts, loss, &penalty, &reference.linear, reference.quadratic);
            let solution = Solver::new().solve(&objective, &[0.0; 11], 1e-18);
            assert_eq!(solution.status, Status::ToleranceNotReached, "{name} with {regularizer}");
            assert!(solution.residual > 1e-18);
        }
    }
}

#[test]
fn the_same_records_many_times_over_have_the_same_minimizer() {
    // 80 × 300 = 24,000 records are cut into several tasks and many blocks.
    let reference = reference();
    let penalty = RegularizerTerm::new(&Regularizer::L2 { strength: 0.02 }, &reference.space(), 1.0);
    let points: Vec<_> = [1, 300]
        .map(|repeat| {
            let data = reference.data(Loss::Logistic, repeat);
            let parts = [Part::mean(&data)];
            let objective =
                Objective::new(&parts, Loss::Logistic, &penalty, &reference.linear, reference.quadratic);
            let solution = Solver::new().solve(&objective, &[0.0; 11], 1e-11);
            assert_eq!(solution.status, Status::Solved);
            solution.point
        })
        .into();
    assert!(distance(&points[0], &points[1]) < 1e-9);
}

#[test]
fn a_kept_factorization_saves_work_and_changes_no_answer() {
    let reference = reference();
    let data = reference.data(Loss::Logistic, 20);
    let penalty = RegularizerTerm::new(&Regularizer::L2 { strength: 0.02 }, &reference.space(), 1.0);
    let mut kept = Solver::with_method(Method::Dense);
    let mut start = vec![0.0; 11];
    for round in 0..5 {
        let linear: Vec<f64> = reference.linear.iter().map(|l| l * (1.0 + 0.1 * f64::from(round))).collect();
        let parts = [Part::mean(&data)];
        let objective = Objective::new(&parts, Loss::Logistic, &penalty, &linear, reference.quadratic);
        let warm = kept.solve(&objective, &start, 1e-11);
        let cold = Solver::with_method(Method::Dense).solve(&objective, &[0.0; 11], 1e-11);
        assert_eq!((warm.status, cold.status), (Status::Solved, Status::Solved));
        assert!(distance(&warm.point, &cold.point) <= (warm.residual + cold.residual) / objective.modulus());
        if round > 0 {
            assert!(warm.n_factorizations < cold.n_factorizations, "round {round}");
        }
        start = warm.point;
    }
}

#[test]
fn the_two_rules_of_the_line_search_do_not_undo_each_other() {
    // One record and a flat objective: a full Newton step from 0 lands far behind the corner, where the gradient is
    // smaller and the value larger, and the next one leads back.
    let mut data = Dataset::new(2, 2, 0, 1.0);
    data.push(&[0.6, 0.8], &[], 1.0);
    let parts = [Part::mean(&data)];
    let penalty = RegularizerTerm::new(&Regularizer::None, &FeatureSpace::numeric(2), 1.0);
    for method in [Method::Dense, Method::MatrixFree] {
        for quadratic in [0.5, 0.008, 1e-4] {
            for width in [0.5, 0.1, 1e-3] {
                let loss = Loss::HuberizedHinge { width };
                let objective = Objective::new(&parts, loss, &penalty, &[], quadratic);
                let solution = Solver::with_method(method).solve(&objective, &[0.0; 2], 1e-10);
                let name = format!("{method:?}, modulus {quadratic}, width {width}");
                assert_eq!(solution.status, Status::Solved, "{name}: {:e}", solution.residual);
                assert!(solution.n_evaluations < 200, "{name}: {} evaluations", solution.n_evaluations);
            }
        }
    }
}
