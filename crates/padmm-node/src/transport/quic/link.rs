//! The link to one neighbour: dialling it again and again, writing to the newest connection, reading from all.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use iroh::endpoint::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use iroh::{Endpoint, EndpointAddr, TransportAddr};
use padmm_core::message::SiteIndex;
use tokio::sync::{broadcast, mpsc};
use tokio::time::{Instant, sleep_until, timeout};

use super::{HANDSHAKE, PROTOCOL, PeerAddress, Shared, relay_url};
use crate::frame::is_request;
use crate::mailbox::NetworkEvent;
use crate::outbox::Bytes;

/// How long a neighbour may take over one frame.
const FRAME_TIME: Duration = Duration::from_secs(30);
const FIRST_REDIAL: Duration = Duration::from_millis(100);
const SLOWEST_REDIAL: Duration = Duration::from_secs(2);
/// By how much the end that dials first is ahead of the other.
const HEAD_START: Duration = Duration::from_millis(300);
/// Connections of one neighbour that are read at once; an honest one needs two, when both ends dialled.
const MOST_CONNECTIONS: usize = 4;

/// Codes with which a connection is closed.
const DONE: u32 = 1;
const TOO_LONG: u32 = 2;

pub(super) struct Link {
    pub(super) endpoint: Endpoint,
    pub(super) peer: PeerAddress,
    pub(super) shared: Arc<Shared>,
    pub(super) dials_first: bool,
}

impl Link {
    pub(super) async fn run(
        self,
        mut queue: mpsc::Receiver<Bytes>,
        mut accepted: mpsc::Receiver<Connection>,
        mut stop: broadcast::Receiver<bool>,
    ) {
        let site = self.peer.site;
        let mut redial = FIRST_REDIAL;
        // The end that does not dial first gives the other a moment, so that there is one connection, not two.
        let head_start = if self.dials_first { Duration::ZERO } else { HEAD_START };
        let mut next_dial = Instant::now() + head_start;
        let mut connection: Option<(Connection, SendStream)> = None;
        let mut read: VecDeque<Connection> = VecDeque::new();
        // A call continues beside everything else: the neighbour may call meanwhile, and whoever gets through first is used.
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
                    // Without a connection the frame is dropped: the session sends it again when there is one.
                    // One that accepts nothing does not hold up the next connection.
                    let broken = match &mut connection {
                        Some((_, stream)) => !matches!(timeout(FRAME_TIME, write(stream, &frame)).await, Ok(Ok(()))),
                        None => false,
                    };
                    if broken && let Some((old, _)) = connection.take() {
                        old.close(VarInt::from_u32(0), b"nothing is accepted");
                        next_dial = Instant::now();
                    }
                }
                reason = closed(&connection), if is_up => {
                    self.shared.mailbox.put(NetworkEvent::Disconnected { site, done: says_done(&reason) });
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
                () = sleep_until(next_dial), if !is_up && call.is_none() => {
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
        self.shared.mailbox.put(NetworkEvent::Connected { site });
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

async fn read_all(connection: Connection, peer: PeerAddress, shared: Arc<Shared>) {
    loop {
        let stream = match connection.accept_uni().await {
            Ok(stream) => stream,
            Err(reason) => {
                if says_done(&reason) {
                    shared.mailbox.put(NetworkEvent::Disconnected { site: peer.site, done: true });
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
async fn read_stream(mut stream: RecvStream, peer: &PeerAddress, shared: &Shared) -> Result<(), String> {
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
        if is_request(&bytes) {
            answer(&bytes, peer.site, shared);
            continue;
        }
        while let Err(back) = shared.mailbox.offer(peer.site, bytes) {
            bytes = back;
            shared.room[&peer.site].notified().await;
        }
    }
    Ok(())
}

fn answer(request: &[u8], site: SiteIndex, shared: &Shared) {
    let (Some((message, bytes)), Some(queue)) = (shared.outbox.answer(request), shared.queues.get(&site))
    else {
        return;
    };
    // A neighbour that asks faster than it listens gets no answer, and nothing is kept for it.
    if let Ok(permit) = queue.try_reserve() {
        if let Some(message) = message {
            (shared.on_answer)(site, message, &bytes);
        }
        permit.send(bytes);
    }
}
