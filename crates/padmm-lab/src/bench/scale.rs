//! Growth: agents at fixed data, records, columns; and the distance from what the machine can do.

use serde_json::{Value, json};

use super::case::{Case, TOLERANCE, WIDE_CURVATURE, Work};
use super::peers::{Environment, number};
use super::runs::Runs;
use super::{Bench, Report, Row, Target};

const ROUNDS: u32 = 50;
/// Rounds of the peer, whose time is taken a round at a time.
const PEER_ROUNDS: u32 = 2;
/// Time per record and round may differ by this much from 10⁵ records on.
const CONSTANT: f64 = 1.2;
/// Of more records the peers' dense arrays would not fit into memory.
const LARGEST_DENSE: usize = 1_000_000;
/// Bytes that ten million records may take.
const MEMORY: f64 = 1.5e9;

/// How time grows with agents, records and columns, and how far gradients are from the machine's
/// limits.
pub fn scale(bench: &Bench<'_>) -> anyhow::Result<Report> {
    let mut report = Report::default();
    gradients(bench, &mut report)?;
    agents(bench, &mut report)?;
    records(bench, &mut report)?;
    columns(bench, &mut report)?;
    Ok(report)
}

fn gradients(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let one_hot = [("one-hot", 9_000, 3.0), ("one-hot", 1_000_000, 3.0)];
    let dense = [
        ("dense:10", 2_000_000, 2.0),
        ("dense:100", 200_000, 2.0),
        ("dense:1000", 20_000, 2.0),
        ("dense:10000", 2_000, 2.0),
    ];
    let mut worst = [0.0f64; 2];
    for (k, (shape, n_records, bound)) in one_hot.into_iter().chain(dense).enumerate() {
        for threads in [1, 2] {
            (bench.watch)(&format!("gradient of {n_records} records, {shape}, {threads} threads"));
            let repeat = (4_000_000 / n_records).clamp(10, 200);
            let case = Case {
                work: Work::Gradient,
                shape: shape.to_owned(),
                n_records,
                threads,
                repeat,
                limit: true,
                ..Case::default()
            };
            let answer = case.in_child()?;
            let seconds = answer.time("gradient")?;
            let ratio = seconds / answer.time("limit")?;
            let kind = usize::from(k >= one_hot.len());
            worst[kind] = worst[kind].max(ratio);
            let what = format!("gradient, {n_records} records {shape}, {threads} threads");
            report.row(Row::ours(what, seconds, answer.peak_bytes).within(ratio, bound));
        }
    }
    report.note("one_hot_gradient_to_limit", worst[0]);
    report.note("dense_gradient_to_limit", worst[1]);
    Ok(())
}

/// Seconds of a round of the fastest plain program, with its name and memory.
fn plain(bench: &Bench<'_>, case: &Case) -> anyhow::Result<(String, f64, f64)> {
    let folder = bench.problem("scale")?;
    Case { rounds: PEER_ROUNDS, ..case.clone() }.export_to(&folder)?;
    let mut best: Option<(String, f64, f64)> = None;
    for (solver, sparse) in [("newton-cholesky", false), ("trust-ncg", true)] {
        if case.n_records > LARGEST_DENSE && !sparse {
            continue;
        }
        let request = json!({
            "what": "run", "solver": solver, "sparse": sparse, "metrics": false,
            "threads": 2, "rounds": PEER_ROUNDS, "repeat": 2,
        });
        let answer = bench.ask(Environment::Science, &folder, &request)?;
        let seconds = number(&answer, "seconds")? / f64::from(PEER_ROUNDS);
        if best.as_ref().is_none_or(|b| seconds < b.1) {
            let form = if sparse { "CSR" } else { "dense" };
            best = Some((format!("numpy/scipy {solver} {form}"), seconds, number(&answer, "peak_bytes")?));
        }
    }
    Ok(best.expect("there are programs"))
}

fn agents(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let mut table = vec![];
    for n_agents in [5, 20, 100, 300, 1000] {
        let what = format!("a round, 45,000 records, ring of {n_agents}");
        (bench.watch)(&what);
        let case = Case {
            shape: "one-hot".to_owned(),
            n_records: 45_000,
            n_agents,
            graph: "ring".to_owned(),
            rounds: ROUNDS,
            repeat: bench.repeat(2, 5),
            ..Case::default()
        };
        let mut ours = Runs::of(case.clone());
        let mut both = || {
            ours.again()?;
            ours.again_alone()
        };
        both()?;
        let (name, seconds, peak) = plain(bench, &case)?;
        both()?;
        let row = ours.row_of_a_round(what)?.against(name, seconds, Some(peak));
        table.push(json!({ "agents": n_agents, "seconds_per_round": row.seconds, "one_thread_seconds_per_round": row.one_thread_seconds, "ratio_to_best_peer": row.ratio_to_best_peer }));
        report.row(row);
    }
    report.note("agents", table);
    Ok(())
}

