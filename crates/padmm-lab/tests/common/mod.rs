//! Networks of real site processes on one machine: made, started, watched, killed, started again, and looked into afterwards.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use padmm_core::algorithm::{AlgorithmKind, P_ADMM};
use padmm_core::message::Stage;
use padmm_core::plan::PlanDraft;
use padmm_core::schema::Schema;
use padmm_node::contract::{Acceptance, Contract, ContractDraft, Silence, SiteEntry};
use padmm_node::identity::{Cap, Card, Home, InitRequest, SiteName};
use padmm_node::ledger::{Entry, LedgerError, SiteLedger, verify};
use padmm_node::site::open_release;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use padmm_lab::links::Links;

/// The run's name.
pub(crate) const RUN: &str = "trial";
/// The seed of every network's noise: networks of one shape release the same numbers.
pub(crate) const SEED: &str = "7";
/// How long anything may take before a test gives up. Nothing is expected to take as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
/// Between two looks at a process or a file.
const GLANCE: Duration = Duration::from_millis(3);
/// What every site may spend, as a multiple of the plan's cost.
const ROOM: f64 = 2.0;

/// What kind of network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub algorithm: AlgorithmKind,
    pub sites: usize,
    pub graph: &'static str,
    pub rounds: u32,
    pub silence: Silence,
}

impl Shape {
    /// Three sites that all talk to each other, and wait for each other.
    pub(crate) const TRIANGLE: Self =
        Self { algorithm: P_ADMM, sites: 3, graph: "complete", rounds: 8, silence: Silence::Wait };
}

/// One site's files.
pub(crate) struct Site {
    /// Its name.
    pub name: SiteName,
    /// Its folder.
    pub home: PathBuf,
    /// Its ledger, once it runs.
    pub ledger: PathBuf,
    /// What it writes to standard error, over all its processes.
    pub log: PathBuf,
    /// Where it listens.
    pub port: u16,
}

/// A network that agreed on a plan.
pub(crate) struct Network {
    folder: TempDir,
    /// The sites, in the plan's order.
    pub sites: Vec<Site>,
    /// The plan.
    pub contract: Contract,
}

impl Network {
    /// Homes, cards, records, a plan and everybody's word.
    pub(crate) fn make(shape: Shape) -> Self {
        Self::make_with(shape, None)
    }

    /// The same, with forwarders of the test's own between neighbours.
    pub(crate) fn make_linked(shape: Shape) -> (Self, Links) {
        let links = Links::default();
        (Self::make_with(shape, Some(&links)), links)
    }

    fn make_with(shape: Shape, links: Option<&Links>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let schema_file = folder.path().join("schema.toml");
        std::fs::write(&schema_file, SCHEMA).unwrap();
        let schema = padmm_data::read_schema(&schema_file).unwrap();
        let settings = PlanDraft { algorithm: shape.algorithm, rounds: shape.rounds, ..PlanDraft::default() };
        let ports = free_ports(shape.sites);
        let (mut sites, mut homes, mut entries) = (vec![], vec![], vec![]);
        for (i, &port) in ports.iter().enumerate() {
            let name = SiteName::new(["north", "east", "south", "west", "centre"][i]).unwrap();
            let home = folder.path().join(name.as_str());
            let request = InitRequest {
                addresses: vec![format!("127.0.0.1:{port}")],
                listen: format!("127.0.0.1:{port}"),
                data: Some(PathBuf::from("records.csv")),
                cap: Some(Cap { epsilon: ROOM * settings.epsilon, delta: settings.delta }),
                ..InitRequest::new(name.clone())
            };
            let made = Home::init(&home, &request, SystemTime::now()).unwrap();
            std::fs::write(home.join("records.csv"), records(i, 60)).unwrap();
            entries.push(entry(&made, &schema));
            let log = folder.path().join(format!("{name}.log"));
            sites.push(Site { name, ledger: home.join("ledgers/records.ledger"), home, log, port });
            homes.push(made);
        }
        let run = SiteName::new(RUN).unwrap();
        let graph = shape.graph.parse().unwrap();
        let draft = ContractDraft::new(run, schema, settings, entries, &graph, shape.silence, None).unwrap();
        let contract = draft.check().unwrap();
        for (i, home) in homes.iter().enumerate() {
            for (j, other) in homes.iter().enumerate().filter(|(j, _)| *j != i) {
                let is_linked = links.filter(|_| contract.neighbours(i).contains(&j));
                let card = match is_linked {
                    Some(links) => at_address(other, &links.address((i, ports[i]), (j, ports[j]))),
                    None => other.card().clone(),
                };
                home.cards().import(&card, false).unwrap();
            }
        }
        let network = Self { folder, sites, contract };
        (0..shape.sites).for_each(|i| network.accept(i, &network.contract));
        network
    }

