//! Listening: what is believed, what is refused and noted, and when a turn is over.

use std::sync::Arc;
use std::time::Duration;

use padmm_core::message::{Incoming, Stage};
use padmm_privacy::Payload;
use sha2::{Digest as _, Sha256};

use super::{Departure, FIRST_WANT, Session, SessionError, Silence, place_name, stage_number};
use crate::fault::{self, Point};
use crate::frame::{Accepted, Frame, Origin, Ready, Shown, Speech, is_signed_by, peek_speech};
use crate::identity::PublicKey;
use crate::journal::{Level, Sent};
use crate::ledger::Received;
use crate::session::peer::Peer;
use crate::transport::Transport;

impl Session {
    /// What a neighbour is told when it is connected: who we are, what it may have missed, how far we are.
    pub(super) fn greet(&mut self, site: usize, transport: &dyn Transport) {
        let Some(peer) = self.peers.iter().find(|p| p.site() == site && !p.is_lost) else {
            // A neighbour that was gone for too long has to know.
            self.departures.values().for_each(|bytes| transport.send(site, Arc::clone(bytes)));
            return;
        };
        self.send_hello(peer, transport);
        self.announce_to(peer, transport);
        for ((stage, turn), bytes) in self.shelf.latest(2) {
            self.journal.sent(&Sent { to: site, stage, turn, bytes: &bytes, again: true });
            transport.send(site, bytes);
        }
        self.departures.values().for_each(|bytes| transport.send(site, Arc::clone(bytes)));
        transport.send(site, self.shelf.status());
    }

    /// Every greeting shows how far we know that neighbour's ledgers to be: whichever of them arrives, it is shown.
    fn send_hello(&self, peer: &Peer, transport: &dyn Transport) {
        let shown = peer.neighbour.announced.iter().map(|(_, bytes)| *bytes).collect();
        let proof = peer.neighbour.latest.clone();
        let accepted = self.accepted.values().cloned().collect();
        let ready = self.ready.values().copied().collect();
        let hello = Frame::Hello { origin: self.origin, proof: proof.is_some(), shown, accepted, ready };
        transport.send(peer.site(), self.shelf.sign(&hello));
        if let Some(proof) = proof {
            transport.send(peer.site(), proof);
        }
    }

    /// Passes on every site's words.
    pub(super) fn tell_words(&self, transport: &dyn Transport) {
        self.living().for_each(|peer| self.send_hello(peer, transport));
    }

    /// Notes what is not believed, less and less often.
    pub(super) fn refuse(&mut self, from: usize, kind: &'static str, why: &str) {
        let n = self.refused.entry((from, kind)).or_default();
        *n += 1;
        if n.is_power_of_two() {
            let so_far = if *n > 1 { format!(" ({n} such so far)") } else { String::new() };
            let line = format!("{}: {why}; it was not used{so_far}", self.names[from]);
            self.log(Level::Warning, "refused", &line);
        }
    }

