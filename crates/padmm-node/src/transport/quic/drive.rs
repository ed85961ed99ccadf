//! Drives the link to one neighbour: the machine in [`crate::link`] decides, and this file dials, writes, closes and keeps the time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use iroh::endpoint::{Connection, SendStream, VarInt, WriteError};
use iroh::{Endpoint, EndpointAddr, TransportAddr};
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::read::{self, News};
use super::udp::to_engine;
use super::{FRAME_TIME, PROTOCOL, PeerAddress, Posted, Shared, relay_url};
use crate::frame::MessageKey;
use crate::link::{Closing, ConnectionId, Link, LinkOutput};
use crate::mailbox::NetworkEvent;
use crate::outbox::Bytes;

/// Code with which a connection is closed by a site that has its model.
pub(super) const DONE: u32 = 1;
/// How long the addresses of a neighbour may be looked for.
const LOOKUP: Duration = Duration::from_secs(8);
/// How long what was written last may take to arrive before the connection is closed all the same.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub(super) struct Driver {
    pub(super) endpoint: Endpoint,
    pub(super) peer: PeerAddress,
    pub(super) shared: Arc<Shared>,
    pub(super) dials_first: bool,
    pub(super) seed: u64,
}

/// A connection, and the stream on which everything goes that does not have one of its own.
struct Line {
    connection: Connection,
    stream: Option<SendStream>,
}

