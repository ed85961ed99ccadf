//! The command `padmm-relay`: the network engine's own relay, for the sites of given cards and plans only.
//!
//! Sites that can only dial out meet here. What it forwards is encrypted from site to site; it sees keys, addresses, times and lengths,
//! and keeps nothing of what it forwards. [`Relay`] is the same for tests.

#![warn(clippy::unwrap_used)]
// What is shown goes through the one place that makes it printable.
#![warn(clippy::print_stderr)]

mod guests;
mod log;

pub use guests::GuestList;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use iroh_relay::server::{
    CertConfig, RelayConfig, Server, ServerConfig, TlsConfig as ServerTls, reloading_resolver,
};
use iroh_relay::tls::default_provider;
use padmm_commands::terminal::{exit_code, refuse_flags};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use self::guests::Guests;
use self::log::log;

/// A renewed certificate is in use after so long at the latest.
const CERTIFICATE_READ_AGAIN: Duration = Duration::from_secs(3600);

/// Forwards encrypted packets between sites that can only dial out. It lets in the sites of the given cards, and nobody else.
#[derive(Parser)]
#[command(name = "padmm-relay", version)]
struct Cli {
    /// A folder with the cards of the sites; may be given several times. It is read again when a site comes
    #[arg(long, value_name = "DIR", required = true)]
    cards: Vec<PathBuf>,
    /// Of these cards, let in only sites that this plan names; may be given several times
    #[arg(long = "plan", value_name = "PLAN.toml")]
    plans: Vec<PathBuf>,
    /// The address and TCP port to listen on
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:443")]
    listen: SocketAddr,
    /// The certificate for the name in the relay's URL, as PEM, with intermediate ones behind it; read again every hour
    #[arg(long, value_name = "FILE.pem", required_unless_present = "plain_http", requires = "key")]
    cert: Option<PathBuf>,
    /// The private key of the certificate, as PEM
    #[arg(long, value_name = "FILE.pem", requires = "cert")]
    key: Option<PathBuf>,
    /// Speak HTTP without TLS: behind a proxy that has the certificate, or to try it out
    #[arg(long, conflicts_with = "cert")]
    plain_http: bool,
}

/// The command, from its arguments to its exit code.
pub fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => exit_code(run(cli).map(|()| ExitCode::SUCCESS), &[]),
        Err(error) => refuse_flags(&error),
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let guests = GuestList { cards: cli.cards, plans: cli.plans };
    let relay = Relay::start(cli.listen, guests, cli.cert.zip(cli.key))?;
    relay.runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        anyhow::Ok(())
    })?;
    relay.stop();
    Ok(())
}

/// A relay that runs.
pub struct Relay {
    runtime: Runtime,
    server: Server,
    address: SocketAddr,
}

impl Relay {
    /// Listens, with certificate and key from two files; without them it speaks HTTP.
    pub fn start(
        listen: SocketAddr,
        guests: GuestList,
        tls: Option<(PathBuf, PathBuf)>,
    ) -> anyhow::Result<Self> {
        let guests = Arc::new(Guests::new(guests)?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("the network threads cannot be started")?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let names = guests.names().join(", ");
        let server = runtime.block_on(async {
            let mut config = RelayConfig::new(listen);
            config.access = guests;
            if let Some((cert, key)) = tls {
                config.tls = Some(ServerTls::new(listen, certified(&cert, &key).await?));
                // With TLS the engine's relay answers on a second port, without TLS, whether there is a captive portal. Our sites do not
                // ask, and nobody else can.
                config.http_bind_addr = (Ipv4Addr::LOCALHOST, 0).into();
            }
            let mut all = ServerConfig::default();
            all.relay = Some(config);
            Server::spawn(all).await.map_err(|error| {
                anyhow::anyhow!(
                    "TCP {listen} cannot be listened on ({error:#}): is another program using the port, or may only root use it? Choose another with --listen"
                )
            })
        })?;
        let address = server.https_addr().or(server.http_addr()).context("the relay has no address")?;
        log(&format!(
            "listening on {scheme}://{address} for {names}; others are refused. {scheme}://{address}/healthz answers whoever asks. What is \
             forwarded is encrypted from site to site, and is not kept"
        ));
        Ok(Self { runtime, server, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Says good-bye to all, and ends.
    pub fn stop(self) {
        let metrics = Arc::clone(&self.server.metrics().server);
        // A server that has ended by itself has nothing left to stop.
        let _ = self.runtime.block_on(self.server.shutdown());
        log(&format!("stopped; {} bytes were forwarded", metrics.bytes_sent.get()));
    }
}

async fn certified(cert: &Path, key: &Path) -> anyhow::Result<CertConfig> {
    for (what, path) in [("certificate", cert), ("key", key)] {
        std::fs::read(path).with_context(|| format!("the {what} '{}' cannot be read", path.display()))?;
    }
    let provider = default_provider();
    let resolver =
        reloading_resolver(&provider, cert.to_owned(), key.to_owned(), CERTIFICATE_READ_AGAIN).await;
    let resolver = resolver.map_err(|error| {
        anyhow::anyhow!(
            "'{}' and '{}' are not a certificate and its private key as PEM text ({error:#})",
            cert.display(),
            key.display()
        )
    })?;
    let server_config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    Ok(CertConfig::Manual { server_config })
}
