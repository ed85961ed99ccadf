//! What a test program may change about the command. The shipped command changes nothing: it has no flag for it, and no code that
//! could make repeatable noise for a site.

use clap::{Arg, ArgMatches, Command, value_parser};
use padmm_node::site::World;

/// Makes the world of a test from the seed of its noise.
pub type MakeWorld = fn(u64) -> World;

const SEED: &str = "test-noise-seed";
const KILL: &str = "test-kill";
const MEMORY: &str = "test-ledger-in-memory";
const CLOCK: &str = "test-clock";

/// The surroundings of the command.
#[derive(Clone, Default)]
pub struct Lab {
    test: Option<Test>,
    /// The seed of a site's noise; only a test program can set it.
    pub seed: Option<u64>,
    /// Keep the ledger in memory.
    pub ledger_in_memory: bool,
    flags: Vec<String>,
}

#[derive(Clone, Copy)]
struct Test {
    world: MakeWorld,
    arm: fn(&str),
    shift: fn(i64),
}

impl Lab {
    /// For a test program: how it makes a world, what it does with the name of a fault point, and how it puts the clock forward.
    pub fn for_tests(world: MakeWorld, arm: fn(&str), shift: fn(i64)) -> Self {
        Lab { test: Some(Test { world, arm, shift }), ..Lab::default() }
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

    /// This lab, with what its flags say.
    pub(crate) fn read(&self, matches: &ArgMatches) -> Lab {
        let mut lab = self.clone();
        let Some(test) = self.test else { return lab };
        if let Some(&seed) = matches.get_one::<u64>(SEED) {
            lab.seed = Some(seed);
            lab.flags.extend([format!("--{SEED}"), seed.to_string()]);
        }
        if let Some(point) = matches.get_one::<String>(KILL) {
            (test.arm)(point);
        }
        if let Some(&seconds) = matches.get_one::<i64>(CLOCK) {
            (test.shift)(seconds);
        }
        if matches.get_flag(MEMORY) {
            lab.ledger_in_memory = true;
            lab.flags.push(format!("--{MEMORY}"));
        }
        lab
    }

    /// The world of a site.
    pub fn world(&self) -> World {
        match (self.test, self.seed) {
            (Some(test), Some(seed)) => (test.world)(seed),
            _ => World::real(),
        }
    }

    /// The flags that a site process of a demonstration gets besides its own.
    pub fn flags(&self) -> &[String] {
        &self.flags
    }
}
