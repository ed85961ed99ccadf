//! A simulation in one expression.

use padmm_core::algorithm::AlgorithmKind;
use padmm_core::graph::{Graph, GraphSpec};
use padmm_core::loss::Loss;
use padmm_core::model::Model;
use padmm_core::plan::PlanDraft;
use padmm_core::regularizer::Regularizer;
use padmm_core::schema::{Encoded, Schema};
use padmm_data::Loaded;
use padmm_privacy::{Budget, PrivacyReport};

use crate::split::partition;
use crate::{Holdout, NoiseKind, PreparedSimulation, Progress, Record, SimError, SimulationPlan, Split};

/// Sites in one process, each with its share of the records. What is not set has the default of `padmm simulate`.
///
/// ```
/// use padmm_core::{algorithm::PAdmm, graph::Graph};
/// use padmm_privacy::Budget;
/// use padmm_sim::Simulation;
///
/// let run = Simulation::new(padmm_data::datasets::heart()?)
///     .graph(Graph::ring(4)?)
///     .algorithm(PAdmm)
///     .privacy(Budget::new(5.0, 1e-4)?)
///     .rounds(10)
///     .seed(7)
///     .run()?;
/// assert!(run.privacy().epsilon().unwrap() <= 5.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a simulation does nothing before `run`"]
pub struct Simulation {
    name: String,
    schema: Schema,
    encoded: Encoded,
    n_agents: Option<usize>,
    graph: Option<Topology>,
    split: Option<Split>,
    holdout: Holdout,
    runs: u32,
    seed: u64,
    noise: NoiseKind,
    draft: PlanDraft,
}

/// Who talks to whom, as it was given.
#[derive(Clone, Debug)]
pub enum Topology {
    /// A family, for as many sites as there turn out to be.
    Family(GraphSpec),
    /// This graph, which also says how many sites there are.
    Graph(Graph),
}

impl From<Graph> for Topology {
    fn from(graph: Graph) -> Self {
        Self::Graph(graph)
    }
}

impl From<GraphSpec> for Topology {
    fn from(spec: GraphSpec) -> Self {
        Self::Family(spec)
    }
}

impl Simulation {
    /// Of these records: a shipped data set, a file, or records of your own.
    pub fn new(records: Loaded) -> Self {
        let Loaded { name, schema, encoded } = records;
        Self {
            name,
            schema,
            encoded,
            n_agents: None,
            graph: None,
            split: None,
            holdout: Holdout::None,
            runs: 1,
            seed: 1,
            noise: NoiseKind::Seeded,
            draft: PlanDraft::default(),
        }
    }

    /// How many sites share the records; a graph decides that too, and so does a site column.
    pub fn agents(mut self, n_agents: usize) -> Self {
        self.n_agents = Some(n_agents);
        self
    }

    /// Who talks to whom: a [`Graph`], or a [`GraphSpec`] for whatever number of sites there is.
    pub fn graph(mut self, graph: impl Into<Topology>) -> Self {
        self.graph = Some(graph.into());
        self
    }

    /// How records are shared out; by their sites if they have any and nothing else is said, else evenly.
    pub fn split(mut self, split: Split) -> Self {
        self.split = Some(split);
        self
    }

    /// Which records are set aside for evaluation.
    pub fn holdout(mut self, holdout: Holdout) -> Self {
        self.holdout = holdout;
        self
    }

    /// Which algorithm, with that algorithm's defaults.
    pub fn algorithm(mut self, algorithm: impl Into<AlgorithmKind>) -> Self {
        let by_default = |kind: AlgorithmKind| {
            if kind.spec().has_rule_for_rounds() { 0 } else { PlanDraft::default().rounds }
        };
        let (before, after) = (self.draft.algorithm, algorithm.into());
        if self.draft.rounds == by_default(before) {
            self.draft.rounds = by_default(after);
        }
        self.draft.algorithm = after;
        self
    }

    /// What every site may spend over the whole run.
    pub fn privacy(mut self, budget: Budget) -> Self {
        (self.draft.epsilon, self.draft.delta) = (budget.epsilon.value(), budget.delta.value());
        self
    }

    /// Private rounds, which share the budget; averaging comes after them and costs nothing.
    pub fn rounds(mut self, rounds: u32) -> Self {
        self.draft.rounds = rounds;
        self
    }

    /// The loss of a record, whose mean over all records is minimised.
    pub fn loss(mut self, loss: Loss) -> Self {
        self.draft.loss = loss;
        self
    }

    /// What is added to the loss to keep coefficients small; every site has its share.
    pub fn regularizer(mut self, regularizer: Regularizer) -> Self {
        self.draft.regularizer = regularizer;
        self
    }

    /// The ADMM penalty η, in place of the one that is derived from public facts.
    pub fn penalty(mut self, penalty: f64) -> Self {
        self.draft.penalty = Some(penalty);
        self
    }

    /// A setting of the algorithm's own, by its name in a plan.
    pub fn set(mut self, name: &str, value: f64) -> Self {
        self.draft.own = self.draft.own.with(name, value);
        self
    }

    /// Changes anything else about the plan, in place.
    pub fn plan(mut self, change: impl FnOnce(&mut PlanDraft)) -> Self {
        change(&mut self.draft);
        self
    }

    /// Independent runs; figures are means over them.
    pub fn runs(mut self, runs: u32) -> Self {
        self.runs = runs;
        self
    }

