//! Sites, their network and their disks, moved from one deadline to the next.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, SystemTime};

use padmm_core::message::{SiteIndex, Stage};
use padmm_node::fault;
use padmm_node::frame::Frame;
use padmm_node::journal::{EgressError, Journal, Level, Sent};
use padmm_node::ledger::{Opening, SiteLedger};
use padmm_node::session::{Session, SessionError};
use padmm_node::site::NoiseProvider;
use padmm_node::transport::memory::{MemoryNetwork, MemoryTransport, Weather};
use padmm_privacy::Budget;
use padmm_sim::InsecureSeededNoise;

use super::bug::{Bug, Impatient};
use super::consortium::{Consortium, DELTA, EPSILON, NAMES};
use super::disk::{Content, SimulatedDisk};
use super::invariant::Invariant;
use super::schedule::{Schedule, Trouble};

/// Simulated time that a run may take once everything works again.
const PATIENCE: Duration = Duration::from_secs(300);
/// Steps that no schedule needs.
const MOST_STEPS: u64 = 200_000;

/// What a schedule came to.
#[derive(Debug, Default)]
pub struct Tally {
    pub(super) crashes: u64,
    pub(super) rollbacks: u64,
    pub(super) disk_faults: u64,
    pub(super) departures: u64,
    pub(super) is_as_if_quiet: bool,
    pub(super) copies: f64,
}

/// The end of a simulated process.
struct Crash;

thread_local! {
    /// Fault points that the process that runs now may still pass.
    static POINTS: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Makes fault points end simulated processes, and their ends silent.
pub(super) fn silence_crashes() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        fault::install(Box::new(|_| {
            POINTS.with(|points| match points.get() {
                Some(0) => {
                    points.set(None);
                    panic_any(Crash);
                }
                Some(n) => points.set(Some(n - 1)),
                None => {}
            });
        }));
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<Crash>() {
                usual(info);
            }
        }));
    });
}

pub(super) struct Silent;

impl Journal for Silent {
    fn log(&self, _: Level, _: &'static str, _: &str) {}
    fn sent(&self, _: &Sent<'_>) -> Result<(), EgressError> {
        Ok(())
    }
}

pub(super) struct Process {
    pub(super) session: Session,
    transport: MemoryTransport,
    /// When it wants to be looked at, whatever arrives.
    deadline: Duration,
}

/// What was on the wire, and what was wrong with it.
#[derive(Default)]
pub(super) struct Wire {
    payloads: BTreeMap<(usize, u32), Vec<u8>>,
    /// Digests of all frames from one site to another.
    seen: BTreeSet<u64>,
    bytes: u64,
    /// The same without what was sent before.
    distinct_bytes: u64,
    /// Sites that have said that their edges work.
    pub(super) ready: BTreeSet<usize>,
    wrong: Option<Invariant>,
}

impl Wire {
    fn count(&mut self, from: SiteIndex, to: SiteIndex, bytes: &[u8]) {
        let mut digest = DefaultHasher::new();
        (from.0, to.0, bytes).hash(&mut digest);
        self.bytes += bytes.len() as u64;
        if self.seen.insert(digest.finish()) {
            self.distinct_bytes += bytes.len() as u64;
        }
    }

    /// How often a byte was sent on average.
    pub(super) fn copies(&self) -> f64 {
        self.bytes as f64 / self.distinct_bytes.max(1) as f64
    }
}

/// What will have to be undone, or done, at a time.
enum Later {
    Start(usize),
    Mend(usize, usize),
    Hear(usize, usize),
    Wake(usize),
    MendDisk(usize),
}

pub(super) struct World<'a> {
    pub(super) consortium: &'a Consortium,
    network: MemoryNetwork,
    pub(super) disks: Vec<SimulatedDisk>,
    pub(super) processes: BTreeMap<usize, Process>,
    hanging: BTreeMap<usize, u32>,
    /// Fault points that a site's process will not outlive, and for how long it is away then.
    armed: BTreeMap<usize, (u64, Duration, bool)>,
    /// Sites that will not be started again.
    pub(super) stopped: BTreeMap<usize, SessionError>,
    later: Vec<(Duration, Later)>,
    pub(super) models: BTreeMap<usize, Vec<u64>>,
    /// Sites that have begun.
    pub(super) begun: BTreeSet<usize>,
    pub(super) wire: Arc<Mutex<Wire>>,
    copy: Option<Content>,
    /// How often a site's ledger was put back.
    pub(super) put_back: BTreeMap<usize, u64>,
    now: Duration,
    pub(super) tally: Tally,
    bug: Option<Bug>,
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
    if bug == Some(Bug::SkippedBarrier) {
        world.forge_words();
    }
    world.run(schedule)?;
    world.check_end(quiet)
}