/// What became of a frame that was being written.
struct Written {
    over: ConnectionId,
    stream: Option<SendStream>,
    /// The stream of a message that has one of its own.
    own: Option<(MessageKey, SendStream)>,
    is_written: bool,
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
type Flights = JoinSet<(ConnectionId, MessageKey)>;

impl Driver {
    pub(super) async fn run(
        self,
        mut posted: mpsc::Receiver<Posted>,
        mut accepted: mpsc::Receiver<Connection>,
        mut stop: broadcast::Receiver<bool>,
    ) {
        let start = Instant::now();
        let (news, mut told) = mpsc::channel(64);
        let mut link = Link::new(self.dials_first, self.seed, Duration::ZERO);
        let mut lines = BTreeMap::new();
        let mut next_id = 0;
        // A call continues beside everything else: the neighbour may call meanwhile, and whoever gets through first is used.
        let mut call: Option<Boxed<'_, Option<Connection>>> = None;
        let mut writing: Option<(ConnectionId, Boxed<'_, Written>)> = None;
        let mut flights = Flights::new();
        loop {
            while let Some(output) = link.poll_output() {
                match output {
                    LinkOutput::Dial { patience } => call = Some(Box::pin(self.dial(patience))),
                    output => self.act(output, &mut lines),
                }
            }
            // What waits for a connection that is no longer written to would hold up the one that is.
            if writing.as_ref().is_some_and(|(over, _)| link.active() != Some(*over)) {
                writing = None;
            }
            if writing.is_none()
                && let Some((over, key, bytes)) = link.poll_frame()
                && let Some(line) = lines.get_mut(&over)
            {
                writing = Some((over, Box::pin(write(over, line, key, bytes))));
            }
            let deadline = link.next_deadline(start.elapsed()).map(|at| start + at);
            tokio::select! {
                biased;
                done = stop.recv() => {
                    let active = link.active();
                    let last = writing.map(|(_, writing)| writing);
                    return hang_up(lines, active, last, link, flights, done.unwrap_or(false)).await;
                }
                Some(connection) = accepted.recv() => {
                    self.open(connection, &mut next_id, &mut lines, &news, &mut link, (start, false));
                }
                Some(news) = told.recv() => match news {
                    News::Heard(id) => link.handle_heard(start.elapsed(), id),
                    News::Ended(id, ending) => {
                        lines.remove(&id);
                        link.handle_closed(start.elapsed(), id, ending);
                    }
                },
                () = self.shared.believed[&self.peer.site].notified() => link.handle_believed(),
                written = async { writing.as_mut().expect("asked for only if there is one").1.as_mut().await }, if writing.is_some() => {
                    writing = None;
                    if !written.is_written {
                        link.handle_stalled(start.elapsed(), written.over);
                    } else if let Some(line) = lines.get_mut(&written.over) {
                        line.stream = written.stream;
                        watch(&mut flights, written.over, written.own);
                    }
                }
                Some(Ok((over, key))) = flights.join_next(), if !flights.is_empty() => {
                    link.handle_landed(over, &key);
                }
                frame = posted.recv() => {
                    let Some(Posted { bytes, answers }) = frame else { return };
                    // Whoever wrote an answer down, or could not, knows why: the session stops because of it.
                    let is_written_down = |message| (self.shared.on_answer)(self.peer.site, message, &bytes).is_ok();
                    if link.takes(&bytes) && answers.is_none_or(is_written_down) {
                        link.handle_outgoing(bytes);
                    }
                }
                answered = async { call.as_mut().expect("asked for only if there is one").await }, if call.is_some() => {
                    call = None;
                    match answered {
                        Some(connection) => {
                            self.open(connection, &mut next_id, &mut lines, &news, &mut link, (start, true));
                        }
                        None => link.handle_call_failed(start.elapsed()),
                    }
                }
                () = async { sleep_until(deadline.expect("asked for only if there is one")).await }, if deadline.is_some() => {
                    link.handle_timeout(start.elapsed());
                }
            }
        }
    }

    /// Reads from a new connection, and hands it to the link.
    fn open(
        &self,
        connection: Connection,
        next_id: &mut u64,
        lines: &mut BTreeMap<ConnectionId, Line>,
        news: &mpsc::Sender<News>,
        link: &mut Link,
        (start, is_ours): (Instant, bool),
    ) {
        let id = ConnectionId(*next_id);
        *next_id += 1;
        lines.insert(id, Line { connection: connection.clone(), stream: None });
        self.shared.believed[&self.peer.site].begin_again();
        let (peer, shared) = (self.peer.clone(), Arc::clone(&self.shared));
        tokio::spawn(read::read_all(connection, id, peer, shared, news.clone()));
        link.handle_connected(start.elapsed(), id, is_ours);
    }

    fn act(&self, output: LinkOutput, lines: &mut BTreeMap<ConnectionId, Line>) {
        let site = self.peer.site;
        match output {
            LinkOutput::Dial { .. } => {}
            LinkOutput::Promote { connection } => {
                if let Some(line) = lines.get(&connection) {
                    self.shared.routes.put(site, &line.connection);
                }
                self.shared.mailbox.put(NetworkEvent::Connected { site });
            }
            LinkOutput::Close { connection, why } => {
                if let Some(line) = lines.remove(&connection) {
                    let why: &[u8] = match why {
                        Closing::Superseded => b"another one is newer",
                        Closing::Silent => b"nothing was heard",
                        Closing::Stalled => b"nothing is accepted",
                    };
                    line.connection.close(VarInt::from_u32(0), why);
                }
            }
            LinkOutput::Down => self.shared.mailbox.put(NetworkEvent::Disconnected { site, done: false }),
            LinkOutput::Done => self.shared.mailbox.put(NetworkEvent::Disconnected { site, done: true }),
            LinkOutput::Refused { times } => {
                let so_far = if times > 1 { format!(" ({times} such so far)") } else { String::new() };
                let what = format!(
                    "{} does not know the key of this site and closes the connection: it has another plan, or an older card of this site. It is dialled more and more slowly{so_far}",
                    self.peer.name
                );
                self.shared.mailbox.put(NetworkEvent::Noted { what });
            }
        }
    }

    /// The time is for the handshake. Name servers have their own: the first of them may be dead, which takes longer than any call.
    async fn dial(&self, patience: Duration) -> Option<Connection> {
        let found = timeout(LOOKUP, self.look_up()).await.ok();
        found.iter().for_each(|found| self.shared.door.know(self.peer.site, found));
        let addresses = found.unwrap_or_default();
        let mut addresses: Vec<_> =
            addresses.into_iter().map(|a| TransportAddr::Custom(to_engine(a))).collect();
        if let Some(relay) = self.peer.relay.as_deref().and_then(|r| relay_url(r).ok()) {
            addresses.push(TransportAddr::Relay(relay));
        }
        let id = iroh::PublicKey::from_bytes(&self.peer.key.to_bytes()).ok()?;
        let call = self.endpoint.connect(EndpointAddr::from_parts(id, addresses), PROTOCOL);
        timeout(patience, call).await.ok()?.ok()
    }

    async fn look_up(&self) -> Vec<SocketAddr> {
        let mut addresses = vec![];
        for address in &self.peer.addresses {
            if let Ok(found) = tokio::net::lookup_host(address).await {
                addresses.extend(found);
            }
        }
        addresses
    }
}

/// Writes a frame: a message with a key on a stream of its own, whose end the neighbour's machine acknowledges; anything else behind
/// what was written before.
fn write(
    over: ConnectionId,
    line: &mut Line,
    key: Option<MessageKey>,
    bytes: Bytes,
) -> impl Future<Output = Written> + Send + 'static {
    let (connection, mut stream) = (line.connection.clone(), line.stream.take());
    async move {
        let work = async {
            if let Some(key) = key {
                let mut own = connection.open_uni().await.ok()?;
                write_frame(&mut own, &bytes).await.ok()?;
                own.finish().ok()?;
                return Some(Some((key, own)));
            }
            if stream.is_none() {
                stream = Some(connection.open_uni().await.ok()?);
            }
            write_frame(stream.as_mut()?, &bytes).await.ok()?;
            Some(None)
        };
        let done = timeout(FRAME_TIME, work).await.ok().flatten();
        Written { over, stream, is_written: done.is_some(), own: done.flatten() }
    }
}

async fn write_frame(stream: &mut SendStream, frame: &[u8]) -> Result<(), WriteError> {
    let length = u32::try_from(frame.len()).expect("frames are shorter than 4 GiB").to_le_bytes();
    stream.write_all(&length).await?;
    stream.write_all(frame).await
}

/// Waits until a message has arrived, or cannot any more.
fn watch(flights: &mut Flights, over: ConnectionId, own: Option<(MessageKey, SendStream)>) {
    if let Some((key, stream)) = own {
        flights.spawn(async move {
            let _ = stream.stopped().await;
            (over, key)
        });
    }
}

/// Sends what is queued, lets it arrive, and closes every connection: the neighbour may look at any of them.
async fn hang_up(
    mut lines: BTreeMap<ConnectionId, Line>,
    active: Option<ConnectionId>,
    last: Option<Boxed<'_, Written>>,
    mut link: Link,
    mut flights: Flights,
    done: bool,
) {
    let farewell = async {
        let mut land = |written: Written, lines: &mut BTreeMap<ConnectionId, Line>| {
            if let Some(line) = lines.get_mut(&written.over) {
                line.stream = written.stream;
            }
            watch(&mut flights, written.over, written.own);
        };
        if let Some(last) = last {
            land(last.await, &mut lines);
        }
        while let Some((over, key, bytes)) = link.poll_frame() {
            let Some(line) = lines.get_mut(&over) else { break };
            let written = write(over, line, key, bytes).await;
            land(written, &mut lines);
        }
        let stream = active.and_then(|active| lines.get_mut(&active)?.stream.as_mut());
        if let Some(stream) = stream {
            let _ = stream.finish();
            let _ = stream.stopped().await;
        }
        while flights.join_next().await.is_some() {}
    };
    let _ = timeout(LAST_WORDS, farewell).await;
    let code = VarInt::from_u32(if done { DONE } else { 0 });
    lines.values().for_each(|line| line.connection.close(code, b"bye"));
}
