//! What has arrived and was not looked at yet: one short queue for each neighbour, emptied in turn, so that one that floods
//! waits for itself. The network fills it, whoever may stop the site does so through it, and the session empties it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use padmm_core::message::SiteIndex;

/// How many frames of one neighbour may wait; the reader of its connection is held back beyond that.
pub const MOST_WAITING: usize = 64;

/// What the network tells a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkEvent {
    /// A frame from the neighbour whose connection this is.
    Frame {
        /// The neighbour, by the key of its connection.
        from: SiteIndex,
        /// Not decoded, and not believed yet.
        bytes: Vec<u8>,
    },
    /// A neighbour connected, for the first time or again.
    Connected {
        /// The neighbour, by the key of its connection.
        site: SiteIndex,
    },
    /// The connection to a neighbour is closed or lost.
    Disconnected {
        /// The neighbour, by the key of its connection.
        site: SiteIndex,
        /// Whether it said that it has its model and needs nothing more.
        done: bool,
    },
    /// Something to note in the log: a stranger at the door, a frame that is too long.
    Noted {
        /// The line for the log, in words.
        what: String,
    },
}

#[derive(Default)]
struct Inner {
    frames: Vec<VecDeque<Vec<u8>>>,
    other: VecDeque<NetworkEvent>,
    next: usize,
    stop: bool,
}

type OnRoom = Box<dyn Fn(SiteIndex) + Send + Sync>;

/// The mailbox of one site's side of a run.
pub struct Mailbox {
    inner: Mutex<Inner>,
    arrived: Condvar,
    on_room: OnceLock<OnRoom>,
}

impl Mailbox {
    /// With a queue for each of a contract's `n_sites` sites.
    pub fn new(n_sites: usize) -> Self {
        let frames = (0..n_sites).map(|_| VecDeque::new()).collect();
        let inner = Inner { frames, ..Inner::default() };
        Self { inner: Mutex::new(inner), arrived: Condvar::new(), on_room: OnceLock::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics while holding the mailbox")
    }

    /// Calls `tell` whenever there is room again in the full queue of a neighbour. The first one stays: there is one network.
    pub fn on_room(&self, tell: impl Fn(SiteIndex) + Send + Sync + 'static) {
        let _ = self.on_room.set(Box::new(tell));
    }

    /// Puts in a frame, or gives it back if [`MOST_WAITING`] of this neighbour's wait already.
    pub fn offer(&self, from: SiteIndex, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        let mut inner = self.lock();
        let queue = &mut inner.frames[from.0];
        if queue.len() >= MOST_WAITING {
            return Err(bytes);
        }
        queue.push_back(bytes);
        drop(inner);
        self.arrived.notify_one();
        Ok(())
    }

    /// Puts in anything else. Notes beyond a thousand that wait are dropped: a stranger must not fill the memory.
    pub fn put(&self, event: NetworkEvent) {
        let mut inner = self.lock();
        let is_note = matches!(event, NetworkEvent::Noted { .. });
        if !is_note || inner.other.len() < 1000 {
            inner.other.push_back(event);
        }
        drop(inner);
        self.arrived.notify_one();
    }

    /// Asks the site to stop after what it is writing.
    pub fn stop(&self) {
        self.lock().stop = true;
        self.arrived.notify_one();
    }

    /// Whether the site was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.lock().stop
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        let inner = self.lock();
        inner.other.is_empty() && inner.frames.iter().all(VecDeque::is_empty)
    }

    /// The next event, if there is one: neighbours take turns.
    pub fn take(&self) -> Option<NetworkEvent> {
        self.take_from(&mut self.lock())
    }

    fn take_from(&self, inner: &mut Inner) -> Option<NetworkEvent> {
        if let Some(event) = inner.other.pop_front() {
            return Some(event);
        }
        let n = inner.frames.len();
        let from = (0..n).map(|k| (inner.next + k) % n).find(|&k| !inner.frames[k].is_empty())?;
        inner.next = from + 1;
        let was_full = inner.frames[from].len() == MOST_WAITING;
        let bytes = inner.frames[from].pop_front().expect("this queue has something");
        let from = SiteIndex(from);
        if let Some(tell) = self.on_room.get().filter(|_| was_full) {
            tell(from);
        }
        Some(NetworkEvent::Frame { from, bytes })
    }

    /// The next event, waiting for one for at most `patience`.
    pub fn wait(&self, patience: Duration) -> Option<NetworkEvent> {
        let until = Instant::now() + patience;
        let mut inner = self.lock();
        loop {
            if let Some(event) = self.take_from(&mut inner) {
                return Some(event);
            }
            let left = until.saturating_duration_since(Instant::now());
            if inner.stop || left.is_zero() {
                return None;
            }
            inner =
                self.arrived.wait_timeout(inner, left).expect("nobody panics while holding the mailbox").0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_waits_for_itself_and_for_nobody_else() {
        let mailbox = Mailbox::new(3);
        let told = std::sync::Arc::new(Mutex::new(vec![]));
        let rooms = std::sync::Arc::clone(&told);
        mailbox.on_room(move |site| rooms.lock().unwrap().push(site));
        let [first, third] = [0, 2].map(SiteIndex);
        for k in 0..MOST_WAITING {
            mailbox.offer(first, vec![k as u8]).unwrap();
        }
        assert_eq!(mailbox.offer(first, vec![9]), Err(vec![9]));
        mailbox.offer(third, vec![42]).unwrap();
        assert_eq!(mailbox.take(), Some(NetworkEvent::Frame { from: first, bytes: vec![0] }));
        assert_eq!(
            mailbox.take(),
            Some(NetworkEvent::Frame { from: third, bytes: vec![42] }),
            "the second in turn"
        );
        assert_eq!(*told.lock().unwrap(), [first], "only a queue that was full has news of room");
        mailbox.offer(first, vec![9]).unwrap();
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let mailbox = Mailbox::new(1);
        mailbox.stop();
        assert_eq!(mailbox.wait(Duration::from_secs(3600)), None);
        assert!(mailbox.is_stopped());
    }
}