    pub(super) fn handle_frame(
        &mut self,
        now: Duration,
        from: usize,
        bytes: Vec<u8>,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let Some(peer) = self.peers.iter().find(|p| p.site() == from) else { return Ok(()) };
        let key = peer.neighbour.key;
        // What is known already costs neither a signature nor a line.
        if let Some((origin, stage, turn)) = peek_speech(&bytes)
            && origin == (Origin { sender: from as u16, ..self.origin })
            && (self.is_past(stage, turn) || peer.held.get(&(stage, turn)) == Some(&bytes))
        {
            return Ok(());
        }
        let frame = match Frame::decode(&bytes) {
            Ok(frame) => frame,
            Err(error) => {
                self.refuse(from, "garbage", &format!("sent something that is no message: {error}"));
                return Ok(());
            }
        };
        // Our own word from a neighbour's hands; what is said in its own name for this run cannot be that.
        if let Frame::Speech(speech) = &frame
            && speech.origin != (Origin { sender: from as u16, ..self.origin })
            && is_signed_by(&bytes, &self.key)
        {
            // What is free has no entry; shown back, it proves nothing.
            if speech.entry > 0 {
                self.check_in_ledger(from, None, speech.entry, &Sha256::digest(&bytes).into())?;
                if let Some(peer) = self.peer(from) {
                    (peer.has_proved, peer.owes_proof) = (true, false);
                }
            }
            return Ok(());
        }
        let relayed = match &frame {
            Frame::Departure { origin, .. } => self.key_of(usize::from(origin.sender)),
            _ => None,
        };
        let Some(origin) = frame.origin() else {
            return match frame {
                Frame::PlanText(text) => self.compare(from, &text),
                Frame::WantHello => {
                    if let Some(peer) = self.peer(from).filter(|p| p.next_greeting <= now) {
                        peer.next_greeting = now + FIRST_WANT;
                        self.greet(from, transport);
                    }
                    Ok(())
                }
                _ => Ok(()),
            };
        };
        if !is_signed_by(&bytes, &relayed.unwrap_or(key)) {
            self.refuse(from, "signature", "sent a message whose signature is not its own");
            return Ok(());
        }
        if origin.plan != self.origin.plan {
            if matches!(frame, Frame::Hello { .. }) {
                self.refuse(from, "other-plan", "holds another plan, which is asked for");
                if let Some(peer) = self.peer(from) {
                    peer.owes_plan = true;
                }
                transport.send(from, self.shelf.sign(&Frame::WantPlan));
            } else {
                self.refuse(from, "other-run", "sent a message of another run");
            }
            return Ok(());
        }
        if usize::from(origin.sender) != from && relayed.is_none() {
            self.refuse(from, "sender", "sent a message in another site's name");
            return Ok(());
        }
        if let Some(peer) = self.peer(from) {
            peer.last_heard = now;
        }
        match frame {
            Frame::Hello { proof, shown, accepted, ready, .. } => {
                self.check_shown(from, &shown)?;
                self.handle_hello(from, proof, accepted, ready, transport);
                Ok(())
            }
            Frame::Announce(announcement) => {
                self.handle_announcement(from, announcement, &bytes, transport);
                Ok(())
            }
            Frame::Receipt { whose, entry, digest, .. } => {
                self.handle_receipt(from, (whose, entry, digest), transport);
                Ok(())
            }
            Frame::Speech(speech) => self.handle_speech(from, speech, bytes),
            Frame::Status { counter, done, .. } => {
                if let Some(peer) = self.peer(from).filter(|p| p.counter < counter) {
                    peer.counter = counter;
                    peer.is_done |= done;
                }
                if self.peers.iter().any(|p| p.site() == from && p.is_lost) {
                    self.tell_lost(from, transport);
                }
                Ok(())
            }
            Frame::Departure { lost, stage, turn, .. } => {
                let departure = Departure { reporter: origin.sender.into(), lost: lost.into(), stage, turn };
                if self.silence == Silence::Wait {
                    self.refuse(
                        from,
                        "left",
                        "says that a site was left behind, and this plan waits for all",
                    );
                    return Ok(());
                }
                self.handle_departure(departure, bytes.into(), transport);
                Ok(())
            }
            Frame::Want { .. } | Frame::WantPlan | Frame::WantHello | Frame::PlanText(_) => Ok(()),
        }
    }

    /// A neighbour that was lost and is heard again has to know.
    pub(super) fn tell_lost(&self, site: usize, transport: &dyn Transport) {
        let is_its = |d: &&Departure| (d.reporter, d.lost) == (self.me(), site);
        let own = self.departures.iter().filter(|(d, _)| is_its(d));
        own.for_each(|(_, bytes)| transport.send(site, Arc::clone(bytes)));
    }

    /// The identity key of any site whose word on the contract is known, or that is a neighbour.
    pub(super) fn key_of(&self, site: usize) -> Option<PublicKey> {
        let neighbour = self.peers.iter().find(|p| p.site() == site).map(|p| p.neighbour.key);
        let accepted = || self.accepted.get(&(site as u16)).and_then(|a| PublicKey::from_bytes(&a.key).ok());
        neighbour.or_else(accepted)
    }

