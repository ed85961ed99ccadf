//! The life of a process: it is started on what is on its machine's disk, moved from step to step, and ends by itself or as by a power
//! cut.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::{Arc, Once};
use std::time::{Duration, SystemTime};

use padmm_node::fault;
use padmm_node::journal::{EgressError, Journal, Level, Sent};
use padmm_node::ledger::{Opening, SiteLedger};
use padmm_node::mailbox::Mailbox;
use padmm_node::session::{Session, SessionError};
use padmm_node::site::NoiseProvider;
use padmm_privacy::Budget;
use padmm_sim::InsecureSeededNoise;

use super::bug::Bug;
use super::consortium::{DELTA, EPSILON};
use super::disk::SimulatedDisk;
use super::invariant::Invariant;
use super::network::{NetworkTransport, Voice};
use super::world::{Later, World};

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
    pub(super) transport: NetworkTransport,
    mailbox: Arc<Mailbox>,
    /// When it wants to be looked at, whatever arrives.
    pub(super) deadline: Duration,
}

pub(super) enum StartError {
    Session(SessionError),
    Other(String),
}

impl World<'_> {
    /// The process ends as by a power cut, and another one is started later.
    pub(super) fn crash(&mut self, machine: usize, away: Duration, keeps_head: bool) {
        if let Some(process) = self.processes.remove(&machine) {
            self.network.unplug(process.transport.id);
            self.machines[machine].disk.crash(keeps_head);
            self.tally.crashes += 1;
            self.at(away, Later::Start(machine));
        }
    }

    pub(super) fn start(&mut self, machine: usize) -> Result<(), Invariant> {
        let is_never_again = self.stopped.contains_key(&machine) || self.machines[machine].is_removed;
        if is_never_again || self.processes.contains_key(&machine) {
            return Ok(());
        }
        let started = self.living(machine, |world| world.process(machine));
        match started {
            None => self.at(Duration::from_millis(500), Later::Start(machine)),
            Some(Ok(process)) => {
                // It may have begun in the step that its last process did not outlive.
                if process.session.is_started() {
                    self.begun.insert(self.machines[machine].site);
                }
                self.processes.insert(machine, process);
            }
            Some(Err(StartError::Session(error))) => self.stop(machine, error)?,
            Some(Err(StartError::Other(error))) => {
                return Err(Invariant::Continues { site: self.name(machine), error });
            }
        }
        Ok(())
    }

    /// Does something as a process on the machine; none if that does not live to the end of it.
    fn living<T>(&mut self, machine: usize, what: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let armed = self.armed.remove(&machine);
        POINTS.set(armed.map(|(points, _, _)| points));
        let result = catch_unwind(AssertUnwindSafe(|| what(self)));
        let left = POINTS.take();
        match result {
            Ok(value) => {
                if let (Some((_, away, keeps_head)), Some(left)) = (armed, left) {
                    self.armed.insert(machine, (left, away, keeps_head));
                }
                Some(value)
            }
            Err(panic) if panic.is::<Crash>() => {
                let (_, away, keeps_head) = armed.expect("only an armed process crashes");
                self.crash(machine, away, keeps_head);
                None
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    fn process(&self, machine: usize) -> Result<Process, StartError> {
        let (disk, path) = (&self.machines[machine].disk, SimulatedDisk::path());
        let (site, is_copy) = (self.machines[machine].site, self.machines[machine].is_copy);
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
        let seed = self.noise_seed(machine);
        let noise = NoiseProvider::for_tests(move |site, drawn| {
            Box::new(InsecureSeededNoise::new(seed, 0, site.0).after(drawn))
        });
        let mut setup = prepared
            .session(&noise, Arc::clone(records), ledger, Arc::new(Silent), SystemTime::now())
            .map_err(|e| other(&e))?;
        if self.bug == Some(Bug::RollbackProofSkipped) {
            setup.has_elsewhere = Box::new(|_, _, _| true);
        }
        let outbox = Arc::clone(&setup.outbox);
        let session = Session::new(setup, self.now).map_err(StartError::Session)?;
        let mailbox = Arc::new(Mailbox::new(self.n_sites()));
        let voice = Voice::Session { outbox, mailbox: Arc::clone(&mailbox) };
        let id = self.network.plug(site, voice, is_copy);
        self.wire.register(id, site, disk.clone());
        let copies_of_requests = if self.bug == Some(Bug::RequestWithoutBackOff) { 100 } else { 1 };
        let transport = NetworkTransport { id, network: self.network.clone(), copies_of_requests };
        Ok(Process { session, transport, mailbox, deadline: self.now })
    }

    /// What is drawn again is not what was drawn before, nor what is drawn elsewhere.
    fn noise_seed(&self, machine: usize) -> u64 {
        let put_back = self.put_back.get(&machine).copied().unwrap_or(0);
        let copy = if self.machines[machine].is_copy { machine as u64 } else { 0 };
        let redraws = if self.bug == Some(Bug::RedrawAfterCrash) { self.tally.crashes } else { 0 };
        7 + put_back + 1000 * redraws + 1_000_000 * copy
    }

    pub(super) fn step(&mut self) -> Result<(), Invariant> {
        let machines: Vec<usize> = self.processes.keys().copied().collect();
        for machine in machines {
            let Some(process) = self.processes.get(&machine) else { continue };
            let has_to = process.deadline <= self.now || !process.mailbox.is_empty();
            if !has_to || self.hanging.contains_key(&machine) {
                continue;
            }
            let now = self.now;
            let stepped = self.living(machine, |world| {
                let process = world.processes.get_mut(&machine).expect("it is there");
                let Process { session, transport, mailbox, deadline } = process;
                session.step(now, mailbox, transport)?;
                *deadline = session.next_deadline(now);
                let outcome = session.outcome();
                if outcome.is_some() {
                    session.finish()?;
                }
                Ok(outcome)
            });
            self.check_start(machine)?;
            match stepped {
                None | Some(Ok(None)) => {}
                Some(Ok(Some(outcome))) => {
                    let bits: Vec<u64> = outcome.smoothed.as_slice().iter().map(|v| v.to_bits()).collect();
                    if *self.models.entry(machine).or_insert_with(|| bits.clone()) != bits {
                        return Err(Invariant::OneModel { site: self.name(machine) });
                    }
                }
                Some(Err(error)) => {
                    if let Some(process) = self.processes.remove(&machine) {
                        self.network.hang_up(process.transport.id);
                    }
                    self.stop(machine, error)?;
                }
            }
        }
        Ok(())
    }

    /// A site has stopped: for good, or until somebody has seen to its disk.
    fn stop(&mut self, machine: usize, error: SessionError) -> Result<(), Invariant> {
        let may_be_old = self.has_copy(self.machines[machine].site) || self.put_back.contains_key(&machine);
        match error {
            SessionError::Ledger(_) | SessionError::Agent(_)
                if self.machines[machine].disk.has_new_fault() =>
            {
                self.machines[machine].disk.crash(true);
                self.at(Duration::from_secs(1), Later::Start(machine));
            }
            SessionError::OldLedger { .. } if may_be_old => drop(self.stopped.insert(machine, error)),
            SessionError::Alone { .. } | SessionError::LeftBehind { .. }
                if self.consortium.silence.limit().is_some() =>
            {
                self.stopped.insert(machine, error);
            }
            SessionError::Ledger(error) => {
                return Err(Invariant::Continues { site: self.name(machine), error: error.to_string() });
            }
            other => {
                return Err(Invariant::NoOtherStop { site: self.name(machine), error: other.to_string() });
            }
        }
        Ok(())
    }
}
