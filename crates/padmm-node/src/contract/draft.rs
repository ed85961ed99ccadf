//! What a `plan.toml` may say, and the check that makes a [`Contract`] of it.

use std::collections::BTreeMap;
use std::time::Duration;

use padmm_core::algorithm::{AlgorithmKind, Guarantee};
use padmm_core::calibration::{Calibration, CalibrationError, NetworkFacts, default_penalty};
use padmm_core::graph::{Graph, GraphSpec};
use padmm_core::plan::{Plan, PlanDraft};
use padmm_core::schema::Schema;
use padmm_privacy::{RequiredCertificate, SensitivityBasis};
use serde::{Deserialize, Serialize};

use super::{
    CONTRACT_FORMAT, Contract, ContractError, LEAST_SILENCE, MAX_SITES, PROGRAM, plan_hash, read_authority,
    schema_hash,
};
use crate::identity::{Fingerprint, SiteName};

/// A site as a plan names it. All of it is public.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteEntry {
    /// By which the other sites know it; unique in the plan.
    pub name: SiteName,
    /// Rows of its file, usable or not; public under replace-one adjacency, and part of its
    /// sensitivity.
    pub records: usize,
    /// The fingerprint of its identity key.
    pub fingerprint: Fingerprint,
}

/// What is done about a site that is not heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Silence {
    /// The others wait for it without limit.
    Wait,
    /// Its neighbours continue without it.
    Leave {
        /// After this many seconds without a sign of life; at least [`LEAST_SILENCE`].
        after_seconds: u32,
    },
}

impl Silence {
    /// How long a neighbour may be silent before it is left behind; none if it is waited for without limit.
    pub fn limit(self) -> Option<Duration> {
        match self {
            Self::Wait => None,
            Self::Leave { after_seconds } => Some(Duration::from_secs(after_seconds.into())),
        }
    }
}

/// Whom the sites trust beside each other's fingerprints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// PEM text of the authority's certificate.
    pub ca: String,
}

/// A plan that has not been checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ContractDraft {
    /// Always [`CONTRACT_FORMAT`] once it is checked.
    pub format: u32,
    /// What people call the run; its folder at every site has this name.
    pub name: SiteName,
    /// Version of the program that all sites must run.
    pub program: String,
    /// Of `schema`, for people who compare plans.
    pub schema_hash: String,
    /// Who talks to whom, by name.
    pub edges: Vec<(String, String)>,
    /// What is computed, and at which cost.
    pub settings: PlanDraft,
    /// What becomes of a run when a site is not heard of.
    pub silence: Silence,
    /// An authority, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// The sites, in the order in which agents are numbered.
    #[serde(rename = "site")]
    pub sites: Vec<SiteEntry>,
    /// What the columns of every site's file mean.
    pub schema: Schema,
}

impl ContractDraft {
    /// A draft in which everything that can be derived is: edges from a graph, and from public facts algorithm and weights, the penalty,
    /// and the rounds where the algorithm has a rule for them, if the settings leave them open.
    pub fn new(
        name: SiteName,
        schema: Schema,
        settings: PlanDraft,
        sites: Vec<SiteEntry>,
        graph: &GraphSpec,
        silence: Silence,
        trust: Option<Trust>,
    ) -> Result<Self, ContractError> {
        check_sites(&sites)?;
        // Before anything is derived that the algorithm may have no use for.
        check_algorithm(settings.algorithm)?;
        let names = names(&sites);
        // A random graph is drawn with a seed that everybody knows; what counts are the edges that the plan lists.
        let graph = graph.build(sites.len(), &names, 1)?;
        let n_records: Vec<usize> = sites.iter().map(|site| site.records).collect();
        let (space, norm_bound) = (schema.feature_space(), schema.norm_bound());
        let network = NetworkFacts { graph: &graph, n_records: &n_records, space: &space, norm_bound };
        let plan = settings.check()?.for_label(schema.label().bounds())?.for_network(&network)?;
        let mut settings = plan.settings().clone();
        if settings.penalty.is_none() && settings.algorithm.spec().solves() {
            settings.penalty = Some(default_penalty(&plan, &network).map_err(CalibrationError::from)?);
        }
        Ok(Self {
            format: CONTRACT_FORMAT,
            name,
            program: PROGRAM.to_owned(),
            schema_hash: schema_hash(&schema),
            edges: named_edges(&graph, &sites),
            settings,
            silence,
            trust,
            sites,
            schema,
        })
    }

