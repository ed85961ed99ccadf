//! The driver: moves messages between agents (`network`), and measures.

mod network;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use padmm_baselines::ADMM;
use padmm_core::agent::{Agent, Outcome};
use padmm_core::algorithm::AlgorithmKind;
use padmm_core::calibration::{Calibration, NetworkFacts};
use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::evaluate::score;
use padmm_core::graph::{Graph, GraphSpec};
use padmm_core::metrics::BestConstant;
use padmm_core::own::OwnInputs;
use padmm_core::plan::{Output, Plan};
use padmm_core::privacy_noise::PrivacyNoise;
use padmm_core::schema::Encoded;
use padmm_privacy::{PrivacyReport, PublicVector, Schedule};
use rayon::prelude::*;

use crate::SimError;
use crate::kept::Kept;
use crate::metrics::{
    Evaluation, ModelMetrics, RoundMetrics, RunObjective, center, mean_line, panel, spread,
};
use crate::optimum::{PooledOptimum, best_constant, pooled_optimum, site_accuracy};
use crate::own::SiteModels;
use crate::record::{
    Charges, Counts, FORMAT, MeanStd, PrivacyRecord, Record, RunRecord, Setting, SiteRecord, Summary,
};
use crate::spent::{Spent, spending};
use crate::split::{Holdout, Sites, Split, partition};

/// Where a simulation's noise comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NoiseKind {
    /// From the seed: repeatable, and protects nobody.
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
    /// Who talks to whom, for as many agents as there turn out to be.
    pub graph: GraphSpec,
    /// How training records are dealt to the agents.
    pub split: Split,
    /// Which records are set aside for evaluation.
    pub holdout: Holdout,
    /// Independent runs, at least one; the record has means over them.
    pub runs: u32,
    /// Seed of split, random graph and seeded noise.
    pub seed: u64,
    /// Seeded for experiments; secure to run the sampler of real sites.
    pub noise: NoiseKind,
    /// Whether to find the pooled optimum and the losses of every round. A run needs neither, and they take longer than it.
    pub measures: bool,
    /// Whether to run the network without noise beside it.
    pub reference: bool,
    /// Whether accuracy and AUC are computed in every round, not only at the end.
    pub rank_rounds: bool,
    /// What real sites would agree on: algorithm, loss, budget and all that follows.
    pub plan: Plan,
}

impl SimulationPlan {
    /// Refuses what can be refused before records are shared out.
    pub(crate) fn check(self, encoded: &Encoded) -> Result<Self, SimError> {
        if self.runs == 0 {
            return Err(SimError::NoRuns);
        }
        self.for_label(encoded.label_bounds())
    }

    /// The same with what its loss takes from the label's bounds, of which two classes have none; refuses labels that it is not about.
    pub fn for_label(self, bounds: Option<(f64, f64)>) -> Result<Self, SimError> {
        let loss = self.plan.settings().loss;
        let kind = |binary| if binary { "binary" } else { "numeric" };
        let (needed, found) = (kind(loss.is_classification()), kind(bounds.is_none()));
        if needed != found {
            return Err(SimError::LabelKind { loss: loss.to_string(), needed, found });
        }
        Ok(Self { plan: self.plan.for_label(bounds)?, ..self })
    }
}

/// How far a simulation is, after each round of each run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Rounds done, over all runs.
    pub done: u64,
    /// Rounds of all runs, the reference included.
    pub total: u64,
    /// Average loss of the round just done; none if it is not measured.
    pub average_loss: Option<f64>,
    /// Exact ε spent in that run so far; `None` without privacy.
    pub epsilon: Option<f64>,
}

