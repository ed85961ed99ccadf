//! The status of a site that waits, runs and has ended: over HTTP, and in a terminal.

use crate::common;
use crate::pair;

use std::io::{Read, Write};
use std::net::TcpStream;

use common::{json, ok, refused};
use pair::{Pair, RUN, until};

/// Status line with headers, and body.
fn ask(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn get(address: &str, path: &str) -> (String, String) {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
}

#[test]
fn a_site_shows_what_it_does_while_it_waits_and_after_it_has_ended() {
    let pair = Pair::new();
    let mut north = pair.start(0, &["--status", "127.0.0.1:0"]);
    let line = north.says("the status page is http://");
    let address = line.split("http://").nth(1).unwrap().trim_end_matches('/').to_owned();
    north.says("waiting for south");
    let (head, page) = until(
        || {
            Some(get(&address, "/")).filter(|(head, page)| {
                head.starts_with("HTTP/1.1 200 OK") && page.contains("Waiting for south")
                    || page.contains("waiting for south")
            })
        },
        || get(&address, "/").1,
    );
    assert!(head.contains("Cache-Control: no-store") && head.contains("frame-ancestors 'none'"), "{head}");
    for wanted in [
        "nothing has been spent on this run",
        "not connected; looked for at 127.0.0.1:",
        "ε of the whole plan",
        "0 of 5",
    ] {
        assert!(page.contains(wanted), "{wanted} is not in {page}");
    }
    // It opens offline: nothing is loaded from anywhere.
    for outside in ["src=\"http", "href=\"http", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }

    let (head, metrics) = get(&address, "/metrics");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    for wanted in [
        "padmm_round 0\n",
        "padmm_rounds 5\n",
        "padmm_epsilon_spent 0\n",
        "padmm_epsilon_cap 10\n",
        "padmm_neighbour_connected{neighbour=\"south\"} 0\n",
        "padmm_state{state=\"waiting\"} 1\n",
    ] {
        assert!(metrics.contains(wanted), "{wanted} is not in {metrics}");
    }
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("padmm_") && value.parse::<f64>().is_ok(), "{line}");
    }
    let (_, health) = get(&address, "/health");
    assert_eq!(json(&health)["ok"], true);
    assert_eq!(json(&get(&address, "/status.json").1)["site"], "north");

    // The terminal says the same, from the file that the site writes.
    let status = until(
        || {
            Some(json(&ok(pair.at(), &["site", "status", "--home", "north", "--json"])))
                .filter(|s| s["alive"] == true)
        },
        || "the status file is not fresh".to_owned(),
    );
    assert_eq!(
        (&status["state"], &status["round"], &status["neighbours"][0]["signed"]),
        (&"waiting".into(), &0.into(), &true.into())
    );
    let text = ok(pair.at(), &["site", "status", "--home", "north"]);
    assert!(text.contains("process") && text.contains("waiting for south"), "{text}");
    let before = json(&ok(pair.at(), &["site", "status", "--home", "south", "--run", RUN, "--json"]));
    assert_eq!((&before["alive"], &before["state"]), (&false.into(), &"waiting".into()));

    let mut south = pair.start(1, &[]);
    south.finishes();
    north.finishes();
    let after = json(&ok(pair.at(), &["site", "status", "--home", "north", "--json"]));
    assert_eq!(
        (&after["alive"], &after["state"], &after["round"]),
        (&false.into(), &"finished".into(), &5.into())
    );
    let (spent, plan) = (
        after["privacy"]["epsilon_spent"].as_f64().unwrap(),
        after["privacy"]["epsilon_plan"].as_f64().unwrap(),
    );
    assert!(spent > 0.0 && spent <= plan && plan <= 4.0, "{after}");
    // A further plan that is accepted and has not begun: what was spent on these records before is spent.
    let plan = std::fs::read_to_string(pair.home(0).join("runs").join(RUN).join("plan.toml")).unwrap();
    std::fs::create_dir(pair.home(0).join("runs/second")).unwrap();
    let second = plan.replacen("name = \"trial\"", "name = \"second\"", 1);
    std::fs::write(pair.home(0).join("runs/second/plan.toml"), second).unwrap();
    let next = json(&ok(pair.at(), &["site", "status", "--home", "north", "--run", "second", "--json"]));
    assert_eq!((&next["state"], &next["privacy"]["epsilon_run"]), (&"waiting".into(), &0.0.into()), "{next}");
    assert_eq!(next["privacy"]["epsilon_spent"], after["privacy"]["epsilon_spent"], "{next}");
    assert_eq!(after["egress"]["newest"][0]["sha256"].as_str().unwrap().len(), 64);
    let text = ok(pair.at(), &["site", "status", "--home", "north"]);
    assert!(text.contains("does not run") && text.contains("5 of 5") && text.contains("finished"), "{text}");
}

#[test]
fn the_page_is_for_this_machine_and_can_only_be_read() {
    let pair = Pair::new();
    let north = pair.start(0, &["--status", "127.0.0.1:0"]);
    let line = north.says("the status page is http://");
    let address = line.split("http://").nth(1).unwrap().trim_end_matches('/').to_owned();
    let first = |request: &str| ask(&address, request).0.lines().next().unwrap().to_owned();
    let with_host = |host: &str| first(&format!("GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert_eq!(with_host(&address), "HTTP/1.1 200 OK");
    assert_eq!(with_host("localhost:8080"), "HTTP/1.1 200 OK");
    // A name that leads here, and is somebody else's.
    for host in ["evil.example", "evil.example:9100", "localhost.evil.example", "10.1.2.3"] {
        assert_eq!(with_host(host), "HTTP/1.1 421 Misdirected Request", "{host}");
    }
    assert_eq!(first("GET /health HTTP/1.1\r\n\r\n"), "HTTP/1.1 421 Misdirected Request");
    let two = format!("GET / HTTP/1.1\r\nHost: {address}\r\nhost: evil.example\r\n\r\n");
    assert_eq!(first(&two), "HTTP/1.1 421 Misdirected Request");
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        let request = format!("{method} /health HTTP/1.1\r\nHost: {address}\r\n\r\n");
        assert_eq!(first(&request), "HTTP/1.1 405 Method Not Allowed", "{method}");
    }
    assert_eq!(
        first(&format!("GET /../identity.key HTTP/1.1\r\nHost: {address}\r\n\r\n")),
        "HTTP/1.1 404 Not Found"
    );
    assert_eq!(first("nonsense\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(9000));
    assert!(first(&long).starts_with("HTTP/1.1 431 "), "too long");

    let open = refused_run(&pair, &["--status", "0.0.0.0:0"]);
    assert!(open.contains("--status-open"), "{open}");
    let taken = refused_run(&pair, &["--status", &address]);
    assert!(taken.contains("cannot be listened on"), "{taken}");
}

fn refused_run(pair: &Pair, more: &[&str]) -> String {
    refused(pair.at(), &[&["site", "run", "--home", "south", "--run", RUN], more].concat())
}
