//! Rounds take no memory: after the first ones a solve allocates its solution and nothing else, and a round what it leaves
//! behind (its charge, its message), however many records and steps there are.

mod common;

use std::sync::Arc;

use allocation_counter::measure;
use common::{Random, World, draft, graph, records, space};
use padmm_baselines::mechanism::Unprotected;
use padmm_core::agent::{Agent, AgentSetup};
use padmm_core::algorithm::{AlgorithmKind, DP_ADMM, TOKEN};
use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::loss::Loss;
use padmm_core::message::{Incoming, Outgoing, SiteIndex};
use padmm_core::objective::{Objective, Part};
use padmm_core::plan::PlanDraft;
use padmm_core::regularizer::{Regularizer, RegularizerTerm};
use padmm_core::solver::{Method, Solver, Status};
use padmm_privacy::{Gate, Mechanism, MemoryLedger, NoiseSource, PrivacyError, RequiredCertificate};

/// Records of so many numbers and categorical columns.
fn made(n: usize, n_numeric: usize, values: &[u32]) -> (Dataset, FeatureSpace) {
    let mut random = Random::new(3);
    let p = n_numeric + values.iter().sum::<u32>() as usize;
    let mut data = Dataset::new(p, n_numeric, values.len(), 1.0);
    for _ in 0..n {
        let numbers = random.normals(n_numeric);
        let mut first = n_numeric as u32;
        let mut hot = vec![];
        for &v in values {
            hot.push(first + random.below(v as usize) as u32);
            first += v;
        }
        let score =
            numbers.iter().sum::<f64>() + f64::from(hot.iter().sum::<u32>() % 3) - 1.0 + random.normal();
        data.push(&numbers, &hot, if score > 0.0 { 1.0 } else { -1.0 });
    }
    let groups = vec![0..p / 2, p / 2..p];
    (data, FeatureSpace { groups, ..FeatureSpace::numeric(p) })
}

/// In one thread, so that whatever is allocated is allocated here.
fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work)
}

/// Solves of one problem with ever other linear terms: allocations of the later ones, and their factorisations.
fn later_solves(
    (data, space): &(Dataset, FeatureSpace),
    loss: Loss,
    regularizer: &Regularizer,
    method: Method,
) -> (u64, usize) {
    let penalty = RegularizerTerm::new(regularizer, space, 1.0);
    let p = data.n_features();
    let (mut solver, mut x) = (Solver::with_method(method), vec![0.0; p]);
    let mut random = Random::new(8);
    let (mut most, mut n_factorizations) = (0, 0);
    let tolerance = if loss == Loss::Hinge { 1e-4 } else { 1e-9 };
    for round in 0..48 {
        // Far apart now and then, so that a kept factorisation does not serve for ever.
        let size = if round % 4 == 0 { 40.0 } else { 0.01 };
        let linear: Vec<f64> = (0..p).map(|_| size * random.normal() / (p as f64).sqrt()).collect();
        let mut solution = None;
        let count = measure(|| {
            let parts = [Part::mean(data)];
            let objective = Objective::new(&parts, loss, &penalty, &linear, 0.1);
            solution = Some(solver.solve(&objective, &x, tolerance));
        });
        let solution = solution.unwrap();
        assert_eq!(
            solution.status,
            Status::Solved,
            "{loss} {regularizer} {method:?}: {:e}",
            solution.residual
        );
        if round >= 32 {
            most = most.max(count.count_total);
            n_factorizations += solution.n_factorizations;
        }
        x = solution.point;
    }
    (most, n_factorizations)
}

#[test]
fn a_solve_allocates_its_solution_and_nothing_else() {
    let shapes = [
        made(300, 6, &[3, 4]),
        // Joint columns.
        made(3000, 6, &[3, 4, 5]),
        // Several tasks.
        made(10_000, 2, &[3, 4, 5]),
        // So many numbers that their products are a matrix product.
        made(1500, 40, &[]),
    ];
    let smooth = Regularizer::L2 { strength: 0.01 };
    let nonsmooth = [Regularizer::L1 { strength: 0.01 }, Regularizer::GroupLasso { strength: 0.01 }];
    for (k, shape) in shapes.iter().enumerate() {
        for (regularizer, method, forms) in [
            (&smooth, Method::Dense, true),
            (&smooth, Method::MatrixFree, false),
            (&nonsmooth[0], Method::Dense, true),
            (&nonsmooth[1], Method::Dense, true),
            (&nonsmooth[0], Method::MatrixFree, false),
        ] {
            let name = format!("shape {k}, {regularizer}, {method:?}");
            let (most, n_factorizations) = alone(|| later_solves(shape, Loss::Logistic, regularizer, method));
            assert_eq!(most, 1, "{name}");
            // Of small rows one factorisation serves for ever; the nonsmooth penalties form Hessians of them.
            let forms = forms && !(k == 3 && regularizer == &smooth);
            assert_eq!(n_factorizations > 0, forms, "{name}: Hessians in the rounds that are looked at");
        }
        if k == 0 {
            let (most, _) = alone(|| later_solves(shape, Loss::Hinge, &smooth, Method::Dense));
            assert_eq!(most, 1, "hinge");
        }
    }
}

