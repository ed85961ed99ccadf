//! The links alone: processes that say nothing but that they are there, so that much more can happen to them in the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use padmm_node::transport::memory::Weather;

use super::bug::Bug;
use super::invariant::Invariant;
use super::network::{Network, ProcessId, Voice};
use super::schedule::{Schedule, Trouble};
use super::world::Tally;

/// Between these numbers of sites, all of which are neighbours.
const SITES: [usize; 3] = [2, 3, 4];
/// So long it is looked at what was connected again.
const QUIET: Duration = Duration::from_secs(20);
/// How often everything is looked at.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
enum Later {
    Start(usize),
    Mend(usize, usize),
    Hear(usize, usize),
    ComeBack(usize),
    Remove(usize),
}

struct Links {
    network: Network,
    /// The site that is started on each machine; those after the sites' own are for copies.
    machines: Vec<usize>,
    n_sites: usize,
    processes: BTreeMap<usize, ProcessId>,
    later: Vec<(Duration, Later)>,
    now: Duration,
    tally: Tally,
}

/// Plays a schedule to its end.
pub(super) fn play(schedule: &Schedule, bug: Option<Bug>) -> Result<Tally, Invariant> {
    let n_sites = SITES[schedule.shape % SITES.len()];
    let neighbours = (0..n_sites).map(|a| (0..n_sites).filter(|&b| b != a).collect()).collect();
    let mut links = Links {
        network: Network::new(neighbours, schedule.seed, bug == Some(Bug::ClonePromoted)),
        machines: (0..n_sites).collect(),
        n_sites,
        processes: BTreeMap::new(),
        later: (0..n_sites).map(|site| (Duration::ZERO, Later::Start(site))).collect(),
        now: Duration::ZERO,
        tally: Tally::default(),
    };
    links.run(schedule)?;
    Ok(links.tally)
}

impl Links {
    fn run(&mut self, schedule: &Schedule) -> Result<(), Invariant> {
        let mut events = schedule.events.iter().peekable();
        let mut calm_since = None;
        loop {
            while let Some((_, trouble)) = events.next_if(|(at, _)| *at <= self.now) {
                self.happen(*trouble);
            }
            while let Some(k) = self.later.iter().position(|(at, _)| *at <= self.now) {
                let (_, what) = self.later.swap_remove(k);
                self.undo(what);
            }
            self.network.check_links()?;
            if events.peek().is_none() && self.later.is_empty() {
                let since = *calm_since.get_or_insert_with(|| {
                    self.network.set_weather(Weather::default());
                    self.now
                });
                self.network.check_settled(self.now - since)?;
                if self.now > since + QUIET {
                    return Ok(());
                }
            }
            let next = self.later.iter().map(|(at, _)| *at).chain(events.peek().map(|(at, _)| *at)).min();
            self.now = next.unwrap_or(Duration::MAX).min(self.now + LOOK);
            self.network.advance(self.now);
        }
    }

    fn edge(&self, site: usize, neighbour: usize) -> (usize, usize) {
        let (n, site) = (self.n_sites, site % self.n_sites);
        (site, (site + 1 + neighbour % (n - 1)) % n)
    }

    fn at(&mut self, after: Duration, what: Later) {
        self.later.push((self.now + after, what));
    }

    fn happen(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Crash { site, away, .. } => self.crash(site % self.machines.len(), away),
            Trouble::CrashAll { away } => (0..self.machines.len()).for_each(|k| self.crash(k, away)),
            Trouble::Cut { site, neighbour, time } => {
                let (a, b) = self.edge(site, neighbour);
                self.network.cut(a, b, true);
                self.at(time, Later::Mend(a, b));
            }
            Trouble::Deaf { site, neighbour, time } => {
                let (to, from) = self.edge(site, neighbour);
                self.network.cut_way((from, to), true);
                self.at(time, Later::Hear(from, to));
            }
            Trouble::Sever { site, neighbour } => {
                let (a, b) = self.edge(site, neighbour);
                self.network.sever(a, b);
            }
            Trouble::Move { site, time } => {
                self.network.relocate(site % self.n_sites, true);
                self.at(time, Later::ComeBack(site % self.n_sites));
            }
            Trouble::Clone { site, after, time } => {
                self.machines.push(site % self.n_sites);
                let machine = self.machines.len() - 1;
                self.at(after, Later::Start(machine));
                time.into_iter().for_each(|time| self.at(after + time, Later::Remove(machine)));
                self.tally.copies_of_homes += 1;
            }
            Trouble::Weather { weather } => self.network.set_weather(weather),
            // Of disks and of processes that hang, links know nothing.
            Trouble::Late { .. }
            | Trouble::Hang { .. }
            | Trouble::Disk { .. }
            | Trouble::Copy { .. }
            | Trouble::PutBack { .. } => {}
        }
    }

    fn undo(&mut self, what: Later) {
        match what {
            Later::Start(machine) => {
                let site = self.machines[machine];
                let plug = || self.network.plug(site, Voice::Beats, machine >= self.n_sites);
                self.processes.entry(machine).or_insert_with(plug);
            }
            Later::Mend(a, b) => self.network.cut(a, b, false),
            Later::Hear(from, to) => self.network.cut_way((from, to), false),
            Later::ComeBack(site) => self.network.relocate(site, false),
            Later::Remove(machine) => {
                // Neither is it started again.
                self.later.retain(|(_, what)| !matches!(what, Later::Start(other) if *other == machine));
                self.unplug(machine);
            }
        }
    }

    fn unplug(&mut self, machine: usize) -> bool {
        let process = self.processes.remove(&machine);
        process.into_iter().for_each(|id| self.network.unplug(id));
        process.is_some()
    }

    fn crash(&mut self, machine: usize, away: Duration) {
        if self.unplug(machine) {
            self.tally.crashes += 1;
            self.at(away, Later::Start(machine));
        }
    }
}
