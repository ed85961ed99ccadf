//! Links in made-up time: processes that dial, are cut off, die, come back, are copied or are not known. The network, the processes and
//! the clock are the test's; what decides is the machine that the real network drives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use padmm_core::message::{SiteIndex, Turn};
use padmm_node::frame::{Frame, ModelFrame, Origin};
use padmm_node::identity::SecretKey;
use padmm_node::link::{ConnectionId, DEAD, Ending, Link, LinkOutput, MOST_CONNECTIONS, SILENT};
use padmm_node::outbox::Bytes;
use padmm_privacy::Payload;

const BEAT: Duration = Duration::from_secs(1);
/// The first packet of a call is repeated after so long: three times what a round trip is taken to be before it is measured.
const AGAIN: Duration = Duration::from_millis(300);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A call reaches the one that is called.
    Reaches {
        caller: usize,
        until: Duration,
        /// How long until the first packet is sent again.
        pause: Duration,
    },
    /// The caller hears that it got through, or gives up.
    Answered {
        caller: usize,
        connection: Option<ConnectionId>,
    },
    /// A frame arrives.
    Frame {
        to: usize,
        over: ConnectionId,
    },
    /// A connection ends at one end.
    Ends {
        at: usize,
        connection: ConnectionId,
        ending: Ending,
    },
    Beat {
        of: usize,
    },
}

/// One process at one end of the link.
struct Process {
    link: Link,
    /// When frames were heard.
    heard: Vec<Duration>,
    calls: Vec<Duration>,
    refusals: Vec<u64>,
}

/// North is process 0; south is 1, and 2 is a copy of its home. They share keys, so north cannot tell them apart.
struct World {
    now: Duration,
    delay: Duration,
    is_cut: bool,
    /// Processes that the other end does not know.
    strangers: BTreeSet<usize>,
    processes: BTreeMap<usize, Process>,
    /// The ends of every connection.
    connections: BTreeMap<ConnectionId, [usize; 2]>,
    events: BTreeMap<(Duration, u64), Event>,
    n_events: u64,
}

impl World {
    fn new(delay: Duration) -> Self {
        Self {
            now: Duration::ZERO,
            delay,
            is_cut: false,
            strangers: BTreeSet::new(),
            processes: BTreeMap::new(),
            connections: BTreeMap::new(),
            events: BTreeMap::new(),
            n_events: 0,
        }
    }

    fn with_two(delay: Duration, seed: u64) -> Self {
        let mut world = Self::new(delay);
        world.start(0, true, seed);
        world.start(1, false, seed + 1);
        world
    }

    fn start(&mut self, process: usize, dials_first: bool, seed: u64) {
        let link = Link::new(dials_first, seed, self.now);
        let new = Process { link, heard: vec![], calls: vec![], refusals: vec![] };
        self.processes.insert(process, new);
        self.later(ms(7), Event::Beat { of: process });
    }

    /// The end of a process, as by a power cut: nobody is told.
    fn kill(&mut self, process: usize) {
        self.processes.remove(&process);
    }

    fn later(&mut self, after: Duration, event: Event) {
        self.n_events += 1;
        self.events.insert((self.now + after, self.n_events), event);
    }

