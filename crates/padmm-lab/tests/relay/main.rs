//! Sites that can reach nothing but a relay over HTTPS, behind a proxy that asks for a password.
//!
//! The relay's name exists for the proxy alone, cards have no addresses, and sites have no UDP socket: what does not go through the proxy
//! goes nowhere.

mod proxy;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Network, RUN, Running, Shape, until};
use iroh_relay::client::{Client, ClientBuilder};
use iroh_relay::protos::relay::{ClientToRelayMsg, Datagrams, RelayToClientMsg};
use n0_future::{SinkExt, StreamExt};
use padmm_node::identity::Home;
use padmm_node::ledger::{Entry, SiteLedger};
use padmm_relay::{GuestList, Relay};
use proxy::{Authority, Certified, Inspection, PASSWORD, Proxy, RELAY};
use rustix::process::Signal;
use serde_json::Value;

const SHAPE: Shape = Shape::TRIANGLE;
const PAIR: Shape = Shape { sites: 2, ..SHAPE };

/// A network whose sites can only dial out, its relay, and the relay's certificate.
struct Outbound {
    network: Network,
    /// The relay's cards: those of all sites.
    cards: PathBuf,
    authority: Authority,
    certified: Certified,
}

impl Outbound {
    fn new(shape: Shape) -> Self {
        let network = Network::make(shape);
        let folder = network.folder().to_owned();
        let authority = Authority::new(&folder, "consortium authority");
        let certified = authority.certify(&folder, "relay");
        let cards = folder.join("cards");
        std::fs::create_dir(&cards).unwrap();
        let mut moved = vec![];
        for site in &network.sites {
            let mut home = Home::open(&site.home).unwrap();
            home.move_to(vec![], Some(format!("https://{RELAY}"))).unwrap();
            std::fs::copy(home.card_path(), cards.join(format!("{}.toml", site.name))).unwrap();
            moved.push(home);
        }
        for home in &moved {
            for other in moved.iter().filter(|other| other.name() != home.name()) {
                home.cards().import(other.card(), false).unwrap();
            }
        }
        Self { network, cards, authority, certified }
    }

    /// Serves exactly the sites of the plan.
    fn relay(&self) -> Relay {
        let plan = self.network.run_file(0, "plan.toml");
        self.relay_for(GuestList { cards: vec![self.cards.clone()], plans: vec![plan] })
    }

