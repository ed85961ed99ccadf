//! Frames between sessions in one process, in simulated time: lost, repeated, delayed and reordered as a seed says. The same seed
//! gives the same run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use padmm_core::graph::PublicSeed;
use padmm_core::message::SiteIndex;

use super::Transport;
use crate::frame::is_request;
use crate::mailbox::{Mailbox, NetworkEvent};
use crate::outbox::{Bytes, Outbox};

/// How often a site gives a sign of life.
pub const HEARTBEAT: Duration = Duration::from_secs(1);

/// What becomes of frames on their way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weather {
    /// Part of the frames that is lost.
    pub loss: f64,
    /// Part of the frames that arrives twice.
    pub repeats: f64,
    /// The longest way; each frame has its own, so that they overtake each other.
    pub longest_delay: Duration,
}

struct Plugged {
    outbox: Arc<Outbox>,
    mailbox: Arc<Mailbox>,
    next_heartbeat: Duration,
}

struct Inner {
    now: Duration,
    weather: Weather,
    random: PublicSeed,
    sent: u64,
    neighbours: Vec<Vec<SiteIndex>>,
    sites: BTreeMap<SiteIndex, Plugged>,
    /// What is on its way, by time of arrival.
    travelling: BTreeMap<(Duration, u64), (SiteIndex, SiteIndex, Bytes)>,
    cut: BTreeSet<(SiteIndex, SiteIndex)>,
    /// From whom to whom nothing arrives, though neither end is told.
    cut_ways: BTreeSet<(SiteIndex, SiteIndex)>,
    watch: Option<Watch>,
}

/// Sees a frame that a site puts on the wire: who, to whom, what.
type Watch = Box<dyn Fn(SiteIndex, SiteIndex, &[u8]) + Send>;

/// A network in one process, whose clock only its driver moves.
#[derive(Clone)]
pub struct MemoryNetwork(Arc<Mutex<Inner>>);

impl MemoryNetwork {
    /// A network without sites yet; `neighbours[i]` are those of site `i`.
    pub fn new(neighbours: Vec<Vec<SiteIndex>>, weather: Weather, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            now: Duration::ZERO,
            weather,
            random: PublicSeed::new(seed),
            sent: 0,
            neighbours,
            sites: BTreeMap::new(),
            travelling: BTreeMap::new(),
            cut: BTreeSet::new(),
            cut_ways: BTreeSet::new(),
            watch: None,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nobody panics while holding the network")
    }

    /// Puts a site on the network; its neighbours that are there hear of it, and it of them.
    pub fn plug(&self, site: SiteIndex, outbox: Arc<Outbox>) -> MemoryTransport {
        let mut inner = self.lock();
        let mailbox = Arc::new(Mailbox::new(inner.neighbours.len()));
        let next_heartbeat = inner.now + HEARTBEAT;
        inner.sites.insert(site, Plugged { outbox, mailbox: Arc::clone(&mailbox), next_heartbeat });
        for other in inner.neighbours[site.0].clone() {
            inner.connect(site, other);
        }
        drop(inner);
        MemoryTransport { site, network: self.clone(), mailbox }
    }

    /// Takes a site off the network, with all that is on its way to it.
    pub fn unplug(&self, site: SiteIndex) {
        let mut inner = self.lock();
        inner.sites.remove(&site);
        inner.travelling.retain(|_, (_, to, _)| *to != site);
        for other in inner.neighbours[site.0].clone() {
            inner.tell(other, NetworkEvent::Disconnected { site, done: false });
        }
    }

    /// Cuts the line between two sites.
    pub fn cut(&self, a: SiteIndex, b: SiteIndex) {
        let mut inner = self.lock();
        inner.cut.insert((a.min(b), a.max(b)));
        inner.travelling.retain(|_, (from, to, _)| (*from, *to) != (a, b) && (*from, *to) != (b, a));
        inner.tell(a, NetworkEvent::Disconnected { site: b, done: false });
        inner.tell(b, NetworkEvent::Disconnected { site: a, done: false });
    }

    /// Restores a line that was cut; both ends hear of it.
    pub fn mend(&self, a: SiteIndex, b: SiteIndex) {
        let mut inner = self.lock();
        inner.cut.remove(&(a.min(b), a.max(b)));
        inner.connect(a, b);
    }

    /// Lets nothing through from one site to another; neither hears of it, and the other direction works.
    pub fn cut_way(&self, from: SiteIndex, to: SiteIndex) {
        let mut inner = self.lock();
        inner.cut_ways.insert((from, to));
        inner.travelling.retain(|_, (a, b, _)| (*a, *b) != (from, to));
    }