    pub(super) fn handle_hello(
        &mut self,
        from: usize,
        proof: bool,
        accepted: Vec<Accepted>,
        ready: Vec<Ready>,
        transport: &dyn Transport,
    ) {
        let known = (self.accepted.len(), self.ready.len());
        for word in accepted {
            if self.accepted.contains_key(&word.site) {
                continue;
            }
            if (self.check_accepted)(&word) {
                self.accepted.insert(word.site, word);
            } else {
                self.refuse(from, "acceptance", "passed on a signature on the plan that is not valid");
            }
        }
        for word in ready {
            // The key of a site that is no neighbour comes with its acceptance; until then its word is asked for again.
            let site = usize::from(word.site);
            let Some(key) = self.key_of(site).filter(|_| site < self.names.len()) else { continue };
            if self.ready.contains_key(&word.site) {
                continue;
            }
            if word.is_said_by(&self.origin.plan, &key) {
                self.ready.insert(word.site, word);
            } else {
                self.refuse(from, "ready", "passed on a word that a site is ready which is not that site's");
            }
        }
        if let Some(peer) = self.peer(from) {
            peer.has_greeted = true;
            // Its proof travels behind its greeting on the same stream.
            peer.owes_proof = proof && !peer.has_proved;
        }
        if (self.accepted.len(), self.ready.len()) != known {
            self.tell_words(transport);
        }
    }

    /// A neighbour shows how far it knows our ledgers to be.
    fn check_shown(&mut self, from: usize, shown: &[Shown]) -> Result<(), SessionError> {
        for bytes in shown {
            match Frame::decode(bytes) {
                Ok(Frame::Announce(own)) if is_signed_by(bytes, &self.key) => {
                    // A run is in one ledger: what is of this run must be in this one.
                    if own.origin.plan == self.origin.plan && own.ledger != self.ledger().genesis().0 {
                        return Err(self.old_ledger(from, own.entry));
                    }
                    self.check_in_ledger(from, Some(own.ledger), own.entry, &own.digest)?;
                }
                _ => self.refuse(from, "shown", "shows an announcement that is not this site's"),
            }
        }
        Ok(())
    }

    fn old_ledger(&self, from: usize, entry: u64) -> SessionError {
        SessionError::OldLedger { site: self.names[from].clone(), entry }
    }

    /// A neighbour shows a release of ours: our ledger, or another one of this site, must have it, to the byte.
    fn check_in_ledger(
        &self,
        from: usize,
        ledger: Option<[u8; 32]>,
        entry: u64,
        digest: &[u8; 32],
    ) -> Result<(), SessionError> {
        let (own, payload) = {
            let own = self.ledger();
            (own.genesis().0, own.payload_of_entry(entry)?)
        };
        let is_same = |payload: Vec<u8>| Sha256::digest(&payload)[..] == digest[..];
        let is_here = ledger.is_none_or(|ledger| ledger == own) && payload.is_some_and(is_same);
        if is_here || (self.has_elsewhere)(ledger, entry, digest) {
            return Ok(());
        }
        Err(self.old_ledger(from, entry))
    }

    pub(super) fn compare(&mut self, from: usize, text: &str) -> Result<(), SessionError> {
        // Its greeting, which is signed, has to be of another plan first.
        if !self.peer(from).is_some_and(|p| std::mem::take(&mut p.owes_plan)) {
            self.refuse(from, "unasked", "sent a plan that was not asked for");
            return Ok(());
        }
        let differences = (self.compare_plans)(text);
        if differences.is_empty() {
            return Ok(());
        }
        if self.started {
            // Everybody had accepted this plan, so the run is sound; that neighbour has to come back to it.
            let what = format!("holds another plan now: {}", differences.join("; "));
            self.refuse(from, "changed-plan", &what);
            return Ok(());
        }
        Err(SessionError::OtherPlan { site: self.names[from].clone(), differences })
    }

