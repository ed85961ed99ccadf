//! What processes put on the wire, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use padmm_core::message::Stage;
use padmm_node::frame::Frame;

use super::consortium::NAMES;
use super::disk::SimulatedDisk;
use super::invariant::Invariant;
use super::network::ProcessId;

const A_SECOND: Duration = Duration::from_secs(1);
/// How often the same thing is asked in a second at most: soon once or twice, and then after twice the time each time.
const MOST_ASKED: u32 = 10;

/// All that was ever sent, whether it arrived or not.
#[derive(Clone, Default)]
pub(super) struct Wire(Arc<Mutex<Inner>>);

#[derive(Default)]
pub(super) struct Inner {
    /// The site of every process, and its disk.
    senders: BTreeMap<ProcessId, (usize, SimulatedDisk)>,
    payloads: BTreeMap<(usize, u32), Vec<u8>>,
    /// Digests of all frames from one site to another.
    seen: BTreeSet<u64>,
    bytes: u64,
    /// The same without what was sent before.
    distinct_bytes: u64,
    /// The same question of a process to a site: when it was first asked within the last second, and how often since.
    asked: BTreeMap<(ProcessId, usize, Vec<u8>), (Duration, u32)>,
    /// Sites that have said that their edges work.
    pub(super) ready: BTreeSet<usize>,
    pub(super) wrong: Option<Invariant>,
}

impl Wire {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("watching does not panic")
    }

    /// From now on this process may send, and what it sends must be on this disk.
    pub(super) fn register(&self, process: ProcessId, site: usize, disk: SimulatedDisk) {
        self.lock().senders.insert(process, (site, disk));
    }

    /// A process puts a frame on the wire.
    pub(super) fn watch(&self, now: Duration, from: ProcessId, to: usize, bytes: &[u8]) {
        let mut inner = self.lock();
        let Some((sender, disk)) = inner.senders.get(&from).cloned() else { return };
        let mut digest = DefaultHasher::new();
        (sender, to, bytes).hash(&mut digest);
        inner.bytes += bytes.len() as u64;
        if inner.seen.insert(digest.finish()) {
            inner.distinct_bytes += bytes.len() as u64;
        }
        match Frame::decode(bytes) {
            Ok(Frame::Hello { ready, .. }) if ready.iter().any(|word| word.site.0 == sender) => {
                inner.ready.insert(sender);
            }
            Ok(Frame::Model(model)) if model.turn.stage == Stage::Model => {
                let (site, round) = (model.origin.sender.0, model.turn.number);
                let known = inner.payloads.entry((site, round)).or_insert_with(|| bytes.to_vec());
                if known != bytes {
                    inner.wrong.get_or_insert(Invariant::OnePayload { site: NAMES[site], round });
                } else if sender == site && !disk.holds(bytes) {
                    inner.wrong.get_or_insert(Invariant::ChargedBeforeSent { site: NAMES[site], round });
                }
            }
            Ok(Frame::Request { .. } | Frame::RequestHello | Frame::RequestPlan) => {
                let (since, times) = inner.asked.entry((from, to, bytes.to_vec())).or_insert((now, 0));
                if now.saturating_sub(*since) > A_SECOND {
                    (*since, *times) = (now, 0);
                }
                *times += 1;
                if *times > MOST_ASKED {
                    let (site, neighbour) = (NAMES[sender], NAMES[to]);
                    inner.wrong.get_or_insert(Invariant::BacksOff { site, neighbour });
                }
            }
            _ => {}
        }
    }

    /// How often a byte was sent on average.
    pub(super) fn copies(&self) -> f64 {
        let inner = self.lock();
        inner.bytes as f64 / inner.distinct_bytes.max(1) as f64
    }
}
