//! The driver: moves messages between agents, and looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use padmm_core::agent::{Agent, AgentSetup, Outcome};
use padmm_core::algorithm::{AlgorithmKind, LocalProblem};
use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::evaluate::score;
use padmm_core::graph::{Graph, GraphSpec, metropolis_weight};
use padmm_core::message::{Incoming, Outgoing};
use padmm_core::objective::{Objective, ObjectiveBuffers, Part};
use padmm_core::plan::{Output, Plan};
use padmm_core::regularizer::Penalty;
use padmm_core::schema::Encoded;
use padmm_core::solver::{Solver, Status};
use padmm_core::terms::{AgentTerms, Network, Terms};
use padmm_privacy::{
    Gate, GridGaussian, Mechanism, MemoryLedger, NoiseSource, PrivacyReport, Public, RequiredCertificate,
    SecureNoise, Unprotected,
};
use rayon::prelude::*;

use crate::metrics::{Evaluation, ModelMetrics, RoundMetrics, center, panel, spread};
use crate::record::{
    Charges, Counts, FORMAT, MeanStd, Optimum, PrivacyRecord, Record, RunRecord, Setting, SiteRecord, Summary,
};
use crate::split::{Holdout, Sites, Split, deal};
use crate::{InsecureSeededNoise, SimError};

/// Where a simulation's noise comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NoiseKind {
    /// From the seed: repeatable.
    #[default]
    Seeded,
    /// The sampler of real sites: exact, from the operating system's randomness, not repeatable.
    Secure,
}

/// A simulation's setting around the plan.
#[derive(Clone, Debug)]
pub struct SimulationPlan {
    /// Name of the data for the record.
    pub dataset: String,
    /// Number of agents; with [`Split::Site`] the sites decide.
    pub n_agents: Option<usize>,
    /// The graph.
    pub graph: GraphSpec,
    /// How records are dealt.
    pub split: Split,
    /// Which are set aside.
    pub holdout: Holdout,
    /// Independent runs.
    pub runs: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// Where the noise comes from.
    pub noise: NoiseKind,
    /// Whether to run the network without noise beside it.
    pub reference: bool,
    /// The plan.
    pub plan: Plan,
}

/// How far a simulation is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Rounds done, over all runs.
    pub done: u64,
    /// Rounds in all.
    pub total: u64,
    /// Average loss of the round just done.
    pub average_loss: f64,
    /// Exact ε after it.
    pub epsilon: Option<f64>,
}

/// A network made ready: data dealt, terms derived, optimum found.
pub struct Simulation {
    setting: SimulationPlan,
    names: Vec<String>,
    shards: Vec<Arc<Dataset>>,
    test: Dataset,
    space: FeatureSpace,
    graph: Graph,
    terms: Terms,
    optimum: Vec<f64>,
    optimum_scores: Optimum,
    counts: Counts,
}

/// Prepares and runs a simulation; `watch` hears of every round.
pub fn simulate(
    setting: SimulationPlan,
    encoded: Encoded,
    watch: &(dyn Fn(Progress) + Sync),
) -> Result<(Record, Vec<f64>), SimError> {
    Simulation::prepare(setting, encoded)?.run(watch)
}

