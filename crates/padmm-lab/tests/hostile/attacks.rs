//! Hostile and broken peers against real site processes, over QUIC on this machine.
//!
//! Ash and birch are honest. The attacker is a stranger or, where that takes it further, has stolen all keys of cedar and talks to
//! ash in its place. Ash must say in its log what it did not use; then the real cedar comes, and the models must be those of a run that
//! nobody disturbed, to the last bit.

#[path = "floods.rs"]
mod floods;
#[path = "texts.rs"]
mod texts;

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use iroh::endpoint::{Connection, SendStream, VarInt, presets};
use iroh::{Endpoint, EndpointAddr, RelayMode, TransportAddr};
use padmm_core::message::{SiteIndex, Turn};
use padmm_core::plan::PlanDraft;
use padmm_core::schema::{Schema, SchemaDraft};
use padmm_node::contract::{Acceptance, Contract, ContractDraft, Silence, SiteEntry, Trust};
use padmm_node::frame::{Accepted, Frame, ModelFrame, Origin, Ready};
use padmm_node::identity::{Cap, Home, InitRequest, PublicKey, SecretKey, SiteName};
use padmm_node::ledger::SiteLedger;
use padmm_privacy::Payload;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

const ASH: usize = 0;
const BIRCH: usize = 1;
const CEDAR: usize = 2;
const NAMES: [&str; 3] = ["ash", "birch", "cedar"];
const RUN: &str = "trial";
const ROUNDS: u32 = 8;
/// Nothing here takes that long, unless it never ends.
const DEADLINE: Duration = Duration::from_secs(120);

fn name(text: &str) -> SiteName {
    SiteName::new(text).unwrap()
}

fn schema() -> Schema {
    let draft: SchemaDraft = toml::from_str(
        r#"norm_bound = 1.0
intercept = true
missing = "drop"
label = { column = "ill", kind = "binary", positive = ["yes"], negative = ["no"] }
columns = [
  { name = "age", kind = "numeric", lower = 0, upper = 100 },
  { name = "dose", kind = "numeric", lower = 0, upper = 1 },
]"#,
    )
    .unwrap();
    draft.check().unwrap()
}

/// Records that are the same every time: the ill are older, more or less.
fn records(site: usize) -> (usize, String) {
    let n = 60 + 20 * site;
    let row = |k: usize| {
        let age = (17 * k + 31 * site) % 100;
        let ill = if age + (k * k) % 40 > 70 { "yes" } else { "no" };
        format!("{age},{:.2},{ill}\n", (k * 7 % 11) as f64 * 0.09)
    };
    (n, "age,dose,ill\n".to_owned() + &(0..n).map(row).collect::<String>())
}

/// An authority that the test runs itself.
struct TestAuthority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

struct Subject([u8; 32]);

impl rcgen::PublicKeyData for Subject {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }
    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

impl TestAuthority {
    fn new(common_name: &str) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn certify(&self, home: &mut Home) {
        let mut params = CertificateParams::new(vec![home.name().dns_name()]).unwrap();
        let now = time::OffsetDateTime::from(SystemTime::now());
        let (before, after) = (time::Duration::days(1), time::Duration::days(90));
        (params.not_before, params.not_after) = (now - before, now + after);
        let subject = Subject(home.identity().public().to_bytes());
        let pem = params.signed_by(&subject, &self.issuer).unwrap().pem();
        home.certify(&pem, SystemTime::now()).unwrap();
    }
}

/// Three homes with everything that a run needs.
struct Network {
    folder: TempDir,
    homes: Vec<Home>,
    contract: Contract,
}

impl Network {
    fn new() -> Self {
        Self::with(None, |_, _| {})
    }

