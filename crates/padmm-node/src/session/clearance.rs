//! A release leaves when every neighbour has it in writing that it will.
//!
//! A release that is committed in the ledger is announced first: which entry of which ledger it is, and the SHA-256 of its frame. A
//! neighbour writes that to its disk and sends a receipt; when all that are left have given theirs, the release leaves, to anybody
//! at all. So every release that was ever seen is in the durable memory of every neighbour that took part then, and if the
//! ledger is replaced by an older copy, one of them whose disk still has its memory is enough to find it out.

use std::sync::Arc;
use std::time::Duration;

use padmm_core::message::{SiteIndex, Turn};
use sha2::{Digest as _, Sha256};

use super::peer::PeerState;
use super::{SLOWEST_RETRY, SOONEST_GREETING, Session, SessionError};
use crate::fault::{self, Point};
use crate::frame::{Announcement, Frame, Shown};
use crate::ledger::{Announced, Digest};
use crate::outbox::Bytes;
use crate::transport::Transport;

/// A release that is committed here and may not have left.
pub(super) struct Pending {
    round: u32,
    entry: u64,
    digest: [u8; 32],
    announcement: Bytes,
    release: Bytes,
}

impl Session {
    /// What is to be cleared before the release with these bytes leaves.
    pub(super) fn pending(&self, release: Bytes) -> Result<Pending, SessionError> {
        let Ok(Frame::Model(model)) = Frame::decode(&release) else {
            return Err(SessionError::Stored { reason: "a release of it cannot be read".to_owned() });
        };
        let digest: [u8; 32] = Sha256::digest(&release).into();
        let (round, entry) = (model.turn.number, model.entry);
        let ledger = self.ledger().genesis().0;
        let frame = Announcement { origin: self.origin, round, ledger, entry, head: model.head, digest };
        let announcement = self.outbox.sign(&Frame::Announce(frame));
        Ok(Pending { round, entry, digest, announcement, release })
    }

    /// Tells every neighbour that is left of a release that is committed.
    pub(super) fn announce(
        &mut self,
        now: Duration,
        release: Bytes,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let pending = self.pending(release)?;
        fault::at(Point::AnnounceBefore);
        for peer in self.peers.iter_mut().filter(|p| !p.is_lost) {
            peer.has_receipted = false;
            peer.announcing.begin(now, peer.receipts.patience());
            peer.announced_at = Some(now);
            transport.send(peer.site(), Arc::clone(&pending.announcement));
        }
        self.pending = Some(pending);
        fault::at(Point::AnnounceAfter);
        Ok(())
    }

    /// Tells a neighbour again that has come back.
    pub(super) fn announce_to(&self, peer: &PeerState, transport: &dyn Transport) {
        if let Some(pending) = self.pending.as_ref().filter(|_| !peer.has_receipted) {
            transport.send(peer.site(), Arc::clone(&pending.announcement));
        }
    }

    /// Tells those again that have not answered.
    pub(super) fn announce_again(&mut self, now: Duration, transport: &dyn Transport) {
        let Some(pending) = &self.pending else { return };
        for peer in self.peers.iter_mut().filter(|p| !p.is_lost && !p.has_receipted) {
            if peer.announcing.is_due(now, SLOWEST_RETRY) {
                peer.announced_at = None;
                transport.send(peer.site(), Arc::clone(&pending.announcement));
            }
        }
    }

    /// Whose receipt is still to come.
    pub(super) fn owing_receipts(&self) -> impl Iterator<Item = &PeerState> {
        self.living().filter(|p| self.pending.is_some() && !p.has_receipted)
    }

    pub(super) fn handle_receipt(
        &mut self,
        now: Duration,
        from: SiteIndex,
        (whose, entry, digest): (SiteIndex, u64, [u8; 32]),
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let is_awaited = |p: &Pending| (p.entry, p.digest) == (entry, digest);
        if whose != self.me() || !self.pending.as_ref().is_some_and(is_awaited) {
            // A late receipt for an earlier round.
            return Ok(());
        }
        if let Some(peer) = self.peer(from) {
            peer.has_receipted = true;
            if let Some(at) = peer.announced_at.take() {
                peer.receipts.measure(now.saturating_sub(at));
            }
        }
        self.clear(transport)
    }

