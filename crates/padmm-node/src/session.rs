//! One site's side of a run as a machine: frames and the time go in, frames go out, the ledger is kept. It has no socket, no
//! thread and no clock of its own, so the same code runs between machines and, with time and faults made up, in tests.
//!
//! The rounds are the agent's. What is added here is everything that a network needs: a start only with everybody's word, messages
//! believed by signature alone, asking again for what is missing, going on after a crash, and the loss of a neighbour. And nothing
//! leaves that the neighbours could not tell of later.

mod clearance;
mod hear;
mod loss;
mod peer;
mod replay;
mod wait;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use padmm_core::agent::{Agent, AgentError, Outcome};
use padmm_core::message::{Content, Outgoing, Stage};
use padmm_privacy::words::epsilon_text;
use padmm_privacy::{Payload, PrivacyError};

use crate::fault::{self, Point};
use crate::frame::{self, Accepted, Frame, Origin, PlanDigest, Ready, Speech};
use crate::identity::PublicKey;
use crate::journal::{Journal, Level, Sent};
use crate::ledger::{LedgerError, RunStart, SiteLedger};
use crate::mailbox::Event;
use crate::shelf::{Bytes, Shelf};
use crate::transport::Transport;

use clearance::Pending;
pub use peer::Neighbour;
use peer::Peer;

/// What to do about a neighbour that gives no sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Wait for it, and say so.
    Wait,
    /// Go on without it after so long.
    LeaveAfter(Duration),
}

/// A neighbour was lost, by somebody's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    /// Who went on without it.
    pub reporter: usize,
    /// Who was lost.
    pub lost: usize,
    /// Part of the run.
    pub stage: Stage,
    /// The first turn without it.
    pub turn: u32,
}

/// Why a session stops.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The agent or the gate.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Two sites hold different plans.
    #[error("{site} holds another plan: {}. Nothing was spent; agree on one plan, accept it everywhere, and start again", differences.join("; "))]
    OtherPlan {
        /// Who.
        site: String,
        /// In what the plans differ, field by field.
        differences: Vec<String>,
    },
    /// The ledger is older than what a neighbour has seen of it.
    #[error(
        "{site} shows release number {entry} of this ledger, signed with this site's own key, and the ledger here does not have it: it was put back from a backup, or changed, or it is a ledger of other data that was moved away. Nothing more may leave. Bring back the newest ledger file; if it is lost, this data set's budget must count as spent"
    )]
    OldLedger {
        /// Who shows it.
        site: String,
        /// The entry's number.
        entry: u64,
    },
    /// Everybody is gone.
    #[error(
        "no neighbour is left in {place}: {who}. What was released so far stays charged; result.json says how far the run came, and there is no model of it"
    )]
    Alone {
        /// Stage and turn.
        place: String,
        /// Who was lost.
        who: String,
    },
    /// A round failed in an earlier process, after its charge.
    #[error(
        "round {round} of this run failed earlier and stays charged; the run cannot go on from there. Make a new plan with a larger penalty or a looser tolerance"
    )]
    Forfeited {
        /// The round.
        round: u32,
    },
    /// The stored messages do not fit the run.
    #[error(
        "what the ledger holds of this run does not fit it ({reason}): verify the ledger with `padmm ledger verify`"
    )]
    Stored {
        /// Why.
        reason: String,
    },
}

impl From<PrivacyError> for SessionError {
    fn from(error: PrivacyError) -> Self {
        SessionError::Agent(error.into())
    }
}

/// Checks a site's word on the contract: place, identity key, signature.
pub type CheckAccepted = Box<dyn Fn(&Accepted) -> bool + Send>;
/// Names the fields in which another plan's text differs from ours.
pub type ComparePlans = Box<dyn Fn(&str) -> Vec<String> + Send>;

/// Whether another ledger of this site has, at entry `.1`, a release whose frame has the SHA-256 `.2`; the ledger with the first
/// entry `.0`, where that is known, and never a copy of the one that is in use.
pub type HasElsewhere = Box<dyn Fn(Option<[u8; 32]>, u64, &[u8; 32]) -> bool + Send>;

