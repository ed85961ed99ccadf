//! Waiting: asking for what is missing, looking for signs of life, and saying who is waited for.

use std::time::Duration;

use padmm_core::message::Stage;

use super::{LAST_WANT, Session, SessionError, Silence, WAITING_NOTE, place_name};
use crate::frame::Frame;
use crate::journal::Level;
use crate::session::peer::Peer;
use crate::transport::Transport;

impl Session {
    /// Asks for what is missing, and looks for signs of life.
    pub(super) fn tick(&mut self, now: Duration, transport: &dyn Transport) -> Result<(), SessionError> {
        let listening = self.agent.place().filter(|place| !place.2);
        if let Some((stage, turn, _)) = listening {
            for peer in self.peers.iter_mut().filter(|p| !p.is_lost) {
                if !peer.held.contains_key(&(stage, turn)) && peer.wants_now(now, LAST_WANT) {
                    transport.send(peer.site(), self.shelf.sign(&Frame::Want { stage, turn }));
                }
            }
        }
        if let Some((Stage::Model, _, true)) = self.agent.place() {
            let lacks_words = self.accepted.len() < self.names.len();
            for peer in self.peers.iter_mut().filter(|p| !p.is_lost) {
                let is_missing = !peer.has_greeted || peer.owes_proof || lacks_words;
                if is_missing && peer.wants_now(now, LAST_WANT) {
                    transport.send(peer.site(), self.shelf.sign(&Frame::WantHello));
                }
            }
        }
        if let Silence::LeaveAfter(limit) = self.silence
            && self.started
        {
            for peer in self.peers.iter_mut().filter(|p| !p.is_lost && !p.is_done) {
                peer.is_leaving |= now.saturating_sub(peer.last_heard) > limit;
            }
            if self.living().any(|p| p.is_leaving) {
                self.go_on(now, transport)?;
            }
        }
        if now >= self.next_note {
            self.next_note = now + WAITING_NOTE;
            if let Some(line) = self.waiting_for(now) {
                self.log(Level::Info, "waiting", &line);
            }
        }
        Ok(())
    }

    /// Who is waited for, in words.
    pub fn waiting_for(&self, now: Duration) -> Option<String> {
        let since = |p: &Peer| {
            format!("{} (silent for {} s)", self.names[p.site()], now.saturating_sub(p.last_heard).as_secs())
        };
        let list = |names: Vec<String>| names.join(", ");
        match self.agent.place() {
            Some((Stage::Model, turn, true)) => {
                let absent: Vec<String> =
                    self.living().filter(|p| !p.has_greeted || p.owes_proof).map(since).collect();
                let is_missing = |i: &usize| !self.accepted.contains_key(&(*i as u16));
                let unsigned: Vec<String> =
                    (0..self.names.len()).filter(is_missing).map(|i| self.names[i].clone()).collect();
                if !absent.is_empty() {
                    Some(format!("before round {turn}: waiting for {} to be there", list(absent)))
                } else if !self.started && !unsigned.is_empty() {
                    Some(format!(
                        "before the start: waiting for the signature of {} on this plan",
                        list(unsigned)
                    ))
                } else {
                    None
                }
            }
            Some((stage, turn, _)) => {
                let missing = |p: &&Peer| !p.held.contains_key(&(stage, turn));
                let missing: Vec<String> = self.living().filter(missing).map(since).collect();
                let waited = now.saturating_sub(self.waiting_since).as_secs();
                (!missing.is_empty()).then(|| {
                    format!("{}: waiting for {}, for {waited} s", place_name(stage, turn), list(missing))
                })
            }
            None => {
                let not_done: Vec<String> = self.living().filter(|p| !p.is_done).map(since).collect();
                (!not_done.is_empty()).then(|| {
                    format!(
                        "finished; staying for {}, which may still need a message (stopping is safe)",
                        list(not_done)
                    )
                })
            }
        }
    }

    /// When something may have to be done without any event.
    pub fn next_deadline(&self, now: Duration) -> Duration {
        // Nobody is asked for anything while this site owes its own word, or has what it needs.
        let place = self.agent.place().filter(|place| !place.2);
        let is_missing =
            |p: &&Peer| !p.is_lost && place.is_some_and(|(s, t, _)| !p.held.contains_key(&(s, t)));
        let wants = self.peers.iter().filter(is_missing).map(Peer::next_want);
        let silence = match self.silence {
            Silence::LeaveAfter(limit) => limit / 8,
            Silence::Wait => WAITING_NOTE,
        };
        wants.chain([self.next_note, now + silence]).min().unwrap_or(now).max(now + Duration::from_millis(1))
    }
}
