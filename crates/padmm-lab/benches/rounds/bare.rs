//! The limit: nothing but bytes over QUIC.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::{FEATURES, SITES};

/// Runs the ring and returns rounds a second.
pub(crate) fn run(rounds: u32) -> f64 {
    let ports: Vec<u16> = (0..SITES)
        .map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port"))
        .collect::<Vec<_>>()
        .iter()
        .map(|s| s.local_addr().expect("an address").port())
        .collect();
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = rcgen::CertificateParams::new(vec!["ring.internal".to_owned()])
        .and_then(|p| p.self_signed(&key))
        .expect("a certificate");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("key"), key.serialize_der()).expect("a key file");
    std::fs::write(folder.path().join("certificate"), certificate.der()).expect("a certificate file");
    let start = |place: usize| {
        Command::new(std::env::current_exe().expect("this program"))
            .args(["--bare-peer", &place.to_string(), &rounds.to_string()])
            .arg(folder.path())
            .args(ports.iter().map(u16::to_string))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process")
    };
    let children: Vec<_> = (0..SITES).map(start).collect();
    let slowest = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().expect("it ends");
            String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().expect("it prints seconds")
        })
        .fold(0.0, f64::max);
    f64::from(rounds) / slowest
}

/// One process of the ring: dials the next, is dialled by the one before, and prints its seconds.
pub(crate) fn peer(arguments: &[String]) {
    let place: usize = arguments[0].parse().expect("a place");
    let rounds: u32 = arguments[1].parse().expect("rounds");
    let folder = std::path::Path::new(&arguments[2]);
    let ports: Vec<u16> = arguments[3..].iter().map(|p| p.parse().expect("a port")).collect();
    let key = PrivatePkcs8KeyDer::from(std::fs::read(folder.join("key")).expect("the key"));
    let certificate =
        CertificateDer::from(std::fs::read(folder.join("certificate")).expect("the certificate"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let seconds = runtime.block_on(exchange(place, rounds, &ports, key.into(), certificate));
    println!("{seconds}");
}

async fn exchange(
    place: usize,
    rounds: u32,
    ports: &[u16],
    key: PrivateKeyDer<'static>,
    certificate: CertificateDer<'static>,
) -> f64 {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).expect("a root");
    let roots = Arc::new(roots);
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::clone(&roots),
        Arc::clone(&provider),
    )
    .build()
    .expect("a verifier");
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate.clone()], key.clone_key())
        .expect("a server");
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate], key)
        .expect("a client");
    let server =
        quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).expect("a server")));
    let client = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).expect("a client")));
    let here = |k: usize| SocketAddr::from(([127, 0, 0, 1], ports[k]));
    let endpoint = quinn::Endpoint::server(server, here(place)).expect("an endpoint");
    let next = async {
        loop {
            let call = endpoint.connect_with(client.clone(), here((place + 1) % SITES), "ring.internal");
            match call.expect("a call").await {
                Ok(connection) => return connection,
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
    };
    let before = async { endpoint.accept().await.expect("a caller").await.expect("a connection") };
    let (next, before) = tokio::join!(next, before);
    let (mut to_next, mut to_before) =
        (next.open_uni().await.expect("a stream"), before.open_uni().await.expect("a stream"));
    let bytes = vec![3u8; 8 * FEATURES + 160];
    // A stream exists for the other side once something was written to it.
    to_next.write_all(&bytes).await.expect("sent");
    to_before.write_all(&bytes).await.expect("sent");
    let (mut from_next, mut from_before) =
        (next.accept_uni().await.expect("a stream"), before.accept_uni().await.expect("a stream"));
    let (mut one, mut other) = (bytes.clone(), bytes.clone());
    let mut start = Instant::now();
    for round in 0..rounds {
        let (a, b) = tokio::join!(from_next.read_exact(&mut one), from_before.read_exact(&mut other));
        a.and(b).expect("received");
        if round == 0 {
            start = Instant::now();
        }
        if round + 1 < rounds {
            to_next.write_all(&bytes).await.expect("sent");
            to_before.write_all(&bytes).await.expect("sent");
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    // The last bytes must have arrived before anybody hangs up.
    let _ = (to_next.finish(), to_before.finish());
    let _ = tokio::join!(to_next.stopped(), to_before.stopped());
    endpoint.close(0u32.into(), b"done");
    endpoint.wait_idle().await;
    seconds
}