    /// Sends over the connection that is written to. One that is cut loses the frame.
    fn send(&mut self, from: usize) {
        let Some(over) = self.processes.get(&from).and_then(|p| p.link.active()) else { return };
        let ends = self.connections[&over];
        let to = if ends[0] == from { ends[1] } else { ends[0] };
        if !self.is_cut {
            self.later(self.delay, Event::Frame { to, over });
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Beat { of } => {
                if self.processes.contains_key(&of) {
                    self.send(of);
                    self.later(BEAT, Event::Beat { of });
                }
            }
            Event::Frame { to, over } => {
                if let Some(process) = self.processes.get_mut(&to) {
                    process.heard.push(now);
                    process.link.handle_heard(now, over);
                    process.link.handle_believed();
                }
            }
            Event::Ends { at, connection, ending } => {
                if let Some(process) = self.processes.get_mut(&at) {
                    process.link.handle_closed(now, connection, ending);
                }
            }
            Event::Reaches { caller, until, pause } => {
                let called = if caller == 0 { 1 } else { 0 };
                if self.is_cut || !self.processes.contains_key(&called) {
                    // The first packet is sent again, each time after twice as long, until the caller gives up.
                    if now + pause < until {
                        return self.later(pause, Event::Reaches { caller, until, pause: 2 * pause });
                    }
                    let wait = until.saturating_sub(now);
                    return self.later(wait, Event::Answered { caller, connection: None });
                }
                let connection = ConnectionId(self.n_events);
                self.connections.insert(connection, [caller, called]);
                self.later(self.delay, Event::Answered { caller, connection: Some(connection) });
                if self.strangers.contains(&caller) {
                    let ending = Ending::Stranger;
                    self.later(self.delay + ms(1), Event::Ends { at: caller, connection, ending });
                } else {
                    let process = self.processes.get_mut(&called).unwrap();
                    process.link.handle_connected(now, connection, false);
                    self.greets(called);
                }
            }
            Event::Answered { caller, connection } => {
                let Some(process) = self.processes.get_mut(&caller) else { return };
                match connection {
                    None => process.link.handle_call_failed(now),
                    Some(connection) => {
                        process.link.handle_connected(now, connection, true);
                        self.greets(caller);
                    }
                }
            }
        }
    }

    /// A session greets over a connection as soon as it is written to.
    fn greets(&mut self, process: usize) {
        self.send(process);
    }

    fn drain(&mut self) {
        for process in self.processes.keys().copied().collect::<Vec<_>>() {
            while let Some(output) = self.processes.get_mut(&process).unwrap().link.poll_output() {
                let (now, delay) = (self.now, self.delay);
                match output {
                    LinkOutput::Dial { patience } => {
                        self.processes.get_mut(&process).unwrap().calls.push(now);
                        // There, and a way there and back for the address to be proved.
                        let (until, pause) = (now + patience, AGAIN);
                        self.later(3 * delay, Event::Reaches { caller: process, until, pause });
                    }
                    LinkOutput::Close { connection, .. } => {
                        let ends = self.connections[&connection];
                        let at = if ends[0] == process { ends[1] } else { ends[0] };
                        if !self.is_cut {
                            self.later(delay, Event::Ends { at, connection, ending: Ending::Lost });
                        }
                    }
                    LinkOutput::Refused { times } => {
                        self.processes.get_mut(&process).unwrap().refusals.push(times);
                    }
                    LinkOutput::Promote { .. } | LinkOutput::Down | LinkOutput::Done => {}
                }
            }
        }
    }

    /// Until a time, from one thing that happens to the next.
    fn run(&mut self, until: Duration) {
        loop {
            self.drain();
            let event = self.events.first_key_value().map(|(&(at, _), _)| at);
            let deadlines = self.processes.values().filter_map(|p| p.link.next_deadline(self.now));
            let deadline = deadlines.min().map(|at| at.max(self.now));
            match [event, deadline].into_iter().flatten().min() {
                Some(at) if at <= until => self.now = self.now.max(at),
                _ => break,
            }
            if event.is_some_and(|at| at <= self.now) {
                let (_, event) = self.events.pop_first().unwrap();
                self.handle(event);
            }
            let now = self.now;
            self.processes.values_mut().for_each(|p| p.link.handle_timeout(now));
        }
        self.now = until;
    }

    /// The first frame that a process heard at or after a time.
    fn heard_after(&self, process: usize, time: Duration) -> Duration {
        let heard = self.processes[&process].heard.iter().find(|&&at| at >= time);
        *heard.unwrap_or_else(|| panic!("{process} heard nothing after {time:?}"))
    }

    /// The longest time in which a process heard nothing.
    fn longest_silence(&self, process: usize) -> Duration {
        let gaps = self.processes[&process].heard.windows(2).map(|w| w[1] - w[0]);
        gaps.max().unwrap()
    }
}

