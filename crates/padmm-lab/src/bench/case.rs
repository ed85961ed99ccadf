//! One piece of our own work, measured in a process of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use padmm_core::algorithm::{AlgorithmKind, P_ADMM};
use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::graph::GraphSpec;
use padmm_core::loss::Loss;
use padmm_core::objective::{Objective, ObjectiveBuffers, Part};
use padmm_core::plan::PlanDraft;
use padmm_core::regularizer::{Regularizer, RegularizerTerm};
use padmm_core::solver::{Solution, Solver, Status};
use padmm_sim::split::Sites;
use padmm_sim::{Holdout, NoiseKind, PreparedSimulation, SimulationPlan, Split};
use serde::{Deserialize, Serialize};

use super::export;
use super::limit::Limit;
use super::shape::{SEED, Shape};
use super::{best, median};

/// Gradient norm that a local solve is measured to.
pub const TOLERANCE: f64 = 1e-8;

/// The pieces of our own work that can be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Rounds of a network without metrics.
    Rounds,
    /// The same with the simulator's metrics.
    Metrics,
    /// The first agent's local problems: cold, and warm in the rounds of a run.
    Solve,
    /// A cold solve of all records as one problem with `½·10⁻³·‖x‖²`.
    Wide,
    /// The local gradient alone, with the machine's limits.
    Gradient,
}

/// Work, its data and its network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// Which piece of work is timed.
    pub work: Work,
    /// Of what records, as in [`Shape`].
    pub shape: String,
    /// How many records all agents have together; Adult's own are as many as there are.
    pub n_records: usize,
    /// How many agents share the records.
    pub n_agents: usize,
    /// Their graph, as settings write it.
    pub graph: String,
    /// Private rounds of one run.
    pub rounds: u32,
    /// Which algorithm the agents run, with its defaults.
    pub algorithm: AlgorithmKind,
    /// Size of the thread pool that does the work.
    pub threads: usize,
    /// Repetitions, of which the best counts.
    pub repeat: usize,
    /// Where the peers find the same problem.
    pub export: Option<PathBuf>,
    /// Whether to measure how long the machine takes at least to read the records once.
    #[serde(default)]
    pub limit: bool,
}

/// What a case was measured to take, and what it computed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Best seconds of each piece: others on the machine can only add to them.
    pub seconds: BTreeMap<String, f64>,
    /// Other numbers by name: medians, norms, bytes and speeds.
    pub facts: BTreeMap<String, f64>,
    /// Models to compare with the peers', by the piece that computed them.
    pub points: BTreeMap<String, Vec<f64>>,
    /// The most memory that the process had, where the system says.
    pub peak_bytes: Option<f64>,
}

impl Answer {
    /// Best seconds of a piece; an error names a piece that was not timed.
    pub fn time(&self, what: &str) -> anyhow::Result<f64> {
        self.seconds.get(what).copied().with_context(|| format!("the case did not time '{what}'"))
    }

    /// A number by its name; an error names one that the case does not have.
    pub fn fact(&self, what: &str) -> anyhow::Result<f64> {
        self.facts.get(what).copied().with_context(|| format!("the case has no '{what}'"))
    }
}

impl Default for Case {
    fn default() -> Self {
        Self {
            work: Work::Rounds,
            shape: Shape::Adult.to_string(),
            n_records: 0,
            n_agents: 5,
            graph: GraphSpec::Complete.to_string(),
            rounds: 50,
            algorithm: P_ADMM,
            threads: 2,
            repeat: 5,
            export: None,
            limit: false,
        }
    }
}

