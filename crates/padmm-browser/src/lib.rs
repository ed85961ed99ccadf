//! Opens pages in a headless Chromium and tells what happened in them. A dev-dependency of crates that write pages;
//! nothing that is shipped depends on it.
//!
//! The browser is driven through its DevTools protocol. Every wait is for an event or a condition and has a deadline;
//! whatever goes wrong panics with a sentence, since the caller is a test.
//!
//! ```no_run
//! let Some(mut browser) = padmm_browser::Browser::start() else { return };
//! let mut tab = browser.open("report.html".as_ref(), 1280, 900);
//! assert_eq!(tab.evaluate("document.querySelectorAll('svg').length"), 3);
//! assert_eq!(tab.problems(), [""; 0]);
//! ```

mod base64;
mod process;
mod tab;
mod websocket;

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use tab::{Media, Tab};

use process::Process;
use websocket::WebSocket;

/// How long anything may take; generous, because machines that run tests are busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// The variable that makes a missing browser an error in place of a skipped test.
pub const REQUIRE: &str = "PADMM_REQUIRE_BROWSER";

/// The variable that names the browser's program; without it, the usual names are looked for on the path.
pub const PROGRAM: &str = "CHROMIUM";

/// A running browser with an empty profile of its own; it ends with this value.
pub struct Browser {
    // Before the process, so that the connection ends first.
    socket: WebSocket,
    process: Process,
    next_id: u64,
    events: Vec<Value>,
}

impl Browser {
    /// Starts the browser; none if there is none on this machine, which is said on standard error.
    ///
    /// # Panics
    /// If the browser does not start, or if there is none and the variable [`REQUIRE`] is set to anything but `0`.
    pub fn start() -> Option<Self> {
        let Some(program) = process::find() else {
            let advice = format!(
                "no browser found: install Chromium (Debian: `apt-get install chromium`) or set {PROGRAM} to its program"
            );
            let is_required = std::env::var(REQUIRE).is_ok_and(|v| !v.is_empty() && v != "0");
            assert!(!is_required, "{REQUIRE} is set, but {advice}");
            // Not `eprintln!`, whose words a test harness keeps to itself when the test passes.
            let _ = writeln!(std::io::stderr(), "\n*** SKIPPED, NOT PASSED: {advice} ***\n");
            return None;
        };
        let (process, address) = Process::start(&program);
        let socket = WebSocket::connect(&address);
        Some(Browser { socket, process, next_id: 1, events: Vec::new() })
    }

    /// Opens the file at `path` in a window of the given size and waits until it is loaded.
    ///
    /// # Panics
    /// If there is no such file or it cannot be opened.
    pub fn open(&mut self, path: &Path, width: u32, height: u32) -> Tab<'_> {
        Tab::open(self, path, (width, height), true)
    }

    /// The same in a window that runs no script of the page; [`Tab::evaluate`] still works.
    ///
    /// # Panics
    /// If there is no such file or it cannot be opened.
    pub fn open_without_scripts(&mut self, path: &Path, width: u32, height: u32) -> Tab<'_> {
        Tab::open(self, path, (width, height), false)
    }

    /// Calls a method of the protocol and waits for its answer; events that arrive meanwhile are kept.
    pub(crate) fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        self.socket.send(&message.to_string());
        let end = Instant::now() + DEADLINE;
        loop {
            assert!(Instant::now() < end, "{method} was not answered within {DEADLINE:?}");
            let mut answer = self.receive();
            if answer["id"] == id {
                assert!(answer.get("error").is_none(), "{method} failed: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    /// Waits for an event of a session, which may have happened already.
    pub(crate) fn wait_for_event(&mut self, session: &str, method: &str) {
        let end = Instant::now() + DEADLINE;
        while !self.events_of(session).any(|e| e["method"] == method) {
            assert!(Instant::now() < end, "no {method} within {DEADLINE:?}");
            let event = self.receive();
            self.events.push(event);
        }
    }

    /// All that happened in a session so far.
    pub(crate) fn events_of(&self, session: &str) -> impl Iterator<Item = &Value> {
        self.events.iter().filter(move |e| e["sessionId"] == session)
    }

    fn receive(&mut self) -> Value {
        let text = self.socket.receive();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("the browser sent no JSON ({e}): {text}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The answer may never come: the process is waited for instead.
        self.socket.try_send(&json!({ "id": self.next_id, "method": "Browser.close" }).to_string());
        self.process.end();
    }
}
