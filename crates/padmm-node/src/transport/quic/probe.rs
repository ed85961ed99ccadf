//! Asking a neighbour who it is, before a run: `padmm-site doctor`.
//!
//! The question goes over a protocol of its own, so a neighbour that runs does not take it for the site and change its connection. It is
//! answered to neighbours in the plan only, with what such a neighbour knows or is told in every greeting: program, plan, and the
//! time of day. Nothing in question or answer is computed from records.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iroh::endpoint::{Connection, ConnectionError, VarInt};
use iroh::{Endpoint, EndpointAddr, TransportAddr};
use padmm_core::message::SiteIndex;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::route::Route;
use super::udp::to_engine;
use super::way_out::{Unrelayed, visit};
use super::{PeerAddress, STRANGER, TransportError, engine, relay_url};
use crate::frame::Origin;
use crate::identity::{WayOut, to_hex};

pub(super) const PROTOCOL: &[u8] = b"padmm-doctor/1";
/// How long a neighbour may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const LONGEST: usize = 1024;

/// What a site that runs says about itself.
#[derive(Serialize, Deserialize)]
struct Answer {
    program: String,
    plan: String,
    /// Milliseconds since 1970 by its clock.
    at: u64,
}

/// Who asks, and whom.
pub struct Prober {
    /// The secret half of the site's transport key.
    pub secret: Zeroizing<[u8; 32]>,
    /// The address to ask from; its port is not used, so that the site itself can be started meanwhile.
    pub listen: SocketAddr,
    /// The site's own relay, and how that is reached.
    pub way_out: WayOut,
    /// Whom to ask.
    pub peers: Vec<PeerAddress>,
}

/// A neighbour that answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Probed {
    /// The version of its program; its own words.
    pub program: String,
    /// The hash of the plan that it runs, in hexadecimal digits; its own words.
    pub plan: String,
    /// By how many seconds its clock is ahead of this machine's.
    pub clock_ahead: f64,
    /// How the answer came.
    pub route: Option<Route>,
}

/// Why a neighbour did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreached {
    /// None of its addresses leads anywhere.
    #[error("no address is known of it: {0}")]
    NoAddress(String),
    /// No packet came back, or not in time.
    #[error("nothing answers at {0}")]
    Silent(String),
    /// It knows no such question.
    #[error("a program answers at {0}, and does not know this question: another version, or another program")]
    OtherProgram(String),
    /// Its plan has another key for this site, or none.
    #[error("it answers at {0}, and refuses this site's key")]
    Refused(String),
    /// Something else went wrong on the way.
    #[error("{address}: {reason}")]
    Failed {
        /// Where it was asked.
        address: String,
        /// What the network engine says.
        reason: String,
    },
}

/// What was found: whether the relay lets the site in, if it has one, and what each neighbour said.
pub struct Found {
    /// None if the site has no relay.
    pub relay: Option<Result<(), Unrelayed>>,
    /// Nobody is in it if there is no way to anybody.
    pub neighbours: BTreeMap<SiteIndex, Result<Probed, Unreached>>,
}

