//! `padmm audit`: an attack on this very program, and what it finds.

mod neighbours;
mod page;
mod sites;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::Args as ClapArgs;
use padmm_audit::{AuditRequest, Canary, Shipped, Trial, Verdict, audit};
use padmm_commands::out_folder::OutFolder;
use padmm_commands::progress;
use padmm_commands::terminal::{print, print_json, start_threads};
use padmm_core::algorithm::AlgorithmKind;
use padmm_privacy::words::{delta_text, epsilon_text, lower_text};

use crate::test_hooks::TestHooks;

/// What the command exits with when the guarantee is broken.
const BROKEN: u8 = 1;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// p-admm, consensus-newton, private-gradient, linearized, dp-admm or token: the algorithms whose guarantee holds for the bytes that
    /// leave
    #[arg(long, value_name = "NAME", default_value = "p-admm")]
    algorithm: String,
    /// The ε that is claimed, and attacked
    #[arg(long, value_name = "E", default_value_t = 1.0, allow_negative_numbers = true)]
    epsilon: f64,
    /// δ at which the claimed ε holds
    #[arg(long, value_name = "D", default_value_t = 1e-4, allow_negative_numbers = true)]
    delta: f64,
    /// Secret bits to guess [default: 100000, or 40000 with --sites]
    #[arg(long, value_name = "N")]
    tests: Option<usize>,
    /// Confidence of the bounds [default: 0.999, or 0.95 with --sites]
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    confidence: Option<f64>,
    /// Rounds of every run; consensus Newton's first is the one that learns its metric
    #[arg(long, value_name = "K", default_value_t = 5)]
    rounds: u32,
    /// Seed of the secret bits and the hostile messages; the noise has none
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Attack site processes with keys, ledgers and a network, in place of agents in this process
    #[arg(long)]
    sites: bool,
    /// Folder for the report page and its picture
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads to compute with [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show no progress while it runs
    #[arg(long)]
    quiet: bool,
}

pub(super) struct Finished {
    request: AuditRequest,
    on_sites: bool,
    verdict: Verdict,
    trials: Vec<Trial>,
    seconds: f64,
}

/// Runs `padmm audit`. The exit code tells whether the guarantee held.
pub(crate) fn run(args: &Args, hooks: &TestHooks) -> anyhow::Result<ExitCode> {
    let request = request(args)?;
    start_threads(args.threads)?;
    let out = args.out.as_deref().map(OutFolder::at).transpose()?;
    let bar = progress::bar(
        request.tests as u64,
        "{bar:30} {pos}/{len} {msg}  {elapsed} gone, {eta} left",
        args.quiet || args.json,
    );
    let start = Instant::now();
    bar.set_message("neighbouring files");
    let refusals = neighbours::check(request.algorithm)?;
    bar.set_message("bits guessed");
    let advance = |n: usize| bar.inc(n as u64);
    let (verdict, trials) = if args.sites {
        sites::audit(&request, refusals, &advance, hooks)?
    } else {
        audit(&Shipped, &request, refusals, &advance)?
    };
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    let finished = Finished { request, on_sites: args.sites, verdict, trials, seconds };
    if let Some(out) = &out {
        page::write(&finished, out.path())?;
    }
    let place = out.map(|out| {
        let page = out.path().join("audit.html").display().to_string();
        out.keep();
        page
    });
    if args.json {
        print_json(&finished.json())?
    } else {
        print(&finished.words(place.as_deref()))?
    }
    Ok(if finished.verdict.is_passed() { ExitCode::SUCCESS } else { ExitCode::from(BROKEN) })
}

fn request(args: &Args) -> anyhow::Result<AuditRequest> {
    let known = || padmm_core::algorithm::ALL.map(AlgorithmKind::name).join(", ");
    let algorithm = padmm_core::algorithm::ALL
        .into_iter()
        .find(|kind| kind.name() == args.algorithm)
        .with_context(|| format!("--algorithm '{}' is not known; there are {}", args.algorithm, known()))?;
    let (tests, confidence) = if args.sites { (40_000, 0.95) } else { (100_000, 0.999) };
    Ok(AuditRequest {
        algorithm,
        epsilon: args.epsilon,
        delta: args.delta,
        tests: args.tests.unwrap_or(tests),
        confidence: args.confidence.unwrap_or(confidence),
        rounds: args.rounds,
        seed: args.seed,
    })
    .and_then(|request| {
        // Whatever is wrong with the settings is said before anything is started.
        Canary::new(&request.canary(1))?;
        let confidence = request.confidence;
        anyhow::ensure!(
            confidence > 0.0 && confidence < 1.0,
            "--confidence is {confidence}, but it must be between 0 and 1, both excluded"
        );
        anyhow::ensure!(request.tests >= 200, "--tests is {}, but it must be at least 200", request.tests);
        Ok(request)
    })
}

impl Finished {
    /// The verdict's keys, and what was attacked.
    fn json(&self) -> serde_json::Value {
        let mut json = self.verdict.to_json();
        json["algorithm"] = self.request.algorithm.name().into();
        json["on_sites"] = self.on_sites.into();
        json["rounds"] = self.request.rounds.into();
        json["seed"] = self.request.seed.into();
        json["seconds"] = self.seconds.into();
        json["findings"] = self.verdict.findings().into();
        json
    }

    /// What was attacked, in a sentence.
    fn attacked(&self) -> String {
        format!(
            "{} on {}, {} rounds, claimed ε = {} at δ = {}",
            self.request.algorithm.title(),
            if self.on_sites { "site processes" } else { "agents in this process" },
            self.request.rounds,
            epsilon_text(self.verdict.claimed_epsilon),
            delta_text(self.verdict.delta)
        )
    }

    /// The bound, in a sentence.
    fn bound(&self) -> String {
        let bounds = &self.verdict.bounds;
        format!(
            "An attacker who knew all but one bit of a record guessed {} of {} bits rightly. So ε is at least {} with {} % confidence \
             ({} without any assumption on the noise); μ was measured as {:.4}, and {:.4} is claimed.",
            bounds.tests as u64 - bounds.wrong,
            bounds.tests,
            lower_text(bounds.epsilon_lower),
            100.0 * bounds.confidence,
            lower_text(bounds.epsilon_direct),
            bounds.mu_measured,
            self.verdict.mu_claimed,
        )
    }

    fn words(&self, page: Option<&str>) -> String {
        let mut text = format!("{}.\n{}\n\n", self.attacked(), self.bound());
        for (name, check) in self.verdict.checks.all() {
            let outcome = if check.is_passed() { "passed" } else { "FAILED" };
            text += &format!("{:<12} {outcome}: {}\n", name.replace('_', " "), page::about(name));
        }
        let findings = self.verdict.findings();
        text += &if findings.is_empty() {
            "\nNothing was found that breaks the guarantee.".to_owned()
        } else {
            format!("\nThe guarantee is BROKEN:\n  {}", findings.join("\n  "))
        };
        text += &format!("\n{:.1} s, seed {}.\n", self.seconds, self.request.seed);
        text + &page.map_or(String::new(), |page| format!("report  {page}\n"))
    }
}
