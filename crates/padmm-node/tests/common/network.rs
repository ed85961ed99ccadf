//! Whole networks of sessions in one thread, with made-up time: homes, a plan that all have accepted, and processes that come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use padmm_core::algorithm::{AlgorithmKind, P_ADMM};
use padmm_core::data::Dataset;
use padmm_core::message::{SiteIndex, Turn};
use padmm_core::plan::PlanDraft;
use padmm_node::contract::{self, Acceptance, Contract, ContractDraft, SiteEntry};
use padmm_node::identity::{Cap, Home, InitRequest};
use padmm_node::journal::{EgressError, Journal, Level, Sent};
use padmm_node::ledger::{Opening, SiteLedger};
use padmm_node::session::{Departure, Session, SessionError};
use padmm_node::site::{NoiseProvider, Site, open_release};
use padmm_node::transport::memory::{MemoryNetwork, MemoryTransport, Weather};
use padmm_privacy::{Budget, Payload};
use padmm_sim::InsecureSeededNoise;
use tempfile::TempDir;

use super::{name, schema};

pub(crate) const NAMES: [&str; 5] = ["ash", "birch", "cedar", "dogwood", "elm"];
pub(crate) const DOGWOOD: usize = 3;
pub(crate) const ROUNDS: u32 = 6;
pub(crate) const EPSILON: f64 = 5.0;
pub(crate) const DELTA: f64 = 1e-4;
pub(crate) const STEP: Duration = Duration::from_millis(20);
pub(crate) const LEAVE: contract::Silence = contract::Silence::Leave { after_seconds: 10 };
/// Made-up time that is enough for everything.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub(crate) fn records(site: usize) -> (usize, String) {
    let n = 50 + 10 * site;
    let row = |k: usize| {
        let age = (17 * k + 31 * site) % 100;
        let ill = if age + (k * k) % 40 > 70 { "yes" } else { "no" };
        format!("{age},{:.2},{},{ill}\n", (k * 7 % 11) as f64 * 0.09, ["A", "B", "O"][k % 3])
    };
    (n, "age,dose,blood,ill\n".to_owned() + &(0..n).map(row).collect::<String>())
}

/// Homes with a plan that all have accepted.
pub(crate) struct Consortium {
    _folder: TempDir,
    pub contract: Contract,
    pub sites: Vec<(Site, Arc<Dataset>)>,
}

impl Consortium {
    /// Four sites.
    pub(crate) fn new(graph: &str, silence: contract::Silence) -> Self {
        Self::of(4, graph, silence)
    }

    /// The first `n_sites` of [`NAMES`].
    pub(crate) fn of(n_sites: usize, graph: &str, silence: contract::Silence) -> Self {
        Self::running(P_ADMM, n_sites, graph, silence)
    }

    pub(crate) fn running(
        algorithm: AlgorithmKind,
        n_sites: usize,
        graph: &str,
        silence: contract::Silence,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let settings =
            PlanDraft { algorithm, rounds: ROUNDS, epsilon: EPSILON, delta: DELTA, ..PlanDraft::default() };
        let (mut homes, mut entries) = (vec![], vec![]);
        for (site, text) in NAMES[..n_sites].iter().enumerate() {
            let request = InitRequest {
                addresses: vec![format!("127.0.0.1:{}", site + 1)],
                data: Some("records.csv".into()),
                cap: Some(Cap { epsilon: 2.0 * EPSILON, delta: DELTA }),
                ..InitRequest::new(name(text))
            };
            let home = Home::init(&folder.path().join(text), &request, now).unwrap();
            let (n, text) = records(site);
            std::fs::write(home.dir().join("records.csv"), text).unwrap();
            let fingerprint = home.card().fingerprint();
            entries.push(SiteEntry { name: home.name().clone(), records: n, fingerprint });
            homes.push(home);
        }
        let (run, graph) = (name("trial"), graph.parse().unwrap());
        let draft =
            ContractDraft::new(run.clone(), schema(), settings, entries, &graph, silence, None).unwrap();
        let contract = draft.check().unwrap();
        let prepare = |home: &Home| {
            for other in homes.iter().filter(|h| h.name() != home.name()) {
                home.cards().import(other.card(), false).unwrap();
            }
            let folder = home.run_dir(&run);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("plan.toml"), contract.to_toml()).unwrap();
            let word = Acceptance::accept(&contract, home.name(), home.identity()).unwrap();
            std::fs::write(folder.join(format!("{}.accept", home.name())), word.to_toml()).unwrap();
            let prepared = Site::read(home.dir(), &run, now).unwrap();
            let records = Arc::new(prepared.records().unwrap());
            (prepared, records)
        };
        let sites = homes.iter().map(prepare).collect();
        Self { _folder: folder, contract, sites }
    }
}

