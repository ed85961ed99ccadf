//! The attack on real site processes: two sites, each of which is the other's attacker. The integers come from their ledgers.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use anyhow::Context;
use padmm_audit::{
    AuditRequest, Bits, Canary, Check, Checks, Evidence, Scene, Shipped, Trial, Verdict, one_payload, replay,
    stopping, whiteness,
};
use padmm_core::plan::PlanDraft;
use padmm_core::schema::{ColumnDraft, LabelDraft, Scalar, Schema, SchemaDraft};
use padmm_core::terms::Terms;
use padmm_node::contract::{Acceptance, Contract, ContractDraft, Silence, SiteEntry};
use padmm_node::identity::{Cap, Home, InitRequest, SiteName};
use padmm_node::ledger::{SiteLedger, verify};
use padmm_node::site::open_release;
use padmm_privacy::{NoiseSource, Payload, SecureNoise};

use super::super::demo::{DemoSite, Network, RUN, run_processes};
use crate::lab::Lab;

/// Most secret bits of one site in one run.
const MOST_TESTS: usize = 2500;
/// Sites of a run.
const NAMES: [&str; 2] = ["north", "south"];
/// How often a site of the first run is killed and started again on the way.
const KILLS: u32 = 1;

/// Attacks as many runs as the tests need, then does the checks of one process.
pub fn audit(
    request: &AuditRequest,
    refusals: Check,
    progress: &(dyn Fn(usize) + Sync),
    lab: &Lab,
) -> anyhow::Result<(Verdict, Vec<Trial>)> {
    let per_site = request.tests.div_ceil(NAMES.len()).min(MOST_TESTS);
    let canary = Canary::new(&request.canary(per_site))?;
    let runs = request.tests.div_ceil(NAMES.len() * per_site);
    let (mut evidence, mut mu_claimed) = (Evidence::default(), 0.0f64);
    evidence.noise_is_secure = true;
    for number in 0..runs {
        let folder = tempfile::tempdir().context("a temporary folder cannot be made")?;
        let run = Run::make(folder.path(), &canary, request.seed, number as u64)?;
        run_processes(&run.network, if number == 0 { KILLS } else { 0 }, false, lab)?;
        for (site, terms) in run.network.contract.terms().agents.iter().enumerate() {
            let report = terms.noise.as_ref().context("the plan has no noise")?.report();
            mu_claimed = mu_claimed.max(report.mu);
            evidence = evidence.and(run.evidence(&canary, site)?);
        }
        progress(NAMES.len() * per_site);
    }
    evidence.trials.truncate(request.tests);
    let mut one_payload = one_payload(&Shipped, &request.canary(per_site), request.seed)?;
    evidence.faults.iter().for_each(|fault| one_payload.fail(fault.clone()));
    let checks = Checks {
        whiteness: whiteness(&evidence),
        one_payload,
        stopping: stopping(&Shipped, request.seed)?,
        refusals,
    };
    let verdict = Verdict::of(request, mu_claimed, &evidence.trials, checks)?;
    Ok((verdict, evidence.trials))
}

/// Two sites with their secrets.
struct Run {
    network: Network,
    secrets: Vec<Vec<f64>>,
}

impl Run {
    /// Homes, cards, records, a plan and both sites' word, as a consortium makes them.
    fn make(folder: &Path, canary: &Canary, seed: u64, number: u64) -> anyhow::Result<Run> {
        let n = canary.n_tests();
        let settings = canary.scene().plan.settings();
        let schema = schema(n)?;
        let sockets: Vec<UdpSocket> =
            NAMES.iter().map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
        let now = padmm_node::clock::now();
        let (mut sites, mut homes, mut entries, mut secrets) = (vec![], vec![], vec![], vec![]);
        for (place, (name, socket)) in NAMES.iter().zip(&sockets).enumerate() {
            let name = SiteName::new(*name)?;
            let home = folder.join(name.as_str());
            let address = format!("127.0.0.1:{}", socket.local_addr()?.port());
            let request = InitRequest {
                addresses: vec![address.clone()],
                listen: address,
                data: Some(PathBuf::from("records.csv")),
                cap: Some(Cap { epsilon: 2.0 * settings.epsilon, delta: settings.delta }),
                ..InitRequest::new(name.clone())
            };
            let made = Home::init(&home, &request, now)?;
            let own = Bits::new(seed, 2 * number + place as u64).labels(n);
            let data = home.join("records.csv");
            padmm_data::write_atomically(&data, false, records(&own).as_bytes())?;
            entries.push(SiteEntry {
                name: name.clone(),
                records: n,
                fingerprint: made.card().fingerprint(),
            });
            sites.push(DemoSite { name, ledger: home.join("ledgers/records.ledger"), home, data });
            homes.push(made);
            secrets.push(own);
        }
        drop(sockets);
        let contract = contract(schema, settings.clone(), entries)?;
        for home in &homes {
            for other in homes.iter().filter(|h| h.name() != home.name()) {
                home.cards().import(other.card(), false)?;
            }
            let runs = home.run_dir(contract.name());
            std::fs::create_dir_all(&runs)?;
            padmm_data::write_atomically(&runs.join("plan.toml"), false, contract.to_toml().as_bytes())?;
            let word = Acceptance::accept(&contract, home.name(), home.identity())?;
            let path = runs.join(format!("{}.accept", home.name()));
            padmm_data::write_atomically(&path, false, word.to_toml().as_bytes())?;
        }
        Ok(Run { network: Network { folder: folder.to_owned(), sites, contract }, secrets })
    }