impl Simulation {
    /// Deals the data, builds the graph, derives the terms and solves the pooled problem.
    pub fn prepare(setting: SimulationPlan, encoded: Encoded) -> Result<Self, SimError> {
        if setting.runs == 0 {
            return Err(SimError::NoRuns);
        }
        let loss = setting.plan.settings().loss;
        if loss.is_classification() != encoded.label_is_binary() {
            let kind = |binary| if binary { "binary" } else { "numeric" };
            return Err(SimError::LabelKind {
                loss: loss.to_string(),
                needed: kind(loss.is_classification()),
                found: kind(encoded.label_is_binary()),
            });
        }
        let Sites { names, shards, test } =
            deal(&encoded, setting.n_agents, setting.split, setting.holdout, setting.seed)?;
        let graph = setting.graph.build(names.len(), &names, setting.seed)?;
        let n_records: Vec<usize> = shards.iter().map(Dataset::n_records).collect();
        let space = encoded.features;
        let network = Network {
            graph: &graph,
            n_records: &n_records,
            space: &space,
            norm_bound: encoded.records.norm_bound(),
        };
        let terms = Terms::derive(&setting.plan, &network)?;
        let train = n_records.iter().sum();
        let counts = Counts {
            used: train + test.n_records(),
            dropped: encoded.n_dropped,
            train,
            test: test.n_records(),
        };
        let shards: Vec<Arc<Dataset>> = shards.into_iter().map(Arc::new).collect();
        let (optimum, optimum_scores) = pooled_optimum(&setting.plan, &space, &shards, &test)?;
        Ok(Simulation { setting, names, shards, test, space, graph, terms, optimum, optimum_scores, counts })
    }

    /// The terms that follow from the plan and public facts.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The pooled minimiser.
    pub fn optimum(&self) -> &[f64] {
        &self.optimum
    }

    /// Every site's records.
    pub fn shards(&self) -> &[Arc<Dataset>] {
        &self.shards
    }

    /// Bytes of the encoded records of all sites.
    pub fn memory_bytes(&self) -> usize {
        self.shards.iter().map(|s| s.memory_bytes()).sum()
    }

    /// Runs everything; returns the record and the first site's kept model of the first run.
    pub fn run(&self, watch: &(dyn Fn(Progress) + Sync)) -> Result<(Record, Vec<f64>), SimError> {
        let start = Instant::now();
        let plan = &self.setting.plan;
        let is_private = plan.settings().algorithm.is_private();
        let with_reference = self.setting.reference && is_private;
        let rounds = u64::from(plan.settings().rounds);
        let total = rounds * (u64::from(self.setting.runs) + u64::from(with_reference));
        let done = AtomicU64::new(0);
        let on_round = |m: &RoundMetrics| {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            watch(Progress { done, total, average_loss: m.average_loss, epsilon: m.epsilon_exact });
        };
        let reference = with_reference
            .then(|| {
                let plain = plan.with_algorithm(AlgorithmKind::Admm)?;
                Ok::<_, SimError>(self.run_once(&plain, 0, &on_round)?.record)
            })
            .transpose()?;
        let runs: Vec<Run> = (0..self.setting.runs)
            .into_par_iter()
            .map(|run| self.run_once(plan, run, &on_round))
            .collect::<Vec<_>>()
            .into_iter()
            .collect::<Result<_, _>>()?;
        let first = &runs[0];
        let model = match plan.settings().output {
            Output::Smoothed => first.outcomes[0].smoothed.as_slice().to_vec(),
            Output::Last => first.outcomes[0].last.as_slice().to_vec(),
        };
        let (reports, charges) = (first.reports.clone(), first.charges.clone());
        let noise_source = first.noise_source.to_owned();
        let runs: Vec<RunRecord> = runs.into_iter().map(|r| r.record).collect();
        let record = Record {
            format: FORMAT.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            setting: self.describe(),
            privacy: PrivacyRecord::worst(&reports),
            noise_source,
            charges,
            optimum: self.optimum_scores,
            reference,
            summary: self.summarize(&runs),
            runs,
            seconds: start.elapsed().as_secs_f64(),
        };
        Ok((record, model))
    }

