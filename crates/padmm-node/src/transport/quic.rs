//! Frames over QUIC (TLS 1.3), by iroh: a neighbour is dialled and let in by its transport key alone, directly or through a
//! relay that sees nothing but encrypted packets. A key that is not a neighbour's gets no further than the handshake.
//!
//! Both ends dial; whatever connection comes about is read, and the newest is written to. The engine runs on one thread of its own,
//! which also answers questions from the shelf and gives signs of life, so that a site that computes is not taken for dead.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use iroh::endpoint::{
    Connection, ConnectionError, QuicTransportConfig, RecvStream, SendStream, VarInt, presets,
};
use iroh::{Endpoint, EndpointAddr, RelayMode, RelayUrl, TransportAddr};
use padmm_core::message::Stage;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::Transport;
use crate::frame::is_question;
use crate::identity::PublicKey;
use crate::mailbox::{Event, Mailbox};
use crate::shelf::{Bytes, Shelf};

const PROTOCOL: &[u8] = b"padmm/1";
/// How often a site gives a sign of life.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
const HANDSHAKE: Duration = Duration::from_secs(10);
const FRAME_TIME: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_secs(8);
const FIRST_REDIAL: Duration = Duration::from_millis(100);
const HEAD_START: Duration = Duration::from_millis(300);
const SLOWEST_REDIAL: Duration = Duration::from_secs(2);
/// Frames that wait for a neighbour at most; beyond that it is too slow and asks again later.
const MOST_QUEUED: usize = 64;
const MOST_HANDSHAKES: usize = 32;
/// Connections of one neighbour that are read at once; an honest one needs two, when both ends dialled.
const MOST_CONNECTIONS: usize = 4;

const DONE: u32 = 1;
const TOO_LONG: u32 = 2;
const STRANGER: u32 = 3;

/// A neighbour as the transport knows it.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its place in the contract.
    pub site: usize,
    /// Its name, for the log.
    pub name: String,
    /// Its transport key.
    pub key: PublicKey,
    /// `host:port`, as its card has them.
    pub addresses: Vec<String>,
    /// Its relay, if its card names one.
    pub relay: Option<String>,
}

/// Hears of every speech that leaves as an answer: to whom, stage, turn, bytes.
pub type OnAnswer = Arc<dyn Fn(usize, Stage, u32, &Bytes) + Send + Sync>;

/// What the transport needs.
pub struct QuicSetup {
    /// This site's place in the contract.
    pub me: usize,
    /// The secret half of its transport key.
    pub secret: [u8; 32],
    /// Where it listens (UDP).
    pub listen: SocketAddr,
    /// Its own relay, if it has one.
    pub relay: Option<String>,
    /// Its neighbours.
    pub peers: Vec<Peer>,
    /// The longest frame that is read.
    pub largest_frame: usize,
    /// What it hands out.
    pub shelf: Arc<Shelf>,
    /// Where events go.
    pub mailbox: Arc<Mailbox>,
    /// Hears of answers.
    pub on_answer: OnAnswer,
}

/// Why the transport does not start.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The socket cannot be had.
    #[error(
        "UDP {listen} cannot be listened on ({reason}): is another program, or another run, using the port? Change `listen` in site.toml or stop it"
    )]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// Why.
        reason: String,
    },
    /// A relay that is no URL.
    #[error("the relay {relay:?} is not a URL ({reason})")]
    Relay {
        /// As written.
        relay: String,
        /// Why.
        reason: String,
    },
    /// The thread could not be started.
    #[error("the network thread could not be started ({reason})")]
    Thread {
        /// Why.
        reason: String,
    },
}

/// The running transport.
pub struct QuicTransport {
    mailbox: Arc<Mailbox>,
    queues: BTreeMap<usize, mpsc::Sender<Bytes>>,
    close: Option<oneshot::Sender<bool>>,
    thread: Option<JoinHandle<()>>,
}

