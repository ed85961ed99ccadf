//! What a site hands out when it is asked: its own signed frames, ready made. Reading it needs no records and no ledger, so
//! neighbours get their answers, and signs of life, while the site computes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use padmm_core::message::Turn;

use crate::frame::{Frame, Origin, Ready};
use crate::identity::SecretKey;

/// A frame as it travels, shared by all who send it.
pub type Bytes = Arc<[u8]>;

#[derive(Default)]
struct Inner {
    messages: BTreeMap<Turn, Bytes>,
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
}

impl Outbox {
    /// For one site's side of one run, in a process that was started at `started`.
    pub fn new(origin: Origin, key: SecretKey, plan_text: String, started: SystemTime) -> Self {
        // A later process counts from a higher number, as far as the clock can be trusted; neighbours start over with every connection.
        let start = started.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
        let inner = Inner { plan_text, ..Inner::default() };
        Self { origin, key, counter: AtomicU64::new(start), inner: Mutex::new(inner) }
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

    /// Puts the message of a turn where neighbours can get it, for as long as the process lives.
    pub fn put(&self, turn: Turn, bytes: Bytes) {
        self.lock().messages.insert(turn, bytes);
    }

    /// This site's message of a turn, if it has left.
    pub fn message(&self, turn: Turn) -> Option<Bytes> {
        self.lock().messages.get(&turn).cloned()
    }

    /// The `n` messages of the latest turns, newest last: what a neighbour that was away for a moment has missed.
    pub fn latest(&self, n: usize) -> Vec<(Turn, Bytes)> {
        let inner = self.lock();
        let mut latest: Vec<_> =
            inner.messages.iter().rev().take(n).map(|(&k, b)| (k, Arc::clone(b))).collect();
        latest.reverse();
        latest
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

    /// The answer to a request, if there is one; with the turn that it is the message of, for the log of what left.
    pub fn answer(&self, request: &[u8]) -> Option<(Option<Turn>, Bytes)> {
        match Frame::decode(request).ok()? {
            Frame::Request { turn } => Some((Some(turn), self.message(turn)?)),
            Frame::RequestPlan => {
                let text = self.lock().plan_text.clone();
                Some((None, self.sign(&Frame::PlanText(text))))
            }
            _ => None,
        }
    }
}
