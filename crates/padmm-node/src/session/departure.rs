//! The run continues, or begins, without a neighbour: the edge is dropped on both sides, and everybody is told. Where releases are
//! passed on, a site is left behind when all ways to it are gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use padmm_core::agent::Phase;
use padmm_core::message::{SiteIndex, Stage, Turn};

use super::{Departure, SLOWEST_RETRY, Session, SessionError, turn_name};
use crate::frame::Frame;
use crate::journal::Level;
use crate::outbox::Bytes;
use crate::session::peer::{PeerState, Speaker};
use crate::transport::Transport;

/// About as many frames as a connection takes at once, beside what else is sent.
const TOLD_AT_ONCE: usize = 32;

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
        let is_edge = self.hears_everybody() && self.graph.has_edge(departure.reporter.0, departure.lost.0);
        let what = if is_edge { "gives up its edge to" } else { "continues without" };
        self.log(Level::Warning, "departure", &format!("{reporter} {what} {lost} from {place}"));
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

    /// Whether some neighbour is there, also one that has left this site behind, and has given a sign of life lately, where `limit` is more
    /// than is borne.
    pub(super) fn has_company(&self, now: Duration, limit: Duration) -> bool {
        self.living().any(|p| p.has_greeted && !p.is_silent(now, limit / 2))
    }

    /// Finds out who has given no sign of life for as long as the plan bears.
    ///
    /// Before the start it is said at once, since all others wait for that site's word too; its edge is dropped in the first round. A site
    /// that hears nobody at all gives nobody up: there is nobody to begin with, and whoever comes first may not be the only one.
    pub(super) fn notice_silence(
        &mut self,
        now: Duration,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let Some(limit) = self.silence.limit() else { return Ok(()) };
        if self.started || self.has_company(now, limit) {
            // Who is done owes nothing to a site that is done too; another may wait for its average, and it may never come back.
            let owes_nothing = |p: &PeerState| p.is_done && self.done;
            let is_new = |p: &&PeerState| !p.is_leaving && !owes_nothing(p) && p.is_silent(now, limit);
            for site in self.living().filter(is_new).map(PeerState::site).collect::<Vec<_>>() {
                if !self.started {
                    self.report("beginning without", site, Turn::model(1), transport)?;
                }
                self.peer(site).expect("a silent neighbour is a neighbour").is_leaving = true;
            }
        }
        if self.living().any(|p| p.is_leaving) || self.speakers.iter().any(|s| s.unreachable_since.is_some())
        {
            self.advance(now, transport)?;
        }
        Ok(())
    }

    /// Drops the neighbours that are to be left behind. This happens while the site waits, so that a replay does it at the same
    /// point.
    pub(super) fn apply_departures(
        &mut self,
        now: Duration,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        while let Phase::Receiving(turn) = self.agent.phase() {
            let Some(site) = self.living().find(|p| p.is_leaving).map(PeerState::site) else { break };
            let what = if self.hears_everybody() {
                "giving up the edge to"
            } else {
                self.ledger().lose_neighbour(&self.run, self.name(site), turn)?;
                "continuing without"
            };
            self.report(what, site, turn, transport)?;
            let peer = self.peer(site).expect("a lost neighbour is a neighbour");
            (peer.is_lost, peer.is_leaving) = (true, false);
            if self.living().next().is_none() {
                return Err(self.alone(turn));
            }
            if !self.hears_everybody() {
                self.drop_speaker(site)?;
            }
        }
        self.leave_unreachable(now, transport)
    }

    /// Where messages are passed on, the loss of an edge is not that of a site: others may still bring what it said. It is left behind
    /// when no way leads to it and, for as long as a silence is borne, nobody has had its message of this turn. So those that are left
    /// go on with the same releases, and form the mean of the same averages. One that went on with other releases would find its own
    /// left out, because they were computed elsewhere; one that formed another mean says in its result of whose averages.
    fn leave_unreachable(&mut self, now: Duration, transport: &dyn Transport) -> Result<(), SessionError> {
        let Some(limit) = self.silence.limit().filter(|_| !self.departures.is_empty()) else { return Ok(()) };
        let reachable = self.reachable();
        for speaker in &mut self.speakers {
            let since = speaker.unreachable_since.unwrap_or(now);
            let is_wanted = !speaker.is_lost || !speaker.is_left_out;
            speaker.unreachable_since = (is_wanted && !reachable.contains(&speaker.site)).then_some(since);
        }
        while let Phase::Receiving(turn) = self.agent.phase() {
            let is_left = |s: &&Speaker| {
                s.is_missing(turn)
                    && s.unreachable_since.is_some_and(|since| now.saturating_sub(since) > limit)
            };
            let Some(site) = self.speakers.iter().find(is_left).map(|s| s.site) else { break };
            self.ledger().lose_neighbour(&self.run, self.name(site), turn)?;
            if turn.stage == Stage::Average {
                self.leave_out(site)?;
            } else {
                self.report("continuing without", site, turn, transport)?;
                self.drop_speaker(site)?;
            }
        }
        Ok(())
    }

    /// Says again which edges are lost. Before the start, where releases are passed on and in the averaging, all must know of it to go on
    /// together; who is done tells those that are not.
    pub(super) fn tell_departures_again(&mut self, now: Duration, transport: &dyn Transport) {
        let is_in_rounds = self.agent.phase().turn().is_some_and(|turn| turn.stage == Stage::Model);
        let must_all_know = self.hears_everybody() || !self.started || !is_in_rounds;
        if must_all_know && !self.departures.is_empty() && self.telling.is_due(now, SLOWEST_RETRY) {
            // More than fit in a queue are told a part at a time, each time from another one on.
            let first = self.told_from % self.departures.len();
            self.told_from = first + TOLD_AT_ONCE;
            let from_first = self.departures.values().cycle().skip(first);
            let told: Vec<&Bytes> = from_first.take(self.departures.len()).collect();
            for site in self.living().map(PeerState::site) {
                told.iter().for_each(|bytes| transport.send(site, Arc::clone(bytes)));
            }
        }
    }

    /// The sites that a way of edges leads to which nobody has reported as lost.
    pub(super) fn reachable(&self) -> BTreeSet<SiteIndex> {
        let is_lost = |a: SiteIndex, b: SiteIndex| {
            self.departures.keys().any(|d| (d.reporter, d.lost) == (a, b) || (d.reporter, d.lost) == (b, a))
        };
        let (mut found, mut next) = (BTreeSet::from([self.me()]), vec![self.me()]);
        while let Some(site) = next.pop() {
            for &other in self.graph.neighbours(site.0) {
                let other = SiteIndex(other);
                if !is_lost(site, other) && found.insert(other) {
                    next.push(other);
                }
            }
        }
        found
    }

    /// Tells everybody, those that are left behind included. The word is kept first: it holds after a crash as well.
    fn report(
        &mut self,
        what: &str,
        site: SiteIndex,
        turn: Turn,
        transport: &dyn Transport,
    ) -> Result<(), SessionError> {
        let departure = Departure { reporter: self.me(), lost: site, turn };
        if self.departures.keys().any(|d| (d.reporter, d.lost) == (departure.reporter, site)) {
            return Ok(());
        }
        let bytes = self.outbox.sign(&Frame::Departure { origin: self.origin, lost: site, turn });
        self.ledger().keep_word(&self.run, &bytes)?;
        let line = format!("{what} {} from {}", self.name(site), turn_name(turn));
        self.log(Level::Warning, "departure", &line);
        self.peers.iter().for_each(|p| transport.send(p.site(), Arc::clone(&bytes)));
        self.departures.insert(departure, bytes);
        Ok(())
    }

    fn drop_speaker(&mut self, site: SiteIndex) -> Result<(), SessionError> {
        let speaker = self.speaker(site).expect("who is left behind was heard");
        speaker.is_lost = true;
        // Its average, which others may have brought, is not of this edge.
        speaker.held.retain(|turn, _| turn.stage == Stage::Average);
        self.agent.drop_neighbour(site);
        self.finish_turn()
    }

    /// The mean is formed without a site whose average nobody has.
    fn leave_out(&mut self, site: SiteIndex) -> Result<(), SessionError> {
        let line = format!("forming the mean without the average of {}, which nobody has", self.name(site));
        self.log(Level::Warning, "departure", &line);
        self.speaker(site).expect("who is left out was heard").is_left_out = true;
        self.agent.leave_out(site);
        self.finish_turn()
    }

    pub(super) fn alone(&self, turn: Turn) -> SessionError {
        let who: Vec<&str> = self.peers.iter().map(|p| self.name(p.site())).collect();
        let who = who.join(", ");
        match self.started {
            true => SessionError::Alone { place: turn_name(turn), who },
            false => SessionError::LeftBehind { who },
        }
    }
}