    /// What the other site can make of this one's releases.
    fn evidence(&self, canary: &Canary, site: usize) -> anyhow::Result<Evidence> {
        let contract = &self.network.contract;
        let (own, other) = (self.releases(site)?, self.releases(1 - site)?);
        let scene = Scene {
            plan: contract.plan().clone(),
            graph: contract.graph().clone(),
            space: contract.space().clone(),
            n_records: contract.sites().iter().map(|s| s.records).collect(),
            norm_bound: contract.schema().norm_bound(),
            site,
        };
        let terms: &Terms = contract.terms();
        let mut evidence =
            replay(&canary.in_scene(scene), terms, &self.secrets[site], &own.payloads, &other.payloads)?;
        evidence.noise_is_secure = own.noise == SecureNoise.description();
        evidence.faults.extend(own.faults);
        Ok(evidence)
    }

    /// What a site's ledger holds, compared with what its neighbour has kept.
    fn releases(&self, site: usize) -> anyhow::Result<Releases> {
        let contract = &self.network.contract;
        let run = contract.hash().to_string();
        let name = &self.network.sites[site].name;
        let path = &self.network.sites[site].ledger;
        let mut faults = vec![];
        if let Err(error) = verify(path) {
            faults.push(format!("the ledger of {name} does not verify: {error}"));
        }
        let ledger = SiteLedger::open(path)?;
        let neighbour = SiteLedger::open(&self.network.sites[1 - site].ledger)?;
        let copies = neighbour.received(&run)?;
        let rounds = contract.plan().settings().rounds;
        let state = ledger.state().run(&run).context("a ledger does not have the run")?;
        if state.charges.len() != rounds as usize || state.n_released() != rounds as usize {
            faults.push(format!("{name} was charged for {} of {rounds} rounds", state.charges.len()));
        }
        let mut payloads = vec![];
        for round in 1..=rounds {
            let bytes =
                ledger.release_bytes(&run, round)?.with_context(|| format!("round {round} is missing"))?;
            let payload: Payload = open_release(&bytes).map_err(anyhow::Error::msg)?;
            let of_round = |copy: &&padmm_node::ledger::Received| {
                copy.sender == name.as_str() && copy.stage == 0 && copy.turn == round
            };
            let kept: Vec<_> = copies.iter().filter(of_round).collect();
            if kept.iter().any(|copy| copy.bytes != bytes) {
                faults.push(format!("round {round} of {name} is another one in its neighbour's ledger"));
            }
            payloads.push(payload);
        }
        Ok(Releases { payloads, noise: state.start.noise.clone(), faults })
    }
}

struct Releases {
    payloads: Vec<Payload>,
    noise: String,
    faults: Vec<String>,
}

/// One category for each record, so that every record is a unit row of its own.
fn schema(n: usize) -> anyhow::Result<Schema> {
    let column = ColumnDraft {
        name: "record".to_owned(),
        kind: Some("categorical".to_owned()),
        values: Some((0..n).map(|j| Scalar::Text(format!("r{j}"))).collect()),
        ..ColumnDraft::default()
    };
    let text = |text: &str| vec![Scalar::Text(text.to_owned())];
    let label = LabelDraft {
        column: "secret".to_owned(),
        kind: Some("binary".to_owned()),
        positive: text("yes"),
        negative: text("no"),
        ..LabelDraft::default()
    };
    let draft: SchemaDraft = toml::from_str("norm_bound = 1.0\nintercept = false\n")?;
    Ok(SchemaDraft { label, columns: vec![column], ..draft }.check()?)
}

fn records(secrets: &[f64]) -> String {
    let row = |(j, secret): (usize, &f64)| format!("r{j},{}\n", if *secret > 0.0 { "yes" } else { "no" });
    format!("record,secret\n{}", secrets.iter().enumerate().map(row).collect::<String>())
}

fn contract(schema: Schema, settings: PlanDraft, entries: Vec<SiteEntry>) -> anyhow::Result<Contract> {
    let graph = "complete".parse()?;
    let name = SiteName::new(RUN)?;
    Ok(ContractDraft::new(name, schema, settings, entries, &graph, Silence::Wait, None)?.check()?)
}
