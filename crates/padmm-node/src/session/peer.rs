//! A neighbour as the session sees it.

use std::collections::BTreeMap;
use std::time::Duration;

use padmm_core::message::Stage;
use padmm_privacy::NoiseSchedule;

use crate::frame::PlanDigest;
use crate::identity::PublicKey;
use crate::shelf::Bytes;

/// What is known of a neighbour before the run.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Its place in the contract.
    pub site: usize,
    /// Its identity key.
    pub key: PublicKey,
    /// The noise of its releases, which the plan tells: their grid must be the plan's.
    pub noise: Option<NoiseSchedule>,
    /// The newest release of its own that our ledger holds, from any run: it is shown to it when it comes.
    pub latest: Option<Bytes>,
}

/// What is known of it now.
pub(super) struct Peer {
    pub neighbour: Neighbour,
    pub has_greeted: bool,
    /// It announced a release of ours that has not been seen yet.
    pub owes_proof: bool,
    pub has_proved: bool,
    /// It was asked for the text of its plan.
    pub owes_plan: bool,
    /// Before that it is not greeted again.
    pub next_greeting: Duration,
    pub last_heard: Duration,
    /// Counter of its last status.
    pub counter: u64,
    pub is_done: bool,
    /// It is to be lost as soon as this site listens.
    pub is_leaving: bool,
    pub is_lost: bool,
    /// Its messages of turns that are not over.
    pub held: BTreeMap<(Stage, u32), Vec<u8>>,
    next_want: Duration,
    patience: Duration,
}

impl Peer {
    pub fn new(neighbour: Neighbour, now: Duration) -> Self {
        Peer {
            neighbour,
            has_greeted: false,
            owes_proof: false,
            has_proved: false,
            owes_plan: false,
            next_greeting: now,
            last_heard: now,
            counter: 0,
            is_done: false,
            is_leaving: false,
            is_lost: false,
            held: BTreeMap::new(),
            next_want: now,
            patience: Duration::from_millis(100),
        }
    }

    pub fn site(&self) -> usize {
        self.neighbour.site
    }

    /// A release of its own was taken in. The newest one is shown to it when it comes again: its ledger must have it.
    pub fn note_release(&mut self, plan: &PlanDigest, bytes: &[u8]) {
        let known = self.neighbour.latest.as_deref().and_then(|known| super::age_of(known, plan));
        if super::age_of(bytes, plan) > known {
            self.neighbour.latest = Some(bytes.into());
        }
    }

    pub fn next_want(&self) -> Duration {
        self.next_want
    }

    /// A new turn: the first question comes at `first`.
    pub fn wants_again(&mut self, first: Duration, patience: Duration) {
        (self.next_want, self.patience) = (first, patience);
    }

    /// Whether it is time to ask, and then more patiently for the next time.
    pub fn wants_now(&mut self, now: Duration, longest: Duration) -> bool {
        if now < self.next_want {
            return false;
        }
        self.next_want = now + self.patience;
        self.patience = (2 * self.patience).min(longest);
        true
    }
}
