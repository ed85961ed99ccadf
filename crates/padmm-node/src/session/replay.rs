//! Recovery after a restart: the run is repeated from its first round, with the messages that the ledger holds. The
//! gate gives the recorded payloads, so nothing is charged, drawn or sent, and the agent ends up where it was.
//!
//! Rounds are committed one after the other, each when the one before it has left. So all releases but the newest may be handed out
//! again at once. The newest may not have left, or not have been announced: it is announced again, with the same bytes.

use std::collections::BTreeMap;

use padmm_core::agent::Phase;
use padmm_core::message::{Content, Incoming, SiteIndex, Stage, Turn};

use super::{Departure, Session, SessionError};
use crate::frame::{Frame, is_signed_by};
use crate::outbox::Bytes;

impl Session {
    pub(super) fn replay(&mut self) -> Result<(), SessionError> {
        let mut stored: BTreeMap<Turn, Vec<(String, Vec<u8>)>> = BTreeMap::new();
        let mut losses: BTreeMap<Turn, Vec<String>> = BTreeMap::new();
        {
            let ledger = self.ledger();
            for r in ledger.received(&self.run)? {
                stored.entry(r.turn).or_default().push((r.sender, r.bytes));
            }
            for l in ledger.losses(&self.run) {
                losses.entry(l.turn).or_default().push(l.neighbour.clone());
            }
        }
        // An average is said when the last release has left, and what neighbours said of that stage was written after it.
        let has_averaged = stored.keys().chain(losses.keys()).any(|turn| turn.stage == Stage::Average);
        let has_left = has_averaged || self.ledger().is_finished(&self.run);
        self.recall_words()?;
        let newest = self.replay_turns(stored, losses, has_left)?;
        if let Some((turn, bytes)) = newest {
            if has_left {
                self.outbox.put(self.me(), turn, bytes);
            } else {
                self.pending = Some(self.pending(bytes)?);
            }
        }
        Ok(())
    }

    /// Goes as far as the ledger does. Gives the newest release of this run.
    fn replay_turns(
        &mut self,
        mut stored: BTreeMap<Turn, Vec<(String, Vec<u8>)>>,
        mut losses: BTreeMap<Turn, Vec<String>>,
        has_left: bool,
    ) -> Result<Option<(Turn, Bytes)>, SessionError> {
        let mut newest: Option<(Turn, Bytes)> = None;
        loop {
            match self.agent.phase() {
                Phase::Sending(turn) => {
                    let is_new = match self.agent.round_of(turn) {
                        Some(round) => self.ledger().release_bytes(&self.run, round)?.is_none(),
                        None => !has_left,
                    };
                    if is_new {
                        return Ok(newest);
                    }
                    if let Some(message) = self.agent.poll_message()? {
                        let sent = (message.turn, self.bytes_of(&message)?);
                        let may_leave = match message.content {
                            Content::Model(_) => newest.replace(sent),
                            Content::Derived(_) | Content::Average(_) => Some(sent),
                        };
                        if let Some((turn, bytes)) = may_leave {
                            self.outbox.put(self.me(), turn, bytes);
                        }
                    }
                }
                Phase::Receiving(turn) => {
                    for name in losses.remove(&turn).unwrap_or_default() {
                        let site = self.site_named(&name)?;
                        if turn.stage == Stage::Average {
                            self.speaker(site).ok_or_else(|| not_heard(&name))?.is_left_out = true;
                            self.agent.leave_out(site);
                            continue;
                        }
                        // What was said before the start is among the words already.
                        let me = self.me();
                        if !self.departures.keys().any(|d| (d.reporter, d.lost) == (me, site)) {
                            let frame = Frame::Departure { origin: self.origin, lost: site, turn };
                            let departure = Departure { reporter: me, lost: site, turn };
                            self.departures.insert(departure, self.outbox.sign(&frame));
                        }
                        if let Some(peer) = self.peer(site) {
                            (peer.is_lost, peer.is_leaving) = (true, false);
                        }
                        self.speaker(site).ok_or_else(|| not_heard(&name))?.is_lost = true;
                        self.agent.drop_neighbour(site);
                    }
                    for (sender, bytes) in stored.remove(&turn).unwrap_or_default() {
                        self.receive_again(&sender, &bytes)?;
                    }
                    if self.agent.phase() == Phase::Receiving(turn) {
                        return Ok(newest);
                    }
                }
                Phase::Done => {
                    self.done = true;
                    return Ok(newest);
                }
            }
        }
    }

    fn site_named(&self, name: &str) -> Result<SiteIndex, SessionError> {
        self.names.iter().position(|n| n == name).map(SiteIndex).ok_or_else(|| not_heard(name))
    }

    fn receive_again(&mut self, sender: &str, bytes: &[u8]) -> Result<(), SessionError> {
        let wrong = |why: &str| SessionError::Stored { reason: format!("a message of {sender} {why}") };
        let site = self.site_named(sender)?;
        // The key of a site that is no neighbour comes with its word, which may not be here yet; what is stored was checked when it came.
        if self.key_of(site).is_some_and(|key| !is_signed_by(bytes, &key)) {
            return Err(wrong("is not signed by its key"));
        }
        let Ok(Frame::Model(model)) = Frame::decode(bytes) else { return Err(wrong("cannot be read")) };
        let incoming = Incoming::decode(site, model.turn, &model.payload)
            .map_err(|e| wrong(&e.to_string()))?
            .at(model.state);
        // What was said of a turn stays with the neighbour until the turn is over; a second telling finds it there.
        let speaker = self.speaker(site).ok_or_else(|| not_heard(sender))?;
        speaker.held.insert(model.turn, bytes.to_vec());
        if self.agent.is_passed_on(model.turn) {
            self.outbox.put(site, model.turn, bytes.into());
        }
        self.agent.handle_message(&incoming)?;
        let current = self.agent.phase().turn();
        for speaker in &mut self.speakers {
            speaker.held.retain(|&turn, _| current.is_some_and(|current| turn >= current));
        }
        Ok(())
    }
}

fn not_heard(name: &str) -> SessionError {
    SessionError::Stored { reason: format!("{name} is nobody that this site hears in this plan") }
}
