//! A small world for tests: records from a seed, noise that remembers what it drew, and a network of agents that is
//! driven by hand. The mathematics is written a second time here, record by record, to check the first against.

// Every test file uses its own part of this module.
#![allow(dead_code)]

pub(crate) mod double;

use std::sync::{Arc, Mutex};

use padmm_baselines::mechanism::Unprotected;
use padmm_core::agent::{Agent, AgentSetup};
use padmm_core::algorithm::{AlgorithmKind, LocalProblem};
use padmm_core::calibration::{Calibration, NetworkFacts};
use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::graph::{Graph, GraphSpec};
use padmm_core::loss::Loss;
use padmm_core::message::{Incoming, Outgoing, Recipients, SiteIndex};
use padmm_core::objective::{Objective, Part};
use padmm_core::plan::{Plan, PlanDraft, SiteWeights};
use padmm_core::regularizer::{Regularizer, RegularizerTerm};
use padmm_core::solver::{Solver, Status};
use padmm_privacy::{Gate, Ledger, Mechanism, MemoryLedger, NoiseSource, PrivacyError, RequiredCertificate};

/// Public random numbers (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In (0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Standard normal (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    pub(crate) fn normals(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.normal()).collect()
    }
}

/// What the records of [`records`] look like: two numeric columns, then two categorical ones of three and two values.
pub(crate) const N_FEATURES: usize = 7;

pub(crate) fn space() -> FeatureSpace {
    FeatureSpace { groups: vec![0..1, 1..2, 2..5, 5..7], ..FeatureSpace::numeric(N_FEATURES) }
}

pub(crate) fn empty() -> Dataset {
    Dataset::new(N_FEATURES, 2, 2, 1.0)
}

/// One random record: numeric values, hot columns, a label of −1 or +1.
pub(crate) fn random_record(random: &mut Random) -> ([f64; 2], [u32; 2], f64) {
    let numeric = [random.normal(), random.normal()];
    let hot = [2 + random.below(3) as u32, 5 + random.below(2) as u32];
    let score = 1.5 * numeric[0] - numeric[1] + f64::from(hot[0]) - 3.0 + random.normal();
    (numeric, hot, if score > 0.0 { 1.0 } else { -1.0 })
}

pub(crate) fn records(random: &mut Random, n: usize) -> Dataset {
    let mut data = empty();
    for _ in 0..n {
        let (numeric, hot, label) = random_record(random);
        data.push(&numeric, &hot, label);
    }
    data
}

/// Shards of different sizes.
pub(crate) fn shards(seed: u64, n_agents: usize) -> Vec<Arc<Dataset>> {
    let mut random = Random::new(seed);
    (0..n_agents)
        .map(|_| {
            let n = 30 + random.below(30);
            Arc::new(records(&mut random, n))
        })
        .collect()
}

pub(crate) fn graph(text: &str, n_agents: usize) -> Graph {
    let spec: GraphSpec = text.parse().unwrap();
    spec.build(n_agents, &[], 11).unwrap()
}

/// Noise from a seed that keeps a copy of what it gave, so that a test can take it off again.
pub(crate) struct RememberedNoise {
    random: Random,
    drawn: Remembered,
}

/// Scale and noise of every round.
pub(crate) type Remembered = Arc<Mutex<Vec<(f64, Vec<i64>)>>>;

impl RememberedNoise {
    pub(crate) fn new(seed: u64) -> (Self, Remembered) {
        let drawn = Remembered::default();
        (Self { random: Random::new(seed), drawn: Arc::clone(&drawn) }, drawn)
    }
}

impl NoiseSource for RememberedNoise {
    fn fill(&mut self, scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        out.iter_mut().for_each(|o| *o = (scale * self.random.normal()).round() as i64);
        self.drawn.lock().unwrap().push((scale, out.to_vec()));
        Ok(())
    }
    fn description(&self) -> &'static str {
        "remembered by a test"
    }
    fn is_secure(&self) -> bool {
        false
    }
}

/// A plan for small worlds; change what a test is about.
pub(crate) fn draft(algorithm: AlgorithmKind) -> PlanDraft {
    PlanDraft {
        algorithm,
        rounds: 6,
        penalty: Some(0.05),
        epsilon: 20.0,
        regularizer: Regularizer::L2 { strength: 0.05 },
        // The paper's problem, which most tests state.
        weights: SiteWeights::Sites,
        ..PlanDraft::default()
    }
}

/// Everything that agents are made of.
pub(crate) struct World {
    pub graph: Graph,
    pub shards: Vec<Arc<Dataset>>,
    pub space: FeatureSpace,
    pub plan: Plan,
    pub calibration: Calibration,
}