    /// One run of `plan` over the network, round by round.
    pub fn run_once(
        &self,
        plan: &Plan,
        run: u32,
        on_round: &(dyn Fn(&RoundMetrics) + Sync),
    ) -> Result<Run, SimError> {
        let mut agents = self.agents(plan, run)?;
        let mut trace = Vec::with_capacity(plan.settings().rounds as usize);
        while agents.iter().any(|a| a.outcome().is_none()) {
            self.exchange(&mut agents)?;
            if trace.len() < plan.settings().rounds as usize {
                let metrics = self.look(&agents, trace.len() as u32 + 1, plan);
                on_round(&metrics);
                trace.push(metrics);
            }
        }
        let outcomes: Vec<Outcome> =
            agents.iter().map(|a| a.outcome().expect("every agent is done")).collect();
        let last: Vec<&Public> = outcomes.iter().map(|o| &o.last).collect();
        let smoothed: Vec<&Public> = outcomes.iter().map(|o| &o.smoothed).collect();
        let record = RunRecord { run, trace, last: self.scores(&last), smoothed: self.scores(&smoothed) };
        Ok(Run {
            record,
            outcomes,
            reports: agents.iter().filter_map(Agent::privacy_report).collect(),
            charges: agents.iter().enumerate().filter_map(|(i, a)| self.charges(i, a)).collect(),
            noise_source: agents[0].noise_description(),
        })
    }

    /// Every agent's release of every round of one run, `[round][agent]`, and nothing else: no metrics, no gossip. It is
    /// what benchmarks time and independent programs are compared with.
    pub fn releases(&self, run: u32) -> Result<Vec<Vec<Public>>, SimError> {
        let plan = &self.setting.plan;
        let mut agents = self.agents(plan, run)?;
        let round = |_| {
            self.exchange(&mut agents)?;
            Ok(agents.iter().map(|a| a.released().clone()).collect())
        };
        (0..plan.settings().rounds).map(round).collect()
    }

    /// Every agent that owes a message computes and sends it; every neighbour hears it.
    fn exchange(&self, agents: &mut [Agent]) -> Result<(), SimError> {
        let stopped = |i: usize| move |problem| SimError::Agent { site: self.names[i].clone(), problem };
        let spoken: Vec<Option<Outgoing>> = agents
            .par_iter_mut()
            .enumerate()
            .map(|(i, a)| a.poll_message().map_err(stopped(i)))
            // All of them first, then the first error in order: which site is named must not depend on threads.
            .collect::<Vec<_>>()
            .into_iter()
            .collect::<Result<_, _>>()?;
        let heard: Vec<Option<Incoming>> = spoken.iter().map(|m| m.as_ref().map(Incoming::from)).collect();
        let listen = |(i, agent): (usize, &mut Agent)| {
            let mut messages = self.graph.neighbours(i).iter().filter_map(|&j| heard[j].as_ref());
            messages.try_for_each(|m| agent.handle_message(m)).map_err(stopped(i))
        };
        agents.par_iter_mut().enumerate().map(listen).collect::<Vec<_>>().into_iter().collect()
    }

    fn agents(&self, plan: &Plan, run: u32) -> Result<Vec<Agent>, SimError> {
        (0..self.names.len()).map(|i| self.agent(plan, run, i)).collect()
    }

    fn agent(&self, plan: &Plan, run: u32, i: usize) -> Result<Agent, SimError> {
        let settings = plan.settings();
        let terms = AgentTerms { noise: self.noise_of(plan, i), ..self.terms.agents[i].clone() };
        let mechanism: Box<dyn Mechanism> = match &terms.noise {
            Some(schedule) => {
                let required = RequiredCertificate { modulus: terms.modulus, tolerance: terms.tolerance };
                Box::new(GridGaussian::new(schedule.clone(), required)?)
            }
            None => Box::new(Unprotected::new(self.space.n_features())?),
        };
        let noise: Box<dyn NoiseSource> = match self.setting.noise {
            NoiseKind::Seeded => Box::new(InsecureSeededNoise::new(self.setting.seed, run, i)),
            NoiseKind::Secure => Box::new(SecureNoise),
        };
        let name = self.names[i].clone();
        let gate =
            Gate::new(format!("simulation-{run}"), name, mechanism, noise, Box::new(MemoryLedger::new()));
        let setup = AgentSetup {
            site: i,
            neighbours: self
                .graph
                .neighbours(i)
                .iter()
                .map(|&j| (j, metropolis_weight(&self.graph, i, j)))
                .collect(),
            algorithm: settings.algorithm,
            penalty: self.terms.penalty,
            rounds: settings.rounds,
            gossip_rounds: self.terms.gossip_rounds,
            terms,
        };
        let problem = LocalProblem {
            data: Arc::clone(&self.shards[i]),
            loss: settings.loss,
            penalty: Penalty::new(&settings.regularizer, &self.space, 1.0 / self.names.len() as f64),
        };
        Ok(Agent::new(setup, problem, gate))
    }

