//! What people are told about a session: how far it is, whom it waits for, and what is known of each neighbour. It changes nothing,
//! and nothing in it is computed from records.

use std::time::Duration;

use padmm_core::agent::Phase;
use padmm_core::message::{SiteIndex, Stage};
use padmm_privacy::{Budget, Epsilon};

use super::peer::PeerState;
use super::{Session, turn_name};

/// A session at one moment.
#[derive(Clone, Debug)]
pub struct SessionStatus {
    /// What it is at, in words.
    pub place: String,
    /// Private rounds whose release is in the ledger.
    pub rounds_released: u32,
    /// Whether every site's word is known and the run has begun.
    pub is_started: bool,
    /// Whether there is a model.
    pub is_done: bool,
    /// Who is waited for, in words; none if nobody is.
    pub waiting: Option<String>,
    /// For how long, as far as the session counts it.
    pub waited: Duration,
    /// Every neighbour, in the plan's order.
    pub peers: Vec<PeerStatus>,
    /// What the releases of this run have cost so far, at the cap's delta.
    pub epsilon_run: Epsilon,
    /// What all runs on these records have cost so far.
    pub epsilon_spent: Epsilon,
    /// What all runs on these records may cost together.
    pub cap: Budget,
}

/// What is known of a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Which of the plan's sites it is.
    pub site: SiteIndex,
    /// Since its last sign of life; none if there was none since this site started.
    pub silent: Option<Duration>,
    /// Its word on the plan is known.
    pub has_signed: bool,
    /// Something of it is waited for: its greeting, its receipt or its message of this turn.
    pub is_awaited: bool,
    /// It has its model.
    pub is_done: bool,
    /// The run continues without it.
    pub is_lost: bool,
}

impl Session {
    /// What people may be told at this moment.
    pub fn status(&self, now: Duration) -> SessionStatus {
        let phase = self.agent.phase();
        let place = match phase {
            _ if !self.started => "before the start".to_owned(),
            Phase::Sending(turn) | Phase::Receiving(turn) => turn_name(turn),
            Phase::Done => "finished".to_owned(),
        };
        let mut peers: Vec<PeerStatus> = self.peers.iter().map(|peer| self.peer_status(peer, now)).collect();
        peers.sort_by_key(|peer| peer.site);
        let ledger = self.ledger();
        let (state, cap) = (ledger.state(), ledger.cap());
        let run = state.run(&self.run);
        SessionStatus {
            place,
            rounds_released: run.map_or(0, |run| run.n_released() as u32),
            is_started: self.started,
            is_done: self.done,
            waiting: self.waiting_for(now),
            waited: now.saturating_sub(self.waiting_since),
            peers,
            epsilon_run: run.map_or(Epsilon::ZERO, |run| run.spending.epsilon(cap.delta)),
            epsilon_spent: state.epsilon_spent(),
            cap,
        }
    }

    fn peer_status(&self, peer: &PeerState, now: Duration) -> PeerStatus {
        let site = peer.site();
        let misses = |speaker: &super::Speaker| match self.agent.phase() {
            Phase::Receiving(turn) => speaker.site == site && speaker.is_missing(turn),
            Phase::Sending(_) | Phase::Done => false,
        };
        let is_before_release =
            matches!(self.agent.phase(), Phase::Sending(turn) if turn.stage == Stage::Model);
        let is_awaited = !peer.is_lost
            && (is_before_release && (!peer.has_greeted || peer.owes_proof)
                || self.pending.is_some() && !peer.has_receipted
                || self.speakers.iter().any(misses)
                || self.done && !peer.is_done);
        PeerStatus {
            site,
            silent: peer.has_greeted.then(|| now.saturating_sub(peer.last_heard)),
            has_signed: self.accepted.contains_key(&site),
            is_awaited,
            is_done: peer.is_done,
            is_lost: peer.is_lost,
        }
    }

    /// A neighbour that is waited for: for how long, and, if nothing has come from it at all, where it was looked for and whether it has
    /// signed, so that a person knows whom to call about what.
    pub(super) fn whereabouts(&self, peer: &PeerState, now: Duration) -> String {
        let (name, silent) = (self.name(peer.site()), now.saturating_sub(peer.last_heard).as_secs());
        if peer.has_greeted {
            return format!("{name} (silent for {silent} s)");
        }
        let place = match peer.neighbour.addresses.join(", ") {
            none if none.is_empty() => "its card has no address, so it has to call".to_owned(),
            addresses => format!("not reached at {addresses}"),
        };
        let word = match self.accepted.contains_key(&peer.site()) {
            true => "it has signed the plan and is offline, or a firewall is between",
            false => "its signature on the plan is not known here",
        };
        format!("{name} (silent for {silent} s: {place}; {word})")
    }
}
