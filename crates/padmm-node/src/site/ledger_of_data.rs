//! Which ledger the records of a site belong to. A ledger is found by a keyed fingerprint of the file of records; records that have
//! changed do not get a new budget by themselves.

use std::path::{Path, PathBuf};

use padmm_privacy::Budget;
use sha2::{Digest, Sha256};

use super::SiteError;
use crate::identity::{Home, to_hex};
use crate::ledger::{LedgerView, Opening, SiteLedger};

/// What a person says about records that no ledger knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DataChoice {
    /// Nothing: only a site without any ledger gets a new one.
    #[default]
    Known,
    /// They are a new state of the data of this ledger, which goes on.
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

/// Finds, or begins, the ledger of the site's records.
pub(super) fn open(home: &Home, choice: &DataChoice) -> Result<SiteLedger, SiteError> {
    let (file, fingerprint) = of_records(home)?;
    let cap = home.config().cap()?.budget()?;
    let ledger = match home.config().ledger() {
        Some(path) if path.exists() => known(path, &fingerprint, &file, choice)?,
        Some(path) => begin(path, &fingerprint, cap)?,
        None => in_folder(home, &file, &fingerprint, cap, choice)?,
    };
    check_cap(&ledger, cap)?;
    Ok(ledger)
}

fn check_cap(ledger: &SiteLedger, config: Budget) -> Result<(), SiteError> {
    let recorded = ledger.cap();
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

fn begin(path: &Path, fingerprint: &str, cap: Budget) -> Result<SiteLedger, SiteError> {
    let data_set =
        path.file_stem().map_or_else(|| "records".to_owned(), |s| s.to_string_lossy().into_owned());
    let fingerprint = fingerprint.to_owned();
    Ok(SiteLedger::create(path, Opening { data_set, fingerprint, cap })?)
}

/// A ledger that was named: it goes on with other records only if a person said that they are an update.
fn known(path: &Path, fingerprint: &str, file: &Path, choice: &DataChoice) -> Result<SiteLedger, SiteError> {
    let mut ledger = SiteLedger::open(path)?;
    if ledger.fingerprint() == fingerprint {
        return Ok(ledger);
    }
    let name = stem(path);
    if *choice == DataChoice::Update(name.clone()) {
        ledger.change_data(fingerprint)?;
        return Ok(ledger);
    }
    Err(SiteError::WhichLedger(changed(file, &[name])))
}

/// Whether a ledger in `folder` beside `own` has a release at this entry with these bytes.
pub(super) fn has_release(folder: &Path, own: &Path, entry: u64, bytes: &[u8]) -> bool {
    let Ok(files) = std::fs::read_dir(folder) else { return false };
    let others = files
        .flatten()
        .map(|f| f.path())
        .filter(|p| p != own && p.extension().is_some_and(|e| e == "ledger"));
    others
        .filter_map(|path| SiteLedger::read(&path).ok())
        .any(|view| view.entries().iter().any(|e| e.seq == entry && e.payload.as_deref() == Some(bytes)))
}

fn in_folder(
    home: &Home,
    file: &Path,
    fingerprint: &str,
    cap: Budget,
    choice: &DataChoice,
) -> Result<SiteLedger, SiteError> {
    let folder = home.ledgers();
    let ledgers = all_in(&folder)?;
    for path in &ledgers {
        if SiteLedger::read(path)?.state().fingerprint() == fingerprint {
            return Ok(SiteLedger::open(path)?);
        }
    }
    let names: Vec<String> = ledgers.iter().map(|p| stem(p)).collect();
    let path = |name: &str| folder.join(format!("{name}.ledger"));
    match choice {
        DataChoice::Update(name) if names.contains(name) => known(&path(name), fingerprint, file, choice),
        DataChoice::Update(name) => {
            let there = names.join(", ");
            Err(SiteError::WhichLedger(format!("there is no ledger {name} in {}: {there}", folder.display())))
        }
        DataChoice::New(name) => begin(&path(name), fingerprint, cap),
        DataChoice::Known if names.is_empty() => begin(&path(&stem(file)), fingerprint, cap),
        DataChoice::Known => Err(SiteError::WhichLedger(changed(file, &names))),
    }
}

/// The ledger of the site's records as it stands, for reading; `None` if they have none yet.
pub(super) fn find(home: &Home) -> Result<Option<LedgerView>, SiteError> {
    let (_, fingerprint) = of_records(home)?;
    let ledgers = match home.config().ledger() {
        Some(path) if path.exists() => vec![path.to_owned()],
        Some(_) => vec![],
        None => all_in(&home.ledgers())?,
    };
    for path in &ledgers {
        let view = SiteLedger::read(path)?;
        if view.state().fingerprint() == fingerprint {
            return Ok(Some(view));
        }
    }
    Ok(None)
}

fn all_in(folder: &Path) -> Result<Vec<PathBuf>, SiteError> {
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

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "records".to_owned(), |s| s.to_string_lossy().into_owned())
}

fn changed(file: &Path, names: &[String]) -> String {
    format!(
        "the records in {} are not those of the ledger {}: if they are a new state of the same data, start with `--data-updates {}`, and what was spent stays spent; if they are of other people altogether, start with `--new-data NAME`",
        file.display(),
        names.join(" or "),
        names.first().map_or("NAME", String::as_str)
    )
}
