//! Sites with keys, records and a plan that all have accepted. They are made once; every schedule begins with empty ledgers.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use padmm_core::algorithm::{AlgorithmKind, CONSENSUS_NEWTON, P_ADMM};
use padmm_core::data::Dataset;
use padmm_core::plan::PlanDraft;
use padmm_core::schema::SchemaDraft;
use padmm_node::contract::{Acceptance, Contract, ContractDraft, Silence, SiteEntry};
use padmm_node::identity::{Cap, Home, InitRequest, SiteName};
use padmm_node::site::Site;
use tempfile::TempDir;

pub(super) const NAMES: [&str; 4] = ["ash", "birch", "cedar", "dogwood"];
pub(super) const EPSILON: f64 = 5.0;
pub(super) const DELTA: f64 = 1e-4;
const ROUNDS: u32 = 4;
const LEAVE: Silence = Silence::Leave { after_seconds: 10 };

const SCHEMA: &str = r#"
norm_bound = 1.0
intercept = true
missing = "drop"
label = { column = "ill", kind = "binary", positive = ["yes"], negative = ["no"] }
columns = [
  { name = "age", kind = "numeric", lower = 0, upper = 100 },
  { name = "blood", kind = "categorical", values = ["A", "B", "O"] },
]"#;

/// What schedules are played with, by turns.
const SHAPES: [(AlgorithmKind, usize, &str, Silence); 6] = [
    (P_ADMM, 3, "complete", Silence::Wait),
    (CONSENSUS_NEWTON, 3, "path", Silence::Wait),
    (P_ADMM, 4, "ring", Silence::Wait),
    (P_ADMM, 4, "complete", LEAVE),
    (CONSENSUS_NEWTON, 4, "ring", LEAVE),
    (P_ADMM, 2, "path", Silence::Wait),
];

/// Sites with a plan.
pub struct Consortium {
    _folder: TempDir,
    pub(super) contract: Contract,
    pub(super) sites: Vec<(Site, Arc<Dataset>)>,
    pub(super) silence: Silence,
    /// The models of a run to which nothing happens.
    pub(super) quiet: OnceLock<BTreeMap<usize, Vec<u64>>>,
}

fn records(site: usize) -> (usize, String) {
    let n = 12 + 2 * site;
    let row = |k: usize| {
        let age = (17 * k + 31 * site) % 100;
        let ill = if age + (k * k) % 40 > 70 { "yes" } else { "no" };
        format!("{age},{},{ill}\n", ["A", "B", "O"][k % 3])
    };
    (n, "age,blood,ill\n".to_owned() + &(0..n).map(row).collect::<String>())
}

impl Consortium {
    /// One of each shape.
    pub fn all() -> Vec<Self> {
        let make = |(algorithm, n, graph, silence)| Self::new(algorithm, n, graph, silence);
        SHAPES
            .into_iter()
            .map(|shape| make(shape).expect("a consortium can be made in a temporary folder"))
            .collect()
    }

    fn new(algorithm: AlgorithmKind, n: usize, graph: &str, silence: Silence) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let now = SystemTime::now();
        let settings =
            PlanDraft { algorithm, rounds: ROUNDS, epsilon: EPSILON, delta: DELTA, ..PlanDraft::default() };
        let (mut homes, mut entries) = (vec![], vec![]);
        for (site, text) in NAMES[..n].iter().enumerate() {
            let request = InitRequest {
                addresses: vec![format!("127.0.0.1:{}", site + 1)],
                data: Some("records.csv".into()),
                cap: Some(Cap { epsilon: 2.0 * EPSILON, delta: DELTA }),
                ..InitRequest::new(SiteName::new(*text)?)
            };
            let home = Home::init(&folder.path().join(text), &request, now)?;
            let (n, text) = records(site);
            std::fs::write(home.dir().join("records.csv"), text)?;
            let fingerprint = home.card().fingerprint();
            entries.push(SiteEntry { name: home.name().clone(), records: n, fingerprint });
            homes.push(home);
        }
        let schema = toml::from_str::<SchemaDraft>(SCHEMA)?.check()?;
        let run = SiteName::new("trial")?;
        let draft =
            ContractDraft::new(run.clone(), schema, settings, entries, &graph.parse()?, silence, None)?;
        let contract = draft.check()?;
        let prepare = |home: &Home| -> anyhow::Result<_> {
            for other in homes.iter().filter(|h| h.name() != home.name()) {
                home.cards().import(other.card(), false)?;
            }
            let folder = home.run_dir(&run);
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join("plan.toml"), contract.to_toml())?;
            let word = Acceptance::accept(&contract, home.name(), home.identity())?;
            std::fs::write(folder.join(format!("{}.accept", home.name())), word.to_toml())?;
            let prepared = Site::read(home.dir(), &run, now)?;
            let records = Arc::new(prepared.records()?);
            Ok((prepared, records))
        };
        let sites = homes.iter().map(prepare).collect::<anyhow::Result<_>>()?;
        Ok(Self { _folder: folder, contract, sites, silence, quiet: OnceLock::new() })
    }
}
