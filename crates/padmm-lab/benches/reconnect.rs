//! How long two sites that were cut off take to go on once the line is mended, while half-open handshakes arrive at both: first packets
//! of calls whose senders never answer, from many addresses.
//!
//! `cargo bench -p padmm-lab --bench reconnect -- --flood 200 --cuts 10`
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use iroh::endpoint::presets;
use iroh::{Endpoint, EndpointAddr, RelayMode, TransportAddr};
use padmm_core::plan::PlanDraft;
use padmm_lab::homes::{RUN, signed_homes};
use padmm_lab::links::{Conditions, Links};
use padmm_node::identity::{Home, SecretKey};
use tokio::net::UdpSocket;

/// Addresses that the packets come from.
const ADDRESSES: usize = 40;

/// The value of a flag, or what it is without it.
fn flag<T: FromStr>(name: &str, otherwise: T) -> T {
    let arguments: Vec<String> = std::env::args().collect();
    let place = arguments.iter().position(|a| a == name);
    let value = place.and_then(|k| arguments.get(k + 1)).map(|text| text.parse().ok());
    value.map_or(otherwise, |value| value.unwrap_or_else(|| panic!("{name} needs a value")))
}

/// So many first packets a second at `victim`, until the program ends.
async fn flood(victim: SocketAddr, a_second: f64) {
    let key = SecretKey::generate().expect("a key");
    let here: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let dialler = Endpoint::builder(presets::Minimal)
        .secret_key(iroh::SecretKey::from_bytes(&key.to_bytes()))
        .relay_mode(RelayMode::Disabled)
        .clear_address_lookup()
        .clear_ip_transports()
        .bind_addr(here)
        .expect("an address of this machine");
    let dialler = dialler.bind().await.expect("an endpoint");
    let trap = UdpSocket::bind(here).await.expect("a socket");
    let at = trap.local_addr().expect("a bound socket has an address");
    let mut sockets = vec![];
    for _ in 0..ADDRESSES {
        sockets.push(UdpSocket::bind(here).await.expect("a socket"));
    }
    tokio::spawn(async move {
        loop {
            // Each call is to somebody else, so that the packets are those of different connections.
            let whom = SecretKey::generate().expect("a key").public();
            let whom = iroh::PublicKey::from_bytes(&whom.to_bytes()).expect("a public key");
            let (dialler, to) = (dialler.clone(), EndpointAddr::from_parts(whom, [TransportAddr::Ip(at)]));
            tokio::spawn(async move {
                let call = dialler.connect(to, b"padmm/3");
                let _ = tokio::time::timeout(Duration::from_secs(5), call).await;
            });
            tokio::time::sleep(Duration::from_secs_f64(1.0 / a_second)).await;
        }
    });
    let mut packet = [0; 2048];
    for k in 0.. {
        let (n, _) = trap.recv_from(&mut packet).await.expect("a socket that is open");
        let _ = sockets[k % sockets.len()].send_to(&packet[..n], victim).await;
    }
}

fn main() {
    let (a_second, n_cuts): (f64, usize) = (flag("--flood", 200.0), flag("--cuts", 10));
    let folder = tempfile::tempdir_in(".").expect("a folder here");
    let delay = Duration::from_millis(flag("--delay", 20));
    let links = Links::new(Conditions { delay, ..Conditions::default() });
    let settings =
        PlanDraft { algorithm: padmm_core::algorithm::P_ADMM, rounds: 5_000, ..PlanDraft::default() };
    let way = |from, to| Some(links.address(from, to));
    let homes = signed_homes(folder.path(), 2, 8, "path", settings, way);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    if a_second > 0.0 {
        for home in &homes {
            let listen = Home::open(home).expect("a home").config().listen();
            runtime.spawn(flood(listen, a_second));
        }
    }
    let mut children: Vec<_> = homes
        .iter()
        .map(|home| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"));
            command.args(["site", "run", "--run", RUN, "--test-noise-seed", "1", "--home"]).arg(home);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a process")
        })
        .collect();
    let (tell, rounds) = mpsc::channel();
    let log = BufReader::new(children[0].stderr.take().expect("a log"));
    std::thread::spawn(move || {
        let lines = log.lines().map_while(Result::ok);
        let rounds = lines.filter(|line| line.contains(": round "));
        // Whoever does not listen any more has heard enough.
        rounds.map(|_| tell.send(Instant::now())).take_while(Result::is_ok).for_each(drop);
    });
    // The other log is not read, but must not fill its pipe.
    let mut other = children[1].stderr.take().expect("a log");
    std::thread::spawn(move || std::io::copy(&mut other, &mut std::io::sink()));
    let round = || rounds.recv_timeout(Duration::from_secs(60)).expect("the run goes on");
    let mut times = vec![];
    for k in 0..n_cuts {
        for _ in 0..20 {
            round();
        }
        links.cut((0, 1), true);
        // Long and short ones: what is noticed of a cut, and when the next call is due, differs.
        std::thread::sleep(Duration::from_millis(500 + 1_700 * (k as u64 % 10)));
        while rounds.try_recv().is_ok() {}
        links.cut((0, 1), false);
        let mended = Instant::now();
        times.push((round() - mended).as_secs_f64());
    }
    for mut child in children {
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
    times.sort_by(f64::total_cmp);
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{a_second:.0} half-open handshakes a second at each of two sites, {delay:?} one-way: from the mended line to the next round \
         median {median:.2} s, longest of {n_cuts} {longest:.2} s"
    );
}
