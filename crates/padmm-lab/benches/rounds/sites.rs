//! The whole thing: five site processes of the test build.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use padmm_core::plan::PlanDraft;
use padmm_lab::homes::{RUN, signed_homes};

use crate::{FEATURES, SITES};

/// Rounds a second, and the memory of a site in MiB while it waits for its neighbours.
pub(crate) fn run(rounds: u32, in_memory: bool) -> (f64, f64) {
    let folder = tempfile::tempdir_in(".").expect("a folder here");
    let settings = PlanDraft { rounds, ..PlanDraft::default() };
    let homes = signed_homes(folder.path(), SITES, FEATURES, "ring", settings, |_, _| None);
    let start = |home: &PathBuf| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"));
        command.args(["site", "run", "--run", RUN, "--test-noise-seed", "1", "--home"]).arg(home);
        if in_memory {
            command.arg("--test-ledger-in-memory");
        }
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a process")
    };
    // All but one wait for the last: that is what an idle site is like.
    let mut children: Vec<Child> = homes[..SITES - 1].iter().map(start).collect();
    let logs: Vec<_> = children.iter_mut().map(|c| c.stderr.take().expect("a log")).collect();
    let mut readers: Vec<_> = logs.into_iter().map(BufReader::new).collect();
    let mut line = String::new();
    readers[0].read_line(&mut line).expect("it says whom it waits for");
    let memory = resident(children[0].id());
    children.push(start(&homes[SITES - 1]));
    readers.push(BufReader::new(children[SITES - 1].stderr.take().expect("a log")));
    let seconds = readers
        .into_iter()
        .map(|reader| std::thread::spawn(move || time(reader, rounds)))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|t| t.join().expect("it ends"))
        .fold(0.0, f64::max);
    for mut child in children {
        assert!(child.wait().expect("it ends").success(), "every site finishes");
    }
    (f64::from(rounds - 1) / seconds, memory)
}

/// Seconds from a site's first round to its last.
fn time(reader: impl BufRead, rounds: u32) -> f64 {
    let (mut start, mut end) = (Instant::now(), Instant::now());
    for line in reader.lines().map_while(Result::ok) {
        if line.contains(": round 1 of") {
            start = Instant::now();
        } else if line.contains(&format!(": round {rounds} of")) {
            end = Instant::now();
        }
    }
    (end - start).as_secs_f64()
}

/// Resident memory in MiB.
fn resident(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib =
        text.lines().find_map(|l| l.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