/// A network made ready: data dealt, terms derived, optimum found.
pub struct PreparedSimulation {
    setting: SimulationPlan,
    names: Vec<String>,
    shards: Vec<Arc<Dataset>>,
    test: Dataset,
    site_tests: Vec<Dataset>,
    space: FeatureSpace,
    graph: Graph,
    calibration: Calibration,
    /// What has been spent after each round, the largest over agents, in ρ and ε.
    spent: Vec<Spent>,
    optimum: Option<PooledOptimum>,
    constant: BestConstant,
    objective: RunObjective,
    counts: Counts,
    with_own_models: bool,
}

/// Prepares and runs a simulation; `watch` hears of every round.
pub fn simulate(
    setting: SimulationPlan,
    encoded: Encoded,
    watch: &(dyn Fn(Progress) + Sync),
) -> Result<(Record, Kept), SimError> {
    PreparedSimulation::prepare(setting, encoded)?.run_all(&|progress| {
        watch(progress);
        true
    })
}

impl PreparedSimulation {
    /// Deals the data, builds the graph, derives the terms and, if that is asked for, solves the pooled problem.
    pub fn prepare(setting: SimulationPlan, encoded: Encoded) -> Result<Self, SimError> {
        let setting = setting.check(&encoded)?;
        let sites =
            partition(&encoded, setting.n_agents, setting.split.clone(), setting.holdout, setting.seed)?;
        let graph = setting.graph.build(sites.names.len(), &sites.names, setting.seed)?;
        Self::of_sites(setting, sites, graph, encoded.features, encoded.n_dropped)
    }

    /// The same for sites that hold their records already, such as those of a real network.
    pub fn of_sites(
        setting: SimulationPlan,
        sites: Sites,
        graph: Graph,
        space: FeatureSpace,
        dropped: usize,
    ) -> Result<Self, SimError> {
        let Sites { names, shards, test, site_tests } = sites;
        let as_run = |records: Dataset| setting.plan.settings().records_of_run(records, &space);
        let of_all = |sites: Vec<Dataset>| sites.into_iter().map(as_run).collect::<Vec<_>>();
        let (shards, test, site_tests) = (of_all(shards), as_run(test), of_all(site_tests));
        let n_records: Vec<usize> = shards.iter().map(Dataset::n_records).collect();
        let network = NetworkFacts {
            graph: &graph,
            n_records: &n_records,
            space: &space,
            norm_bound: shards[0].norm_bound(),
        };
        let mut setting = setting;
        setting.plan = setting.plan.for_network(&network)?;
        let calibration = Calibration::derive(&setting.plan, &network)?;
        let train = n_records.iter().sum();
        let counts = Counts { used: train + test.n_records(), dropped, train, test: test.n_records() };
        let shards: Vec<Arc<Dataset>> = shards.into_iter().map(Arc::new).collect();
        let optimum = setting
            .measures
            .then(|| pooled_optimum(&setting.plan, &space, &shards, &test, &site_tests))
            .transpose()?;
        let train: Vec<&Dataset> = shards.iter().map(|s| &**s).collect();
        let constant = best_constant(setting.plan.settings().loss, &train, &test);
        let objective = RunObjective::new(&setting.plan, &space, &n_records);
        let spent = spending(&calibration);
        Ok(Self {
            setting,
            names,
            shards,
            test,
            site_tests,
            space,
            graph,
            calibration,
            spent,
            optimum,
            constant,
            objective,
            counts,
            with_own_models: false,
        })
    }

    /// The same, with what each site would make of every run's model for itself: the records of runs then have `own_models`.
    #[must_use]
    pub fn with_own_models(mut self, wanted: bool) -> Self {
        self.with_own_models = wanted;
        self
    }

    /// The plan that all sites follow.
    pub fn plan(&self) -> &Plan {
        &self.setting.plan
    }

    /// The encoded columns, which every site shares.
    pub fn space(&self) -> &FeatureSpace {
        &self.space
    }

