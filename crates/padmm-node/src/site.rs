//! A site at work: its home, the contract, the records, the ledger and the network become a session, and the session runs until
//! there is a model.

mod foresee;
mod ledger_of_data;
mod outputs;
mod records;
mod remembered;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use padmm_core::agent::{Agent, AgentSetup};
use padmm_core::data::Dataset;
use padmm_privacy::{Gate, NoiseSource, Payload, PrivacyError, RequiredCertificate, SecureNoise};

use crate::contract::{self, Acceptance, Contract, ContractError, difference};
use crate::frame::{Accepted, Frame, Origin, Speech, largest_frame};
use crate::identity::{Expiry, Home, IdentityError, PublicKey, SiteName, to_hex};
use crate::journal::{Journal, Level, Sent};
use crate::ledger::{GateLedger, LedgerError, RunStart, SealRequest, SiteLedger};
use crate::mailbox::Mailbox;
use crate::session::{Session, SessionError, SessionSetup, Silence};
use crate::shelf::Shelf;
use crate::transport::Transport;
use crate::transport::quic::{Peer, QuicSetup, QuicTransport, TransportError};
use padmm_core::message::Stage;

pub use foresee::{Foreseen, foresee};
pub use ledger_of_data::{DataChoice, fingerprint};
pub use outputs::{Outputs, RunResult};
pub use records::encode_records;

