//! Rounds between five sites over links that are slow, narrow or lossy, with ledgers on disk: how long a round takes against the one-way
//! delay and the local work, and how many messages are sent a second time.
//!
//! `cargo bench -p padmm-lab --bench wan -- --delay 20 --loss 0.01 --graph complete`
//!
//! `--rate` is in bits a second, `--features` the length of a model, `--series` repeats the run with further seeds, and `--program` is a
//! `padmm-testbuild` other than this one, for a comparison.
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use padmm_core::plan::PlanDraft;
use padmm_lab::homes::{RUN, signed_homes};
use padmm_lab::links::{Conditions, Links};

const SITES: usize = 5;

/// The value of a flag, or what it is without it.
fn flag<T: FromStr>(name: &str, otherwise: T) -> T {
    let arguments: Vec<String> = std::env::args().collect();
    let place = arguments.iter().position(|a| a == name);
    let value = place.and_then(|k| arguments.get(k + 1)).map(|text| text.parse().ok());
    value.map_or(otherwise, |value| value.unwrap_or_else(|| panic!("{name} needs a value")))
}

fn main() {
    let program: PathBuf = flag("--program", env!("CARGO_BIN_EXE_padmm-testbuild").into());
    let graph: String = flag("--graph", "ring".to_owned());
    let (rounds, features): (u32, usize) = (flag("--rounds", 50), flag("--features", 8));
    let delay = Duration::from_millis(flag("--delay", 20));
    let (loss, rate): (f64, f64) = (flag("--loss", 0.0), flag("--rate", 0.0));
    let rate = (rate > 0.0).then_some(rate);
    let quiet = Conditions::default();
    let local = run(&program, &graph, rounds, features, quiet).seconds;
    println!(
        "{SITES} sites, {graph}, {rounds} rounds, {features} coefficients; {delay:?} one-way, loss {loss}, rate {rate:?}"
    );
    println!("without delay: {:.1} ms a round", 1e3 * local);
    for seed in 1..=flag("--series", 1) {
        let told = run(&program, &graph, rounds, features, Conditions { delay, loss, rate, seed });
        println!(
            "mean {:.1} ms a round, {:.2} times (delay + local); p90 {:.1} ms; {} repeats of {} messages ({:.1} %); {:.0} kB a round over all links",
            1e3 * told.seconds,
            told.seconds / (delay.as_secs_f64() + local),
            1e3 * told.late,
            told.repeats,
            told.messages,
            100.0 * told.repeats as f64 / told.messages.max(1) as f64,
            told.bytes as f64 / 1e3 / f64::from(rounds),
        );
    }
}

/// What a run was like.
struct Told {
    /// Mean seconds a round, of the slowest site.
    seconds: f64,
    /// Nine of ten rounds were faster, at all sites.
    late: f64,
    messages: usize,
    repeats: usize,
    bytes: u64,
}

fn run(program: &Path, graph: &str, rounds: u32, features: usize, conditions: Conditions) -> Told {
    let folder = tempfile::tempdir_in(".").expect("a folder here");
    let links = Links::new(conditions);
    let settings = PlanDraft { algorithm: padmm_core::algorithm::P_ADMM, rounds, ..PlanDraft::default() };
    let way = |from, to| Some(links.address(from, to));
    let homes = signed_homes(folder.path(), SITES, features, graph, settings, way);
    let mut children: Vec<_> = homes
        .iter()
        .map(|home| {
            let mut command = Command::new(program);
            command.args(["site", "run", "--run", RUN, "--test-noise-seed", "1", "--home"]).arg(home);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a process")
        })
        .collect();
    let readers: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stderr.take().expect("a log")))
        .map(|log| std::thread::spawn(move || times(log)))
        .collect();
    let times: Vec<Vec<Instant>> = readers.into_iter().map(|r| r.join().expect("it ends")).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success(), "every site finishes");
    }
    let mean = |t: &Vec<Instant>| (t[t.len() - 1] - t[0]).as_secs_f64() / (t.len() - 1) as f64;
    let seconds = times.iter().map(mean).fold(0.0, f64::max);
    let mut single: Vec<f64> =
        times.iter().flat_map(|t| t.windows(2).map(|w| (w[1] - w[0]).as_secs_f64())).collect();
    single.sort_by(f64::total_cmp);
    let (mut messages, mut repeats) = (0, 0);
    for home in &homes {
        let sent = std::fs::read_to_string(home.join("runs").join(RUN).join("egress.csv")).expect("a list");
        messages += sent.lines().skip(1).filter(|line| line.ends_with("false")).count();
        repeats += sent.lines().skip(1).filter(|line| line.ends_with("true")).count();
    }
    let bytes = links.pairs().into_iter().map(|pair| links.bytes(pair)).sum();
    Told { seconds, late: single[single.len() * 9 / 10], messages, repeats, bytes }
}

/// When each round's release left.
fn times(log: impl BufRead) -> Vec<Instant> {
    let is_round = |line: &String| line.contains(": round ") && line.contains("bytes to each");
    log.lines().map_while(Result::ok).filter(is_round).map(|_| Instant::now()).collect()
}
