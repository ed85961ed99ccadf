//! How frames get to neighbours. Frames may be lost, repeated, delayed and reordered; the session asks again for what it misses.

pub mod memory;
pub mod quic;

use std::sync::Arc;

use crate::mailbox::Mailbox;
use crate::shelf::Bytes;

/// Carries frames to neighbours, and puts what arrives into the site's mailbox.
pub trait Transport: Send {
    /// Starts to send; never waits. What cannot be sent is dropped.
    fn send(&self, to: usize, frame: Bytes);

    /// Where events arrive.
    fn mailbox(&self) -> &Arc<Mailbox>;
}
