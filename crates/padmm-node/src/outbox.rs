//! What a site hands out when it is asked: its own signed frames, ready made, and those that it passes on. Reading it needs no records and no ledger, so
//! neighbours get their answers, and signs of life, while the site computes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use padmm_core::message::{SiteIndex, StateDigest, Turn};

use crate::frame::{Frame, Origin, Ready};
use crate::identity::SecretKey;

/// A frame as it travels, shared by all who send it.
pub type Bytes = Arc<[u8]>;

#[derive(Default)]
struct Inner {
    messages: BTreeMap<(Turn, SiteIndex), Bytes>,
    state: Option<StateDigest>,
    plan_text: String,
    at: Option<Turn>,
    is_done: bool,
}

/// One site's signed frames of one run, and its signs of life.
pub struct Outbox {
    origin: Origin,
    key: SecretKey,
    counter: AtomicU64,
    inner: Mutex<Inner>,
    /// Whether the site waits for its disk, and how many signs of life it has given since.
    is_writing: Arc<AtomicBool>,
    beats_while_writing: AtomicU32,
}

/// A site whose disk takes more heartbeats than this to write does not say that it is alive.
pub const MOST_BEATS_WHILE_WRITING: u32 = 5;

impl Outbox {
    /// For one site's side of one run, in a process that was started at `started`.
    pub fn new(origin: Origin, key: SecretKey, plan_text: String, started: SystemTime) -> Self {
        // A later process counts from a higher number, as far as the clock can be trusted; neighbours start over with every connection.
        let start = started.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
        let inner = Inner { plan_text, ..Inner::default() };
        Self {
            origin,
            key,
            counter: AtomicU64::new(start),
            inner: Mutex::new(inner),
            is_writing: Arc::default(),
            beats_while_writing: AtomicU32::new(0),
        }
    }

    /// The same at a site whose ledger says through `is_writing` that it waits for the disk.
    #[must_use]
    pub fn on_disk(self, is_writing: Arc<AtomicBool>) -> Self {
        Self { is_writing, ..self }
    }

    /// A sign of life for the neighbours, once a heartbeat; none while a write hangs. A site may compute for as long as it likes, but one
    /// whose disk does not answer will say nothing more, and its neighbours have to notice.
    pub fn heartbeat(&self) -> Option<Bytes> {
        let beats = match self.is_writing.load(Ordering::Relaxed) {
            true => self.beats_while_writing.fetch_add(1, Ordering::Relaxed),
            false => {
                self.beats_while_writing.store(0, Ordering::Relaxed);
                0
            }
        };
        (beats < MOST_BEATS_WHILE_WRITING).then(|| self.status())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics while holding the outbox")
    }

    /// The site and the run that all of its frames are from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Signs a frame of this site's.
    pub fn sign(&self, frame: &Frame) -> Bytes {
        frame.encode(&self.key)
    }

    /// This site's word that all its edges work.
    pub fn ready(&self) -> Ready {
        Ready::say(self.origin, &self.key)
    }

    /// Puts a site's message of a turn where neighbours can get it, for as long as the process lives.
    pub fn put(&self, whose: SiteIndex, turn: Turn, bytes: Bytes) {
        self.lock().messages.insert((turn, whose), bytes);
    }

    /// A site's message of a turn: this site's own if it has left, another's if it is passed on.
    pub fn message(&self, whose: SiteIndex, turn: Turn) -> Option<Bytes> {
        self.lock().messages.get(&(turn, whose)).cloned()
    }

    /// The messages of the `n` latest turns, oldest first: what a neighbour that was away for a moment has missed.
    pub fn latest(&self, n: usize) -> Vec<(SiteIndex, Turn, Bytes)> {
        let inner = self.lock();
        let mut turns: Vec<Turn> = inner.messages.keys().map(|key| key.0).collect();
        turns.dedup();
        let Some(&first) = turns.get(turns.len().saturating_sub(n)) else { return vec![] };
        let is_late = |(key, _): &(&(Turn, SiteIndex), &Bytes)| key.0 >= first;
        let message =
            |(&(turn, whose), bytes): (&(Turn, SiteIndex), &Bytes)| (whose, turn, Arc::clone(bytes));
        inner.messages.iter().filter(is_late).map(message).collect()
    }

    /// Sets the public state that the next release is computed at, which its frame names.
    pub fn set_state(&self, state: Option<StateDigest>) {
        self.lock().state = state;
    }

    /// The public state that the next release is computed at.
    pub fn state(&self) -> Option<StateDigest> {
        self.lock().state
    }

    /// Sets what signs of life say: the turn that the site is in, and whether it has its model.
    pub fn set_progress(&self, turn: Turn, is_done: bool) {
        let mut inner = self.lock();
        inner.at = Some(turn);
        inner.is_done = is_done;
    }

    /// A sign of life, with a counter that is higher than that of the one before.
    pub fn status(&self) -> Bytes {
        let (at, done) = {
            let inner = self.lock();
            (inner.at, inner.is_done)
        };
        let turn = at.unwrap_or(Turn::model(1));
        let counter = self.counter.fetch_add(1, Ordering::Relaxed);
        self.sign(&Frame::Status { origin: self.origin, turn, counter, done })
    }

    /// The answer to a request, if there is one; with whose message of which turn it is, for the log of what left.
    pub fn answer(&self, request: &[u8]) -> Option<(Option<(SiteIndex, Turn)>, Bytes)> {
        match Frame::decode(request).ok()? {
            Frame::Request { whose, turn } => Some((Some((whose, turn)), self.message(whose, turn)?)),
            Frame::RequestPlan => {
                let text = self.lock().plan_text.clone();
                Some((None, self.sign(&Frame::PlanText(text))))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A site that computes gives signs of life for as long as it likes; one whose disk hangs does not, until the write returns.
    #[test]
    fn a_hanging_disk_ends_the_signs_of_life() {
        let key = SecretKey::from_bytes(&[7; 32]);
        let origin = Origin { plan: [0; 32], sender: SiteIndex(0) };
        let is_writing: Arc<AtomicBool> = Arc::default();
        let outbox = Outbox::new(origin, key, String::new(), UNIX_EPOCH).on_disk(Arc::clone(&is_writing));
        assert!((0..1000).all(|_| outbox.heartbeat().is_some()));
        for _ in 0..2 {
            is_writing.store(true, Ordering::Relaxed);
            assert!((0..MOST_BEATS_WHILE_WRITING).all(|_| outbox.heartbeat().is_some()));
            assert!((0..100).all(|_| outbox.heartbeat().is_none()));
            is_writing.store(false, Ordering::Relaxed);
            assert!(outbox.heartbeat().is_some());
        }
    }
}
