//! What has arrived and was not looked at yet: one short queue for each neighbour, emptied in turn, so that one that floods
//! waits for itself.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Frames of one neighbour that wait at most; a sender beyond that is held back.
pub const MOST_WAITING: usize = 64;

/// Something that happened outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A frame from the neighbour whose connection this is.
    Frame {
        /// The neighbour's place in the contract, by the key of its connection.
        from: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A neighbour is connected, anew.
    Connected {
        /// Its place.
        site: usize,
    },
    /// It is not any longer.
    Disconnected {
        /// Its place.
        site: usize,
        /// Whether it said that it is done.
        done: bool,
    },
    /// Something to note in the log: a stranger at the door, a frame that is too long.
    Noted {
        /// In words.
        what: String,
    },
}

#[derive(Default)]
struct Inner {
    frames: Vec<VecDeque<Vec<u8>>>,
    other: VecDeque<Event>,
    next: usize,
    stop: bool,
}

/// The mailbox of one site.
pub struct Mailbox {
    inner: Mutex<Inner>,
    arrived: Condvar,
}

impl Mailbox {
    /// For a contract of so many sites.
    pub fn new(n_sites: usize) -> Self {
        let frames = (0..n_sites).map(|_| VecDeque::new()).collect();
        let inner = Inner { frames, ..Inner::default() };
        Mailbox { inner: Mutex::new(inner), arrived: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics with the mailbox in hand")
    }

    /// Puts in a frame, or gives it back if too many of this neighbour's wait already.
    pub fn offer(&self, from: usize, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        let mut inner = self.lock();
        if inner.frames[from].len() >= MOST_WAITING {
            return Err(bytes);
        }
        inner.frames[from].push_back(bytes);
        drop(inner);
        self.arrived.notify_one();
        Ok(())
    }

    /// Puts in anything else. Notes beyond a thousand that wait are dropped: a stranger must not fill the memory.
    pub fn put(&self, event: Event) {
        let mut inner = self.lock();
        let is_note = matches!(event, Event::Noted { .. });
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

    /// Whether it was asked to.
    pub fn is_stopped(&self) -> bool {
        self.lock().stop
    }

    /// The next event, if there is one: neighbours by turns.
    pub fn take(&self) -> Option<Event> {
        Self::take_from(&mut self.lock())
    }

    fn take_from(inner: &mut Inner) -> Option<Event> {
        if let Some(event) = inner.other.pop_front() {
            return Some(event);
        }
        let n = inner.frames.len();
        let from = (0..n).map(|k| (inner.next + k) % n).find(|&k| !inner.frames[k].is_empty())?;
        inner.next = from + 1;
        let bytes = inner.frames[from].pop_front().expect("this queue has something");
        Some(Event::Frame { from, bytes })
    }

    /// The next event, waiting for one for at most `patience`.
    pub fn wait(&self, patience: Duration) -> Option<Event> {
        let until = Instant::now() + patience;
        let mut inner = self.lock();
        loop {
            if let Some(event) = Self::take_from(&mut inner) {
                return Some(event);
            }
            let left = until.saturating_duration_since(Instant::now());
            if inner.stop || left.is_zero() {
                return None;
            }
            inner = self.arrived.wait_timeout(inner, left).expect("nobody panics with the mailbox in hand").0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_waits_for_itself_and_for_nobody_else() {
        let mailbox = Mailbox::new(3);
        for k in 0..MOST_WAITING {
            mailbox.offer(0, vec![k as u8]).unwrap();
        }
        assert_eq!(mailbox.offer(0, vec![9]), Err(vec![9]));
        mailbox.offer(2, vec![42]).unwrap();
        assert_eq!(mailbox.take(), Some(Event::Frame { from: 0, bytes: vec![0] }));
        assert_eq!(mailbox.take(), Some(Event::Frame { from: 2, bytes: vec![42] }), "the second in turn");
        mailbox.offer(0, vec![9]).unwrap();
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let mailbox = Mailbox::new(1);
        mailbox.stop();
        assert_eq!(mailbox.wait(Duration::from_secs(3600)), None);
        assert!(mailbox.is_stopped());
    }
}
