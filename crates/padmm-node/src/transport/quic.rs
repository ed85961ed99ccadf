//! Frames over QUIC (TLS 1.3), by iroh: a neighbour is dialled and let in by its transport key alone, directly or through a
//! relay that sees nothing but encrypted packets. A key that is not a neighbour's gets no further than the handshake.
//!
//! Whom to dial when, and which connection to write to, is decided by the machine in [`crate::link`]; here are the sockets. The engine
//! runs on one thread of its own, which also answers requests from the outbox and gives signs of life, so that a site that computes is
//! not taken for dead.
//!
//! | question | file |
//! |---|---|
//! | who may begin a handshake | `door` |
//! | what is done for the link to one neighbour | `drive` |
//! | what is asked of a neighbour before a run | `probe` |
//! | what is read, and who answers | `read` |
//! | how neighbours are reached, for people who look | `route` |
//! | which addresses the engine knows | `udp` |
//! | which relays, proxies and certificates it uses | `way_out` |

mod door;
mod drive;
mod probe;
mod read;
mod route;
mod udp;
mod way_out;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use iroh::Endpoint;
use iroh::endpoint::{Connection, Incoming, IncomingAddr, QuicTransportConfig, VarInt};
use padmm_core::message::{SiteIndex, Turn};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use self::door::{Door, Place, Verdict};
use self::drive::Driver;
pub use self::probe::{Found, Probed, Prober, Unreached, probe};
pub use self::route::Route;
use self::route::Routes;
use self::udp::from_engine;
pub use self::way_out::Unrelayed;
use self::way_out::{engine, relay_url};
use super::Transport;
use crate::identity::{PublicKey, WayOut};
use crate::journal::EgressError;
use crate::link::{MOST_FLYING, MOST_QUEUED};
use crate::mailbox::{Mailbox, NetworkEvent};
use crate::outbox::{Bytes, Outbox};

const PROTOCOL: &[u8] = b"padmm/3";
/// How often a site gives a sign of life.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(8);
/// How long a neighbour may take over one frame, or over a piece of a long one.
const FRAME_TIME: Duration = Duration::from_secs(30);
/// Streams that a neighbour may have open at once: one for short frames, and one for each message that is on its way.
const MOST_STREAMS: u32 = MOST_FLYING as u32 + 4;
/// How long a round trip is taken to be before it is measured: it decides how soon the first packet of a call is repeated.
const UNKNOWN_ROUND_TRIP: Duration = Duration::from_millis(100);

/// Code with which the connection of a stranger is closed.
const STRANGER: u32 = 3;

/// A neighbour as the transport knows it.
#[derive(Clone, Debug)]
pub struct PeerAddress {
    /// Which of the plan's sites it is.
    pub site: SiteIndex,
    /// Its name in the plan, for the log.
    pub name: String,
    /// The key that its connections are pinned to.
    pub key: PublicKey,
    /// `host:port`, as its card has them.
    pub addresses: Vec<String>,
    /// Its relay, if its card names one.
    pub relay: Option<String>,
}

/// Hears of every message that is to leave as an answer: to whom, whose of which turn, and its bytes. It leaves only if that was
/// written down.
pub type OnAnswer =
    Arc<dyn Fn(SiteIndex, (SiteIndex, Turn), &Bytes) -> Result<(), EgressError> + Send + Sync>;

/// What a transport is made of.
pub struct QuicSetup {
    /// Which of the plan's sites this is.
    pub me: SiteIndex,
    /// The secret half of its transport key.
    pub secret: Zeroizing<[u8; 32]>,
    /// The UDP address that it listens on, unless everything goes through relays.
    pub listen: SocketAddr,
    /// Its own relay, and how that is reached.
    pub way_out: WayOut,
    /// Everybody that it dials and lets in.
    pub peers: Vec<PeerAddress>,
    /// The longest frame that is read.
    pub largest_frame: usize,
    /// The frames that it sends, and answers requests from.
    pub outbox: Arc<Outbox>,
    /// Receives every frame and every change of a connection.
    pub mailbox: Arc<Mailbox>,
    /// Called for every answer before it leaves.
    pub on_answer: OnAnswer,
}

/// Why the transport does not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum TransportError {
    /// The socket cannot be opened or bound.
    #[error(
        "UDP {listen} cannot be listened on ({reason}): is another program, or another run, using the port? Change `listen` in site.toml or stop it"
    )]
    Listen { listen: SocketAddr, reason: String },
    /// A relay that is no URL.
    #[error("the relay {relay:?} is not a URL ({reason})")]
    Relay { relay: String, reason: String },
    /// Nobody's certificates are trusted on this machine.
    #[error(
        "this machine trusts no certificate authority ({reason}): install the system's store of certificates (the package ca-certificates), or name one with `authority` below `[network]` in site.toml"
    )]
    Trust { reason: String },
    /// The thread could not be started.
    #[error("the network thread could not be started ({reason})")]
    Thread { reason: String },
}

/// A frame for a neighbour.
struct Posted {
    bytes: Bytes,
    /// The message that was requested, if this is an answer.
    answers: Option<(SiteIndex, Turn)>,
}

