//! A site at work: its home, the contract, the records, the ledger and the network become a session, and the session runs until
//! there is a model.

mod acceptances;
mod ended;
mod error;
mod ledger_of_data;
mod noise_ahead;
mod outputs;
mod own_model;
mod projected_spending;
mod records;
mod remembered;
mod status;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use padmm_core::agent::{Agent, AgentSetup};
use padmm_core::data::Dataset;
use padmm_core::message::{SiteIndex, Turn};
use padmm_privacy::{Gate, NoiseSource, Payload, RequiredCertificate, SecureNoise};

use crate::clock;
use crate::contract::{Contract, difference};
use crate::frame::{Accepted, Frame, ModelFrame, Origin, largest_frame};
use crate::identity::{Card, Expiry, Home, LogFormat, SiteName, WayOut};
use crate::journal::{Journal, Level, Sent};
use crate::ledger::{GateLedger, RunStart, SealRequest, SiteLedger};
use crate::mailbox::Mailbox;
use crate::outbox::Outbox;
use crate::session::{Session, SessionError, SessionSetup};
use crate::transport::quic::{PeerAddress, QuicSetup, QuicTransport};

pub use acceptances::accepted_runs;
pub use ended::status_of;
pub use error::SiteError;
pub(crate) use ledger_of_data::ledgers_of;
pub use ledger_of_data::{DataChoice, fingerprint};
use noise_ahead::NoiseAhead;
pub use outputs::{Outputs, RunResult, utc};
pub use own_model::{OWN_MODEL, own_model};
pub use projected_spending::{ProjectedSpending, projected_spending};
pub use records::encode_records;
use status::StatusWriter;
pub(crate) use status::free_bytes;
pub use status::{
    CertificateStatus, EgressLine, EgressStatus, LogLine, NeighbourStatus, PrivacyStatus, RouteStatus,
    SiteState, SiteStatus,
};

/// Makes the noise of a site: which of the plan's sites it is, and how many integers it has drawn in earlier processes.
type NoiseMaker = Box<dyn Fn(SiteIndex, u64) -> Box<dyn NoiseSource>>;

/// Where a site's noise comes from.
pub struct NoiseProvider {
    make: NoiseMaker,
    /// Whether the next release's noise is drawn in a thread of its own, while the site waits for its neighbours.
    ahead: bool,
}

impl NoiseProvider {
    /// For real sites: from the operating system's randomness, exact, not repeatable.
    pub fn real() -> Self {
        Self { make: Box::new(|_, _| Box::new(SecureNoise)), ahead: true }
    }

    /// For a test program, which may make noise that can be repeated. Nothing that comes out of it is private.
    pub fn for_tests(noise: impl Fn(SiteIndex, u64) -> Box<dyn NoiseSource> + 'static) -> Self {
        Self { make: Box::new(noise), ahead: false }
    }
}

/// How often people are shown what is new.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// What a person may say when a site is started.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// What is known of the records.
    pub data: DataChoice,
    /// Leave as soon as the model is written, without staying for neighbours that still need something.
    pub leave_when_done: bool,
    /// Keep the ledger in memory: for measurements, never for records.
    pub ledger_in_memory: bool,
}

/// How a run ended that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The run came to its end, and its model is written.
    Finished,
    /// The site was asked to stop; started again, it continues.
    Stopped,
}

/// A site and one plan that it has accepted: everything that can be checked without records and without a network.
pub struct Site {
    home: Home,
    contract: Arc<Contract>,
    me: SiteIndex,
    folder: PathBuf,
    accepted: Vec<Accepted>,
    cards: Vec<(SiteIndex, Card)>,
    warnings: Vec<String>,
}

