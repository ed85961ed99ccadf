//! Receiving: what is believed, what is refused and noted, and when a turn is over.

use std::sync::Arc;
use std::time::Duration;

use padmm_core::agent::Phase;
use padmm_core::message::{Incoming, SiteIndex, Stage, Turn};
use padmm_privacy::Payload;
use sha2::{Digest as _, Sha256};

use super::{Departure, SOONEST_GREETING, Session, SessionError, turn_name};
use crate::contract::Silence;
use crate::fault::{self, Point};
use crate::frame::{Accepted, Frame, ModelFrame, Origin, Ready, Shown, is_signed_by, peek_model};
use crate::identity::PublicKey;
use crate::journal::Level;
use crate::ledger::Received;
use crate::transport::Transport;

impl Session {
    /// Logs what is not believed, each time the count has doubled: a log must not be a target.
    pub(super) fn refuse(&mut self, from: SiteIndex, kind: &'static str, why: &str) {
        let n = self.refused.entry((from, kind)).or_default();
        *n += 1;
        if n.is_power_of_two() {
            let so_far = if *n > 1 { format!(" ({n} such so far)") } else { String::new() };
            let line = format!("{}: {why}; it was not used{so_far}", self.name(from));
            self.log(Level::Warning, "refused", &line);
        }
    }

