//! A whole run of five agents over fifty rounds: against the plain numpy/scipy program, a federated framework's round, and what
//! central differential privacy would give.

use std::path::Path;

use padmm_core::algorithm::{AlgorithmKind, DP_ADMM, LINEARIZED};
use serde_json::{Map, Value, json};

use super::case::{Case, Work};
use super::peers::{Environment, number};
use super::runs::Runs;
use super::{Bench, Report, Row, Target, best};

/// Times that ours is to be faster than the plain program.
const PLAIN: f64 = 50.0;
/// Largest relative difference of the last releases that passes for the same run.
const AGREEMENT: f64 = 1e-6;
/// Rounds of the short runs that decide how many threads suit a peer.
const TRIAL_ROUNDS: u32 = 4;
/// What a second thread is to give.
const TWO_THREADS: f64 = 1.8;
/// Rounds that Flower is timed over.
const FLOWER_ROUNDS: u32 = 12;

/// A way to write the program.
#[derive(Clone, Copy, PartialEq)]
struct Program {
    solver: &'static str,
    sparse: bool,
    metrics: bool,
}

impl Program {
    fn name(self, threads: usize) -> String {
        let form = if self.sparse { "CSR" } else { "dense" };
        let metrics = if self.metrics { " with metrics" } else { "" };
        format!("numpy/scipy {} {form}{metrics}, {threads} threads", self.solver)
    }

    fn ask(
        self,
        bench: &Bench<'_>,
        folder: &Path,
        threads: usize,
        rounds: u32,
        repeat: usize,
    ) -> anyhow::Result<Value> {
        let request = json!({
            "what": "run", "solver": self.solver, "sparse": self.sparse, "metrics": self.metrics,
            "threads": threads, "rounds": rounds, "repeat": repeat,
        });
        bench.ask(Environment::Science, folder, &request)
    }
}

/// Dense arrays are the plain form; compressed rows are what a person who thinks of the one-hot columns could use.
const PROGRAMS: [Program; 9] = [
    Program { solver: "newton-cholesky", sparse: false, metrics: false },
    Program { solver: "newton-cholesky", sparse: false, metrics: true },
    Program { solver: "L-BFGS-B", sparse: false, metrics: false },
    Program { solver: "Newton-CG", sparse: false, metrics: false },
    Program { solver: "trust-ncg", sparse: false, metrics: false },
    Program { solver: "newton-cholesky", sparse: true, metrics: false },
    Program { solver: "L-BFGS-B", sparse: true, metrics: false },
    Program { solver: "Newton-CG", sparse: true, metrics: false },
    Program { solver: "trust-ncg", sparse: true, metrics: false },
];

/// A program's time with the number of threads that suits it.
struct Timed {
    program: Program,
    threads: usize,
    seconds: f64,
    peak_bytes: f64,
}

impl Timed {
    fn of(program: Program, threads: usize, answer: &Value) -> anyhow::Result<Self> {
        let (seconds, peak_bytes) = (number(answer, "seconds")?, number(answer, "peak_bytes")?);
        Ok(Self { program, threads, seconds, peak_bytes })
    }

    fn beside(&self, row: Row) -> Row {
        row.against(self.program.name(self.threads), self.seconds, Some(self.peak_bytes))
    }
}

fn fastest<'a>(peers: impl Iterator<Item = &'a Timed>) -> &'a Timed {
    peers.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("every kind has a program")
}

