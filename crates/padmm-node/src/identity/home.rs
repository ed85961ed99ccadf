//! A site's folder: keys, certificate, card, the cards of others, and what its runs leave.
//!
//! Several files change together when keys or the certificate do. They are written beside the old ones as `*.next`, with
//! the new card first; renaming the card is the moment from which the change holds. Whoever opens the home next finishes
//! a change that holds, and removes one that does not.

use std::fs::File;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use zeroize::Zeroizing;

use super::config::{draft_text, parse_listen};
use super::private_file::{
    close_folder, create, create_secret, keep_secret, read_key, read_secret, sync_folder,
};
use super::{Cap, Card, CardStore, Certificate, IdentityError, KeyError, SecretKey, SiteConfig, SiteName};

const CONFIG: &str = "site.toml";
const IDENTITY: &str = "identity.key";
const TRANSPORT: &str = "transport.key";
const DATASET: &str = "dataset.key";
const CERTIFICATE: &str = "certificate.pem";
const CARD: &str = "card.toml";
const LOCK: &str = ".lock";
/// Files that a change may replace, apart from the card.
const CHANGING: [&str; 3] = [IDENTITY, TRANSPORT, CERTIFICATE];

/// What a new home is made from.
#[derive(Clone, Debug)]
pub struct InitRequest {
    /// As cards and plans name the site.
    pub name: SiteName,
    /// Where others reach it, as `host:port`.
    pub addresses: Vec<String>,
    /// The UDP address that it listens on.
    pub listen: String,
    /// URL of a relay, if it needs one.
    pub relay: Option<String>,
    /// Days that its own certificate is valid.
    pub valid_days: u32,
    /// The records, if it is known where they are.
    pub data: Option<PathBuf>,
    /// What all runs may spend, if it is known.
    pub cap: Option<Cap>,
}

impl InitRequest {
    /// How long a new certificate is valid: three years.
    pub const VALID_DAYS: u32 = 3 * 365;
    /// Every address of the machine, port 7447.
    pub const LISTEN: &'static str = "0.0.0.0:7447";

    /// A request with the usual values.
    pub fn new(name: SiteName) -> Self {
        Self {
            name,
            addresses: vec![],
            listen: Self::LISTEN.to_owned(),
            relay: None,
            valid_days: Self::VALID_DAYS,
            data: None,
            cap: None,
        }
    }

    fn check(&self) -> Result<SocketAddr, IdentityError> {
        self.cap.iter().try_for_each(|cap| cap.budget().map(|_| ()))?;
        check_days(self.valid_days)?;
        parse_listen(&self.listen)
    }
}

/// A site's folder, opened and checked.
#[derive(Debug)]
pub struct Home {
    dir: PathBuf,
    config: SiteConfig,
    identity: SecretKey,
    transport: SecretKey,
    dataset: Zeroizing<[u8; 32]>,
    card: Card,
}

impl Home {
    /// Makes a new home with new keys. Nothing may be at `dir`; on failure nothing is left there.
    pub fn init(dir: &Path, request: &InitRequest, now: SystemTime) -> Result<Self, IdentityError> {
        let listen = request.check()?;
        if dir.symlink_metadata().is_ok() {
            return Err(IdentityError::Exists { path: dir.to_owned() });
        }
        let wrong = |problem| IdentityError::Write { path: dir.to_owned(), problem };
        let parent = dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The folder is made beside its place, readable by its owner only, and appears under its name when it is complete.
        let folder = tempfile::Builder::new().prefix(".padmm-").tempdir_in(parent).map_err(wrong)?;
        let at = folder.path();
        close_folder(at)?;
        let (identity, transport) = (SecretKey::generate()?, SecretKey::generate()?);
        let certificate = Certificate::self_signed(&request.name, &identity, now, request.valid_days)?;
        let (addresses, relay) = (request.addresses.clone(), request.relay.clone());
        let card =
            Card::sign(&identity, transport.public(), &request.name, 1, addresses, relay, &certificate)?;
        create_secret(&at.join(IDENTITY), &identity.to_bytes())?;
        create_secret(&at.join(TRANSPORT), &transport.to_bytes())?;
        let dataset = random()?;
        create_secret(&at.join(DATASET), &dataset)?;
        create(&at.join(CERTIFICATE), certificate.pem().as_bytes())?;
        create(&at.join(CARD), card.to_toml().as_bytes())?;
        let config = draft_text(&request.name, listen, request.data.as_deref(), request.cap);
        create(&at.join(CONFIG), config.as_bytes())?;
        for sub in ["cards", "ledgers", "runs"] {
            std::fs::create_dir(at.join(sub)).map_err(wrong)?;
        }
        sync_folder(at)?;
        std::fs::rename(at, dir).map_err(wrong)?;
        // It has moved, so there is nothing left to remove at its first place.
        let _ = folder.keep();
        sync_folder(parent)?;
        Self::open(dir)
    }

