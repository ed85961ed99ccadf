//! What a test program may change about the command. The shipped command changes nothing: it has no flag for it, and no code that
//! could make repeatable noise for a site.

use clap::{Arg, ArgMatches, Command, value_parser};
use padmm_commands::demo::{Comparison, Outcome};
use padmm_node::site::NoiseProvider;

/// Makes the noise of all sites from a seed.
pub type MakeNoise = fn(u64) -> NoiseProvider;

/// Compares a demonstration with the simulator: what the sites came to, every site's release of every round, the seed of the noise.
pub type Compare = fn(&Outcome, &[Vec<Vec<f64>>], u64) -> anyhow::Result<Comparison>;

const SEED: &str = "test-noise-seed";
const KILL: &str = "test-kill";
const MEMORY: &str = "test-ledger-in-memory";
const CLOCK: &str = "test-clock";

/// What the flags of a test program may change. The default, which the shipped command has, changes nothing and has no such flags.
#[derive(Clone, Default)]
pub struct TestHooks {
    test: Option<Test>,
    seed: Option<u64>,
    ledger_in_memory: bool,
    flags: Vec<String>,
}

#[derive(Clone, Copy)]
struct Test {
    noise: MakeNoise,
    arm: fn(&str),
    shift: fn(i64),
    compare: Option<Compare>,
}

impl TestHooks {
    /// For a test program: how it makes the noise, what it does with the name of a fault point, and how it puts the clock forward.
    pub fn for_tests(noise: MakeNoise, arm: fn(&str), shift: fn(i64)) -> Self {
        let test = Test { noise, arm, shift, compare: None };
        Self { test: Some(test), ..Self::default() }
    }

    /// Lets a demonstration with seeded noise be compared with the simulator, which this crate cannot reach.
    #[must_use]
    pub fn comparing(mut self, compare: Compare) -> Self {
        if let Some(test) = &mut self.test {
            test.compare = Some(compare);
        }
        self
    }

    /// The command with the flags of a test program, if this is one.
    pub(crate) fn extend(&self, command: Command) -> Command {
        if self.test.is_none() {
            return command;
        }
        let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).global(true).help(help);
        command
            .arg(
                flag(SEED, "Seed of the noise: repeatable, and not private (test build only)")
                    .value_parser(value_parser!(u64)),
            )
            .arg(flag(
                KILL,
                "Kill the site at the Nth time that it reaches a fault point: POINT:N (test build only)",
            ))
            .arg(
                flag(CLOCK, "Seconds by which the clock is fast (test build only)")
                    .value_parser(value_parser!(i64))
                    .allow_negative_numbers(true),
            )
            .arg(
                flag(MEMORY, "Keep the ledger in memory, for measurements (test build only)")
                    .action(clap::ArgAction::SetTrue),
            )
    }

    /// These hooks, with what their flags say.
    pub(crate) fn read(&self, matches: &ArgMatches) -> Self {
        let mut hooks = self.clone();
        let Some(test) = self.test else { return hooks };
        if let Some(&seed) = matches.get_one::<u64>(SEED) {
            hooks.seed = Some(seed);
            hooks.flags.extend([format!("--{SEED}"), seed.to_string()]);
        }
        if let Some(point) = matches.get_one::<String>(KILL) {
            (test.arm)(point);
        }
        if let Some(&seconds) = matches.get_one::<i64>(CLOCK) {
            (test.shift)(seconds);
        }
        if matches.get_flag(MEMORY) {
            hooks.ledger_in_memory = true;
            hooks.flags.push(format!("--{MEMORY}"));
        }
        hooks
    }

    /// Where a site's noise comes from: the exact sampler, unless a test program was given a seed.
    pub(crate) fn noise(&self) -> NoiseProvider {
        match (self.test, self.seed) {
            (Some(test), Some(seed)) => (test.noise)(seed),
            _ => NoiseProvider::real(),
        }
    }

    /// Whether the ledger is to be kept in memory, which only measurements do.
    pub(crate) fn ledger_in_memory(&self) -> bool {
        self.ledger_in_memory
    }

    /// The flags that a site process of a demonstration gets besides its own.
    pub(crate) fn flags(&self) -> &[String] {
        &self.flags
    }

    /// What the simulator says about a demonstration; nothing unless a test program can ask it.
    pub(crate) fn compare(
        &self,
        outcome: &Outcome,
        releases: &[Vec<Vec<f64>>],
    ) -> anyhow::Result<Comparison> {
        match (self.test.and_then(|test| test.compare), self.seed) {
            (Some(compare), Some(seed)) if !self.ledger_in_memory => compare(outcome, releases, seed),
            _ => Ok(Comparison::default()),
        }
    }
}