    /// `change` may do something to each home before its card is given away.
    fn with(trust: Option<Trust>, change: impl Fn(usize, &mut Home)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = PlanDraft {
            algorithm: super::ALGORITHM,
            rounds: ROUNDS,
            epsilon: 5.0,
            delta: 1e-4,
            ..PlanDraft::default()
        };
        let sockets = NAMES.map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (mut homes, mut entries) = (vec![], vec![]);
        for (site, socket) in sockets.iter().enumerate() {
            let address = socket.local_addr().unwrap().to_string();
            let request = InitRequest {
                addresses: vec![address.clone()],
                listen: address,
                data: Some("records.csv".into()),
                cap: Some(Cap { epsilon: 10.0, delta: 1e-4 }),
                ..InitRequest::new(name(NAMES[site]))
            };
            let mut home = Home::init(&folder.path().join(NAMES[site]), &request, SystemTime::now()).unwrap();
            change(site, &mut home);
            let (n, text) = records(site);
            std::fs::write(home.dir().join("records.csv"), text).unwrap();
            let fingerprint = home.card().fingerprint();
            entries.push(SiteEntry { name: home.name().clone(), records: n, fingerprint });
            homes.push(home);
        }
        let graph = "complete".parse().unwrap();
        let draft =
            ContractDraft::new(name(RUN), schema(), settings, entries, &graph, Silence::Wait, trust).unwrap();
        let contract = draft.check().unwrap();
        for home in &homes {
            for other in homes.iter().filter(|h| h.name() != home.name()) {
                home.cards().import(other.card(), false).unwrap();
            }
            let run = home.run_dir(&name(RUN));
            std::fs::create_dir_all(&run).unwrap();
            std::fs::write(run.join("plan.toml"), contract.to_toml()).unwrap();
            let word = Acceptance::accept(&contract, home.name(), home.identity()).unwrap();
            std::fs::write(run.join(format!("{}.accept", home.name())), word.to_toml()).unwrap();
        }
        Self { folder, homes, contract }
    }

    fn start(&self, site: usize) -> Process {
        let log = self.folder.path().join(format!("{}.log", NAMES[site]));
        let child = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"))
            .args(["site", "run", "--run", RUN, "--test-noise-seed", "7", "--home"])
            .arg(self.homes[site].dir())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Process { child, log }
    }

    fn models(&self) -> Vec<Vec<u64>> {
        let of = |home: &Home| {
            let model = padmm_data::read_model(&home.run_dir(&name(RUN)).join("model.json")).unwrap();
            model.values().iter().map(|v| v.to_bits()).collect()
        };
        self.homes.iter().map(of).collect()
    }

    fn origin(&self, site: usize) -> Origin {
        Origin { plan: self.contract.hash().0, sender: SiteIndex(site) }
    }

    /// Cedar's message of a round with these numbers.
    fn model(&self, turn: u32, payload: Payload) -> ModelFrame {
        let origin = self.origin(CEDAR);
        // No entry: a release that names one would be shown to the real cedar, which does not have it and stops, as it must.
        let state = reference().cedar[turn as usize - 1].state;
        ModelFrame { origin, turn: Turn::model(turn), entry: 0, head: [3; 32], state, payload }
    }

    /// A frame with cedar's signature.
    fn signed(&self, frame: &Frame) -> Vec<u8> {
        frame.encode(self.homes[CEDAR].identity()).to_vec()
    }

    fn signed_speech(&self, turn: u32, payload: Payload) -> Vec<u8> {
        self.signed(&Frame::Model(self.model(turn, payload)))
    }

    fn hello(&self) -> Frame {
        let home = &self.homes[CEDAR];
        let word = Acceptance::accept(&self.contract, home.name(), home.identity()).unwrap();
        let key = home.identity().public().to_bytes();
        let accepted = vec![Accepted { site: SiteIndex(CEDAR), key, signature: word.signature }];
        let ready = vec![Ready::say(self.origin(CEDAR), home.identity())];
        Frame::Hello { origin: self.origin(CEDAR), proof: false, shown: vec![], accepted, ready }
    }

    /// Cedar's receipt for a site's release of a round, once that is in the site's ledger.
    async fn receipt(&self, site: usize, round: u32) -> Vec<u8> {
        let (path, run) =
            (self.homes[site].ledgers().join("records.ledger"), self.contract.hash().to_string());
        let until = Instant::now() + DEADLINE;
        loop {
            let view = SiteLedger::read(&path).ok();
            let entry = view.as_ref().and_then(|v| v.state().run(&run)?.charges.get(&round).map(|c| c.seq));
            if let (Some(view), Some(entry)) = (view, entry) {
                let release = view.entries()[entry as usize - 1].payload.clone().unwrap();
                let (origin, digest) = (self.origin(CEDAR), Sha256::digest(release).into());
                return self.signed(&Frame::Receipt { origin, whose: SiteIndex(site), entry, digest });
            }
            assert!(Instant::now() < until, "{} does not come to round {round}", NAMES[site]);
            sleep(Duration::from_millis(10)).await;
        }
    }