    /// The terms that follow from the plan and public facts.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Accuracy of a model on the evaluation records, which are all training records if none were set aside; none for regression.
    pub fn accuracy(&self, model: &[f64]) -> Option<f64> {
        let train: Vec<&Dataset> = self.shards.iter().map(|s| &**s).collect();
        let scored = if self.test.n_records() > 0 { &[&self.test][..] } else { &train };
        score(self.setting.plan.settings().loss, scored, model, true).accuracy
    }

    /// Coefficients of the pooled problem's minimiser. Panics if the setting did not ask for it.
    pub fn optimum(&self) -> &[f64] {
        &self.optimum.as_ref().expect("the setting asks for the pooled optimum").point
    }

    /// Every site's training records, in the order of the graph.
    pub fn shards(&self) -> &[Arc<Dataset>] {
        &self.shards
    }

    /// Who talks to whom, by place in the order of the sites.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Bytes of the encoded records of all sites.
    pub fn memory_bytes(&self) -> usize {
        self.shards.iter().map(|s| s.memory_bytes()).sum()
    }

    /// Runs everything; returns the record and the first site's kept model of the first run. `watch` hears of every round and says
    /// whether to continue.
    pub fn run_all(&self, watch: &(dyn Fn(Progress) -> bool + Sync)) -> Result<(Record, Kept), SimError> {
        let start = Instant::now();
        let plan = &self.setting.plan;
        let is_private = plan.settings().algorithm.is_private();
        let with_reference = self.setting.reference && is_private;
        let rounds = u64::from(plan.settings().rounds);
        let total = rounds * (u64::from(self.setting.runs) + u64::from(with_reference));
        let done = AtomicU64::new(0);
        let on_round = |m: &RoundMetrics| {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            watch(Progress { done, total, average_loss: m.average_loss, epsilon: m.epsilon_exact })
        };
        let reference = with_reference
            .then(|| {
                let (plain, calibration) = self.reference()?;
                let instead = Some((&plain, &calibration));
                Ok::<_, SimError>(self.run(&RunOptions { run: 0, instead, on_round: &on_round })?.record)
            })
            .transpose()?;
        let runs: Vec<Run> = (0..self.setting.runs)
            .into_par_iter()
            .map(|run| self.run(&RunOptions { run, instead: None, on_round: &on_round }))
            .collect::<Vec<_>>()
            .into_iter()
            .collect::<Result<_, _>>()?;
        let model = Kept::of(&runs[0].outcomes[0], plan.settings().output);
        let runs: Vec<RunRecord> = runs.into_iter().map(|r| r.record).collect();
        let mut record = self.record(runs);
        record.reference = reference;
        record.seconds = start.elapsed().as_secs_f64();
        Ok((record, model))
    }

    /// The record of some runs of this network.
    pub fn record(&self, runs: Vec<RunRecord>) -> Record {
        let schedules = self.calibration.agents.iter().filter_map(|a| a.noise.as_ref());
        let reports: Vec<PrivacyReport> = schedules.map(|schedule| schedule.report()).collect();
        let named = self.names.iter().zip(&self.calibration.agents);
        Record {
            format: FORMAT.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            setting: self.describe(),
            privacy: PrivacyRecord::worst(&reports),
            noise_source: self.noise_source(0, 0).description().to_owned(),
            charges: named.filter_map(|(name, a)| Some(Charges::of(name, a.noise.as_deref()?))).collect(),
            optimum: self.optimum.as_ref().map(|optimum| optimum.scores.clone()),
            constant: Some(self.constant),
            reference: None,
            summary: self.summarize(&runs),
            runs,
            seconds: 0.0,
        }
    }

    /// The same network without noise: the same penalty where it means the same, else the one that is derived.
    pub fn reference(&self) -> Result<(Plan, Calibration), SimError> {
        let plain = self.setting.plan.with_algorithm(ADMM)?;
        let mut draft = plain.settings().clone();
        let comparable = self.setting.plan.settings().algorithm.is_decentralized();
        draft.penalty = comparable.then_some(self.calibration.penalty);
        self.calibrated(draft.check()?)
    }