/// Sender and turn.
pub(crate) type SentKey = (usize, Turn);

/// Everything that the sites wrote down.
#[derive(Default)]
pub(crate) struct Notes {
    pub lines: Mutex<Vec<String>>,
    /// The bytes of every message that left, by whose it is.
    pub sent: Mutex<BTreeMap<SentKey, BTreeSet<Vec<u8>>>>,
    /// What leaves cannot be written down.
    pub is_full: AtomicBool,
}

struct NotesOf(usize, Arc<Notes>);

impl Journal for NotesOf {
    fn log(&self, _: Level, _: &'static str, message: &str) {
        assert!(!message.contains('['), "a log line has no arrays: {message}");
        self.1.lines.lock().unwrap().push(format!("{}: {message}", NAMES[self.0]));
    }

    fn sent(&self, sent: &Sent<'_>) -> Result<(), EgressError> {
        if self.1.is_full.load(Ordering::Relaxed) {
            return Err(EgressError { path: "egress.csv".into(), reason: "no room".to_owned() });
        }
        let mut all = self.1.sent.lock().unwrap();
        all.entry((sent.whose.0, sent.turn)).or_default().insert(sent.bytes.to_vec());
        Ok(())
    }
}

/// A site that is there.
pub(crate) struct LiveSite {
    pub session: Session,
    pub transport: MemoryTransport,
}

