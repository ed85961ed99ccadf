//! One site's side of a run as a machine: frames and the time go in, frames go out, the ledger is kept. It has no socket, no
//! thread and no clock of its own, so the same code runs between machines and, with simulated time and faults, in tests.
//!
//! The rounds are the agent's. What is added here is everything that a network needs: a start only with everybody's word, messages
//! believed by signature alone, repeated requests for what is missing, recovery after a crash, and the loss of a neighbour. And
//! nothing leaves that the neighbours could not tell of later.
//!
//! | question | file |
//! |---|---|
//! | what is sent, in which frames | `send` |
//! | when a release may leave | `clearance` |
//! | what is believed of what arrives | `receive` |
//! | what is done when nothing arrives | `timers` |
//! | how the run continues without a site | `departure` |
//! | how it continues after a crash | `replay` |
//! | what is known of a neighbour, and of who is heard | `peer` |
//! | what sites have said to all, and what of it outlives a crash | `words` |
//! | what people are told of all that | `status` |

mod clearance;
mod departure;
mod error;
mod peer;
mod receive;
mod replay;
mod send;
mod status;
mod timers;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use padmm_core::agent::{Agent, Outcome, Phase};
use padmm_core::algorithm::Audience;
use padmm_core::graph::Graph;
use padmm_core::message::{SiteIndex, Stage, Turn};

use crate::contract::Silence;
use crate::frame::{Accepted, Origin, Ready};
use crate::identity::PublicKey;
use crate::journal::{Journal, Level};
use crate::ledger::{RunStart, SiteLedger};
use crate::mailbox::{Mailbox, NetworkEvent};
use crate::outbox::{Bytes, Outbox};
use crate::transport::Transport;

use clearance::Pending;
pub use error::SessionError;
pub use peer::Neighbour;
use peer::{Backoff, PeerState, Speaker};
pub use status::{PeerStatus, SessionStatus};

/// A site's word that it continues without a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    /// The site whose word it is.
    pub reporter: SiteIndex,
    /// The neighbour that is left behind.
    pub lost: SiteIndex,
    /// The first turn that the reporter computes without it.
    pub turn: Turn,
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
    /// Everybody that this site exchanges frames with.
    pub neighbours: Vec<Neighbour>,
    /// Who is whose neighbour.
    pub graph: Graph,
    /// The grids of every site's releases, round by round: a release must be on that of the plan.
    pub grids: Vec<Vec<i32>>,
    /// What the plan says about a neighbour that gives no sign of life.
    pub silence: Silence,
    /// The words on the plan that are known already, this site's own among them.
    pub accepted: Vec<Accepted>,
    /// Checks those that arrive over the network.
    pub check_accepted: CheckAccepted,
    /// For a neighbour that greets with another plan.
    pub compare_plans: ComparePlans,
    /// Looks into the site's other ledgers.
    pub has_elsewhere: HasElsewhere,
    /// Exact ε after each round, for the log.
    pub epsilons: Vec<f64>,
    /// Before its first round; its gate is on the ledger.
    pub agent: Agent,
    /// Shared with the agent's gate, which writes every charge and release to it.
    pub ledger: Arc<Mutex<SiteLedger>>,
    /// Shared with the transport, which answers requests from it.
    pub outbox: Arc<Outbox>,
    /// Log lines, and every payload that leaves.
    pub journal: Arc<dyn Journal>,
}

/// A neighbour that asks for a greeting more often than this does not get one each time.
const SOONEST_GREETING: Duration = Duration::from_millis(100);
/// How long a question is left at most before it is asked again, unless answers take longer than that.
const SLOWEST_RETRY: Duration = Duration::from_secs(2);
/// For how long after a start a finished site tries to tell neighbours that it is done.
const FAREWELL: Duration = Duration::from_secs(10);
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
    peers: Vec<PeerState>,
    /// Those whose messages are heard: the neighbours, or all other sites where releases or averages are passed on.
    speakers: Vec<Speaker>,
    graph: Graph,
    grids: Vec<Vec<i32>>,
    accepted: BTreeMap<SiteIndex, Accepted>,
    /// Sites that have said that all their edges work.
    ready: BTreeMap<SiteIndex, Ready>,
    /// Our newest release, as long as not every neighbour has it in writing.
    pending: Option<Pending>,
    check_accepted: CheckAccepted,
    compare_plans: ComparePlans,
    has_elsewhere: HasElsewhere,
    agent: Agent,
    ledger: Arc<Mutex<SiteLedger>>,
    outbox: Arc<Outbox>,
    journal: Arc<dyn Journal>,
    epsilons: Vec<f64>,
    departures: BTreeMap<Departure, Bytes>,
    /// Signed words of neighbours that they have their model.
    finished: BTreeMap<SiteIndex, Bytes>,
    /// When to say again which edges are lost.
    telling: Backoff,
    /// Which departure is told first the next time.
    told_from: usize,
    /// Whether the run has been entered in the ledger with everybody's word.
    started: bool,
    done: bool,
    refused: BTreeMap<(SiteIndex, &'static str), u64>,
    next_note: Duration,
    waiting_since: Duration,
    started_at: Duration,
}

