//! What a running site shows to its own people: one snapshot, which the page, the metrics and `site status` are made from.
//!
//! The session's thread publishes what it knows; a thread of its own writes the newest snapshot to `status.json` in the run's folder,
//! whole or not at all, so that somebody who looks sees a site that computes for minutes as alive. Everything in it is public to the site's
//! neighbours, in its own ledger, or a fact of its machine; nothing is computed from records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use padmm_core::message::SiteIndex;
use serde::{Deserialize, Serialize};

use super::{Outputs, Site};
use crate::clock;
use crate::identity::{Card, Expiry};
use crate::session::SessionStatus;
use crate::transport::quic::Route;

/// The file of a run's newest snapshot, beside its plan.
const STATUS_FILE: &str = "status.json";
/// How often the file is written while the site runs.
const EVERY: Duration = Duration::from_secs(2);
/// A file that was written longer ago is that of a site that has ended, by whatever.
const FRESH: Duration = Duration::from_secs(10);
/// Lines of the log, and of what left, that are shown.
pub(super) const MOST_LINES: usize = 50;

/// How far a site is with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SiteState {
    /// Not every site is there yet; nothing has been spent on this run.
    Waiting,
    /// Rounds are being computed.
    Running,
    /// There is a model.
    Finished,
    /// The process has ended before there was one.
    Stopped,
}

/// A site's run at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteStatus {
    /// When the process was last known to be alive, in seconds since 1970.
    pub alive_at: u64,
    /// Whether it has ended since.
    pub ended: bool,
    /// When the session last said how far it is; it says nothing while it computes.
    pub at: u64,
    /// Its version, as `--version` prints it.
    pub program: String,
    /// This site's name in the plan.
    pub site: String,
    /// The run's name.
    pub run: String,
    /// Hash of the plan, in hexadecimal digits.
    pub plan: String,
    /// Which part of a run it is in.
    pub state: SiteState,
    /// What it is at, in words.
    pub place: String,
    /// Private rounds that were released.
    pub round: u32,
    /// Private rounds of the plan.
    pub rounds: u32,
    /// Who is waited for, in words.
    pub waiting: Option<String>,
    /// For how long, in seconds.
    pub waited: u64,
    /// In the order of the plan, lost ones included.
    pub neighbours: Vec<NeighbourStatus>,
    /// What was spent, and what may be.
    pub privacy: PrivacyStatus,
    /// What left this site.
    pub egress: EgressStatus,
    /// Until when certificates are valid.
    pub certificates: Vec<CertificateStatus>,
    /// Bytes that are free where the ledger is; none if that is not known.
    pub disk_free: Option<u64>,
    /// The newest lines of the log, oldest first.
    pub log: Vec<LogLine>,
}

/// Whether a neighbour can be reached, and what the run still wants of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighbourStatus {
    /// Its name in the plan.
    pub name: String,
    /// Where its card says that it is reached.
    pub addresses: Vec<String>,
    /// Seconds since its last sign of life; none if there was none since this site started.
    pub silent: Option<u64>,
    /// How it is connected now; none if it is not.
    pub route: Option<RouteStatus>,
    /// Its word on the plan is known.
    pub signed: bool,
    /// Something of it is waited for.
    pub awaited: bool,
    /// It has its model.
    pub done: bool,
    /// The run continues without it.
    pub lost: bool,
}

/// The way to a neighbour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteStatus {
    /// To the neighbour itself, not through a relay.
    pub direct: bool,
    /// Where packets go.
    pub address: String,
    /// Milliseconds that a packet and its answer take.
    pub round_trip_ms: f64,
}

impl From<Route> for RouteStatus {
    fn from(route: Route) -> Self {
        let round_trip_ms = route.round_trip.as_secs_f64() * 1e3;
        Self { direct: route.is_direct, address: route.address, round_trip_ms }
    }
}

/// What was spent, and what may be. Each ε is rounded upward and holds for everything up to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivacyStatus {
    /// What the releases of this run have cost so far, at the cap's δ.
    pub epsilon_run: f64,
    /// What the whole plan costs, at the plan's δ.
    pub epsilon_plan: f64,
    /// At which `epsilon_plan` holds.
    pub delta_plan: f64,
    /// What all runs on these records have cost so far, at the cap's δ.
    pub epsilon_spent: f64,
    /// What all runs on these records may cost together.
    pub epsilon_cap: f64,
    /// At which the cap, and everything that is compared with it, holds.
    pub delta_cap: f64,
}

impl PrivacyStatus {
    /// The cap minus what was spent. It is no budget for a further run: losses at one δ do not simply add up, and may come to more than
    /// their sum where each is small.
    pub fn epsilon_left(&self) -> f64 {
        (self.epsilon_cap - self.epsilon_spent).max(0.0)
    }
}

/// What left this site in this process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EgressStatus {
    /// Payloads, repeated ones included.
    pub payloads: u64,
    /// Their lengths, added up.
    pub bytes: u64,
    /// The newest ones, oldest first, as `egress.csv` has them.
    pub newest: Vec<EgressLine>,
}

/// One payload that left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EgressLine {
    /// When, in UTC to the second.
    pub at: String,
    /// What it is: a release, an average, or another site's that is passed on.
    pub stage: String,
    /// The turn that it belongs to.
    pub turn: u32,
    /// The neighbour that it went to.
    pub to: String,
    /// Length of the payload as it was sent.
    pub bytes: u64,
    /// SHA-256 of the bytes, in hexadecimal digits.
    pub sha256: String,
    /// Whether it was sent before.
    pub again: bool,
}

/// Until when a certificate is valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CertificateStatus {
    /// Whose it is.
    pub name: String,
    /// The last day on which it is valid, year-month-day.
    pub last_day: String,
    /// Whether people should be warned, or it has ended.
    pub soon: bool,
}