/// Everything that a session starts from.
pub struct SessionSetup {
    /// Names of all sites, in the contract's order.
    pub names: Vec<String>,
    /// The run as it is entered in the ledger.
    pub start: RunStart,
    /// The public half of this site's identity key.
    pub key: PublicKey,
    /// The neighbours.
    pub neighbours: Vec<Neighbour>,
    /// What is done about silence.
    pub silence: Silence,
    /// The words on the plan that are known already, this site's own among them.
    pub accepted: Vec<Accepted>,
    /// Checks further ones.
    pub check_accepted: CheckAccepted,
    /// Compares plans.
    pub compare_plans: ComparePlans,
    /// Looks into the site's other ledgers.
    pub has_elsewhere: HasElsewhere,
    /// Exact ε after each round, for the log.
    pub epsilons: Vec<f64>,
    /// Before its first round; its gate is on the ledger.
    pub agent: Agent,
    /// The ledger.
    pub ledger: Arc<Mutex<SiteLedger>>,
    /// What is handed out.
    pub shelf: Arc<Shelf>,
    /// Where things are written down.
    pub journal: Arc<dyn Journal>,
}

/// How often a missing message is asked for, at first and at most.
const FIRST_WANT: Duration = Duration::from_millis(100);
const LAST_WANT: Duration = Duration::from_secs(2);
/// How often the log says who is waited for.
const WAITING_NOTE: Duration = Duration::from_secs(15);

/// One site's side of a run.
pub struct Session {
    names: Vec<String>,
    run: String,
    start: RunStart,
    origin: Origin,
    key: PublicKey,
    silence: Silence,
    peers: Vec<Peer>,
    accepted: BTreeMap<u16, Accepted>,
    /// Sites that have said that all their edges work.
    ready: BTreeMap<u16, Ready>,
    /// Our newest release, as long as not every neighbour has it in writing.
    pending: Option<Pending>,
    check_accepted: CheckAccepted,
    compare_plans: ComparePlans,
    has_elsewhere: HasElsewhere,
    agent: Agent,
    ledger: Arc<Mutex<SiteLedger>>,
    shelf: Arc<Shelf>,
    journal: Arc<dyn Journal>,
    epsilons: Vec<f64>,
    departures: BTreeMap<Departure, Bytes>,
    /// Whether the run has been entered in the ledger with everybody's word.
    started: bool,
    done: bool,
    refused: BTreeMap<(usize, &'static str), u64>,
    next_note: Duration,
    waiting_since: Duration,
}

impl Session {
    /// Goes through everything that the ledger holds of this run, and is then where the last process was.
    pub fn new(setup: SessionSetup, now: Duration) -> Result<Self, SessionError> {
        let SessionSetup { names, start, key, neighbours, silence, accepted, shelf, .. } = setup;
        let run = start.run.clone();
        let started = {
            let ledger = setup.ledger.lock().expect("the ledger's holders do not panic");
            let state = ledger.state().run(&run);
            if let Some(&round) = state.and_then(|s| s.forfeited().first().copied()).as_ref() {
                return Err(SessionError::Forfeited { round });
            }
            state.is_some()
        };
        let mut session = Session {
            names,
            run,
            start,
            origin: shelf.origin(),
            key,
            silence,
            peers: neighbours.into_iter().map(|n| Peer::new(n, now)).collect(),
            accepted: accepted.into_iter().map(|a| (a.site, a)).collect(),
            ready: BTreeMap::new(),
            pending: None,
            check_accepted: setup.check_accepted,
            compare_plans: setup.compare_plans,
            has_elsewhere: setup.has_elsewhere,
            agent: setup.agent,
            ledger: setup.ledger,
            shelf,
            journal: setup.journal,
            epsilons: setup.epsilons,
            departures: BTreeMap::new(),
            started,
            done: false,
            refused: BTreeMap::new(),
            next_note: now + WAITING_NOTE / 3,
            waiting_since: now,
        };
        session.replay()?;
        session.mark_place();
        if session.started {
            // The run is in the ledger, so all edges worked; a neighbour that has not begun may still need our word.
            session.say_ready();
            let line = match session.agent.place() {
                Some((stage, turn, _)) => format!("going on with {}", place_name(stage, turn)),
                None => "this run is finished here; its model is written again".to_owned(),
            };
            session.log(Level::Info, "resumed", &line);
        }
        Ok(session)
    }

    fn ledger(&self) -> MutexGuard<'_, SiteLedger> {
        self.ledger.lock().expect("the ledger's holders do not panic")
    }

    fn log(&self, level: Level, event: &'static str, message: &str) {
        self.journal.log(level, event, message);
    }