impl QuicTransport {
    /// Binds the socket and starts to dial.
    pub fn start(setup: QuicSetup) -> Result<Self, TransportError> {
        let mailbox = Arc::clone(&setup.mailbox);
        let (mut queues, mut receivers) = (BTreeMap::new(), vec![]);
        for peer in &setup.peers {
            let (sender, receiver) = mpsc::channel(MOST_QUEUED);
            queues.insert(peer.site, sender);
            receivers.push(receiver);
        }
        let (close, closing) = oneshot::channel();
        let (ready, started) = std::sync::mpsc::channel();
        let thread = |reason: std::io::Error| TransportError::Thread { reason: reason.to_string() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(thread)?;
        let for_answers = queues.clone();
        let run = move || {
            runtime.block_on(async move {
                match bind(&setup).await {
                    Err(error) => drop(ready.send(Err(error))),
                    Ok(endpoint) => {
                        drop(ready.send(Ok(())));
                        serve(endpoint, setup, receivers, for_answers, closing).await;
                    }
                }
            });
        };
        let thread = std::thread::Builder::new().name("network".into()).spawn(run).map_err(thread)?;
        started.recv().map_err(|e| TransportError::Thread { reason: e.to_string() })??;
        Ok(QuicTransport { mailbox, queues, close: Some(close), thread: Some(thread) })
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
    fn send(&self, to: usize, frame: Bytes) {
        if let Some(queue) = self.queues.get(&to) {
            // A full queue is a slow neighbour, which asks again.
            let _ = queue.try_send(frame);
        }
    }

    fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }
}

fn relay_url(relay: &str) -> Result<RelayUrl, TransportError> {
    relay.parse().map_err(|e| TransportError::Relay { relay: relay.to_owned(), reason: format!("{e}") })
}

async fn bind(setup: &QuicSetup) -> Result<Endpoint, TransportError> {
    let listen = setup.listen;
    let failed = |reason: String| TransportError::Listen { listen, reason };
    let peers = setup.peers.iter().filter_map(|p| p.relay.as_deref());
    let relays =
        setup.relay.as_deref().into_iter().chain(peers).map(relay_url).collect::<Result<Vec<_>, _>>()?;
    let relay_mode = if relays.is_empty() { RelayMode::Disabled } else { RelayMode::custom(relays) };
    let config = QuicTransportConfig::builder()
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(2))
        .max_idle_timeout(Some(IDLE.try_into().expect("a few seconds are a valid timeout")))
        .keep_alive_interval(IDLE / 4)
        .build();
    Endpoint::builder(presets::Minimal)
        .secret_key(iroh::SecretKey::from_bytes(&setup.secret))
        .alpns(vec![PROTOCOL.to_vec()])
        .relay_mode(relay_mode)
        .clear_address_lookup()
        .transport_config(config)
        .clear_ip_transports()
        .bind_addr(listen)
        .map_err(|e| failed(format!("{e}")))?
        .bind()
        .await
        .map_err(|e| failed(format!("{e:#}")))
}

/// What all tasks of one transport share.
struct Shared {
    mailbox: Arc<Mailbox>,
    shelf: Arc<Shelf>,
    on_answer: OnAnswer,
    largest_frame: usize,
    queues: BTreeMap<usize, mpsc::Sender<Bytes>>,
    strangers: AtomicU64,
    unacceptable: AtomicU64,
}

impl Shared {
    /// Notes what is done to the site, less and less often: a log must not be a target.
    fn note(&self, so_many: &AtomicU64, what: String) {
        let n = so_many.fetch_add(1, Ordering::Relaxed) + 1;
        if n.is_power_of_two() {
            let so_far = if n > 1 { format!(" ({n} such so far)") } else { String::new() };
            self.mailbox.put(Event::Noted { what: format!("{what}{so_far}") });
        }
    }

    fn note_stranger(&self, what: String) {
        self.note(&self.strangers, what);
    }
}

