//! What is looked at on this machine: rights, disk, port.

use std::io::{ErrorKind, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Checks;
use crate::identity::Home;
use crate::site::{SiteStatus, free_bytes, ledgers_of};

/// Less than this is too little for a run: a ledger grows by some megabytes, a log by more.
const LEAST_FREE: u64 = 200 << 20;
/// A release waits for one sync at least; a disk that takes longer slows every round.
const SLOW_SYNC: Duration = Duration::from_millis(250);

/// Whether others than the owner can look at keys or change what was spent.
pub(super) fn rights(checks: &mut Checks, home: &Home) {
    let mut wrong = vec![];
    let mut look = |path: &Path, forbidden: u32, mode: &str| {
        if let Some(found) = mode_of(path).filter(|found| found & forbidden != 0) {
            wrong.push((
                format!("{} has mode {found:03o}", path.display()),
                format!("chmod {mode} {}", path.display()),
            ));
        }
    };
    look(home.dir(), 0o077, "700");
    for key in ["identity.key", "transport.key", "dataset.key"] {
        look(&home.dir().join(key), 0o077, "600");
    }
    for ledger in ledgers_of(home).unwrap_or_default() {
        look(&ledger, 0o022, "600");
    }
    if wrong.is_empty() {
        return checks.good("rights", "home, keys and ledgers are their owner's alone");
    }
    let (found, mend): (Vec<String>, Vec<String>) = wrong.into_iter().unzip();
    let advice = format!("`{}`; if somebody may have read a key, `padmm-site site rotate`", mend.join("; "));
    checks.bad("rights", format!("others can read or change them: {}", found.join(", ")), advice);
}

#[cfg(unix)]
fn mode_of(path: &Path) -> Option<u32> {
    let found = std::fs::metadata(path).ok()?;
    Some(std::os::unix::fs::MetadataExt::mode(&found) & 0o777)
}

#[cfg(not(unix))]
fn mode_of(_: &Path) -> Option<u32> {
    None
}

/// Room, and how long a small write takes to be on the disk.
pub(super) fn disk(checks: &mut Checks, folder: &Path) {
    let free = free_bytes(folder);
    let room = free.map_or_else(|| "free space unknown".to_owned(), |free| format!("{} MB free", free >> 20));
    if free.is_some_and(|free| free < LEAST_FREE) {
        let advice =
            format!("make room on the disk of {}: a site whose ledger cannot grow stops", folder.display());
        return checks.bad("disk", format!("{room}, and a run needs about {} MB", LEAST_FREE >> 20), advice);
    }
    match sync_time(folder) {
        Ok(time) if time > SLOW_SYNC => checks.bad(
            "disk",
            format!("{room}; a synced write takes {} ms", time.as_millis()),
            "put the home on a local disk that is not busy: every release waits for such writes",
        ),
        Ok(time) => {
            checks.good("disk", format!("{room}; a synced write takes {:.1} ms", time.as_secs_f64() * 1e3))
        }
        Err(error) => {
            let advice = match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room",
                ErrorKind::ReadOnlyFilesystem => "the file system is read-only: mount it for writing",
                _ => "let the site's user write there",
            };
            checks.bad("disk", format!("{} cannot be written ({error})", folder.display()), advice);
        }
    }
}

/// The middle one of five: a single slow write says little.
fn sync_time(folder: &Path) -> std::io::Result<Duration> {
    let mut file = tempfile::Builder::new().prefix(".doctor-").tempfile_in(folder)?;
    let mut times = vec![];
    for _ in 0..5 {
        let start = Instant::now();
        file.write_all(&[0; 4096])?;
        file.as_file().sync_data()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[2])
}

/// Whether the site can listen where it is to listen. The port is let go at once.
pub(super) fn port(checks: &mut Checks, home: &Home, running: Option<&SiteStatus>) {
    if home.config().network().is_relay_only() {
        return checks.good("port", "none is needed: everything goes through relays");
    }
    let listen = home.config().listen();
    match (UdpSocket::bind(listen), running) {
        (Ok(_), _) => checks.good("port", format!("UDP {listen} is free")),
        (Err(error), Some(status)) if error.kind() == ErrorKind::AddrInUse => {
            checks.good("port", format!("UDP {listen} is used by this site, which runs {}", status.run));
        }
        (Err(error), _) => {
            let advice = match error.kind() {
                ErrorKind::AddrInUse => {
                    "another program, or another run of this site, uses the port: end it, or change `listen` in site.toml and tell the others with `padmm-site site move`"
                }
                ErrorKind::AddrNotAvailable => {
                    "`listen` in site.toml is no address of this machine; 0.0.0.0 stands for all"
                }
                ErrorKind::PermissionDenied => {
                    "choose a port above 1023, or give the program the right to use this one"
                }
                _ => "correct `listen` in site.toml",
            };
            checks.bad("port", format!("UDP {listen} cannot be listened on ({error})"), advice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_cannot_be_written_is_named() {
        let mut checks = Checks::default();
        disk(&mut checks, Path::new("/proc"));
        assert!(!checks.0[0].ok, "{:?}", checks.0);
        disk(&mut checks, tempfile::tempdir().unwrap().path());
        assert!(checks.0[1].message.contains("a synced write takes"), "{:?}", checks.0);
    }
}
