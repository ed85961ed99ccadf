//! (a): a whole run of five agents over fifty rounds.

use padmm_core::data::FeatureSpace;
use padmm_core::regularizer::{Penalty, Regularizer};
use padmm_sim::{SimError, Simulation};

use crate::python::{Peers, RunRequest, number};
use crate::replay::replay;
use crate::report::{Report, Row};
use crate::{AGREEMENT, Outcome, median, processor_seconds, timed};

/// At most this part of the fastest peer's time.
const PARTS: f64 = 20.0;
/// Our run is short, so it is timed this often for each time of a peer.
const OURS_PER_PEER: usize = 3;
/// Rounds of the short runs that decide how many threads suit a peer.
const TRIAL_ROUNDS: usize = 4;

/// A way to write the peer, and its times.
struct Peer {
    request: RunRequest,
    seconds: Vec<f64>,
    cpu_seconds: Vec<f64>,
    stalled: f64,
}

impl Peer {
    fn name(&self) -> String {
        let RunRequest { solver, sparse, threads, metrics, .. } = self.request;
        let form = if sparse { "CSR" } else { "dense" };
        let metrics = if metrics { ", with metrics" } else { "" };
        format!("{solver} {form}{metrics}, BLAS threads {threads}")
    }

    /// Takes whichever of one and two threads is faster for this solver on this machine as it is now.
    fn choose_threads(&mut self, python: &mut Peers) -> Outcome<()> {
        let mut best = f64::INFINITY;
        for threads in [1, 2, 1, 2] {
            let trial = RunRequest { threads, rounds: TRIAL_ROUNDS, ..self.request };
            let seconds = number(&python.run(trial)?, "seconds")?;
            if seconds < best {
                (best, self.request.threads) = (seconds, threads);
            }
        }
        Ok(())
    }
}

/// Every peer that is tried. Dense arrays are the straightforward form; compressed rows are what a person who thinks of the
/// one-hot columns could use.
fn peers(rounds: usize) -> Vec<Peer> {
    let peer = |solver, sparse, metrics| Peer {
        request: RunRequest { solver, sparse, threads: 1, rounds, metrics },
        seconds: vec![],
        cpu_seconds: vec![],
        stalled: 0.0,
    };
    vec![
        peer("newton-cholesky", false, false),
        peer("newton-cholesky", false, true),
        peer("L-BFGS-B", false, false),
        peer("Newton-CG", false, false),
        peer("trust-ncg", false, false),
        peer("newton-cholesky", true, false),
        peer("L-BFGS-B", true, false),
        peer("Newton-CG", true, false),
        peer("trust-ncg", true, false),
    ]
}

/// Our times, of the wall and of the processors.
#[derive(Default)]
struct Ours {
    seconds: Vec<f64>,
    cpu_seconds: Option<f64>,
}

impl Ours {
    fn time<T>(&mut self, work: impl Fn() -> Result<T, SimError>) -> Outcome<()> {
        let before = processor_seconds();
        for _ in 0..OURS_PER_PEER {
            let (seconds, result) = timed(&work);
            result?;
            self.seconds.push(seconds);
        }
        if let (Some(before), Some(after)) = (before, processor_seconds()) {
            self.cpu_seconds = Some(self.cpu_seconds.unwrap_or(0.0) + after - before);
        }
        Ok(())
    }

    fn tell(&self, what: &str, report: &mut Report) {
        report.fact(format!("{what}, seconds"), median(&self.seconds));
        if let Some(total) = self.cpu_seconds {
            report.fact(format!("{what}, processor seconds"), total / self.seconds.len() as f64);
        }
    }
}

/// Times both, interleaved, and compares with the fastest peers.
pub fn measure(simulation: &Simulation, python: &mut Peers, quick: bool, report: &mut Report) -> Outcome<()> {
    let (mut whole, mut bare) = (Ours::default(), Ours::default());
    let mut peers = peers(simulation.releases(0)?.len());
    for peer in &mut peers {
        peer.choose_threads(python)?;
    }
    let mut worst: f64 = 0.0;
    for _ in 0..if quick { 1 } else { 5 } {
        for peer in &mut peers {
            whole.time(|| simulation.run(&|_| {}))?;
            bare.time(|| simulation.releases(0))?;
            let answer = python.run(peer.request)?;
            peer.seconds.push(number(&answer, "seconds")?);
            peer.cpu_seconds.push(number(&answer, "cpu_seconds")?);
            peer.stalled = number(&answer, "stalled")?;
            worst = worst.max(number(&answer, "difference_last")?);
        }
    }
    whole.tell("a run with its metrics", report);
    bare.tell("a run without metrics", report);
    for peer in &peers {
        let name = peer.name();
        report.fact(format!("peer {name}: seconds"), median(&peer.seconds));
        report.fact(format!("peer {name}: processor seconds"), median(&peer.cpu_seconds));
        report.fact(format!("peer {name}: solves finished by Newton"), peer.stalled);
    }
    let fastest = |sparse: bool, metrics: bool| {
        let fitting = peers.iter().filter(|p| p.request.sparse == sparse && p.request.metrics == metrics);
        fitting
            .min_by(|a, b| median(&a.seconds).total_cmp(&median(&b.seconds)))
            .expect("every kind has a peer")
    };
    let (dense, csr, metrics) = (fastest(false, false), fastest(true, false), fastest(false, true));
    let mut compare = |what: &str, ours: &Ours, peer: &Peer, parts: Option<f64>| {
        let (ours, theirs) = (median(&ours.seconds), median(&peer.seconds));
        report.row(Row::ratio(format!("{what} / {}", peer.name()), ours, theirs, parts));
    };
    // Every row against a dense peer has the target, also the one whose peer computes no metrics.
    compare("a run without metrics", &bare, dense, Some(PARTS));
    compare("a run with its metrics", &whole, metrics, Some(PARTS));
    compare("a run with its metrics", &whole, dense, Some(PARTS));
    compare("a run with its metrics", &whole, csr, None);
    compare("a run without metrics", &bare, csr, None);
    report.row(Row::difference("last releases, relative difference, worst peer", worst, AGREEMENT));
    count(simulation, report)
}

/// How much work the solves are.
fn count(simulation: &Simulation, report: &mut Report) -> Outcome<()> {
    let releases = simulation.releases(0)?;
    let shards = simulation.shards();
    let (p, n) = (shards[0].n_features(), shards.len());
    let penalty =
        Penalty::new(&Regularizer::L2 { strength: 1e-3 }, &FeatureSpace::numeric(p), 1.0 / n as f64);
    let cost = replay(simulation, &releases, &penalty);
    report.fact("solves of a run", cost.n_solves as f64);
    report.fact("evaluations of a solve, mean", cost.n_evaluations as f64 / cost.n_solves as f64);
    report.fact("factorizations of a run", cost.n_factorizations as f64);
    report.fact("solves of a run one after another, seconds", cost.seconds);
    Ok(())
}
