//! Sites, their network and their disks, moved from one deadline to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use padmm_node::session::SessionError;
use padmm_node::transport::memory::Weather;

use super::bug::Bug;
use super::consortium::{Consortium, NAMES};
use super::disk::{Content, SimulatedDisk};
use super::invariant::Invariant;
use super::network::Network;
use super::process::Process;
use super::reach::RECONNECTED;
use super::schedule::Schedule;
use super::wire::Wire;

/// Simulated time that a run may take once everything works again.
const PATIENCE: Duration = Duration::from_secs(300);
/// Steps that no schedule needs.
const MOST_STEPS: u64 = 200_000;

/// What a schedule came to.
#[derive(Debug, Default)]
pub struct Tally {
    pub(super) crashes: u64,
    pub(super) rollbacks: u64,
    pub(super) copies_of_homes: u64,
    pub(super) disk_faults: u64,
    pub(super) departures: u64,
    pub(super) is_as_if_quiet: bool,
    /// Nothing is promised for what happened here.
    pub(super) is_beyond_promise: bool,
    pub(super) copies: f64,
}

/// What will have to be undone, or done, at a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Later {
    Start(usize),
    Mend(usize, usize),
    Hear(usize, usize),
    ComeBack(usize),
    Wake(usize),
    MendDisk(usize),
    Remove(usize),
}

/// Something with a disk that processes of a site are started on: the site's own machine, or one with a copy of its home.
pub(super) struct Machine {
    pub(super) site: usize,
    pub(super) disk: SimulatedDisk,
    pub(super) is_copy: bool,
    /// Nothing will be started on it again.
    pub(super) is_removed: bool,
}

/// When a process ends: after so many fault points; for how long its machine is off then, and whether the head was on the disk.
pub(super) type Fuse = (u64, Duration, bool);

pub(super) struct World<'a> {
    pub(super) consortium: &'a Consortium,
    pub(super) network: Network,
    /// The sites' own, and then those with copies.
    pub(super) machines: Vec<Machine>,
    /// By machine, like all that follows.
    pub(super) processes: BTreeMap<usize, Process>,
    pub(super) hanging: BTreeMap<usize, u32>,
    pub(super) armed: BTreeMap<usize, Fuse>,
    /// Machines on which the site will not be started again.
    pub(super) stopped: BTreeMap<usize, SessionError>,
    pub(super) models: BTreeMap<usize, Vec<u64>>,
    /// How often a ledger was put back.
    pub(super) put_back: BTreeMap<usize, u64>,
    pub(super) later: Vec<(Duration, Later)>,
    /// Sites that have begun.
    pub(super) begun: BTreeSet<usize>,
    pub(super) wire: Wire,
    pub(super) copy: Option<Content>,
    pub(super) now: Duration,
    pub(super) tally: Tally,
    pub(super) bug: Option<Bug>,
}

/// Plays a schedule to its end.
pub(super) fn play(
    consortia: &[Consortium],
    schedule: &Schedule,
    bug: Option<Bug>,
) -> Result<Tally, Invariant> {
    let consortium = &consortia[schedule.shape % consortia.len()];
    let quiet = consortium.quiet.get_or_init(|| {
        let calm = Schedule { events: vec![], ..schedule.clone() };
        let mut world = World::new(consortium, &calm, None);
        world.run(&calm).unwrap_or_else(|broken| panic!("undisturbed sites break an invariant: {broken}"));
        world.models
    });
    let mut world = World::new(consortium, schedule, bug);
    if bug == Some(Bug::BarrierSkipped) {
        world.forge_words();
    }
    world.run(schedule)?;
    if world.tally.is_beyond_promise {
        return Ok(world.tally);
    }
    world.check_end(quiet)
}

impl<'a> World<'a> {
    fn new(consortium: &'a Consortium, schedule: &Schedule, bug: Option<Bug>) -> Self {
        let n = consortium.sites.len();
        let neighbours = (0..n).map(|i| consortium.contract.neighbours(i).to_vec()).collect();
        let network = Network::new(neighbours, schedule.seed, bug == Some(Bug::ClonePromoted));
        let wire = Wire::default();
        network.watch({
            let wire = wire.clone();
            move |now, from, to, bytes| wire.watch(now, from, to, bytes)
        });
        let machine =
            |site| Machine { site, disk: SimulatedDisk::new(bug), is_copy: false, is_removed: false };
        Self {
            consortium,
            network,
            machines: (0..n).map(machine).collect(),
            processes: BTreeMap::new(),
            hanging: BTreeMap::new(),
            armed: BTreeMap::new(),
            stopped: BTreeMap::new(),
            models: BTreeMap::new(),
            put_back: BTreeMap::new(),
            later: (0..n).map(|site| (Duration::ZERO, Later::Start(site))).collect(),
            begun: BTreeSet::new(),
            wire,
            copy: None,
            now: Duration::ZERO,
            tally: Tally::default(),
            bug,
        }
    }