    fn relay_for(&self, guests: GuestList) -> Relay {
        let tls = (self.certified.cert.clone(), self.certified.key.clone());
        Relay::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), guests, Some(tls)).unwrap()
    }

    /// What every site is told about its network.
    fn tell_all(&self, proxy: &str, authority: Option<&Path>) {
        (0..self.network.sites.len()).for_each(|site| self.tell(site, proxy, PASSWORD, authority));
    }

    fn tell(&self, site: usize, proxy: &str, password: &str, authority: Option<&Path>) {
        let home = &self.network.sites[site].home;
        let file = home.join("proxy.password");
        std::fs::write(&file, format!("{password}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let config = std::fs::read_to_string(home.join("site.toml")).unwrap();
        let before = config.split("\n[network]\n").next().unwrap();
        let authority = authority.map_or(String::new(), |path| format!("authority = {path:?}\n"));
        let table = format!(
            "\n[network]\nrelay-only = true\nproxy = {proxy:?}\nproxy-password-file = \"proxy.password\"\n{authority}"
        );
        std::fs::write(home.join("site.toml"), format!("{before}{table}")).unwrap();
    }
}

/// The relay is restarted and the proxy drops what is idle, before the run and in the middle of it: the outcome is that of a run without
/// any of this, to the bit.
#[test]
fn a_run_goes_through_a_proxy_and_a_relay_that_fail_on_the_way() {
    let outbound = Outbound::new(SHAPE);
    let relay = outbound.relay();
    let proxy = Proxy::start(relay.address(), None);
    outbound.tell_all(&proxy.url(), Some(&outbound.authority.pem));
    let mut running = Running::new(&outbound.network);
    // Two sites are there and wait. The proxy drops their connections, which are idle.
    running.start(0);
    running.start(1);
    let relayed = format!("through the relay https://{RELAY}");
    for site in [0, 1] {
        let status = show_status(&outbound, site);
        assert!(status.contains(&relayed), "{status}");
        let port = outbound.network.sites[site].port;
        assert!(UdpSocket::bind(("127.0.0.1", port)).is_ok(), "a relay-only site has a UDP socket");
    }
    let before = proxy.counts().0;
    proxy.drop_all();
    let again = until("the sites come back", || (proxy.counts().0 > before).then_some(()));
    assert!(again.is_some(), "nobody came back through the proxy: {:?}", proxy.counts());
    // The third is killed in its third round, so that the others wait in the middle of the run. Then the relay is another one.
    running.stays_away(2);
    running.start_with(2, &["--test-kill", "send-after:3"]);
    running.wait(2);
    assert!(running.said(2).contains("killed at the fault point"), "{}", running.said(2));
    relay.stop();
    let relay = outbound.relay();
    proxy.lead_to(relay.address());
    proxy.drop_all();
    running.start(2);
    running.finish();
    assert_eq!(outbound.network.outcome(&[]), Network::undisturbed(SHAPE));
    assert_eq!(proxy.counts().1, 0, "nothing else was tried through the proxy");
    for site in 0..SHAPE.sites {
        let log = outbound.network.log(site);
        assert!(!log.contains(PASSWORD), "{log}");
    }
    relay.stop();
}

fn show_status(outbound: &Outbound, site: usize) -> String {
    let seen = until("a neighbour is connected", || {
        let output = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"))
            .args(["site", "status", "--run", RUN, "--home"])
            .arg(&outbound.network.sites[site].home)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.contains("through the relay").then_some(text)
    });
    seen.unwrap_or_else(|| format!("never connected: {}", outbound.network.log(site)))
}

/// Whoever looks into TLS, and so the relay too, finds no release and nothing of the plan. What is not encrypted from site to site is found
/// by the same search, in the same place.
#[test]
fn a_firewall_that_looks_into_tls_finds_nothing_of_the_run() {
    let outbound = Outbound::new(PAIR);
    let folder = outbound.network.folder();
    let firewall = Authority::new(folder, "hospital firewall");
    let shown = firewall.certify(folder, "firewall");
    let relay = outbound.relay();
    let proxy = Proxy::start(relay.address(), Some(Inspection::new(&shown, &outbound.authority)));
    outbound.tell_all(&proxy.url(), Some(&firewall.pem));
    let mut running = Running::new(&outbound.network);
    running.start_all();
    running.finish();
    assert_eq!(outbound.network.outcome(&[]), Network::undisturbed(PAIR));
    let secrets = secrets(&outbound.network);
    let [to_relay, to_sites] = proxy.read();
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    // It did look: the request and the answer that open a connection to a relay are there, and then the run's packets.
    assert!(has(&to_relay, b"GET /relay HTTP/1.1") && has(&to_sites, b"HTTP/1.1 101 "));
    let payloads: usize = secrets.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(to_sites.len() > payloads, "{} bytes were read, of {payloads} at least", to_sites.len());
    for (what, bytes) in &secrets {
        let found = bytes.chunks_exact(16).any(|piece| has(&to_sites, piece) || has(&to_relay, piece));
        assert!(!found, "{what} can be read");
    }
    // The control: the same bytes, sent by the same keys as they are.
    let bare = talk_openly(&outbound, &proxy, &firewall, &secrets[0].1);
    assert!(bare, "the relay forwards what it is given");
    let [_, to_sites] = proxy.read();
    let found = secrets[0].1.chunks_exact(16).filter(|piece| has(&to_sites, piece)).count();
    assert!(found > 0, "a search that finds nothing of what was sent openly");
    relay.stop();
}

/// What must not be read: the bytes of every release, and the text of the plan.
fn secrets(network: &Network) -> Vec<(String, Vec<u8>)> {
    let mut secrets = vec![];
    for site in &network.sites {
        for stored in SiteLedger::read(&site.ledger).unwrap().entries() {
            if let Entry::Released(released) = &stored.entry {
                let what = format!("the release of round {} of {}", released.round, site.name);
                secrets.push((what, stored.payload.clone().unwrap()));
            }
        }
    }
    assert_eq!(secrets.len(), network.sites.len() * SHAPE.rounds as usize);
    secrets.push(("the plan".to_owned(), network.contract.to_toml().into_bytes()));
    secrets
}

/// Sends bytes from the first site's key to the second's, without encrypting them. Whether they arrived.
fn talk_openly(outbound: &Outbound, proxy: &Proxy, firewall: &Authority, bytes: &[u8]) -> bool {
    let homes = [0, 1].map(|site| Home::open(&outbound.network.sites[site].home).unwrap());
    let keys = homes.each_ref().map(|home| iroh::SecretKey::from_bytes(&home.transport().to_bytes()));
    let proxy = proxy.url().replace('@', ":open%20sesame@");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut clients = vec![];
        for key in &keys {
            clients.push(client(key, &proxy, &firewall.pem).await);
        }
        let datagrams = Datagrams::from(&bytes[..bytes.len().min(1200)]);
        let message = ClientToRelayMsg::Datagrams { dst_endpoint_id: keys[1].public(), datagrams };
        clients[0].send(message).await.unwrap();
        while let Some(Ok(message)) = clients[1].next().await {
            if let RelayToClientMsg::Datagrams { datagrams, .. } = message {
                return bytes.starts_with(&datagrams.contents);
            }
        }
        false
    })
}