    /// Lets the release go if every neighbour that is left has kept its announcement. One that is about to be left behind no
    /// longer counts, and with nobody left there is nobody to send it to.
    pub(super) fn clear(&mut self, transport: &dyn Transport) -> Result<(), SessionError> {
        let staying: Vec<&PeerState> = self.living().filter(|p| !p.is_leaving).collect();
        if staying.is_empty() || !staying.iter().all(|p| p.has_receipted) {
            return Ok(());
        }
        match self.pending.take() {
            Some(Pending { round, release, .. }) => self.deliver(Turn::model(round), release, transport),
            None => Ok(()),
        }
    }

    /// A neighbour announces a release. It is kept with the next commit, and what was kept before gets its receipt again.
    pub(super) fn handle_announcement(
        &mut self,
        now: Duration,
        from: SiteIndex,
        new: Announcement,
        bytes: &[u8],
        transport: &dyn Transport,
    ) {
        let Some(peer) = self.peers.iter().find(|p| p.site() == from) else { return };
        if peer.is_lost {
            return self.tell_lost(from, transport);
        }
        let Ok(bytes) = Shown::try_from(bytes) else { return };
        if new.round > self.start.rounds {
            // Each round is written once: nobody can keep the disk busy for longer than a run takes.
            return self.refuse(from, "announcement", "announces a round that the plan does not have");
        }
        let why = match peer.arriving.as_ref().or(peer.neighbour.kept.as_ref()) {
            None => None,
            Some((known, same)) if *same == bytes => {
                if peer.arriving.is_none() {
                    let (entry, digest) = (known.entry, known.digest);
                    self.give_receipt(from, entry, digest, transport);
                }
                return;
            }
            Some((known, _)) if known.ledger != new.ledger => {
                Some("announces a release from another ledger than before in this run".to_owned())
            }
            Some((known, _)) => match (new.round.cmp(&known.round), new.entry.cmp(&known.entry)) {
                (std::cmp::Ordering::Greater, std::cmp::Ordering::Greater) => None,
                // An earlier one that comes late and had its receipt; or a site that is not where we know it to be.
                (std::cmp::Ordering::Less, std::cmp::Ordering::Less) => {
                    return self.show_again(now, from, transport);
                }
                _ => {
                    let round = new.round;
                    Some(format!(
                        "announces round {round} in another way than before: its ledger was put back"
                    ))
                }
            },
        };
        match why {
            Some(why) => {
                self.refuse(from, "announcement", &why);
                self.show_again(now, from, transport);
            }
            None => {
                let peer = self.peer(from).expect("looked up above");
                peer.arriving = Some((new, bytes));
            }
        }
    }

    /// A neighbour that announces something else than we have in writing, or something earlier, was not shown that: its ledger was put
    /// back, or its home is there twice, and our last greeting was before that or went to the other one. It would wait for a receipt
    /// for ever.
    fn show_again(&mut self, now: Duration, site: SiteIndex, transport: &dyn Transport) {
        let Some(peer) = self.peer(site).filter(|p| p.next_greeting <= now) else { return };
        peer.next_greeting = now + SOONEST_GREETING;
        self.peers.iter().filter(|p| p.site() == site).for_each(|peer| self.send_hello(peer, transport));
    }

    /// Writes what neighbours have announced since the last time to the disk, in one commit, and sends the receipts.
    pub(super) fn keep_announcements(&mut self, transport: &dyn Transport) -> Result<(), SessionError> {
        let mut rows = vec![];
        for peer in self.peers.iter().filter(|p| !p.is_lost) {
            if let Some((new, bytes)) = &peer.arriving {
                let (run, sender) = (self.run.clone(), self.name(peer.site()).to_owned());
                let (ledger, entry) = (Digest(new.ledger), new.entry);
                rows.push(Announced { run, sender, ledger, entry, bytes: bytes.to_vec() });
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        self.ledger().keep_announced(&rows)?;
        for site in self.living().map(PeerState::site).collect::<Vec<_>>() {
            let peer = self.peer(site).expect("a living neighbour is a neighbour");
            let Some((new, bytes)) = peer.arriving.take() else { continue };
            let (entry, digest) = (new.entry, new.digest);
            peer.neighbour.remember(new.clone(), bytes);
            peer.neighbour.kept = Some((new, bytes));
            self.give_receipt(site, entry, digest, transport);
        }
        Ok(())
    }

    fn give_receipt(&self, site: SiteIndex, entry: u64, digest: [u8; 32], transport: &dyn Transport) {
        let frame = Frame::Receipt { origin: self.origin, whose: site, entry, digest };
        transport.send(site, self.outbox.sign(&frame));
    }
}