    /// Keeps a plan at a site, with the site's word on it.
    pub(crate) fn accept(&self, site: usize, contract: &Contract) {
        let home = Home::open(&self.sites[site].home).unwrap();
        let folder = home.run_dir(contract.name());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("plan.toml"), contract.to_toml()).unwrap();
        let word = Acceptance::accept(contract, home.name(), home.identity()).unwrap();
        std::fs::write(folder.join(format!("{}.accept", home.name())), word.to_toml()).unwrap();
    }

    /// A file of the run's folder of a site.
    pub(crate) fn run_file(&self, site: usize, name: &str) -> PathBuf {
        self.sites[site].home.join("runs").join(RUN).join(name)
    }

    /// Where everything is.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// All that a site has said so far.
    pub(crate) fn log(&self, site: usize) -> String {
        // A file that is not there yet is an empty log.
        std::fs::read_to_string(&self.sites[site].log).unwrap_or_default()
    }

    /// Rounds that a site has told of, over all its processes.
    pub(crate) fn rounds_told(&self, site: usize) -> usize {
        self.log(site)
            .lines()
            .filter(|line| line.contains(": round ") && line.contains("bytes to each"))
            .count()
    }

    /// The coefficients that a site ended with.
    pub(crate) fn model(&self, site: usize) -> Vec<f64> {
        let model = padmm_data::read_model(&self.run_file(site, "model.json")).unwrap();
        let statement = model.privacy().and_then(|privacy| privacy["statement"].as_str()).unwrap_or_default();
        assert!(statement.contains("every row of the file is a record"), "the promise in words: {statement}");
        model.values().to_vec()
    }

    /// Runs all sites to their end without any disturbance.
    pub(crate) fn undisturbed(shape: Shape) -> Outcome {
        let network = Self::make(shape);
        let mut running = Running::new(&network);
        running.start_all();
        running.finish();
        (0..shape.sites).for_each(|site| network.check_own_model(site));
        network.outcome(&[])
    }

    /// What there is at the end, after all invariants were found to hold; `lost` did not take part to the end.
    pub(crate) fn outcome(&self, lost: &[usize]) -> Outcome {
        let run = self.contract.hash().to_string();
        let rounds = self.contract.plan().settings().rounds;
        let here: Vec<usize> = (0..self.sites.len()).filter(|i| !lost.contains(i)).collect();
        let charged: Vec<BTreeMap<u32, Vec<u8>>> =
            (0..self.sites.len()).map(|i| self.releases(i, &run)).collect();
        let mut outcome = Outcome::default();
        for &i in &here {
            let site = &self.sites[i];
            let all: Vec<u32> = charged[i].keys().copied().collect();
            assert_eq!(all, (1..=rounds).collect::<Vec<_>>(), "{}: one release a round", site.name);
            let verified = verify(&site.ledger).unwrap();
            assert_eq!((verified.releases, verified.forfeited), (rounds as usize, 0), "{}", site.name);
            assert_eq!(verified.runs, 1, "{}", site.name);
            outcome.spent.insert(i, verified.epsilon_spent);
            outcome.models.insert(i, self.model(i).iter().map(|v| v.to_bits()).collect());
            for (&round, bytes) in &charged[i] {
                let payload = open_release(bytes).unwrap();
                outcome.released.insert((i, round), format!("{payload:?}"));
            }
        }
        for i in 0..self.sites.len() {
            self.check_received(i, &run, &charged);
            self.check_egress(i);
        }
        for &i in &here {
            self.check_complete(i, &run, lost);
        }
        outcome
    }

    /// A site that has finished has a model of its own, which is marked, and of which log and result tell nothing.
    fn check_own_model(&self, site: usize) {
        let path = self.run_file(site, "own-model.json");
        assert!(padmm_data::read_model_inside(&path).unwrap().is_own());
        assert!(padmm_data::read_model(&path).is_err(), "a model of one's own is not shared");
        let told = self.log(site) + &std::fs::read_to_string(self.run_file(site, "result.json")).unwrap();
        for word in ["AUC", "auc", "comparison", "joint_share"] {
            assert!(!told.contains(word), "{word} is computed from records");
        }
    }

    /// The bytes of every release in a site's ledger, by round: at most one entry each, of this run only.
    fn releases(&self, site: usize, run: &str) -> BTreeMap<u32, Vec<u8>> {
        let mut releases = BTreeMap::new();
        for stored in SiteLedger::read(&self.sites[site].ledger).unwrap().entries() {
            if let Entry::Released(released) = &stored.entry {
                assert_eq!(released.run, run);
                let before = releases.insert(released.round, stored.payload.clone().unwrap());
                assert_eq!(before, None, "a second release of round {}", released.round);
            }
        }
        releases
    }

    /// Every release in a site's hands is, to the byte, one that its sender was charged for.
    fn check_received(&self, site: usize, run: &str, charged: &[BTreeMap<u32, Vec<u8>>]) {
        let ledger = open_ledger(&self.sites[site].ledger);
        for message in ledger.received(run).unwrap().into_iter().filter(|m| m.turn.stage == Stage::Model) {
            let sender = self.sites.iter().position(|s| s.name.as_str() == message.sender).unwrap();
            let (name, round) = (&self.sites[site].name, message.turn.number);
            let theirs = charged[sender].get(&round);
            assert_eq!(theirs, Some(&message.bytes), "round {round} of {} at {name}", message.sender);
        }
    }

    /// A site holds all that it used: it can go through the run again, though its neighbours have gone.
    fn check_complete(&self, site: usize, run: &str, lost: &[usize]) {
        let ledger = open_ledger(&self.sites[site].ledger);
        let received = ledger.received(run).unwrap();
        for &neighbour in self.contract.neighbours(site).iter().filter(|j| !lost.contains(j)) {
            let (here, from) = (&self.sites[site].name, &self.sites[neighbour].name);
            let turns: Vec<u32> = (received.iter())
                .filter(|m| m.turn.stage == Stage::Model && m.sender == from.as_str())
                .map(|m| m.turn.number)
                .collect();
            let all: Vec<u32> = (1..=self.contract.plan().settings().rounds).collect();
            assert_eq!(turns, all, "what {here} holds of {from}");
        }
    }

    /// Whatever left a site for a round, and however often, it was always the same.
    fn check_egress(&self, site: usize) {
        let text = std::fs::read_to_string(self.run_file(site, "egress.csv")).unwrap();
        let mut digests: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
        for line in text.lines().filter(|line| line.contains(",release,")) {
            let fields: Vec<&str> = line.split(',').collect();
            // A process that is killed may leave half a line.
            if let [_, _, turn, _, _, _, digest, _] = fields[..] {
                digests.entry(turn.parse().unwrap()).or_default().insert(digest.to_owned());
            }
        }
        let (name, doubled) = (&self.sites[site].name, digests.iter().find(|d| d.1.len() > 1));
        assert_eq!(doubled, None, "two different payloads left {name} for one round");
    }
}