fn records(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let network = |n_records: usize| {
        let repeat = (3_000_000 / n_records).clamp(1, 20);
        Runs::of(Case { shape: "one-hot".to_owned(), n_records, rounds: ROUNDS, repeat, ..Case::default() })
    };
    let mut sizes = [10_000, 100_000, 1_000_000, 10_000_000].map(network);
    // In turn, so that a machine that changes its pace changes it for all sizes; the largest takes as long as all others together.
    for turn in 0..bench.repeat(3, 5) {
        for ours in &mut sizes {
            (bench.watch)(&format!("rounds of {} records, turn {}", ours.case().n_records, turn + 1));
            ours.again()?;
            if turn == 0 {
                ours.again_alone()?;
            }
        }
    }
    let (mut table, mut large) = (vec![], vec![]);
    for ours in &sizes {
        let n_records = ours.case().n_records;
        let what = format!("a round, 5 agents, {n_records} records");
        (bench.watch)(&what);
        let (name, seconds, peak) = plain(bench, ours.case())?;
        let mut row = ours.row_of_a_round(what)?.against(name, seconds, Some(peak));
        let each = ours.seconds_per_round()? / n_records as f64;
        if n_records >= 100_000 {
            large.push(each);
        }
        table.push(json!({ "records": n_records, "seconds_per_round": row.seconds, "nanoseconds_per_record_and_round": 1e9 * each, "peak_bytes": row.peak_bytes, "ratio_to_best_peer": row.ratio_to_best_peer }));
        if let (10_000_000, Some(peak)) = (n_records, row.peak_bytes) {
            row = row.target(Target { text: "≤ 1.5 GB".to_owned(), met: peak <= MEMORY });
        }
        report.row(row);
    }
    let spread =
        large.iter().copied().fold(0.0, f64::max) / large.iter().copied().fold(f64::INFINITY, f64::min);
    report.row(
        Row::number("time per record and round, 10⁵ to 10⁷ records, largest / smallest", spread)
            .target(Target::at_most(spread, CONSTANT)),
    );
    report.note("records", table);
    report.note("time_per_record_spread", spread);
    Ok(())
}

fn columns(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let mut table = vec![];
    for kind in ["dense", "sparse"] {
        for d in [10usize, 100, 1000, 10_000] {
            let n_records = match kind {
                "dense" => (2_000_000 / d).clamp(1_000, 20_000),
                _ => 20_000,
            };
            let (row, value) = width(bench, kind, d, n_records)?;
            table.push(value);
            report.row(row);
        }
    }
    report.note("columns", table);
    Ok(())
}

/// A cold solve of a wide problem against scikit-learn's solvers.
fn width(bench: &Bench<'_>, kind: &str, d: usize, n_records: usize) -> anyhow::Result<(Row, Value)> {
    let what = format!("cold solve, {n_records} records, {d} columns {kind}");
    (bench.watch)(&what);
    let folder = bench.problem("columns")?;
    let case = Case {
        work: Work::Wide,
        shape: format!("{kind}:{d}"),
        n_records,
        repeat: bench.repeat(3, 9),
        limit: true,
        ..Case::default()
    };
    let answer = case.in_child()?;
    let alone = Case { threads: 1, limit: false, ..case.clone() }.in_child()?.time("solve")?;
    case.export_to(&folder)?;
    let seconds = answer.time("solve")?;
    let mut best: Option<(String, f64, f64)> = None;
    for (solver, sparse) in [
        ("newton-cholesky", kind == "sparse" && d > 100),
        ("lbfgs", kind == "sparse"),
        ("liblinear", kind == "sparse"),
    ] {
        // Forming a Hessian of 10⁴ columns takes scikit-learn minutes.
        if solver == "newton-cholesky" && d > 1000 {
            continue;
        }
        let request = json!({
            "what": "cold", "solver": solver, "sparse": sparse, "threads": 2,
            "curvature": WIDE_CURVATURE, "tolerance": TOLERANCE, "repeat": 1,
        });
        let answer = bench.ask(Environment::Science, &folder, &request)?;
        let seconds = number(&answer, "seconds")?;
        if answer["solved"] == json!(true) && best.as_ref().is_none_or(|b| seconds < b.1) {
            best = Some((format!("scikit-learn {solver}"), seconds, number(&answer, "peak_bytes")?));
        }
    }
    let ratio = seconds / answer.time("limit")?;
    let mut row = Row::ours(what, seconds, answer.peak_bytes).alone(alone).to_limit(ratio);
    if let Some((name, seconds, peak)) = best {
        row = row.against(name, seconds, Some(peak));
    }
    let value = json!({ "kind": kind, "columns": d, "records": n_records, "seconds": seconds, "ratio_to_best_peer": row.ratio_to_best_peer });
    Ok((row, value))
}
