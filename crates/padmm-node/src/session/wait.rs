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
                if !peer.held.contains_key(&(stage, turn)) && peer.wanting.is_due(now, LAST_WANT) {
                    transport.send(peer.site(), self.shelf.sign(&Frame::Want { stage, turn }));
                }
            }
        }
        // Words are passed on from site to site, so one that lacks some asks for them even if it has begun: another that has not may
        // have no other way to get them.
        let n = self.names.len();
        let lacks_words = self.accepted.len() < n || self.ready.len() < n;
        let is_before_release = matches!(self.agent.place(), Some((Stage::Model, _, true)));
        for peer in self.peers.iter_mut().filter(|p| !p.is_lost) {
            let is_missing = is_before_release && (!peer.has_greeted || peer.owes_proof);
            if (is_missing || lacks_words) && peer.asking.is_due(now, LAST_WANT) {
                transport.send(peer.site(), self.shelf.sign(&Frame::WantHello));
            }
        }
        self.announce_again(now, transport);
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
            // Said of the release before, which comes first.
            Some(_) if self.owing_receipts().next().is_some() && self.has_waited(now) => {
                let owing: Vec<String> = self.owing_receipts().map(since).collect();
                Some(format!(
                    "a release is in the ledger and has not left: waiting for {} to confirm it",
                    list(owing)
                ))
            }
            Some((Stage::Model, turn, true)) => {
                let absent: Vec<String> =
                    self.living().filter(|p| !p.has_greeted || p.owes_proof).map(since).collect();
                let without = |words: &dyn Fn(u16) -> bool| -> Vec<String> {
                    (0..self.names.len())
                        .filter(|&i| !words(i as u16))
                        .map(|i| self.names[i].clone())
                        .collect()
                };
                let unsigned = without(&|i| self.accepted.contains_key(&i));
                let unready = without(&|i| self.ready.contains_key(&i));
                if !absent.is_empty() {
                    let edge = |p: &Peer| format!("{}-{}", self.names[self.me()], self.names[p.site()]);
                    let edges = self.living().filter(|p| !p.has_greeted).map(edge).collect::<Vec<_>>();
                    let edges = match edges.is_empty() {
                        true => String::new(),
                        false => format!("; nothing has come over the edge {}", list(edges)),
                    };
                    Some(format!("before round {turn}: waiting for {} to be there{edges}", list(absent)))
                } else if !self.started && !unsigned.is_empty() {
                    Some(format!(
                        "before the start: waiting for the signature of {} on this plan",
                        list(unsigned)
                    ))
                } else if !self.started && !unready.is_empty() {
                    Some(format!(
                        "before the start: waiting for {} to report that all their edges work; their own logs say which does not",
                        list(unready)
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

    fn has_waited(&self, now: Duration) -> bool {
        now.saturating_sub(self.waiting_since) >= WAITING_NOTE / 3
    }

    /// When something may have to be done without any event.
    pub fn next_deadline(&self, now: Duration) -> Duration {
        // Nobody is asked for anything while this site owes its own word, or has what it needs.
        let place = self.agent.place().filter(|place| !place.2);
        let is_missing =
            |p: &&Peer| !p.is_lost && place.is_some_and(|(s, t, _)| !p.held.contains_key(&(s, t)));
        let wants = self.peers.iter().filter(is_missing).map(|p| p.wanting.next());
        let wants = wants.chain(self.owing_receipts().map(|p| p.announcing.next()));
        let silence = match self.silence {
            Silence::LeaveAfter(limit) => limit / 8,
            Silence::Wait => WAITING_NOTE,
        };
        wants.chain([self.next_note, now + silence]).min().unwrap_or(now).max(now + Duration::from_millis(1))
    }
}