    /// Opens a home, and checks that its secrets are secret and its files belong together.
    pub fn open(dir: &Path) -> Result<Self, IdentityError> {
        // Only what is certainly absent may be made anew: a folder that this user may not look into is somebody's home.
        match std::fs::metadata(dir.join(CONFIG)) {
            Ok(found) if found.is_file() => {}
            Err(problem) if !matches!(problem.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(IdentityError::Read { path: dir.join(CONFIG), problem });
            }
            _ => return Err(IdentityError::NoHome { path: dir.to_owned() }),
        }
        let _lock = lock(dir)?;
        finish_change(dir)?;
        Self::load(dir)
    }

    fn load(dir: &Path) -> Result<Self, IdentityError> {
        let config = SiteConfig::read(&dir.join(CONFIG))?;
        let identity = read_key(&dir.join(IDENTITY))?;
        let transport = read_key(&dir.join(TRANSPORT))?;
        let dataset = read_secret(&dir.join(DATASET))?;
        let card = Card::read(&dir.join(CARD))?;
        let path = dir.join(CERTIFICATE);
        let pem = std::fs::read_to_string(&path).map_err(|problem| IdentityError::Read { path, problem })?;
        let belong = |fits: bool, first, second| {
            let home = dir.to_owned();
            if fits { Ok(()) } else { Err(IdentityError::Mismatch { home, first, second }) }
        };
        belong(card.name() == config.name(), CONFIG, CARD)?;
        belong(*card.identity() == identity.public(), IDENTITY, CARD)?;
        belong(*card.transport() == transport.public(), TRANSPORT, CARD)?;
        belong(card.certificate().pem() == pem, CERTIFICATE, CARD)?;
        Ok(Self { dir: dir.to_owned(), config, identity, transport, dataset, card })
    }

    /// The folder that holds all of it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What its operator decided, from `site.toml`.
    pub fn config(&self) -> &SiteConfig {
        &self.config
    }

    /// As cards and plans name the site.
    pub fn name(&self) -> &SiteName {
        self.card.name()
    }

    /// Signs cards, acceptances and releases.
    pub fn identity(&self) -> &SecretKey {
        &self.identity
    }

    /// The secret half of the key that its connections are pinned to.
    pub fn transport(&self) -> &SecretKey {
        &self.transport
    }

    /// Key of the keyed fingerprint by which a data set is known again.
    pub fn dataset_key(&self) -> &[u8; 32] {
        &self.dataset
    }

    /// The card that it gives to the other sites.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The file of its own card, to be sent to others.
    pub fn card_path(&self) -> PathBuf {
        self.dir.join(CARD)
    }

    /// The cards of the other sites that it knows.
    pub fn cards(&self) -> CardStore {
        CardStore::new(self.dir.join("cards"), self.name().clone())
    }

    /// Where its ledgers are, one for each data set.
    pub fn ledgers(&self) -> PathBuf {
        self.dir.join("ledgers")
    }

    /// The folder of a run: its plan, acceptances and results.
    pub fn run_dir(&self, run: &SiteName) -> PathBuf {
        self.dir.join("runs").join(run.as_str())
    }

    /// A request to an authority, as PEM text.
    pub fn certificate_request(&self) -> Result<String, IdentityError> {
        Certificate::request(self.name(), &self.identity)
    }

    /// Changes the transport key; plans stay valid. A certificate that the site signed itself is renewed, one of an authority
    /// stays.
    pub fn rotate_transport(&mut self, now: SystemTime, valid_days: u32) -> Result<(), IdentityError> {
        check_days(valid_days)?;
        let transport = SecretKey::generate()?;
        let renewed = (self.card.certificate().is_self_signed())
            .then(|| Certificate::self_signed(self.name(), &self.identity, now, valid_days));
        let certificate = renewed.transpose()?;
        self.change(Change { transport: Some(transport), certificate, ..Change::default() })
    }

    /// Changes both keys and signs a new certificate; plans that name the old identity must be made again.
    pub fn rotate_identity(&mut self, now: SystemTime, valid_days: u32) -> Result<(), IdentityError> {
        check_days(valid_days)?;
        let (identity, transport) = (SecretKey::generate()?, SecretKey::generate()?);
        let certificate = Certificate::self_signed(self.name(), &identity, now, valid_days)?;
        let (identity, transport, certificate) = (Some(identity), Some(transport), Some(certificate));
        self.change(Change { identity, transport, certificate, ..Change::default() })
    }