impl Site {
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
        let me = SiteIndex(contract.site_index(home.name())?);
        let mut warnings = vec![];
        let mut note = |card: &Card, expiry: Expiry| {
            if let Expiry::Soon { days } = expiry {
                let name = card.name();
                warnings.push(format!("the certificate of {name} expires in {days} days: renew it and send the new card to the others"));
            }
        };
        note(home.card(), contract.check_card(home.card(), now)?);
        let mut cards = vec![];
        for &j in contract.neighbours(me.0) {
            let card = home.cards().load(&contract.sites()[j].name)?;
            note(&card, contract.check_card(&card, now)?);
            cards.push((SiteIndex(j), card));
        }
        let accepted = acceptances::read_acceptances(&folder, &contract, &home, &cards)?;
        if !accepted.iter().any(|a| a.site == me) {
            return Err(not_accepted());
        }
        Ok(Self { home, contract, me, folder, accepted, cards, warnings })
    }

    /// Where the plan, the acceptances and the results of the run are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// As cards and plans name the site.
    pub fn name(&self) -> &SiteName {
        self.home.name()
    }

    /// Whether the log is for people or for programs, as `site.toml` says.
    pub fn log_format(&self) -> LogFormat {
        self.home.config().log()
    }

    /// The plan that the site accepted.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// The sites whose word on the plan is here.
    pub(crate) fn signed(&self) -> Vec<SiteIndex> {
        self.accepted.iter().map(|word| word.site).collect()
    }

    /// The cards of this site's neighbours.
    pub(crate) fn neighbour_cards(&self) -> &[(SiteIndex, Card)] {
        &self.cards
    }

    /// Where this site's neighbours are dialled.
    pub(crate) fn peer_addresses(&self) -> Vec<PeerAddress> {
        let peer = |(site, card): &(SiteIndex, Card)| PeerAddress {
            site: *site,
            name: card.name().to_string(),
            key: *card.transport(),
            addresses: self.dialled(card).to_vec(),
            relay: card.relay().map(str::to_owned),
        };
        self.cards.iter().map(peer).collect()
    }

    /// Where another site is called directly: nowhere, if everything goes through relays.
    fn dialled<'a>(&self, card: &'a Card) -> &'a [String] {
        if self.home.config().network().is_relay_only() { &[] } else { card.addresses() }
    }

    /// All places where another site is looked for, as people are told.
    fn looked_for_at(&self, card: &Card) -> Vec<String> {
        self.dialled(card).iter().cloned().chain(card.relay().map(str::to_owned)).collect()
    }

    fn names(&self) -> Vec<String> {
        self.contract.sites().iter().map(|s| s.name.to_string()).collect()
    }

    /// The site's records: every row of its file is one, and they must be as many as the plan says.
    pub fn records(&self) -> Result<Dataset, SiteError> {
        Ok(encode_records(&self.home, &self.contract, self.me)?.records)
    }

    /// The mailbox of this site's side of the run. Whoever may stop the run keeps a copy: see [`Mailbox::stop`].
    pub fn mailbox(&self) -> Arc<Mailbox> {
        Arc::new(Mailbox::new(self.contract.sites().len()))
    }

    /// Runs until there is a model, the site is asked to stop through its mailbox, or something is wrong.
    pub fn run(
        self,
        noise: &NoiseProvider,
        options: &RunOptions,
        journal: Arc<Outputs>,
        mailbox: Arc<Mailbox>,
    ) -> Result<Ended, SiteError> {
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
        let log = Arc::clone(&journal) as Arc<dyn Journal>;
        let setup = self.session(noise, records, ledger, log, clock::now())?;
        journal.begin(&self.names(), &setup.start)?;
        let transport = QuicTransport::start(self.quic_setup(&setup.outbox, &mailbox, &journal)?)?;
        let _status = StatusWriter::start(Arc::clone(&journal), &self.folder);
        let run_clock = Instant::now();
        let session = Session::new(setup, run_clock.elapsed())?;
        let ended = self.drive(session, &mailbox, &transport, &run_clock, &journal, options)?;
        transport.close(ended == Ended::Finished);
        Ok(ended)
    }

    /// This site's side of the run, before the first step: what [`Site::run`] puts on the network, and a test on a made-up one.
    pub fn session(
        &self,
        noise: &NoiseProvider,
        records: Arc<Dataset>,
        ledger: SiteLedger,
        journal: Arc<dyn Journal>,
        now: SystemTime,
    ) -> Result<SessionSetup, SiteError> {
        let released =
            ledger.state().run(&self.contract.hash().to_string()).map_or(0, |run| run.n_released());
        let schedule =
            self.contract.calibration().agents[self.me.0].noise.as_ref().ok_or(SiteError::NoNoise)?;
        let drawn: usize = (1..=released as u32).map(|round| schedule.n_coordinates(round)).sum();
        let source = (noise.make)(self.me, drawn as u64);
        let noise = if noise.ahead {
            Box::new(NoiseAhead::new(source, noise_ahead::draws(&**schedule, released as u32 + 1)))
        } else {
            source
        };
        let start =
            projected_spending::run_start(&self.contract, self.me, self.home.name(), noise.description())?;
        let ledger = Arc::new(Mutex::new(ledger));
        lock(&ledger).check_run(&start)?;
        let origin = Origin { plan: self.contract.hash().0, sender: self.me };
        let (key, text) = (self.home.identity().clone(), self.contract.to_toml());
        let outbox = Outbox::new(origin, key, text, now).on_disk(lock(&ledger).is_writing());
        let outbox = Arc::new(outbox);
        let agent = self.agent(records, noise, &ledger, &start, &outbox)?;
        self.session_setup(agent, start, ledger, outbox, journal)
    }

    fn agent(
        &self,
        records: Arc<Dataset>,
        noise: Box<dyn NoiseSource>,
        ledger: &Arc<Mutex<SiteLedger>>,
        start: &RunStart,
        outbox: &Arc<Outbox>,
    ) -> Result<Agent, SiteError> {
        let (contract, calibration) = (&self.contract, self.contract.calibration());
        let (setup, problem) = AgentSetup::of(
            contract.plan(),
            contract.graph(),
            calibration,
            self.me,
            contract.space(),
            records,
        );
        let required = RequiredCertificate {
            modulus: setup.calibration.modulus,
            tolerance: setup.calibration.tolerance,
        };
        let schedule = setup.calibration.noise.as_ref().ok_or(SiteError::NoNoise)?;
        let mechanism = schedule.mechanism(required)?;
        let seal = {
            let outbox = Arc::clone(outbox);
            move |r: &SealRequest<'_>| {
                let model = ModelFrame {
                    origin: outbox.origin(),
                    turn: Turn::model(r.round),
                    entry: r.seq,
                    head: r.previous_head.0,
                    state: outbox.state(),
                    payload: r.payload.clone(),
                };
                outbox.sign(&Frame::Model(model)).to_vec()
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
        outbox: Arc<Outbox>,
        journal: Arc<dyn Journal>,
    ) -> Result<SessionSetup, SiteError> {
        let calibration = self.contract.calibration();
        let mut neighbours = vec![];
        for (site, card) in &self.cards {
            let (folder, plan) = (self.home.ledgers(), self.contract.hash().0);
            neighbours.push(remembered::neighbour(
                *site,
                card,
                self.looked_for_at(card),
                &lock(&ledger),
                &folder,
                &plan,
            )?);
        }
        let check = {
            let contract = Arc::clone(&self.contract);
            move |word: &Accepted| acceptances::is_acceptance(&contract, word)
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
            graph: self.contract.graph().clone(),
            grids: calibration.agents.iter().map(|agent| agent.grids()).collect(),
            silence: self.contract.silence(),
            accepted: self.accepted.clone(),
            check_accepted: Box::new(check),
            compare_plans: Box::new(compare),
            has_elsewhere: Box::new(elsewhere),
            epsilons: calibration.agents[self.me.0]
                .noise
                .as_ref()
                .map_or(vec![], |n| n.epsilon_curve().iter().map(|e| e.exact).collect()),
            agent,
            ledger,
            outbox,
            journal,
        })
    }

    /// Runs the session until its end; the model is written as soon as it is there.
    fn drive(
        &self,
        mut session: Session,
        mailbox: &Mailbox,
        transport: &QuicTransport,
        clock: &Instant,
        journal: &Outputs,
        options: &RunOptions,
    ) -> Result<Ended, SiteError> {
        let mut written = false;
        let mut shown: Option<Duration> = None;
        loop {
            let now = clock.elapsed();
            if shown.is_none_or(|shown| now.saturating_sub(shown) >= SHOWN_EVERY) {
                journal.publish(self.status(&session.status(now), transport.routes()));
                shown = Some(now);
            }
            match session.step(now, mailbox, transport) {
                Err(error @ SessionError::Alone { .. }) => {
                    journal.write_partial(self, &session)?;
                    return Err(error.into());
                }
                result => result?,
            }
            journal.check_egress().map_err(SessionError::from)?;
            if mailbox.is_stopped() {
                return Ok(if written { Ended::Finished } else { Ended::Stopped });
            }
            if !written && let Some(outcome) = session.outcome() {
                journal.write_model(self, &session, &outcome)?;
                session.finish()?;
                written = true;
                let model = self.folder.join("model.json");
                journal.log(Level::Info, "model", &format!("the model is written: {}", model.display()));
                shown = None;
            }
            if written && (options.leave_when_done || session.everybody_is_done(clock.elapsed())) {
                journal.publish(self.status(&session.status(clock.elapsed()), transport.routes()));
                return Ok(Ended::Finished);
            }
            let patience = session.next_deadline(now).saturating_sub(clock.elapsed()).min(SHOWN_EVERY);
            if let Some(event) = mailbox.wait(patience) {
                session.handle(clock.elapsed(), event, transport)?;
            }
        }
    }

    fn quic_setup(
        &self,
        outbox: &Arc<Outbox>,
        mailbox: &Arc<Mailbox>,
        journal: &Arc<Outputs>,
    ) -> Result<QuicSetup, SiteError> {
        let journal = Arc::clone(journal);
        let schedules = self.contract.calibration().agents.iter().filter_map(|agent| agent.noise.as_ref());
        let lengths = schedules.flat_map(|s| (1..=s.rounds()).map(|round| s.n_coordinates(round)));
        let n_coordinates = lengths.max().unwrap_or_default().max(self.contract.space().n_features());
        Ok(QuicSetup {
            me: self.me,
            secret: self.home.transport().to_bytes(),
            listen: self.home.config().listen(),
            way_out: WayOut::of(self.home.config(), self.home.card())?,
            peers: self.peer_addresses(),
            largest_frame: largest_frame(
                n_coordinates,
                self.contract.sites().len(),
                self.contract.to_toml().len(),
            ),
            outbox: Arc::clone(outbox),
            mailbox: Arc::clone(mailbox),
            on_answer: Arc::new(move |to, (whose, turn), bytes| {
                journal.sent(&Sent { to, whose, turn, bytes, again: true })
            }),
        })
    }
}

fn lock(ledger: &Arc<Mutex<SiteLedger>>) -> std::sync::MutexGuard<'_, SiteLedger> {
    ledger.lock().expect("the ledger's holders do not panic")
}

/// The integers of a release from the bytes that left.
pub fn open_release(bytes: &[u8]) -> Result<Payload, String> {
    match Frame::decode(bytes) {
        Ok(Frame::Model(model)) => Ok(model.payload),
        Ok(_) => Err("it is no release".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn compare_plans(here: &Contract, text: &str) -> Vec<String> {
    match Contract::from_toml(text, Path::new("the other plan")) {
        Ok(there) => difference(here, &there).iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!("its plan is not understood here ({error})")],
    }
}
