//! Which ledger the records of a site belong to. A ledger is found by a keyed fingerprint of the file of records; records that have
//! changed do not get a new budget by themselves, and neither does a copy of a ledger.

use std::path::{Path, PathBuf};

use padmm_privacy::Budget;
use sha2::{Digest, Sha256};

use super::SiteError;
use crate::identity::{Home, to_hex};
use crate::ledger::{Digest as LedgerDigest, LedgerView, Opening, SiteLedger};

/// What a person says about records that no ledger knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DataChoice {
    /// Nothing: only a site without any ledger gets a new one.
    #[default]
    Known,
    /// They are a new state of the data of this ledger, which continues.
    Update(String),
    /// They are of other people: a ledger of this name is begun.
    New(String),
}

/// The fingerprint of a file of records under a site's own key: the same file is known again, and without the key the fingerprint
/// says nothing about it.
pub fn fingerprint(key: &[u8; 32], file: &Path) -> std::io::Result<String> {
    let mut inner = Sha256::new();
    inner.update(b"padmm data set 1\0");
    inner.update(key);
    let mut reader = std::io::BufReader::with_capacity(1 << 16, std::fs::File::open(file)?);
    loop {
        use std::io::BufRead;
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        inner.update(chunk);
        let n = chunk.len();
        reader.consume(n);
    }
    let mut outer = Sha256::new();
    outer.update(b"padmm data set 2\0");
    outer.update(key);
    outer.update(inner.finalize());
    Ok(to_hex(&outer.finalize()))
}

fn of_records(home: &Home) -> Result<(PathBuf, String), SiteError> {
    let file = home.config().data()?.to_owned();
    let print = fingerprint(home.dataset_key(), &file)
        .map_err(|problem| padmm_data::DataError::Read { path: file.clone(), problem })?;
    Ok((file, print))
}

pub(super) fn in_memory(home: &Home) -> Result<SiteLedger, SiteError> {
    let (_, fingerprint) = of_records(home)?;
    let cap = home.config().cap()?.budget()?;
    Ok(SiteLedger::in_memory(Opening { data_set: "in memory".to_owned(), fingerprint, cap })?)
}

/// What is to become of the ledgers when the site works on its records.
pub(super) enum Verdict {
    /// These records are known: their ledger continues.
    Continue(LedgerView),
    /// A person says that they are a new state of this ledger's records.
    Update(LedgerView),
    /// They get a new ledger here.
    Begin(PathBuf),
}

/// What was found out, without changing anything. `plan accept` asks this, and `site run` does what it says.
pub(super) struct Judgement {
    fingerprint: String,
    /// What all runs together may spend, by site.toml and the ledger alike.
    pub cap: Budget,
    pub verdict: Verdict,
    /// The site's ledgers of other records.
    pub others: Vec<LedgerView>,
}

impl Judgement {
    /// The ledger of the records as it stands; none if they have none yet.
    pub(super) fn ledger(&self) -> Option<&LedgerView> {
        match &self.verdict {
            Verdict::Continue(view) | Verdict::Update(view) => Some(view),
            Verdict::Begin(_) => None,
        }
    }
}