    /// Restores a direction that was cut.
    pub fn mend_way(&self, from: SiteIndex, to: SiteIndex) {
        self.lock().cut_ways.remove(&(from, to));
    }

    /// Shows every frame that leaves a site from now on, answers to requests among them, whether it arrives or not.
    pub fn watch(&self, watch: impl Fn(SiteIndex, SiteIndex, &[u8]) + Send + 'static) {
        self.lock().watch = Some(Box::new(watch));
    }

    /// From now on frames travel under other conditions.
    pub fn set_weather(&self, weather: Weather) {
        self.lock().weather = weather;
    }

    /// When something will happen by itself: a frame arrives, or a site gives a sign of life.
    pub fn next_event(&self) -> Option<Duration> {
        let inner = self.lock();
        let arrival = inner.travelling.first_key_value().map(|(&(at, _), _)| at);
        arrival.into_iter().chain(inner.sites.values().map(|plugged| plugged.next_heartbeat)).min()
    }

    /// Moves time forward: what is due arrives, requests are answered, and whoever is there gives signs of life.
    pub fn advance(&self, to: Duration) {
        let mut inner = self.lock();
        loop {
            let arrival = inner.travelling.first_key_value().map(|(&(at, _), _)| at);
            let heartbeat = inner.sites.iter().map(|(&site, p)| (p.next_heartbeat, site)).min();
            match (arrival, heartbeat) {
                (Some(at), beat) if at <= to && beat.is_none_or(|(b, _)| at <= b) => {
                    inner.now = inner.now.max(at);
                    inner.arrive();
                }
                (_, Some((at, site))) if at <= to => {
                    inner.now = inner.now.max(at);
                    inner.beat(site);
                }
                _ => break,
            }
        }
        inner.now = to;
    }
}

impl Inner {
    fn is_up(&self, a: SiteIndex, b: SiteIndex) -> bool {
        let is_there = |site| self.sites.contains_key(&site);
        is_there(a) && is_there(b) && !self.cut.contains(&(a.min(b), a.max(b)))
    }

    fn connect(&mut self, a: SiteIndex, b: SiteIndex) {
        if self.is_up(a, b) {
            self.tell(a, NetworkEvent::Connected { site: b });
            self.tell(b, NetworkEvent::Connected { site: a });
        }
    }

    fn tell(&self, site: SiteIndex, event: NetworkEvent) {
        if let Some(plugged) = self.sites.get(&site) {
            plugged.mailbox.put(event);
        }
    }

    fn send(&mut self, from: SiteIndex, to: SiteIndex, frame: &Bytes) {
        if !self.is_up(from, to) {
            return;
        }
        if let Some(watch) = &self.watch {
            watch(from, to, frame);
        }
        let is_lost = self.random.unit() < self.weather.loss;
        if is_lost || self.cut_ways.contains(&(from, to)) {
            return;
        }
        let copies = if self.random.unit() < self.weather.repeats { 2 } else { 1 };
        for _ in 0..copies {
            let at = self.now + self.weather.longest_delay.mul_f64(self.random.unit());
            self.sent += 1;
            self.travelling.insert((at, self.sent), (from, to, Arc::clone(frame)));
        }
    }

    fn arrive(&mut self) {
        let Some((_, (from, to, frame))) = self.travelling.pop_first() else { return };
        let Some(plugged) = self.sites.get(&to) else { return };
        if is_request(&frame) {
            if let Some((_, answer)) = plugged.outbox.answer(&frame) {
                self.send(to, from, &answer);
            }
        } else {
            // A mailbox that is full loses it: it will be asked for again.
            let _ = plugged.mailbox.offer(from, frame.to_vec());
        }
    }

    fn beat(&mut self, site: SiteIndex) {
        let Some(plugged) = self.sites.get_mut(&site) else { return };
        plugged.next_heartbeat += HEARTBEAT;
        let Some(status) = plugged.outbox.heartbeat() else { return };
        for other in self.neighbours[site.0].clone() {
            self.send(site, other, &status);
        }
    }
}

/// One site's connection to the network.
pub struct MemoryTransport {
    site: SiteIndex,
    network: MemoryNetwork,
    mailbox: Arc<Mailbox>,
}

impl MemoryTransport {
    /// Where frames to this site arrive, and news of its neighbours' connections.
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }
}

impl Transport for MemoryTransport {
    fn send(&self, to: SiteIndex, frame: Bytes) {
        self.network.lock().send(self.site, to, &frame);
    }
}