/// The run, all programs, the framework, the price of no server, and all algorithms.
pub fn run(bench: &Bench<'_>) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let folder = bench.problem("run")?;
    let case = Case { repeat: bench.repeat(5, 15), ..Case::default() };
    let mut bare = Runs::of(case.clone());
    let mut whole = Runs::of(Case { work: Work::Metrics, ..case.clone() });
    (bench.watch)("our run");
    case.export_to(&folder)?;
    for ours in [&mut bare, &mut whole] {
        ours.again()?;
        ours.again_alone()?;
    }
    let (mut peers, mut described, mut worst) = (vec![], Map::new(), 0.0f64);
    for program in PROGRAMS {
        (bench.watch)(&program.name(0).replace(", 0 threads", ""));
        let mut threads = (1, f64::INFINITY);
        for t in [1, 2] {
            let seconds = number(&program.ask(bench, &folder, t, TRIAL_ROUNDS, 2)?, "seconds")?;
            threads = if seconds < threads.1 { (t, seconds) } else { threads };
        }
        let answer = program.ask(bench, &folder, threads.0, case.rounds, bench.repeat(3, 5))?;
        worst = worst.max(number(&answer, "difference")?);
        peers.push(Timed::of(program, threads.0, &answer)?);
        described.insert(program.name(threads.0), answer);
        // After each of them, so that a machine that changes its pace changes it for all.
        bare.again()?;
        whole.again()?;
    }
    bare.again_alone()?;
    whole.again_alone()?;
    report.note("our_median_seconds", bare.median_seconds()?);
    let of = |fits: fn(Program) -> bool| fastest(peers.iter().filter(|p| fits(p.program)));
    let dense = of(|p| !p.sparse && !p.metrics).beside(bare.row("run of 5 agents, 50 rounds")?);
    report.note("ratio_to_best_peer", dense.ratio_to_best_peer);
    report.row(dense.at_least(PLAIN));
    report.row(of(|p| p.sparse).beside(bare.row("the same, rows compressed")?));
    let is_scipy = |p: Program| p.solver == "L-BFGS-B" && !p.sparse;
    report.row(of(is_scipy).beside(bare.row("the same, scipy's L-BFGS-B")?));
    report.row(of(|p| p.metrics).beside(whole.row("the same with metrics in every round")?));
    report.row(
        Row::number("last releases of all programs, relative difference from ours", worst)
            .target(Target::at_most(worst, AGREEMENT)),
    );
    report.note("peers", described);
    threads(bench, &mut report)?;
    framework(bench, &folder, bare.seconds_per_round()?, &mut report)?;
    central(bench, &folder, &mut report)?;
    algorithms(bench, &peers, &mut report)?;
    Ok(report)
}

/// What a second thread gives, and what it gives a loop that touches no memory: the machine's own limit.
fn threads(bench: &Bench<'_>, report: &mut Report) -> anyhow::Result<()> {
    let mut gains = Map::new();
    for n_agents in [2, 5, 20] {
        (bench.watch)(&format!("{n_agents} agents, one thread and two"));
        let (mut one, mut two) = (vec![], vec![]);
        for _ in 0..bench.repeat(3, 7) {
            let run =
                |threads| Case { n_agents, threads, repeat: 15, ..Case::default() }.in_child()?.time("run");
            one.push(run(1)?);
            two.push(run(2)?);
        }
        let gain = best(&one) / best(&two);
        report.row(
            Row::number(format!("run of {n_agents} agents: two threads against one"), gain)
                .target(Target::at_least(gain, TWO_THREADS)),
        );
        gains.insert(n_agents.to_string(), gain.into());
    }
    let gradient = |threads| {
        let shape = "one-hot".to_owned();
        Case { work: Work::Gradient, n_records: 10_000, shape, threads, limit: true, ..Case::default() }
            .in_child()
    };
    let (alone, both) = (gradient(1)?, gradient(2)?);
    let machine = both.fact("flops_per_second")? / alone.fact("flops_per_second")?;
    report.row(Row::number("the machine: two threads against one, arithmetic alone", machine));
    report.note("two_threads_against_one", gains);
    report.note("machine_two_threads_against_one", machine);
    Ok(())
}

fn framework(bench: &Bench<'_>, folder: &Path, ours: f64, report: &mut Report) -> anyhow::Result<()> {
    (bench.watch)("Flower");
    let answer = bench.ask(Environment::Flower, folder, &json!({ "rounds": FLOWER_ROUNDS }))?;
    let seconds = number(&answer, "seconds")?;
    let row = Row::ours("a round, simulated", ours, None).against(
        "Flower 1.22 with the numpy solver, loopback",
        seconds,
        None,
    );
    report.note("ratio_to_framework_round", row.ratio_to_best_peer);
    report.row(row);
    let sites = demo(bench)?;
    let row = Row::ours("a round between five site processes, durable", sites, None).against(
        "Flower 1.22 with the numpy solver, loopback",
        seconds,
        None,
    );
    report.note("ratio_to_framework_round_between_processes", row.ratio_to_best_peer);
    report.row(row);
    Ok(())
}

/// Seconds of a round between real site processes: encrypted, signed, charged and synced. The difference of a long run and a short
/// one, because both start processes.
fn demo(bench: &Bench<'_>) -> anyhow::Result<f64> {
    let program = std::env::current_exe()?.with_file_name(format!("padmm{}", std::env::consts::EXE_SUFFIX));
    anyhow::ensure!(
        program.is_file(),
        "{} is missing: build the commands with `cargo build --release --workspace --bins`",
        program.display()
    );
    let seconds = |rounds: u32| -> anyhow::Result<f64> {
        (bench.watch)(&format!("five site processes, {rounds} rounds"));
        let mut command = std::process::Command::new(&program);
        command.args(["demo", "sites", "--dataset", "adult", "--agents", "5", "--json", "--quiet"]);
        let output = command.args(["--rounds", &rounds.to_string()]).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "the demo failed: {}", said.trim());
        number(&serde_json::from_slice(&output.stdout)?, "seconds")
    };
    Ok((seconds(600)? - seconds(100)?) / 500.0)
}