/// What was logged, as it may be shown to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// When, in UTC to the second.
    pub at: String,
    /// Info, warning or error.
    pub level: String,
    /// The line as it was written, without anything that could forge another.
    pub message: String,
}

impl SiteStatus {
    /// What the site of a run last wrote down, if it ever did.
    pub fn read(folder: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join(STATUS_FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Whether the process that wrote it still runs, as far as can be told.
    pub fn is_alive(&self, now: SystemTime) -> bool {
        !self.ended && seconds(now).abs_diff(self.alive_at) <= FRESH.as_secs()
    }
}

impl Site {
    /// What can be said now, beside the log and what left.
    pub(super) fn status(
        &self,
        session: &SessionStatus,
        mut routes: BTreeMap<SiteIndex, Route>,
    ) -> SiteStatus {
        let now = clock::now();
        let contract = self.contract();
        let neighbour = |peer: &crate::session::PeerStatus| {
            let card = self.cards.iter().find(|(site, _)| *site == peer.site).map(|(_, card)| card);
            let addresses = card.map_or_else(Vec::new, |card| self.looked_for_at(card));
            NeighbourStatus {
                name: contract.sites()[peer.site.0].name.to_string(),
                addresses,
                silent: peer.silent.map(|silent| silent.as_secs()),
                route: routes.remove(&peer.site).map(RouteStatus::from),
                signed: peer.has_signed,
                awaited: peer.is_awaited,
                done: peer.is_done,
                lost: peer.is_lost,
            }
        };
        let certificate = |card: &Card| CertificateStatus {
            name: card.name().to_string(),
            last_day: card.certificate().last_day(),
            soon: card.certificate().expiry(now) != Expiry::Fine,
        };
        let planned = contract.calibration().agents[self.me.0].noise.as_ref().map(|noise| noise.report());
        let state = match (session.is_started, session.is_done) {
            (_, true) => SiteState::Finished,
            (true, false) => SiteState::Running,
            (false, false) => SiteState::Waiting,
        };
        SiteStatus {
            alive_at: seconds(now),
            ended: false,
            at: seconds(now),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            site: self.name().to_string(),
            run: contract.name().to_string(),
            plan: contract.hash().to_string(),
            state,
            place: session.place.clone(),
            round: session.rounds_released,
            rounds: contract.plan().settings().rounds,
            waiting: session.waiting.clone(),
            waited: session.waited.as_secs(),
            neighbours: session.peers.iter().map(neighbour).collect(),
            privacy: PrivacyStatus {
                epsilon_run: session.epsilon_run.value(),
                epsilon_plan: planned.as_ref().map_or(f64::MAX, |report| report.epsilon_exact),
                delta_plan: contract.plan().budget().delta.value(),
                epsilon_spent: session.epsilon_spent.value(),
                epsilon_cap: session.cap.epsilon.value(),
                delta_cap: session.cap.delta.value(),
            },
            egress: EgressStatus::default(),
            certificates: std::iter::once(self.home.card())
                .chain(self.cards.iter().map(|(_, card)| card))
                .map(certificate)
                .collect(),
            disk_free: free_bytes(&self.home.ledgers()),
            log: vec![],
        }
    }
}

/// Bytes that this user may still write where `path` is.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    found.f_bavail.checked_mul(found.f_frsize)
}

/// Seconds since 1970.
pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The newest snapshot of a site that runs.
#[derive(Default)]
pub(super) struct Board {
    newest: Mutex<Option<SiteStatus>>,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Option<SiteStatus>> {
        self.newest.lock().expect("nobody panics while holding the status")
    }

    pub(super) fn publish(&self, status: SiteStatus) {
        *self.lock() = Some(status);
    }

    pub(super) fn newest(&self) -> Option<SiteStatus> {
        self.lock().clone()
    }
}

/// Writes the status file every other second, for as long as it lives, and once more when it ends.
pub(super) struct StatusWriter {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    outputs: Arc<Outputs>,
    path: PathBuf,
}

impl StatusWriter {
    pub(super) fn start(outputs: Arc<Outputs>, folder: &Path) -> Self {
        let (stop, path) = (Arc::new((Mutex::new(false), Condvar::new())), folder.join(STATUS_FILE));
        let run = {
            let (stop, outputs, path) = (Arc::clone(&stop), Arc::clone(&outputs), path.clone());
            move || {
                let (lock, bell) = &*stop;
                let mut is_over = lock.lock().expect("nobody panics while holding it");
                while !*is_over {
                    if let Some(status) = outputs.status() {
                        write(&path, &status);
                    }
                    is_over = bell.wait_timeout(is_over, EVERY).expect("nobody panics while holding it").0;
                }
            }
        };
        // Without the thread there is no file, and `site status` says what the ledger knows.
        let thread = std::thread::Builder::new().name("status".into()).spawn(run).ok();
        Self { stop, thread, outputs, path }
    }
}

impl Drop for StatusWriter {
    fn drop(&mut self) {
        *self.stop.0.lock().expect("nobody panics while holding it") = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(mut status) = self.outputs.status() {
            if status.state != SiteState::Finished {
                status.state = SiteState::Stopped;
            }
            status.ended = true;
            write(&self.path, &status);
        }
    }
}

/// Whole or not at all, and without waiting for the disk: the next one comes in a moment, and nothing rests on it.
fn write(path: &Path, status: &SiteStatus) {
    let Ok(text) = serde_json::to_vec(status) else { return };
    let draft = path.with_extension("json.next");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&draft).and_then(|mut file| std::io::Write::write_all(&mut file, &text));
    // A status that cannot be written must not stop a run.
    let _ = written.and_then(|()| std::fs::rename(&draft, path));
}
