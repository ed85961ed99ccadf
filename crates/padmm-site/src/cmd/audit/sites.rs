//! The attack on real site processes: two sites, each of which is the other's attacker. The integers come from their ledgers.

use std::path::Path;

use anyhow::Context;
use padmm_audit::{
    AuditRequest, Bits, Canary, Check, Checks, Evidence, Scene, Shipped, Trial, Verdict, one_payload, replay,
    stopping, whiteness,
};
use padmm_core::algorithm::CONSENSUS_NEWTON;
use padmm_core::calibration::Calibration;
use padmm_core::graph::GraphSpec;
use padmm_core::message::Turn;
use padmm_core::schema::{ColumnDraft, LabelDraft, Scalar, Schema, SchemaDraft};
use padmm_node::ledger::{SiteLedger, verify};
use padmm_node::site::open_release;
use padmm_privacy::{NoiseSource, Payload, SecureNoise};

use crate::network::{Network, Study};
use crate::test_hooks::TestHooks;

/// Most secret bits of one site in one run.
const MOST_TESTS: usize = 2500;
/// The same where an algorithm multiplies matrices with a row for each.
const MOST_TESTS_WITH_MATRICES: usize = 400;
const NAMES: [&str; 2] = ["north", "south"];
/// How often a site of the first run is killed and started again on the way.
const KILLS: u32 = 1;

/// Attacks as many runs as the tests need, then does the checks of one process.
pub(super) fn audit(
    request: &AuditRequest,
    refusals: Check,
    progress: &(dyn Fn(usize) + Sync),
    hooks: &TestHooks,
) -> anyhow::Result<(Verdict, Vec<Trial>)> {
    let most = if request.algorithm == CONSENSUS_NEWTON { MOST_TESTS_WITH_MATRICES } else { MOST_TESTS };
    let per_site = request.tests.div_ceil(NAMES.len()).min(most);
    let canary = Canary::new(&request.canary(per_site))?;
    let runs = request.tests.div_ceil(NAMES.len() * per_site);
    let (mut evidence, mut mu_claimed) = (Evidence::default(), 0.0f64);
    evidence.noise_is_secure = true;
    for number in 0..runs {
        let folder = tempfile::tempdir().context("a temporary folder cannot be made")?;
        let run = Run::make(folder.path(), &canary, request.seed, number as u64)?;
        run.network.run(if number == 0 { KILLS } else { 0 }, false, hooks)?;
        for (site, calibration) in run.network.contract.calibration().agents.iter().enumerate() {
            let report = calibration.noise.as_ref().context("the plan has no noise")?.report();
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
    /// Two sites whose secrets are the labels of their records.
    fn make(folder: &Path, canary: &Canary, seed: u64, number: u64) -> anyhow::Result<Self> {
        let n = canary.n_tests();
        let secrets: Vec<Vec<f64>> =
            (0..NAMES.len() as u64).map(|place| Bits::new(seed, 2 * number + place).labels(n)).collect();
        let sites = NAMES.iter().zip(&secrets).map(|(&name, own)| (name.to_owned(), records(own)));
        let study = Study {
            schema: schema(n)?,
            settings: canary.scene().plan.settings().clone(),
            graph: GraphSpec::Complete,
            sites: sites.collect(),
        };
        Ok(Self { network: Network::make(folder, study)?, secrets })
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
        let calibration: &Calibration = contract.calibration();
        let mut evidence = replay(
            &canary.in_scene(scene),
            calibration,
            &self.secrets[site],
            &own.payloads,
            &other.payloads,
        )?;
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
                copy.sender == name.as_str() && copy.turn == Turn::model(round)
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
