//! What a site writes: its log, every payload that left, the model, and who took part.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use padmm_core::agent::Outcome;
use padmm_core::message::{SiteIndex, Stage, Turn};
use padmm_core::model::{Model, Provenance};
use padmm_core::plan::Output;
use padmm_core::printable::printable;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::status::{Board, EgressLine, EgressStatus, LogLine, MOST_LINES, SiteStatus, seconds};
use super::{Site, SiteError};
use crate::identity::{LogFormat, to_hex};
use crate::journal::{EgressError, Journal, Level, Sent};
use crate::ledger::RunStart;
use crate::session::{Session, SessionError, turn_name};

/// Events whose lines may say something that was computed from records. They are in the log, which is for the site's own people; a status
/// page is looked at over shoulders and by monitoring, and does not have them.
const FROM_RECORDS: [&str; 2] = ["records", "own-model"];

/// The list of what left.
const EGRESS: &str = "egress.csv";

#[derive(Default)]
struct Inner {
    names: Vec<String>,
    rho: Vec<f64>,
    egress: Option<File>,
    /// Why what left cannot be written down any more; from then on nothing leaves in this process.
    failed: Option<EgressError>,
    payloads: u64,
    bytes: u64,
    last: Option<((SiteIndex, Turn), String)>,
    /// The newest lines of the list of what left, and of the log, for those who look at the site.
    newest: VecDeque<EgressLine>,
    log: VecDeque<LogLine>,
}

/// The outputs of one run at one site.
pub struct Outputs {
    folder: PathBuf,
    format: LogFormat,
    site: String,
    inner: Mutex<Inner>,
    board: Board,
}

/// What a run came to, as `result.json` has it. Nothing in it is computed from records beside what was released.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// Hash of the contract, in hexadecimal digits.
    pub plan: String,
    /// This site's name in the plan.
    pub site: String,
    /// Whether the run went to its end.
    pub finished: bool,
    /// Private rounds that this site has completed.
    pub rounds: u32,
    /// In which rounds each site took part, as far as is known here.
    pub took_part: BTreeMap<String, String>,
    /// Who continued without whom, and from when.
    pub departures: Vec<String>,
    /// Whose averages the model is the mean of, if it is one: the same at all sites whose models are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaged_over: Option<Vec<String>>,
    /// SHA-256 of the coefficients, as little-endian doubles. Sites compare it to know that they keep the same model: one that tells
    /// two neighbours two averages makes their models differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_sha256: Option<String>,
    /// Payloads that left, repeated ones included.
    pub payloads: u64,
    /// Bytes of all these payloads.
    pub bytes: u64,
    /// What the noise source says it is, in words.
    pub noise: String,
}