async fn serve(
    endpoint: Endpoint,
    setup: QuicSetup,
    receivers: Vec<mpsc::Receiver<Bytes>>,
    queues: BTreeMap<usize, mpsc::Sender<Bytes>>,
    closing: oneshot::Receiver<bool>,
) {
    let QuicSetup { me, peers, largest_frame, shelf, mailbox, on_answer, .. } = setup;
    let (strangers, unacceptable) = (AtomicU64::new(0), AtomicU64::new(0));
    let shared =
        Arc::new(Shared { mailbox, shelf, on_answer, largest_frame, queues, strangers, unacceptable });
    let (stop, _) = tokio::sync::broadcast::channel::<bool>(1);
    let mut links = tokio::task::JoinSet::new();
    let mut doors = BTreeMap::new();
    for (peer, queue) in peers.into_iter().zip(receivers) {
        let (door, accepted) = mpsc::channel(4);
        doors.insert(peer.key.to_bytes(), (peer.site, peer.name.clone(), door));
        let dials_first = me < peer.site;
        let link = Link { endpoint: endpoint.clone(), peer, shared: Arc::clone(&shared), dials_first };
        links.spawn(link.run(queue, accepted, stop.subscribe()));
    }
    let pulse = tokio::spawn({
        let shared = Arc::clone(&shared);
        async move {
            loop {
                sleep(HEARTBEAT).await;
                let status = shared.shelf.status();
                shared.queues.values().for_each(|q| drop(q.try_send(Arc::clone(&status))));
            }
        }
    });
    let signals = tokio::spawn(stop_on_signal(Arc::clone(&shared.mailbox)));
    let porter = tokio::spawn(accept(endpoint.clone(), doors, Arc::clone(&shared)));
    let done = closing.await.unwrap_or(false);
    pulse.abort();
    porter.abort();
    signals.abort();
    let _ = stop.send(done);
    let all = async { while links.join_next().await.is_some() {} };
    let _ = timeout(Duration::from_secs(3), all).await;
    let _ = timeout(Duration::from_secs(3), endpoint.close()).await;
}

/// A signal to end lets the site finish what it is writing.
async fn stop_on_signal(mailbox: Arc<Mailbox>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut end), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    tokio::select! {
        _ = end.recv() => {}
        _ = interrupt.recv() => {}
    }
    mailbox.stop();
}

type Doors = BTreeMap<[u8; 32], (usize, String, mpsc::Sender<Connection>)>;

/// Lets neighbours in, and nobody else.
async fn accept(endpoint: Endpoint, doors: Doors, shared: Arc<Shared>) {
    let doors = Arc::new(doors);
    let handshakes = Arc::new(Semaphore::new(MOST_HANDSHAKES));
    while let Some(incoming) = endpoint.accept().await {
        let Ok(permit) = Arc::clone(&handshakes).try_acquire_owned() else {
            shared.note_stranger("too many connections at once; one was turned away".into());
            incoming.refuse();
            continue;
        };
        let (doors, shared) = (Arc::clone(&doors), Arc::clone(&shared));
        tokio::spawn(async move {
            let _permit = permit;
            let connection = match timeout(HANDSHAKE, incoming).await {
                Ok(Ok(connection)) => connection,
                Ok(Err(error)) => {
                    return shared.note_stranger(format!("a connection failed its handshake: {error:#}"));
                }
                Err(_) => {
                    return shared.note_stranger("a connection did not finish its handshake in time".into());
                }
            };
            let key = connection.remote_id();
            match doors.get(key.as_bytes()) {
                Some((_, _, door)) => drop(door.send(connection).await),
                None => {
                    shared.note_stranger(format!(
                        "refused a connection: the key {key} is no neighbour's in this plan"
                    ));
                    connection.close(VarInt::from_u32(STRANGER), b"not in the plan");
                }
            }
        });
    }
}