/// The session's word that a neighbour has signed something, on its way to the link.
#[derive(Default)]
struct Believed {
    is_told: AtomicBool,
    news: Notify,
}

impl Believed {
    fn tell(&self) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            self.news.notify_one();
        }
    }

    /// There is a new connection, of which nothing is known.
    fn begin_again(&self) {
        self.is_told.store(false, Ordering::Relaxed);
    }

    async fn notified(&self) {
        self.news.notified().await;
    }
}

type BelievedBy = Arc<BTreeMap<SiteIndex, Believed>>;

/// A transport that has its socket and thread.
pub struct QuicTransport {
    queues: BTreeMap<SiteIndex, mpsc::Sender<Posted>>,
    believed: BelievedBy,
    close: Option<oneshot::Sender<bool>>,
    thread: Option<JoinHandle<()>>,
    routes: Arc<Routes>,
}

impl QuicTransport {
    /// How each neighbour that is connected now is reached.
    pub fn routes(&self) -> BTreeMap<SiteIndex, Route> {
        self.routes.now()
    }

    /// Binds the socket and starts to dial.
    pub fn start(setup: QuicSetup) -> Result<Self, TransportError> {
        let (mut queues, mut receivers) = (BTreeMap::new(), vec![]);
        for peer in &setup.peers {
            let (sender, receiver) = mpsc::channel(MOST_QUEUED);
            queues.insert(peer.site, sender);
            receivers.push(receiver);
        }
        let believed: BelievedBy =
            Arc::new(setup.peers.iter().map(|p| (p.site, Believed::default())).collect());
        let (close, closing) = oneshot::channel();
        let (ready, started) = std::sync::mpsc::channel();
        let thread = |reason: std::io::Error| TransportError::Thread { reason: reason.to_string() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(thread)?;
        let routes = Arc::new(Routes::default());
        let for_links = (queues.clone(), Arc::clone(&believed), Arc::clone(&routes));
        let run = move || {
            runtime.block_on(async move {
                match bind(&setup).await {
                    Err(error) => drop(ready.send(Err(error))),
                    Ok(endpoint) => {
                        drop(ready.send(Ok(())));
                        serve(endpoint, setup, receivers, for_links, closing).await;
                    }
                }
            });
        };
        let thread = std::thread::Builder::new().name("network".into()).spawn(run).map_err(thread)?;
        started.recv().map_err(|e| TransportError::Thread { reason: e.to_string() })??;
        Ok(Self { queues, believed, close: Some(close), thread: Some(thread), routes })
    }

    /// Sends what is queued and closes; `done` tells neighbours that this site needs nothing more.
    pub fn close(mut self, done: bool) {
        self.shut(done);
    }

    fn shut(&mut self, done: bool) {
        if let Some(close) = self.close.take() {
            // A receiver that is gone has closed already.
            let _ = close.send(done);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for QuicTransport {
    fn drop(&mut self) {
        self.shut(false);
    }
}

impl Transport for QuicTransport {
    fn send(&self, to: SiteIndex, frame: Bytes) {
        if let Some(queue) = self.queues.get(&to) {
            // A full queue is a slow neighbour, which asks again.
            let _ = queue.try_send(Posted { bytes: frame, answers: None });
        }
    }

    fn believe(&self, from: SiteIndex) {
        self.believed.get(&from).into_iter().for_each(Believed::tell);
    }
}

async fn bind(setup: &QuicSetup) -> Result<Endpoint, TransportError> {
    let listen = setup.listen;
    let config = QuicTransportConfig::builder()
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(MOST_STREAMS))
        .initial_rtt(UNKNOWN_ROUND_TRIP)
        .max_idle_timeout(Some(IDLE.try_into().expect("a few seconds are a valid timeout")))
        .keep_alive_interval(IDLE / 4)
        .build();
    engine(&setup.secret, listen, &setup.way_out, &setup.peers)?
        .alpns(vec![PROTOCOL.to_vec(), probe::PROTOCOL.to_vec()])
        .transport_config(config)
        .bind()
        .await
        .map_err(|e| TransportError::Listen { listen, reason: format!("{e:#}") })
}

/// What all tasks of one transport share.
struct Shared {
    mailbox: Arc<Mailbox>,
    outbox: Arc<Outbox>,
    on_answer: OnAnswer,
    largest_frame: usize,
    queues: BTreeMap<SiteIndex, mpsc::Sender<Posted>>,
    believed: BelievedBy,
    door: Door,
    /// For each neighbour: notified when the mailbox has room for it again.
    room: Arc<BTreeMap<SiteIndex, Notify>>,
    routes: Arc<Routes>,
    strangers: AtomicU64,
    unacceptable: AtomicU64,
}

impl Shared {
    /// Logs what is done to the site, each time the count has doubled: a log must not be a target.
    fn note(&self, so_many: &AtomicU64, what: String) {
        let n = so_many.fetch_add(1, Ordering::Relaxed) + 1;
        if n.is_power_of_two() {
            let so_far = if n > 1 { format!(" ({n} such so far)") } else { String::new() };
            self.mailbox.put(NetworkEvent::Noted { what: format!("{what}{so_far}") });
        }
    }

    fn note_stranger(&self, what: String) {
        self.note(&self.strangers, what);
    }
}

async fn serve(
    endpoint: Endpoint,
    setup: QuicSetup,
    receivers: Vec<mpsc::Receiver<Posted>>,
    (queues, believed, routes): (BTreeMap<SiteIndex, mpsc::Sender<Posted>>, BelievedBy, Arc<Routes>),
    closing: oneshot::Receiver<bool>,
) {
    let QuicSetup { me, peers, way_out, largest_frame, outbox, mailbox, on_answer, .. } = setup;
    let (strangers, unacceptable) = (AtomicU64::new(0), AtomicU64::new(0));
    let room: Arc<BTreeMap<_, _>> = Arc::new(peers.iter().map(|p| (p.site, Notify::new())).collect());
    mailbox.on_room({
        let room = Arc::clone(&room);
        move |site| room.get(&site).into_iter().for_each(Notify::notify_one)
    });
    let door = Door::default();
    let shared = Arc::new(Shared {
        mailbox,
        outbox,
        on_answer,
        largest_frame,
        queues,
        believed,
        door,
        room,
        routes,
        strangers,
        unacceptable,
    });
    let (stop, _) = tokio::sync::broadcast::channel::<bool>(1);
    let mut links = tokio::task::JoinSet::new();
    let mut doors = BTreeMap::new();
    for (peer, queue) in peers.into_iter().zip(receivers) {
        let (door, accepted) = mpsc::channel(4);
        doors.insert(peer.key.to_bytes(), door);
        let dials_first = me < peer.site;
        // Only so that two ends do not wait alike; it is no secret.
        let seed = endpoint
            .id()
            .as_bytes()
            .iter()
            .chain(&peer.key.to_bytes())
            .fold(peer.site.0 as u64, |seed, &byte| {
                seed.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(byte)
            });
        let shared = Arc::clone(&shared);
        let driver = Driver { endpoint: endpoint.clone(), peer, shared, dials_first, seed };
        links.spawn(driver.run(queue, accepted, stop.subscribe()));
    }
    let pulse = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move {
            loop {
                sleep(HEARTBEAT).await;
                let Some(status) = shared.outbox.heartbeat() else { continue };
                for queue in shared.queues.values() {
                    // A neighbour that takes nothing gets no sign of life either.
                    let _ = queue.try_send(Posted { bytes: Arc::clone(&status), answers: None });
                }
            }
        }
    });
    let porter = tokio::spawn(accept(endpoint.clone(), Arc::new(doors), Arc::clone(&shared)));
    let lookout =
        way_out.relay.map(|relay| tokio::spawn(way_out::watch(endpoint.clone(), relay, Arc::clone(&shared))));
    let done = closing.await.unwrap_or(false);
    pulse.abort();
    lookout.iter().for_each(tokio::task::JoinHandle::abort);
    porter.abort();
    let _ = stop.send(done);
    let all = async { while links.join_next().await.is_some() {} };
    let _ = timeout(Duration::from_secs(3), all).await;
    let _ = timeout(Duration::from_secs(3), endpoint.close()).await;
}

/// Where the connections of each key go.
type Doors = BTreeMap<[u8; 32], mpsc::Sender<Connection>>;

/// Lets neighbours in, and nobody else.
async fn accept(endpoint: Endpoint, doors: Arc<Doors>, shared: Arc<Shared>) {
    while let Some(incoming) = endpoint.accept().await {
        let from = match incoming.remote_addr() {
            IncomingAddr::Custom(from) => from_engine(&from),
            // A relay, which has checked the key.
            _ => None,
        };
        match shared.door.knock(from, incoming.remote_addr_validated()) {
            // One that cannot be told to prove itself has done so.
            Verdict::Prove => drop(incoming.retry()),
            Verdict::TurnAway => {
                shared.note_stranger("too many connections at once; one was turned away".into());
                incoming.refuse();
            }
            Verdict::Begin(place, patience) => {
                let (doors, shared) = (Arc::clone(&doors), Arc::clone(&shared));
                tokio::spawn(shake_hands(incoming, place, patience, doors, shared));
            }
        }
    }
}

async fn shake_hands(
    incoming: Incoming,
    place: Place,
    patience: Duration,
    doors: Arc<Doors>,
    shared: Arc<Shared>,
) {
    let connection = match timeout(patience, incoming).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => {
            return shared.note_stranger(format!("a connection failed its handshake: {error:#}"));
        }
        Err(_) => return shared.note_stranger("a connection did not finish its handshake in time".into()),
    };
    drop(place);
    let key = connection.remote_id();
    match doors.get(key.as_bytes()) {
        Some(_) if connection.alpn() == probe::PROTOCOL => {
            probe::answer(&connection, shared.outbox.origin()).await;
        }
        Some(door) => drop(door.send(connection).await),
        None => {
            shared
                .note_stranger(format!("refused a connection: the key {key} is no neighbour's in this plan"));
            connection.close(VarInt::from_u32(STRANGER), b"not in the plan");
        }
    }
}

#[cfg(test)]
mod tests;
