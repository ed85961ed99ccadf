//! Going on after a restart: the run is gone through again from its first round, with the messages that the ledger holds. The
//! gate gives the recorded payloads, so nothing is charged, drawn or sent, and the agent ends up where it was.

use std::collections::BTreeMap;

use padmm_core::message::{Incoming, Stage};

use super::{Session, SessionError, stage_number};
use crate::frame::{Frame, is_signed_by};

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
        loop {
            match self.agent.place() {
                Some((stage, turn, true)) => {
                    let round = self.agent.round_at(turn);
                    if stage == Stage::Model && self.ledger().release_bytes(&self.run, round)?.is_none() {
                        return Ok(());
                    }
                    if let Some(message) = self.agent.poll_message()? {
                        let (stage, bytes) = self.bytes_of(&message)?;
                        self.shelf.put(stage, message.turn, bytes);
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
                        return Ok(());
                    }
                }
                None => {
                    self.done = true;
                    return Ok(());
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