/// Noise that takes no memory.
struct Plain(Random);

impl NoiseSource for Plain {
    fn fill(&mut self, scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        out.iter_mut().for_each(|o| *o = (scale * self.0.normal()).round() as i64);
        Ok(())
    }
    fn description(&self) -> &'static str {
        "plain"
    }
    fn is_secure(&self) -> bool {
        false
    }
}

fn agents(world: &World) -> Vec<Agent> {
    let one = |i: usize| {
        let data = Arc::clone(&world.shards[i]);
        let (setup, problem) =
            AgentSetup::of(&world.plan, &world.graph, &world.calibration, SiteIndex(i), &world.space, data);
        let required = RequiredCertificate {
            modulus: setup.calibration.modulus,
            tolerance: setup.calibration.tolerance,
        };
        let mechanism: Box<dyn Mechanism> = match &setup.calibration.noise {
            Some(schedule) => schedule.mechanism(required).unwrap(),
            None => Box::new(Unprotected::new(world.space.n_features()).unwrap()),
        };
        let noise = Box::new(Plain(Random::new(i as u64)));
        let gate =
            Gate::new("test".into(), format!("site-{i}"), mechanism, noise, Box::new(MemoryLedger::new()));
        Agent::new(setup, problem, gate)
    };
    (0..world.n_agents()).map(one).collect()
}

/// The most allocations that an agent made in one turn of the second half of a run: to speak, and to listen to one message.
fn of_a_turn(algorithm: AlgorithmKind, n_records: usize) -> (u64, u64) {
    let text = if algorithm == DP_ADMM { "star" } else { "complete" };
    let mut random = Random::new(2);
    let shards = (0..4).map(|_| Arc::new(records(&mut random, n_records))).collect();
    let plan = PlanDraft { rounds: 40, ..draft(algorithm) };
    let world = World::new(graph(text, 4), shards, space(), plan);
    let mut agents = agents(&world);
    let (mut most_to_speak, mut most_to_listen) = (0, 0);
    while agents.iter().any(|a| a.rounds_done() < 40) {
        let late = agents[0].rounds_done() >= 20;
        let mut spoken: Vec<Option<Outgoing>> = vec![];
        for agent in &mut agents {
            let mut message = None;
            let count = measure(|| message = agent.poll_message().unwrap());
            most_to_speak = most_to_speak.max(if late { count.count_total } else { 0 });
            spoken.push(message);
        }
        let heard: Vec<Option<Incoming>> = spoken.iter().map(|m| m.as_ref().map(Incoming::from)).collect();
        for (i, agent) in agents.iter_mut().enumerate() {
            for &j in world.graph.neighbours(i) {
                if let Some(message) = heard[j]
                    .as_ref()
                    .filter(|_| spoken[j].as_ref().unwrap().is_for(SiteIndex(i), &world.graph))
                {
                    let count = measure(|| agent.handle_message(message).unwrap());
                    most_to_listen = most_to_listen.max(if late { count.count_total } else { 0 });
                }
            }
        }
    }
    (most_to_speak, most_to_listen)
}

#[test]
fn a_round_allocates_what_it_leaves_behind_whatever_the_number_of_records() {
    // Sums are allocated task by task, so their number grows with that of records.
    for algorithm in padmm_baselines::ALL.into_iter().filter(|kind| kind.spec().solves()) {
        let few = alone(|| of_a_turn(algorithm, 60));
        let many = alone(|| of_a_turn(algorithm, 9000));
        assert_eq!(few, many, "{algorithm:?}");
        let (to_speak, to_listen) = many;
        assert_eq!(to_listen, 0, "{algorithm:?}");
        // The charge with its names, three times in a ledger in memory; the noise, the point, the message and its numbers. The token
        // may come twice before anybody else has to be heard: last in a round, and first in the next.
        let n_releases = if algorithm == TOKEN { 2 } else { 1 };
        assert!(to_speak <= 18 * n_releases, "{algorithm:?}: {to_speak}");
    }
}