    fn status(&self, sender: usize) -> Frame {
        let origin = self.origin(sender);
        Frame::Status { origin, turn: Turn::model(1), counter: 1, done: true }
    }

    /// Somebody with cedar's keys, connected to a site.
    async fn impostor(&self, site: usize) -> Line {
        Line::open(self.homes[CEDAR].transport(), &self.homes[site]).await
    }

    /// The rest of the run, which must come to what it always comes to.
    async fn ends_as_ever(&self, sites: impl IntoIterator<Item = Process>) {
        for site in sites {
            site.finishes().await;
        }
        assert_eq!(self.models(), reference().models);
    }
}

/// A site's process; it ends with the test.
struct Process {
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
    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until its log has this.
    async fn says(&mut self, what: &str) {
        let until = Instant::now() + DEADLINE;
        while !self.log().contains(what) {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "the site ended with {ended:?} before it said {what:?}:\n{}",
                self.log()
            );
            assert!(Instant::now() < until, "the site did not say {what:?}:\n{}", self.log());
            sleep(Duration::from_millis(10)).await;
        }
    }

    async fn ends(&mut self) -> ExitStatus {
        let until = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the site does not end:\n{}", self.log());
            sleep(Duration::from_millis(10)).await;
        }
    }

    async fn finishes(mut self) {
        let status = self.ends().await;
        assert!(status.success(), "the site ended with {status}:\n{}", self.log());
    }
}

/// A run that nobody disturbs.
struct Reference {
    models: Vec<Vec<u64>>,
    /// What cedar releases, round by round.
    cedar: Vec<ModelFrame>,
}

fn reference() -> &'static Reference {
    static REFERENCE: OnceLock<Reference> = OnceLock::new();
    REFERENCE.get_or_init(|| {
        let network = Network::new();
        let mut sites = [ASH, BIRCH, CEDAR].map(|site| network.start(site));
        for site in &mut sites {
            assert!(site.child.wait().unwrap().success(), "{}", site.log());
        }
        let ledger = SiteLedger::open(&network.homes[CEDAR].ledgers().join("records.ledger")).unwrap();
        let hash = network.contract.hash().to_string();
        let round = |r| match Frame::decode(&ledger.release_bytes(&hash, r).unwrap().unwrap()) {
            Ok(Frame::Model(model)) => model,
            other => panic!("round {r} is no release: {other:?}"),
        };
        Reference { models: network.models(), cedar: (1..=ROUNDS).map(round).collect() }
    })
}

/// What cedar releases in a round.
fn genuine(turn: u32) -> Payload {
    reference().cedar[turn as usize - 1].payload.clone()
}

fn grid(payload: &Payload) -> (i32, Vec<i64>) {
    match payload.clone() {
        Payload::Grid { exponent, values } => (exponent, values),
        Payload::Plain(_) => panic!("a release is on a grid"),
    }
}

/// The same with one integer changed.
fn changed(payload: &Payload) -> Payload {
    let (exponent, mut values) = grid(payload);
    values[0] += 1;
    Payload::Grid { exponent, values }
}

/// A connection of the attacker's, with a stream of frames.
struct Line {
    endpoint: Endpoint,
    connection: Connection,
    stream: SendStream,
}

async fn endpoint(key: &SecretKey) -> Endpoint {
    Endpoint::builder(presets::Minimal)
        .secret_key(iroh::SecretKey::from_bytes(&key.to_bytes()))
        .relay_mode(RelayMode::Disabled)
        .clear_address_lookup()
        .clear_ip_transports()
        .bind_addr("127.0.0.1:0".parse::<SocketAddr>().unwrap())
        .unwrap()
        .bind()
        .await
        .unwrap()
}

fn address_at(key: &PublicKey, at: SocketAddr) -> EndpointAddr {
    EndpointAddr::from_parts(iroh::PublicKey::from_bytes(&key.to_bytes()).unwrap(), [TransportAddr::Ip(at)])
}