    pub(super) fn n_sites(&self) -> usize {
        self.consortium.sites.len()
    }

    /// Whether a copy of the site's home came up at any time.
    pub(super) fn has_copy(&self, site: usize) -> bool {
        self.machines.iter().any(|machine| machine.is_copy && machine.site == site)
    }

    /// The name of the site that a machine is for.
    pub(super) fn name(&self, machine: usize) -> &'static str {
        NAMES[self.machines[machine].site]
    }

    fn run(&mut self, schedule: &Schedule) -> Result<(), Invariant> {
        let mut events = schedule.events.iter().peekable();
        let mut calm_since = None;
        for _ in 0..MOST_STEPS {
            while let Some((_, trouble)) = events.next_if(|(at, _)| *at <= self.now) {
                self.happen(*trouble);
            }
            self.do_what_is_due()?;
            self.step()?;
            let broken = self.wire.lock().wrong.clone();
            match broken {
                Some(Invariant::OnePayload { site, .. }) if self.is_forgotten(site) => {
                    self.tally.is_beyond_promise = true;
                    return Ok(());
                }
                Some(broken) => return Err(broken),
                None => {}
            }
            self.network.check_links()?;
            let is_over = events.peek().is_none() && self.later.is_empty();
            if is_over && calm_since.is_none() {
                calm_since = Some(self.now);
                self.armed.clear();
                self.machines.iter().for_each(|machine| machine.disk.mend());
                self.network.set_weather(Weather::default());
            }
            // News of an edge that was given up comes to a site that has its model when both are connected again.
            let are_told = |world: &Self| {
                calm_since.is_some_and(|since| world.now > since + 2 * RECONNECTED) || !world.has_departures()
            };
            if is_over && self.is_ended() && are_told(self) {
                return Ok(());
            }
            if let Some(since) = calm_since {
                self.network.check_settled(self.now - since)?;
            }
            if calm_since.is_some_and(|since| self.now > since + PATIENCE) {
                return Err(Invariant::Ends { waiting: self.waiting() });
            }
            if !is_over {
                calm_since = None;
            }
            let next_event = events.peek().map(|(at, _)| *at);
            self.now = self.next_time(next_event);
            self.network.advance(self.now);
        }
        Err(Invariant::Ends { waiting: format!("{MOST_STEPS} steps were not enough; {}", self.waiting()) })
    }

    /// Whether nobody can tell a site that it is on an old ledger or has a twin: its neighbours' ledgers were all put back as well, or
    /// are there twice, and one knows what the other does not. That is what the program says that it does not notice; one neighbour with
    /// its disk is enough.
    fn is_forgotten(&self, name: &str) -> bool {
        let site = NAMES.iter().position(|known| *known == name).expect("a site has a name");
        let may_be_old = |site: &usize| self.has_copy(*site) || self.put_back.contains_key(site);
        may_be_old(&site) && self.consortium.contract.neighbours(site).iter().all(may_be_old)
    }

    fn has_departures(&self) -> bool {
        self.processes.values().any(|process| !process.session.departures().is_empty())
    }

    fn next_time(&self, event: Option<Duration>) -> Duration {
        let awake = self.processes.iter().filter(|(machine, _)| !self.hanging.contains_key(machine));
        let times = awake.map(|(_, process)| process.deadline);
        let times =
            times.chain(self.later.iter().map(|(at, _)| *at)).chain(event).chain(self.network.next_event());
        times.min().unwrap_or(self.now + PATIENCE).max(self.now)
    }

    /// On every machine there is a model, or the site is stopped for good; so is everybody if a site is gone that all wait for.
    fn is_ended(&self) -> bool {
        let is_gone =
            |machine: &usize| self.stopped.contains_key(machine) || self.machines[*machine].is_removed;
        let of = |site| (0..self.machines.len()).filter(move |&machine| self.machines[machine].site == site);
        let waits_for_ever = self.consortium.silence.limit().is_none()
            && (0..self.n_sites()).any(|site| of(site).all(|machine| is_gone(&machine)));
        let is_done = |machine| self.models.contains_key(&machine) || is_gone(&machine);
        waits_for_ever || (0..self.machines.len()).all(is_done)
    }

    fn waiting(&self) -> String {
        let of = |(&machine, process): (&usize, &Process)| {
            let what = process.session.waiting_for(self.now).unwrap_or_else(|| "nothing".to_owned());
            let which = if self.machines[machine].is_copy { " (a copy)" } else { "" };
            format!("{}{which}: {what}", self.name(machine))
        };
        self.processes.iter().map(of).collect::<Vec<_>>().join(" | ")
    }
}