/// The link to one neighbour.
struct Link {
    endpoint: Endpoint,
    peer: Peer,
    shared: Arc<Shared>,
    dials_first: bool,
}

impl Link {
    async fn run(
        self,
        mut queue: mpsc::Receiver<Bytes>,
        mut accepted: mpsc::Receiver<Connection>,
        mut stop: tokio::sync::broadcast::Receiver<bool>,
    ) {
        let site = self.peer.site;
        let mut redial = FIRST_REDIAL;
        // The end that does not dial first gives the other a moment, so that there is one connection, not two.
        let head_start = if self.dials_first { Duration::ZERO } else { HEAD_START };
        let mut next_dial = Instant::now() + head_start;
        let mut connection: Option<(Connection, SendStream)> = None;
        let mut read: VecDeque<Connection> = VecDeque::new();
        // A call goes on beside everything else: the neighbour may call meanwhile, and whoever gets through first is taken.
        let mut call: Option<Pin<Box<dyn Future<Output = Option<Connection>> + Send + '_>>> = None;
        loop {
            let is_up = connection.is_some();
            tokio::select! {
                biased;
                done = stop.recv() => {
                    return hang_up(connection, &read, &mut queue, done.unwrap_or(false)).await;
                }
                Some(new) = accepted.recv() => {
                    connection = self.take(new, &mut read).await.or(connection);
                    call = None;
                    redial = FIRST_REDIAL;
                }
                frame = queue.recv() => {
                    let Some(frame) = frame else { return };
                    // Without a connection the frame is dropped: the session says it again when there is one.
                    // One that takes nothing in does not hold up the next connection.
                    let broken = match &mut connection {
                        Some((_, stream)) => !matches!(timeout(FRAME_TIME, write(stream, &frame)).await, Ok(Ok(()))),
                        None => false,
                    };
                    if broken && let Some((old, _)) = connection.take() {
                        old.close(VarInt::from_u32(0), b"nothing is taken in");
                        next_dial = Instant::now();
                    }
                }
                reason = closed(&connection), if is_up => {
                    self.shared.mailbox.put(Event::Disconnected { site, done: says_done(&reason) });
                    connection = None;
                    next_dial = Instant::now() + head_start;
                }
                answered = async { call.as_mut().expect("asked for only if there is one").await }, if call.is_some() => {
                    call = None;
                    if let Some(new) = answered {
                        connection = self.take(new, &mut read).await.or(connection);
                        redial = FIRST_REDIAL;
                    }
                    next_dial = Instant::now() + redial;
                    redial = (2 * redial).min(SLOWEST_REDIAL);
                }
                () = tokio::time::sleep_until(next_dial), if !is_up && call.is_none() => {
                    call = Some(Box::pin(self.dial()));
                }
            }
        }
    }

    async fn dial(&self) -> Option<Connection> {
        let mut addresses = vec![];
        for address in &self.peer.addresses {
            if let Ok(found) = tokio::net::lookup_host(address).await {
                addresses.extend(found.map(TransportAddr::Ip));
            }
        }
        if let Some(relay) = self.peer.relay.as_deref().and_then(|r| relay_url(r).ok()) {
            addresses.push(TransportAddr::Relay(relay));
        }
        let id = iroh::PublicKey::from_bytes(&self.peer.key.to_bytes()).ok()?;
        let address = EndpointAddr::from_parts(id, addresses);
        timeout(HANDSHAKE / 2, self.endpoint.connect(address, PROTOCOL)).await.ok()?.ok()
    }

    /// Reads from a new connection, and makes it the one that is written to.
    async fn take(
        &self,
        connection: Connection,
        read: &mut VecDeque<Connection>,
    ) -> Option<(Connection, SendStream)> {
        let site = self.peer.site;
        read.push_back(connection.clone());
        if read.len() > MOST_CONNECTIONS
            && let Some(oldest) = read.pop_front()
        {
            oldest.close(VarInt::from_u32(0), b"another one is newer");
        }
        tokio::spawn(read_all(connection.clone(), self.peer.clone(), Arc::clone(&self.shared)));
        let stream = timeout(HANDSHAKE, connection.open_uni()).await.ok()?.ok()?;
        self.shared.mailbox.put(Event::Connected { site });
        Some((connection, stream))
    }
}

