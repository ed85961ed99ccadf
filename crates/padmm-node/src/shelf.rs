//! What a site hands out when it is asked: its own signed frames, ready made. Reading it needs no records and no ledger, so
//! neighbours get their answers, and signs of life, while the site computes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::UNIX_EPOCH;

use padmm_core::message::Stage;

use crate::frame::{Frame, Origin, Ready};
use crate::identity::SecretKey;

/// Frames as they travel.
pub type Bytes = Arc<[u8]>;

#[derive(Default)]
struct Inner {
    speeches: BTreeMap<(Stage, u32), Bytes>,
    plan_text: String,
    at: Option<(Stage, u32)>,
    is_done: bool,
}

/// What may be handed out.
pub struct Shelf {
    origin: Origin,
    key: SecretKey,
    counter: AtomicU64,
    inner: Mutex<Inner>,
}

impl Shelf {
    /// A shelf for one site's side of one run.
    pub fn new(origin: Origin, key: SecretKey, plan_text: String) -> Self {
        // Later processes count on from later, as far as the clock goes; neighbours count anew with every connection.
        let start = crate::clock::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64);
        let inner = Inner { plan_text, ..Inner::default() };
        Shelf { origin, key, counter: AtomicU64::new(start), inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics with the shelf in hand")
    }

    /// Who hands out.
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

    /// Puts a speech where neighbours can get it, for as long as the process lives.
    pub fn put(&self, stage: Stage, turn: u32, bytes: Bytes) {
        self.lock().speeches.insert((stage, turn), bytes);
    }

    /// A speech of this site's.
    pub fn speech(&self, stage: Stage, turn: u32) -> Option<Bytes> {
        self.lock().speeches.get(&(stage, turn)).cloned()
    }

    /// The last speeches, newest last: what a neighbour that was away for a moment has missed.
    pub fn latest(&self, n: usize) -> Vec<((Stage, u32), Bytes)> {
        let inner = self.lock();
        let mut latest: Vec<_> =
            inner.speeches.iter().rev().take(n).map(|(&k, b)| (k, Arc::clone(b))).collect();
        latest.reverse();
        latest
    }

    /// Says how far the site is.
    pub fn set_place(&self, stage: Stage, turn: u32, is_done: bool) {
        let mut inner = self.lock();
        inner.at = Some((stage, turn));
        inner.is_done = is_done;
    }

    /// A sign of life.
    pub fn status(&self) -> Bytes {
        let (at, done) = {
            let inner = self.lock();
            (inner.at, inner.is_done)
        };
        let (stage, turn) = at.unwrap_or((Stage::Model, 1));
        let counter = self.counter.fetch_add(1, Ordering::Relaxed);
        self.sign(&Frame::Status { origin: self.origin, stage, turn, counter, done })
    }

    /// The answer to a question, if there is one; with what it is, for the log of what left.
    pub fn answer(&self, question: &[u8]) -> Option<(Option<(Stage, u32)>, Bytes)> {
        match Frame::decode(question).ok()? {
            Frame::Want { stage, turn } => Some((Some((stage, turn)), self.speech(stage, turn)?)),
            Frame::WantPlan => {
                let text = self.lock().plan_text.clone();
                Some((None, self.sign(&Frame::PlanText(text))))
            }
            _ => None,
        }
    }
}
