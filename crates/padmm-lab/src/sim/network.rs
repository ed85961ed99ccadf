//! A made-up network under real links: processes are dialled at addresses, connections die without a word, and the machine that decides
//! what to do about it is [`padmm_node::link`], as between machines.
//!
//! A site's process is found at the address on its card. A copy of its home has the same keys and no address: it is there for those that
//! it dials. Every frame travels by itself, so that frames overtake each other and are lost, also on a connection that lives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use padmm_core::graph::PublicSeed;
use padmm_core::message::SiteIndex;
use padmm_node::frame::{MessageKey, is_request};
use padmm_node::link::{ConnectionId, Ending, Link, LinkOutput};
use padmm_node::mailbox::{Mailbox, NetworkEvent};
use padmm_node::outbox::{Bytes, Outbox};
use padmm_node::transport::Transport;
use padmm_node::transport::memory::{HEARTBEAT, Weather};

/// The first packet of a call is sent again after so long, and then after twice the time each time.
const FIRST_PAUSE: Duration = Duration::from_millis(300);
/// What a connection has not brought over is sent again after so long.
const REPEATED: Duration = Duration::from_millis(400);

/// A process on the network; numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessId(u64);

/// What speaks and listens in a process: a session, or nothing but signs of life.
#[derive(Clone)]
pub(super) enum Voice {
    Session { outbox: Arc<Outbox>, mailbox: Arc<Mailbox> },
    Beats,
}

/// What happens after a while.
enum Event {
    /// A packet of a call comes to the address that is called.
    Called { caller: ProcessId, whom: usize, until: Duration, pause: Duration },
    /// The caller hears that it got through, or gives up.
    Answered { caller: ProcessId, whom: usize, connection: Option<ConnectionId> },
    /// A frame arrives.
    Frame { sender: ProcessId, over: ConnectionId, frame: Bytes },
    /// The sender hears that its message has arrived.
    Landed { sender: ProcessId, over: ConnectionId, key: MessageKey },
    /// One end hears that the other has closed the connection.
    Ended { closer: ProcessId, over: ConnectionId },
}

/// One end of the link between two sites.
pub(super) struct End {
    pub(super) link: Link,
    /// When something came over each connection that is held, by the network's own account.
    pub(super) heard: BTreeMap<ConnectionId, Duration>,
    pub(super) since: Duration,
    pub(super) calls: u64,
}

pub(super) struct Plugged {
    pub(super) site: usize,
    voice: Voice,
    next_heartbeat: Duration,
    pub(super) ends: BTreeMap<usize, End>,
}

#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Each with the site that it is a process of.
    pub(super) ends: [(ProcessId, usize); 2],
    /// Nothing gets through any more, and nobody is told.
    pub(super) is_severed: bool,
}

/// Sees a frame that a process puts on the wire: when, who, to which site, what.
type Watch = Box<dyn Fn(Duration, ProcessId, usize, &[u8]) + Send>;

pub(super) struct Inner {
    pub(super) now: Duration,
    weather: Weather,
    random: PublicSeed,
    neighbours: Vec<Vec<usize>>,
    pub(super) processes: BTreeMap<ProcessId, Plugged>,
    /// When a process of each site came or went last.
    pub(super) changed: BTreeMap<usize, Duration>,
    /// Who is found at each site's address.
    at_address: BTreeMap<usize, ProcessId>,
    pub(super) lines: BTreeMap<ConnectionId, Line>,
    events: BTreeMap<(Duration, u64), Event>,
    /// Events, processes and connections that there were.
    n: u64,
    /// From which site to which nothing arrives, though neither end is told.
    cut: BTreeSet<(usize, usize)>,
    /// Sites that are not at their addresses.
    moved: BTreeSet<usize>,
    watch: Option<Watch>,
    /// A planted bug: the connection that came last is counted as heard, whoever is at its other end.
    trusts_newest: bool,
}

/// A network in one process, whose clock only its driver moves.
#[derive(Clone)]
pub(super) struct Network(Arc<Mutex<Inner>>);

