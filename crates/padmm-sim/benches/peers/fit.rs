//! (b): a cold local solve.

use padmm_core::data::FeatureSpace;
use padmm_core::loss::Loss;
use padmm_core::objective::{Objective, Part};
use padmm_core::regularizer::{Penalty, Regularizer};
use padmm_core::solver::{Solution, Solver, Status};
use padmm_sim::Simulation;
use serde_json::Value;

use crate::python::{Peers, number};
use crate::report::{Report, Row};
use crate::{AGREEMENT, Outcome, median, timed};

/// Gradient norm that both must reach.
const TOLERANCE: f64 = 1e-8;
/// At most this part of scikit-learn's time.
const PARTS: f64 = 5.0;

/// The first agent's problem of the first round, where all releases are zero and with them the linear term: plain
/// logistic regression with `½·modulus·‖x‖²`. And the same with the regulariser alone, which is less well conditioned.
pub fn measure(simulation: &Simulation, python: &mut Peers, quick: bool, report: &mut Report) -> Outcome<()> {
    let terms = &simulation.terms().agents[0];
    let proximal = 2.0 * simulation.terms().penalty * terms.degree as f64;
    compare("first round", terms.modulus, Some(PARTS), simulation, python, quick, report)?;
    compare("regularizer alone", terms.modulus - proximal, None, simulation, python, quick, report)
}

fn compare(
    problem: &str,
    curvature: f64,
    parts: Option<f64>,
    simulation: &Simulation,
    python: &mut Peers,
    quick: bool,
    report: &mut Report,
) -> Outcome<()> {
    let shard = &simulation.shards()[0];
    let p = shard.n_features();
    // Λ‖x‖² with 2Λ = curvature.
    let penalty =
        Penalty::new(&Regularizer::L2 { strength: 0.5 * curvature }, &FeatureSpace::numeric(p), 1.0);
    let part = [Part::mean(shard)];
    let solve = || -> Solution {
        let objective = Objective::new(&part, Loss::Logistic, &penalty, &[], 0.0);
        Solver::new().solve(&objective, &vec![0.0; p], TOLERANCE)
    };
    let kinds = [(false, 2), (false, 1), (true, 2)];
    let (mut ours, mut theirs) = (vec![], [const { vec![] }; 3]);
    let mut last = Value::Null;
    for _ in 0..if quick { 3 } else { 15 } {
        for (kind, &(sparse, threads)) in kinds.iter().enumerate() {
            for _ in 0..3 {
                ours.push(timed(solve).0);
            }
            let answer = python.fit(sparse, threads, curvature, TOLERANCE)?;
            theirs[kind].push(number(&answer, "seconds")?);
            last = answer;
        }
    }
    let (ours, theirs) = (median(&ours), theirs.map(|t| median(&t)));
    let solution = solve();
    if solution.status != Status::Solved {
        return Err(format!("the cold solve reached only {:.1e}", solution.residual).into());
    }
    let best = theirs[0].min(theirs[1]);
    report.row(Row::ratio(format!("cold solve, {problem} / scikit-learn dense"), ours, best, parts));
    report.row(Row::ratio(format!("cold solve, {problem} / scikit-learn CSR"), ours, theirs[2], None));
    let difference = relative_difference(&solution.point, &last)?;
    report.row(Row::difference(
        format!("cold solve, {problem}: coefficients, relative difference"),
        difference,
        AGREEMENT,
    ));
    report.fact(format!("cold solve, {problem}: evaluations"), solution.n_evaluations as f64);
    report.fact(format!("cold solve, {problem}: factorizations"), solution.n_factorizations as f64);
    report.fact(format!("cold solve, {problem}: residual, ours"), solution.residual);
    report.fact(format!("cold solve, {problem}: residual, scikit-learn"), number(&last, "residual")?);
    report.fact(format!("cold solve, {problem}: iterations, scikit-learn"), number(&last, "iterations")?);
    let said = last["warnings"].as_array().map_or(0, Vec::len);
    report.fact(format!("cold solve, {problem}: warnings, scikit-learn"), said as f64);
    Ok(())
}

fn relative_difference(ours: &[f64], answer: &Value) -> Outcome<f64> {
    let theirs = answer["coefficients"].as_array().ok_or("the peers' answer has no coefficients")?;
    let theirs: Vec<f64> = theirs.iter().filter_map(Value::as_f64).collect();
    if theirs.len() != ours.len() {
        return Err("the peers' coefficients have another length".into());
    }
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let difference = square(&mut ours.iter().zip(&theirs).map(|(a, b)| a - b));
    Ok((difference / square(&mut ours.iter().copied())).sqrt())
}
