//! A hospital's proxy: HTTP CONNECT for one user, to one name that nobody else can find. It can drop what goes through it, and it can look
//! into TLS as some firewalls do, with an authority of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The relay's name: reserved, so no name server has it. Only the proxy knows where it leads.
pub(crate) const RELAY: &str = "relay.test";
pub(crate) const USER: &str = "padmm";
pub(crate) const PASSWORD: &str = "open sesame";
/// The two in base64, as the proxy wants to see them.
const CREDENTIALS: &str = "Basic cGFkbW06b3BlbiBzZXNhbWU=";

/// An authority with a file that says who it is.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) pem: PathBuf,
}

/// A certificate and its key, in files.
pub(crate) struct Certified {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let pem = folder.join(format!("{name}.pem"));
        std::fs::write(&pem, issuer.pem()).unwrap();
        Self { issuer, pem }
    }

    /// A certificate for the relay's name.
    pub(crate) fn certify(&self, folder: &Path, file: &str) -> Certified {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![RELAY.to_owned()]).unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        let certified = Certified {
            cert: folder.join(format!("{file}.cert.pem")),
            key: folder.join(format!("{file}.key.pem")),
        };
        std::fs::write(&certified.cert, cert.pem()).unwrap();
        std::fs::write(&certified.key, key.serialize_pem()).unwrap();
        certified
    }
}

/// Both halves of looking into TLS: towards the sites with the firewall's certificate, towards the relay as any client.
pub(crate) struct Inspection {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl Inspection {
    /// `shown` is what sites get to see; the real relay is trusted by `authority`.
    pub(crate) fn new(shown: &Certified, authority: &Authority) -> Self {
        let provider = iroh_relay::tls::default_provider();
        let chain = vec![CertificateDer::from_pem_file(&shown.cert).unwrap()];
        let key = PrivateKeyDer::from_pem_file(&shown.key).unwrap();
        let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&authority.pem).unwrap()).unwrap();
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { acceptor: Arc::new(server).into(), connector: Arc::new(client).into() }
    }
}

struct State {
    relay: Mutex<SocketAddr>,
    inspection: Option<Inspection>,
    /// All that a looking firewall has read, towards the relay and towards the sites.
    read: [Mutex<Vec<u8>>; 2],
    tunnels: AtomicUsize,
    refused: AtomicUsize,
    cut: watch::Sender<()>,
}

/// The proxy; it ends when it is dropped.
pub(crate) struct Proxy {
    state: Arc<State>,
    port: u16,
    _runtime: Runtime,
}

impl Proxy {
    pub(crate) fn start(relay: SocketAddr, inspection: Option<Inspection>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let state = Arc::new(State {
            relay: Mutex::new(relay),
            inspection,
            read: [Mutex::default(), Mutex::default()],
            tunnels: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            cut: watch::Sender::new(()),
        });
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::clone(&state);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { state, port, _runtime: runtime }
    }

    /// As `site.toml` names it.
    pub(crate) fn url(&self) -> String {
        format!("http://{USER}@127.0.0.1:{}", self.port)
    }

    /// Where the relay's name leads from now on.
    pub(crate) fn lead_to(&self, relay: SocketAddr) {
        *self.state.relay.lock().unwrap() = relay;
    }

    /// Drops every connection that goes through, as proxies do with idle ones.
    pub(crate) fn drop_all(&self) {
        self.state.cut.send_replace(());
    }

    /// Connections that were let through, and that were refused.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.state.tunnels.load(Ordering::Relaxed), self.state.refused.load(Ordering::Relaxed))
    }

    /// What it has read of the inside of TLS, towards the relay and towards the sites.
    pub(crate) fn read(&self) -> [Vec<u8>; 2] {
        [0, 1].map(|way| self.state.read[way].lock().unwrap().clone())
    }
}

/// The head of a request, up to its empty line.
async fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok().filter(|_| head.len() < 8192)?);
    }
    String::from_utf8(head).ok()
}

async fn serve(mut stream: TcpStream, state: Arc<State>) -> Option<()> {
    let head = head(&mut stream).await?;
    let is_allowed = head.lines().any(|line| {
        line.split_once(": ").is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("proxy-authorization") && value == CREDENTIALS
        })
    });
    let refusal = match (is_allowed, head.starts_with(&format!("CONNECT {RELAY}:443 "))) {
        (false, _) => Some("407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"proxy\""),
        (true, false) => Some("403 Forbidden"),
        (true, true) => None,
    };
    if let Some(refusal) = refusal {
        state.refused.fetch_add(1, Ordering::Relaxed);
        let answer = format!("HTTP/1.1 {refusal}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return stream.write_all(answer.as_bytes()).await.ok();
    }
    let mut cut = state.cut.subscribe();
    let relay = *state.relay.lock().unwrap();
    let Ok(relay) = TcpStream::connect(relay).await else {
        return stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").await.ok();
    };
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.ok()?;
    state.tunnels.fetch_add(1, Ordering::Relaxed);
    let forward = async {
        match &state.inspection {
            None => both_ways(stream, relay, None).await,
            Some(inspection) => {
                let inside = inspection.acceptor.accept(stream).await.ok()?;
                let name = ServerName::try_from(RELAY).unwrap();
                let outside = inspection.connector.connect(name, relay).await.ok()?;
                both_ways(inside, outside, Some(&state.read)).await
            }
        }
    };
    tokio::select! {
        done = forward => done,
        _ = cut.changed() => None,
    }
}

/// Copies until one end is closed.
async fn both_ways(
    site: impl AsyncRead + AsyncWrite,
    relay: impl AsyncRead + AsyncWrite,
    read: Option<&[Mutex<Vec<u8>>; 2]>,
) -> Option<()> {
    let ((mut from_site, mut to_site), (mut from_relay, mut to_relay)) = (split(site), split(relay));
    tokio::select! {
        end = one_way(&mut from_site, &mut to_relay, read.map(|read| &read[0])) => end,
        end = one_way(&mut from_relay, &mut to_site, read.map(|read| &read[1])) => end,
    }
}

async fn one_way(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    read: Option<&Mutex<Vec<u8>>>,
) -> Option<()> {
    let mut buffer = vec![0; 16384];
    loop {
        let n = from.read(&mut buffer).await.ok().filter(|&n| n > 0)?;
        if let Some(read) = read {
            read.lock().unwrap().extend_from_slice(&buffer[..n]);
        }
        to.write_all(&buffer[..n]).await.ok()?;
        to.flush().await.ok()?;
    }
}