impl<'a> World<'a> {
    fn new(consortium: &'a Consortium, schedule: &Schedule, bug: Option<Bug>) -> Self {
        let n = consortium.sites.len();
        let neighbours =
            |i: usize| consortium.contract.neighbours(i).iter().copied().map(SiteIndex).collect();
        let network = MemoryNetwork::new((0..n).map(neighbours).collect(), Weather::default(), schedule.seed);
        let disks: Vec<_> = (0..n).map(|_| SimulatedDisk::new(bug)).collect();
        let wire = Arc::new(Mutex::new(Wire::default()));
        network.watch({
            let (wire, disks) = (Arc::clone(&wire), disks.clone());
            move |from, to, bytes| {
                wire.lock().expect("watching does not panic").count(from, to, bytes);
                let model = match Frame::decode(bytes) {
                    Ok(Frame::Model(model)) => model,
                    Ok(Frame::Hello { ready, .. }) if ready.iter().any(|word| word.site == from) => {
                        wire.lock().expect("watching does not panic").ready.insert(from.0);
                        return;
                    }
                    _ => return,
                };
                if model.turn.stage != Stage::Model {
                    return;
                }
                let (site, round) = (model.origin.sender.0, model.turn.number);
                let mut wire = wire.lock().expect("watching does not panic");
                let known = wire.payloads.entry((site, round)).or_insert_with(|| bytes.to_vec());
                if known != bytes {
                    wire.wrong.get_or_insert(Invariant::OnePayload { site: NAMES[site], round });
                } else if from.0 == site && !disks[site].holds(bytes) {
                    wire.wrong.get_or_insert(Invariant::ChargedBeforeSent { site: NAMES[site], round });
                }
            }
        });
        Self {
            consortium,
            network,
            disks,
            processes: BTreeMap::new(),
            hanging: BTreeMap::new(),
            armed: BTreeMap::new(),
            stopped: BTreeMap::new(),
            later: (0..n).map(|site| (Duration::ZERO, Later::Start(site))).collect(),
            models: BTreeMap::new(),
            begun: BTreeSet::new(),
            wire,
            copy: None,
            put_back: BTreeMap::new(),
            now: Duration::ZERO,
            tally: Tally::default(),
            bug,
        }
    }