async fn client(key: &iroh::SecretKey, proxy: &str, authority: &Path) -> Client {
    use rustls::pki_types::pem::PemObject;
    let root = rustls::pki_types::CertificateDer::from_pem_file(authority).unwrap();
    let trusted = iroh::tls::CaTlsConfig::custom_roots([root]);
    let tls = trusted.client_config(iroh_relay::tls::default_provider()).unwrap();
    let url: iroh::RelayUrl = format!("https://{RELAY}").parse().unwrap();
    let resolver = iroh::dns::DnsResolver::builder().build();
    let builder = ClientBuilder::new(url, key.clone(), resolver).tls_client_config(tls);
    builder.proxy_url(proxy.parse().unwrap()).connect().await.unwrap()
}

/// The checks of `doctor` by name: whether each is fine, and what is said with the advice.
fn doctor(outbound: &Outbound, site: usize) -> Vec<(String, bool, String)> {
    let output = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"))
        .args(["doctor", "--json", "--home"])
        .arg(&outbound.network.sites[site].home)
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let checks = answer["checks"].as_array().unwrap().iter();
    checks
        .map(|c| {
            let ok = c["ok"].as_bool().unwrap();
            (text(c, "name"), ok, format!("{} → {}", text(c, "message"), text(c, "advice")))
        })
        .collect()
}

/// A plan and cards of which none is named in it make a relay for nobody, which is not started.
#[test]
fn a_relay_for_nobody_is_refused() {
    let (outbound, other) = (Outbound::new(PAIR), Network::make(PAIR));
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let start = |cards: &Path, plans: Vec<PathBuf>| {
        let guests = GuestList { cards: vec![cards.to_owned()], plans };
        Relay::start(listen, guests, None).err().map(|error| format!("{error:#}")).unwrap_or_default()
    };
    let error = start(&outbound.cards, vec![other.run_file(0, "plan.toml")]);
    assert!(error.contains("no card") && error.contains("of a site in the plan"), "{error}");
    let error = start(other.folder(), vec![]);
    assert!(error.contains("no card") && error.contains("--cards"), "{error}");
    let error = start(&outbound.cards.join("nowhere"), vec![]);
    assert!(error.contains("nowhere"), "{error}");
    assert_eq!(start(&outbound.cards, vec![outbound.network.run_file(0, "plan.toml")]), "");
}