    /// The noise of agent `i`; none in a reference run.
    fn noise_of(&self, plan: &Plan, i: usize) -> Option<padmm_privacy::NoiseSchedule> {
        if plan.settings().algorithm.is_private() { self.terms.agents[i].noise.clone() } else { None }
    }

    fn look(&self, agents: &[Agent], round: u32, plan: &Plan) -> RoundMetrics {
        let loss = plan.settings().loss;
        let releases: Vec<&Public> = agents.iter().map(Agent::released).collect();
        let chosen = panel(releases.len());
        let models: Vec<&Public> = chosen.iter().map(|&i| releases[i]).collect();
        let (pooled, at_sites) = self.evaluate(|e| e.mean(&models));
        let own: Vec<f64> = if chosen.len() == releases.len() {
            at_sites.iter().enumerate().map(|(i, losses)| losses[i]).collect()
        } else {
            let pairs = releases.par_iter().zip(&self.shards);
            pairs.map(|(release, shard)| score(loss, &[shard], release.as_slice(), false).mean_loss).collect()
        };
        let smoothed: Vec<Public> = agents.iter().map(Agent::smoothed_so_far).collect();
        let smoothed = center(&smoothed.iter().collect::<Vec<_>>());
        let worst = self.worst_schedule(plan);
        let spent = worst.map(|s| s.epsilon_spent(round));
        RoundMetrics {
            round,
            average_loss: own.iter().sum::<f64>() / own.len() as f64,
            pooled_loss: pooled.loss,
            smoothed_loss: self.evaluate(|e| e.train_loss(&smoothed)),
            consensus_error: spread(&releases, &center(&releases)),
            distance_to_optimum: spread(&releases, &self.optimum),
            accuracy: pooled.accuracy,
            auc: pooled.auc,
            rho: worst.map_or(0.0, |s| s.rho(round).value()),
            rho_spent: worst.map_or(0.0, |s| s.rho_spent(round).value()),
            epsilon_exact: spent.map(|s| s.exact),
            epsilon_paper: spent.map(|s| s.paper),
        }
    }

    /// The schedule of the agent that is charged most. All are calibrated to one budget, so they differ by rounding.
    fn worst_schedule(&self, plan: &Plan) -> Option<&padmm_privacy::NoiseSchedule> {
        let schedules = self.terms.agents.iter().filter_map(|a| a.noise.as_ref());
        let worst = schedules.max_by(|a, b| a.rho_total().value().total_cmp(&b.rho_total().value()));
        worst.filter(|_| plan.settings().algorithm.is_private())
    }

    fn scores(&self, models: &[&Public]) -> ModelMetrics {
        self.evaluate(|e| e.mean(models).0)
    }