    /// Seed of the split, the random graph and the simulated noise, which is repeatable and protects nobody.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Seeded unless this says otherwise; [`NoiseKind::Secure`] is the sampler of real sites.
    pub fn noise(mut self, noise: NoiseKind) -> Self {
        self.noise = noise;
        self
    }

    /// Shares the records out, calibrates every site, and finds the pooled optimum.
    ///
    /// # Errors
    /// Settings that make no plan, and records that cannot be shared out like this.
    pub fn prepare(self) -> Result<PreparedSimulation, SimError> {
        Ok(self.ready()?.0)
    }

    /// Runs it.
    ///
    /// # Errors
    /// See [`Simulation::prepare`]; and a site that stops.
    pub fn run(self) -> Result<Finished, SimError> {
        self.watch(&|_| true)
    }

    /// The same; `watch` hears of every round and says whether to continue.
    ///
    /// # Errors
    /// See [`Simulation::run`].
    pub fn watch(self, watch: &(dyn Fn(Progress) -> bool + Sync)) -> Result<Finished, SimError> {
        let (simulation, schema) = self.ready()?;
        let (record, kept) = simulation.run_all(watch)?;
        let reports = simulation.calibration().agents.iter().filter_map(|agent| agent.noise.as_ref());
        let worst =
            reports.map(|noise| noise.report()).max_by(|a, b| a.epsilon_exact.total_cmp(&b.epsilon_exact));
        let model = kept.model(&record, schema)?;
        Ok(Finished { record, model, privacy: Privacy(worst) })
    }

    fn ready(self) -> Result<(PreparedSimulation, Schema), SimError> {
        let plan = self.draft.check()?;
        let by_graph = match &self.graph {
            Some(Topology::Graph(graph)) => Some(graph.n_agents()),
            _ => None,
        };
        let n_agents = self.n_agents.or(by_graph);
        let split = match self.split {
            Some(split) => split,
            None if self.encoded.sites.is_some() && self.n_agents.is_none() => Split::Site,
            None => Split::Even,
        };
        let needed = plan.settings().algorithm.graph_needed().map(str::parse).transpose()?;
        let spec = match &self.graph {
            Some(Topology::Family(spec)) => spec.clone(),
            Some(Topology::Graph(_)) | None => needed.unwrap_or(GraphSpec::Complete),
        };
        let mut setting = SimulationPlan {
            dataset: self.name,
            n_agents: if split == Split::Site { self.n_agents } else { n_agents },
            graph: spec,
            split: split.clone(),
            holdout: self.holdout,
            runs: self.runs,
            seed: self.seed,
            noise: self.noise,
            reference: false,
            rank_rounds: true,
            measures: true,
            plan,
        };
        let Some(Topology::Graph(graph)) = self.graph else {
            return Ok((PreparedSimulation::prepare(setting, self.encoded)?, self.schema));
        };
        setting = setting.check(&self.encoded)?;
        let sites = partition(&self.encoded, setting.n_agents, split, setting.holdout, setting.seed)?;
        if sites.names.len() != graph.n_agents() {
            let (agents, sites) = (graph.n_agents(), sites.names.len());
            return Err(SimError::AgentsAreSites { agents, sites });
        }
        let edge = |(i, j): (usize, usize)| (sites.names[i].clone(), sites.names[j].clone());
        setting.graph = GraphSpec::Edges(graph.edges().map(edge).collect());
        let (features, dropped) = (self.encoded.features, self.encoded.n_dropped);
        Ok((PreparedSimulation::of_sites(setting, sites, graph, features, dropped)?, self.schema))
    }
}

/// What a simulation leaves: its record, one model, and what was promised.
#[derive(Clone, Debug)]
pub struct Finished {
    record: Record,
    model: Model,
    privacy: Privacy,
}

impl Finished {
    /// What was spent, and what that promises: of the site that spends most.
    pub fn privacy(&self) -> &Privacy {
        &self.privacy
    }

    /// Mean loss of the kept model over the training records of all sites, without the regulariser; over runs, their mean.
    pub fn loss(&self) -> f64 {
        self.record.summary.model_loss.mean
    }

    /// Accuracy of the kept model on the evaluation records, or on the training records if none were set aside; none for a number.
    pub fn accuracy(&self) -> Option<f64> {
        self.record.summary.accuracy.as_ref().map(|accuracy| accuracy.mean)
    }

    /// Area under the curve, on the same records.
    pub fn auc(&self) -> Option<f64> {
        self.record.summary.auc.as_ref().map(|auc| auc.mean)
    }

    /// The first site's kept model of the first run.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Everything that was measured, round by round.
    pub fn record(&self) -> &Record {
        &self.record
    }
}

/// The promise of a run; there is none without noise.
#[derive(Clone, Debug)]
pub struct Privacy(Option<PrivacyReport>);

impl Privacy {
    /// In plain words, for a data-protection officer.
    pub fn statement(&self) -> String {
        match &self.0 {
            Some(report) => report.statement(),
            None => "NO PRIVACY. The models were exchanged without noise.".to_owned(),
        }
    }

    /// The guarantee's ε, rounded up; `None` for an algorithm without privacy.
    pub fn epsilon(&self) -> Option<f64> {
        self.0.as_ref().map(|report| report.epsilon_exact)
    }

    /// Every number behind the statement; `None` for an algorithm without privacy.
    pub fn report(&self) -> Option<&PrivacyReport> {
        self.0.as_ref()
    }
}
