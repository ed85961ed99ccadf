//! Going on after a restart: the run is gone through again from its first round, with the messages that the ledger holds. The
//! gate gives the recorded payloads, so nothing is charged, drawn or sent, and the agent ends up where it was.
//!
//! Rounds are committed one after the other, each when the one before it has left. So all releases but the newest may be handed out
//! again at once. The newest may not have left, or not have been announced: it is announced again, with the same bytes.

use std::collections::BTreeMap;

use padmm_core::message::{Content, Incoming, Stage};

use super::{Session, SessionError, stage_number};
use crate::frame::{Frame, is_signed_by};
use crate::shelf::Bytes;

/// Stage and turn as the ledger has them.
type Turn = (u32, u32);

impl Session {
    pub(super) fn replay(&mut self) -> Result<(), SessionError> {
        let mut stored: BTreeMap<Turn, Vec<(String, Vec<u8>)>> = BTreeMap::new();
        let mut losses: BTreeMap<Turn, Vec<String>> = BTreeMap::new();
        {
            let ledger = self.ledger();
            for r in ledger.received(&self.run)? {
                stored.entry((r.stage, r.turn)).or_default().push((r.sender, r.bytes));
            }
            for l in ledger.losses(&self.run) {
                losses.entry((l.stage, l.turn)).or_default().push(l.neighbour.clone());
            }
        }
        // An average is said when the last release has left, and what neighbours said of that stage was written after it.
        let average = stage_number(Stage::Average);
        let has_averaged = stored.keys().chain(losses.keys()).any(|&(stage, _)| stage == average);
        let has_left = has_averaged || self.ledger().is_finished(&self.run);
        let newest = self.replay_turns(stored, losses, has_left)?;
        if let Some((turn, bytes)) = newest {
            if has_left {
                self.shelf.put(Stage::Model, turn, bytes);
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
    ) -> Result<Option<(u32, Bytes)>, SessionError> {
        let mut newest: Option<(u32, Bytes)> = None;
        loop {
            match self.agent.place() {
                Some((stage, turn, true)) => {
                    let is_new = match stage {
                        Stage::Model => {
                            let round = self.agent.round_at(turn);
                            self.ledger().release_bytes(&self.run, round)?.is_none()
                        }
                        Stage::Average => !has_left,
                    };
                    if is_new {
                        return Ok(newest);
                    }
                    if let Some(message) = self.agent.poll_message()? {
                        let (stage, bytes) = self.bytes_of(&message)?;
                        let before = match matches!(message.content, Content::Model(_)) {
                            true => newest.replace((message.turn, bytes)).map(|(t, b)| (Stage::Model, t, b)),
                            false => Some((stage, message.turn, bytes)),
                        };
                        if let Some((stage, turn, bytes)) = before {
                            self.shelf.put(stage, turn, bytes);
                        }
                    }
                }
                Some((stage, turn, false)) => {
                    let before = self.agent.place();
                    let key = (stage_number(stage), turn);
                    for name in losses.remove(&key).unwrap_or_default() {
                        let site = self.site_named(&name)?;
                        let frame = Frame::Departure { origin: self.origin, lost: site as u16, stage, turn };
                        let departure = super::Departure { reporter: self.me(), lost: site, stage, turn };
                        self.departures.insert(departure, self.shelf.sign(&frame));
                        let peer = self.peer(site).ok_or_else(|| not_a_neighbour(&name))?;
                        peer.is_lost = true;
                        self.agent.drop_neighbour(site);
                    }
                    for (sender, bytes) in stored.remove(&key).unwrap_or_default() {
                        self.hear_again(&sender, &bytes)?;
                    }
                    if self.agent.place() == before {
                        return Ok(newest);
                    }
                }
                None => {
                    self.done = true;
                    return Ok(newest);
                }
            }
        }
    }

    fn site_named(&self, name: &str) -> Result<usize, SessionError> {
        self.names.iter().position(|n| n == name).ok_or_else(|| not_a_neighbour(name))
    }

    fn hear_again(&mut self, sender: &str, bytes: &[u8]) -> Result<(), SessionError> {
        let wrong = |why: &str| SessionError::Stored { reason: format!("a message of {sender} {why}") };
        let site = self.site_named(sender)?;
        let Some(peer) = self.peers.iter().find(|p| p.site() == site) else {
            return Err(not_a_neighbour(sender));
        };
        if !is_signed_by(bytes, &peer.neighbour.key) {
            return Err(wrong("is not signed by its key"));
        }
        let Ok(Frame::Speech(speech)) = Frame::decode(bytes) else { return Err(wrong("cannot be read")) };
        let incoming = Incoming::decode(site, speech.stage, speech.turn, sender, speech.payload)
            .map_err(|e| wrong(&e.to_string()))?;
        // What was said of a turn stays with the neighbour until the turn is over; a second telling finds it there.
        let peer = self.peer(site).expect("looked up above");
        peer.held.insert((speech.stage, speech.turn), bytes.to_vec());
        self.agent.handle_message(&incoming)?;
        let place = self.agent.place();
        for peer in &mut self.peers {
            peer.held.retain(|&(s, t), _| place.is_some_and(|(stage, turn, _)| (s, t) >= (stage, turn)));
        }
        Ok(())
    }
}

fn not_a_neighbour(name: &str) -> SessionError {
    SessionError::Stored { reason: format!("{name} is not a neighbour in this plan") }
}
