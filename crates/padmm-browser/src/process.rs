//! Finding, starting and ending the browser's process.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{DEADLINE, PROGRAM};

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The first part of the line in which the browser says where it listens.
const LISTENING: &str = "DevTools listening on ws://";

/// The program that the environment names, or the first of the usual ones on the path.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(program) = env::var_os(PROGRAM).filter(|p| !p.is_empty()) {
        return Some(program.into());
    }
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |f| f.join(name))).find(|p| p.is_file())
}

/// The process and the folder of its profile, which is removed after it.
pub(crate) struct Process {
    child: Child,
    _profile: TempDir,
}

impl Process {
    /// Starts the browser; also returns `host:port/path` of its debugger.
    pub(crate) fn start(program: &PathBuf) -> (Self, String) {
        let profile = tempfile::tempdir().expect("a folder for the browser's profile");
        let mut user_data = std::ffi::OsString::from("--user-data-dir=");
        user_data.push(profile.path());
        let mut child = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            // Containers have little shared memory; pages of tests are small.
            .args(["--disable-dev-shm-usage", "--disable-extensions", "--disable-breakpad", "--mute-audio"])
            .args(["--remote-debugging-port=0", "--no-default-browser-check", "--hide-scrollbars"])
            .arg(user_data)
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{} does not start: {e}", program.display()));
        let errors = BufReader::new(child.stderr.take().expect("standard error is piped"));
        let mut process = Process { child, _profile: profile };
        let (sender, receiver) = mpsc::channel();
        // Reads to the end, since a browser whose words nobody reads stops when the pipe is full.
        thread::spawn(move || {
            let lines = errors.lines().map_while(Result::ok);
            lines.for_each(|line| drop(sender.send(line)));
        });
        let end = Instant::now() + DEADLINE;
        let mut said = Vec::new();
        while let Ok(line) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if let Some(address) = line.trim().strip_prefix(LISTENING) {
                return (process, address.to_owned());
            }
            said.push(line);
        }
        process.end();
        panic!("{} did not say where it listens:\n{}", program.display(), said.join("\n"));
    }

    /// Waits a little for the process to end by itself, then ends it.
    pub(crate) fn end(&mut self) {
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing to do after `end`; otherwise a test has failed on the way.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