impl Network {
    /// A network without processes yet; `neighbours[i]` are those of site `i`.
    pub(super) fn new(neighbours: Vec<Vec<usize>>, seed: u64, trusts_newest: bool) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            now: Duration::ZERO,
            weather: Weather::default(),
            random: PublicSeed::new(seed),
            neighbours,
            processes: BTreeMap::new(),
            changed: BTreeMap::new(),
            at_address: BTreeMap::new(),
            lines: BTreeMap::new(),
            events: BTreeMap::new(),
            n: 0,
            cut: BTreeSet::new(),
            moved: BTreeSet::new(),
            watch: None,
            trusts_newest,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nobody panics while holding the network")
    }

    /// Puts a process of a site on the network, at the site's address unless it is a copy's.
    pub(super) fn plug(&self, site: usize, voice: Voice, is_copy: bool) -> ProcessId {
        let mut inner = self.lock();
        inner.n += 1;
        let (id, now) = (ProcessId(inner.n), inner.now);
        let mut ends = BTreeMap::new();
        for other in inner.neighbours[site].clone() {
            let seed = inner.random.next_u64();
            let link = Link::new(site < other, seed, now);
            ends.insert(other, End { link, heard: BTreeMap::new(), since: now, calls: 0 });
        }
        inner.processes.insert(id, Plugged { site, voice, next_heartbeat: now + HEARTBEAT, ends });
        inner.changed.insert(site, now);
        if !is_copy {
            inner.at_address.insert(site, id);
        }
        id
    }

    /// Takes a process off the network, as by a power cut: nobody is told.
    pub(super) fn unplug(&self, id: ProcessId) {
        let mut inner = self.lock();
        let (process, now) = (inner.processes.remove(&id), inner.now);
        inner.changed.extend(process.map(|process| (process.site, now)));
        inner.at_address.retain(|_, process| *process != id);
    }

    /// A process ends in order: it closes its connections first.
    pub(super) fn hang_up(&self, id: ProcessId) {
        let mut inner = self.lock();
        let lines = inner.lines.iter().filter(|(_, line)| line.ends.iter().any(|end| end.0 == id));
        for over in lines.map(|(over, _)| *over).collect::<Vec<_>>() {
            let delay = inner.delay();
            inner.later(delay, Event::Ended { closer: id, over });
        }
        drop(inner);
        self.unplug(id);
    }

    /// Cuts both directions between two sites, or mends them; neither hears of it.
    pub(super) fn cut(&self, a: usize, b: usize, is_cut: bool) {
        [(a, b), (b, a)].into_iter().for_each(|way| self.cut_way(way, is_cut));
    }

    /// Cuts one direction, from one site to another, or mends it.
    pub(super) fn cut_way(&self, way: (usize, usize), is_cut: bool) {
        let mut inner = self.lock();
        let _ = if is_cut { inner.cut.insert(way) } else { inner.cut.remove(&way) };
    }

    /// The connections between two sites die at once, and neither is told.
    pub(super) fn sever(&self, a: usize, b: usize) {
        self.lock().sever(|sites| sites == [a, b] || sites == [b, a]);
    }

    /// A site gets another address: what was connected to it is not any more, and nobody finds it, though it finds others. Or it is
    /// back where its card says.
    pub(super) fn relocate(&self, site: usize, is_away: bool) {
        let mut inner = self.lock();
        let _ = if is_away { inner.moved.insert(site) } else { inner.moved.remove(&site) };
        inner.sever(|sites| sites.contains(&site));
    }

    /// Shows every frame that leaves a process from now on, answers to requests among them, whether it arrives or not.
    pub(super) fn watch(&self, watch: impl Fn(Duration, ProcessId, usize, &[u8]) + Send + 'static) {
        self.lock().watch = Some(Box::new(watch));
    }

    /// From now on frames travel under other conditions.
    pub(super) fn set_weather(&self, weather: Weather) {
        self.lock().weather = weather;
    }

    /// When something will happen by itself.
    pub(super) fn next_event(&self) -> Option<Duration> {
        self.lock().next_event()
    }

    /// Moves time forward, from one thing that happens to the next.
    pub(super) fn advance(&self, to: Duration) {
        let mut inner = self.lock();
        while let Some(at) = inner.next_event().filter(|at| *at <= to) {
            inner.now = inner.now.max(at);
            inner.happen();
        }
        inner.now = to;
    }
}

impl Inner {
    fn next_event(&self) -> Option<Duration> {
        let arrival = self.events.first_key_value().map(|(&(at, _), _)| at);
        let deadlines = self.processes.values().flat_map(|process| {
            let links = process.ends.values().filter_map(|end| end.link.next_deadline(self.now));
            links.chain([process.next_heartbeat])
        });
        arrival.into_iter().chain(deadlines).min().map(|at| at.max(self.now))
    }

