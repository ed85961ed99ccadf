//! Sending: what a neighbour is told, in which frames, and in which order.

use std::sync::Arc;
use std::time::Duration;

use padmm_core::message::{Content, Outgoing, SiteIndex, Stage, Turn};
use padmm_privacy::Payload;
use padmm_privacy::words::epsilon_text;

use super::peer::PeerState;
use super::{Session, SessionError};
use crate::fault::{self, Point};
use crate::frame::{Frame, ModelFrame};
use crate::journal::{Level, Sent};
use crate::outbox::Bytes;
use crate::transport::Transport;

impl Session {
    /// Tells a neighbour that has connected who we are, what it may have missed, and how far we are.
    pub(super) fn greet(&mut self, site: SiteIndex, transport: &dyn Transport) -> Result<(), SessionError> {
        let Some(peer) = self.peers.iter().find(|p| p.site() == site) else { return Ok(()) };
        self.send_hello(peer, transport);
        if peer.is_lost {
            // A neighbour that was left behind has to know; the greeting has the keys by which others can check that.
            self.departures.values().for_each(|bytes| transport.send(site, Arc::clone(bytes)));
            return Ok(());
        }
        self.announce_to(peer, transport);
        // Others' averages are asked for by whoever lacks them.
        let is_news =
            |&(whose, turn, _): &(SiteIndex, Turn, Bytes)| turn.stage == Stage::Model || whose == self.me();
        for (whose, turn, bytes) in self.outbox.latest(2).into_iter().filter(is_news) {
            self.journal.sent(&Sent { to: site, whose, turn, bytes: &bytes, again: true })?;
            transport.send(site, bytes);
        }
        self.departures.values().for_each(|bytes| transport.send(site, Arc::clone(bytes)));
        let theirs = self.finished.iter().filter(|(whose, _)| self.graph.has_edge(whose.0, site.0));
        theirs.for_each(|(_, bytes)| transport.send(site, Arc::clone(bytes)));
        transport.send(site, self.outbox.status());
        let done = self.done;
        if let Some(peer) = self.peer(site) {
            peer.is_told = done;
        }
        Ok(())
    }

    /// Every greeting shows how far we know that neighbour's ledgers to be: whichever of them arrives, it is shown.
    pub(super) fn send_hello(&self, peer: &PeerState, transport: &dyn Transport) {
        let shown = peer.neighbour.announced.iter().map(|(_, bytes)| *bytes).collect();
        let proof = peer.neighbour.latest.clone();
        let accepted = self.accepted.values().cloned().collect();
        // Who is left behind must not begin: whatever is lost on the way, it never has all words that a start takes. Those on the plan
        // it gets, because keys come with them.
        let is_left = peer.is_lost || peer.is_leaving;
        let ready = if is_left { vec![] } else { self.ready.values().copied().collect() };
        let hello = Frame::Hello { origin: self.origin, proof: proof.is_some(), shown, accepted, ready };
        transport.send(peer.site(), self.outbox.sign(&hello));
        if let Some(proof) = proof {
            transport.send(peer.site(), proof);
        }
    }

    /// Sends the message of a turn: a release is announced first, and what is free leaves at once.
    pub(super) fn send(
        &mut self,
        now: Duration,
        message: Outgoing,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let bytes = self.bytes_of(&message)?;
        if matches!(message.content, Content::Model(_)) {
            return self.announce(now, bytes, transport);
        }
        self.deliver(message.turn, bytes, transport)
    }

    /// Hands a message to every neighbour that is left.
    pub(super) fn deliver(
        &mut self,
        turn: Turn,
        bytes: Bytes,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let whose = self.me();
        self.outbox.put(whose, turn, Arc::clone(&bytes));
        fault::at(Point::SendBefore);
        for (k, site) in self.living().map(PeerState::site).enumerate() {
            if k == 1 {
                fault::at(Point::SendBetween);
            }
            self.journal.sent(&Sent { to: site, whose, turn, bytes: &bytes, again: false })?;
            transport.send(site, Arc::clone(&bytes));
        }
        fault::at(Point::SendAfter);
        if let Some(round) = self.agent.round_of(turn) {
            let spent = self
                .epsilons
                .get(round as usize - 1)
                .map_or(String::new(), |e| format!(", epsilon so far {}", epsilon_text(*e)));
            let line = format!(
                "round {round} of {}: {} bytes to each neighbour{spent}",
                self.start.rounds,
                bytes.len()
            );
            self.log(Level::Info, "round", &line);
        }
        Ok(())
    }

    /// Passes a site's message on to every neighbour but the one that it came from, and to those that ask for it later.
    pub(super) fn pass_on(
        &self,
        whose: SiteIndex,
        turn: Turn,
        from: SiteIndex,
        bytes: Bytes,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        for to in self.living().map(PeerState::site).filter(|&to| to != from && to != whose) {
            self.journal.sent(&Sent { to, whose, turn, bytes: &bytes, again: false })?;
            transport.send(to, Arc::clone(&bytes));
        }
        self.outbox.put(whose, turn, bytes);
        Ok(())
    }

    /// The bytes of a message: a release's are in the ledger, what is free is signed here.
    pub(super) fn bytes_of(&self, message: &Outgoing) -> Result<Bytes, SessionError> {
        match &message.content {
            Content::Model(release) => {
                let missing =
                    || SessionError::Stored { reason: format!("round {} is missing", release.round()) };
                let bytes = self.ledger().release_bytes(&self.run, release.round())?.ok_or_else(missing)?;
                Ok(bytes.into())
            }
            Content::Derived(values) | Content::Average(values) => {
                let payload = Payload::Plain(values.as_slice().to_vec());
                let (origin, turn) = (self.origin, message.turn);
                let free = ModelFrame { origin, turn, entry: 0, head: [0; 32], state: None, payload };
                Ok(self.outbox.sign(&Frame::Model(free)))
            }
        }
    }

    /// Lets signs of life say how far the site is. One that is done is past every turn.
    pub(super) fn mark_progress(&self) {
        let turn = self.agent.phase().turn().unwrap_or(Turn::average(u32::MAX));
        self.outbox.set_progress(turn, self.done);
    }
}