    fn me(&self) -> usize {
        usize::from(self.origin.sender)
    }

    fn peer(&mut self, site: usize) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|p| p.site() == site)
    }

    fn living(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|p| !p.is_lost)
    }

    /// Works off what has arrived, and does what can be done at this time.
    pub fn step(&mut self, now: Duration, transport: &dyn Transport) -> Result<(), SessionError> {
        // Between two turns at most so much is taken in: a flood must not keep the site from its rounds.
        for _ in 0..256 {
            let Some(event) = transport.mailbox().take() else { break };
            self.handle(now, event, transport)?;
        }
        self.keep_announcements(transport)?;
        self.go_on(now, transport)?;
        self.tick(now, transport)
    }

    /// Takes in one event.
    pub fn handle(
        &mut self,
        now: Duration,
        event: Event,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        match event {
            Event::Frame { from, bytes } => self.handle_frame(now, from, bytes, transport),
            Event::Connected { site } => {
                // A neighbour that was started again with its clock put back counts from lower.
                if let Some(peer) = self.peer(site) {
                    peer.counter = 0;
                }
                self.greet(site, transport);
                Ok(())
            }
            Event::Disconnected { site, done } => {
                if let Some(peer) = self.peer(site) {
                    peer.is_done |= done;
                }
                Ok(())
            }
            Event::Noted { what } => {
                self.log(Level::Warning, "refused", &what);
                Ok(())
            }
        }
    }

    /// Speaks while there is something to say and it may be said.
    fn go_on(&mut self, now: Duration, transport: &dyn Transport) -> Result<(), SessionError> {
        loop {
            self.apply_losses(transport)?;
            self.clear(transport);
            self.note_ready(transport);
            match self.agent.place() {
                Some((stage, turn, true)) => {
                    if self.living().all(|p| p.is_leaving) {
                        // Nobody would hear it: nothing is charged for that.
                        return Err(self.alone(stage, turn));
                    }
                    if !self.may_speak(stage)? {
                        return Ok(());
                    }
                    let message = match self.agent.poll_message() {
                        Ok(message) => message,
                        Err(error) => {
                            // A round that failed after its charge has been paid for.
                            let round = self.agent.round_at(turn);
                            self.ledger().forfeit_reserved(
                                &self.run,
                                round,
                                "the round failed; see the site's log",
                            )?;
                            return Err(error.into());
                        }
                    };
                    if let Some(message) = message {
                        self.speak(now, message, transport)?;
                    }
                    // Where all neighbours were faster, the turn is over as soon as this site has spoken.
                    self.conclude()?;
                    self.waiting_since = now;
                    self.next_note = now + WAITING_NOTE / 3;
                    self.peers.iter_mut().for_each(|p| p.wanting.again(now + FIRST_WANT, FIRST_WANT));
                    self.mark_place();
                }
                Some(_) => return Ok(()),
                None => {
                    if !self.done {
                        self.done = true;
                        self.mark_place();
                        // Said at once: neighbours that hear of it only from the next sign of life may stay for a site that has left.
                        let status = self.shelf.status();
                        self.living().for_each(|p| transport.send(p.site(), Arc::clone(&status)));
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Whether every neighbour that is left has been heard, with the same plan, and is content with our ledger.
    fn hears_all(&self) -> bool {
        self.living().filter(|p| !p.is_leaving).all(|p| p.has_greeted && !p.owes_proof)
    }

    /// Nothing is said while our newest release waits for receipts: an average of it would tell of it. A new release needs
    /// everybody that is left besides; and the first one needs every site's word on the plan, and that all its edges work.
    fn may_speak(&mut self, stage: Stage) -> Result<bool, SessionError> {
        if self.pending.is_some() {
            return Ok(false);
        }
        if stage == Stage::Average {
            return Ok(true);
        }
        let (heard, n) = (self.hears_all(), self.names.len());
        if !self.started && self.accepted.len() == n && self.ready.len() == n && heard {
            let start = &self.start;
            self.ledger.lock().expect("the ledger's holders do not panic").start_run(start)?;
            self.started = true;
            let line = "every site has accepted this plan and hears all its neighbours; the run starts";
            self.log(Level::Info, "start", line);
        }
        Ok(self.started && heard)
    }

    fn say_ready(&mut self) {
        self.ready.insert(self.origin.sender, self.shelf.ready());
    }

    /// Says, once it is so, that all our edges work.
    fn note_ready(&mut self, transport: &dyn Transport) {
        if !self.ready.contains_key(&self.origin.sender) && self.hears_all() {
            self.say_ready();
            self.tell_words(transport);
        }
    }

    /// Says a message of a turn: a release is announced first, and what is free leaves at once.
    fn speak(
        &mut self,
        now: Duration,
        message: Outgoing,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let (stage, bytes) = self.bytes_of(&message)?;
        if matches!(message.content, Content::Model(_)) {
            return self.announce(now, bytes, transport);
        }
        self.deliver(stage, message.turn, bytes, transport);
        Ok(())
    }

    /// Hands a message to every neighbour that is left.
    fn deliver(&mut self, stage: Stage, turn: u32, bytes: Bytes, transport: &dyn Transport) {
        self.shelf.put(stage, turn, Arc::clone(&bytes));
        fault::at(Point::SendBefore);
        for (k, site) in self.living().map(Peer::site).enumerate() {
            if k == 1 {
                fault::at(Point::SendBetween);
            }
            self.journal.sent(&Sent { to: site, stage, turn, bytes: &bytes, again: false });
            transport.send(site, Arc::clone(&bytes));
        }
        fault::at(Point::SendAfter);
        if stage == Stage::Model {
            let spent = self
                .epsilons
                .get(turn as usize - 1)
                .map_or(String::new(), |e| format!(", epsilon so far {}", epsilon_text(*e)));
            let line = format!(
                "round {turn} of {}: {} bytes to each neighbour{spent}",
                self.start.rounds,
                bytes.len()
            );
            self.log(Level::Info, "round", &line);
        }
    }

    /// The bytes of a message: a release's are in the ledger, what is free is signed here.
    fn bytes_of(&self, message: &Outgoing) -> Result<(Stage, Bytes), SessionError> {
        let free = |stage, values: &[f64]| {
            let payload = Payload::Plain(values.to_vec());
            let (origin, turn) = (self.origin, message.turn);
            let speech = Speech { origin, stage, turn, entry: 0, head: [0; 32], payload };
            (stage, self.shelf.sign(&Frame::Speech(speech)))
        };
        match &message.content {
            Content::Model(release) => {
                let missing =
                    || SessionError::Stored { reason: format!("round {} is missing", release.round()) };
                let bytes = self.ledger().release_bytes(&self.run, release.round())?.ok_or_else(missing)?;
                Ok((Stage::Model, bytes.into()))
            }
            Content::Derived(values) => Ok(free(Stage::Model, values.as_slice())),
            Content::Average(values) => Ok(free(Stage::Average, values.as_slice())),
        }
    }

    fn mark_place(&self) {
        let (stage, turn) = self.agent.place().map_or((Stage::Average, u32::MAX), |(s, t, _)| (s, t));
        self.shelf.set_place(stage, turn, self.done);
    }

    /// The models, once the run is over.
    pub fn outcome(&self) -> Option<Outcome> {
        self.agent.outcome()
    }

    /// Enters the end of the run in the ledger, once its model is kept.
    pub fn finish(&mut self) -> Result<(), SessionError> {
        Ok(self.ledger().finish_run(&self.run)?)
    }

    /// The agent, for what is public about it and for the site's own eyes.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Whether every neighbour that is left has its model too.
    pub fn everybody_is_done(&self) -> bool {
        self.done && self.living().all(|p| p.is_done)
    }

    /// Who went on without whom, by all that is known here.
    pub fn departures(&self) -> BTreeSet<Departure> {
        self.departures.keys().copied().collect()
    }

    /// Whether every site's word is known and the run has begun.
    pub fn is_started(&self) -> bool {
        self.started
    }
}

/// A stage as the ledger has it.
pub(crate) fn stage_number(stage: Stage) -> u32 {
    u32::from(stage == Stage::Average)
}

/// A turn in words.
pub fn place_name(stage: Stage, turn: u32) -> String {
    match stage {
        Stage::Model => format!("round {turn}"),
        Stage::Average => format!("averaging turn {turn}"),
    }
}

/// The plan and the entry of a stored release; none if it is none, or was free.
pub fn release_of(bytes: &[u8]) -> Option<(PlanDigest, u64)> {
    match frame::Frame::decode(bytes) {
        Ok(Frame::Speech(speech)) if speech.entry > 0 => Some((speech.origin.plan, speech.entry)),
        _ => None,
    }
}
