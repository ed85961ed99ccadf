//! A neighbour, and a site whose releases are heard, as the session sees them.

use std::collections::BTreeMap;
use std::time::Duration;

use padmm_core::message::{SiteIndex, Stage, Turn};

use crate::frame::{Announcement, MOST_SHOWN, Shown};
use crate::identity::PublicKey;
use crate::link::RoundTrip;
use crate::outbox::Bytes;

/// What is known of a neighbour before the run.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Which of the plan's sites it is.
    pub site: SiteIndex,
    /// The key that its frames must be signed with.
    pub key: PublicKey,
    /// Where its card says that it is reached, for messages to people.
    pub addresses: Vec<String>,
    /// Its own newest announcements that are kept here, one for each of its ledgers: they are shown to it when it comes.
    pub announced: Vec<(Announcement, Shown)>,
    /// Its newest announcement of this run.
    pub kept: Option<(Announcement, Shown)>,
    /// The newest release of its own that our ledger holds from a run before there were announcements: it is shown to it too.
    pub latest: Option<Bytes>,
}

impl Neighbour {
    /// Remembers an announcement if it is the newest of its ledger. The newest of all comes first, and of more ledgers than can be
    /// shown the oldest is forgotten here; it stays on the disk.
    pub fn remember(&mut self, new: Announcement, bytes: Shown) {
        let is_known = |a: &(Announcement, Shown)| a.0.ledger == new.ledger && a.0.entry >= new.entry;
        if self.announced.iter().any(is_known) {
            return;
        }
        self.announced.retain(|(known, _)| known.ledger != new.ledger);
        self.announced.insert(0, (new, bytes));
        self.announced.truncate(MOST_SHOWN);
    }
}

/// A question that is asked again, more and more patiently.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    next: Duration,
    patience: Duration,
}

impl Backoff {
    pub(super) fn new(now: Duration) -> Self {
        Self { next: now, patience: RoundTrip::default().patience() }
    }

    /// A new question, which is asked again if there is no answer for so long.
    pub(super) fn begin(&mut self, now: Duration, patience: Duration) {
        (self.next, self.patience) = (now + patience, 2 * patience);
    }

    /// When it is time to ask.
    pub(super) fn next(&self) -> Duration {
        self.next
    }

    /// Whether it is time to ask, and then more patiently for the next time.
    pub(super) fn is_due(&mut self, now: Duration, longest: Duration) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + self.patience;
        self.patience = (2 * self.patience).min(longest.max(self.patience));
        true
    }
}

/// What is known of it now.
pub(super) struct PeerState {
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
    /// Of the last status that was believed; older ones are ignored.
    pub counter: u64,
    pub is_done: bool,
    /// There is a connection to it.
    pub is_connected: bool,
    /// It was told over a connection that this site has its model.
    pub is_told: bool,
    /// It is to be lost as soon as this site listens.
    pub is_leaving: bool,
    pub is_lost: bool,
    /// What it has announced and is not on our disk yet.
    pub arriving: Option<(Announcement, Shown)>,
    /// It has our newest announcement on its disk.
    pub has_receipted: bool,
    /// When to ask for a greeting again.
    pub asking: Backoff,
    /// When to announce the pending release again.
    pub announcing: Backoff,
    /// When the pending release was announced, as long as that was once.
    pub announced_at: Option<Duration>,
    /// How long its receipts take.
    pub receipts: RoundTrip,
}

impl PeerState {
    pub(super) fn new(neighbour: Neighbour, now: Duration) -> Self {
        Self {
            neighbour,
            has_greeted: false,
            owes_proof: false,
            has_proved: false,
            owes_plan: false,
            next_greeting: now,
            last_heard: now,
            counter: 0,
            is_done: false,
            is_connected: false,
            is_told: false,
            is_leaving: false,
            is_lost: false,
            arriving: None,
            has_receipted: false,
            asking: Backoff::new(now),
            announcing: Backoff::new(now),
            announced_at: None,
            receipts: RoundTrip::default(),
        }
    }

    pub(super) fn site(&self) -> SiteIndex {
        self.neighbour.site
    }

    /// Whether it has given no sign of life for longer than `limit`.
    pub(super) fn is_silent(&self, now: Duration, limit: Duration) -> bool {
        now.saturating_sub(self.last_heard) > limit
    }
}

/// A site whose messages this one hears: a neighbour or, where they are passed on, any other site.
pub(super) struct Speaker {
    pub site: SiteIndex,
    /// Nothing of it is waited for in the algorithm's turns: the run continues without it, or it is no neighbour.
    pub is_lost: bool,
    /// The mean at the end is formed without it, or there is none.
    pub is_left_out: bool,
    /// Since when no way leads to it any more, by all that is known of edges.
    pub unreachable_since: Option<Duration>,
    /// Its messages of turns that are not over.
    pub held: BTreeMap<Turn, Vec<u8>>,
    /// When to request its message of the turn again.
    pub requesting: Backoff,
    /// Its message of the turn was requested, so that nobody knows what the one that comes answers.
    pub was_asked: bool,
    /// How long its messages are waited for.
    pub waits: RoundTrip,
}

impl Speaker {
    /// One that is heard in the algorithm's turns, or in the averaging, or in both.
    pub(super) fn new(site: SiteIndex, is_heard: bool, is_averaged: bool, now: Duration) -> Self {
        Self {
            site,
            is_lost: !is_heard,
            is_left_out: !is_averaged,
            unreachable_since: None,
            held: BTreeMap::new(),
            requesting: Backoff::new(now),
            was_asked: false,
            waits: RoundTrip::default(),
        }
    }

    /// Whether its messages of this part of the run are used.
    pub(super) fn is_heard_in(&self, stage: Stage) -> bool {
        match stage {
            Stage::Model => !self.is_lost,
            Stage::Average => !self.is_left_out,
        }
    }

    /// This site has sent its message of a turn and waits for this one's.
    pub(super) fn await_message(&mut self, now: Duration) {
        self.requesting.begin(now, self.waits.patience());
        self.was_asked = false;
    }

    /// Whether its message of `turn` is waited for.
    pub(super) fn is_missing(&self, turn: Turn) -> bool {
        self.is_heard_in(turn.stage) && !self.held.contains_key(&turn)
    }
}
