//! (d): how the time of a round grows with records and with agents.

use std::sync::Mutex;
use std::time::Instant;

use padmm_core::graph::GraphSpec;
use padmm_core::plan::PlanDraft;
use padmm_core::schema::Encoded;
use padmm_sim::Simulation;

use crate::report::{Report, Row};
use crate::{Outcome, median, setting, timed};

/// Linear, and something for noise and for caches that overflow.
const LINEAR: f64 = 1.15;
/// Records of an agent when the number of agents grows.
const RECORDS_PER_AGENT: usize = 45;

/// Seconds of one round.
struct PerRound {
    size: f64,
    with_metrics: Vec<f64>,
    alone: Vec<f64>,
}

/// Times all sizes, interleaved, and fits power laws.
pub fn measure(adult: &Encoded, quick: bool, report: &mut Report) -> Outcome<()> {
    let repetitions = if quick { 1 } else { 5 };
    let first = Simulation::prepare(setting(5, GraphSpec::Complete, PlanDraft::default())?, adult.clone())?;
    // The same penalty for all, so that the problems differ in their records alone.
    let draft = PlanDraft { penalty: Some(first.terms().penalty), ..PlanDraft::default() };
    let mut sizes = vec![];
    for times in [1, 2, 4] {
        let setting = setting(5, GraphSpec::Complete, draft.clone())?;
        sizes.push((times as f64, Simulation::prepare(setting, repeated(adult, times))?));
    }
    let points = time(&sizes, repetitions)?;
    rows("time of a round over records ×1, ×2, ×4", &points, Some(LINEAR), report);

    let rounds = if quick { 5 } else { 20 };
    let ring = prepared(adult, &[10, 100, 1000], GraphSpec::Ring, rounds, report)?;
    rows(
        "time of a round over 10, 100, 1000 agents in a ring",
        &time(&ring, repetitions)?,
        Some(LINEAR),
        report,
    );
    for (size, simulation) in &ring {
        let (seconds, result) = timed(|| simulation.run(&|_| {}));
        result?;
        report.fact(
            format!(
                "ring of {size}: whole run with {} gossip rounds, seconds",
                simulation.terms().gossip_rounds
            ),
            seconds,
        );
    }
    let complete = prepared(adult, &[100, 300], GraphSpec::Complete, rounds, report)?;
    rows(
        "time of a round over 100, 300 agents, complete graph",
        &time(&complete, repetitions)?,
        None,
        report,
    );
    Ok(())
}

/// Networks of different sizes with as many records an agent.
fn prepared(
    adult: &Encoded,
    sizes: &[usize],
    graph: GraphSpec,
    rounds: u32,
    report: &mut Report,
) -> Outcome<Vec<(f64, Simulation)>> {
    // One penalty for all sizes, as above.
    let draft = PlanDraft { rounds, penalty: Some(1e-3), ..PlanDraft::default() };
    let mut out = vec![];
    for &n in sizes {
        let setting = setting(n, graph.clone(), draft.clone())?;
        let (seconds, simulation) =
            timed(|| Simulation::prepare(setting, leading(adult, n * RECORDS_PER_AGENT)));
        report.fact(format!("{graph} of {n}: prepare, seconds"), seconds);
        out.push((n as f64, simulation?));
    }
    Ok(out)
}

fn time(simulations: &[(f64, Simulation)], repetitions: usize) -> Outcome<Vec<PerRound>> {
    let empty = |s: &(f64, Simulation)| PerRound { size: s.0, with_metrics: vec![], alone: vec![] };
    let mut points: Vec<PerRound> = simulations.iter().map(empty).collect();
    for _ in 0..repetitions {
        for ((_, simulation), point) in simulations.iter().zip(&mut points) {
            // The first round has no factorisation to start from, and gossip comes after the last: both are left out.
            let ends = Mutex::new(vec![]);
            simulation.run(&|_| ends.lock().expect("no round panics").push(Instant::now()))?;
            let ends = ends.into_inner()?;
            let (start, end) = (ends[0], ends[ends.len() - 1]);
            point.with_metrics.push((end - start).as_secs_f64() / (ends.len() - 1) as f64);
            let (seconds, releases) = timed(|| simulation.releases(0));
            point.alone.push(seconds / releases?.len() as f64);
        }
    }
    Ok(points)
}

fn rows(what: &str, points: &[PerRound], limit: Option<f64>, report: &mut Report) {
    let law = |times: fn(&PerRound) -> &Vec<f64>| -> Vec<(f64, f64)> {
        points.iter().map(|p| (p.size, median(times(p)))).collect()
    };
    report.row(Row::exponent(format!("{what}, with metrics"), &law(|p| &p.with_metrics), limit));
    report.row(Row::exponent(format!("{what}, solves alone"), &law(|p| &p.alone), limit));
}

/// Every record `times` times.
fn repeated(encoded: &Encoded, times: usize) -> Encoded {
    let mut out = encoded.clone();
    for _ in 1..times {
        encoded.records.rows().for_each(|row| out.records.push_row(row));
    }
    out
}

/// The first `n` records, from the start again if there are fewer.
fn leading(encoded: &Encoded, n: usize) -> Encoded {
    let mut out = encoded.clone();
    out.records = encoded.records.empty_like();
    let n_records = encoded.records.n_records();
    (0..n).for_each(|r| out.records.push_row(encoded.records.row(r % n_records)));
    out
}