impl World {
    pub(crate) fn new(
        graph: Graph,
        shards: Vec<Arc<Dataset>>,
        space: FeatureSpace,
        draft: PlanDraft,
    ) -> Self {
        let plan = draft.check().unwrap();
        let n_records: Vec<usize> = shards.iter().map(|s| s.n_records()).collect();
        let network = NetworkFacts {
            graph: &graph,
            n_records: &n_records,
            space: &space,
            norm_bound: shards[0].norm_bound(),
        };
        let calibration = Calibration::derive(&plan, &network).unwrap();
        Self { graph, shards, space, plan, calibration }
    }

    /// A world of [`records`].
    pub(crate) fn small(text: &str, n_agents: usize, draft: PlanDraft) -> Self {
        Self::new(graph(text, n_agents), shards(5, n_agents), space(), draft)
    }

    pub(crate) fn n_agents(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn problem(&self, i: usize) -> LocalProblem {
        let settings = self.plan.settings();
        let n_records: Vec<usize> = self.shards.iter().map(|s| s.n_records()).collect();
        LocalProblem {
            data: Arc::clone(&self.shards[i]),
            loss: settings.loss,
            penalty: RegularizerTerm::new(&settings.regularizer, &self.space, 1.0 / self.n_agents() as f64),
            weight: settings.weights.factors(&n_records)[i],
        }
    }

    /// Agent `i` with its noise from `seed`.
    pub(crate) fn agent(&self, i: usize, seed: u64, ledger: Box<dyn Ledger>) -> (Agent, Remembered) {
        let calibration = self.calibration.agents[i].clone();
        let mechanism: Box<dyn Mechanism> = match &calibration.noise {
            Some(schedule) => {
                let required =
                    RequiredCertificate { modulus: calibration.modulus, tolerance: calibration.tolerance };
                schedule.mechanism(required).unwrap()
            }
            None => Box::new(Unprotected::new(self.space.n_features()).unwrap()),
        };
        let (noise, remembered) = RememberedNoise::new(seed);
        let gate = Gate::new("test".into(), format!("site-{i}"), mechanism, Box::new(noise), ledger);
        let shard = Arc::clone(&self.shards[i]);
        let (setup, problem) =
            AgentSetup::of(&self.plan, &self.graph, &self.calibration, SiteIndex(i), &self.space, shard);
        (Agent::new(setup, problem, gate), remembered)
    }

    /// All agents, agent `i` with noise from seed `seed(i)`.
    pub(crate) fn agents(&self, seed: impl Fn(usize) -> u64) -> (Vec<Agent>, Vec<Remembered>) {
        (0..self.n_agents()).map(|i| self.agent(i, seed(i), Box::new(MemoryLedger::new()))).unzip()
    }

    /// One round in lockstep along the edges that `connected` allows; what is passed on finds a way around those that it does not.
    pub(crate) fn exchange(&self, agents: &mut [Agent], connected: impl Fn(usize, usize) -> bool) {
        let spoken: Vec<Option<Outgoing>> =
            agents.iter_mut().map(|a| a.poll_message().expect("the round succeeds")).collect();
        for (i, agent) in agents.iter_mut().enumerate() {
            for (j, message) in spoken.iter().enumerate() {
                let arrives = |m: &&Outgoing| {
                    m.is_for(SiteIndex(i), &self.graph) && (connected(i, j) || m.to == Recipients::Everybody)
                };
                if let Some(message) = message.as_ref().filter(arrives) {
                    agent.handle_message(&Incoming::from(message)).expect("the message is welcome");
                }
            }
        }
    }

    /// Runs to the end; `look` sees the agents after each private round.
    pub(crate) fn run(&self, agents: &mut [Agent], mut look: impl FnMut(u32, &[Agent])) {
        let mut seen = 0;
        while agents.iter().any(|a| a.outcome().is_none()) {
            self.exchange(agents, |_, _| true);
            if agents.iter().all(|a| a.rounds_done() > seen) {
                seen += 1;
                look(seen, agents);
            }
        }
    }

    /// The pooled minimiser, to the limit of floating point.
    pub(crate) fn optimum(&self) -> Vec<f64> {
        let settings = self.plan.settings();
        let problems: Vec<LocalProblem> = (0..self.n_agents()).map(|i| self.problem(i)).collect();
        let parts: Vec<Part> = problems.iter().map(LocalProblem::part).collect();
        let penalty = RegularizerTerm::new(&settings.regularizer, &self.space, 1.0);
        let objective = Objective::new(&parts, settings.loss, &penalty, &[], 0.0);
        let start = vec![0.0; self.space.n_features()];
        let solution = Solver::new().solve(&objective, &start, 1e-12 * self.n_agents() as f64);
        assert_eq!(solution.status, Status::Solved, "residual {:e}", solution.residual);
        solution.point
    }
}

pub(crate) fn norm(v: &[f64]) -> f64 {
    v.iter().map(|u| u * u).sum::<f64>().sqrt()
}

pub(crate) fn distance(a: &[f64], b: &[f64]) -> f64 {
    norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>())
}