    /// Whatever is due at this time.
    fn happen(&mut self) {
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let event = entry.remove();
            self.handle(event);
        }
        for id in self.processes.keys().copied().collect::<Vec<_>>() {
            if self.processes[&id].next_heartbeat <= self.now {
                self.beat(id);
            }
            for other in self.neighbours[self.processes[&id].site].clone() {
                self.with_end(id, other, |end, now| end.link.handle_timeout(now));
            }
        }
    }

    fn process(&mut self, id: ProcessId) -> Option<&mut Plugged> {
        self.processes.get_mut(&id)
    }

    fn later(&mut self, after: Duration, event: Event) {
        self.n += 1;
        self.events.insert((self.now + after, self.n), event);
    }

    fn delay(&mut self) -> Duration {
        self.weather.longest_delay.mul_f64(self.random.unit())
    }

    fn is_lost(&mut self) -> bool {
        self.random.unit() < self.weather.loss
    }

    fn sever(&mut self, between: impl Fn([usize; 2]) -> bool) {
        for line in self.lines.values_mut() {
            line.is_severed |= between(line.ends.map(|end| end.1));
        }
    }

    /// The other end of a connection, with the site at this one, if what is sent over it now gets there.
    fn across(&self, from: ProcessId, over: ConnectionId) -> Option<(usize, ProcessId)> {
        let Line { ends, is_severed } = *self.lines.get(&over)?;
        let [(_, here), (to, there)] = if ends[0].0 == from { ends } else { [ends[1], ends[0]] };
        let gets_there =
            !is_severed && !self.cut.contains(&(here, there)) && self.processes.contains_key(&to);
        gets_there.then_some((here, to))
    }

    /// Something happens to one end of a link, and what it wants done is done.
    fn with_end(&mut self, id: ProcessId, other: usize, happens: impl FnOnce(&mut End, Duration)) {
        let now = self.now;
        let Some(end) = self.process(id).and_then(|process| process.ends.get_mut(&other)) else { return };
        happens(end, now);
        while let Some(output) = self.end(id, other).link.poll_output() {
            self.act(id, other, output);
        }
        while let Some((over, key, frame)) = self.end(id, other).link.poll_frame() {
            self.transmit(id, other, over, key, frame);
        }
    }

    fn end(&mut self, id: ProcessId, other: usize) -> &mut End {
        let process = self.process(id).expect("a process does not end while it acts");
        process.ends.get_mut(&other).expect("a neighbour has a link")
    }

    fn act(&mut self, id: ProcessId, other: usize, output: LinkOutput) {
        let site = SiteIndex(other);
        match output {
            LinkOutput::Dial { patience } => {
                self.end(id, other).calls += 1;
                let (delay, until) = (self.delay(), self.now + patience);
                self.later(delay, Event::Called { caller: id, whom: other, until, pause: FIRST_PAUSE });
            }
            LinkOutput::Close { connection, .. } => {
                self.end(id, other).heard.remove(&connection);
                let delay = self.delay();
                self.later(delay, Event::Ended { closer: id, over: connection });
            }
            LinkOutput::Promote { .. } => self.tell(id, NetworkEvent::Connected { site }),
            LinkOutput::Down => self.tell(id, NetworkEvent::Disconnected { site, done: false }),
            LinkOutput::Done => self.tell(id, NetworkEvent::Disconnected { site, done: true }),
            // All know each other here.
            LinkOutput::Refused { .. } => {}
        }
    }

    fn tell(&mut self, id: ProcessId, event: NetworkEvent) {
        if let Some(Voice::Session { mailbox, .. }) = self.processes.get(&id).map(|process| &process.voice) {
            mailbox.put(event);
        }
    }

    fn post(&mut self, id: ProcessId, to: usize, frame: Bytes) {
        self.with_end(id, to, |end, _| {
            // What it does not take is asked for again.
            end.link.handle_outgoing(frame);
        });
    }

    fn transmit(
        &mut self,
        id: ProcessId,
        other: usize,
        over: ConnectionId,
        key: Option<MessageKey>,
        frame: Bytes,
    ) {
        if let Some(watch) = &self.watch {
            watch(self.now, id, other, &frame);
        }
        if let Some(key) = key {
            let delay = self.delay();
            self.later(2 * delay, Event::Landed { sender: id, over, key });
        }
        if self.across(id, over).is_none() {
            return;
        }
        let copies = match (self.is_lost(), self.random.unit() < self.weather.repeats) {
            (true, _) => 0,
            (false, true) => 2,
            (false, false) => 1,
        };
        for _ in 0..copies {
            let delay = self.delay();
            self.later(delay, Event::Frame { sender: id, over, frame: Arc::clone(&frame) });
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Called { caller, whom, until, pause } => self.called(caller, whom, until, pause),
            Event::Answered { caller, whom, connection } => {
                self.with_end(caller, whom, |end, now| match connection {
                    Some(connection) => end.connected(now, connection, true),
                    None => end.link.handle_call_failed(now),
                })
            }
            Event::Frame { sender, over, frame } => {
                if let Some((site, to)) = self.across(sender, over) {
                    self.arrive(site, to, over, &frame);
                }
            }
            Event::Landed { sender, over, key } => {
                let Some(line) = self.lines.get(&over).filter(|line| !line.is_severed) else { return };
                if self.across(sender, over).is_some() {
                    let there = line.ends.iter().find(|end| end.0 != sender).expect("a line has two ends").1;
                    self.with_end(sender, there, |end, _| end.link.handle_landed(over, &key));
                } else {
                    // A connection that outlives a cut repeats what was on its way. Here that is lost, and asked for again.
                    self.later(REPEATED, Event::Landed { sender, over, key });
                }
            }
            Event::Ended { closer, over } => {
                let Some((site, to)) = self.across(closer, over) else { return };
                self.with_end(to, site, |end, now| {
                    end.heard.remove(&over);
                    end.link.handle_closed(now, over, Ending::Lost);
                });
            }
        }
    }

    fn called(&mut self, caller: ProcessId, whom: usize, until: Duration, pause: Duration) {
        let Some(site) = self.processes.get(&caller).map(|process| process.site) else { return };
        let is_cut = self.cut.contains(&(site, whom)) || self.cut.contains(&(whom, site));
        let found = self.at_address.get(&whom).copied();
        let found = found.filter(|_| !is_cut && !self.moved.contains(&whom) && !self.is_lost());
        let Some(called) = found else {
            return match self.now + pause < until {
                true => self.later(pause, Event::Called { caller, whom, until, pause: 2 * pause }),
                false => {
                    let wait = until.saturating_sub(self.now);
                    self.later(wait, Event::Answered { caller, whom, connection: None });
                }
            };
        };
        self.n += 1;
        let connection = ConnectionId(self.n);
        self.lines.insert(connection, Line { ends: [(caller, site), (called, whom)], is_severed: false });
        let delay = self.delay();
        self.later(delay, Event::Answered { caller, whom, connection: Some(connection) });
        self.with_end(called, site, |end, now| end.connected(now, connection, false));
    }

    fn arrive(&mut self, site: usize, to: ProcessId, over: ConnectionId, frame: &Bytes) {
        let voice = self.processes[&to].voice.clone();
        self.with_end(to, site, |end, now| {
            // What comes before the caller knows that it got through waits in the connection.
            if let Some(heard) = end.heard.get_mut(&over) {
                *heard = now;
            }
            end.link.handle_heard(now, over);
            if matches!(voice, Voice::Beats) {
                end.link.handle_believed();
            }
        });
        let Voice::Session { outbox, mailbox } = voice else { return };
        if is_request(frame) {
            if let Some((_, answer)) = outbox.answer(frame) {
                self.post(to, site, answer);
            }
        } else {
            // A mailbox that is full loses it: it will be asked for again.
            let _ = mailbox.offer(SiteIndex(site), frame.to_vec());
        }
    }

    fn beat(&mut self, id: ProcessId) {
        let trusts_newest = self.trusts_newest;
        let process = self.process(id).expect("its heart beats");
        process.next_heartbeat += HEARTBEAT;
        let sign = match &process.voice {
            Voice::Session { outbox, .. } => outbox.heartbeat(),
            Voice::Beats => Some(Arc::from([0])),
        };
        for other in process.ends.keys().copied().collect::<Vec<_>>() {
            if trusts_newest {
                self.with_end(id, other, |end, now| {
                    let newest = end.heard.keys().next_back().copied();
                    newest.into_iter().for_each(|newest| end.link.handle_heard(now, newest));
                });
            }
            if let Some(sign) = &sign {
                self.post(id, other, Arc::clone(sign));
            }
        }
    }
}

impl End {
    fn connected(&mut self, now: Duration, connection: ConnectionId, is_ours: bool) {
        self.heard.insert(connection, now);
        self.link.handle_connected(now, connection, is_ours);
    }
}

/// A process's way to the network.
pub(super) struct NetworkTransport {
    pub(super) id: ProcessId,
    pub(super) network: Network,
    /// How often a request is sent, in place of once; only a planted bug sends more.
    pub(super) copies_of_requests: usize,
}

impl Transport for NetworkTransport {
    fn send(&self, to: SiteIndex, frame: Bytes) {
        let copies = if is_request(&frame) { self.copies_of_requests } else { 1 };
        for _ in 0..copies {
            self.network.lock().post(self.id, to.0, Arc::clone(&frame));
        }
    }

    fn believe(&self, from: SiteIndex) {
        self.network.lock().with_end(self.id, from.0, |end, _| end.link.handle_believed());
    }
}
