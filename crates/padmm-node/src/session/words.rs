//! What sites have said to all others, signed: that they accept the plan, that their edges work, that they have their model. Words are
//! passed on from site to site; those that a restart must not forget are kept beside the ledger, and checked again when they are read.

use std::collections::BTreeSet;
use std::sync::Arc;

use padmm_core::message::SiteIndex;

use super::peer::PeerState;
use super::{Departure, Session, SessionError};
use crate::frame::{Accepted, Frame, Ready, is_signed_by};
use crate::journal::Level;
use crate::outbox::Bytes;
use crate::transport::Transport;

impl Session {
    /// Passes every site's words on to all neighbours.
    pub(super) fn tell_words(&self, transport: &dyn Transport) {
        self.living().for_each(|peer| self.send_hello(peer, transport));
    }

    pub(super) fn say_ready(&mut self) {
        self.ready.insert(self.origin.sender, self.outbox.ready());
    }

    /// Reports, as soon as it is true, that all our edges work.
    pub(super) fn note_ready(&mut self, transport: &dyn Transport) {
        if !self.ready.contains_key(&self.origin.sender) && self.hears_all() {
            self.say_ready();
            self.tell_words(transport);
        }
    }

    /// The sites that have not said that they accept the plan and that all their edges work; of those that a way leads to which nobody has
    /// given up. The others are left behind, and nothing is expected of them.
    pub(super) fn without_word(&self) -> impl Iterator<Item = SiteIndex> {
        let has_word = |site: &SiteIndex| self.accepted.contains_key(site) && self.ready.contains_key(site);
        let n = self.names.len();
        let sites = if (0..n).map(SiteIndex).all(|site| has_word(&site)) {
            BTreeSet::new()
        } else {
            self.reachable()
        };
        sites.into_iter().filter(move |site| !has_word(site))
    }

    /// Enters the run in the ledger once every site that is not left behind has given its word. The words are kept: whoever has begun can
    /// show to all others, after a crash as well, that everybody was ready or left behind.
    pub(super) fn begin_if_all_are_ready(&mut self) -> Result<(), SessionError> {
        if self.started || !self.hears_all() || self.without_word().next().is_some() {
            return Ok(());
        }
        let accepted = self.accepted.values().cloned().collect();
        let ready = self.ready.values().copied().collect();
        let words = Frame::Hello { origin: self.origin, proof: false, shown: vec![], accepted, ready };
        let words = self.outbox.sign(&words);
        let mut ledger = self.ledger();
        ledger.keep_word(&self.run, &words)?;
        for departure in self.departures.values() {
            ledger.keep_word(&self.run, departure)?;
        }
        ledger.start_run(&self.start)?;
        drop(ledger);
        self.started = true;
        let reachable = self.reachable();
        let absent = (0..self.names.len()).map(SiteIndex).filter(|site| !reachable.contains(site));
        let absent: Vec<&str> = absent.map(|site| self.name(site)).collect();
        let line = match absent.is_empty() {
            true => {
                "every site has accepted this plan and hears all its neighbours; the run starts".to_owned()
            }
            false => format!(
                "the run starts without {}; every other site has accepted this plan and hears all its other neighbours",
                absent.join(", ")
            ),
        };
        self.log(Level::Info, "start", &line);
        Ok(())
    }

    /// Believes words that `from` has passed on, each by its own signature. Whether any of them was new.
    pub(super) fn believe_words(
        &mut self,
        from: SiteIndex,
        accepted: Vec<Accepted>,
        ready: Vec<Ready>,
    ) -> bool {
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
            let is_in_plan = word.site.0 < self.names.len();
            let Some(key) = self.key_of(word.site).filter(|_| is_in_plan) else { continue };
            if self.ready.contains_key(&word.site) {
                continue;
            }
            if word.is_said_by(&self.origin.plan, &key) {
                self.ready.insert(word.site, word);
            } else {
                self.refuse(from, "ready", "passed on a word that a site is ready which is not that site's");
            }
        }
        (self.accepted.len(), self.ready.len()) != known
    }

    /// A neighbour has its model, and will always have it. Its word is kept, and passed on to those that it may not have reached.
    pub(super) fn handle_done(
        &mut self,
        whose: SiteIndex,
        from: SiteIndex,
        bytes: &[u8],
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let Some(peer) = self.peer(whose) else { return Ok(()) };
        peer.is_done = true;
        if self.finished.contains_key(&whose) {
            return Ok(());
        }
        self.ledger().keep_word(&self.run, bytes)?;
        let word: Bytes = bytes.into();
        for to in self.living().map(PeerState::site).filter(|&to| to != from && to != whose) {
            if self.graph.has_edge(whose.0, to.0) {
                transport.send(to, Arc::clone(&word));
            }
        }
        self.finished.insert(whose, word);
        Ok(())
    }

    /// Reads what an earlier process has kept. The table is not part of the chain, so each word is believed by its signature alone.
    pub(super) fn recall_words(&mut self) -> Result<(), SessionError> {
        let words = self.ledger().words(&self.run)?;
        for bytes in words {
            if !self.recall_word(&bytes) {
                let line =
                    "a word that is kept beside the ledger is not what its signature says; it was not used";
                self.log(Level::Warning, "refused", line);
            }
        }
        Ok(())
    }

    fn recall_word(&mut self, bytes: &[u8]) -> bool {
        let Ok(frame) = Frame::decode(bytes) else { return false };
        let Some(origin) = frame.origin().filter(|origin| origin.plan == self.origin.plan) else {
            return false;
        };
        let whose = origin.sender;
        let key = if whose == self.me() { Some(self.key) } else { self.key_of(whose) };
        if !key.is_some_and(|key| is_signed_by(bytes, &key)) {
            return false;
        }
        match frame {
            Frame::Hello { accepted, ready, .. } => {
                self.believe_words(whose, accepted, ready);
                true
            }
            Frame::Status { done: true, .. } => {
                if let Some(peer) = self.peer(whose) {
                    peer.is_done = true;
                }
                self.finished.insert(whose, bytes.into());
                true
            }
            // An edge that was given up stays so; in the first turn in which this site receives, it is dropped.
            Frame::Departure { lost, turn, .. } => {
                let me = self.me();
                let other_end = if whose == me { Some(lost) } else { (lost == me).then_some(whose) };
                if let Some(peer) = other_end.and_then(|site| self.peer(site)) {
                    peer.is_leaving = true;
                }
                self.departures.insert(Departure { reporter: whose, lost, turn }, bytes.into());
                true
            }
            _ => false,
        }
    }
}