    pub(super) fn handle_frame(
        &mut self,
        now: Duration,
        from: SiteIndex,
        bytes: Vec<u8>,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let Some(peer) = self.peers.iter().find(|p| p.site() == from) else { return Ok(()) };
        let key = peer.neighbour.key;
        // What is known already costs neither a signature nor a line.
        if let Some((origin, turn)) = peek_model(&bytes)
            && origin.plan == self.origin.plan
            && self.is_known(from, origin.sender, turn, &bytes)
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
        // Our own release, shown back by a neighbour; a message in the neighbour's name for this run cannot be that.
        if let Frame::Model(model) = &frame
            && model.origin != (Origin { sender: from, ..self.origin })
            && is_signed_by(&bytes, &self.key)
        {
            // What is free has no entry; shown back, it proves nothing.
            if model.entry > 0 {
                self.check_in_ledger(from, None, model.entry, &Sha256::digest(&bytes).into())?;
                if let Some(peer) = self.peer(from) {
                    (peer.has_proved, peer.owes_proof) = (true, false);
                }
            }
            return Ok(());
        }
        let relayed = match &frame {
            Frame::Departure { origin, .. } => {
                let key = self.key_of(origin.sender);
                if key.is_none() {
                    // It comes with that site's word, and this one is told again until then.
                    return Ok(());
                }
                key
            }
            // A neighbour's word that it has its model is passed on to its other neighbours, and to nobody else.
            Frame::Status { origin, done: true, .. } if origin.sender != from => {
                let peer = self.peers.iter().find(|p| p.site() == origin.sender);
                peer.map(|p| p.neighbour.key).filter(|key| is_signed_by(&bytes, key))
            }
            Frame::Model(model)
                if self.agent.is_passed_on(model.turn) && model.origin.plan == self.origin.plan =>
            {
                let key = self.key_of(model.origin.sender);
                if key.is_none() {
                    // It comes with that site's word, which is being asked for; so is this release.
                    return Ok(());
                }
                key
            }
            _ => None,
        };
        let Some(origin) = frame.origin() else {
            return match frame {
                Frame::PlanText(text) => self.compare(from, &text),
                Frame::RequestHello => {
                    if let Some(peer) = self.peer(from).filter(|p| p.next_greeting <= now) {
                        peer.next_greeting = now + SOONEST_GREETING;
                        self.greet(from, transport)?;
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
                transport.send(from, self.outbox.sign(&Frame::RequestPlan));
            } else {
                self.refuse(from, "other-run", "sent a message of another run");
            }
            return Ok(());
        }
        if origin.sender != from && relayed.is_none() {
            self.refuse(from, "sender", "sent a message in another site's name");
            return Ok(());
        }
        self.hear(from, now);
        transport.believe(from);
        match frame {
            Frame::Hello { proof, shown, accepted, ready, .. } => {
                self.check_shown(from, &shown)?;
                self.handle_hello(from, proof, accepted, ready, transport);
                Ok(())
            }
            Frame::Announce(announcement) => {
                self.handle_announcement(now, from, announcement, &bytes, transport);
                Ok(())
            }
            Frame::Receipt { whose, entry, digest, .. } => {
                self.handle_receipt(now, from, (whose, entry, digest), transport)
            }
            Frame::Model(model) => self.handle_model(now, from, model, bytes, transport),
            Frame::Status { counter, done, .. } => {
                let whose = origin.sender;
                if let Some(peer) = self.peer(from).filter(|p| whose == from && p.counter < counter) {
                    peer.counter = counter;
                }
                if done {
                    self.handle_done(whose, from, &bytes, transport)?;
                }
                if self.peers.iter().any(|p| p.site() == from && p.is_lost) {
                    self.tell_lost(from, transport);
                }
                Ok(())
            }
            Frame::Departure { lost, turn, .. } => {
                let departure = Departure { reporter: origin.sender, lost, turn };
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
            Frame::Request { .. } | Frame::RequestPlan | Frame::RequestHello | Frame::PlanText(_) => Ok(()),
        }
    }

    /// A neighbour gives a sign of life. Before the start, the first one shows that this site is on the network: the others get from then on
    /// as much time as the plan bears.
    fn hear(&mut self, from: SiteIndex, now: Duration) {
        if let Some(limit) = self.silence.limit().filter(|_| !self.started)
            && !self.has_company(now, limit)
        {
            self.peers.iter_mut().for_each(|peer| peer.last_heard = now);
        }
        if let Some(peer) = self.peer(from) {
            peer.last_heard = now;
        }
    }

    /// A neighbour that was lost and is heard again has to know.
    pub(super) fn tell_lost(&self, site: SiteIndex, transport: &dyn Transport) {
        let is_its = |d: &&Departure| (d.reporter, d.lost) == (self.me(), site);
        let own = self.departures.iter().filter(|(d, _)| is_its(d));
        own.for_each(|(_, bytes)| transport.send(site, Arc::clone(bytes)));
    }

    /// The identity key of any site whose word on the contract is known, or that is a neighbour.
    pub(super) fn key_of(&self, site: SiteIndex) -> Option<PublicKey> {
        let neighbour = self.peers.iter().find(|p| p.site() == site).map(|p| p.neighbour.key);
        let accepted = || self.accepted.get(&site).and_then(|a| PublicKey::from_bytes(&a.key).ok());
        neighbour.or_else(accepted)
    }

    pub(super) fn handle_hello(
        &mut self,
        from: SiteIndex,
        proof: bool,
        accepted: Vec<Accepted>,
        ready: Vec<Ready>,
        transport: &dyn Transport,
    ) {
        let is_news = self.believe_words(from, accepted, ready);
        if let Some(peer) = self.peer(from) {
            peer.has_greeted = true;
            // Its proof travels behind its greeting on the same stream.
            peer.owes_proof = proof && !peer.has_proved;
        }
        if is_news {
            self.tell_words(transport);
        }
    }

    /// A neighbour shows how far it knows our ledgers to be.
    fn check_shown(&mut self, from: SiteIndex, shown: &[Shown]) -> Result<(), SessionError> {
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

    fn old_ledger(&self, from: SiteIndex, entry: u64) -> SessionError {
        SessionError::OldLedger { site: self.name(from).to_owned(), entry }
    }

    /// A neighbour shows a release of ours: our ledger, or another one of this site, must have it, to the byte.
    fn check_in_ledger(
        &self,
        from: SiteIndex,
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

    pub(super) fn compare(&mut self, from: SiteIndex, text: &str) -> Result<(), SessionError> {
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
        Err(SessionError::OtherPlan { site: self.name(from).to_owned(), differences })
    }

    /// Whether there is nothing new in a message of this run.
    fn is_known(&self, from: SiteIndex, sender: SiteIndex, turn: Turn, bytes: &[u8]) -> bool {
        if sender == self.me() {
            // Passed on around a circle. Another one in our name has to be looked at, and so has the one that is a neighbour's proof.
            let is_proof = self.peers.iter().any(|p| p.site() == from && p.owes_proof);
            return self.agent.is_passed_on(turn)
                && !is_proof
                && self.outbox.message(sender, turn).is_some_and(|own| *own == *bytes);
        }
        let may_say = sender == from || self.agent.is_passed_on(turn);
        let speaker = self.speakers.iter().find(|s| s.site == sender && may_say);
        speaker.is_some_and(|s| self.is_past(turn) || s.held.get(&turn).is_some_and(|held| held == bytes))
    }

    pub(super) fn is_past(&self, turn: Turn) -> bool {
        self.agent.phase().turn().is_none_or(|current| turn < current)
    }

    pub(super) fn handle_model(
        &mut self,
        now: Duration,
        from: SiteIndex,
        model: ModelFrame,
        bytes: Vec<u8>,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let (turn, sender) = (model.turn, model.origin.sender);
        let is_heard = self.speaker(sender).is_some_and(|s| s.is_heard_in(turn.stage));
        if self.is_past(turn) || !is_heard || self.peer(from).is_none_or(|p| p.is_lost) {
            return Ok(());
        }
        let expected = self.agent.n_coordinates(turn);
        if model.payload.len() != expected {
            let n = model.payload.len();
            self.refuse(
                from,
                "dimension",
                &format!("sent a model of {n} coefficients where {expected} are expected"),
            );
            return Ok(());
        }
        if let Some(why) = self.wrong_grid(&model) {
            self.refuse(sender, "grid", &why);
            return Ok(());
        }
        let is_shared = turn.stage == Stage::Model && self.hears_everybody();
        if model.state.is_some() != is_shared {
            self.refuse(
                sender,
                "state",
                "sent a release that does not say where it was computed, or need not",
            );
            return Ok(());
        }
        let speaker = self.speaker(sender).expect("looked up above");
        if let Some(held) = speaker.held.get(&turn) {
            if held != &bytes {
                let what = format!("sent two different messages for {}; the first stays", turn_name(turn));
                self.refuse(sender, "two-messages", &what);
            }
            return Ok(());
        }
        let incoming = match Incoming::decode(sender, turn, &model.payload) {
            Ok(incoming) => incoming.at(model.state),
            Err(error) => {
                self.refuse(sender, "numbers", &format!("sent numbers that cannot be used: {error}"));
                return Ok(());
            }
        };
        let is_awaited = self.agent.phase() == Phase::Receiving(turn);
        if let Err(error) = self.agent.handle_message(&incoming) {
            let why = error.to_string();
            self.refuse(sender, "turn", why.trim_end_matches("; it was not used"));
            return Ok(());
        }
        if self.agent.is_passed_on(turn) {
            self.pass_on(sender, turn, from, bytes.as_slice().into(), transport)?;
        }
        let waited = now.saturating_sub(self.waiting_since);
        let speaker = self.speaker(sender).expect("looked up above");
        if is_awaited && !speaker.was_asked {
            speaker.waits.measure(waited);
        }
        speaker.held.insert(turn, bytes);
        fault::at(Point::Received);
        self.finish_turn()
    }

    /// A release on a grid that is not the one of the plan is not what its charge says.
    pub(super) fn wrong_grid(&self, model: &ModelFrame) -> Option<String> {
        let grids = self.grids.get(model.origin.sender.0)?;
        let round = self.agent.round_of(model.turn);
        let expected = round.and_then(|round| grids.get(round as usize - 1).copied());
        match (&model.payload, expected) {
            (Payload::Grid { exponent, .. }, Some(expected)) if *exponent != expected => {
                Some(format!("sent a release on the grid 2^{exponent} where the plan has 2^{expected}"))
            }
            (Payload::Plain(_), Some(_)) => Some("sent plain numbers where a release is expected".to_owned()),
            (Payload::Grid { .. }, None) => Some("sent a release where none is expected".to_owned()),
            _ => None,
        }
    }

    /// What was used in turns that are over goes to the ledger: with the next release, or now if there is none.
    pub(super) fn finish_turn(&mut self) -> Result<(), SessionError> {
        let after = self.agent.phase().turn();
        let mut ledger = self.ledger.lock().expect("the ledger's holders do not panic");
        for speaker in &mut self.speakers {
            let early = after.map(|turn| speaker.held.split_off(&turn));
            let used = std::mem::replace(&mut speaker.held, early.unwrap_or_default());
            for (turn, bytes) in used {
                let (run, sender) = (self.run.clone(), self.names[speaker.site.0].clone());
                ledger.stage_received(Received { run, sender, turn, bytes })?;
            }
        }
        if after.is_none_or(|turn| turn.stage != Stage::Model) {
            ledger.commit_received()?;
        }
        drop(ledger);
        for (site, turn) in self.agent.take_elsewhere() {
            let what = format!("computed {} at another model than this site", turn_name(turn));
            self.refuse(site, "state", &what);
        }
        Ok(())
    }
}
