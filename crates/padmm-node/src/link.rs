//! The link to one neighbour as a machine: when it is dialled, which of its connections is written to, and which frames are on their way.
//! It has no socket, no thread, no clock and no randomness but a seed, so the network, tests and a simulator drive the same code.
//!
//! What happens goes in through `handle_*`, each with the time; then [`poll_output`](Link::poll_output) says what to do, and
//! [`poll_frame`](Link::poll_frame) what to write, until both have nothing. [`next_deadline`](Link::next_deadline) is when
//! [`handle_timeout`](Link::handle_timeout) is due if nothing else happens.
//!
//! A neighbour may have several connections: both ends dialled, it was restarted, or a copy of its home came up somewhere. All are read.
//! The newest is written to, until it has been silent for a while and another one has not. So none that is dead stays in use while there is a
//! live one, whichever came first, and where there is none the neighbour is dialled beside it.

mod calls;
mod outgoing;
mod round_trip;

use std::collections::VecDeque;
use std::time::Duration;

use crate::frame::MessageKey;
use crate::outbox::Bytes;

use calls::Calls;
use outgoing::Outgoing;
pub use outgoing::{MOST_FLYING, MOST_QUEUED};
pub use round_trip::RoundTrip;

/// A connection over which nothing has come for this long is not counted on: signs of life come three times as often.
pub const SILENT: Duration = Duration::from_secs(3);
/// After this long it is closed.
pub const DEAD: Duration = Duration::from_secs(6);
/// Connections of one neighbour that are read at once; an honest one needs two, when both ends dialled.
pub const MOST_CONNECTIONS: usize = 4;

/// A connection, as its driver numbers it; numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// How a connection ended, by what the neighbour said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It has its model and needs nothing more.
    Done,
    /// It does not know our key.
    Stranger,
    /// Anything else, or nothing.
    Lost,
}

/// Why the link closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// There are too many, and this one was heard least recently.
    Superseded,
    /// Nothing has come over it for too long.
    Silent,
    /// Nothing that is written to it is accepted.
    Stalled,
}