#[test]
fn one_end_dials_first_and_there_is_one_connection_even_over_a_long_way() {
    for delay in [ms(0), ms(20), ms(120)] {
        let mut world = World::with_two(delay, 1);
        world.run(seconds(60));
        assert_eq!(world.connections.len(), 1, "{delay:?}");
        for process in [0, 1] {
            assert!(world.longest_silence(process) <= BEAT + ms(1), "{delay:?}");
        }
    }
}

#[test]
fn the_other_end_dials_where_the_first_cannot() {
    let mut world = World::with_two(ms(20), 1);
    world.processes.get_mut(&0).unwrap().link = Link::new(false, 1, seconds(3600));
    world.run(seconds(5));
    assert!(world.heard_after(0, Duration::ZERO) < seconds(2));
}

#[test]
fn a_line_that_was_cut_for_any_time_is_used_again_within_two_seconds() {
    for seed in 0..400 {
        let mut world = World::with_two(ms(10 * (seed % 13)), seed);
        world.run(seconds(10));
        world.is_cut = true;
        world.run(seconds(10) + ms(97 * (seed + 1)));
        world.is_cut = false;
        let mended = world.now;
        world.run(mended + seconds(20));
        for process in [0, 1] {
            let late = world.heard_after(process, mended) - mended;
            assert!(late <= seconds(2) + 4 * world.delay, "seed {seed}: {process} after {late:?}");
            let rest: Vec<_> =
                world.processes[&process].heard.iter().filter(|&&at| at > mended + seconds(5)).collect();
            assert!(rest.len() >= 14, "seed {seed}: {process} heard {} frames", rest.len());
        }
    }
}

/// The copy has the same keys. It takes the link over, and nobody is told when it is gone.
#[test]
fn a_copy_that_appears_for_a_moment_does_not_keep_the_real_one_out() {
    for (seed, there) in [(1, ms(1)), (2, ms(300)), (3, ms(2900)), (4, seconds(5)), (5, seconds(20))] {
        let mut world = World::with_two(ms(20), seed);
        world.run(seconds(10));
        world.start(2, true, 99);
        world.run(seconds(10) + ms(200) + there);
        world.kill(2);
        let gone = world.now;
        world.run(gone + seconds(60));
        let late = world.heard_after(1, gone) - gone;
        assert!(late <= SILENT + BEAT + ms(500), "there for {there:?}: the real one hears after {late:?}");
        let rest: Vec<_> = world.processes[&1].heard.iter().filter(|&&at| at > gone + seconds(10)).collect();
        assert!(rest.len() >= 49, "there for {there:?}: {} frames", rest.len());
    }
}

#[test]
fn a_process_that_died_unheard_and_is_back_is_written_to_at_once() {
    for (dials_first, seed) in [(true, 1), (false, 2)] {
        let mut world = World::new(ms(20));
        world.start(0, !dials_first, seed);
        world.start(1, dials_first, seed + 1);
        world.run(seconds(10) + ms(300));
        world.kill(1);
        world.run(seconds(10) + ms(800));
        world.start(1, dials_first, seed + 2);
        let back = world.now;
        world.run(back + seconds(30));
        let late = world.heard_after(1, back) - back;
        assert!(late <= seconds(1) + ms(200), "dials first: {dials_first}, {late:?}");
        assert!(world.longest_silence(1) <= BEAT + ms(100));
    }
}

#[test]
fn one_that_is_not_known_there_dials_less_and_less_often_and_says_so_each_time_that_has_doubled() {
    let mut world = World::new(ms(5));
    world.start(0, true, 1);
    world.start(1, true, 2);
    // South knows north by an old card: what north dials is closed. South itself is away from the network.
    world.processes.get_mut(&1).unwrap().link = Link::new(false, 2, seconds(1_000_000));
    world.strangers.insert(0);
    world.run(seconds(3600));
    let north = &world.processes[&0];
    assert!(north.calls.len() < 90, "{} calls in an hour", north.calls.len());
    let doubled: Vec<u64> = (0..).map(|k| 1 << k).take_while(|&n| n <= north.calls.len() as u64).collect();
    assert_eq!(north.refusals, doubled);
    let first_minute = north.calls.iter().filter(|&&at| at < seconds(60)).count();
    assert!((5..20).contains(&first_minute), "{first_minute} calls in the first minute");
    // The card is put right.
    world.strangers.clear();
    let known = world.now;
    world.run(known + seconds(100));
    assert!(world.heard_after(1, known) - known <= seconds(80));
    // From then on a loss is a loss, and no refusal.
    world.is_cut = true;
    world.run(world.now + seconds(20));
    world.is_cut = false;
    let mended = world.now;
    world.run(mended + seconds(10));
    assert!(world.heard_after(1, mended) - mended <= seconds(2));
}