    /// The same problem at the same ε by another algorithm, with the rounds of its own rule; for [`RunOptions::instead`].
    pub fn by(&self, algorithm: AlgorithmKind) -> Result<(Plan, Calibration), SimError> {
        self.calibrated(self.setting.plan.with_algorithm(algorithm)?)
    }

    fn calibrated(&self, plan: Plan) -> Result<(Plan, Calibration), SimError> {
        let n_records: Vec<usize> = self.shards.iter().map(|s| s.n_records()).collect();
        let network = NetworkFacts {
            graph: &self.graph,
            n_records: &n_records,
            space: &self.space,
            norm_bound: self.shards[0].norm_bound(),
        };
        let plan = plan.for_network(&network)?;
        let calibration = Calibration::derive(&plan, &network)?;
        Ok((plan, calibration))
    }

    /// One run, round by round; every agent's ledger is compared with its schedule at the end.
    pub fn run(&self, options: &RunOptions<'_>) -> Result<Run, SimError> {
        let &RunOptions { run, instead, on_round } = options;
        let (plan, calibration) = instead.unwrap_or((&self.setting.plan, &self.calibration));
        let rounds = plan.settings().rounds;
        let mut agents = self.agents(plan, calibration, run)?;
        let mut trace = Vec::with_capacity(rounds as usize);
        let mut seen: Option<Snapshot> = None;
        while seen.is_some() || agents.iter().any(|a| a.outcome().is_none()) {
            // While the agents are at the next round, the last one is looked at: cores that wait for a slow agent have work.
            let measure = || seen.take().map(|snapshot| self.measure(&snapshot, plan));
            let (metrics, moved) = rayon::join(measure, || self.exchange(&mut agents));
            moved?;
            if let Some(metrics) = metrics {
                if !on_round(&metrics) {
                    return Err(SimError::Stopped);
                }
                trace.push(metrics);
            }
            let done = trace.len() as u32;
            if done < rounds && agents.iter().all(|a| a.rounds_done() > done) {
                seen = Some(Snapshot::of(&agents, done + 1));
            }
        }
        let outcomes: Vec<Outcome> =
            agents.iter().map(|a| a.outcome().expect("every agent is done")).collect();
        let last: Vec<&PublicVector> = outcomes.iter().map(|o| &o.last).collect();
        let smoothed: Vec<&PublicVector> = outcomes.iter().map(|o| &o.smoothed).collect();
        let kept = match plan.settings().output {
            Output::Smoothed => &smoothed,
            Output::Last => &last,
        };
        let at_site =
            |(t, m): (&Dataset, &&PublicVector)| site_accuracy(plan.settings().loss, t, m.as_slice());
        let scores = self.scores(&last);
        let record = RunRecord {
            run,
            trace,
            last: scores,
            // Where nothing is averaged they are one model.
            smoothed: if smoothed == last { scores } else { self.scores(&smoothed) },
            site_accuracy: self.site_tests.iter().zip(kept).map(at_site).collect(),
            own_models: if self.with_own_models { self.own_models(plan, kept) } else { vec![] },
            privacy_noise: outcomes[0].privacy_noise.as_ref().map(PrivacyNoise::without_covariance),
        };
        agents
            .iter()
            .zip(&calibration.agents)
            .for_each(|(agent, calibration)| check_ledger(agent, calibration.noise.as_deref()));
        Ok(Run { record, outcomes })
    }

    /// What each site would make of its kept model for itself.
    fn own_models(&self, plan: &Plan, kept: &[&PublicVector]) -> Vec<SiteModels> {
        let of_site = |(i, model): (usize, &&PublicVector)| {
            let inputs = OwnInputs {
                records: &self.shards[i],
                space: &self.space,
                loss: plan.settings().loss,
                joint: model.as_slice(),
            };
            SiteModels::of(&inputs, self.site_tests.get(i).unwrap_or(&self.test))
        };
        kept.par_iter().enumerate().with_max_len(1).map(of_site).collect()
    }