/// Why a site does not run, or stops.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// Who the site is.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// What it agreed to.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// Its records.
    #[error(transparent)]
    Data(#[from] padmm_data::DataError),
    /// Its ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The network.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The run.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The privacy core.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// The plan was not accepted here.
    #[error("{site} has not accepted a plan named {run}{accepted}: read the plan with `padmm plan check PLAN.toml` and accept it with `padmm plan accept PLAN.toml --home {home} --cards DIR`", home = home.display())]
    NotAccepted {
        /// This site.
        site: String,
        /// The run's name.
        run: String,
        /// Its folder.
        home: PathBuf,
        /// The plans that it has accepted, in words; or nothing.
        accepted: String,
    },
    /// Other records than the plan says.
    #[error("{file} has {found} rows and the plan says {planned} records for {site}: every row is a record, whatever it says, and the noise follows from their number, so it must be the same. Make a new plan, or bring back the file that was planned with", file = file.display())]
    Records {
        /// The file.
        file: PathBuf,
        /// This site.
        site: String,
        /// Rows here.
        found: usize,
        /// Records in the plan.
        planned: usize,
    },
    /// Records of the other kind.
    #[error("the plan's loss, {loss}, does not fit the label of its schema")]
    Label {
        /// The loss.
        loss: String,
    },
    /// A plan without noise.
    #[error("the plan has no noise: a site releases nothing that is not protected")]
    NoNoise,
    /// Which ledger these records belong to is not clear.
    #[error("{0}")]
    WhichLedger(String),
    /// One ledger and a copy of it.
    #[error("{first} and {second} begin with the same entry: one is a copy of the other, and what left since is charged in only one of them. Find the newest with `padmm ledger verify`, keep that one under its own name, and move the other, with its .head file, out of the folder; never go on from an older one", first = first.display(), second = second.display())]
    CopiedLedger {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// Two ledgers of the same records.
    #[error("{first} and {second} are both of the same records, by their fingerprint: what was spent is spread over the two, and neither says how much it is. Nothing may leave; count both as spent together, and ask whoever made the second", first = first.display(), second = second.display())]
    TwoLedgers {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A run that was begun with other records.
    #[error("this run was begun in the ledger {ledger}, and the records in {file} have another: a run is on one set of records from its first round to its last. Bring back the records that it was begun with, or make a new plan", ledger = ledger.display(), file = file.display())]
    RunElsewhere {
        /// The records.
        file: PathBuf,
        /// Where the run is.
        ledger: PathBuf,
    },
    /// The cap in the configuration is not the ledger's.
    #[error("site.toml allows epsilon = {config} at delta = {config_delta}, and the ledger {ledger} has epsilon = {recorded} at delta = {recorded_delta}: the ledger decides. Change it on purpose with `padmm ledger cap {ledger} --epsilon {config} --delta {config_delta}`, or correct site.toml", ledger = ledger.display())]
    Cap {
        /// In site.toml.
        config: f64,
        /// Its δ.
        config_delta: f64,
        /// In the ledger.
        recorded: f64,
        /// Its δ.
        recorded_delta: f64,
        /// The ledger.
        ledger: PathBuf,
    },
    /// A result cannot be written.
    #[error("{path} cannot be written ({reason}); nothing is lost, start again when it can be", path = path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// Makes the noise of a site: its place in the contract, and how many integers it has drawn in earlier processes.
type NoiseMaker = Box<dyn Fn(usize, u64) -> Box<dyn NoiseSource>>;

/// What a site takes from outside beside its files: where its noise comes from.
pub struct World {
    noise: NoiseMaker,
}

impl World {
    /// The world of real sites: noise from the operating system, exact, not repeatable.
    pub fn real() -> Self {
        World { noise: Box::new(|_, _| Box::new(SecureNoise)) }
    }

    /// A made-up world for a test program. Nothing that comes out of it is private.
    pub fn for_tests(noise: impl Fn(usize, u64) -> Box<dyn NoiseSource> + 'static) -> Self {
        World { noise: Box::new(noise) }
    }
}

/// What a person may say when a site is started.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// What is known of the records.
    pub data: DataChoice,
    /// Whether to stay for neighbours that still need something.
    pub leave_when_done: bool,
    /// Keep the ledger in memory: for measurements, never for records.
    pub ledger_in_memory: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// There is a model.
    Finished,
    /// The site was asked to stop; started again, it goes on.
    Stopped,
}

/// The first of a site's steps: everything that can be checked without records and without a network.
pub struct Prepared {
    home: Home,
    contract: Arc<Contract>,
    me: usize,
    folder: PathBuf,
    accepted: Vec<Accepted>,
    cards: Vec<(usize, crate::identity::Card)>,
    warnings: Vec<String>,
}

impl Prepared {
    /// Reads the home and the accepted plan `run`.
    pub fn read(home: &Path, run: &SiteName, now: SystemTime) -> Result<Self, SiteError> {
        let home = Home::open(home)?;
        let folder = home.run_dir(run);
        let plan = folder.join("plan.toml");
        let not_accepted = || SiteError::NotAccepted {
            site: home.name().to_string(),
            run: run.to_string(),
            home: home.dir().to_owned(),
            accepted: match accepted_runs(&home) {
                names if names.is_empty() => String::new(),
                names => format!(" (it has accepted {})", names.join(", ")),
            },
        };
        if !plan.exists() {
            return Err(not_accepted());
        }
        let contract = Arc::new(Contract::read(&plan)?);
        let me = contract.site_index(home.name())?;
        let mut warnings = vec![];
        let mut note = |card: &crate::identity::Card, expiry: Expiry| {
            if let Expiry::Soon { days } = expiry {
                let name = card.name();
                warnings.push(format!("the certificate of {name} expires in {days} days: renew it and send the new card to the others"));
            }
        };
        note(home.card(), contract.check_card(home.card(), now)?);
        let mut cards = vec![];
        for &j in contract.neighbours(me) {
            let card = home.cards().load(&contract.sites()[j].name)?;
            note(&card, contract.check_card(&card, now)?);
            cards.push((j, card));
        }
        let accepted = read_acceptances(&folder, &contract, &home, &cards)?;
        if !accepted.iter().any(|a| usize::from(a.site) == me) {
            return Err(not_accepted());
        }
        Ok(Prepared { home, contract, me, folder, accepted, cards, warnings })
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// This site's name.
    pub fn name(&self) -> &SiteName {
        self.home.name()
    }

    /// How the log is written.
    pub fn log_format(&self) -> crate::identity::LogFormat {
        self.home.config().log()
    }

    /// What the site agreed to.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    fn names(&self) -> Vec<String> {
        self.contract.sites().iter().map(|s| s.name.to_string()).collect()
    }

    /// The site's records: every row of its file is one, and they must be as many as the plan says.
    pub fn records(&self) -> Result<Dataset, SiteError> {
        Ok(encode_records(&self.home, &self.contract, self.me)?.records)
    }

    /// Runs until there is a model, the site is asked to stop, or something is wrong.
    pub fn run(self, world: &World, options: &RunOptions, journal: Arc<Outputs>) -> Result<Ended, SiteError> {
        for warning in &self.warnings {
            journal.log(Level::Warning, "expiry", warning);
        }
        let encoded = encode_records(&self.home, &self.contract, self.me)?;
        for warning in records::own_eyes(&encoded) {
            journal.log(Level::Warning, "records", &warning);
        }
        let records = Arc::new(encoded.records);
        let ledger = if options.ledger_in_memory {
            ledger_of_data::in_memory(&self.home)?
        } else {
            ledger_of_data::open(&self.home, &options.data, &self.contract.hash().to_string())?
        };
        let setup = self.session(world, records, ledger, Arc::clone(&journal) as Arc<dyn Journal>)?;
        journal.begin(&self.names(), &setup.start);
        let mailbox = Arc::new(Mailbox::new(self.contract.sites().len()));
        let transport = QuicTransport::start(self.quic_setup(&setup.shelf, &mailbox, &journal))?;
        let clock = Instant::now();
        let session = Session::new(setup, clock.elapsed())?;
        let done = drive(session, &transport, &clock, &self, &journal, options)?;
        transport.close(done == Ended::Finished);
        Ok(done)
    }

    /// This site's side of the run, before the first step: what [`Prepared::run`] puts on the network, and a test on a made-up one.
    pub fn session(
        &self,
        world: &World,
        records: Arc<Dataset>,
        ledger: SiteLedger,
        journal: Arc<dyn Journal>,
    ) -> Result<SessionSetup, SiteError> {
        let n_features = self.contract.space().n_features();
        let drawn = ledger.state().run(&self.contract.hash().to_string()).map_or(0, |run| run.n_released());
        let noise = (world.noise)(self.me, (drawn * n_features) as u64);
        let start = foresee::run_start(&self.contract, self.me, self.home.name(), noise.description())?;
        let ledger = Arc::new(Mutex::new(ledger));
        lock(&ledger).check_run(&start)?;
        let origin = Origin { plan: self.contract.hash().0, sender: self.me as u16 };
        let shelf = Arc::new(Shelf::new(origin, self.home.identity().clone(), self.contract.to_toml()));
        let agent = self.agent(records, noise, &ledger, &start, &shelf)?;
        self.session_setup(agent, start, ledger, shelf, journal)
    }

    fn agent(
        &self,
        records: Arc<Dataset>,
        noise: Box<dyn NoiseSource>,
        ledger: &Arc<Mutex<SiteLedger>>,
        start: &RunStart,
        shelf: &Arc<Shelf>,
    ) -> Result<Agent, SiteError> {
        let (contract, terms) = (&self.contract, self.contract.terms());
        let (setup, problem) =
            AgentSetup::of(contract.plan(), contract.graph(), terms, self.me, contract.space(), records);
        let required = RequiredCertificate { modulus: setup.terms.modulus, tolerance: setup.terms.tolerance };
        let schedule = setup.terms.noise.as_ref().ok_or(SiteError::NoNoise)?;
        let mechanism = schedule.mechanism(required)?;
        let seal = {
            let shelf = Arc::clone(shelf);
            move |r: &SealRequest<'_>| {
                let speech = Speech {
                    origin: shelf.origin(),
                    stage: Stage::Model,
                    turn: r.round,
                    entry: r.seq,
                    head: r.previous_head.0,
                    payload: r.payload.clone(),
                };
                shelf.sign(&Frame::Speech(speech)).to_vec()
            }
        };
        let gate_ledger = GateLedger::new(Arc::clone(ledger), start, Box::new(seal), Box::new(open_release))?;
        let gate = Gate::new(start.run.clone(), start.site.clone(), mechanism, noise, Box::new(gate_ledger));
        Ok(Agent::new(setup, problem, gate))
    }

    fn session_setup(
        &self,
        agent: Agent,
        start: RunStart,
        ledger: Arc<Mutex<SiteLedger>>,
        shelf: Arc<Shelf>,
        journal: Arc<dyn Journal>,
    ) -> Result<SessionSetup, SiteError> {
        let terms = self.contract.terms();
        let mut neighbours = vec![];
        for (site, card) in &self.cards {
            let noise = terms.agents[*site].noise.as_ref().and_then(|s| s.as_gaussian()).cloned();
            let (folder, plan) = (self.home.ledgers(), self.contract.hash().0);
            neighbours.push(remembered::neighbour(*site, card, noise, &lock(&ledger), &folder, &plan)?);
        }
        let silence = match self.contract.silence() {
            contract::Silence::Wait => Silence::Wait,
            contract::Silence::Leave { after_seconds } => {
                Silence::LeaveAfter(Duration::from_secs(after_seconds.into()))
            }
        };
        let check = {
            let contract = Arc::clone(&self.contract);
            move |word: &Accepted| is_acceptance(&contract, word)
        };
        let (folder, own) = (self.home.ledgers(), lock(&ledger).genesis());
        let elsewhere = move |ledger: Option<[u8; 32]>, entry: u64, digest: &[u8; 32]| {
            ledger_of_data::has_release(&folder, own, ledger, entry, digest)
        };
        let compare = {
            let contract = Arc::clone(&self.contract);
            move |text: &str| compare_plans(&contract, text)
        };
        Ok(SessionSetup {
            names: self.names(),
            start,
            key: self.home.identity().public(),
            neighbours,
            silence,
            accepted: self.accepted.clone(),
            check_accepted: Box::new(check),
            compare_plans: Box::new(compare),
            has_elsewhere: Box::new(elsewhere),
            epsilons: terms.agents[self.me]
                .noise
                .as_ref()
                .map_or(vec![], |n| n.epsilon_curve().iter().map(|e| e.exact).collect()),
            agent,
            ledger,
            shelf,
            journal,
        })
    }

    fn quic_setup(&self, shelf: &Arc<Shelf>, mailbox: &Arc<Mailbox>, journal: &Arc<Outputs>) -> QuicSetup {
        let peer = |(site, card): &(usize, crate::identity::Card)| Peer {
            site: *site,
            name: card.name().to_string(),
            key: *card.transport(),
            addresses: card.addresses().to_vec(),
            relay: card.relay().map(str::to_owned),
        };
        let journal = Arc::clone(journal);
        let n_features = self.contract.space().n_features();
        QuicSetup {
            me: self.me,
            secret: self.home.transport().to_bytes(),
            listen: self.home.config().listen(),
            relay: self.home.card().relay().map(str::to_owned),
            peers: self.cards.iter().map(peer).collect(),
            largest_frame: largest_frame(
                n_features,
                self.contract.sites().len(),
                self.contract.to_toml().len(),
            ),
            shelf: Arc::clone(shelf),
            mailbox: Arc::clone(mailbox),
            on_answer: Arc::new(move |to, stage, turn, bytes| {
                journal.sent(&Sent { to, stage, turn, bytes, again: true });
            }),
        }
    }
}

/// Runs the session until its end; the model is written as soon as it is there.
fn drive(
    mut session: Session,
    transport: &QuicTransport,
    clock: &Instant,
    site: &Prepared,
    journal: &Outputs,
    options: &RunOptions,
) -> Result<Ended, SiteError> {
    let mut written = false;
    loop {
        let now = clock.elapsed();
        match session.step(now, transport) {
            Err(error @ SessionError::Alone { .. }) => {
                journal.write_partial(site, &session)?;
                return Err(error.into());
            }
            result => result?,
        }
        if transport.mailbox().is_stopped() {
            return Ok(if written { Ended::Finished } else { Ended::Stopped });
        }
        if !written && let Some(outcome) = session.outcome() {
            journal.write_model(site, &session, &outcome)?;
            session.finish()?;
            written = true;
            let model = site.folder.join("model.json");
            journal.log(Level::Info, "model", &format!("the model is written: {}", model.display()));
        }
        if written && (options.leave_when_done || session.everybody_is_done()) {
            return Ok(Ended::Finished);
        }
        let patience = session.next_deadline(now).saturating_sub(clock.elapsed());
        if let Some(event) = transport.mailbox().wait(patience) {
            session.handle(clock.elapsed(), event, transport)?;
        }
    }
}

fn lock(ledger: &Arc<Mutex<SiteLedger>>) -> std::sync::MutexGuard<'_, SiteLedger> {
    ledger.lock().expect("the ledger's holders do not panic")
}