/// Each thing that can be in the way is named, one after the other, until there is none.
#[test]
fn doctor_says_what_is_in_the_way_to_a_relay() {
    let outbound = Outbound::new(PAIR);
    let strangers = outbound.network.folder().join("strangers");
    std::fs::create_dir(&strangers).unwrap();
    std::fs::copy(outbound.cards.join("east.toml"), strangers.join("east.toml")).unwrap();
    let relay = outbound.relay_for(GuestList { cards: vec![strangers.clone()], plans: vec![] });
    let proxy = Proxy::start(relay.address(), None);
    let authority = Some(outbound.authority.pem.as_path());
    let find = |what: &str, ok: bool, words: &[&str]| {
        let checks = doctor(&outbound, 0);
        let found = checks.iter().find(|c| c.0 == what).unwrap_or_else(|| panic!("{what}: {checks:#?}"));
        assert_eq!(found.1, ok, "{checks:#?}");
        words.iter().for_each(|word| assert!(found.2.contains(word), "{word}: {checks:#?}"));
        assert!(!format!("{checks:?}").contains(PASSWORD), "{checks:#?}");
        checks
    };
    // Nothing listens on port 1.
    outbound.tell(0, "http://padmm@127.0.0.1:1", PASSWORD, authority);
    let checks = find("proxy", false, &["http://padmm@127.0.0.1:1", "not reached", "`proxy`"]);
    assert!(checks.iter().any(|c| c.0 == "neighbour east" && c.2.contains("relay first")), "{checks:#?}");
    assert!(checks.iter().any(|c| c.0 == "port" && c.1 && c.2.contains("none is needed")), "{checks:#?}");
    outbound.tell(0, &proxy.url(), "close sesame", authority);
    find("proxy", false, &["a user and a password", "proxy-password-file"]);
    let file = outbound.network.sites[0].home.join("site.toml");
    outbound.tell(0, &proxy.url(), PASSWORD, authority);
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{config}relay = \"https://other.test\"\n")).unwrap();
    find("proxy", false, &["does not connect", "403", "CONNECT"]);
    find("card", false, &["https://other.test", RELAY, "site move"]);
    outbound.tell(0, &proxy.url(), PASSWORD, None);
    find("relay certificate", false, &["consortium authority", "authority = "]);
    outbound.tell(0, &proxy.url(), PASSWORD, authority);
    find("relay", false, &["refuses this site's key", "no card with this key", "present card"]);
    // A site that runs all the same says it too. The operator adds its card, and neither has to be started again.
    let mut running = Running::new(&outbound.network);
    running.start(0);
    running.wait_for(0, "refuses this site's key");
    std::fs::copy(outbound.cards.join("north.toml"), strangers.join("north.toml")).unwrap();
    running.wait_for(0, &format!("the relay https://{RELAY} is reached again"));
    running.signal(0, Signal::TERM);
    assert_eq!(running.wait(0).code(), Some(3), "{}", running.said(0));
    // With a neighbour that runs, all is well.
    outbound.tell(1, &proxy.url(), PASSWORD, authority);
    running.start(1);
    running.wait_for(1, "waiting for north");
    let checks = find("neighbour east", true, &["through the relay", RELAY, "same plan"]);
    assert!(checks.iter().all(|c| c.1), "{checks:#?}");
    for name in ["proxy", "relay certificate", "relay"] {
        assert!(checks.iter().any(|c| c.0 == name), "{checks:#?}");
    }
    relay.stop();
}
