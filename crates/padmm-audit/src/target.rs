//! What is attacked. The shipped site is built here from its real parts; a test double overrides one of them, and has a bug.

use std::sync::Arc;

use padmm_core::agent::{Agent, AgentError, AgentSetup};
use padmm_core::calibration::{Calibration, NetworkFacts};
use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::graph::Graph;
use padmm_core::message::{Incoming, Outgoing, SiteIndex};
use padmm_core::plan::Plan;
use padmm_privacy::{Debit, Gate, Ledger, Mechanism, NoiseSource, RequiredCertificate, SecureNoise};

use crate::error::AuditError;

/// The public facts of a run, and which of its sites is attacked.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The settings that all sites share.
    pub plan: Plan,
    /// Which sites exchange messages; the attacker plays the neighbours of `site`.
    pub graph: Graph,
    /// The encoded columns of every site's records.
    pub space: FeatureSpace,
    /// How many records each site has, by its place in the graph.
    pub n_records: Vec<usize>,
    /// `S`, the largest norm of a row.
    pub norm_bound: f64,
    /// The place of the attacked site.
    pub site: usize,
}

/// Records before they are encoded: features, label. In a column of categories, and in the intercept's, what is not zero counts as one.
pub type Rows = [(Vec<f64>, f64)];

/// Name of the attacked site, and of its runs.
pub(crate) const SITE: &str = "canary";

/// One site's side of a run as its neighbours have to do with it.
pub trait Subject {
    /// The message that the site owes its neighbours, if it owes one.
    fn poll_message(&mut self) -> Result<Option<Outgoing>, AgentError>;

    /// Delivers what a neighbour sent; an error means that the site stops.
    fn handle_message(&mut self, message: &Incoming) -> Result<(), AgentError>;

    /// Every charge in the site's ledger, oldest first.
    fn debits(&self) -> Vec<Debit>;

    /// Whether its noise says of itself that it may protect records.
    fn noise_is_secure(&self) -> bool;
}

/// The shipped agent behind the shipped gate.
struct ShippedSubject {
    agent: Agent,
    noise_is_secure: bool,
}

impl Subject for ShippedSubject {
    fn poll_message(&mut self) -> Result<Option<Outgoing>, AgentError> {
        self.agent.poll_message()
    }

    fn handle_message(&mut self, message: &Incoming) -> Result<(), AgentError> {
        self.agent.handle_message(message)
    }

    fn debits(&self) -> Vec<Debit> {
        self.agent.debits().to_vec()
    }

    fn noise_is_secure(&self) -> bool {
        self.noise_is_secure
    }
}

/// A program to attack: how it makes a site from a plan, records and a ledger.
///
/// Every method has the shipped behaviour as its default, so that a double changes exactly what is wrong with it.
pub trait Target: Sync {
    /// What the program derives from the plan: tolerances, sensitivities, noise. Its claim is in here.
    fn calibration(&self, scene: &Scene) -> Result<Calibration, AuditError> {
        let network = NetworkFacts {
            graph: &scene.graph,
            n_records: &scene.n_records,
            space: &scene.space,
            norm_bound: scene.norm_bound,
        };
        Ok(Calibration::derive(&scene.plan, &network)?)
    }

    /// The records as the program encodes them.
    fn encode(&self, scene: &Scene, rows: &Rows) -> Dataset {
        let FeatureSpace { groups, n_numeric, intercept, .. } = &scene.space;
        let categorical = groups.iter().filter(|g| g.start >= *n_numeric).count();
        let n_hot = categorical + usize::from(intercept.is_some());
        let mut data = Dataset::new(scene.space.n_features(), *n_numeric, n_hot, scene.norm_bound);
        data.reserve(rows.len());
        for (features, label) in rows {
            let (numbers, ones) = features.split_at(*n_numeric);
            let hot: Vec<u32> =
                (*n_numeric as u32..).zip(ones).filter(|(_, one)| **one != 0.0).map(|(j, _)| j).collect();
            data.push(numbers, &hot, *label);
        }
        data
    }

    /// The mechanism of the site's gate.
    fn mechanism(&self, scene: &Scene, calibration: &Calibration) -> Result<Box<dyn Mechanism>, AuditError> {
        let own = &calibration.agents[scene.site];
        let required = RequiredCertificate { modulus: own.modulus, tolerance: own.tolerance };
        let schedule =
            own.noise.as_ref().ok_or_else(|| AuditError::Protocol("has no noise in its plan".to_owned()))?;
        Ok(schedule.mechanism(required)?)
    }

    /// The source of the gate's noise; a double may put a broken one in its place.
    fn noise(&self) -> Box<dyn NoiseSource> {
        Box::new(SecureNoise)
    }

    /// What the program makes of the ledger that it is given.
    fn ledger(&self, given: Box<dyn Ledger>) -> Box<dyn Ledger> {
        given
    }

    /// The site before its first round, or where its ledger says that it was.
    fn subject(
        &self,
        scene: &Scene,
        calibration: &Calibration,
        rows: &Rows,
        ledger: Box<dyn Ledger>,
    ) -> Result<Box<dyn Subject>, AuditError> {
        let gate = self.gate(scene, calibration, ledger)?;
        Ok(assemble(scene, calibration, self.encode(scene, rows), gate))
    }

    /// The way out of the site.
    fn gate(
        &self,
        scene: &Scene,
        calibration: &Calibration,
        ledger: Box<dyn Ledger>,
    ) -> Result<Gate, AuditError> {
        let mechanism = self.mechanism(scene, calibration)?;
        Ok(Gate::new(SITE.to_owned(), SITE.to_owned(), mechanism, self.noise(), self.ledger(ledger)))
    }
}

/// The shipped agent of these terms, with these records, behind this gate.
pub fn assemble(scene: &Scene, calibration: &Calibration, data: Dataset, gate: Gate) -> Box<dyn Subject> {
    let noise_is_secure = gate.noise_is_secure();
    let site = SiteIndex(scene.site);
    let (setup, problem) =
        AgentSetup::of(&scene.plan, &scene.graph, calibration, site, &scene.space, Arc::new(data));
    Box::new(ShippedSubject { agent: Agent::new(setup, problem, gate), noise_is_secure })
}

/// The program as it is shipped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shipped;

impl Target for Shipped {}