/// A record's features as a plain vector.
pub(crate) fn dense(data: &Dataset, r: usize) -> Vec<f64> {
    let row = data.row(r);
    let mut a = vec![0.0; data.n_features()];
    a[..row.numeric.len()].copy_from_slice(row.numeric);
    row.hot.iter().for_each(|&j| a[j as usize] += 1.0);
    a.iter_mut().for_each(|v| *v *= row.scale);
    a
}

/// `∂ℓ/∂t` by the losses' definitions; not for the hinge.
pub(crate) fn naive_slope(loss: Loss, z: f64, t: f64) -> f64 {
    match loss {
        Loss::Logistic => -z / (1.0 + (z * t).exp()),
        Loss::HuberizedHinge { width } => {
            let gap = 1.0 - z * t;
            if gap >= width {
                -z
            } else if gap <= -width {
                0.0
            } else {
                -z * (gap + width) / (2.0 * width)
            }
        }
        Loss::Huber { width } => (t - z).max(-width).min(width),
        Loss::Squared => t - z,
        Loss::Quantile { level, width } => {
            let above = if t - z >= width { 1.0 } else { ((t - z) / width + 1.0) / 2.0 };
            above.max(0.0) - level
        }
        Loss::Poisson { cap } => t.exp().min(cap) - cap * z.clamp(0.0, 1.0),
        Loss::Hinge => panic!("the hinge has no derivative"),
    }
}

/// Gradient of `(1/n) Σ ℓ(z, aᵀx)`, record by record.
pub(crate) fn naive_loss_gradient(data: &Dataset, loss: Loss, x: &[f64]) -> Vec<f64> {
    let mut gradient = vec![0.0; x.len()];
    for r in 0..data.n_records() {
        let a = dense(data, r);
        let t: f64 = a.iter().zip(x).map(|(a, x)| a * x).sum();
        let slope = naive_slope(loss, data.row(r).label, t) / data.n_records() as f64;
        gradient.iter_mut().zip(&a).for_each(|(g, a)| *g += slope * a);
    }
    gradient
}

/// Mean loss, record by record.
pub(crate) fn naive_mean_loss(data: &Dataset, loss: Loss, x: &[f64]) -> f64 {
    let one = |r: usize| {
        let t: f64 = dense(data, r).iter().zip(x).map(|(a, x)| a * x).sum();
        let z = data.row(r).label;
        match loss {
            Loss::Logistic => {
                if z * t > 0.0 {
                    (-z * t).exp().ln_1p()
                } else {
                    -z * t + (z * t).exp().ln_1p()
                }
            }
            Loss::Hinge => (1.0 - z * t).max(0.0),
            Loss::HuberizedHinge { width } => {
                let gap = 1.0 - z * t;
                let corner = (gap + width).powi(2) / (4.0 * width);
                if gap >= width {
                    gap
                } else if gap <= -width {
                    0.0
                } else {
                    corner
                }
            }
            Loss::Huber { width } => {
                let r = (z - t).abs();
                if r <= width { r * r / 2.0 } else { width * r - width * width / 2.0 }
            }
            Loss::Squared => (z - t) * (z - t) / 2.0,
            Loss::Quantile { level, width } => {
                let (u, pinball) = (t - z, ((1.0 - level) * (t - z)).max(level * (z - t)));
                if u.abs() >= width { pinball } else { pinball + (width - u.abs()).powi(2) / (4.0 * width) }
            }
            Loss::Poisson { cap } => {
                let y = cap * z.clamp(0.0, 1.0);
                let expected = if t.exp() <= cap { t.exp() } else { cap * (1.0 + t - cap.ln()) };
                expected - y * t + if y > 0.0 { y * y.ln() - y } else { 0.0 }
            }
        }
    };
    (0..data.n_records()).map(one).sum::<f64>() / data.n_records() as f64
}

/// `R(x)` by EQUATIONS §1.
pub(crate) fn naive_regularizer(regularizer: Regularizer, space: &FeatureSpace, x: &[f64]) -> f64 {
    let free = |j: &usize| space.intercept != Some(*j);
    let square: f64 = (0..x.len()).filter(free).map(|j| x[j] * x[j]).sum();
    let absolute: f64 = (0..x.len()).filter(free).map(|j| x[j].abs()).sum();
    match regularizer {
        Regularizer::None => 0.0,
        Regularizer::L2 { strength } => strength * square,
        Regularizer::L1 { strength } => strength * absolute,
        Regularizer::ElasticNet { strength, l1_ratio } => {
            strength * (l1_ratio * absolute + (1.0 - l1_ratio) * square)
        }
        Regularizer::GroupLasso { strength } => {
            let group = |g: &std::ops::Range<usize>| (g.len() as f64).sqrt() * norm(&x[g.clone()]);
            strength * space.groups.iter().map(group).sum::<f64>()
        }
    }
}
