//! Forwarders of UDP packets between neighbours, which a test can cut, and which can be slow, narrow and lossy like a network between
//! cities. What is lost follows from a seed; what is late is late by the clock of this machine.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};

use padmm_core::graph::PublicSeed;

/// What a link does to the packets of each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// How long a packet is on its way, beside waiting for those before it.
    pub delay: Duration,
    /// Part of the packets that is lost.
    pub loss: f64,
    /// Bits a second, if that is limited.
    pub rate: Option<f64>,
    /// Decides which packets are lost.
    pub seed: u64,
}

/// A packet that would wait longer than this for those before it is dropped, as by a router.
const LONGEST_QUEUE: Duration = Duration::from_secs(1);

/// A link between two sites: each has an address at which it finds the other.
struct Link {
    ends: [SocketAddr; 2],
    is_cut: Arc<AtomicBool>,
    forwarded: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

/// The links of a network. They end when this is dropped.
pub struct Links {
    links: Mutex<BTreeMap<(usize, usize), Link>>,
    conditions: Conditions,
    is_over: Arc<AtomicBool>,
}

impl Default for Links {
    fn default() -> Self {
        Self::new(Conditions::default())
    }
}

impl Links {
    /// None yet; all will be like this.
    pub fn new(conditions: Conditions) -> Self {
        Self { links: Mutex::default(), conditions, is_over: Arc::new(AtomicBool::new(false)) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(usize, usize), Link>> {
        self.links.lock().expect("nobody panics while holding the links")
    }

    /// Where the site `from` finds the site `to`; both with the port that they listen on.
    pub fn address(&self, from: (usize, u16), to: (usize, u16)) -> String {
        let (low, high) = if from.0 < to.0 { (from, to) } else { (to, from) };
        let mut links = self.lock();
        let pair = (low.0, high.0);
        let link = links.entry(pair).or_insert_with(|| self.make(pair, [low.1, high.1]));
        link.ends[usize::from(from.0 > to.0)].to_string()
    }

    /// What comes to one end from its site leaves from the other end to the other site.
    fn make(&self, pair: (usize, usize), ports: [u16; 2]) -> Link {
        let bind = || UdpSocket::bind("127.0.0.1:0").expect("a free port on this machine");
        let sockets = [bind(), bind()];
        let ends = [0, 1].map(|k| sockets[k].local_addr().expect("a bound socket has an address"));
        let is_cut = Arc::new(AtomicBool::new(false));
        let [forwarded, bytes] = [0, 1].map(|_| Arc::new(AtomicU64::new(0)));
        for k in [0, 1] {
            let clone = |k: usize| sockets[k].try_clone().expect("a second handle of a socket");
            let direction = (pair.0 as u64) << 32 | (pair.1 as u64) << 1 | k as u64;
            let way = Way {
                here: clone(k),
                there: clone(1 - k),
                to: SocketAddr::from(([127, 0, 0, 1], ports[1 - k])),
                conditions: self.conditions,
                random: PublicSeed::new(self.conditions.seed ^ direction.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                is_cut: Arc::clone(&is_cut),
                forwarded: Arc::clone(&forwarded),
                bytes: Arc::clone(&bytes),
                is_over: Arc::clone(&self.is_over),
            };
            way.start();
        }
        Link { ends, is_cut, forwarded, bytes }
    }

    /// The pairs of sites that are linked.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        self.lock().keys().copied().collect()
    }

    /// Cuts a link, or mends it.
    pub fn cut(&self, pair: (usize, usize), is_cut: bool) {
        self.lock()[&pair].is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Packets that went through a link.
    pub fn forwarded(&self, pair: (usize, usize)) -> u64 {
        self.lock()[&pair].forwarded.load(Ordering::Relaxed)
    }

    /// Bytes that went through a link, without the headers of UDP.
    pub fn bytes(&self, pair: (usize, usize)) -> u64 {
        self.lock()[&pair].bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// One direction of a link.
struct Way {
    here: UdpSocket,
    there: UdpSocket,
    to: SocketAddr,
    conditions: Conditions,
    random: PublicSeed,
    is_cut: Arc<AtomicBool>,
    forwarded: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Way {
    /// One thread takes packets in and says when each arrives; another lets them out at that time.
    fn start(mut self) {
        // Only so that the thread sees its end.
        self.here.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout above zero");
        let (travelling, arriving) = mpsc::channel::<(Instant, Vec<u8>)>();
        let (there, to) = (self.there.try_clone().expect("a second handle of a socket"), self.to);
        std::thread::spawn(move || {
            for (at, packet) in arriving {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                // A site that is not there gets nothing.
                let _ = there.send_to(&packet, to);
            }
        });
        std::thread::spawn(move || {
            let mut packet = [0; 65536];
            let mut is_free = Instant::now();
            while !self.is_over.load(Ordering::Relaxed) {
                let Ok((n, _)) = self.here.recv_from(&mut packet) else { continue };
                if self.is_cut.load(Ordering::Relaxed) || self.is_lost() {
                    continue;
                }
                let now = Instant::now();
                is_free = is_free.max(now);
                if is_free - now > LONGEST_QUEUE {
                    continue;
                }
                if let Some(rate) = self.conditions.rate {
                    is_free += Duration::from_secs_f64(8.0 * n as f64 / rate);
                }
                self.forwarded.fetch_add(1, Ordering::Relaxed);
                self.bytes.fetch_add(n as u64, Ordering::Relaxed);
                if self.conditions.delay.is_zero() && self.conditions.rate.is_none() {
                    let _ = self.there.send_to(&packet[..n], self.to);
                } else if travelling.send((is_free + self.conditions.delay, packet[..n].to_vec())).is_err() {
                    return;
                }
            }
        });
    }

    fn is_lost(&mut self) -> bool {
        self.random.unit() < self.conditions.loss
    }
}