/// What a run came to, in a form in which runs of different networks of one shape can be compared.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Coefficients of every site, bit by bit.
    pub models: BTreeMap<usize, Vec<u64>>,
    /// What was released, by site and round.
    pub released: BTreeMap<(usize, u32), String>,
    /// What was spent.
    pub spent: BTreeMap<usize, f64>,
}

/// The processes of a network. What still runs when this is dropped is killed.
pub(crate) struct Running<'a> {
    network: &'a Network,
    children: Vec<Option<Child>>,
    /// Where the log of the present process begins.
    began: Vec<usize>,
    /// Sites that may be left waiting for neighbours that have gone: they were killed, or cut off, at the end.
    disturbed: BTreeSet<usize>,
    /// Sites that are not started again.
    away: BTreeSet<usize>,
}

impl<'a> Running<'a> {
    /// Nothing runs yet.
    pub(crate) fn new(network: &'a Network) -> Self {
        let n = network.sites.len();
        let children = (0..n).map(|_| None).collect();
        Running { network, children, began: vec![0; n], disturbed: BTreeSet::new(), away: BTreeSet::new() }
    }

    /// Starts a site with further flags.
    pub(crate) fn start_with(&mut self, site: usize, flags: &[&str]) {
        let mut command = command(self.network, site, flags);
        self.began[site] = self.network.log(site).len();
        self.children[site] = Some(command.stderr(append(&self.network.sites[site].log)).spawn().unwrap());
    }