/// Asks all neighbours at once, and ends within some seconds.
pub fn probe(prober: Prober) -> Result<Found, TransportError> {
    let thread = |reason: std::io::Error| TransportError::Thread { reason: reason.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(thread)?;
    runtime.block_on(ask_all(prober))
}

async fn ask_all(prober: Prober) -> Result<Found, TransportError> {
    let Prober { secret, listen, way_out, peers } = prober;
    // One after the other: at a relay the newest connection of a key takes the place of the one before.
    let relay = match &way_out.relay {
        Some(relay) => Some(visit(&secret, relay, &way_out).await?),
        None => None,
    };
    let mut neighbours = BTreeMap::new();
    if way_out.relay_only && !matches!(relay, Some(Ok(()))) {
        return Ok(Found { relay, neighbours });
    }
    let listen = SocketAddr::new(listen.ip(), 0);
    let failed = |reason: String| TransportError::Listen { listen, reason };
    // As in a run: the engine knows no address of this machine to tell.
    let engine = engine(&secret, listen, &way_out, &peers)?;
    let endpoint = engine.bind().await.map_err(|e| failed(format!("{e:#}")))?;
    let mut questions = JoinSet::new();
    for peer in peers {
        let endpoint = endpoint.clone();
        questions.spawn(async move { (peer.site, ask(&endpoint, &peer).await) });
    }
    while let Some(result) = questions.join_next().await {
        let (site, answer) = result.map_err(|e| TransportError::Thread { reason: e.to_string() })?;
        neighbours.insert(site, answer);
    }
    let _ = timeout(Duration::from_secs(1), endpoint.close()).await;
    Ok(Found { relay, neighbours })
}

async fn ask(endpoint: &Endpoint, peer: &PeerAddress) -> Result<Probed, Unreached> {
    let (mut addresses, mut unresolved) = (vec![], vec![]);
    for address in &peer.addresses {
        match tokio::net::lookup_host(address).await {
            Ok(found) => addresses.extend(found.map(|a| TransportAddr::Custom(to_engine(a)))),
            Err(error) => unresolved.push(format!("{address} ({error})")),
        }
    }
    let mut shown = peer.addresses.clone();
    if let Some(relay) = peer.relay.as_deref()
        && let Ok(url) = relay_url(relay)
    {
        addresses.push(TransportAddr::Relay(url));
        shown.push(relay.to_owned());
    }
    if addresses.is_empty() {
        let why = if unresolved.is_empty() {
            "its card names none that this site may use".to_owned()
        } else {
            unresolved.join(", ")
        };
        return Err(Unreached::NoAddress(why));
    }
    let shown = shown.join(", ");
    let failed = |reason: String| Unreached::Failed { address: shown.clone(), reason };
    let id = iroh::PublicKey::from_bytes(&peer.key.to_bytes()).map_err(|e| failed(e.to_string()))?;
    let address = EndpointAddr::from_parts(id, addresses);
    let connection = match timeout(PATIENCE, endpoint.connect(address, PROTOCOL)).await {
        Err(_) => return Err(Unreached::Silent(shown)),
        Ok(Err(error)) => {
            let reason = format!("{error:#}");
            // TLS says so by an alert; the engine has no kind of its own for it.
            let is_unknown = reason.contains("application protocol") || reason.contains("error 120");
            return Err(if is_unknown { Unreached::OtherProgram(shown) } else { failed(reason) });
        }
        Ok(Ok(connection)) => connection,
    };
    let read = async {
        let mut stream = connection.accept_uni().await.map_err(|e| reason(&e, &shown))?;
        stream.read_to_end(LONGEST).await.map_err(|e| failed(format!("{e:#}")))
    };
    let bytes = match timeout(PATIENCE, read).await {
        Ok(bytes) => bytes?,
        Err(_) => return Err(Unreached::Silent(shown)),
    };
    let now = milliseconds(crate::clock::now());
    let route = Route::of(&connection);
    connection.close(VarInt::from_u32(0), b"");
    let answer: Answer =
        serde_json::from_slice(&bytes).map_err(|e| failed(format!("its answer is not understood ({e})")))?;
    let on_the_way = route.as_ref().map_or(0.0, |route| route.round_trip.as_secs_f64() / 2.0);
    let clock_ahead = (answer.at as f64 - now as f64) / 1e3 + on_the_way;
    Ok(Probed { program: answer.program, plan: answer.plan, clock_ahead, route })
}

fn reason(error: &ConnectionError, shown: &str) -> Unreached {
    match error {
        ConnectionError::ApplicationClosed(close) if close.error_code == VarInt::from_u32(STRANGER) => {
            Unreached::Refused(shown.to_owned())
        }
        other => Unreached::Failed { address: shown.to_owned(), reason: format!("{other:#}") },
    }
}

/// Answers a neighbour's question.
pub(super) async fn answer(connection: &Connection, origin: Origin) {
    let answer = Answer {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        plan: to_hex(&origin.plan),
        at: milliseconds(crate::clock::now()),
    };
    let bytes = serde_json::to_vec(&answer).expect("an answer is plain text and a number");
    let say = async {
        let mut stream = connection.open_uni().await.ok()?;
        stream.write_all(&bytes).await.ok()?;
        stream.finish().ok()?;
        stream.stopped().await.ok()
    };
    // Whoever asked may be gone; it asks again.
    let _ = timeout(PATIENCE, say).await;
}

fn milliseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}
