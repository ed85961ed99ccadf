//! The ways that the engine has out of the house: our UDP socket, relays, a proxy in between, and whose certificates are trusted there.
//!
//! The engine is told as little as it can work with. Names are asked of the system's name servers only: by itself it would ask public ones
//! when these do not answer. It keeps a connection to the site's own relay and to no other, so that the relay on the site's card is where
//! others find it. It looks for no other network by plain HTTP.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use iroh::dns::{DnsResolver, FallbackMode};
use iroh::endpoint::{Builder, presets};
use iroh::tls::CaTlsConfig;
use iroh::{Endpoint, NetReportConfig, RelayConfig, RelayMap, RelayMode, RelayUrl, Watcher};
use iroh_relay::client::{ClientBuilder, ConnectError, DialError};
use iroh_relay::protos::handshake;
use iroh_relay::tls::default_provider;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::time::{Instant, timeout, timeout_at};
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroizing;

use super::udp::Udp;
use super::{PeerAddress, Shared, TransportError};
use crate::identity::WayOut;
use crate::mailbox::NetworkEvent;

/// How long a relay may take to let a site in.
const PATIENCE: Duration = Duration::from_secs(10);

/// Characters of what a relay says that are shown. It may say a megabyte.
const MOST_OF_A_REASON: usize = 200;

pub(super) fn relay_url(relay: &str) -> Result<RelayUrl, TransportError> {
    relay.parse().map_err(|e| TransportError::Relay { relay: relay.to_owned(), reason: format!("{e}") })
}

/// The engine, before it is bound.
pub(super) fn engine(
    secret: &Zeroizing<[u8; 32]>,
    listen: SocketAddr,
    way_out: &WayOut,
    peers: &[PeerAddress],
) -> Result<Builder, TransportError> {
    let own = way_out.relay.as_deref().map(relay_url).transpose()?;
    let others = peers.iter().filter_map(|peer| peer.relay.as_deref()).map(relay_url);
    let others = others.collect::<Result<Vec<_>, _>>()?;
    let mut look_around = NetReportConfig::default();
    look_around.captive_portal_check = false;
    let mut builder = Endpoint::builder(presets::Minimal)
        .secret_key(iroh::SecretKey::from_bytes(secret))
        .clear_address_lookup()
        .clear_ip_transports()
        .dns_resolver(resolver())
        .net_report_config(look_around);
    if !way_out.relay_only {
        builder = builder.add_custom_transport(Arc::new(Udp { listen }));
    }
    let mut relays = own.iter().chain(&others).peekable();
    if relays.peek().is_none() {
        return Ok(builder.relay_mode(RelayMode::Disabled));
    }
    if let Some(trusted) = trust(way_out, relays)? {
        builder = builder.ca_tls_config(trusted);
    }
    if let Some(proxy) = way_out.proxy() {
        builder = builder.proxy_url(proxy);
    }
    // Relays of others need not be listed to be used.
    let home: RelayMap = own.into_iter().map(|url| RelayConfig::new(url, None)).collect();
    Ok(builder.relay_mode(RelayMode::Custom(home)))
}

fn resolver() -> DnsResolver {
    DnsResolver::builder().with_system_defaults().with_fallback_mode(FallbackMode::Never).build()
}

/// The system's authorities and the site's own; none if nothing is encrypted on the way to a relay.
fn trust<'a>(
    way_out: &WayOut,
    mut relays: impl Iterator<Item = &'a RelayUrl>,
) -> Result<Option<CaTlsConfig>, TransportError> {
    let is_needed = relays.any(|url| url.scheme() == "https")
        || way_out.proxy().is_some_and(|proxy| proxy.scheme() == "https");
    if !is_needed {
        return Ok(None);
    }
    let known = CaTlsConfig::system()
        .with_extra_roots(way_out.authorities.clone())
        .server_cert_verifier(default_provider())
        .map_err(|e| TransportError::Trust { reason: e.to_string() })?;
    let verifier: Arc<dyn ServerCertVerifier> = Arc::new(NamesIssuer(known));
    Ok(Some(CaTlsConfig::custom_server_cert_verifier(Arc::new(move |_| Ok(Arc::clone(&verifier))))))
}

/// A certificate that leads to nobody who is trusted.
#[derive(Debug, thiserror::Error)]
#[error("the certificate is issued by '{issuer}', which is not trusted here")]
struct Untrusted {
    issuer: String,
}

/// The verifier within, which alone decides; whoever issued what it does not know is named.
#[derive(Debug)]
struct NamesIssuer(Arc<dyn ServerCertVerifier>);

