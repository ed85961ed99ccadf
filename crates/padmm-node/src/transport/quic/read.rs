//! Reads what a neighbour sends: frames for the session, and requests, which are answered from the outbox whatever the site is doing.

use std::sync::Arc;
use std::time::Duration;

use iroh::endpoint::{Connection, ConnectionError, RecvStream, VarInt};
use padmm_core::message::SiteIndex;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::drive::DONE;
use super::{FRAME_TIME, PeerAddress, Posted, STRANGER, Shared};
use crate::frame::is_request;
use crate::link::{ConnectionId, Ending};

const TOO_LONG: u32 = 2;
/// How often the link is told that something was read; much less than a silence.
const HEARD: Duration = Duration::from_millis(200);
/// A frame is taken in by pieces of this size, so that its memory grows with what has arrived and not with what was promised.
const PIECE: usize = 64 << 10;

/// What the link is told of a connection.
pub(super) enum News {
    /// Something was read from it.
    Heard(ConnectionId),
    /// It has ended.
    Ended(ConnectionId, Ending),
}

/// By what the neighbour said when it closed the connection.
fn ending(reason: &ConnectionError) -> Ending {
    match reason {
        ConnectionError::ApplicationClosed(c) if c.error_code == VarInt::from_u32(DONE) => Ending::Done,
        ConnectionError::ApplicationClosed(c) if c.error_code == VarInt::from_u32(STRANGER) => {
            Ending::Stranger
        }
        _ => Ending::Lost,
    }
}

/// Reads every stream of a connection until it ends.
pub(super) async fn read_all(
    connection: Connection,
    id: ConnectionId,
    peer: PeerAddress,
    shared: Arc<Shared>,
    news: mpsc::Sender<News>,
) {
    loop {
        let stream = match connection.accept_uni().await {
            Ok(stream) => stream,
            Err(reason) => return drop(news.send(News::Ended(id, ending(&reason))).await),
        };
        let (connection, peer, shared) = (connection.clone(), peer.clone(), Arc::clone(&shared));
        let news = news.clone();
        tokio::spawn(async move {
            let mut reading = Reading { stream, id, news, told: None };
            if let Err(what) = reading.read_stream(&peer, &shared).await {
                shared.note(&shared.unacceptable, format!("{}: {what}; the connection is closed", peer.name));
                connection.close(VarInt::from_u32(TOO_LONG), b"not acceptable");
            }
        });
    }
}

/// A stream that is being read.
struct Reading {
    stream: RecvStream,
    id: ConnectionId,
    news: mpsc::Sender<News>,
    told: Option<Instant>,
}

impl Reading {
    /// Tells the link, now and then, that the connection is alive.
    fn heard(&mut self) {
        if self.told.is_none_or(|told| told.elapsed() >= HEARD) {
            self.told = Some(Instant::now());
            // If the link has that much news, some of it is of this connection.
            let _ = self.news.try_send(News::Heard(self.id));
        }
    }

    /// Reads frames until the stream ends; an error is something that no honest neighbour does.
    async fn read_stream(&mut self, peer: &PeerAddress, shared: &Shared) -> Result<(), String> {
        let mut length = [0; 4];
        while self.stream.read_exact(&mut length).await.is_ok() {
            let n = u32::from_le_bytes(length) as usize;
            if n == 0 || n > shared.largest_frame {
                return Err(format!(
                    "sent a message of {n} bytes where {} is the most",
                    shared.largest_frame
                ));
            }
            let Some(mut bytes) = self.read_frame(n).await? else { return Ok(()) };
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

    /// Reads so many bytes; none if the stream ends before.
    async fn read_frame(&mut self, n: usize) -> Result<Option<Vec<u8>>, String> {
        self.heard();
        let too_slow = || format!("took more than {} s over one message", FRAME_TIME.as_secs());
        let mut bytes = vec![];
        // The time is for a piece: a long frame on a narrow line takes longer, and each piece is a sign of life.
        while bytes.len() < n {
            let begin = bytes.len();
            bytes.resize(n.min(begin + PIECE), 0);
            match timeout(FRAME_TIME, self.stream.read_exact(&mut bytes[begin..])).await {
                Ok(Ok(())) => self.heard(),
                Ok(Err(_)) => return Ok(None),
                Err(_) => return Err(too_slow()),
            }
        }
        Ok(Some(bytes))
    }
}

fn answer(request: &[u8], site: SiteIndex, shared: &Shared) {
    let (Some((answers, bytes)), Some(queue)) = (shared.outbox.answer(request), shared.queues.get(&site))
    else {
        return;
    };
    // A neighbour that asks faster than it listens gets no answer, and nothing is kept for it.
    let _ = queue.try_send(Posted { bytes, answers });
}