    /// Checks everything that can be checked without cards and records.
    pub fn check(mut self) -> Result<Contract, ContractError> {
        if self.format != CONTRACT_FORMAT {
            return Err(ContractError::Format { found: self.format, known: CONTRACT_FORMAT });
        }
        if self.program != PROGRAM {
            return Err(ContractError::Program { found: self.program, here: PROGRAM });
        }
        let found = schema_hash(&self.schema);
        if self.schema_hash != found {
            return Err(ContractError::SchemaHash { stated: self.schema_hash, found });
        }
        check_sites(&self.sites)?;
        let plan = self.check_settings()?;
        self.check_silence()?;
        let authority = read_authority(self.trust.as_ref())?;
        let graph = GraphSpec::Edges(self.edges.clone()).build(self.sites.len(), &names(&self.sites), 0)?;
        // The same graph has the same edges in the same order, so that its plan has the same hash.
        self.edges = named_edges(&graph, &self.sites);
        let space = self.schema.feature_space();
        let n_records: Vec<usize> = self.sites.iter().map(|site| site.records).collect();
        let norm_bound = self.schema.norm_bound();
        let network = NetworkFacts { graph: &graph, n_records: &n_records, space: &space, norm_bound };
        let plan = plan.for_network(&network)?;
        self.settings.rounds = plan.settings().rounds;
        let calibration = Calibration::derive(&plan, &network)?;
        calibration.check_solvable()?;
        check_exact(&plan, &calibration)?;
        let hash = plan_hash(&self);
        Ok(Contract { draft: self, plan, graph, space, calibration, authority, hash })
    }

    fn check_settings(&self) -> Result<Plan, ContractError> {
        let plan = self.settings.clone().check()?;
        let settings = plan.settings();
        check_algorithm(settings.algorithm)?;
        if settings.sensitivity != SensitivityBasis::Record {
            return Err(ContractError::Sensitivity);
        }
        if settings.penalty.is_none() && settings.algorithm.spec().solves() {
            return Err(ContractError::NoPenalty);
        }
        if settings.loss.is_classification() != self.schema.label().is_binary() {
            let needed = if settings.loss.is_classification() { "binary" } else { "numeric" };
            return Err(ContractError::Label { loss: settings.loss.to_string(), needed });
        }
        if settings.loss.awaits_label() {
            return Err(ContractError::NoCap { loss: settings.loss.to_string() });
        }
        Ok(plan.for_label(self.schema.label().bounds())?)
    }

    fn check_silence(&self) -> Result<(), ContractError> {
        let Silence::Leave { after_seconds } = self.silence else { return Ok(()) };
        if after_seconds < LEAST_SILENCE {
            return Err(ContractError::Silence { found: after_seconds, least: LEAST_SILENCE });
        }
        Ok(())
    }
}

/// Only what sites can run between them may stand in a plan: nobody signs what cannot be run.
fn check_algorithm(kind: AlgorithmKind) -> Result<(), ContractError> {
    let algorithm = kind.name();
    if kind.runs_between_sites() {
        Ok(())
    } else if kind.describe().guarantee == Guarantee::ExactGaussian {
        Err(ContractError::NotBetweenSites { algorithm })
    } else {
        Err(ContractError::NotExact { algorithm })
    }
}

/// The description of an algorithm promises exact noise; here its mechanism is asked, for every site.
fn check_exact(plan: &Plan, calibration: &Calibration) -> Result<(), ContractError> {
    let not_exact = || ContractError::NotExact { algorithm: plan.settings().algorithm.name() };
    for agent in &calibration.agents {
        let required = RequiredCertificate { modulus: agent.modulus, tolerance: agent.tolerance };
        let schedule = agent.noise.as_ref().ok_or_else(not_exact)?;
        if !schedule.mechanism(required).map_err(CalibrationError::from)?.is_exact() {
            return Err(not_exact());
        }
    }
    Ok(())
}

fn check_sites(sites: &[SiteEntry]) -> Result<(), ContractError> {
    let found = sites.len();
    if found < 2 {
        return Err(ContractError::TooFewSites { found });
    }
    if found > MAX_SITES {
        return Err(ContractError::TooManySites { found });
    }
    let mut by_name: BTreeMap<&SiteName, ()> = BTreeMap::new();
    let mut by_fingerprint: BTreeMap<Fingerprint, &SiteName> = BTreeMap::new();
    for site in sites {
        if by_name.insert(&site.name, ()).is_some() {
            return Err(ContractError::RepeatedSite { name: site.name.clone() });
        }
        if let Some(first) = by_fingerprint.insert(site.fingerprint, &site.name) {
            return Err(ContractError::RepeatedFingerprint {
                first: first.clone(),
                second: site.name.clone(),
            });
        }
        if site.records == 0 {
            return Err(ContractError::NoRecords { site: site.name.clone() });
        }
    }
    Ok(())
}

fn names(sites: &[SiteEntry]) -> Vec<String> {
    sites.iter().map(|site| site.name.to_string()).collect()
}

fn named_edges(graph: &Graph, sites: &[SiteEntry]) -> Vec<(String, String)> {
    let name = |i: usize| sites[i].name.to_string();
    graph.edges().map(|(i, j)| (name(i), name(j))).collect()
}
