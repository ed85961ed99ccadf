//! What the engine tells strangers, and where a neighbour can make it send packets: with the socket of a site, and with one of the
//! engine's own, which shows that these tests would see it.

use std::net::{Ipv4Addr, UdpSocket};

use iroh::RelayMode;
use iroh::endpoint::presets;

use super::*;
use crate::frame::Origin;
use crate::identity::SecretKey;

fn setup(listen: SocketAddr) -> QuicSetup {
    let origin = Origin { plan: [0; 32], sender: SiteIndex(0) };
    let key = SecretKey::generate().unwrap();
    let secret = key.to_bytes();
    let outbox = Arc::new(Outbox::new(origin, key, String::new(), std::time::SystemTime::UNIX_EPOCH));
    QuicSetup {
        me: SiteIndex(0),
        secret,
        listen,
        way_out: WayOut::default(),
        peers: vec![],
        largest_frame: 1000,
        outbox,
        mailbox: Arc::new(Mailbox::new(1)),
        on_answer: Arc::new(|_, _, _| Ok(())),
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(Duration::from_secs(60), test).await.expect("it ends") });
}

/// An endpoint as the engine makes it by itself.
fn of_the_engine() -> iroh::endpoint::Builder {
    Endpoint::builder(presets::Minimal)
        .alpns(vec![PROTOCOL.to_vec()])
        .relay_mode(RelayMode::Disabled)
        .clear_address_lookup()
}

/// The engine sends to every peer the addresses that it takes for its own, which are those of `Endpoint::addr`.
#[test]
fn the_engine_knows_no_address_of_the_inside_network() {
    run(async {
        let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let site = bind(&setup(everywhere)).await.unwrap();
        let other = of_the_engine().bind().await.unwrap();
        // Both have had the time to look around when the second one has.
        while other.addr().addrs.is_empty() {
            tokio::task::yield_now().await;
            sleep(Duration::from_millis(10)).await;
        }
        assert!(site.addr().addrs.is_empty(), "{:?}", site.addr());
    });
}

/// With a relay it is the same: whoever meets the site there learns the relay's URL, which is on its card, and nothing else.
#[test]
fn through_a_relay_a_peer_learns_no_address_of_the_inside_network() {
    use iroh::{EndpointAddr, RelayUrl, TransportAddr};
    run(async {
        let mut config = iroh_relay::server::ServerConfig::default();
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        config.relay = Some(iroh_relay::server::RelayConfig::new(loopback));
        let relay = iroh_relay::server::Server::spawn(config).await.unwrap();
        let url = format!("http://{}", relay.http_addr().unwrap());
        let relay_url: RelayUrl = url.parse().unwrap();
        let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let site = QuicSetup { way_out: WayOut::by_relay(Some(&url)), ..setup(everywhere) };
        let site = bind(&site).await.unwrap();
        let with_relay = || of_the_engine().relay_mode(RelayMode::custom([relay_url.clone()]));
        let (other, peer) = (with_relay().bind().await.unwrap(), with_relay().bind().await.unwrap());
        let mut connections = vec![];
        for there in [&site, &other] {
            there.online().await;
            let at = EndpointAddr::from_parts(there.id(), [TransportAddr::Relay(relay_url.clone())]);
            let accept = async { there.accept().await.unwrap().await.unwrap() };
            let (dialled, accepted) = tokio::join!(peer.connect(at, PROTOCOL), accept);
            connections.push((dialled.unwrap(), accepted));
        }
        let is_relay = |at: &TransportAddr| *at == TransportAddr::Relay(relay_url.clone());
        let learned = async |of: &Endpoint| -> Vec<TransportAddr> {
            let found = peer.remote_info(of.id()).await.expect("they are connected");
            found.into_addrs().map(|address| address.into_addr()).collect()
        };
        // The site was met first. By the time that the other has told its addresses, it would have.
        while learned(&other).await.iter().all(is_relay) {
            sleep(Duration::from_millis(10)).await;
        }
        let of_site = learned(&site).await;
        assert!(!of_site.is_empty() && of_site.iter().all(is_relay), "{of_site:?}");
        let own = site.addr().addrs;
        assert!(!own.is_empty() && own.iter().all(is_relay), "{own:?}");
    });
}

