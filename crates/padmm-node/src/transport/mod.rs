//! How frames get to neighbours. Frames may be lost, repeated, delayed and reordered; the session asks again for what it misses.

pub mod memory;
pub mod quic;

use padmm_core::message::SiteIndex;

use crate::outbox::Bytes;

/// Carries frames to neighbours. What arrives from them goes to the [`Mailbox`](crate::mailbox::Mailbox) that a transport was made
/// with.
pub trait Transport: Send {
    /// Starts to send; never waits. What cannot be sent is dropped.
    fn send(&self, to: SiteIndex, frame: Bytes);

    /// A frame that came from there is signed by it: it knows this site, and it is worth a call when it is lost.
    fn believe(&self, from: SiteIndex) {
        let _ = from;
    }
}