/// Sends what is queued, lets it arrive, and closes every connection: the neighbour may look at any of them.
async fn hang_up(
    connection: Option<(Connection, SendStream)>,
    read: &VecDeque<Connection>,
    queue: &mut mpsc::Receiver<Bytes>,
    done: bool,
) {
    if let Some((_, mut stream)) = connection {
        while let Ok(frame) = queue.try_recv() {
            let _ = timeout(Duration::from_secs(1), write(&mut stream, &frame)).await;
        }
        let _ = stream.finish();
        let _ = timeout(Duration::from_millis(500), stream.stopped()).await;
    }
    read.iter().for_each(|c| c.close(VarInt::from_u32(if done { DONE } else { 0 }), b"bye"));
}

async fn closed(connection: &Option<(Connection, SendStream)>) -> ConnectionError {
    match connection {
        Some((connection, _)) => connection.closed().await,
        None => std::future::pending().await,
    }
}

async fn write(stream: &mut SendStream, frame: &[u8]) -> Result<(), iroh::endpoint::WriteError> {
    let length = u32::try_from(frame.len()).expect("frames are shorter than 4 GiB").to_le_bytes();
    stream.write_all(&length).await?;
    stream.write_all(frame).await
}

/// Whether the neighbour left because it has its model.
fn says_done(reason: &ConnectionError) -> bool {
    matches!(reason, ConnectionError::ApplicationClosed(c) if c.error_code == VarInt::from_u32(DONE))
}

async fn read_all(connection: Connection, peer: Peer, shared: Arc<Shared>) {
    loop {
        let stream = match connection.accept_uni().await {
            Ok(stream) => stream,
            Err(reason) => {
                if says_done(&reason) {
                    shared.mailbox.put(Event::Disconnected { site: peer.site, done: true });
                }
                return;
            }
        };
        let (connection, peer, shared) = (connection.clone(), peer.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            if let Err(what) = read_stream(stream, &peer, &shared).await {
                shared.note(&shared.unacceptable, format!("{}: {what}; the connection is closed", peer.name));
                connection.close(VarInt::from_u32(TOO_LONG), b"not acceptable");
            }
        });
    }
}

/// Reads frames until the stream ends; an error is something that no honest neighbour does.
async fn read_stream(mut stream: RecvStream, peer: &Peer, shared: &Shared) -> Result<(), String> {
    let mut length = [0; 4];
    while stream.read_exact(&mut length).await.is_ok() {
        let n = u32::from_le_bytes(length) as usize;
        if n == 0 || n > shared.largest_frame {
            return Err(format!("sent a message of {n} bytes where {} is the most", shared.largest_frame));
        }
        let mut bytes = vec![0; n];
        match timeout(FRAME_TIME, stream.read_exact(&mut bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(format!("took more than {} s over one message", FRAME_TIME.as_secs())),
        }
        if is_question(&bytes) {
            answer(&bytes, peer.site, shared);
            continue;
        }
        while let Err(back) = shared.mailbox.offer(peer.site, bytes) {
            bytes = back;
            sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(())
}

fn answer(question: &[u8], site: usize, shared: &Shared) {
    let (Some((what, bytes)), Some(queue)) = (shared.shelf.answer(question), shared.queues.get(&site)) else {
        return;
    };
    // A neighbour that asks faster than it listens gets no answer, and nothing is kept for it.
    if let Ok(permit) = queue.try_reserve() {
        if let Some((stage, turn)) = what {
            (shared.on_answer)(site, stage, turn, &bytes);
        }
        permit.send(bytes);
    }
}
