//! The simulator against Python peers, as ratios in one run: `cargo bench -p padmm-sim --bench peers [-- --quick]`.
//!
//! (a) a whole simulated run on Adult against a numpy/scipy program doing the same solves to the same tolerance;
//! (b) a cold local solve against scikit-learn's `newton-cholesky`; (c) memory of the encoded records; (d) growth with
//! records and with agents. Ours and the peer's timings alternate and medians are compared, so that a busy machine slows
//! both. The peers are in `benches/peers.py`; `$PADMM_PYTHON` names a Python that has what they need.

mod exchange;
mod fit;
mod python;
mod replay;
mod report;
mod run;
mod scaling;

use std::path::{Path, PathBuf};
use std::time::Instant;

use padmm_core::graph::GraphSpec;
use padmm_core::plan::PlanDraft;
use padmm_core::schema::Encoded;
use padmm_data::{Source, load};
use padmm_sim::{Holdout, NoiseKind, Simulation, SimulationPlan, Split};

use python::Peers;
use report::{Report, Row};

/// What can go wrong in a benchmark ends it with a message.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Largest difference between the coefficients of the two programs, relative, that passes as the same result.
pub const AGREEMENT: f64 = 1e-6;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|a| a == "--bench") {
        // `cargo test --all-targets` starts benchmarks too; this one is not a test.
        println!("nothing to do: use `cargo bench -p padmm-sim --bench peers`");
        return Ok(());
    }
    let quick = arguments.iter().any(|a| a == "--quick");
    let folder = folder();
    std::fs::create_dir_all(&folder)?;
    let mut report = Report::default();

    let start = Instant::now();
    let adult = load(&Source::Shipped("adult".to_owned()))?.encoded;
    report.fact("decode and encode Adult, seconds", start.elapsed().as_secs_f64());
    memory(&adult, &mut report);

    let start = Instant::now();
    let simulation =
        Simulation::prepare(setting(5, GraphSpec::Complete, PlanDraft::default())?, adult.clone())?;
    report.fact("deal, derive terms and find the pooled optimum, seconds", start.elapsed().as_secs_f64());

    exchange::export(&simulation, &folder)?;
    let mut peers = Peers::start(&folder)?;
    run::measure(&simulation, &mut peers, quick, &mut report)?;
    fit::measure(&simulation, &mut peers, quick, &mut report)?;
    drop(peers);
    scaling::measure(&adult, quick, &mut report)?;

    print!("{}", report.table());
    let result = folder.join("result.json");
    std::fs::write(&result, report.json(quick)?)?;
    println!("\n{}", result.display());
    Ok(())
}

/// `target/bench-peers`, wherever the target folder is.
fn folder() -> PathBuf {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    temporary.parent().unwrap_or(temporary).join("bench-peers")
}

/// The simulator's defaults, with these agents, graph and plan.
pub fn setting(n_agents: usize, graph: GraphSpec, plan: PlanDraft) -> Outcome<SimulationPlan> {
    Ok(SimulationPlan {
        dataset: "adult".to_owned(),
        n_agents: Some(n_agents),
        graph,
        split: Split::Even,
        holdout: Holdout::None,
        runs: 1,
        seed: 1,
        noise: NoiseKind::Seeded,
        reference: false,
        rank_rounds: true,
        plan: plan.check()?,
    })
}

/// (c): the records, and the row numbers and marks that are kept beside them.
fn memory(adult: &Encoded, report: &mut Report) {
    let beside = 8 * adult.row_numbers.len() + adult.official_test.as_ref().map_or(0, Vec::len);
    let megabytes = (adult.records.memory_bytes() + beside) as f64 / 1e6;
    report.row(Row::amount("memory of the encoded Adult data, MB", megabytes, 8.0));
}

/// Seconds that `work` takes, and what it returns.
pub fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed().as_secs_f64(), result)
}

/// Processor seconds of all threads so far, in steps of a hundredth; nothing where the system does not say.
pub fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The fields after the name, which is in brackets; the 12th and 13th are user and system time.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |k: usize| fields.get(k)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

/// The median.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    assert!(n > 0, "a median needs values");
    0.5 * (sorted[(n - 1) / 2] + sorted[n / 2])
}