/// Finds out which ledger the site's records, and the run with this hash, belong to.
pub(super) fn judge(home: &Home, choice: &DataChoice, run: &str) -> Result<Judgement, SiteError> {
    let (file, fingerprint) = of_records(home)?;
    let cap = home.config().cap()?.budget()?;
    let named = home.config().ledger();
    let mut paths = all_in(&home.ledgers())?;
    check_copies(&paths, named)?;
    if let Some(named) = named.filter(|named| named.exists() && !paths.iter().any(|p| is_same(p, named))) {
        paths.push(named.to_owned());
    }
    let mut ledgers = paths.iter().map(|path| SiteLedger::read(path)).collect::<Result<Vec<_>, _>>()?;
    check_fingerprints(&ledgers)?;
    let name_of = |view: &LedgerView| stem(view.path());
    let names: Vec<String> = ledgers.iter().map(name_of).collect();
    let is_candidate = |view: &LedgerView| named.is_none_or(|named| is_same(named, view.path()));
    let knows = |view: &LedgerView| is_candidate(view) && view.state().fingerprint() == fingerprint;
    let begin = |path: PathBuf| match path.exists() {
        true => Err(SiteError::WhichLedger(format!(
            "{} is there already, and it is of other records; give the new ledger another name",
            path.display()
        ))),
        false => Ok(Verdict::Begin(path)),
    };
    let verdict = if let Some(at) = ledgers.iter().position(knows) {
        Verdict::Continue(ledgers.remove(at))
    } else {
        match (choice, named) {
            (_, Some(path)) if !path.exists() => begin(path.to_owned())?,
            (DataChoice::Update(name), _) => {
                let is_meant = |view: &LedgerView| is_candidate(view) && name_of(view) == *name;
                match ledgers.iter().position(is_meant) {
                    Some(at) => Verdict::Update(ledgers.remove(at)),
                    None => return Err(SiteError::WhichLedger(no_such(name, &home.ledgers(), &names))),
                }
            }
            (DataChoice::New(name), None) => {
                check_new(&ledgers, &fingerprint, &file)?;
                begin(home.ledgers().join(format!("{name}.ledger")))?
            }
            (DataChoice::Known, None) if names.is_empty() => {
                begin(home.ledgers().join(format!("{}.ledger", stem(&file))))?
            }
            (_, Some(path)) => return Err(SiteError::WhichLedger(changed(&file, &[stem(path)]))),
            (DataChoice::Known, None) => return Err(SiteError::WhichLedger(changed(&file, &names))),
        }
    };
    // A run is on one set of records: in another ledger it would release its rounds a second time.
    if let Some(other) = ledgers.iter().find(|view| view.state().run(run).is_some()) {
        let ledger = other.path().to_owned();
        return Err(SiteError::RunElsewhere { file, ledger });
    }
    let judgement = Judgement { fingerprint, cap, verdict, others: ledgers };
    judgement.ledger().map_or(Ok(()), |view| check_cap(view, cap))?;
    Ok(judgement)
}

/// Finds, or begins, the ledger of the site's records.
pub(super) fn open(home: &Home, choice: &DataChoice, run: &str) -> Result<SiteLedger, SiteError> {
    let Judgement { fingerprint, cap, verdict, .. } = judge(home, choice, run)?;
    match verdict {
        Verdict::Continue(view) => Ok(SiteLedger::open(view.path())?),
        Verdict::Update(view) => {
            let mut ledger = SiteLedger::open(view.path())?;
            ledger.change_data(&fingerprint)?;
            Ok(ledger)
        }
        Verdict::Begin(path) => {
            let data_set = stem(&path);
            Ok(SiteLedger::create(&path, Opening { data_set, fingerprint, cap })?)
        }
    }
}

fn check_cap(ledger: &LedgerView, config: Budget) -> Result<(), SiteError> {
    let recorded = ledger.state().cap();
    if recorded == config {
        return Ok(());
    }
    Err(SiteError::Cap {
        config: config.epsilon.value(),
        config_delta: config.delta.value(),
        recorded: recorded.epsilon.value(),
        recorded_delta: recorded.delta.value(),
        ledger: ledger.path().to_owned(),
    })
}

/// A copy of a ledger beside it has its history until the copy was made, and its own from then on: what left in the one is not
/// charged in the other. It is found by its first entry, whatever it is called and however it looks behind that.
fn check_copies(paths: &[PathBuf], named: Option<&Path>) -> Result<(), SiteError> {
    let mut all: Vec<PathBuf> = paths.to_vec();
    if let Some(named) = named {
        // Its folder may be gone or closed to us; opening the ledger says so.
        let folder = named.parent().and_then(|folder| all_in(folder).ok()).unwrap_or_default();
        let further = folder.into_iter().chain([named.to_owned()]);
        for path in further {
            if !all.iter().any(|known| is_same(known, &path)) {
                all.push(path);
            }
        }
    }
    let known: Vec<(LedgerDigest, PathBuf)> =
        all.into_iter().filter_map(|path| Some((SiteLedger::genesis_at(&path)?, path))).collect();
    for (k, (genesis, second)) in known.iter().enumerate() {
        if let Some((_, first)) = known[..k].iter().find(|(other, _)| other == genesis) {
            return Err(SiteError::CopiedLedger { first: first.clone(), second: second.clone() });
        }
    }
    Ok(())
}

