//! Too much, too long, too often, and told twice.

use super::*;

#[test]
fn a_message_beyond_the_limit_closes_the_connection_unread() {
    let line = "cedar: sent a message of 2147483648 bytes where ";
    with_keys_of_cedar(&[line, "is the most; the connection is closed"], async |_, attacker| {
        attacker.stream.write_all(&(1u32 << 31).to_le_bytes()).await.unwrap();
        attacker.connection.closed().await;
    });
}

#[test]
fn a_message_that_never_ends_closes_the_connection() {
    let line = "cedar: took more than 30 s over one message; the connection is closed";
    with_keys_of_cedar(&[line], async |_, attacker| {
        attacker.stream.write_all(&200u32.to_le_bytes()).await.unwrap();
        attacker.stream.write_all(b"and then nothing").await.unwrap();
        // Beside it something is said now and then: a connection without any word is closed sooner, and without this line.
        let mut beside = attacker.connection.open_uni().await.unwrap();
        let word = [&1u32.to_le_bytes()[..], &[200]].concat();
        while timeout(Duration::from_secs(1), attacker.connection.closed()).await.is_err() {
            let _ = beside.write_all(&word).await;
        }
    });
}

/// The first packets of a handshake reach ash, and the proof that somebody receives at that address; its other answers reach nobody. And
/// packets that are none.
#[test]
fn a_handshake_that_never_ends_is_given_up() {
    run(async {
        let network = Network::new();
        let (mut ash, birch) = (network.start(ASH), network.start(BIRCH));
        ash.says("waiting for").await;
        let listen = network.homes[ASH].config().listen();
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        for k in 0..2000u32 {
            let garbage: Vec<u8> = (0..k % 1400).map(|b| (b * 31 + k) as u8).collect();
            socket.send_to(&garbage, listen).await.unwrap();
        }
        let dialler = endpoint(&SecretKey::generate().unwrap()).await;
        let trap = address_at(network.homes[ASH].card().transport(), socket.local_addr().unwrap());
        let dial = async {
            let _ = dialler.connect(trap, b"padmm/3").await;
            std::future::pending::<()>().await;
        };
        let forward = async {
            let (mut packet, mut caller) = ([0; 2048], None);
            loop {
                let (n, from) = socket.recv_from(&mut packet).await.unwrap();
                let is_retry = packet[0] & 0xf0 == 0xf0;
                if from != listen {
                    caller = Some(from);
                    socket.send_to(&packet[..n], listen).await.unwrap();
                } else if let Some(caller) = caller.filter(|_| is_retry) {
                    socket.send_to(&packet[..n], caller).await.unwrap();
                }
            }
        };
        tokio::select! {
            () = dial => {}
            () = forward => {}
            () = ash.says("handshake") => {}
        }
        network.ends_as_ever([ash, birch, network.start(CEDAR)]).await;
    });
}

const FLOOD: usize = 20_000;

#[test]
fn a_flood_of_garbage_is_counted_and_passes() {
    let line = "cedar: sent something that is no message: messages of kind 200 are unknown; it was not used (16384 such so far)";
    let log = with_keys_of_cedar(&[line], async |_, attacker| {
        for _ in 0..FLOOD {
            attacker.send(&[200; 50]).await;
        }
    });
    assert!(log.lines().count() < 100, "a log must not be a target: {} lines", log.lines().count());
}

#[test]
fn a_flood_of_duplicates_passes_in_silence() {
    let log = with_keys_of_cedar(&["messages of kind 200 are unknown"], async |network, attacker| {
        let model = network.signed_speech(1, genuine(1));
        for _ in 0..FLOOD {
            attacker.send(&model).await;
        }
        attacker.send(&[200]).await;
    });
    assert!(log.lines().count() < 100, "a log must not be a target: {} lines", log.lines().count());
}

/// The attacker reads none of the answers, so ash cannot send them either.
#[test]
fn a_flood_of_questions_passes() {
    with_keys_of_cedar(&["messages of kind 200 are unknown"], async |network, attacker| {
        let question = network.signed(&Frame::RequestPlan);
        for _ in 0..FLOOD {
            attacker.send(&question).await;
        }
        attacker.send(&[200]).await;
    });
}