impl Session {
    /// Replays everything that the ledger holds of this run, and then stands where the last process stopped.
    pub fn new(setup: SessionSetup, now: Duration) -> Result<Self, SessionError> {
        let SessionSetup { names, start, key, neighbours, silence, accepted, outbox, .. } = setup;
        let run = start.run.clone();
        let is_averaged = setup.agent.averaged_over().is_some();
        let others = (0..names.len()).map(SiteIndex).filter(|&site| site != outbox.origin().sender);
        let speakers: Vec<Speaker> = others
            .map(|site| {
                let is_neighbour = || neighbours.iter().any(|n| n.site == site);
                let is_heard = setup.agent.audience() == Audience::Everybody || is_neighbour();
                Speaker::new(site, is_heard, is_averaged, now)
            })
            .filter(|s| !s.is_lost || !s.is_left_out)
            .collect();
        let started = {
            let ledger = setup.ledger.lock().expect("the ledger's holders do not panic");
            let state = ledger.state().run(&run);
            if let Some(&round) = state.and_then(|s| s.forfeited().first().copied()).as_ref() {
                return Err(SessionError::Forfeited { round });
            }
            state.is_some()
        };
        let mut session = Self {
            names,
            run,
            start,
            origin: outbox.origin(),
            key,
            silence,
            peers: neighbours.into_iter().map(|n| PeerState::new(n, now)).collect(),
            speakers,
            graph: setup.graph,
            grids: setup.grids,
            accepted: accepted.into_iter().map(|a| (a.site, a)).collect(),
            ready: BTreeMap::new(),
            pending: None,
            check_accepted: setup.check_accepted,
            compare_plans: setup.compare_plans,
            has_elsewhere: setup.has_elsewhere,
            agent: setup.agent,
            ledger: setup.ledger,
            outbox,
            journal: setup.journal,
            epsilons: setup.epsilons,
            departures: BTreeMap::new(),
            finished: BTreeMap::new(),
            telling: Backoff::new(now),
            told_from: 0,
            started,
            done: false,
            refused: BTreeMap::new(),
            next_note: now + WAITING_NOTE / 3,
            waiting_since: now,
            started_at: now,
        };
        session.replay()?;
        session.mark_progress();
        if session.started {
            // The run is in the ledger, so all edges worked; a neighbour that has not begun may still need our word.
            session.say_ready();
            let line = match session.agent.phase().turn() {
                Some(turn) => format!("continuing with {}", turn_name(turn)),
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

    fn me(&self) -> SiteIndex {
        self.origin.sender
    }

    fn name(&self, site: SiteIndex) -> &str {
        &self.names[site.0]
    }

    fn peer(&mut self, site: SiteIndex) -> Option<&mut PeerState> {
        self.peers.iter_mut().find(|p| p.site() == site)
    }

    fn speaker(&mut self, site: SiteIndex) -> Option<&mut Speaker> {
        self.speakers.iter_mut().find(|s| s.site == site)
    }

    /// Whether releases are passed on, so that every site hears all others.
    fn hears_everybody(&self) -> bool {
        self.agent.audience() == Audience::Everybody
    }

    fn living(&self) -> impl Iterator<Item = &PeerState> {
        self.peers.iter().filter(|p| !p.is_lost)
    }

    /// Works through what has arrived, and does what can be done at this time.
    pub fn step(
        &mut self,
        now: Duration,
        mailbox: &Mailbox,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        // The number is limited between two turns: a flood must not keep the site from its rounds.
        for _ in 0..256 {
            let Some(event) = mailbox.take() else { break };
            self.handle(now, event, transport)?;
        }
        self.keep_announcements(transport)?;
        self.advance(now, transport)?;
        self.tick(now, transport)
    }

    /// Handles one event from the network.
    pub fn handle(
        &mut self,
        now: Duration,
        event: NetworkEvent,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        match event {
            NetworkEvent::Frame { from, bytes } => self.handle_frame(now, from, bytes, transport),
            NetworkEvent::Connected { site } => {
                // A neighbour that was restarted with its clock set back counts from lower.
                if let Some(peer) = self.peer(site) {
                    (peer.counter, peer.is_connected) = (0, true);
                }
                self.greet(site, transport)
            }
            NetworkEvent::Disconnected { site, done } => {
                if let Some(peer) = self.peer(site) {
                    peer.is_done |= done;
                    peer.is_connected = false;
                }
                Ok(())
            }
            NetworkEvent::Noted { what } => {
                self.log(Level::Warning, "refused", &what);
                Ok(())
            }
        }
    }

    /// Sends what is owed, for as long as something is owed and may leave.
    fn advance(&mut self, now: Duration, transport: &dyn Transport) -> Result<(), SessionError> {
        loop {
            self.apply_departures(now, transport)?;
            self.clear(transport)?;
            self.note_ready(transport);
            match self.agent.phase() {
                Phase::Sending(turn) => {
                    if self.living().all(|p| p.is_leaving) {
                        // Nobody would receive it: nothing is charged for that.
                        return Err(self.alone(turn));
                    }
                    if !self.may_send(turn.stage)? {
                        return Ok(());
                    }
                    self.outbox.set_state(self.agent.state(turn));
                    let message = match self.agent.poll_message() {
                        Ok(message) => message,
                        Err(error) => {
                            // A round that failed after its charge has been paid for.
                            if let Some(round) = self.agent.round_of(turn) {
                                let reason = "the round failed; see the site's log";
                                self.ledger().forfeit_reserved(&self.run, round, reason)?;
                            }
                            return Err(error.into());
                        }
                    };
                    if let Some(message) = message {
                        self.send(now, message, transport)?;
                    }
                    // Where all neighbours were faster, the turn is over as soon as this site has sent its message.
                    self.finish_turn()?;
                    self.waiting_since = now;
                    self.next_note = now + WAITING_NOTE / 3;
                    self.speakers.iter_mut().for_each(|s| s.await_message(now));
                    self.mark_progress();
                }
                Phase::Receiving(_) => return Ok(()),
                Phase::Done => {
                    if !self.done {
                        self.done = true;
                        self.mark_progress();
                        // Sent at once: neighbours that learn of it only from the next sign of life may stay for a site that has left.
                        let status = self.outbox.status();
                        for peer in self.peers.iter_mut().filter(|p| !p.is_lost) {
                            transport.send(peer.site(), Arc::clone(&status));
                            peer.is_told = peer.is_connected;
                        }
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Whether every neighbour that is left has greeted us with the same plan and has no objection to our ledger.
    fn hears_all(&self) -> bool {
        self.living().filter(|p| !p.is_leaving).all(|p| p.has_greeted && !p.owes_proof)
    }

    /// Nothing is sent while our newest release waits for receipts: an average of it would tell of it. A new release needs
    /// everybody that is left besides; and the first one needs every site's word on the plan, and that all its edges work; a site that is left behind has none.
    fn may_send(&mut self, stage: Stage) -> Result<bool, SessionError> {
        if self.pending.is_some() {
            return Ok(false);
        }
        if stage == Stage::Average {
            return Ok(true);
        }
        self.begin_if_all_are_ready()?;
        Ok(self.started && self.hears_all())
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

    /// Whether every neighbour that is left has its model too, and knows that this site does. One that is not there any more has no
    /// use for that: after a start, neighbours are given a moment to be there.
    pub fn everybody_is_done(&self, now: Duration) -> bool {
        let is_late = now >= self.started_at + FAREWELL;
        self.done && self.living().all(|p| p.is_done && (p.is_told || is_late))
    }

    /// Who continued without whom, by all that is known here.
    pub fn departures(&self) -> BTreeSet<Departure> {
        self.departures.keys().copied().collect()
    }

    /// Whether every site's word is known and the run has begun.
    pub fn is_started(&self) -> bool {
        self.started
    }
}

/// A turn as people know it; between sites every turn of the algorithm is a round of its own.
pub fn turn_name(turn: Turn) -> String {
    match turn.stage {
        Stage::Model => format!("round {}", turn.number),
        Stage::Average => turn.to_string(),
    }
}
