//! Asking a neighbour who it is, before a run: `padmm-site doctor`.
//!
//! The question goes over a protocol of its own, so a neighbour that runs does not take it for the site and change its connection. It is
//! answered to neighbours in the plan only, with what such a neighbour knows or is told in every greeting: program, plan, and the
//! time of day. Nothing in question or answer is computed from records.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iroh::endpoint::{Connection, ConnectionError, VarInt, presets};
use iroh::{Endpoint, EndpointAddr, RelayMode, TransportAddr};
use padmm_core::message::SiteIndex;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::route::Route;
use super::udp::{Udp, to_engine};
use super::{PeerAddress, STRANGER, TransportError, relay_url};
use crate::frame::Origin;
use crate::identity::to_hex;

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
    /// The site's own relay, if it has one.
    pub relay: Option<String>,
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

/// What was found: whether the relay was reached, if there is one, and what each neighbour said.
pub(super) type Found = (Option<bool>, BTreeMap<SiteIndex, Result<Probed, Unreached>>);

/// Asks all neighbours at once, and ends within some seconds.
pub fn probe(prober: Prober) -> Result<Found, TransportError> {
    let thread = |reason: std::io::Error| TransportError::Thread { reason: reason.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(thread)?;
    runtime.block_on(ask_all(prober))
}

async fn ask_all(prober: Prober) -> Result<Found, TransportError> {
    let listen = SocketAddr::new(prober.listen.ip(), 0);
    let failed = |reason: String| TransportError::Listen { listen, reason };
    let peers = prober.peers.iter().filter_map(|p| p.relay.as_deref());
    let relays =
        prober.relay.as_deref().into_iter().chain(peers).map(relay_url).collect::<Result<Vec<_>, _>>()?;
    let relay_mode = if relays.is_empty() { RelayMode::Disabled } else { RelayMode::custom(relays) };
    let endpoint = Endpoint::builder(presets::Minimal)
        .secret_key(iroh::SecretKey::from_bytes(&prober.secret))
        .relay_mode(relay_mode)
        .clear_address_lookup()
        // As in a run: the engine knows no address of this machine to tell.
        .clear_ip_transports()
        .add_custom_transport(Arc::new(Udp { listen }))
        .bind()
        .await
        .map_err(|e| failed(format!("{e:#}")))?;
    let mut questions = JoinSet::new();
    for peer in prober.peers {
        let endpoint = endpoint.clone();
        questions.spawn(async move { (peer.site, ask(&endpoint, &peer).await) });
    }
    let relay = match prober.relay {
        Some(_) => Some(timeout(PATIENCE, endpoint.online()).await.is_ok()),
        None => None,
    };
    let mut found = BTreeMap::new();
    while let Some(result) = questions.join_next().await {
        let (site, answer) = result.map_err(|e| TransportError::Thread { reason: e.to_string() })?;
        found.insert(site, answer);
    }
    let _ = timeout(Duration::from_secs(1), endpoint.close()).await;
    Ok((relay, found))
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
        let why = if unresolved.is_empty() { "its card has none".to_owned() } else { unresolved.join(", ") };
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