/// The loss at equal ε of a model of pooled records with noise, and of ours.
fn central(bench: &Bench<'_>, folder: &Path, report: &mut Report) -> anyhow::Result<()> {
    (bench.watch)("diffprivlib");
    let epsilons = [0.5, 1.0, 2.0, 5.0];
    let request = json!({ "epsilons": epsilons, "repeat": bench.repeat(5, 20), "norm_bound": 1.0 });
    let answer = bench.ask(Environment::Central, folder, &request)?;
    let mut table = vec![];
    for (k, epsilon) in epsilons.into_iter().enumerate() {
        (bench.watch)(&format!("our models at ε = {epsilon}"));
        let ours = super::case::loss_at(epsilon, bench.repeat(5, 20) as u32)?;
        let theirs = &answer["central"][k];
        let central = number(theirs, "loss")?;
        let ratio = ours.loss / central;
        report.row(Row::number(format!("loss at ε = {epsilon}: ours {:.4}, central {central:.4}, pooled optimum {:.4}; ours / central", ours.loss, ours.optimum), ratio));
        table.push(json!({ "epsilon": epsilon, "ours": ours.loss, "deviation": ours.deviation, "central": theirs, "optimum": ours.optimum }));
    }
    report.note("price_of_no_server", table);
    Ok(())
}

/// Every algorithm on the same data, without metrics, beside the same algorithm written plainly.
fn algorithms(bench: &Bench<'_>, peers: &[Timed], report: &mut Report) -> anyhow::Result<()> {
    let (mut times, mut worst) = (Map::new(), 0.0f64);
    for kind in padmm_baselines::ALL {
        let name = kind.name();
        (bench.watch)(&format!("algorithm {name}"));
        let folder = bench.problem("algorithm")?;
        // One has a server in the middle; the others run on any graph.
        let graph = if kind == DP_ADMM { "star" } else { "complete" };
        let (graph, repeat) = (graph.to_owned(), bench.repeat(5, 15));
        let case = Case { algorithm: kind, graph, repeat, ..Case::default() };
        case.export_to(&folder)?;
        let mut ours = Runs::of(case.clone());
        let mut plain = vec![];
        for (program, threads) in programs_for(kind, peers) {
            ours.again()?;
            (bench.watch)(&format!("algorithm {name}: {}", program.name(threads)));
            let answer = program.ask(bench, &folder, threads, case.rounds, bench.repeat(2, 5))?;
            worst = worst.max(number(&answer, "difference")?);
            plain.push(Timed::of(program, threads, &answer)?);
        }
        ours.again()?;
        ours.again_alone()?;
        let row = fastest(plain.iter()).beside(ours.row(format!("{name}: 5 agents, 50 rounds"))?);
        times.insert(
            name.to_owned(),
            json!({ "seconds": row.seconds, "ratio_to_best_peer": row.ratio_to_best_peer }),
        );
        report.row(row);
    }
    report.row(
        Row::number("last models of all algorithms written plainly, relative difference from ours", worst)
            .target(Target::at_most(worst, AGREEMENT)),
    );
    report.note("algorithms", times);
    Ok(())
}

/// How an algorithm is written plainly, and with how many threads. Where rounds have solves: the ways that were fastest of P-ADMM's,
/// dense and compressed, and plain Newton. Where a round is a gradient there is nothing to choose but the form.
fn programs_for(kind: AlgorithmKind, peers: &[Timed]) -> Vec<(Program, usize)> {
    let bare = || peers.iter().filter(|p| !p.program.metrics);
    if [DP_ADMM, LINEARIZED].contains(&kind) {
        let newton = bare().filter(|p| p.program.solver == "newton-cholesky");
        return newton.flat_map(|p| [1, 2].map(|threads| (p.program, threads))).collect();
    }
    let newton = bare().filter(|p| p.program.solver == "newton-cholesky" && !p.program.sparse);
    let best = [false, true].map(|sparse| fastest(bare().filter(|p| p.program.sparse == sparse)));
    let mut chosen: Vec<(Program, usize)> = vec![];
    for peer in newton.chain(best) {
        if !chosen.iter().any(|(program, _)| *program == peer.program) {
            chosen.push((peer.program, peer.threads));
        }
    }
    chosen
}