    /// Starts a site.
    pub(crate) fn start(&mut self, site: usize) {
        self.start_with(site, &[]);
    }

    /// Starts every site.
    pub(crate) fn start_all(&mut self) {
        (0..self.children.len()).for_each(|site| self.start(site));
    }

    /// Starts a site with a program of the caller's own.
    pub(crate) fn start_command(&mut self, site: usize, mut command: Command) {
        self.began[site] = self.network.log(site).len();
        self.children[site] = Some(command.stderr(append(&self.network.sites[site].log)).spawn().unwrap());
    }

    /// A site that ends by a kill stays away.
    pub(crate) fn stays_away(&mut self, site: usize) {
        self.away.insert(site);
    }

    /// A site may be left waiting at the end for neighbours that it has not heard the last of.
    pub(crate) fn is_disturbed(&mut self, site: usize) {
        self.disturbed.insert(site);
    }

    /// Whether a site's process runs.
    pub(crate) fn runs(&mut self, site: usize) -> bool {
        self.children[site].as_mut().is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    /// What the present process of a site has said.
    pub(crate) fn said(&self, site: usize) -> String {
        self.network.log(site).get(self.began[site]..).unwrap_or_default().to_owned()
    }

    /// Sends a signal to a site; one that has ended already gets none.
    pub(crate) fn signal(&mut self, site: usize, signal: Signal) {
        if self.runs(site) {
            let id = self.children[site].as_ref().unwrap().id();
            let _ = kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal);
        }
    }

    /// Waits until a site has ended.
    pub(crate) fn wait(&mut self, site: usize) -> ExitStatus {
        let mut child = self.children[site].take().expect("the site was started");
        let status = until(&format!("{} ends", self.network.sites[site].name), || child.try_wait().unwrap());
        status.unwrap_or_else(|| {
            let _ = child.kill();
            let _ = child.wait();
            panic!(
                "the site {} did not end; its log:\n{}",
                self.network.sites[site].name,
                self.network.log(site)
            )
        })
    }

    /// Waits until the present process of a site has said something.
    pub(crate) fn wait_for(&mut self, site: usize, words: &str) {
        let heard = until(words, || self.said(site).contains(words).then_some(()));
        assert!(heard.is_some(), "{words:?} was not said: {}", self.network.log(site));
    }

    /// Looks after the sites once: whoever was killed is started again. Says whether all have ended.
    pub(crate) fn tend(&mut self) -> bool {
        for site in 0..self.children.len() {
            let Some(child) = &mut self.children[site] else { continue };
            let Some(status) = child.try_wait().unwrap() else { continue };
            self.children[site] = None;
            if status.success() || self.away.contains(&site) {
                continue;
            }
            let log = self.network.log(site);
            assert_eq!(status.signal(), Some(9), "{} stopped:\n{log}", self.network.sites[site].name);
            self.disturbed.insert(site);
            self.start(site);
        }
        self.children.iter().all(Option::is_none)
    }