impl Case {
    /// Measures it in a new process of this program.
    pub fn in_child(&self) -> anyhow::Result<Answer> {
        let program = std::env::current_exe().context("this program cannot find itself")?;
        let case = serde_json::to_string(self)?;
        let output = Command::new(program).args(["case", &case]).stderr(Stdio::piped()).output()?;
        if !output.status.success() {
            bail!("{case}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        serde_json::from_slice(&output.stdout).with_context(|| format!("{case} gave no answer"))
    }

    /// Runs it once in a new process and writes the problem for the peers.
    pub fn export_to(&self, folder: &Path) -> anyhow::Result<()> {
        Self { export: Some(std::path::absolute(folder)?), repeat: 1, limit: false, ..self.clone() }
            .in_child()?;
        Ok(())
    }

    /// Measures it in this process, in a thread pool of its own.
    pub fn measure(&self) -> anyhow::Result<Answer> {
        rayon::ThreadPoolBuilder::new().num_threads(self.threads).build()?.install(|| self.measure_in_pool())
    }

    fn measure_in_pool(&self) -> anyhow::Result<Answer> {
        let (mut answer, bytes, flops) = match self.work {
            Work::Gradient | Work::Wide => {
                let made = self.shape.parse::<Shape>()?.make(self.n_records, 1)?;
                let answer = match self.work {
                    Work::Gradient => self.gradient(&made.shards[0]),
                    _ => self.wide(&made.shards[0])?,
                };
                (answer, made.shards[0].pass_bytes(), made.shards[0].pass_flops())
            }
            Work::Rounds | Work::Metrics | Work::Solve => {
                let start = Instant::now();
                let simulation = self.simulation()?;
                let mut answer = match self.work {
                    Work::Solve => self.solve(&simulation)?,
                    _ => self.rounds(&simulation)?,
                };
                answer.facts.insert("all_seconds".to_owned(), start.elapsed().as_secs_f64());
                answer.facts.insert("data_bytes".to_owned(), simulation.memory_bytes() as f64);
                let n_shards = if self.work == Work::Solve { 1 } else { self.n_agents };
                let shards = || simulation.shards()[..n_shards].iter().map(|s| &**s);
                (answer, shards().map(Dataset::pass_bytes).sum(), shards().map(Dataset::pass_flops).sum())
            }
        };
        // Before the limit is measured, which takes memory of its own.
        answer.peak_bytes = peak_bytes();
        if self.limit {
            let limit = Limit::measure();
            answer.seconds.insert("limit".to_owned(), limit.seconds(bytes as f64, flops as f64));
            answer.facts.insert("pass_bytes".to_owned(), bytes as f64);
            answer.facts.insert("bytes_per_second".to_owned(), limit.bytes_per_second);
            answer.facts.insert("flops_per_second".to_owned(), limit.flops_per_second);
        }
        Ok(answer)
    }

    fn simulation(&self) -> anyhow::Result<PreparedSimulation> {
        let shape: Shape = self.shape.parse()?;
        let made = shape.make(self.n_records, self.n_agents)?;
        let graph_spec: GraphSpec = self.graph.parse()?;
        let names: Vec<String> = (0..self.n_agents).map(|i| format!("agent-{i}")).collect();
        let graph = graph_spec.build(self.n_agents, &names, SEED)?;
        let plan = PlanDraft { rounds: self.rounds, algorithm: self.algorithm, ..PlanDraft::default() };
        let setting = SimulationPlan {
            dataset: self.shape.clone(),
            n_agents: Some(self.n_agents),
            graph: graph_spec,
            split: Split::Even,
            holdout: Holdout::None,
            runs: 1,
            seed: SEED,
            noise: NoiseKind::Seeded,
            reference: false,
            rank_rounds: true,
            measures: true,
            plan: plan.check()?,
        };
        let test = made.shards[0].empty_like();
        let sites = Sites { names, shards: made.shards, test, site_tests: vec![] };
        Ok(PreparedSimulation::of_sites(setting, sites, graph, made.space, 0)?)
    }

    fn rounds(&self, simulation: &PreparedSimulation) -> anyhow::Result<Answer> {
        let mut answer = Answer::default();
        if let Some(folder) = &self.export {
            export::network(simulation, &simulation.models(0)?, folder)?;
        }
        let run = || -> anyhow::Result<()> {
            match self.work {
                Work::Metrics => drop(simulation.run_all(&|_| true)?),
                _ => drop(simulation.models(0)?),
            }
            Ok(())
        };
        let times = self.times(run)?;
        answer.seconds.insert("run".to_owned(), best(&times));
        answer.facts.insert("median run".to_owned(), median(&times));
        Ok(answer)
    }

    /// The first agent's problem of the first round, where all releases are zero and with them the linear term; the same with the
    /// regulariser alone, which is less well conditioned; and its problems of the later rounds, each from where the last ended.
    fn solve(&self, simulation: &PreparedSimulation) -> anyhow::Result<Answer> {
        let mut answer = Answer::default();
        let (calibration, shard) = (&simulation.calibration().agents[0], &simulation.shards()[0]);
        let proximal = 2.0 * simulation.calibration().penalty * calibration.degree as f64;
        let mut note = |what: &str, seconds: f64, curvature: f64, norm: f64, point: Vec<f64>| {
            answer.seconds.insert(what.to_owned(), seconds);
            answer.facts.insert(format!("gradient_norm {what}"), norm);
            answer.facts.insert(format!("curvature {what}"), curvature);
            answer.points.insert(what.to_owned(), point);
        };
        for (what, curvature) in
            [("cold", calibration.modulus), ("cold-flat", calibration.modulus - proximal)]
        {
            let problem = Problem::new(shard, curvature);
            let solve = || solved(problem.solve(&mut Solver::new(), &[], &vec![0.0; shard.n_features()]));
            let solution = solve()?;
            note(what, self.timed(solve)?, curvature, solution.residual, solution.point);
        }
        let releases = simulation.models(0)?;
        let linear = export::linear_terms(simulation, &releases);
        let problem = Problem::new(shard, calibration.modulus);
        let mut first = Solver::new();
        let start = solved(problem.solve(&mut first, &linear[0], &vec![0.0; shard.n_features()]))?.point;
        let (mut seconds, mut worst, mut last) = (vec![], 0.0f64, vec![]);
        for _ in 0..self.repeat {
            // What the first round leaves is there when the second begins, for us as for the peers.
            let mut solver = Solver::new();
            let mut x = solved(problem.solve(&mut solver, &linear[0], &vec![0.0; shard.n_features()]))?.point;
            let begin = Instant::now();
            for linear in &linear[1..] {
                let solution = solved(problem.solve(&mut solver, linear, &x))?;
                (x, worst) = (solution.point, worst.max(solution.residual));
            }
            seconds.push(begin.elapsed().as_secs_f64());
            last = x;
        }
        note("warm", best(&seconds), calibration.modulus, worst, last);
        if let Some(folder) = &self.export {
            export::network(simulation, &releases, folder)?;
            export::warm(folder, &linear[1..], &start)?;
        }
        Ok(answer)
    }

    fn wide(&self, shard: &Dataset) -> anyhow::Result<Answer> {
        let mut answer = Answer::default();
        let problem = Problem::new(shard, WIDE_CURVATURE);
        let solve = || solved(problem.solve(&mut Solver::new(), &[], &vec![0.0; shard.n_features()]));
        let solution = solve()?;
        answer.seconds.insert("solve".to_owned(), self.timed(solve)?);
        answer.facts.insert("gradient_norm".to_owned(), solution.residual);
        answer.facts.insert("evaluations".to_owned(), solution.n_evaluations as f64);
        answer.facts.insert("factorizations".to_owned(), solution.n_factorizations as f64);
        if let Some(folder) = &self.export {
            export::records(folder, std::iter::once(shard), serde_json::json!({}))?;
        }
        Ok(answer)
    }

    fn gradient(&self, shard: &Dataset) -> Answer {
        let mut answer = Answer::default();
        let p = shard.n_features();
        let problem = Problem::new(shard, WIDE_CURVATURE);
        let x: Vec<f64> = (0..p).map(|j| (j as f64).sin()).collect();
        let (mut gradient, mut buffers) = (vec![0.0; p], ObjectiveBuffers::default());
        let parts = [Part::mean(shard)];
        let objective = Objective::new(&parts, Loss::Logistic, &problem.penalty, &[], 0.0);
        objective.gradient(&x, &mut gradient, &mut buffers);
        let mut seconds = f64::INFINITY;
        for _ in 0..self.repeat {
            let start = Instant::now();
            objective.gradient(&x, &mut gradient, &mut buffers);
            seconds = seconds.min(start.elapsed().as_secs_f64());
        }
        answer.seconds.insert("gradient".to_owned(), seconds);
        answer
    }

    fn timed<T>(&self, work: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<f64> {
        Ok(best(&self.times(work)?))
    }

    fn times<T>(&self, mut work: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<Vec<f64>> {
        ensure!(self.repeat > 0, "a case is repeated at least once");
        let mut seconds = vec![];
        for _ in 0..self.repeat {
            let start = Instant::now();
            work()?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        Ok(seconds)
    }
}

/// Curvature of the regulariser of problems that belong to no network.
pub const WIDE_CURVATURE: f64 = 1e-3;

/// Mean loss of some records `+ ½·curvature·‖x‖² + ⟨linear, x⟩`.
struct Problem<'a> {
    shard: &'a Dataset,
    penalty: RegularizerTerm,
}

impl<'a> Problem<'a> {
    fn new(shard: &'a Dataset, curvature: f64) -> Self {
        // Λ‖x‖² with 2Λ = curvature; as the peers have it, for the intercept too.
        let regularizer = Regularizer::L2 { strength: 0.5 * curvature };
        Problem {
            shard,
            penalty: RegularizerTerm::new(&regularizer, &FeatureSpace::numeric(shard.n_features()), 1.0),
        }
    }

    fn solve(&self, solver: &mut Solver, linear: &[f64], start: &[f64]) -> Solution {
        let parts = [Part::mean(self.shard)];
        let objective = Objective::new(&parts, Loss::Logistic, &self.penalty, linear, 0.0);
        solver.solve(&objective, start, TOLERANCE)
    }
}

fn solved(solution: Solution) -> anyhow::Result<Solution> {
    ensure!(solution.status == Status::Solved, "a solve reached only {:.1e}", solution.residual);
    Ok(solution)
}

/// The most memory that this process ever had.
fn peak_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(1024.0 * line.split_whitespace().next()?.parse::<f64>().ok()?)
}

/// Losses of the models that sites keep, beside the best possible.
pub struct LossAt {
    /// Mean over runs, on all records.
    pub loss: f64,
    /// Standard deviation of the loss over runs.
    pub deviation: f64,
    /// Loss of the pooled optimum on the same records.
    pub optimum: f64,
}

/// What P-ADMM's defaults give five agents with Adult's records at a total ε.
pub fn loss_at(epsilon: f64, runs: u32) -> anyhow::Result<LossAt> {
    let adult = padmm_data::load(&padmm_data::Source::Shipped("adult".to_owned()))?.encoded;
    let setting = SimulationPlan {
        dataset: "adult".to_owned(),
        n_agents: Some(5),
        graph: GraphSpec::Complete,
        split: Split::Even,
        holdout: Holdout::None,
        runs,
        seed: SEED,
        noise: NoiseKind::Seeded,
        reference: false,
        rank_rounds: false,
        measures: true,
        plan: PlanDraft { epsilon, ..PlanDraft::default() }.check()?,
    };
    let (record, _) = padmm_sim::simulate(setting, adult, &|_| {})?;
    let loss = &record.summary.model_loss;
    let optimum = record.optimum.as_ref().map_or(f64::NAN, |optimum| optimum.loss);
    Ok(LossAt { loss: loss.mean, deviation: loss.std, optimum })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(work: Work, shape: &str) -> Case {
        let (shape, graph) = (shape.to_owned(), "ring".to_owned());
        Case { work, shape, graph, n_records: 900, n_agents: 3, rounds: 3, repeat: 1, ..Case::default() }
    }

    #[test]
    fn rounds_and_solves_are_done_and_timed() {
        for (work, shape, times) in [
            (Work::Rounds, "one-hot", &["run"][..]),
            (Work::Metrics, "one-hot", &["run"]),
            (Work::Solve, "one-hot", &["cold", "cold-flat", "warm"]),
            (Work::Wide, "dense:40", &["solve"]),
            (Work::Wide, "sparse:50", &["solve"]),
        ] {
            let case = small(work, shape);
            // As it comes from the command that starts the process.
            let case: Case = serde_json::from_str(&serde_json::to_string(&case).unwrap()).unwrap();
            let answer = case.measure().unwrap();
            times.iter().for_each(|t| assert!(answer.time(t).unwrap() > 0.0, "{work:?} {t}"));
            let norms = answer.facts.iter().filter(|(name, _)| name.starts_with("gradient_norm"));
            norms.for_each(|(_, norm)| assert!(*norm <= TOLERANCE, "{norm:e}"));
        }
        assert!(small(Work::Rounds, "round").measure().is_err());
        assert!(Answer::default().time("run").is_err());
    }

    /// The linear terms that the peers are given are those that the agents had: a warm solve ends where the agent did.
    #[test]
    fn what_is_exported_is_the_problem_that_was_solved() {
        let folder = tempfile::tempdir().unwrap();
        let case = Case { export: Some(folder.path().to_owned()), ..small(Work::Solve, "one-hot") };
        let last = case.measure().unwrap().points["warm"].clone();
        let read = |name: &str| -> Vec<f64> {
            let bytes = std::fs::read(folder.path().join(name)).unwrap();
            bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
        };
        let (p, n_agents, rounds) = (last.len(), 3, 3);
        let at = (rounds - 1) * n_agents * p;
        let (releases, noise) = (read("releases.f64"), read("noise.f64"));
        assert_eq!((releases.len(), noise.len()), (rounds * n_agents * p, rounds * n_agents * p));
        assert_eq!((read("linear.f64").len(), read("scale.f64").len()), ((rounds - 1) * p, 900));
        for ((release, noise), x) in releases[at..].iter().zip(&noise[at..]).zip(&last) {
            // Up to the rounding to the release's grid and the solver's tolerance.
            assert!((release - noise - x).abs() < 1e-4, "{release} − {noise} against {x}");
        }
        let meta: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("meta.json")).unwrap()).unwrap();
        assert_eq!(meta["edges"], serde_json::json!([[0, 1], [0, 2], [1, 2]]));
    }
}
