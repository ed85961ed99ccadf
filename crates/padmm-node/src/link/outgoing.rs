//! Frames to a neighbour: those that wait, and those that are on their way. Of a message at most one copy is.

use std::collections::VecDeque;

use super::ConnectionId;
use crate::frame::{MessageKey, message_key};
use crate::outbox::Bytes;

/// Frames that wait for a neighbour at most; beyond that it is too slow and asks again later.
pub const MOST_QUEUED: usize = 64;
/// Messages that are on their way at once, each on a stream of its own so that its arrival is noticed. Beyond that they share one.
pub const MOST_FLYING: usize = 12;

#[derive(Debug, Default)]
pub(super) struct Outgoing {
    queue: VecDeque<(Option<MessageKey>, Bytes)>,
    flying: Vec<(ConnectionId, MessageKey)>,
}

impl Outgoing {
    /// Whether there is room for a frame, and no copy of it waits or is on its way over `active`.
    pub(super) fn takes(&self, active: ConnectionId, bytes: &[u8]) -> bool {
        let is_copy = |key: &MessageKey| {
            self.queue.iter().any(|(queued, _)| queued.as_ref() == Some(key))
                || self.flying.iter().any(|(over, flying)| *over == active && flying == key)
        };
        self.queue.len() < MOST_QUEUED && !message_key(bytes).as_ref().is_some_and(is_copy)
    }

    /// Lets a frame wait, if it is taken.
    pub(super) fn offer(&mut self, active: ConnectionId, bytes: Bytes) -> bool {
        let is_taken = self.takes(active, &bytes);
        if is_taken {
            self.queue.push_back((message_key(&bytes), bytes));
        }
        is_taken
    }

    /// The next frame for `active`; with its key, if the driver is to say when it has arrived.
    pub(super) fn next(&mut self, active: ConnectionId) -> Option<(Option<MessageKey>, Bytes)> {
        let (key, bytes) = self.queue.pop_front()?;
        let key = key.filter(|_| self.flying.len() < MOST_FLYING);
        self.flying.extend(key.map(|key| (active, key)));
        Some((key, bytes))
    }

    /// A message has arrived, or never will over this connection.
    pub(super) fn landed(&mut self, over: ConnectionId, key: &MessageKey) {
        self.flying.retain(|flying| *flying != (over, *key));
    }

    /// A connection is gone, with all that was on its way over it.
    pub(super) fn forget(&mut self, over: ConnectionId) {
        self.flying.retain(|(connection, _)| *connection != over);
    }

    /// Nobody is there. What waits is dropped: the session sends what matters when there is a connection again.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
    }
}