fn address(home: &Home) -> EndpointAddr {
    address_at(home.card().transport(), home.config().listen())
}

impl Line {
    /// Dials until the site is there.
    async fn open(key: &SecretKey, home: &Home) -> Self {
        let endpoint = endpoint(key).await;
        let until = Instant::now() + DEADLINE;
        loop {
            let dial = timeout(Duration::from_secs(2), endpoint.connect(address(home), b"padmm/3")).await;
            if let Ok(Ok(connection)) = dial
                && let Ok(stream) = connection.open_uni().await
            {
                return Self { endpoint, connection, stream };
            }
            assert!(Instant::now() < until, "the site does not answer");
        }
    }

    async fn try_send(&mut self, bytes: &[u8]) -> bool {
        let length = (bytes.len() as u32).to_le_bytes();
        self.stream.write_all(&length).await.is_ok() && self.stream.write_all(bytes).await.is_ok()
    }

    async fn send(&mut self, bytes: &[u8]) {
        assert!(self.try_send(bytes).await, "the site has closed the connection");
    }

    async fn close(self) {
        self.connection.close(VarInt::from_u32(0), b"");
        self.endpoint.close().await;
    }
}

fn run<T>(body: impl Future<Output = T>) -> T {
    reference();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(body)
}

/// An attack on ash with cedar's keys: `attack` is made, ash says each of `lines`, the real cedar comes, and the run is as it would
/// have been. Gives ash's log.
fn with_keys_of_cedar(lines: &[&str], attack: impl AsyncFnOnce(&Network, &mut Line)) -> String {
    run(async {
        let network = Network::new();
        let (mut ash, birch) = (network.start(ASH), network.start(BIRCH));
        let mut line = network.impostor(ASH).await;
        attack(&network, &mut line).await;
        for what in lines {
            ash.says(what).await;
        }
        line.close().await;
        let path = ash.log.clone();
        network.ends_as_ever([ash, birch, network.start(CEDAR)]).await;
        std::fs::read_to_string(path).unwrap()
    })
}

/// Frames that ash must not use, for the reason that its log gives.
fn refused(line: &str, frames: impl Fn(&Network) -> Vec<Vec<u8>>) {
    let line = format!("cedar: {line}");
    with_keys_of_cedar(&[&line], async |network, attacker| {
        for frame in frames(network) {
            attacker.send(&frame).await;
        }
    });
}

#[test]
fn a_key_of_nobody_in_the_plan_is_refused_by_name() {
    run(async {
        let network = Network::new();
        let (mut ash, birch) = (network.start(ASH), network.start(BIRCH));
        let key = SecretKey::generate().unwrap();
        let line = Line::open(&key, &network.homes[ASH]).await;
        ash.says(&format!("refused a connection: the key {} is no neighbour's in this plan", key.public()))
            .await;
        let reason = line.connection.closed().await.to_string();
        assert!(reason.contains("not in the plan"), "{reason}");
        network.ends_as_ever([ash, birch, network.start(CEDAR)]).await;
    });
}

#[test]
fn a_certificate_of_another_authority_stops_a_site_before_it_connects() {
    let (ours, other) =
        (TestAuthority::new("The trial's authority"), TestAuthority::new("Another authority"));
    let trust = Trust { ca: ours.pem.clone() };
    let network = Network::with(Some(trust), |site, home| {
        if site == CEDAR { &other } else { &ours }.certify(home);
    });
    run(async {
        for site in [ASH, CEDAR] {
            let mut process = network.start(site);
            assert!(!process.ends().await.success());
            let log = process.log();
            assert!(log.contains("the certificate of cedar was not issued by the authority"), "{log}");
            assert!(log.contains("The trial's authority"), "{log}");
            assert!(std::fs::read_dir(network.homes[site].ledgers()).unwrap().next().is_none());
        }
    });
}