    pub(super) fn is_past(&self, stage: Stage, turn: u32) -> bool {
        self.agent.place().is_none_or(|(s, t, _)| (stage, turn) < (s, t))
    }

    pub(super) fn handle_speech(
        &mut self,
        from: usize,
        speech: Speech,
        bytes: Vec<u8>,
    ) -> Result<(), SessionError> {
        let (stage, turn) = (speech.stage, speech.turn);
        if self.is_past(stage, turn) || self.peer(from).is_none_or(|p| p.is_lost) {
            return Ok(());
        }
        let expected = self.agent.released().len();
        if speech.payload.len() != expected {
            let n = speech.payload.len();
            self.refuse(
                from,
                "dimension",
                &format!("sent a model of {n} coefficients where {expected} are expected"),
            );
            return Ok(());
        }
        if let Some(why) = self.wrong_grid(from, &speech) {
            self.refuse(from, "grid", &why);
            return Ok(());
        }
        let peer = self.peer(from).expect("looked up above");
        if let Some(held) = peer.held.get(&(stage, turn)) {
            if held != &bytes {
                let what =
                    format!("sent two different messages for {}; the first stays", place_name(stage, turn));
                self.refuse(from, "two-messages", &what);
            }
            return Ok(());
        }
        let name = self.names[from].clone();
        let incoming = match Incoming::decode(from, stage, turn, &name, speech.payload) {
            Ok(incoming) => incoming,
            Err(error) => {
                self.refuse(from, "numbers", &format!("sent numbers that cannot be used: {error}"));
                return Ok(());
            }
        };
        if let Err(error) = self.agent.handle_message(&incoming) {
            let why = error.to_string();
            self.refuse(from, "turn", why.trim_end_matches("; it was not used"));
            return Ok(());
        }
        let peer = self.peer(from).expect("looked up above");
        peer.held.insert((stage, turn), bytes);
        fault::at(Point::Received);
        self.conclude()
    }

    /// A release on a grid that is not the one of the plan is not what its charge says.
    pub(super) fn wrong_grid(&self, from: usize, speech: &Speech) -> Option<String> {
        let peer = self.peers.iter().find(|p| p.site() == from)?;
        let expected = match (speech.stage, &peer.neighbour.noise) {
            (Stage::Model, Some(noise)) => {
                let round = self.agent.round_at(speech.turn);
                (1..=noise.rounds()).contains(&round).then(|| noise.grid_exponent(round))
            }
            _ => None,
        };
        match (&speech.payload, expected) {
            (Payload::Grid { exponent, .. }, Some(expected)) if *exponent != expected => {
                Some(format!("sent a release on the grid 2^{exponent} where the plan has 2^{expected}"))
            }
            (Payload::Plain(_), Some(_)) => Some("sent plain numbers where a release is expected".to_owned()),
            (Payload::Grid { .. }, None) => Some("sent a release where none is expected".to_owned()),
            _ => None,
        }
    }

    /// What was used in turns that are over goes to the ledger: with the next release, or now if there is none.
    pub(super) fn conclude(&mut self) -> Result<(), SessionError> {
        let after = self.agent.place();
        let mut ledger = self.ledger.lock().expect("the ledger's holders do not panic");
        for peer in self.peers.iter_mut().filter(|p| !p.is_lost) {
            let early = after.map(|(stage, turn, _)| peer.held.split_off(&(stage, turn)));
            let used = std::mem::replace(&mut peer.held, early.unwrap_or_default());
            for ((stage, turn), bytes) in used {
                let (run, sender) = (self.run.clone(), self.names[peer.site()].clone());
                ledger.stage_received(Received { run, sender, stage: stage_number(stage), turn, bytes })?;
            }
        }
        if after.is_none_or(|(stage, _, _)| stage != Stage::Model) {
            ledger.commit_received()?;
        }
        Ok(())
    }
}