impl ServerCertVerifier for NamesIssuer {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.0.verify_server_cert(certificate, intermediates, name, ocsp, now);
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        verified.map_err(|error| {
            if error != unknown {
                return error;
            }
            // The last one that was shown is the nearest to the authority.
            let last = intermediates.last().unwrap_or(certificate);
            let issuer = X509Certificate::from_der(last)
                .map_or_else(|_| "somebody unreadable".to_owned(), |(_, found)| found.issuer().to_string());
            rustls::Error::Other(OtherError(Arc::new(Untrusted { issuer })))
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Why a relay does not let a site in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrelayed {
    /// Nothing answers where the proxy should be.
    #[error("the proxy is not reached ({0})")]
    ProxySilent(String),
    /// The proxy wants another user or password.
    #[error("the proxy asks for a user and a password, and does not accept these")]
    ProxyCredentials,
    /// The proxy does not connect to the relay.
    #[error("the proxy answers, and does not connect to the relay ({0})")]
    ProxyRefuses(String),
    /// A certificate of somebody unknown: the relay's, or that of a firewall which looks into TLS.
    #[error(
        "the certificate that is shown for the relay is issued by '{0}', which this machine does not trust"
    )]
    Untrusted(String),
    /// A certificate with another fault, or no TLS at all.
    #[error("no encrypted connection to the relay could be made ({0})")]
    Tls(String),
    /// The relay does not know this site's key.
    #[error("the relay refuses this site's key ({0})")]
    Denied(String),
    /// Something answers that is no relay, or one of another version.
    #[error("what answers is not a relay that this program understands ({0})")]
    NoRelay(String),
    /// Nothing answers.
    #[error("the relay is not reached ({0})")]
    Silent(String),
}

impl Unrelayed {
    fn of(error: &ConnectError, is_proxied: bool) -> Self {
        let said = |error: &dyn fmt::Display| format!("{error:#}");
        match error {
            ConnectError::Dial { source, .. } => match source {
                DialError::ProxyConnectInvalidStatus { status, .. } => match status.as_u16() {
                    407 => Self::ProxyCredentials,
                    _ => Self::ProxyRefuses(format!("it says {status}")),
                },
                DialError::ProxyConnect { .. } => Self::ProxyRefuses("it hung up".to_owned()),
                DialError::Io { source, .. } => match untrusted(source) {
                    Some(issuer) => Self::Untrusted(issuer),
                    None if is_proxied => Self::ProxySilent(said(source)),
                    None => Self::Silent(said(source)),
                },
                other if is_proxied => Self::ProxySilent(said(other)),
                other => Self::Silent(said(other)),
            },
            ConnectError::Tls { source, .. } => match untrusted(source) {
                Some(issuer) => Self::Untrusted(issuer),
                None => Self::Tls(said(source)),
            },
            ConnectError::Handshake { source, .. } => match source {
                handshake::Error::ServerDeniedAuth { reason, .. } => Self::Denied(reason.clone()),
                other => Self::NoRelay(said(other)),
            },
            other => Self::NoRelay(said(other)),
        }
    }
}

/// The issuer that was not trusted, if that is the fault.
fn untrusted(error: &std::io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::Other(OtherError(inner)) = error else { return None };
    inner.downcast_ref::<Untrusted>().map(|found| found.issuer.clone())
}

/// Knocks at the site's relay as the engine would, and leaves at once.
pub(super) async fn visit(
    secret: &Zeroizing<[u8; 32]>,
    relay: &str,
    way_out: &WayOut,
) -> Result<Result<(), Unrelayed>, TransportError> {
    let url = relay_url(relay)?;
    let trusted = trust(way_out, std::iter::once(&url))?.unwrap_or_default();
    let trusted = trusted
        .client_config(default_provider())
        .map_err(|e| TransportError::Trust { reason: e.to_string() })?;
    let key = iroh::SecretKey::from_bytes(secret);
    let mut caller = ClientBuilder::new(url, key, resolver()).tls_client_config(trusted);
    let proxy = way_out.proxy();
    let is_proxied = proxy.is_some();
    if let Some(proxy) = proxy {
        caller = caller.proxy_url(proxy);
    }
    Ok(match timeout(PATIENCE, caller.connect()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(Unrelayed::of(&error, is_proxied)),
        Err(_) if is_proxied => Err(Unrelayed::ProxyRefuses("nothing came back in time".to_owned())),
        Err(_) => Err(Unrelayed::Silent("nothing came back in time".to_owned())),
    })
}

/// Says in the log when the site's relay is lost, and when it is there again. The engine keeps trying by itself.
pub(super) async fn watch(endpoint: Endpoint, relay: String, shared: Arc<Shared>) {
    let mut watcher = endpoint.home_relay_status();
    let mut gone_since = Some(Instant::now());
    let mut is_told = false;
    let note = |what: String| shared.mailbox.put(NetworkEvent::Noted { what });
    loop {
        let now = watcher.get();
        if now.iter().any(|status| status.is_connected()) {
            if is_told {
                note(format!("the relay {relay} is reached again"));
            }
            (gone_since, is_told) = (None, false);
        } else {
            gone_since = gone_since.or_else(|| Some(Instant::now()));
        }
        let Some(since) = gone_since.filter(|_| !is_told) else {
            match watcher.updated().await {
                Ok(_) => continue,
                Err(_) => return,
            }
        };
        let denied = now.iter().find_map(|status| status.auth_denied_reason());
        if denied.is_some() || since.elapsed() >= PATIENCE {
            let why = denied.map_or_else(
                || format!("is not reached for {} s", PATIENCE.as_secs()),
                |reason| {
                    let reason: String = reason.chars().take(MOST_OF_A_REASON).collect();
                    format!("refuses this site's key ({reason})")
                },
            );
            note(format!(
                "the relay {relay} {why}; it is tried again and again, and `padmm-site doctor` says what is in the way"
            ));
            is_told = true;
        } else if let Ok(Err(_)) = timeout_at(since + PATIENCE, watcher.updated()).await {
            return;
        }
    }
}