#[test]
fn a_flood_beside_the_real_site_does_not_stop_the_run() {
    run(async {
        let network = Network::new();
        let (ash, birch) = (network.start(ASH), network.start(BIRCH));
        let mut line = network.impostor(ASH).await;
        let cedar = network.start(CEDAR);
        let model = network.signed_speech(1, genuine(1));
        let want = network.signed(&Frame::Request { whose: SiteIndex(0), turn: Turn::model(1) });
        let flood = async {
            while line.try_send(&[200; 50]).await && line.try_send(&model).await && line.try_send(&want).await
            {
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = flood => {}
            () = network.ends_as_ever([ash, birch, cedar]) => {}
        }
    });
}

#[test]
fn of_two_messages_for_one_round_the_first_stays() {
    let line = "cedar: sent two different messages for round 1; the first stays";
    with_keys_of_cedar(&[line], async |network, attacker| {
        attacker.send(&network.signed_speech(1, genuine(1))).await;
        attacker.send(&network.signed_speech(1, changed(&genuine(1)))).await;
    });
}

/// With cedar's keys and cedar's own releases the run is led to its fourth round; then old rounds are told anew.
#[test]
fn old_rounds_told_again_change_nothing() {
    run(async {
        let network = Network::new();
        let (mut ash, birch) = (network.start(ASH), network.start(BIRCH));
        let mut lines = [network.impostor(ASH).await, network.impostor(BIRCH).await];
        for line in &mut lines {
            line.send(&network.signed(&network.hello())).await;
        }
        for turn in 1..=4 {
            for (line, site) in lines.iter_mut().zip([ASH, BIRCH]) {
                line.send(&network.receipt(site, turn).await).await;
            }
            ash.says(&format!("round {turn} of {ROUNDS}")).await;
            for line in lines.iter_mut().filter(|_| turn < 4) {
                line.send(&network.signed_speech(turn, genuine(turn))).await;
            }
        }
        ash.says(&format!("round 4 of {ROUNDS}")).await;
        let [mut line, other] = lines;
        for turn in 1..=3 {
            line.send(&network.signed_speech(turn, genuine(turn))).await;
            line.send(&network.signed_speech(turn, changed(&genuine(turn)))).await;
        }
        line.send(&[200]).await;
        ash.says("messages of kind 200 are unknown").await;
        assert!(!ash.log().contains("two different messages"), "{}", ash.log());
        line.close().await;
        other.close().await;
        network.ends_as_ever([ash, birch, network.start(CEDAR)]).await;
    });
}

/// What a site said for free has no entry in its ledger; that must not look like a ledger that was put back.
#[test]
fn a_sites_own_words_shown_back_to_it_do_not_stop_it() {
    with_keys_of_cedar(&["messages of kind 200 are unknown"], async |network, attacker| {
        let (origin, values) = (network.origin(ASH), grid(&genuine(1)).1);
        let payload = Payload::Plain(vec![0.5; values.len()]);
        let model =
            ModelFrame { origin, turn: Turn::average(1), entry: 0, head: [0; 32], state: None, payload };
        let own = Frame::Model(model).encode(network.homes[ASH].identity());
        attacker.send(&own).await;
        attacker.send(&[200]).await;
    });
}

#[test]
fn an_endless_stream_of_strangers_does_not_stop_the_run() {
    run(async {
        let network = Network::new();
        let (mut ash, birch) = (network.start(ASH), network.start(BIRCH));
        let knock = async || {
            let endpoint = endpoint(&SecretKey::generate().unwrap()).await;
            let dial = endpoint.connect(address(&network.homes[ASH]), b"padmm/3");
            if let Ok(Ok(connection)) = timeout(Duration::from_secs(2), dial).await {
                let _ = timeout(Duration::from_secs(2), connection.closed()).await;
            }
            endpoint.close().await;
        };
        Line::open(&SecretKey::generate().unwrap(), &network.homes[ASH]).await.close().await;
        for _ in 0..200 {
            knock().await;
        }
        ash.says("(128 such so far)").await;
        let endless = async {
            loop {
                knock().await;
            }
        };
        let cedar = network.start(CEDAR);
        tokio::select! {
            () = endless => {}
            () = network.ends_as_ever([ash, birch, cedar]) => {}
        }
    });
}

/// A neighbour that opens connection after connection has only the newest few of them read.
#[test]
fn many_connections_of_one_neighbour_are_bounded() {
    with_keys_of_cedar(&["messages of kind 200 are unknown"], async |network, attacker| {
        let mut lines = vec![];
        for _ in 0..12 {
            lines.push(network.impostor(ASH).await);
        }
        let first = lines.remove(0);
        let reason = timeout(DEADLINE, first.connection.closed()).await.expect("it is closed");
        assert!(reason.to_string().contains("another one is newer"), "{reason}");
        let mut last = lines.pop().unwrap();
        last.send(&[200]).await;
        for line in lines {
            line.close().await;
        }
        *attacker = last;
    });
}

/// First packets of handshakes whose senders never answer, two hundred a second at every site, from many addresses. Nobody
/// else gets through if such a sender is given a place.
#[test]
fn half_open_handshakes_keep_nobody_out() {
    run(async {
        let network = Network::new();
        let dialler = endpoint(&SecretKey::generate().unwrap()).await;
        let mut flood = tokio::task::JoinSet::new();
        for home in &network.homes {
            let (site, listen) = (*home.card().transport(), home.config().listen());
            let mut sockets = vec![];
            for _ in 0..40 {
                sockets.push(tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap());
            }
            let trap = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let (at, dialler) = (trap.local_addr().unwrap(), dialler.clone());
            // Each call is to somebody else, so that the packets are those of different connections; and none is given up, which
            // would free its place.
            flood.spawn(async move {
                let mut calls = tokio::task::JoinSet::new();
                loop {
                    let (dialler, key) = (dialler.clone(), SecretKey::generate().unwrap().public());
                    assert_ne!(key, site);
                    calls.spawn(async move {
                        let _ = dialler.connect(address_at(&key, at), b"padmm/3").await;
                    });
                    sleep(Duration::from_millis(5)).await;
                }
            });
            // What the sites answer goes to sockets that nobody reads.
            flood.spawn(async move {
                let mut packet = [0; 2048];
                for k in 0.. {
                    let (n, _) = trap.recv_from(&mut packet).await.unwrap();
                    let _ = sockets[k % sockets.len()].send_to(&packet[..n], listen).await;
                }
            });
        }
        sleep(Duration::from_secs(1)).await;
        let sites = [ASH, BIRCH, CEDAR].map(|site| network.start(site));
        let logs = sites.each_ref().map(|site| site.log.clone());
        network.ends_as_ever(sites).await;
        flood.shutdown().await;
        for log in logs {
            let said = std::fs::read_to_string(log).unwrap();
            assert!(!said.contains("turned away"), "the flood was given places: {said}");
            assert!(!said.contains("did not finish its handshake"), "and kept them: {said}");
        }
    });
}