/// One run.
pub(crate) struct Run<'a> {
    pub consortium: &'a Consortium,
    pub network: MemoryNetwork,
    pub folder: TempDir,
    pub notes: Arc<Notes>,
    pub now: Duration,
    pub sites: BTreeMap<usize, LiveSite>,
    /// Sites whose process hangs, while its network answers.
    pub hanging: BTreeSet<usize>,
    pub stopped: BTreeMap<usize, SessionError>,
    pub models: BTreeMap<usize, Vec<u64>>,
    /// The seed of the next process's noise, where it is not 7.
    pub seeds: BTreeMap<usize, u64>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(consortium: &'a Consortium, weather: Weather, seed: u64) -> Self {
        let contract = &consortium.contract;
        let neighbours = (0..consortium.sites.len())
            .map(|i| contract.neighbours(i).iter().copied().map(SiteIndex).collect());
        let neighbours = neighbours.collect();
        Run {
            consortium,
            network: MemoryNetwork::new(neighbours, weather, seed),
            folder: tempfile::tempdir().unwrap(),
            notes: Arc::default(),
            now: Duration::ZERO,
            sites: BTreeMap::new(),
            hanging: BTreeSet::new(),
            stopped: BTreeMap::new(),
            models: BTreeMap::new(),
            seeds: BTreeMap::new(),
        }
    }

    pub(crate) fn with_all(consortium: &'a Consortium, weather: Weather, seed: u64) -> Self {
        let mut run = Self::new(consortium, weather, seed);
        (0..consortium.sites.len()).for_each(|site| run.start(site));
        run
    }

    pub(crate) fn ledger_path(&self, site: usize) -> PathBuf {
        self.folder.path().join(format!("{}.ledger", NAMES[site]))
    }

    /// A new process of a site.
    pub(crate) fn start(&mut self, site: usize) {
        let path = self.ledger_path(site);
        let ledger = if path.exists() { SiteLedger::open(&path) } else { create(&path) }.unwrap();
        let (prepared, records) = &self.consortium.sites[site];
        let seed = self.seeds.get(&site).copied().unwrap_or(7);
        let noise = NoiseProvider::for_tests(move |site, drawn| {
            Box::new(InsecureSeededNoise::new(seed, 0, site.0).after(drawn))
        });
        let journal = Arc::new(NotesOf(site, Arc::clone(&self.notes)));
        let setup =
            prepared.session(&noise, Arc::clone(records), ledger, journal, SystemTime::now()).unwrap();
        let outbox = Arc::clone(&setup.outbox);
        let session = Session::new(setup, self.now).unwrap();
        let transport = self.network.plug(SiteIndex(site), outbox);
        self.sites.insert(site, LiveSite { session, transport });
    }

    /// The end of a site's process, as by a power cut.
    pub(crate) fn kill(&mut self, site: usize) {
        self.network.unplug(SiteIndex(site));
        self.sites.remove(&site);
    }

    pub(crate) fn cut(&self, a: usize, b: usize) {
        self.network.cut(SiteIndex(a), SiteIndex(b));
    }

    pub(crate) fn mend(&self, a: usize, b: usize) {
        self.network.mend(SiteIndex(a), SiteIndex(b));
    }

    pub(crate) fn step(&mut self) {
        self.now += STEP;
        self.network.advance(self.now);
        let mut stopped = vec![];
        for (&i, site) in self.sites.iter_mut().filter(|(i, _)| !self.hanging.contains(i)) {
            if let Err(error) = site.session.step(self.now, site.transport.mailbox(), &site.transport) {
                stopped.push((i, error));
            } else if let Some(outcome) = site.session.outcome() {
                site.session.finish().unwrap();
                let bits = outcome.smoothed.as_slice().iter().map(|v| v.to_bits()).collect();
                let model = self.models.entry(i).or_insert_with(|| Vec::clone(&bits));
                assert_eq!(*model, bits, "a site has one model, however often it is started");
            }
        }
        for (i, error) in stopped {
            self.kill(i);
            self.stopped.insert(i, error);
        }
    }

    /// Until something is so.
    pub(crate) fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let end = self.now + LONG;
        while !is_so(self) {
            self.step();
            assert!(
                self.now < end,
                "it never came to that:\n{}",
                self.notes.lines.lock().unwrap().join("\n")
            );
        }
    }

    pub(crate) fn for_as_long_as(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    pub(crate) fn are_done(&self, sites: &[usize]) -> bool {
        sites.iter().all(|i| self.models.contains_key(i))
    }

    pub(crate) fn round(&self, site: usize) -> u32 {
        self.sites.get(&site).map_or(0, |s| s.session.agent().rounds_done())
    }

    pub(crate) fn departures(&self, site: usize) -> BTreeSet<Departure> {
        self.sites[&site].session.departures()
    }

    /// What a site's ledger says that it released, once its process is gone.
    pub(crate) fn released(&self, site: usize) -> Vec<Payload> {
        let ledger = SiteLedger::open(&self.ledger_path(site)).unwrap();
        let run = self.consortium.contract.hash().to_string();
        let of_round = |r| ledger.release_bytes(&run, r).unwrap().map(|b| open_release(&b).unwrap());
        (1..=ROUNDS).map_while(of_round).collect()
    }

    /// Ends all processes; the ledgers must be sound and within the plan's budget. Gives what each site released.
    pub(crate) fn end(&mut self) -> Vec<Vec<Payload>> {
        for site in 0..self.consortium.sites.len() {
            self.kill(site);
        }
        for ((site, turn), bytes) in self.notes.sent.lock().unwrap().iter() {
            assert_eq!(bytes.len(), 1, "{} said two things in {turn}", NAMES[*site]);
        }
        let there: Vec<usize> =
            (0..self.consortium.sites.len()).filter(|&i| self.ledger_path(i).exists()).collect();
        for &site in &there {
            padmm_node::ledger::verify(&self.ledger_path(site)).unwrap();
            let ledger = SiteLedger::open(&self.ledger_path(site)).unwrap();
            assert!(ledger.epsilon_spent().value() <= EPSILON);
        }
        there.iter().map(|&i| self.released(i)).collect()
    }

    /// Each edge that is left has opposite duals at its ends, and all duals together are nothing.
    pub(crate) fn check_duals(&self, sites: &[usize]) {
        let n = self.sites[&sites[0]].session.agent().released().len();
        let mut sum = vec![0.0; n];
        for &i in sites {
            let dual = self.sites[&i].session.agent().algorithm().dual();
            dual.as_slice().iter().zip(&mut sum).for_each(|(d, s)| *s += d);
            for &j in sites.iter().filter(|&&j| j != i) {
                let edge = |i: usize, j: usize| {
                    let slot = sites.iter().filter(|&&k| k != i).position(|&k| k == j).unwrap();
                    let duals = self.sites[&i].session.agent().algorithm().edge_duals();
                    assert_eq!(duals.len(), sites.len() - 1);
                    duals[slot].as_slice().to_vec()
                };
                let opposite: Vec<f64> = edge(j, i).iter().map(|v| -v).collect();
                assert_eq!(edge(i, j), opposite);
            }
        }
        assert!(sum.iter().all(|s| s.abs() < 1e-9), "{sum:?}");
    }
}

pub(crate) fn create(path: &Path) -> Result<SiteLedger, padmm_node::ledger::LedgerError> {
    let cap = Budget::new(2.0 * EPSILON, DELTA).unwrap();
    SiteLedger::create(path, Opening { data_set: "records".to_owned(), fingerprint: "00".repeat(32), cap })
}