#[test]
fn a_certificate_of_the_right_authority_for_a_site_outside_the_plan_opens_nothing() {
    let authority = TestAuthority::new("The trial's authority");
    let trust = Trust { ca: authority.pem.clone() };
    let network = Network::with(Some(trust), |_, home| authority.certify(home));
    let folder = network.folder.path().join("dogwood");
    let request = InitRequest { listen: "127.0.0.1:1".to_owned(), ..InitRequest::new(name("dogwood")) };
    let mut dogwood = Home::init(&folder, &request, SystemTime::now()).unwrap();
    authority.certify(&mut dogwood);
    run(async {
        let (mut ash, birch) = (network.start(ASH), network.start(BIRCH));
        let line = Line::open(dogwood.transport(), &network.homes[ASH]).await;
        ash.says(&format!("the key {} is no neighbour's in this plan", dogwood.transport().public())).await;
        line.connection.closed().await;
        network.ends_as_ever([ash, birch, network.start(CEDAR)]).await;
    });
}

#[test]
fn messages_that_another_key_signed_are_not_used() {
    type Make = fn(&Network) -> Frame;
    let makes: [Make; 3] = [
        |network| Frame::Model(network.model(1, changed(&genuine(1)))),
        |network| network.hello(),
        |network| network.status(CEDAR),
    ];
    for make in makes {
        refused("sent a message whose signature is not its own", |network| {
            vec![make(network).encode(&SecretKey::generate().unwrap()).to_vec()]
        });
    }
}

#[test]
fn messages_in_another_sites_name_are_not_used() {
    refused("sent a message in another site's name", |network| {
        let model = ModelFrame { origin: network.origin(BIRCH), ..network.model(1, changed(&genuine(1))) };
        vec![network.signed(&Frame::Model(model)), network.signed(&network.status(BIRCH))]
    });
}

#[test]
fn messages_of_another_run_are_not_used() {
    refused("sent a message of another run", |network| {
        let mut model = network.model(1, changed(&genuine(1)));
        model.origin.plan = [9; 32];
        vec![network.signed(&Frame::Model(model))]
    });
}

#[test]
fn a_plan_that_nobody_asked_for_stops_nobody() {
    refused("sent a plan that was not asked for", |network| {
        vec![network.signed(&Frame::PlanText("name = \"another plan\"".to_owned()))]
    });
}

#[test]
fn a_word_of_leaving_is_not_heeded_where_the_plan_waits() {
    refused("says that a site was left behind, and this plan waits for all", |network| {
        let (origin, lost) = (network.origin(CEDAR), SiteIndex(ASH));
        vec![network.signed(&Frame::Departure { origin, lost, turn: Turn::model(1) })]
    });
}

#[test]
fn models_of_another_dimension_are_not_used() {
    let (exponent, mut values) = grid(&genuine(1));
    let expected = values.len();
    values.push(1);
    let line = format!("sent a model of {} coefficients where {expected} are expected", expected + 1);
    refused(&line, |network| {
        vec![network.signed_speech(1, Payload::Grid { exponent, values: values.clone() })]
    });
}

#[test]
fn releases_on_another_grid_are_not_used() {
    let (exponent, values) = grid(&genuine(1));
    let line = format!("sent a release on the grid 2^{} where the plan has 2^{exponent}", exponent + 1);
    refused(&line, |network| {
        vec![network.signed_speech(1, Payload::Grid { exponent: exponent + 1, values: values.clone() })]
    });
    refused("sent plain numbers where a release is expected", |network| {
        vec![network.signed_speech(1, Payload::Plain(vec![0.0; values.len()]))]
    });
}

#[test]
fn absurd_numbers_are_not_used() {
    let (exponent, values) = grid(&genuine(1));
    let line = "sent something that is no message: its numbers are absurd";
    for absurd in [1 << 53, -(1 << 53), i64::MIN] {
        refused(line, |network| {
            let values = vec![absurd; values.len()];
            vec![network.signed_speech(1, Payload::Grid { exponent, values })]
        });
    }
    for absurd in [f64::NAN, f64::INFINITY] {
        refused(line, |network| {
            let (origin, payload) = (network.origin(CEDAR), Payload::Plain(vec![absurd; values.len()]));
            let model =
                ModelFrame { origin, turn: Turn::average(1), entry: 0, head: [0; 32], state: None, payload };
            vec![network.signed(&Frame::Model(model))]
        });
    }
}

#[test]
fn garbage_is_not_used() {
    refused("sent something that is no message: messages of kind 255 are unknown", |_| vec![vec![255; 300]]);
    refused("sent something that is no message: the message is cut short", |network| {
        vec![network.signed_speech(1, genuine(1))[..100].to_vec()]
    });
}
