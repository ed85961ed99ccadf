//! Whole runs in one thread, with made-up time and a made-up network: what is lost, repeated, late, gone or back again.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use common::{name, schema};
use padmm_core::data::Dataset;
use padmm_core::message::Stage;
use padmm_core::plan::PlanDraft;
use padmm_node::contract::{self, Acceptance, Contract, ContractDraft, SiteEntry};
use padmm_node::identity::{Cap, Home, InitRequest};
use padmm_node::journal::{Journal, Level, Sent};
use padmm_node::ledger::{Opening, SiteLedger};
use padmm_node::session::{Departure, Session, SessionError};
use padmm_node::site::{Prepared, World, open_release};
use padmm_node::transport::memory::{MemoryNetwork, MemoryTransport, Weather};
use padmm_privacy::{Budget, Payload};
use padmm_sim::InsecureSeededNoise;
use tempfile::TempDir;

const NAMES: [&str; 4] = ["ash", "birch", "cedar", "dogwood"];
const DOGWOOD: usize = 3;
const ROUNDS: u32 = 6;
const EPSILON: f64 = 5.0;
const DELTA: f64 = 1e-4;
const STEP: Duration = Duration::from_millis(20);
const LEAVE: contract::Silence = contract::Silence::Leave { after_seconds: 10 };
/// Made-up time that is enough for everything.
const LONG: Duration = Duration::from_secs(3600);

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn records(site: usize) -> (usize, String) {
    let n = 50 + 10 * site;
    let row = |k: usize| {
        let age = (17 * k + 31 * site) % 100;
        let ill = if age + (k * k) % 40 > 70 { "yes" } else { "no" };
        format!("{age},{:.2},{},{ill}\n", (k * 7 % 11) as f64 * 0.09, ["A", "B", "O"][k % 3])
    };
    (n, "age,dose,blood,ill\n".to_owned() + &(0..n).map(row).collect::<String>())
}

/// Four homes with a plan that all have accepted.
struct Consortium {
    _folder: TempDir,
    contract: Contract,
    sites: Vec<(Prepared, Arc<Dataset>)>,
}

impl Consortium {
    fn new(graph: &str, silence: contract::Silence) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let settings = PlanDraft { rounds: ROUNDS, epsilon: EPSILON, delta: DELTA, ..PlanDraft::default() };
        let (mut homes, mut entries) = (vec![], vec![]);
        for (site, text) in NAMES.iter().enumerate() {
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
            let prepared = Prepared::read(home.dir(), &run, now).unwrap();
            let records = Arc::new(prepared.records().unwrap());
            (prepared, records)
        };
        let sites = homes.iter().map(prepare).collect();
        Consortium { _folder: folder, contract, sites }
    }
}

/// Sender, stage and turn.
type Place = (usize, Stage, u32);

/// Everything that the sites wrote down.
#[derive(Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
    /// The bytes of every message that left, by sender.
    sent: Mutex<BTreeMap<Place, BTreeSet<Vec<u8>>>>,
}

struct NotesOf(usize, Arc<Notes>);

impl Journal for NotesOf {
    fn log(&self, _: Level, _: &'static str, message: &str) {
        assert!(!message.contains('['), "a log line has no arrays: {message}");
        self.1.lines.lock().unwrap().push(format!("{}: {message}", NAMES[self.0]));
    }

    fn sent(&self, sent: &Sent<'_>) {
        let mut all = self.1.sent.lock().unwrap();
        all.entry((self.0, sent.stage, sent.turn)).or_default().insert(sent.bytes.to_vec());
    }
}

/// A site that is there.
struct Site {
    session: Session,
    transport: MemoryTransport,
}

/// One run.
struct Run<'a> {
    consortium: &'a Consortium,
    network: MemoryNetwork,
    folder: TempDir,
    notes: Arc<Notes>,
    now: Duration,
    sites: BTreeMap<usize, Site>,
    /// Sites whose process hangs, while its network answers.
    hanging: BTreeSet<usize>,
    stopped: BTreeMap<usize, SessionError>,
    models: BTreeMap<usize, Vec<u64>>,
}