/// A site is called at its own relay by one that has another, or none: only the site's own relay is its home.
#[test]
fn a_site_is_called_at_its_relay_by_one_that_has_another() {
    use iroh::{EndpointAddr, TransportAddr};
    run(async {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut relays = vec![];
        for _ in 0..2 {
            let mut config = iroh_relay::server::ServerConfig::default();
            config.relay = Some(iroh_relay::server::RelayConfig::new(loopback));
            let relay = iroh_relay::server::Server::spawn(config).await.unwrap();
            relays.push((format!("http://{}", relay.http_addr().unwrap()), relay));
        }
        let (here, there) = (relays[0].0.as_str(), relays[1].0.as_str());
        let site = QuicSetup { way_out: WayOut::by_relay(Some(there)), ..setup(loopback) };
        let site = bind(&site).await.unwrap();
        site.online().await;
        for own in [Some(here), None] {
            let neighbour = PeerAddress {
                site: SiteIndex(1),
                name: "neighbour".to_owned(),
                key: PublicKey::from_bytes(site.id().as_bytes()).unwrap(),
                addresses: vec![],
                relay: Some(there.to_owned()),
            };
            let mut way_out = WayOut::by_relay(own);
            way_out.relay_only = true;
            let caller = QuicSetup { way_out, peers: vec![neighbour], ..setup(loopback) };
            let caller = bind(&caller).await.unwrap();
            if let Some(own) = own {
                caller.online().await;
                let home: Vec<_> = caller.addr().addrs.into_iter().collect();
                assert_eq!(home, [TransportAddr::Relay(own.parse().unwrap())]);
            }
            let at = EndpointAddr::from_parts(site.id(), [TransportAddr::Relay(there.parse().unwrap())]);
            let accept = async { site.accept().await.unwrap().await.unwrap() };
            let (dialled, _accepted) = tokio::join!(caller.connect(at, PROTOCOL), accept);
            let way = Route::of(&dialled.unwrap()).unwrap();
            assert!(!way.is_direct && way.address.starts_with(there), "{way:?}");
        }
    });
}

/// A peer names addresses that are to be tried, and the engine sends packets there. `external_addr` makes it name the trap.
#[test]
fn a_peer_cannot_make_a_site_send_packets_to_an_address_of_its_choice() {
    run(async {
        let trap = UdpSocket::bind("127.0.0.1:0").unwrap();
        trap.set_nonblocking(true).unwrap();
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listen = free.local_addr().unwrap();
        drop(free);
        let site = bind(&setup(listen)).await.unwrap();
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let other = of_the_engine().clear_ip_transports().bind_addr(loopback).unwrap().bind().await.unwrap();
        let other_at = other.bound_sockets()[0];
        let attacker = of_the_engine()
            .clear_ip_transports()
            .bind_addr(loopback)
            .unwrap()
            .external_addr(trap.local_addr().unwrap())
            .bind()
            .await
            .unwrap();
        let mut connections = vec![];
        for (victim, at) in [(&site, listen), (&other, other_at)] {
            let address = iroh::EndpointAddr::from_parts(victim.id(), [iroh::TransportAddr::Ip(at)]);
            let accept = async { victim.accept().await.unwrap().await.unwrap() };
            let (dialled, accepted) = tokio::join!(attacker.connect(address, PROTOCOL), accept);
            connections.push((dialled.unwrap(), accepted));
        }
        // The site was asked first. By the time that the other has sent something to the trap and has been asked again, so has it.
        let (mut from_other, mut packet) = (0, [0; 2048]);
        while from_other < 2 {
            match trap.recv_from(&mut packet) {
                Ok((_, from)) => {
                    assert_ne!(from, listen, "the site sent a packet where it was told to");
                    from_other += usize::from(from == other_at);
                }
                Err(_) => sleep(Duration::from_millis(5)).await,
            }
        }
    });
}