    fn evaluate<T>(&self, what: impl FnOnce(&Evaluation<'_>) -> T) -> T {
        let train: Vec<&Dataset> = self.shards.iter().map(|s| &**s).collect();
        what(&Evaluation { loss: self.setting.plan.settings().loss, train: &train, test: &self.test })
    }

    fn charges(&self, i: usize, agent: &Agent) -> Option<Charges> {
        let sensitivity = agent.privacy_report()?.sensitivity;
        let rho = |d: &padmm_privacy::Debit| d.event.rho().map(|r| r.value());
        let rho_per_round = agent.debits().iter().map(rho).collect::<Result<_, _>>().ok()?;
        Some(Charges { site: self.names[i].clone(), sensitivity, rho_per_round })
    }

    fn describe(&self) -> Setting {
        let site = |(i, name): (usize, &String)| SiteRecord {
            name: name.clone(),
            records: self.shards[i].n_records(),
            degree: self.graph.degree(i),
        };
        Setting {
            dataset: self.setting.dataset.clone(),
            features: self.space.n_features(),
            records: self.counts,
            sites: self.names.iter().enumerate().map(site).collect(),
            graph: self.setting.graph.to_string(),
            split: self.setting.split,
            holdout: self.setting.holdout,
            seed: self.setting.seed,
            plan: self.setting.plan.clone(),
            penalty: self.terms.penalty,
            gossip_rounds: self.terms.gossip_rounds,
        }
    }

    fn summarize(&self, runs: &[RunRecord]) -> Summary {
        let rounds = runs[0].trace.len();
        let kept = |r: &RunRecord| match self.setting.plan.settings().output {
            Output::Smoothed => r.smoothed,
            Output::Last => r.last,
        };
        let optional = |f: fn(&ModelMetrics) -> Option<f64>| {
            let values: Option<Vec<f64>> = runs.iter().map(|r| f(&kept(r))).collect();
            values.map(|v| MeanStd::of(v.into_iter()))
        };
        let after = |k: usize| MeanStd::of(runs.iter().map(move |r| r.trace[k].average_loss));
        Summary {
            average_loss: after(rounds - 1),
            average_loss_per_round: (0..rounds).map(after).collect(),
            pooled_loss: MeanStd::of(runs.iter().map(|r| r.last.loss)),
            model_loss: MeanStd::of(runs.iter().map(|r| kept(r).loss)),
            accuracy: optional(|m| m.accuracy),
            auc: optional(|m| m.auc),
            evaluated_on: if self.test.n_records() > 0 { "held-out records" } else { "training records" }
                .to_owned(),
        }
    }
}

/// What one run leaves.
pub struct Run {
    /// For the record.
    pub record: RunRecord,
    /// Every agent's models.
    pub outcomes: Vec<Outcome>,
    reports: Vec<PrivacyReport>,
    charges: Vec<Charges>,
    noise_source: &'static str,
}

/// Minimises `Σ_i f_i` over all records at once — MATH §1, eq. (1): what a pooled data set would give.
fn pooled_optimum(
    plan: &Plan,
    space: &FeatureSpace,
    shards: &[Arc<Dataset>],
    test: &Dataset,
) -> Result<(Vec<f64>, Optimum), SimError> {
    let settings = plan.settings();
    let n_agents = shards.len() as f64;
    let parts: Vec<Part> = shards.iter().map(|s| Part::mean(s)).collect();
    // Σ_i R/N = R: the whole regulariser, once.
    let penalty = Penalty::new(&settings.regularizer, space, 1.0);
    // Without strong convexity a minimiser may not exist; a ridge far below any other term makes it one.
    let ridge = if penalty.strong_convexity() > 0.0 { 0.0 } else { 1e-9 * n_agents };
    let objective = Objective::new(&parts, settings.loss, &penalty, &[], ridge);
    let tolerance = if settings.loss.curvature_bound().is_some() { 1e-9 } else { 1e-6 } * n_agents;
    let solution = Solver::new().solve(&objective, &vec![0.0; space.n_features()], tolerance);
    if solution.status != Status::Solved {
        return Err(SimError::NoOptimum { tolerance, residual: solution.residual });
    }
    let x = solution.point;
    let value = objective.value(&x, &mut ObjectiveBuffers::default()) / n_agents;
    let train: Vec<&Dataset> = shards.iter().map(|s| &**s).collect();
    let (scores, _) = Evaluation { loss: settings.loss, train: &train, test }.one(&x);
    let norm = x.iter().map(|v| v * v).sum::<f64>().sqrt();
    Ok((x, Optimum { loss: scores.loss, objective: value, norm, accuracy: scores.accuracy, auc: scores.auc }))
}