impl<'a> Run<'a> {
    fn new(consortium: &'a Consortium, weather: Weather, seed: u64) -> Self {
        let contract = &consortium.contract;
        let neighbours = (0..NAMES.len()).map(|i| contract.neighbours(i).to_vec()).collect();
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
        }
    }

    fn with_all(consortium: &'a Consortium, weather: Weather, seed: u64) -> Self {
        let mut run = Self::new(consortium, weather, seed);
        (0..NAMES.len()).for_each(|site| run.start(site));
        run
    }

    fn ledger_path(&self, site: usize) -> PathBuf {
        self.folder.path().join(format!("{}.ledger", NAMES[site]))
    }

    /// A new process of a site.
    fn start(&mut self, site: usize) {
        let path = self.ledger_path(site);
        let ledger = if path.exists() { SiteLedger::open(&path) } else { create(&path) }.unwrap();
        let (prepared, records) = &self.consortium.sites[site];
        let world =
            World::for_tests(|site, drawn| Box::new(InsecureSeededNoise::new(7, 0, site).after(drawn)));
        let journal = Arc::new(NotesOf(site, Arc::clone(&self.notes)));
        let setup = prepared.session(&world, Arc::clone(records), ledger, journal).unwrap();
        let shelf = Arc::clone(&setup.shelf);
        let session = Session::new(setup, self.now).unwrap();
        let transport = self.network.plug(site, shelf);
        self.sites.insert(site, Site { session, transport });
    }

    /// The end of a site's process, as by a power cut.
    fn kill(&mut self, site: usize) {
        self.network.unplug(site);
        self.sites.remove(&site);
    }

    fn step(&mut self) {
        self.now += STEP;
        self.network.advance(self.now);
        let mut stopped = vec![];
        for (&i, site) in self.sites.iter_mut().filter(|(i, _)| !self.hanging.contains(i)) {
            if let Err(error) = site.session.step(self.now, &site.transport) {
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
    fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
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

    fn for_as_long_as(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    fn are_done(&self, sites: &[usize]) -> bool {
        sites.iter().all(|i| self.models.contains_key(i))
    }

    fn round(&self, site: usize) -> u32 {
        self.sites.get(&site).map_or(0, |s| s.session.agent().rounds_done())
    }

    fn departures(&self, site: usize) -> BTreeSet<Departure> {
        self.sites[&site].session.departures()
    }

    /// What a site's ledger says that it released, once its process is gone.
    fn released(&self, site: usize) -> Vec<Payload> {
        let ledger = SiteLedger::open(&self.ledger_path(site)).unwrap();
        let run = self.consortium.contract.hash().to_string();
        let of_round = |r| ledger.release_bytes(&run, r).unwrap().map(|b| open_release(&b).unwrap());
        (1..=ROUNDS).map_while(of_round).collect()
    }

    /// Ends all processes; the ledgers must be sound and within the plan's budget. Gives what each site released.
    fn end(&mut self) -> Vec<Vec<Payload>> {
        for site in 0..NAMES.len() {
            self.kill(site);
        }
        for ((site, stage, turn), bytes) in self.notes.sent.lock().unwrap().iter() {
            assert_eq!(bytes.len(), 1, "{} said two things in {stage:?} {turn}", NAMES[*site]);
        }
        let there: Vec<usize> = (0..NAMES.len()).filter(|&i| self.ledger_path(i).exists()).collect();
        for &site in &there {
            padmm_node::ledger::verify(&self.ledger_path(site)).unwrap();
            let ledger = SiteLedger::open(&self.ledger_path(site)).unwrap();
            assert!(ledger.epsilon_spent().value() <= EPSILON);
        }
        there.iter().map(|&i| self.released(i)).collect()
    }

    /// Each edge that is left has opposite duals at its ends, and all duals together are nothing.
    fn check_duals(&self, sites: &[usize]) {
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

fn create(path: &Path) -> Result<SiteLedger, padmm_node::ledger::LedgerError> {
    let cap = Budget::new(2.0 * EPSILON, DELTA).unwrap();
    SiteLedger::create(path, Opening { data_set: "records".to_owned(), fingerprint: "00".repeat(32), cap })
}

const ALL: [usize; 4] = [0, 1, 2, 3];

fn waiting() -> &'static Consortium {
    static WAITING: OnceLock<Consortium> = OnceLock::new();
    WAITING.get_or_init(|| Consortium::new("ring", contract::Silence::Wait))
}

fn leaving() -> &'static Consortium {
    static LEAVING: OnceLock<Consortium> = OnceLock::new();
    LEAVING.get_or_init(|| Consortium::new("complete", LEAVE))
}

type Ending = (BTreeMap<usize, Vec<u64>>, Vec<Vec<Payload>>);

fn undisturbed(consortium: &Consortium) -> Ending {
    let mut run = Run::with_all(consortium, Weather::default(), 0);
    run.until(|run| run.are_done(&ALL));
    let released = run.end();
    (run.models, released)
}

#[test]
fn fifty_schedules_of_loss_repeats_delays_and_restarts_end_as_the_undisturbed_run() {
    let (models, released) = undisturbed(waiting());
    let mut restarts = 0;
    for seed in 1..=50 {
        let weather = Weather { loss: 0.2, repeats: 0.2, longest_delay: Duration::from_millis(400) };
        let mut run = Run::with_all(waiting(), weather, seed);
        // A site is killed every so often, and is back after a while.
        let (mut state, mut away) = (seed, None);
        while !run.are_done(&ALL) {
            assert!(run.now < LONG, "seed {seed}:\n{}", run.notes.lines.lock().unwrap().join("\n"));
            run.step();
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let dice = state >> 33;
            match away {
                Some((site, until)) if until <= run.now => {
                    run.start(site);
                    away = None;
                }
                None if dice % 60 == 0 => {
                    let site = (dice / 60 % 4) as usize;
                    run.kill(site);
                    restarts += 1;
                    away = Some((site, run.now + Duration::from_millis(dice / 240 % 1500)));
                }
                _ => {}
            }
        }
        assert_eq!(run.models, models, "seed {seed}");
        assert_eq!(run.end(), released, "seed {seed}");
    }
    assert!(restarts > 100, "only {restarts} restarts");
}

#[test]
fn a_plan_that_waits_never_drops_a_site_and_says_who_is_missing_since_when() {
    let (models, released) = undisturbed(waiting());
    let mut run = Run::with_all(waiting(), Weather::default(), 1);
    run.until(|run| run.round(DOGWOOD) >= 2);
    run.kill(DOGWOOD);
    run.for_as_long_as(seconds(600));
    for site in [0, 2] {
        let line = run.sites[&site].session.waiting_for(run.now).unwrap();
        assert!(line.contains("waiting for dogwood (silent for "), "{line}");
        let silent: u64 =
            line.split("silent for ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!((590..=600).contains(&silent), "{line}");
        assert!(run.departures(site).is_empty());
    }
    assert!(run.notes.lines.lock().unwrap().iter().any(|l| l.contains("waiting for dogwood")));
    run.start(DOGWOOD);
    run.until(|run| run.are_done(&ALL));
    assert_eq!(run.models, models);
    assert_eq!(run.end(), released);
}

#[test]
fn a_silent_site_is_left_by_all_and_the_others_finish_without_it() {
    let mut run = Run::with_all(leaving(), Weather::default(), 1);
    run.until(|run| run.round(DOGWOOD) >= 3);
    run.kill(DOGWOOD);
    run.until(|run| run.are_done(&[0, 1, 2]));
    run.for_as_long_as(seconds(3));
    let departures = run.departures(0);
    assert_eq!(departures.len(), 3, "{departures:?}");
    for site in [0, 1, 2] {
        assert_eq!(run.departures(site), departures);
        assert!(departures.iter().any(|d| (d.reporter, d.lost) == (site, DOGWOOD)));
    }
    run.check_duals(&[0, 1, 2]);
    let released = run.end();
    assert!(released[..3].iter().all(|r| r.len() == ROUNDS as usize));
}

#[test]
fn a_site_that_comes_back_after_it_was_left_stops_and_releases_nothing_more() {
    let mut run = Run::with_all(leaving(), Weather::default(), 2);
    run.until(|run| run.round(DOGWOOD) >= 3);
    run.kill(DOGWOOD);
    let before = run.released(DOGWOOD);
    run.until(|run| run.are_done(&[0, 1, 2]));
    run.start(DOGWOOD);
    run.until(|run| run.stopped.contains_key(&DOGWOOD));
    let error = &run.stopped[&DOGWOOD];
    assert!(matches!(error, SessionError::Alone { .. }), "{error}");
    assert!(error.to_string().contains("ash, birch, cedar"), "{error}");
    assert_eq!(run.end()[DOGWOOD], before);
}

#[test]
fn a_site_that_hung_and_was_cut_off_stops_when_the_line_is_back() {
    let mut run = Run::with_all(leaving(), Weather::default(), 3);
    run.until(|run| run.round(DOGWOOD) >= 3);
    run.hanging.insert(DOGWOOD);
    (0..3).for_each(|site| run.network.cut(site, DOGWOOD));
    run.until(|run| run.are_done(&[0, 1, 2]));
    (0..3).for_each(|site| run.network.mend(site, DOGWOOD));
    run.for_as_long_as(seconds(1));
    run.hanging.clear();
    run.until(|run| run.stopped.contains_key(&DOGWOOD));
    assert!(matches!(run.stopped[&DOGWOOD], SessionError::Alone { .. }));
    run.end();
}

#[test]
fn both_parts_of_a_network_that_falls_apart_go_on() {
    let mut run = Run::with_all(leaving(), Weather::default(), 4);
    run.until(|run| ALL.iter().all(|&i| run.round(i) >= 2));
    for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        run.network.cut(a, b);
    }
    run.until(|run| run.are_done(&ALL));
    run.for_as_long_as(seconds(3));
    for part in [[0, 1], [2, 3]] {
        assert_eq!(run.departures(part[0]), run.departures(part[1]));
        assert_eq!(run.departures(part[0]).len(), 4);
        assert!(
            run.departures(part[0]).iter().all(|d| part.contains(&d.reporter) && !part.contains(&d.lost))
        );
        run.check_duals(&part);
    }
    run.end();
}

#[test]
fn a_slow_site_that_gives_signs_of_life_is_never_left() {
    let (models, released) = undisturbed(leaving());
    let mut run = Run::with_all(leaving(), Weather::default(), 5);
    run.until(|run| run.round(DOGWOOD) >= 2);
    run.hanging.insert(DOGWOOD);
    run.for_as_long_as(seconds(300));
    run.hanging.clear();
    run.until(|run| run.are_done(&ALL));
    assert!((0..4).all(|site| run.departures(site).is_empty()));
    assert_eq!(run.models, models);
    assert_eq!(run.end(), released);
}

/// On a path the first site hears of the last one's word from those between.
#[test]
fn a_run_starts_only_with_every_sites_word() {
    let path = Consortium::new("path", LEAVE);
    let mut run = Run::new(&path, Weather::default(), 6);
    (0..DOGWOOD).for_each(|site| run.start(site));
    run.for_as_long_as(seconds(60));
    assert!(run.sites.values().all(|s| !s.session.is_started()));
    let line = |site: usize| run.sites[&site].session.waiting_for(run.now).unwrap();
    assert_eq!(line(0), "before the start: waiting for the signature of dogwood on this plan");
    assert!(line(2).starts_with("before round 1: waiting for dogwood (silent for "), "{}", line(2));
    assert!((0..DOGWOOD).all(|site| run.departures(site).is_empty()));
    run.start(DOGWOOD);
    run.until(|run| run.are_done(&ALL));
    assert!((0..4).all(|site| run.departures(site).is_empty()));
    run.end();
}
