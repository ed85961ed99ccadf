//! The command `padmm-site` in a made-up world: noise from a seed, a process that can be killed at any fault point, a clock that is wrong.
//!
//! A site that runs this program has no privacy. The shipped command has none of it: it does not depend on this crate, and
//! only what is written here hands a site noise that can be repeated.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use padmm_node::fault;
use padmm_node::site::NoiseProvider;
use padmm_sim::InsecureSeededNoise;
use padmm_site::test_hooks::TestHooks;

fn main() -> ExitCode {
    let hooks = TestHooks::for_tests(noise, arm, padmm_node::clock::shift);
    padmm_site::main_with(
        &hooks.comparing(|outcome, releases, seed| padmm_cli::compare(outcome, Some(releases), seed)),
    )
}

/// The noise of the simulator's first run with this seed, site by site.
fn noise(seed: u64) -> NoiseProvider {
    NoiseProvider::for_tests(move |site, drawn| {
        Box::new(InsecureSeededNoise::new(seed, 0, site.0).after(drawn))
    })
}

/// `POINT:N`: the process ends, as by a power cut, when it reaches the point for the Nth time.
fn arm(text: &str) {
    let (name, count) = text.split_once(':').unwrap_or((text, "1"));
    let count: u64 = count.parse().expect("--test-kill POINT:N has a number");
    let point = fault::Point::ALL.iter().copied().find(|p| p.name() == name);
    let point = point.unwrap_or_else(|| panic!("--test-kill: there is no fault point {name:?}"));
    let seen = AtomicU64::new(0);
    fault::install(Box::new(move |at| {
        if at == point && seen.fetch_add(1, Ordering::Relaxed) + 1 == count {
            eprintln!("killed at the fault point {}", at.name());
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }));
}
