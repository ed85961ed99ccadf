//! Going on without a neighbour: the edge is dropped on both sides, and everybody is told.

use std::sync::Arc;

use padmm_core::message::Stage;

use super::{Departure, Session, SessionError, place_name, stage_number};
use crate::frame::Frame;
use crate::journal::Level;
use crate::session::peer::Peer;
use crate::shelf::Bytes;
use crate::transport::Transport;

impl Session {
    pub(super) fn handle_departure(&mut self, departure: Departure, bytes: Bytes, transport: &dyn Transport) {
        // An edge is lost once from each end; what else is said about it is no news.
        let same_edge = |d: &Departure| (d.reporter, d.lost) == (departure.reporter, departure.lost);
        if self.departures.keys().any(same_edge) || departure.reporter == self.me() {
            return;
        }
        let [reporter, lost] = [departure.reporter, departure.lost].map(|s| self.names.get(s).cloned());
        let (Some(reporter), Some(lost)) = (reporter, lost) else { return };
        let place = place_name(departure.stage, departure.turn);
        self.log(Level::Warning, "departure", &format!("{reporter} goes on without {lost} from {place}"));
        for site in self.living().map(Peer::site).collect::<Vec<_>>() {
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

    /// Goes on without neighbours that are lost. This happens while the site listens, so that a replay does it in the same place.
    pub(super) fn apply_losses(&mut self, transport: &dyn Transport) -> Result<(), SessionError> {
        while let Some((stage, turn, false)) = self.agent.place() {
            let Some(site) = self.living().find(|p| p.is_leaving).map(Peer::site) else { return Ok(()) };
            self.ledger().lose_neighbour(&self.run, &self.names[site], stage_number(stage), turn)?;
            let departure = Departure { reporter: self.me(), lost: site, stage, turn };
            let frame = Frame::Departure { origin: self.origin, lost: site as u16, stage, turn };
            let bytes = self.shelf.sign(&frame);
            let name = self.names[site].clone();
            let place = place_name(stage, turn);
            self.log(Level::Warning, "departure", &format!("going on without {name} from {place}"));
            self.peers.iter().for_each(|p| transport.send(p.site(), Arc::clone(&bytes)));
            self.departures.insert(departure, bytes);
            self.lose(site, stage, turn)?;
        }
        Ok(())
    }

    pub(super) fn lose(&mut self, site: usize, stage: Stage, turn: u32) -> Result<(), SessionError> {
        let peer = self.peer(site).expect("a lost neighbour is a neighbour");
        (peer.is_lost, peer.is_leaving) = (true, false);
        peer.held.clear();
        if self.living().next().is_none() {
            return Err(self.alone(stage, turn));
        }
        self.agent.drop_neighbour(site);
        self.conclude()
    }

    pub(super) fn alone(&self, stage: Stage, turn: u32) -> SessionError {
        let who: Vec<&str> = self.peers.iter().map(|p| self.names[p.site()].as_str()).collect();
        SessionError::Alone { place: place_name(stage, turn), who: who.join(", ") }
    }
}