    /// Runs all sites to their end. A disturbed site that stays for neighbours that have left is told to stop, which it says is safe.
    pub(crate) fn finish(&mut self) {
        let ended = until("the run ends", || {
            if self.tend() {
                return Some(());
            }
            let left: Vec<usize> = (0..self.children.len()).filter(|&i| self.children[i].is_some()).collect();
            let stays =
                |i: &usize| self.disturbed.contains(i) && self.said(*i).contains("finished; staying for");
            if left.len() < self.children.len() && left.iter().all(stays) {
                left.into_iter().for_each(|site| self.signal(site, Signal::TERM));
            }
            None
        });
        if ended.is_none() {
            let logs: Vec<String> = (0..self.children.len()).map(|i| tail(&self.network.log(i))).collect();
            panic!("the run did not end; the sites' last words:\n{}", logs.join("\n---\n"));
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The command that runs a site, with the test's noise.
pub(crate) fn command(network: &Network, site: usize, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"));
    command
        .args(["site", "run", "--run", RUN, "--test-noise-seed", SEED, "--home"])
        .arg(&network.sites[site].home)
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Asks again and again until there is an answer, or for too long.
pub(crate) fn until<T>(_what: &str, mut answer: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = answer() {
            return Some(answer);
        }
        if Instant::now() > end {
            return None;
        }
        std::thread::sleep(GLANCE);
    }
}

/// Runs independent jobs, some at once, and reports all that failed by name.
pub(crate) fn in_parallel(jobs: Vec<(String, Box<dyn FnOnce() + Send>)>) {
    let total = jobs.len();
    let jobs: Vec<_> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (name, work) = job.lock().unwrap().take().unwrap();
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                        let text = panic.downcast_ref::<String>().cloned();
                        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
                        failed.lock().unwrap().push(format!("{name}: {}", text.unwrap_or_default()));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {total} failed:\n{}", failed.len(), failed.join("\n"));
}

/// A small generator: the same numbers from the same seed, everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    /// From a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % n as u64).unwrap()
    }
}

/// Opens the ledger of a site that has ended. A process that another thread is starting just now holds this one's locks until it has
/// become its own program, so a lock is waited for.
fn open_ledger(path: &Path) -> SiteLedger {
    let opened = until("the ledger is free", || match SiteLedger::open(path) {
        Err(LedgerError::InUse { .. }) => None,
        other => Some(other.unwrap()),
    });
    opened.expect("the ledger of a site that has ended is free")
}

/// Opens a log to go on with it.
pub(crate) fn append(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

/// The last lines of a log.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

/// A home's entry in a plan.
fn entry(home: &Home, schema: &Schema) -> SiteEntry {
    let data = home.dir().join("records.csv");
    let records = padmm_data::encode_site_file(&data, schema).unwrap().records.n_records();
    SiteEntry { name: home.name().clone(), records, fingerprint: home.card().fingerprint() }
}

/// A home's card, with another address in it.
fn at_address(home: &Home, address: &str) -> Card {
    let card = home.card();
    let addresses = vec![address.to_owned()];
    let (key, serial) = (home.transport().public(), card.serial());
    Card::sign(home.identity(), key, home.name(), serial, addresses, None, card.certificate()).unwrap()
}

/// Ports that nothing listens on, below those that the system hands out by itself, each given once to this process.
pub(crate) fn free_ports(n: usize) -> Vec<u16> {
    static NEXT: Mutex<u16> = Mutex::new(0);
    let mut next = NEXT.lock().unwrap();
    let mut ports = vec![];
    while ports.len() < n {
        let offset = (std::process::id() % 97) as u16 * 211;
        let port = 10_000 + (*next + offset) % 22_000;
        *next += 1;
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            ports.push(port);
        }
    }
    ports
}

const SCHEMA: &str = r#"
norm_bound = 1.0
intercept = true
missing = "drop"
missing_values = ["?"]
on_out_of_range = "clip"
on_unknown_category = "error"

[label]
column = "ill"
kind = "binary"
positive = ["1"]
negative = ["0"]

[[columns]]
name = "age"
kind = "numeric"
lower = 20.0
upper = 100.0

[[columns]]
name = "pressure"
kind = "numeric"
lower = 60.0
upper = 220.0

[[columns]]
name = "group"
kind = "categorical"
values = ["a", "b", "c"]
"#;

/// Made-up records of a site.
pub(crate) fn records(site: usize, n: usize) -> String {
    let mut dice = Dice::new(1000 + site as u64);
    let mut text = "age,pressure,group,ill\n".to_owned();
    for _ in 0..n {
        let (age, pressure) = (20 + dice.below(80), 60 + dice.below(160));
        let group = ["a", "b", "c"][dice.below(3)];
        let ill = u8::from(age + pressure + dice.below(80) > 240);
        text += &format!("{age},{pressure},{group},{ill}\n");
    }
    text
}