    /// Every agent's model after every round of one run, `[round][agent]`, and nothing else: no metrics, no averaging. It is
    /// what benchmarks time and independent programs are compared with.
    pub fn models(&self, run: u32) -> Result<Vec<Vec<PublicVector>>, SimError> {
        self.after_every_round(run, Agent::model)
    }

    /// The same of what every agent released last: what left it, in a network of sites.
    pub fn releases(&self, run: u32) -> Result<Vec<Vec<PublicVector>>, SimError> {
        self.after_every_round(run, Agent::released)
    }

    fn after_every_round(
        &self,
        run: u32,
        of: impl Fn(&Agent) -> &PublicVector,
    ) -> Result<Vec<Vec<PublicVector>>, SimError> {
        let plan = &self.setting.plan;
        let mut agents = self.agents(plan, &self.calibration, run)?;
        let round = |done: u32| {
            while agents.iter().any(|a| a.rounds_done() <= done) {
                self.exchange(&mut agents)?;
            }
            Ok(agents.iter().map(|agent| of(agent).clone()).collect())
        };
        (0..plan.settings().rounds).map(round).collect()
    }

    fn measure(&self, seen: &Snapshot, plan: &Plan) -> RoundMetrics {
        let round = seen.round;
        let releases: Vec<&PublicVector> = seen.models.iter().collect();
        let scores = self.setting.measures.then(|| self.score_round(seen, &releases, plan));
        let of = |score: fn(&RoundScores) -> f64| scores.as_ref().map(score);
        let is_private = plan.settings().algorithm.is_private();
        let spent = self.spent.get(round as usize - 1).filter(|_| is_private);
        RoundMetrics {
            round,
            average_loss: of(|s| s.average_loss),
            pooled_loss: of(|s| s.pooled.loss),
            smoothed_loss: of(|s| s.smoothed_loss),
            consensus_error: spread(&releases, &center(&releases)),
            distance_to_optimum: self.optimum.as_ref().map(|optimum| spread(&releases, &optimum.point)),
            accuracy: scores.as_ref().and_then(|s| s.pooled.accuracy),
            auc: scores.as_ref().and_then(|s| s.pooled.auc),
            rho: spent.map_or(0.0, |s| s.rho),
            rho_spent: spent.map_or(0.0, |s| s.rho_so_far),
            epsilon_exact: spent.map(|s| s.epsilon.exact),
            epsilon_paper: spent.map(|s| s.epsilon.paper),
        }
    }

    fn score_round(&self, seen: &Snapshot, releases: &[&PublicVector], plan: &Plan) -> RoundScores {
        let loss = plan.settings().loss;
        let all_same = releases.iter().all(|r| r.as_slice() == releases[0].as_slice());
        let chosen = if all_same { vec![0] } else { panel(releases.len()) };
        let models: Vec<&[f64]> = chosen.iter().map(|&i| releases[i].as_slice()).collect();
        let smoothed = center(&seen.smoothed.iter().collect::<Vec<_>>());
        let (pooled, at_sites, losses) =
            self.evaluate(self.setting.rank_rounds, |e| e.mean_and_losses(&models, &[&smoothed]));
        let own: Vec<f64> = if all_same {
            at_sites[0].clone()
        } else if chosen.len() == releases.len() {
            at_sites.iter().enumerate().map(|(i, losses)| losses[i]).collect()
        } else {
            let pairs = releases.par_iter().zip(&self.shards);
            pairs.map(|(release, shard)| score(loss, &[shard], release.as_slice(), false).mean_loss).collect()
        };
        let average_loss = own.iter().sum::<f64>() / own.len() as f64;
        RoundScores { average_loss, pooled, smoothed_loss: losses[0] }
    }