/// What the driver is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOutput {
    /// Dial the neighbour, and give up after this long. One call at a time.
    Dial {
        /// How long it may take.
        patience: Duration,
    },
    /// Write to this connection from now on; the session greets over it.
    Promote {
        /// One that was handed in and has not ended.
        connection: ConnectionId,
    },
    /// Close this connection; it has ended for the link.
    Close {
        /// One that was handed in and has not ended.
        connection: ConnectionId,
        /// For the neighbour.
        why: Closing,
    },
    /// There is no connection left.
    Down,
    /// The neighbour has said that it has its model.
    Done,
    /// For the log: the neighbour does not know our key, and has said so this often. Only when that has doubled.
    Refused {
        /// Since a frame of it was believed.
        times: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct Held {
    id: ConnectionId,
    is_ours: bool,
    last_heard: Duration,
    /// A signed frame has arrived since it is there.
    is_believed: bool,
}

/// The link to one neighbour.
#[derive(Debug)]
pub struct Link {
    calls: Calls,
    held: Vec<Held>,
    active: Option<ConnectionId>,
    outgoing: Outgoing,
    outputs: VecDeque<LinkOutput>,
}

impl Link {
    /// A link without a connection. Of the two ends one dials first; the seed decides by how much waits vary.
    pub fn new(dials_first: bool, seed: u64, now: Duration) -> Self {
        let calls = Calls::new(dials_first, seed, now);
        Self { calls, held: vec![], active: None, outgoing: Outgoing::default(), outputs: VecDeque::new() }
    }

    /// The connection that is written to.
    pub fn active(&self) -> Option<ConnectionId> {
        self.active
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<LinkOutput> {
        self.outputs.pop_front()
    }

    /// The next frame to write, and to which connection. Where there is a key, the driver says by
    /// [`handle_landed`](Self::handle_landed) when the frame has arrived.
    pub fn poll_frame(&mut self) -> Option<(ConnectionId, Option<MessageKey>, Bytes)> {
        let active = self.active?;
        let (key, bytes) = self.outgoing.next(active)?;
        Some((active, key, bytes))
    }

    /// A frame for the neighbour. It is dropped, with a no, if there is no connection, if too much waits, or if a copy of it is on
    /// its way.
    pub fn handle_outgoing(&mut self, bytes: Bytes) -> bool {
        self.active.is_some_and(|active| self.outgoing.offer(active, bytes))
    }

    /// Whether [`Link::handle_outgoing`] would say yes.
    pub fn takes(&self, bytes: &[u8]) -> bool {
        self.active.is_some_and(|active| self.outgoing.takes(active, bytes))
    }

    /// A message has arrived at the neighbour, or cannot any more.
    pub fn handle_landed(&mut self, connection: ConnectionId, key: &MessageKey) {
        self.outgoing.landed(connection, key);
    }

    /// A connection has come about, by our call or the neighbour's; its key is the neighbour's.
    pub fn handle_connected(&mut self, now: Duration, id: ConnectionId, is_ours: bool) {
        if is_ours {
            self.calls.connected();
        }
        if self.held.len() >= MOST_CONNECTIONS
            && let Some(oldest) = self.held.iter().min_by_key(|h| (h.last_heard, h.id)).map(|h| h.id)
        {
            self.close(oldest, Closing::Superseded);
        }
        self.held.push(Held { id, is_ours, last_heard: now, is_believed: false });
        self.promote(id);
    }

    /// A call came to nothing.
    pub fn handle_call_failed(&mut self, now: Duration) {
        self.calls.failed(now);
    }

    /// Something was read from a connection.
    pub fn handle_heard(&mut self, now: Duration, id: ConnectionId) {
        let Some(held) = self.held.iter_mut().find(|h| h.id == id) else { return };
        held.last_heard = now;
        if self.is_silent(now) {
            self.promote(id);
        }
    }

    /// A frame with the neighbour's signature has arrived, over any of its connections.
    pub fn handle_believed(&mut self) {
        self.held.iter_mut().for_each(|h| h.is_believed = true);
        self.calls.believed();
    }

    /// Writing to a connection gets nowhere.
    pub fn handle_stalled(&mut self, now: Duration, id: ConnectionId) {
        self.end(now, id, Some(Closing::Stalled));
    }

    /// A connection has ended.
    pub fn handle_closed(&mut self, now: Duration, id: ConnectionId, ending: Ending) {
        let held = self.held.iter().find(|h| h.id == id).copied();
        if ending == Ending::Done {
            self.outputs.push_back(LinkOutput::Done);
        }
        self.end(now, id, None);
        if let Some(held) = held
            && held.is_ours
            && ending == Ending::Stranger
        {
            let times = self.calls.refused(now);
            self.outputs.extend(times.map(|times| LinkOutput::Refused { times }));
        }
    }

    /// Does what is due at this time.
    pub fn handle_timeout(&mut self, now: Duration) {
        let is_dead = |h: &Held| now.saturating_sub(h.last_heard) >= DEAD;
        while let Some(dead) = self.held.iter().find(|h| is_dead(h)).map(|h| h.id) {
            self.end(now, dead, Some(Closing::Silent));
        }
        if self.is_silent(now)
            && let Some(last) = self.held.iter().max_by_key(|h| (h.last_heard, h.id)).map(|h| h.id)
        {
            self.promote(last);
        }
        let is_wanted = self.active.is_none() || self.is_silent(now);
        if is_wanted && self.calls.next().is_some_and(|at| at <= now) {
            let patience = self.calls.begin();
            self.outputs.push_back(LinkOutput::Dial { patience });
        }
    }

    /// When something may have to be done without anything happening.
    pub fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let dead = self.held.iter().map(|h| h.last_heard + DEAD).min();
        let silent = self.active_held().map(|h| h.last_heard + SILENT).filter(|&at| at > now);
        let is_wanted = self.active.is_none() || self.is_silent(now);
        let call = self.calls.next().filter(|_| is_wanted);
        [dead, silent, call].into_iter().flatten().min()
    }

    fn active_held(&self) -> Option<&Held> {
        self.held.iter().find(|h| Some(h.id) == self.active)
    }

    /// Whether there is a connection that is written to, and nothing has come over it for too long.
    fn is_silent(&self, now: Duration) -> bool {
        self.active_held().is_some_and(|h| now.saturating_sub(h.last_heard) >= SILENT)
    }

    fn promote(&mut self, connection: ConnectionId) {
        if self.active != Some(connection) {
            self.active = Some(connection);
            self.outputs.push_back(LinkOutput::Promote { connection });
        }
    }

    fn close(&mut self, connection: ConnectionId, why: Closing) {
        self.held.retain(|h| h.id != connection);
        self.outgoing.forget(connection);
        self.outputs.push_back(LinkOutput::Close { connection, why });
    }

    /// A connection is no more. If it was written to, the one that was heard last takes its place.
    fn end(&mut self, now: Duration, id: ConnectionId, closing: Option<Closing>) {
        let Some(ended) = self.held.iter().find(|h| h.id == id).copied() else { return };
        match closing {
            Some(why) => self.close(id, why),
            None => {
                self.held.retain(|h| h.id != id);
                self.outgoing.forget(id);
            }
        }
        if self.active != Some(id) {
            return;
        }
        if let Some(last) = self.held.iter().max_by_key(|h| (h.last_heard, h.id)).map(|h| h.id) {
            return self.promote(last);
        }
        self.active = None;
        self.outgoing.clear();
        self.outputs.push_back(LinkOutput::Down);
        if ended.is_believed {
            self.calls.lost(now);
        } else if ended.is_ours {
            self.calls.dropped(now);
        }
    }
}
