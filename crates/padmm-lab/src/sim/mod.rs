//! Whole networks of real sessions and ledgers in a made-up world: time, network and disks come from one seed, and so does what
//! happens to them. After every step the invariants are looked at; a schedule that breaks one is made shorter and printed.
//!
//! | question | file |
//! |---|---|
//! | what happens, and when | `schedule` |
//! | what troubles do, and how they end | `trouble` |
//! | what a disk keeps of what was written to it | `disk` |
//! | who is connected to whom, and what becomes of frames | `network` |
//! | how a process is started, moved and ended | `process` |
//! | all of them, moved from one deadline to the next | `world` |
//! | the same without sites: connections alone | `links` |
//! | what must always be so | `invariant`, `wire`, `check`; of links, `reach` |
//! | what is wrong on purpose | `bug` |

mod bug;
mod check;
mod consortium;
mod disk;
mod invariant;
mod links;
mod network;
mod process;
mod reach;
mod schedule;
mod trouble;
mod wire;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

pub use bug::Bug;
pub use consortium::Consortium;
pub use invariant::Invariant;
pub use schedule::Schedule;
pub use world::Tally;

/// What many schedules came to.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// How many ran.
    pub schedules: u64,
    /// The same, by second and thread.
    pub per_second: f64,
    /// Processes that ended in the middle of something.
    pub crashes: u64,
    /// Ledgers of earlier days that were put in the place of newer ones.
    pub rollbacks: u64,
    /// Homes that came up a second time, beside their site.
    pub copied_homes: u64,
    /// Writes that a disk refused, or was not heard of again.
    pub disk_faults: u64,
    /// Schedules after which every site had the model of a quiet run.
    pub as_if_quiet: u64,
    /// Schedules that did what the program says that it does not notice, and two payloads left: not counted as violations.
    pub beyond_promise: u64,
    /// Sites that others continued without.
    pub departures: u64,
    /// How often a byte was sent on average, in the schedule where that was most.
    pub most_copies: f64,
    /// What was broken, by which schedule.
    pub violations: Vec<Violation>,
}

/// An invariant that did not hold.
#[derive(Debug, Serialize)]
pub struct Violation {
    /// `padmm-lab sim --seed` brings it back.
    pub seed: u64,
    /// Which invariant, and what was found.
    pub invariant: String,
    /// What is left of the schedule after everything that it breaks without has gone.
    pub schedule: String,
}

/// What is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Whole sites.
    Sites,
    /// Their links alone: much more happens to each, in less time.
    Links,
}

/// How long, and how much of it.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Of what.
    pub layer: Layer,
    /// The first schedule's.
    pub seed: u64,
    /// Wall time after which no further schedule is begun.
    pub time: Duration,
    /// Schedules at most.
    pub schedules: u64,
    /// Threads that schedules are shared among.
    pub threads: usize,
}

/// Runs schedules one after the other, on every thread, until the time is over or something is broken.
pub fn run(extent: Extent, bug: Option<Bug>, mut tell: impl FnMut(u64) + Send) -> Report {
    process::silence_crashes();
    let consortia = if extent.layer == Layer::Sites { Consortium::all() } else { vec![] };
    let play = |schedule: &Schedule| match extent.layer {
        Layer::Sites => world::play(&consortia, schedule, bug),
        Layer::Links => links::play(schedule, bug),
    };
    let (next, begun) = (AtomicU64::new(0), Instant::now());
    let (report, broken) = (Mutex::new(Report::default()), AtomicBool::new(false));
    let tell = Mutex::new(&mut tell);
    std::thread::scope(|scope| {
        for _ in 0..extent.threads.max(1) {
            scope.spawn(|| {
                while begun.elapsed() < extent.time && !broken.load(Ordering::Relaxed) {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    if k >= extent.schedules {
                        return;
                    }
                    let seed = extent.seed + k;
                    let schedule = match extent.layer {
                        Layer::Sites => Schedule::of(seed),
                        Layer::Links => Schedule::of_links(seed),
                    };
                    let result = play(&schedule);
                    let violation = result.as_ref().err().map(|_| {
                        broken.store(true, Ordering::Relaxed);
                        let (shorter, found) = schedule.shrunk(|tried| play(tried).err());
                        Violation { seed, invariant: found.to_string(), schedule: shorter.to_string() }
                    });
                    let mut report = report.lock().expect("no thread panics with the report");
                    report.add(result.unwrap_or_default(), violation);
                    (tell.lock().expect("telling does not panic"))(report.schedules);
                }
            });
        }
    });
    let mut report = report.into_inner().expect("no thread panicked");
    report.per_second =
        report.schedules as f64 / begun.elapsed().as_secs_f64() / extent.threads.max(1) as f64;
    report
}

impl Report {
    fn add(&mut self, tally: Tally, violation: Option<Violation>) {
        self.schedules += 1;
        self.crashes += tally.crashes;
        self.rollbacks += tally.rollbacks;
        self.copied_homes += tally.copies_of_homes;
        self.disk_faults += tally.disk_faults;
        self.as_if_quiet += u64::from(tally.is_as_if_quiet);
        self.beyond_promise += u64::from(tally.is_beyond_promise);
        self.departures += tally.departures;
        self.most_copies = self.most_copies.max(tally.copies);
        self.violations.extend(violation);
    }
}
