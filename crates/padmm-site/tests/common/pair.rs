//! Two sites on this machine that have accepted a plan, as processes.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use padmm_core::plan::PlanDraft;
use padmm_core::schema::SchemaDraft;
use padmm_node::contract::{Acceptance, ContractDraft, Silence, SiteEntry};
use padmm_node::identity::{Cap, Home, InitRequest, SiteName};
use tempfile::TempDir;

/// Nothing here takes that long, unless it never ends.
const DEADLINE: Duration = Duration::from_secs(120);

pub(crate) const NAMES: [&str; 2] = ["north", "south"];
pub(crate) const RUN: &str = "trial";

pub(crate) struct Pair {
    folder: TempDir,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = |text: &str| SiteName::new(text).unwrap();
        let schema: SchemaDraft = toml::from_str(crate::common::SCHEMA).unwrap();
        let schema = schema.check().unwrap();
        let now = padmm_node::clock::now();
        let sockets = NAMES.map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (mut homes, mut entries) = (vec![], vec![]);
        for (site, socket) in NAMES.iter().zip(&sockets) {
            let address = socket.local_addr().unwrap().to_string();
            let request = InitRequest {
                addresses: vec![address.clone()],
                listen: address,
                data: Some("records.csv".into()),
                cap: Some(Cap { epsilon: 10.0, delta: 1e-4 }),
                ..InitRequest::new(name(site))
            };
            let home = Home::init(&folder.path().join(site), &request, now).unwrap();
            std::fs::write(home.dir().join("records.csv"), crate::common::table(90)).unwrap();
            entries.push(SiteEntry { name: name(site), records: 90, fingerprint: home.card().fingerprint() });
            homes.push(home);
        }
        let settings = PlanDraft { rounds: 5, epsilon: 4.0, delta: 1e-4, ..PlanDraft::default() };
        let graph = "complete".parse().unwrap();
        let draft = ContractDraft::new(name(RUN), schema, settings, entries, &graph, Silence::Wait, None);
        let contract = draft.unwrap().check().unwrap();
        for home in &homes {
            for other in homes.iter().filter(|other| other.name() != home.name()) {
                home.cards().import(other.card(), false).unwrap();
            }
            let run = home.run_dir(&name(RUN));
            std::fs::create_dir_all(&run).unwrap();
            std::fs::write(run.join("plan.toml"), contract.to_toml()).unwrap();
            for signer in &homes {
                let word = Acceptance::accept(&contract, signer.name(), signer.identity()).unwrap();
                std::fs::write(run.join(format!("{}.accept", signer.name())), word.to_toml()).unwrap();
            }
        }
        Self { folder }
    }

    /// Where both homes are.
    pub(crate) fn at(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn home(&self, site: usize) -> PathBuf {
        self.at().join(NAMES[site])
    }

    pub(crate) fn start(&self, site: usize, more: &[&str]) -> Process {
        let log = self.at().join(format!("{}.log", NAMES[site]));
        let child = Command::new(crate::common::PROGRAM)
            .args(["site", "run", "--run", RUN, "--no-own-model", "--home"])
            .arg(self.home(site))
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Process { child, log }
    }
}

/// A site's process; it ends with the test.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// The line of its log that has this, once it is there.
    pub(crate) fn says(&self, what: &str) -> String {
        until(|| self.log().lines().find(|line| line.contains(what)).map(str::to_owned), || self.log())
    }

    pub(crate) fn finishes(&mut self) {
        let log = self.log.clone();
        let status = until(|| self.child.try_wait().unwrap(), || std::fs::read_to_string(&log).unwrap());
        assert!(status.success(), "{status}: {}", self.log());
    }
}

/// Looks again until there is something.
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>, why: impl Fn() -> String) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "it never came to that: {}", why());
        std::thread::sleep(Duration::from_millis(20));
    }
}