#[test]
fn a_neighbour_that_is_not_there_is_dialled_steadily_but_not_fast() {
    let mut world = World::new(ms(20));
    world.start(0, true, 1);
    world.run(seconds(600));
    let calls = world.processes[&0].calls.len();
    assert!((60..400).contains(&calls), "{calls} calls in ten minutes");
}

#[test]
fn of_many_connections_the_ones_that_are_heard_stay() {
    let mut link = Link::new(true, 1, Duration::ZERO);
    let mut closed = vec![];
    for id in 0..8 {
        let now = ms(10 * id);
        link.handle_connected(now, ConnectionId(id), false);
        link.handle_heard(now + ms(5), ConnectionId(0));
        while let Some(output) = link.poll_output() {
            if let LinkOutput::Close { connection, .. } = output {
                closed.push(connection.0);
            }
        }
    }
    assert_eq!(closed, [1, 2, 3, 4], "the first one is heard, and there are {MOST_CONNECTIONS} at once");
    assert_eq!(link.active(), Some(ConnectionId(7)));
    link.handle_closed(ms(100), ConnectionId(7), Ending::Lost);
    assert_eq!(link.active(), Some(ConnectionId(0)), "the one that was heard last takes its place");
    link.handle_timeout(ms(100) + DEAD);
    assert_eq!(link.active(), None, "all have been silent for too long");
}

fn message(number: u32) -> Bytes {
    let key = SecretKey::from_bytes(&[7; 32]);
    let origin = Origin { plan: [1; 32], sender: SiteIndex(0) };
    let payload = Payload::Plain(vec![0.5; 4]);
    let turn = Turn::average(number);
    Frame::Model(ModelFrame { origin, turn, entry: 0, head: [0; 32], state: None, payload }).encode(&key)
}

#[test]
fn of_a_message_one_copy_is_on_its_way() {
    let (mut link, now) = (Link::new(true, 1, Duration::ZERO), Duration::ZERO);
    let [first, second] = [message(1), message(2)];
    let offer = |link: &mut Link, bytes: &Bytes| link.handle_outgoing(Arc::clone(bytes));
    assert!(!offer(&mut link, &first), "there is no connection");
    link.handle_connected(now, ConnectionId(0), true);
    assert!(offer(&mut link, &first) && offer(&mut link, &second));
    assert!(!offer(&mut link, &first), "it waits already");
    let (over, key, _) = link.poll_frame().unwrap();
    let key = key.expect("its arrival is noticed");
    assert!(!offer(&mut link, &first), "it is on its way");
    link.handle_landed(over, &key);
    assert!(offer(&mut link, &first), "it has arrived, and was asked for again");
    assert_eq!(link.poll_frame().unwrap().2, second);
    // Over a new connection nothing is on its way, whatever was over the old one.
    link.handle_connected(now, ConnectionId(1), false);
    assert!(offer(&mut link, &second));
    let request: Bytes = Frame::RequestHello.encode(&SecretKey::from_bytes(&[7; 32]));
    assert!(offer(&mut link, &request) && offer(&mut link, &request), "what is no message may be said twice");
    // Nobody is there: what waits is dropped.
    link.handle_closed(now, ConnectionId(1), Ending::Lost);
    link.handle_closed(now, ConnectionId(0), Ending::Lost);
    assert!(link.poll_frame().is_none() && !offer(&mut link, &first));
}
