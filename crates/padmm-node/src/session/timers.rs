//! Waiting: asking for what is missing, looking for signs of life, and saying who is waited for.

use std::sync::Arc;
use std::time::Duration;

use padmm_core::agent::Phase;
use padmm_core::message::{SiteIndex, Stage};

use super::{FAREWELL, SLOWEST_RETRY, Session, SessionError, WAITING_NOTE, turn_name};
use crate::frame::Frame;
use crate::journal::Level;
use crate::session::peer::{PeerState, Speaker};
use crate::transport::Transport;

impl Session {
    /// Asks for what is missing, and looks for signs of life.
    pub(super) fn tick(&mut self, now: Duration, transport: &dyn Transport) -> Result<(), SessionError> {
        if let Phase::Receiving(turn) = self.agent.phase() {
            let passes_on = self.agent.is_passed_on(turn);
            for speaker in self.speakers.iter_mut().filter(|s| s.is_missing(turn)) {
                if speaker.requesting.is_due(now, SLOWEST_RETRY) {
                    speaker.was_asked = true;
                    let request = self.outbox.sign(&Frame::Request { whose: speaker.site, turn });
                    // Whoever has it may answer, where messages are passed on.
                    let asked =
                        self.peers.iter().filter(|p| !p.is_lost && (passes_on || p.site() == speaker.site));
                    asked.for_each(|p| transport.send(p.site(), Arc::clone(&request)));
                }
            }
        }
        // Words are passed on from site to site, so one that lacks some asks for them even if it has begun: another that has not may
        // have no other way to get them.
        let lacks_words = self.without_word().next().is_some();
        let is_before_release =
            matches!(self.agent.phase(), Phase::Sending(turn) if turn.stage == Stage::Model);
        for peer in self.peers.iter_mut().filter(|p| !p.is_lost) {
            let is_missing = is_before_release && (!peer.has_greeted || peer.owes_proof);
            if (is_missing || lacks_words) && peer.asking.is_due(now, SLOWEST_RETRY) {
                transport.send(peer.site(), self.outbox.sign(&Frame::RequestHello));
            }
        }
        self.announce_again(now, transport);
        self.tell_departures_again(now, transport);
        self.notice_silence(now, transport)?;
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
        let since = |p: &PeerState| self.whereabouts(p, now);
        let list = |names: Vec<String>| names.join(", ");
        match self.agent.phase() {
            // The release before this turn's comes first.
            Phase::Sending(_) | Phase::Receiving(_)
                if self.owing_receipts().next().is_some() && self.has_waited(now) =>
            {
                let owing: Vec<String> = self.owing_receipts().map(since).collect();
                Some(format!(
                    "a release is in the ledger and has not left: waiting for {} to confirm it",
                    list(owing)
                ))
            }
            Phase::Sending(turn) if turn.stage == Stage::Model => {
                let staying = || self.living().filter(|p| !p.is_leaving);
                let absent: Vec<String> =
                    staying().filter(|p| !p.has_greeted || p.owes_proof).map(since).collect();
                let (unready, unsigned): (Vec<SiteIndex>, Vec<SiteIndex>) =
                    self.without_word().partition(|site| self.accepted.contains_key(site));
                let [unsigned, unready] = [unsigned, unready].map(|sites| {
                    sites.into_iter().map(|site| self.name(site).to_owned()).collect::<Vec<_>>()
                });
                if !absent.is_empty() {
                    let edge = |p: &PeerState| format!("{}-{}", self.name(self.me()), self.name(p.site()));
                    let edges = staying().filter(|p| !p.has_greeted).map(edge).collect::<Vec<_>>();
                    let edges = match edges.is_empty() {
                        true => String::new(),
                        false => format!("; nothing has come over the edge {}", list(edges)),
                    };
                    Some(format!(
                        "before {}: waiting for {} to be there{edges}",
                        turn_name(turn),
                        list(absent)
                    ))
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
            Phase::Sending(turn) | Phase::Receiving(turn) => {
                let missing = |s: &Speaker| {
                    let peer = self.peers.iter().find(|p| p.site() == s.site && !p.is_lost);
                    peer.map_or_else(|| self.name(s.site).to_owned(), since)
                };
                let missing: Vec<String> =
                    self.speakers.iter().filter(|s| s.is_missing(turn)).map(missing).collect();
                let waited = now.saturating_sub(self.waiting_since).as_secs();
                (!missing.is_empty())
                    .then(|| format!("{}: waiting for {}, for {waited} s", turn_name(turn), list(missing)))
            }
            Phase::Done => {
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
        // Nothing is requested while this site owes its own message, or has what it needs.
        let awaited = match self.agent.phase() {
            Phase::Receiving(turn) => Some(turn),
            Phase::Sending(_) | Phase::Done => None,
        };
        let is_missing = |s: &&Speaker| awaited.is_some_and(|turn| s.is_missing(turn));
        let wants = self.speakers.iter().filter(is_missing).map(|s| s.requesting.next());
        let wants = wants.chain(self.owing_receipts().map(|p| p.announcing.next()));
        let farewell = (self.done && now < self.started_at + FAREWELL).then_some(self.started_at + FAREWELL);
        let wants = wants.chain(farewell);
        let silence = self.silence.limit().map_or(WAITING_NOTE, |limit| limit / 8);
        wants.chain([self.next_note, now + silence]).min().unwrap_or(now).max(now + Duration::from_millis(1))
    }
}
