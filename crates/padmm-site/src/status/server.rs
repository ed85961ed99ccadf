//! A few lines of HTTP for the status page: GET only, read-only, and for this machine's own people.
//!
//! A server of a library would be most of what `padmm-site` links, for four addresses. What is here reads one short request a connection,
//! with limits on its size, its time and their number, and answers from the newest snapshot. A site's rounds never wait for it.
//!
//! A page of somebody else's in the same browser could send requests here, and, by letting its own name lead to 127.0.0.1, read the answers.
//! Such a request carries that name: so the host must be an address or `localhost`.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use padmm_commands::page::LIVE_POLICY;
use padmm_node::site::Outputs;
use serde_json::json;

use super::{metrics, page};

const LONGEST_REQUEST: usize = 8 << 10;
const MOST_CONNECTIONS: usize = 16;
/// How long a request may take to arrive, and an answer to be accepted.
const PATIENCE: Duration = Duration::from_secs(5);

/// Listens at `address` and answers until the process ends; gives the address with its port.
pub(crate) fn start(address: SocketAddr, is_open: bool, outputs: Arc<Outputs>) -> anyhow::Result<SocketAddr> {
    ensure!(
        is_open || address.ip().is_loopback(),
        "--status {address} could be reached from other machines, and everybody who reaches it may read it: use 127.0.0.1 and a tunnel (ssh -L), \
         or insist with --status-open"
    );
    let listener =
        TcpListener::bind(address).with_context(|| format!("--status {address} cannot be listened on"))?;
    let bound = listener.local_addr()?;
    let serve = move || {
        let busy = Arc::new(AtomicUsize::new(0));
        for stream in listener.incoming() {
            // Out of file handles, or a connection that is gone already: the next one may do.
            let Ok(stream) = stream else {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            };
            if busy.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                busy.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (outputs, done) = (Arc::clone(&outputs), Arc::clone(&busy));
            let answer = move || {
                // Who asked has gone away, or was too slow; nothing here depends on it.
                let _ = answer(stream, is_open, &outputs);
                done.fetch_sub(1, Ordering::Relaxed);
            };
            if std::thread::Builder::new().name("status-page".into()).spawn(answer).is_err() {
                busy.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::Builder::new()
        .name("status-server".into())
        .spawn(serve)
        .context("the status page cannot be served")?;
    Ok(bound)
}

fn answer(mut stream: TcpStream, is_open: bool, outputs: &Outputs) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let reply = match read_request(&mut stream) {
        Ok(Some(request)) => reply(&request, is_open, outputs),
        Ok(None) => Reply::refusal("400 Bad Request", "this is no request"),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Reply::refusal("431 Request Header Fields Too Large", "the request is too long")
        }
        Err(error) => return Err(error),
    };
    stream.write_all(&reply.bytes())?;
    stream.flush()
}

/// The request up to its empty line; none if it ends before that.
fn read_request(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let until = Instant::now() + PATIENCE;
    let mut bytes = Vec::with_capacity(1024);
    let mut chunk = [0; 1024];
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let n = stream.read(&mut chunk)?;
        if n == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk[..n]);
        if bytes.len() > LONGEST_REQUEST {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    Ok(String::from_utf8(bytes).ok())
}

struct Reply {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Reply {
    fn refusal(status: &'static str, why: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: format!("{why}\n") }
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { status, kind, body } = self;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
             Content-Security-Policy: {LIVE_POLICY}; frame-ancestors 'none'\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body.as_bytes()].concat()
    }
}

fn reply(request: &str, is_open: bool, outputs: &Outputs) -> Reply {
    let mut lines = request.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Reply::refusal("400 Bad Request", "this is no request");
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Reply::refusal("505 HTTP Version Not Supported", "this is HTTP/1.1");
    }
    let hosts: Vec<&str> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, host)| host.trim())
        .collect();
    if !matches!(hosts.as_slice(), [host] if is_own(host, is_open)) {
        return Reply::refusal(
            "421 Misdirected Request",
            "ask by the address of this machine, such as 127.0.0.1, or by localhost",
        );
    }
    if method != "GET" {
        return Reply::refusal("405 Method Not Allowed", "this page can only be read: GET");
    }
    let status = outputs.status();
    match (path.split('?').next().unwrap_or_default(), status) {
        ("/" | "/metrics" | "/status.json", None) => {
            Reply::refusal("503 Service Unavailable", "the site is starting; ask again in a moment")
        }
        ("/", Some(status)) => {
            Reply { status: "200 OK", kind: "text/html; charset=utf-8", body: page::html(&status) }
        }
        ("/metrics", Some(status)) => Reply {
            status: "200 OK",
            kind: "text/plain; version=0.0.4; charset=utf-8",
            body: metrics::text(&status),
        },
        ("/status.json", Some(status)) => {
            let body = serde_json::to_string(&status).unwrap_or_default();
            Reply { status: "200 OK", kind: "application/json", body }
        }
        ("/health", status) => {
            let body = json!({ "ok": true, "state": status.map(|status| status.state) }).to_string();
            Reply { status: "200 OK", kind: "application/json", body }
        }
        _ => Reply::refusal("404 Not Found", "here are /, /metrics, /health and /status.json"),
    }
}

/// Whether a host is this machine by its address, and not by a name that somebody else may have chosen.
fn is_own(host: &str, is_open: bool) -> bool {
    let is_allowed = |ip: IpAddr| is_open || ip.is_loopback();
    if let Ok(address) = host.parse::<SocketAddr>() {
        return is_allowed(address.ip());
    }
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return is_allowed(ip);
    }
    let (name, port) = host.split_once(':').unwrap_or((host, "80"));
    name.eq_ignore_ascii_case("localhost") && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_this_machine() {
        for host in ["127.0.0.1", "127.0.0.1:9100", "[::1]:9100", "[::1]", "localhost", "LOCALHOST:8080"] {
            assert!(is_own(host, false), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:9100",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:x",
            "10.0.0.1:9100",
            "0.0.0.0",
        ] {
            assert!(!is_own(host, false), "{host}");
        }
        assert!(is_own("10.0.0.1:9100", true) && !is_own("hospital.example:9100", true));
    }
}