impl Outputs {
    /// Outputs in `folder`, which a run has for itself; nothing is written yet.
    pub fn new(folder: &Path, site: &str, format: LogFormat) -> Self {
        let inner = Mutex::new(Inner::default());
        Self { folder: folder.to_owned(), format, site: site.to_owned(), inner, board: Board::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics while writing down")
    }

    pub(super) fn publish(&self, status: SiteStatus) {
        self.board.publish(status);
    }

    /// What the site's people may see at this moment; none before the session has said anything.
    pub fn status(&self) -> Option<SiteStatus> {
        let mut status = self.board.newest()?;
        status.alive_at = seconds(crate::clock::now());
        let inner = self.lock();
        let newest = inner.newest.iter().cloned().collect();
        status.egress = EgressStatus { payloads: inner.payloads, bytes: inner.bytes, newest };
        status.log = inner.log.iter().cloned().collect();
        Some(status)
    }

    fn failed(&self, name: &str, reason: impl ToString) -> SiteError {
        SiteError::Output { path: self.folder.join(name), reason: reason.to_string() }
    }

    /// Opens the list of what left; a run that continues appends to it. A site that cannot keep it does not start.
    pub(super) fn begin(&self, names: &[String], start: &RunStart) -> Result<(), SiteError> {
        let file = self.open_egress().map_err(|error| SessionError::from(self.egress_error(&error)))?;
        let mut inner = self.lock();
        inner.egress = Some(file);
        inner.names = names.to_vec();
        inner.rho = start.planned.iter().map(|p| p.event.rho().map_or(f64::NAN, |r| r.value())).collect();
        Ok(())
    }

    fn open_egress(&self) -> std::io::Result<File> {
        let path = self.folder.join(EGRESS);
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let length = file.metadata()?.len();
        if length == 0 {
            file.write_all(b"at,stage,turn,to,bytes,rho,sha256,again\n")?;
        } else {
            // A line that a full disk or a power cut has shortened must not swallow the next one.
            let mut last = [0];
            file.seek(SeekFrom::Start(length - 1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        Ok(file)
    }

    fn egress_error(&self, error: &std::io::Error) -> EgressError {
        EgressError { path: self.folder.join(EGRESS), reason: error.to_string() }
    }

    /// An answer to a request leaves on another thread than the session's, which stops because of its failure too.
    pub(super) fn check_egress(&self) -> Result<(), EgressError> {
        self.lock().failed.clone().map_or(Ok(()), Err)
    }

    /// Writes the model and the result; existing ones of this run are replaced, they are the same.
    pub(super) fn write_model(
        &self,
        site: &Site,
        session: &Session,
        outcome: &Outcome,
    ) -> Result<(), SiteError> {
        crate::fault::at(crate::fault::Point::ModelBeforeWrite);
        let contract = site.contract();
        let settings = contract.plan().settings();
        let (values, output) = match settings.output {
            Output::Smoothed => (&outcome.smoothed, "smoothed"),
            Output::Last => (&outcome.last, "last"),
        };
        let provenance = Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            algorithm: settings.algorithm.name().to_owned(),
            output: output.to_owned(),
        };
        let privacy = json!({
            "guarantee": session.agent().privacy_report(),
            "statement": session.agent().privacy_report().map(|report| report.statement()),
            "plan": contract.hash().to_string(),
            "site": self.site,
            "noise": session.agent().noise_description(),
            "sites": self.took_part(site, session),
        });
        let model = Model::new(
            settings.schema_of_model(contract.schema().clone()),
            settings.loss,
            values.as_slice(),
            Some(privacy),
            provenance,
        )
        .and_then(|model| model.with_privacy_noise(outcome.privacy_noise.clone()))
        .map_err(|e| self.failed("model.json", e))?;
        padmm_data::write_model(&self.folder.join("model.json"), &model, true)?;
        let bytes: Vec<u8> = values.as_slice().iter().flat_map(|v| v.to_le_bytes()).collect();
        self.write_result(site, session, Some(to_hex(&Sha256::digest(bytes))))?;
        crate::fault::at(crate::fault::Point::ModelAfterWrite);
        Ok(())
    }

    /// What there is when no neighbour is left.
    pub(super) fn write_partial(&self, site: &Site, session: &Session) -> Result<(), SiteError> {
        self.write_result(site, session, None)
    }

    /// With the hash of the model where there is one, which is where the run is finished.
    fn write_result(
        &self,
        site: &Site,
        session: &Session,
        model_sha256: Option<String>,
    ) -> Result<(), SiteError> {
        let finished = model_sha256.is_some();
        let (payloads, bytes) = {
            let inner = self.lock();
            (inner.payloads, inner.bytes)
        };
        let names = site.names();
        let departures = session.departures().into_iter().map(|d| {
            let place = turn_name(d.turn);
            format!("{} went on without {} from {place}", names[d.reporter.0], names[d.lost.0])
        });
        let averaged = session.agent().averaged_over();
        let averaged = averaged.map(|sites| sites.into_iter().map(|site| names[site.0].clone()).collect());
        let result = RunResult {
            plan: site.contract().hash().to_string(),
            site: self.site.clone(),
            finished,
            rounds: session.agent().rounds_done(),
            took_part: self.took_part(site, session),
            departures: departures.collect(),
            averaged_over: averaged.filter(|_| finished),
            model_sha256,
            payloads,
            bytes,
            noise: session.agent().noise_description().to_owned(),
        };
        let text = serde_json::to_string_pretty(&result).map_err(|e| self.failed("result.json", e))? + "\n";
        padmm_data::write_atomically(&self.folder.join("result.json"), true, text.as_bytes())?;
        Ok(())
    }

    /// A site took part until everybody who is known to have heard it had lost it.
    fn took_part(&self, site: &Site, session: &Session) -> BTreeMap<String, String> {
        let contract = site.contract();
        let rounds = contract.plan().settings().rounds;
        let departures = session.departures();
        let until = |i: usize| -> String {
            let lost: Vec<u32> = departures
                .iter()
                .filter(|d| d.lost == SiteIndex(i) && d.turn.stage == Stage::Model)
                .map(|d| d.turn.number - 1)
                .collect();
            match (lost.iter().min(), lost.len() == contract.neighbours(i).len()) {
                (None, _) => format!("rounds 1 to {rounds}"),
                (Some(_), true) if lost.iter().all(|&round| round == 0) => "no round".to_owned(),
                (Some(_), true) => {
                    format!("rounds 1 to {}", lost.iter().max().expect("it was lost by somebody"))
                }
                (Some(least), false) => {
                    format!("rounds 1 to {least} with all neighbours, with some of them after that")
                }
            }
        };
        contract.sites().iter().enumerate().map(|(i, s)| (s.name.to_string(), until(i))).collect()
    }
}

/// The time in UTC, to the second.
fn timestamp() -> String {
    utc(seconds(crate::clock::now()))
}

/// So many seconds after 1970 as date and time in UTC.
pub fn utc(seconds: u64) -> String {
    let time = time::OffsetDateTime::from_unix_timestamp(seconds as i64);
    let format = time::format_description::well_known::Rfc3339;
    time.ok().and_then(|t| t.format(&format).ok()).unwrap_or_default()
}

impl Journal for Outputs {
    fn log(&self, level: Level, event: &'static str, message: &str) {
        let (at, level) = (timestamp(), level.name());
        // Neighbours choose some of the words. None of them ends a line, also not for whoever decodes the JSON.
        let message = printable(message);
        let line = match self.format {
            LogFormat::Human => format!("{at} {level:<7} {}: {message}", self.site),
            LogFormat::Json => {
                json!({"at": at, "level": level, "site": self.site, "event": event, "message": message})
                    .to_string()
            }
        };
        let shown = LogLine { at, level: level.to_owned(), message: message.into_owned() };
        if !FROM_RECORDS.contains(&event) {
            push(&mut self.lock().log, shown);
        }
        // A log that cannot be written must not stop a run.
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    fn sent(&self, sent: &Sent<'_>) -> Result<(), EgressError> {
        let mut inner = self.lock();
        if let Some(failed) = &inner.failed {
            return Err(failed.clone());
        }
        // The same bytes go to every neighbour; they are hashed once.
        let digest = match &inner.last {
            Some((of, digest)) if *of == (sent.whose, sent.turn) => digest.clone(),
            _ => to_hex(&Sha256::digest(sent.bytes)),
        };
        inner.last = Some(((sent.whose, sent.turn), digest.clone()));
        let at = timestamp();
        let Turn { stage, number: turn } = sent.turn;
        let is_own = inner.names.get(sent.whose.0).is_none_or(|name| *name == self.site);
        let (stage, rho) = match stage {
            _ if !is_own => ("passed-on", 0.0),
            Stage::Model => ("release", inner.rho.get(turn as usize - 1).copied().unwrap_or(0.0)),
            Stage::Average => ("average", 0.0),
        };
        let n = sent.bytes.len();
        let to = inner.names.get(sent.to.0).cloned().unwrap_or_default();
        // The charge is that of the round: it is made once, however often and to however many its payload goes.
        let line = format!("{at},{stage},{turn},{to},{n},{rho:e},{digest},{}\n", sent.again);
        let file = inner.egress.as_mut().expect("the list is opened before anything leaves");
        if let Err(error) = file.write_all(line.as_bytes()) {
            let failed = self.egress_error(&error);
            inner.failed = Some(failed.clone());
            return Err(failed);
        }
        inner.payloads += 1;
        inner.bytes += sent.bytes.len() as u64;
        let (stage, bytes, again) = (stage.to_owned(), n as u64, sent.again);
        push(&mut inner.newest, EgressLine { at, stage, turn, to, bytes, sha256: digest, again });
        Ok(())
    }
}

/// Adds a line; the oldest goes when there are too many.
fn push<T>(lines: &mut VecDeque<T>, line: T) {
    if lines.len() == MOST_LINES {
        lines.pop_front();
    }
    lines.push_back(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: &[u8]) -> Sent<'_> {
        Sent { to: SiteIndex(1), whose: SiteIndex(0), turn: Turn::model(1), bytes, again: false }
    }

    /// A device that is always full stands for the disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_written_down_is_refused_from_then_on() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(folder.path(), "ash", LogFormat::Human);
        outputs.lock().egress = Some(OpenOptions::new().write(true).open("/dev/full").unwrap());
        let refused = outputs.sent(&sent(b"release")).unwrap_err();
        assert!(refused.to_string().contains("so nothing more leaves"), "{refused}");
        assert_eq!(outputs.check_egress(), Err(refused.clone()));
        // Room again does not help: what happened meanwhile would be missing.
        outputs.lock().egress = Some(outputs.open_egress().unwrap());
        assert_eq!(outputs.sent(&sent(b"release")), Err(refused));
        assert_eq!(outputs.lock().payloads, 0);
        std::fs::remove_file(folder.path().join(EGRESS)).unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.path().join(EGRESS)).unwrap();
        assert!(outputs.open_egress().is_err(), "a site that cannot keep the list does not start");
    }

    #[test]
    fn what_the_log_says_of_records_is_not_on_the_status_page() {
        let outputs = Outputs::new(Path::new("."), "ash", LogFormat::Human);
        for event in ["start", "records", "own-model"] {
            outputs.log(Level::Warning, event, &format!("a line about {event}\nand a forged one"));
        }
        let shown: Vec<String> = outputs.lock().log.iter().map(|line| line.message.clone()).collect();
        assert_eq!(shown, ["a line about start\\nand a forged one"]);
    }

    #[test]
    fn a_line_that_was_cut_short_does_not_swallow_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(EGRESS);
        std::fs::write(&path, "at,stage\n2026-01-01T00:0").unwrap();
        let outputs = Outputs::new(folder.path(), "ash", LogFormat::Human);
        outputs.lock().egress = Some(outputs.open_egress().unwrap());
        outputs.sent(&sent(b"release")).unwrap();
        let lines: Vec<String> = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[2].split(',').count(), 8, "{lines:?}");
    }
}