    fn scores(&self, models: &[&PublicVector]) -> ModelMetrics {
        let mut models: Vec<&[f64]> = models.iter().map(|m| m.as_slice()).collect();
        // Where all sites have the same model, one score is the mean of all.
        if models.iter().all(|m| *m == models[0]) {
            models.truncate(1);
        }
        self.evaluate(true, |e| e.finished(&models, &self.objective))
    }

    fn evaluate<T>(&self, rank: bool, what: impl FnOnce(&Evaluation<'_>) -> T) -> T {
        let train: Vec<&Dataset> = self.shards.iter().map(|s| &**s).collect();
        let loss = self.setting.plan.settings().loss;
        what(&Evaluation { loss, train: &train, test: &self.test, rank })
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
            split: self.setting.split.clone(),
            holdout: self.setting.holdout,
            seed: self.setting.seed,
            plan: self.setting.plan.clone(),
            penalty: self.calibration.penalty,
            averaging_turns: self.calibration.averaging_turns,
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
        let lines: Option<Vec<_>> = runs.iter().map(|r| kept(r).calibration).collect();
        let after = |k: usize| {
            let losses: Option<Vec<f64>> = runs.iter().map(|r| r.trace[k].average_loss).collect();
            losses.map(|losses| MeanStd::of(losses.into_iter()))
        };
        Summary {
            average_loss: after(rounds - 1),
            average_loss_per_round: (0..rounds).filter_map(after).collect(),
            pooled_loss: MeanStd::of(runs.iter().map(|r| r.last.loss)),
            model_loss: MeanStd::of(runs.iter().map(|r| kept(r).loss)),
            model_objective: optional(|m| m.objective),
            accuracy: optional(|m| m.accuracy),
            auc: optional(|m| m.auc),
            calibration: lines.map(|lines| mean_line(&lines)),
            evaluated_on: if self.test.n_records() > 0 { "held-out records" } else { "training records" }
                .to_owned(),
        }
    }
}

/// Which run, of what, seen by whom.
pub struct RunOptions<'a> {
    /// Runs differ in their noise alone.
    pub run: u32,
    /// Another plan for the same network, with what follows from it, such as [`PreparedSimulation::reference`].
    pub instead: Option<(&'a Plan, &'a Calibration)>,
    /// Hears of every round and says whether to continue.
    pub on_round: &'a (dyn Fn(&RoundMetrics) -> bool + Sync),
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        RunOptions { run: 0, instead: None, on_round: &|_| true }
    }
}

impl RunOptions<'_> {
    /// Run number `run` of the plan, unwatched.
    pub fn number(run: u32) -> Self {
        RunOptions { run, ..RunOptions::default() }
    }
}

/// What the agents had after a round.
struct Snapshot {
    round: u32,
    models: Vec<PublicVector>,
    smoothed: Vec<PublicVector>,
}

impl Snapshot {
    fn of(agents: &[Agent], round: u32) -> Self {
        Self {
            round,
            models: agents.iter().map(|a| a.model().clone()).collect(),
            smoothed: agents.iter().map(Agent::smoothed_so_far).collect(),
        }
    }
}

/// What records say of the models of a round.
struct RoundScores {
    average_loss: f64,
    pooled: ModelMetrics,
    smoothed_loss: f64,
}

/// What one run leaves behind.
pub struct Run {
    /// What goes into the simulation's record.
    pub record: RunRecord,
    /// Every agent's last and smoothed model, in the order of the graph.
    pub outcomes: Vec<Outcome>,
}

/// The record states what the plan announced: stops unless that is what the ledger was charged.
fn check_ledger(agent: &Agent, schedule: Option<&dyn Schedule>) {
    let Some(schedule) = schedule else { return };
    let announced = (1..=schedule.rounds()).filter_map(|round| Some((round, schedule.event(round)?)));
    let charged = agent.debits().iter().map(|d| (d.round, d.event));
    assert!(announced.eq(charged), "the ledger holds what the plan announced, round by round");
}