/// The integers of a release from the bytes that left.
pub fn open_release(bytes: &[u8]) -> Result<Payload, String> {
    match Frame::decode(bytes) {
        Ok(Frame::Speech(speech)) => Ok(speech.payload),
        Ok(_) => Err("it is no release".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn is_acceptance(contract: &Contract, word: &Accepted) -> bool {
    let (Some(site), Ok(key)) =
        (contract.sites().get(usize::from(word.site)), PublicKey::from_bytes(&word.key))
    else {
        return false;
    };
    let (plan, site) = (contract.hash(), site.name.clone());
    let acceptance = Acceptance { format: contract::CONTRACT_FORMAT, plan, site, signature: word.signature };
    acceptance.verify(contract, &key).is_ok()
}

fn compare_plans(here: &Contract, text: &str) -> Vec<String> {
    match Contract::from_toml(text, Path::new("the other plan")) {
        Ok(there) => difference(here, &there).iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!("its plan is not understood here ({error})")],
    }
}

/// The words that are in the run's folder: this site's own, and those that others sent as files.
fn read_acceptances(
    folder: &Path,
    contract: &Contract,
    home: &Home,
    cards: &[(usize, crate::identity::Card)],
) -> Result<Vec<Accepted>, SiteError> {
    let mut found = vec![];
    for (i, site) in contract.sites().iter().enumerate() {
        let path = folder.join(format!("{}.accept", site.name));
        if !path.is_file() {
            continue;
        }
        let known = cards.iter().find(|c| c.0 == i).map(|c| *c.1.identity());
        let own = (site.name == *home.name()).then(|| home.identity().public());
        let stored = || home.cards().find(&site.name).ok().flatten().map(|c| *c.identity());
        // Without a card of theirs, the word of a site that is no neighbour comes over the network, with its key.
        let Some(key) = own.or(known).or_else(stored) else { continue };
        let acceptance = Acceptance::read(&path)?;
        acceptance.verify(contract, &key)?;
        found.push(Accepted { site: i as u16, key: key.to_bytes(), signature: acceptance.signature });
    }
    Ok(found)
}

/// The names of the plans that a site has accepted.
fn accepted_runs(home: &Home) -> Vec<String> {
    let runs = std::fs::read_dir(home.dir().join("runs")).into_iter().flatten().flatten();
    let mut names: Vec<String> = runs
        .filter(|run| run.path().join(format!("{}.accept", home.name())).is_file())
        .map(|run| run.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Hexadecimal digits of the first bytes of a hash, for people.
pub fn short_hash(hash: &[u8; 32]) -> String {
    to_hex(&hash[..6])
}