    pub(super) fn n_sites(&self) -> usize {
        self.consortium.sites.len()
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
            if let Some(broken) = self.wire.lock().expect("watching does not panic").wrong.clone() {
                return Err(broken);
            }
            let is_over = events.peek().is_none() && self.later.is_empty();
            if is_over && calm_since.is_none() {
                calm_since = Some(self.now);
                self.armed.clear();
                self.disks.iter().for_each(SimulatedDisk::mend);
                self.network.set_weather(Weather::default());
            }
            if is_over && self.is_ended() {
                return Ok(());
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

    fn next_time(&self, event: Option<Duration>) -> Duration {
        let awake = self.processes.iter().filter(|(site, _)| !self.hanging.contains_key(site));
        let times = awake.map(|(_, process)| process.deadline);
        let times =
            times.chain(self.later.iter().map(|(at, _)| *at)).chain(event).chain(self.network.next_event());
        times.min().unwrap_or(self.now + PATIENCE).max(self.now)
    }

    /// Every site has its model, or is stopped for good; so is everybody if one is that all wait for.
    fn is_ended(&self) -> bool {
        let is_done = |site| self.models.contains_key(&site) || self.stopped.contains_key(&site);
        let waits_for_ever = !self.stopped.is_empty() && self.consortium.silence.limit().is_none();
        waits_for_ever || (0..self.n_sites()).all(is_done)
    }

    fn waiting(&self) -> String {
        let of = |(site, process): (&usize, &Process)| {
            let what = process.session.waiting_for(self.now).unwrap_or_else(|| "nothing".to_owned());
            format!("{}: {what}", NAMES[*site])
        };
        self.processes.iter().map(of).collect::<Vec<_>>().join(" | ")
    }

    fn happen(&mut self, trouble: Trouble) {
        let n = self.n_sites();
        if let Some(weather) = trouble.weather() {
            self.network.set_weather(weather);
        }
        match trouble {
            Trouble::Crash { site, points, away, keeps_head } => {
                self.armed.insert(site % n, (points, away, keeps_head));
            }
            Trouble::CrashAll { away } => (0..n).for_each(|site| self.crash(site, away, true)),
            Trouble::Late { site, time } => {
                let at = self.now + time;
                let starts = self
                    .later
                    .iter_mut()
                    .filter(|(_, what)| matches!(what, Later::Start(s) if *s == site % n));
                starts.for_each(|(when, _)| *when = at);
            }
            Trouble::Deaf { site, neighbour, time } => {
                let (to, neighbours) = (site % n, self.consortium.contract.neighbours(site % n));
                let from = neighbours[neighbour % neighbours.len()];
                self.network.cut_way(SiteIndex(from), SiteIndex(to));
                self.later.push((self.now + time, Later::Hear(from, to)));
            }
            Trouble::Cut { site, neighbour, time } => {
                let (a, neighbours) = (site % n, self.consortium.contract.neighbours(site % n));
                let b = neighbours[neighbour % neighbours.len()];
                self.network.cut(SiteIndex(a), SiteIndex(b));
                self.later.push((self.now + time, Later::Mend(a, b)));
            }
            Trouble::Hang { site, time } => {
                *self.hanging.entry(site % n).or_default() += 1;
                self.later.push((self.now + time, Later::Wake(site % n)));
            }
            Trouble::Disk { site, fault, commits, time } => {
                self.disks[site % n].will_fail(fault, commits);
                self.later.push((self.now + time, Later::MendDisk(site % n)));
            }
            Trouble::Copy { site } => self.copy = Some(self.disks[site % n].copy()),
            Trouble::PutBack { site, away } => {
                if let Some(copy) = self.copy.clone() {
                    self.crash(site % n, away, true);
                    self.disks[site % n].put_back(copy);
                    *self.put_back.entry(site % n).or_default() += 1;
                    self.tally.rollbacks += 1;
                }
            }
            Trouble::Weather { .. } => {}
        }
    }

    fn do_what_is_due(&mut self) -> Result<(), Invariant> {
        while let Some(k) = self.later.iter().position(|(at, _)| *at <= self.now) {
            match self.later.remove(k).1 {
                Later::Start(site) => self.start(site)?,
                Later::Mend(a, b) => self.network.mend(SiteIndex(a), SiteIndex(b)),
                Later::Hear(from, to) => self.network.mend_way(SiteIndex(from), SiteIndex(to)),
                Later::Wake(site) => {
                    let n = self.hanging.get_mut(&site).expect("it hangs until it is woken");
                    *n -= 1;
                    if *n == 0 {
                        self.hanging.remove(&site);
                    }
                }
                Later::MendDisk(site) => self.disks[site].mend(),
            }
        }
        Ok(())
    }

    /// The process ends as by a power cut, and another one is started later.
    fn crash(&mut self, site: usize, away: Duration, keeps_head: bool) {
        if self.processes.remove(&site).is_some() {
            self.network.unplug(SiteIndex(site));
            self.disks[site].crash(keeps_head);
            self.tally.crashes += 1;
            self.later.push((self.now + away, Later::Start(site)));
        }
    }

    fn start(&mut self, site: usize) -> Result<(), Invariant> {
        if self.stopped.contains_key(&site) || self.processes.contains_key(&site) {
            return Ok(());
        }
        let started = self.living(site, |world| world.process(site));
        match started {
            None => self.later.push((self.now + Duration::from_millis(500), Later::Start(site))),
            Some(Ok(process)) => {
                // It may have begun in the step that its last process did not outlive.
                if process.session.is_started() {
                    self.begun.insert(site);
                }
                self.processes.insert(site, process);
            }
            Some(Err(StartError::Session(error))) => self.stop(site, error)?,
            Some(Err(StartError::Other(error))) => {
                return Err(Invariant::Continues { site: NAMES[site], error });
            }
        }
        Ok(())
    }

    /// Does something as a process of the site; none if that does not live to the end of it.
    fn living<T>(&mut self, site: usize, what: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let armed = self.armed.remove(&site);
        POINTS.set(armed.map(|(points, _, _)| points));
        let result = catch_unwind(AssertUnwindSafe(|| what(self)));
        let left = POINTS.take();
        match result {
            Ok(value) => {
                if let (Some((_, away, keeps_head)), Some(left)) = (armed, left) {
                    self.armed.insert(site, (left, away, keeps_head));
                }
                Some(value)
            }
            Err(panic) if panic.is::<Crash>() => {
                let (_, away, keeps_head) = armed.expect("only an armed process crashes");
                self.crash(site, away, keeps_head);
                None
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    fn process(&self, site: usize) -> Result<Process, StartError> {
        let (disk, path) = (&self.disks[site], SimulatedDisk::path());
        let other = |error: &dyn std::fmt::Display| StartError::Other(error.to_string());
        let ledger = match disk.head() {
            Some(head) => SiteLedger::open_in(path, Box::new(disk.clone()), head),
            None => {
                disk.clear();
                let cap = Budget::new(2.0 * EPSILON, DELTA).expect("a budget");
                let opening = Opening { data_set: "records".to_owned(), fingerprint: "00".repeat(32), cap };
                SiteLedger::begin_in(path, Box::new(disk.clone()), opening)
            }
        };
        let ledger = ledger.map_err(|e| StartError::Session(e.into()))?;
        let (prepared, records) = &self.consortium.sites[site];
        // What is drawn again is not what was drawn before.
        let seed = 7 + self.put_back.get(&site).copied().unwrap_or(0) + self.redraws();
        let noise = NoiseProvider::for_tests(move |site, drawn| {
            Box::new(InsecureSeededNoise::new(seed, 0, site.0).after(drawn))
        });
        let mut setup = prepared
            .session(&noise, Arc::clone(records), ledger, Arc::new(Silent), SystemTime::now())
            .map_err(|e| other(&e))?;
        if self.bug == Some(Bug::SkippedProof) {
            setup.has_elsewhere = Box::new(|_, _, _| true);
        }
        let outbox = Arc::clone(&setup.outbox);
        let session = Session::new(setup, self.now).map_err(StartError::Session)?;
        let transport = self.network.plug(SiteIndex(site), outbox);
        Ok(Process { session, transport, deadline: self.now })
    }

    /// A process on a forgetful disk draws again what it has forgotten.
    fn redraws(&self) -> u64 {
        if self.bug == Some(Bug::ForgetfulDisk) { 1000 * self.tally.crashes } else { 0 }
    }

    fn step(&mut self) -> Result<(), Invariant> {
        let sites: Vec<usize> = self.processes.keys().copied().collect();
        for site in sites {
            let Some(process) = self.processes.get(&site) else { continue };
            let has_to = process.deadline <= self.now || !process.transport.mailbox().is_empty();
            if !has_to || self.hanging.contains_key(&site) {
                continue;
            }
            let (now, bug) = (self.now, self.bug);
            let stepped = self.living(site, |world| {
                let process = world.processes.get_mut(&site).expect("it is there");
                let Process { session, transport, deadline } = process;
                match bug {
                    Some(Bug::Impatience) => session.step(now, transport.mailbox(), &Impatient(transport))?,
                    _ => session.step(now, transport.mailbox(), transport)?,
                }
                *deadline = session.next_deadline(now);
                let outcome = session.outcome();
                if outcome.is_some() {
                    session.finish()?;
                }
                Ok(outcome)
            });
            self.check_start(site)?;
            match stepped {
                None | Some(Ok(None)) => {}
                Some(Ok(Some(outcome))) => {
                    let bits: Vec<u64> = outcome.smoothed.as_slice().iter().map(|v| v.to_bits()).collect();
                    if *self.models.entry(site).or_insert_with(|| bits.clone()) != bits {
                        return Err(Invariant::OneModel { site: NAMES[site] });
                    }
                }
                Some(Err(error)) => {
                    if self.processes.remove(&site).is_some() {
                        self.network.unplug(SiteIndex(site));
                    }
                    self.stop(site, error)?;
                }
            }
        }
        Ok(())
    }

    /// A site has stopped: for good, or until somebody has seen to its disk.
    fn stop(&mut self, site: usize, error: SessionError) -> Result<(), Invariant> {
        let was_put_back = self.put_back.contains_key(&site);
        match error {
            SessionError::Ledger(_) | SessionError::Agent(_) if self.disks[site].has_new_fault() => {
                self.disks[site].crash(true);
                self.later.push((self.now + Duration::from_secs(1), Later::Start(site)));
            }
            SessionError::OldLedger { .. } if was_put_back => drop(self.stopped.insert(site, error)),
            SessionError::Alone { .. } | SessionError::LeftBehind { .. }
                if self.consortium.silence.limit().is_some() =>
            {
                self.stopped.insert(site, error);
            }
            SessionError::Ledger(error) => {
                return Err(Invariant::Continues { site: NAMES[site], error: error.to_string() });
            }
            other => return Err(Invariant::NoOtherStop { site: NAMES[site], error: other.to_string() }),
        }
        Ok(())
    }
}

enum StartError {
    Session(SessionError),
    Other(String),
}