    /// Says where others reach the site from now on, in a new card; plans stay valid.
    pub fn move_to(&mut self, addresses: Vec<String>, relay: Option<String>) -> Result<(), IdentityError> {
        self.change(Change { reach: Some((addresses, relay)), ..Change::default() })
    }

    /// Installs a certificate that an authority issued for the identity key; `pem` may hold intermediate ones after it.
    pub fn certify(&mut self, pem: &str, now: SystemTime) -> Result<(), IdentityError> {
        let certificate = Certificate::from_pem(self.name().as_str(), pem)?;
        certificate.check_owner(self.name(), &self.identity.public())?;
        certificate.check_dates(self.name(), now)?;
        self.change(Change { certificate: Some(certificate), ..Change::default() })
    }

    /// New files and a new card, all or nothing. Keys that are replaced are kept under the serial of their last card.
    fn change(&mut self, change: Change) -> Result<(), IdentityError> {
        let Change { identity, transport, certificate, reach } = change;
        let _lock = lock(&self.dir)?;
        finish_change(&self.dir)?;
        // Another process may have changed the home since it was opened.
        let current = Self::load(&self.dir)?;
        if current.card != self.card {
            return Err(IdentityError::Mismatch {
                home: self.dir.clone(),
                first: CARD,
                second: "opened card",
            });
        }
        let at = |name: &str| self.dir.join(name);
        let serial = self.card.serial();
        let stay = || (self.card.addresses().to_vec(), self.card.relay().map(str::to_owned));
        let (addresses, relay) = reach.unwrap_or_else(stay);
        let card = Card::sign(
            identity.as_ref().unwrap_or(&self.identity),
            transport.as_ref().unwrap_or(&self.transport).public(),
            self.name(),
            serial + 1,
            addresses,
            relay,
            certificate.as_ref().unwrap_or(self.card.certificate()),
        )?;
        create(&next(&at(CARD)), card.to_toml().as_bytes())?;
        for (name, key) in [(IDENTITY, &identity), (TRANSPORT, &transport)] {
            if let Some(key) = key {
                keep_secret(&at(name), &at(&format!("{name}.{serial}")))?;
                create_secret(&next(&at(name)), &key.to_bytes())?;
            }
        }
        if let Some(certificate) = &certificate {
            create(&next(&at(CERTIFICATE)), certificate.pem().as_bytes())?;
        }
        sync_folder(&self.dir)?;
        rename(&next(&at(CARD)), &at(CARD))?;
        sync_folder(&self.dir)?;
        finish_change(&self.dir)?;
        *self = Self::load(&self.dir)?;
        Ok(())
    }
}

/// What is new in a home; the rest stays.
#[derive(Default)]
struct Change {
    identity: Option<SecretKey>,
    transport: Option<SecretKey>,
    certificate: Option<Certificate>,
    /// New addresses and relay; none keeps the old ones.
    reach: Option<(Vec<String>, Option<String>)>,
}

/// Finishes a change whose card has been renamed; takes back one whose card has not.
fn finish_change(dir: &Path) -> Result<(), IdentityError> {
    let card = next(&dir.join(CARD));
    let holds = !card.exists();
    for name in CHANGING {
        let (to, from) = (dir.join(name), next(&dir.join(name)));
        match (from.exists(), holds) {
            (false, _) => {}
            (true, true) => rename(&from, &to)?,
            (true, false) => remove(&from)?,
        }
    }
    // The card goes last: while it is there, what is beside it does not hold.
    if holds { Ok(()) } else { remove(&card) }
}

/// One process at a time looks at keys or changes them.
fn lock(dir: &Path) -> Result<File, IdentityError> {
    let path = dir.join(LOCK);
    let wrong = |problem| IdentityError::Write { path: path.clone(), problem };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(wrong)?;
    file.lock().map_err(wrong)?;
    Ok(file)
}

fn next(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".next");
    PathBuf::from(name)
}

fn rename(from: &Path, to: &Path) -> Result<(), IdentityError> {
    std::fs::rename(from, to).map_err(|problem| IdentityError::Write { path: to.to_owned(), problem })
}

fn remove(path: &Path) -> Result<(), IdentityError> {
    std::fs::remove_file(path).map_err(|problem| IdentityError::Write { path: path.to_owned(), problem })
}

fn check_days(days: u32) -> Result<(), IdentityError> {
    if (1..=36_500).contains(&days) {
        return Ok(());
    }
    let rule = "at least 1 and at most 36500";
    Err(IdentityError::Setting { key: "valid-days", found: days.to_string(), rule })
}

fn random() -> Result<Zeroizing<[u8; 32]>, IdentityError> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *bytes).map_err(|e| KeyError::NoRandomness { reason: e.to_string() })?;
    Ok(bytes)
}
