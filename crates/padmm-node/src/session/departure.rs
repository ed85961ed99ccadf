//! The run continues without a neighbour: the edge is dropped on both sides, and everybody is told.

use std::sync::Arc;

use padmm_core::agent::Phase;
use padmm_core::message::{SiteIndex, Turn};

use super::{Departure, Session, SessionError, turn_name};
use crate::frame::Frame;
use crate::journal::Level;
use crate::outbox::Bytes;
use crate::session::peer::PeerState;
use crate::transport::Transport;

impl Session {
    pub(super) fn handle_departure(&mut self, departure: Departure, bytes: Bytes, transport: &dyn Transport) {
        // An edge is dropped once from each end; further reports about it are no news.
        let same_edge = |d: &Departure| (d.reporter, d.lost) == (departure.reporter, departure.lost);
        if self.departures.keys().any(same_edge) || departure.reporter == self.me() {
            return;
        }
        let [reporter, lost] = [departure.reporter, departure.lost].map(|s| self.names.get(s.0).cloned());
        let (Some(reporter), Some(lost)) = (reporter, lost) else { return };
        let place = turn_name(departure.turn);
        self.log(Level::Warning, "departure", &format!("{reporter} continues without {lost} from {place}"));
        for site in self.living().map(PeerState::site).collect::<Vec<_>>() {
            transport.send(site, Arc::clone(&bytes));
        }
        self.departures.insert(departure, bytes);
        // The edge is dropped on both sides.
        let me = self.me();
        if departure.lost == me
            && let Some(peer) = self.peer(departure.reporter)
        {
            peer.is_leaving = true;
        }
    }

    /// Drops the neighbours that are to be left behind. This happens while the site waits, so that a replay does it at the same
    /// point.
    pub(super) fn apply_departures(&mut self, transport: &dyn Transport) -> Result<(), SessionError> {
        while let Phase::Receiving(turn) = self.agent.phase() {
            let Some(site) = self.living().find(|p| p.is_leaving).map(PeerState::site) else { return Ok(()) };
            self.ledger().lose_neighbour(&self.run, self.name(site), turn)?;
            let departure = Departure { reporter: self.me(), lost: site, turn };
            let frame = Frame::Departure { origin: self.origin, lost: site, turn };
            let bytes = self.outbox.sign(&frame);
            let line = format!("continuing without {} from {}", self.name(site), turn_name(turn));
            self.log(Level::Warning, "departure", &line);
            self.peers.iter().for_each(|p| transport.send(p.site(), Arc::clone(&bytes)));
            self.departures.insert(departure, bytes);
            self.drop_peer(site, turn)?;
        }
        Ok(())
    }

    fn drop_peer(&mut self, site: SiteIndex, turn: Turn) -> Result<(), SessionError> {
        let peer = self.peer(site).expect("a lost neighbour is a neighbour");
        (peer.is_lost, peer.is_leaving) = (true, false);
        peer.held.clear();
        if self.living().next().is_none() {
            return Err(self.alone(turn));
        }
        self.agent.drop_neighbour(site);
        self.finish_turn()
    }

    pub(super) fn alone(&self, turn: Turn) -> SessionError {
        let who: Vec<&str> = self.peers.iter().map(|p| self.name(p.site())).collect();
        SessionError::Alone { place: turn_name(turn), who: who.join(", ") }
    }
}
