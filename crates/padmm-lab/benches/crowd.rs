//! Many sites on this machine, each a process of its own with its ledger on disk, on a random regular graph: whether they all finish, and
//! what that takes.
//!
//! `cargo bench -p padmm-lab --bench crowd -- --sites 100 --degree 4 --rounds 10`
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use padmm_core::plan::PlanDraft;
use padmm_lab::homes::{RUN, signed_homes};

/// The value of a flag, or what it is without it.
fn flag<T: FromStr>(name: &str, otherwise: T) -> T {
    let arguments: Vec<String> = std::env::args().collect();
    let place = arguments.iter().position(|a| a == name);
    let value = place.and_then(|k| arguments.get(k + 1)).map(|text| text.parse().ok());
    value.map_or(otherwise, |value| value.unwrap_or_else(|| panic!("{name} needs a value")))
}

/// When a site had sent its first and its last release, if it came to that.
type Times = (Option<Instant>, Option<Instant>);

fn times(log: impl BufRead, rounds: u32) -> Times {
    let (mut first, mut last) = (None, None);
    for line in log.lines().map_while(Result::ok) {
        if line.contains(": round 1 of") {
            first = Some(Instant::now());
        }
        if line.contains(&format!(": round {rounds} of")) {
            last = Some(Instant::now());
        }
    }
    (first, last)
}

fn main() {
    let (n_sites, degree): (usize, usize) = (flag("--sites", 100), flag("--degree", 4));
    let (rounds, features): (u32, usize) = (flag("--rounds", 10), flag("--features", 8));
    let folder = tempfile::tempdir_in(".").expect("a folder here");
    let settings = PlanDraft { algorithm: padmm_core::algorithm::P_ADMM, rounds, ..PlanDraft::default() };
    let graph = format!("regular:{degree}");
    let homes = signed_homes(folder.path(), n_sites, features, &graph, settings, |_, _| None);
    println!("{n_sites} sites, {graph}, {rounds} rounds, {features} coefficients; a process each");
    let begun = Instant::now();
    let mut children: Vec<_> = homes
        .iter()
        .map(|home| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"));
            command.args(["site", "run", "--run", RUN, "--test-noise-seed", "1", "--home"]).arg(home);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a process")
        })
        .collect();
    let readers: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stderr.take().expect("a log")))
        .map(|log| std::thread::spawn(move || times(log, rounds)))
        .collect();
    let times: Vec<_> = readers.into_iter().map(|reader| reader.join().expect("it ends")).collect();
    let n_finished = children.iter_mut().map(|child| child.wait().expect("it ends")).filter(|s| s.success());
    let n_finished = n_finished.count();
    let since = |at: Instant| at - begun;
    let latest = |at: fn(&Times) -> Option<Instant>| -> Duration {
        times.iter().filter_map(at).map(since).max().unwrap_or_default()
    };
    let (first, last) = (latest(|t| t.0), latest(|t| t.1));
    println!("{n_finished} finished, after {:.1} s", begun.elapsed().as_secs_f64());
    println!(
        "all had begun after {:.1} s; from then on {:.1} ms a round",
        first.as_secs_f64(),
        1e3 * (last - first).as_secs_f64() / f64::from(rounds.max(2) - 1)
    );
    assert_eq!(n_finished, n_sites, "every site finishes");
}