/// Records have one ledger: with two, each would be charged a part of what both have spent.
fn check_fingerprints(ledgers: &[LedgerView]) -> Result<(), SiteError> {
    for (k, second) in ledgers.iter().enumerate() {
        let is_twin = |first: &&LedgerView| first.state().fingerprint() == second.state().fingerprint();
        if let Some(first) = ledgers[..k].iter().find(is_twin) {
            let (first, second) = (first.path().to_owned(), second.path().to_owned());
            return Err(SiteError::TwoLedgers { first, second });
        }
    }
    Ok(())
}

/// Records that a ledger was once about are not those of other people.
fn check_new(ledgers: &[LedgerView], fingerprint: &str, file: &Path) -> Result<(), SiteError> {
    match ledgers.iter().find(|view| view.state().has_known(fingerprint)) {
        None => Ok(()),
        Some(view) => Err(SiteError::WhichLedger(format!(
            "the records in {} are an earlier state of those of the ledger {name}, to the byte, so they are not of other people: start \
             with `--data-updates {name}`, and what was spent stays spent",
            file.display(),
            name = stem(view.path())
        ))),
    }
}

/// Whether a ledger in `folder` that is not the one with the first entry `own`, and so no copy of it, has at this entry a release
/// with this SHA-256; where it is known which ledger is meant, that one.
pub(super) fn has_release(
    folder: &Path,
    own: LedgerDigest,
    meant: Option<[u8; 32]>,
    entry: u64,
    digest: &[u8; 32],
) -> bool {
    let is_it = |payload: &Vec<u8>| Sha256::digest(payload)[..] == digest[..];
    let others =
        all_in(folder).unwrap_or_default().into_iter().filter_map(|path| SiteLedger::read(&path).ok());
    others
        .filter(|view| view.state().genesis() != own)
        .filter(|view| meant.is_none_or(|meant| view.state().genesis().0 == meant))
        .any(|view| view.entries().iter().any(|e| e.seq == entry && e.payload.as_ref().is_some_and(is_it)))
}

/// The files of a site's ledgers.
pub(crate) fn ledgers_of(home: &Home) -> Result<Vec<PathBuf>, SiteError> {
    let mut paths = all_in(&home.ledgers())?;
    if let Some(named) =
        home.config().ledger().filter(|named| named.exists() && !paths.iter().any(|p| is_same(p, named)))
    {
        paths.push(named.to_owned());
    }
    Ok(paths)
}

pub(super) fn all_in(folder: &Path) -> Result<Vec<PathBuf>, SiteError> {
    let entries = std::fs::read_dir(folder)
        .map_err(|e| SiteError::Output { path: folder.to_owned(), reason: e.to_string() })?;
    let mut ledgers: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "ledger"))
        .collect();
    ledgers.sort();
    Ok(ledgers)
}

/// Whether two paths lead to the same file.
fn is_same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(a) == real(b)
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "records".to_owned(), |s| s.to_string_lossy().into_owned())
}

fn no_such(name: &str, folder: &Path, names: &[String]) -> String {
    format!("there is no ledger {name} in {}: {}", folder.display(), names.join(", "))
}

fn changed(file: &Path, names: &[String]) -> String {
    format!(
        "the records in {} are not those of the ledger {}: if they are a new state of the same data, start with `--data-updates {}`, and what was spent stays spent; if they are of other people altogether, start with `--new-data NAME`",
        file.display(),
        names.join(" or "),
        names.first().map_or("NAME", String::as_str)
    )
}
