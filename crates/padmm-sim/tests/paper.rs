//! The paper in its own order: problem, algorithm, invariants, privacy, and what a run is worth.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use crate::common;

use padmm_baselines::ADMM;
use padmm_baselines::accounting::{Accountant, GdpAccountant, ZcdpAccountant, ZcdpConversion};
use padmm_core::account::dynamic_curve;
use std::sync::Arc;

use common::{
    N_FEATURES, Random, World, distance, draft, graph, naive_loss_gradient, naive_mean_loss, norm, shards,
    space,
};
use padmm_core::agent::Agent;
use padmm_core::algorithm::{Algorithm, ConsensusAdmm, Local, P_ADMM};
use padmm_core::graph::GraphSpec;
use padmm_core::loss::Loss;
use padmm_core::message::SiteIndex;
use padmm_core::plan::{AccountantKind, PlanDraft};
use padmm_core::regularizer::Regularizer;
use padmm_core::schema::Encoded;
use padmm_core::solver::Solver;
use padmm_core::step;
use padmm_data::{Source, load};
use padmm_privacy::{
    Computed, Delta, Drawn, Event, PublicVector, Schedule, ZcdpRho, gdp_epsilon, outward, paper_epsilon,
    rho_to_mu,
};
use padmm_sim::{Holdout, PreparedSimulation, Record, SimulationPlan, Split, simulate};

fn adult() -> Encoded {
    load(&Source::Shipped("adult".into())).unwrap().encoded
}

fn setting(plan: PlanDraft) -> SimulationPlan {
    SimulationPlan {
        dataset: "adult".into(),
        n_agents: Some(5),
        graph: GraphSpec::Complete,
        split: Split::Even,
        holdout: Holdout::None,
        runs: 1,
        seed: 1,
        noise: padmm_sim::NoiseKind::Seeded,
        reference: false,
        rank_rounds: true,
        measures: true,
        plan: plan.check().unwrap(),
    }
}

fn quiet(_: padmm_sim::Progress) {}

/// A private world that is small enough to look at every number.
fn private_world(text: &str, n_agents: usize) -> World {
    World::small(text, n_agents, draft(P_ADMM))
}

/// The point that an agent computed in the round that it just released: the release less its noise, on the grid.
fn unnoised(world: &World, i: usize, round: u32, agent: &Agent, noise: &common::Remembered) -> Vec<f64> {
    let exponent = world.calibration.agents[i].noise.as_ref().unwrap().grid_exponent(round).unwrap();
    let step = 2f64.powi(exponent);
    let drawn = &noise.lock().unwrap()[round as usize - 1].1;
    agent.released().as_slice().iter().zip(drawn).map(|(x, z)| x - step * *z as f64).collect()
}

// Problem: eq. (1), (2).

#[test]
fn problem_pooled_optimum_on_adult() {
    let encoded = adult();
    assert_eq!((encoded.records.n_records(), encoded.records.n_features()), (45_222, 104));
    let records = encoded.records.clone();
    let simulation = PreparedSimulation::prepare(setting(PlanDraft::default()), encoded).unwrap();
    let x = simulation.optimum();
    // Shards of equal size up to one record: the mean over sites is the mean over records to 1e-6.
    let loss = naive_mean_loss(&records, Loss::Logistic, x);
    let objective = loss + 0.001 / 5.0 * norm(x).powi(2);
    assert!((loss - 0.369708).abs() < 2e-6, "loss {loss}");
    assert!((objective - 0.392234).abs() < 2e-6, "objective {objective}");
    // The first-order condition of (1), record by record: Σ_i ∇f_i = 0.
    let mut gradient = naive_loss_gradient(&records, Loss::Logistic, x);
    gradient.iter_mut().zip(x).for_each(|(g, x)| *g += 2.0 * 0.001 / 5.0 * x);
    assert!(norm(&gradient) < 2e-6, "{:e}", norm(&gradient));
}

#[test]
fn problem_the_regulariser_counts_once_over_all_agents() {
    // Σ_i R/N = R: the pooled minimiser solves Σ_i mean_i ∇ℓ + ∇R = 0, agents of different sizes weighing the same.
    let world = private_world("ring", 4);
    let x = world.optimum();
    let mut gradient = [0.0; N_FEATURES];
    for shard in &world.shards {
        let part = naive_loss_gradient(shard, Loss::Logistic, &x);
        gradient.iter_mut().zip(part).for_each(|(g, p)| *g += p);
    }
    gradient.iter_mut().zip(&x).for_each(|(g, x)| *g += 2.0 * 0.05 * x);
    assert!(norm(&gradient) < 1e-10);
}

// ADMM without noise: (u-x), (u-a) reach the minimiser of (1).

fn settles_at_the_optimum(world: &World) -> f64 {
    let optimum = world.optimum();
    let (mut agents, _) = world.agents(|i| i as u64);
    world.run(&mut agents, |_, _| {});
    agents.iter().map(|a| distance(a.released().as_slice(), &optimum)).fold(0.0, f64::max)
}

#[test]
fn admm_without_noise_reaches_the_pooled_optimum_on_every_graph() {
    for (text, n) in [
        ("ring", 7),
        ("path", 5),
        ("star", 6),
        ("complete", 5),
        ("grid:2x3", 6),
        ("torus:3x3", 9),
        ("erdos-renyi:0.5", 8),
        ("geometric:0.6", 8),
        ("small-world:2,0.3", 8),
        ("regular:3", 8),
        ("edges:1-2,2-3,3-4,4-2,4-5", 5),
    ] {
        let plan = PlanDraft { rounds: 700, tolerance: Some(1e-9), ..draft(ADMM) };
        let found = settles_at_the_optimum(&World::small(text, n, plan));
        assert!(found < 1e-6, "{text}: {found:e}");
    }
}

#[test]
fn admm_without_noise_reaches_the_pooled_optimum_for_every_loss_and_regulariser() {
    let strength = 0.02;
    let l2 = Regularizer::L2 { strength };
    for (loss, regularizer) in [
        (Loss::HuberizedHinge { width: 0.5 }, l2),
        (Loss::Huber { width: 0.5 }, l2),
        (Loss::Squared, l2),
        (Loss::Quantile { level: 0.8, width: 0.2 }, l2),
        (Loss::Poisson { cap: 2.0 }, l2),
        (Loss::Logistic, Regularizer::ElasticNet { strength, l1_ratio: 0.5 }),
    ] {
        let plan = PlanDraft { rounds: 700, tolerance: Some(1e-9), loss, regularizer, ..draft(ADMM) };
        let found = settles_at_the_optimum(&World::small("ring", 4, plan));
        assert!(found < 1e-6, "{loss} with {regularizer}: {found:e}");
    }
}

#[test]
fn admm_without_noise_reaches_the_pooled_optimum_on_adult() {
    let encoded = adult();
    let sites = padmm_sim::split::partition(&encoded, Some(5), Split::Even, Holdout::None, 3).unwrap();
    let plan = PlanDraft {
        algorithm: ADMM,
        rounds: 330,
        penalty: Some(1e-3),
        tolerance: Some(1e-8),
        ..PlanDraft::default()
    };
    let shards = sites.shards.into_iter().map(Arc::new).collect();
    let world = World::new(graph("complete", 5), shards, encoded.features, plan);
    let found = settles_at_the_optimum(&world);
    assert!(found < 1e-6, "{found:e}");
}

// P-ADMM: Algorithm 1.

#[test]
fn algorithm_primal_step_satisfies_its_optimality_condition() {
    // (u-xxx): ∇f_i(x) + α_i + 2ηd_i x − η Σ_j (x̃_i + x̃_j) = 0 with the *released* x̃_i, noise and all.
    let world = private_world("edges:1-2,2-3,3-1,3-4", 4);
    let (mut agents, noise) = world.agents(|i| 40 + i as u64);
    let eta = world.calibration.penalty;
    let zero = vec![0.0; N_FEATURES];
    let mut released = vec![zero.clone(); 4];
    let mut own = vec![zero.clone(); 4];
    let mut duals = vec![zero; 4];
    world.run(&mut agents, |round, agents| {
        for i in 0..4 {
            let x = unnoised(&world, i, round, &agents[i], &noise[i]);
            let mut residual = naive_loss_gradient(&world.shards[i], Loss::Logistic, &x);
            for j in 0..N_FEATURES {
                residual[j] += 2.0 * 0.05 / 4.0 * x[j] + duals[i][j];
                for &k in world.graph.neighbours(i) {
                    residual[j] += eta * (2.0 * x[j] - released[i][j] - released[k][j]);
                }
            }
            let calibration = &world.calibration.agents[i];
            let step = 2f64.powi(calibration.noise.as_ref().unwrap().grid_exponent(round).unwrap());
            let allowed = calibration.tolerance + step * (0.25 + calibration.modulus) * 3.0;
            assert!(norm(&residual) <= allowed, "round {round}, agent {i}: {:e}", norm(&residual));
            // Algorithm 1 read literally, with the agent's own un-noised point, is another equation.
            let swapped: Vec<f64> = (0..N_FEATURES)
                .map(|j| residual[j] + eta * world.graph.degree(i) as f64 * (released[i][j] - own[i][j]))
                .collect();
            assert!(round == 1 || norm(&swapped) > 1e3 * allowed, "the test tells the two apart");
            own[i] = x;
        }
        released = agents.iter().map(|a| a.released().as_slice().to_vec()).collect();
        duals = agents.iter().map(|a| a.algorithm().dual().as_slice().to_vec()).collect();
    });
}

#[test]
fn algorithm_perturbation_has_the_variance_of_the_schedule() {
    let world = private_world("ring", 3);
    let (mut agents, noise) = world.agents(|i| 40 + i as u64);
    world.run(&mut agents, |_, _| {});
    for (i, noise) in noise.iter().enumerate() {
        let schedule = world.calibration.agents[i].noise.as_ref().unwrap().as_gaussian().unwrap();
        let drawn = noise.lock().unwrap();
        assert_eq!(drawn.len(), 6, "one draw a round, and none for the averaging");
        for (k, (scale, values)) in drawn.iter().enumerate() {
            let round = k as u32 + 1;
            // σ² falls by R = 0.995 a round, and the integers' scale is σ in units of the grid.
            let noise_std = schedule.noise_std(round).unwrap();
            let expected = schedule.noise_std(1).unwrap() * 0.995f64.powf(k as f64 / 2.0);
            assert!((noise_std / expected - 1.0).abs() < 1e-12);
            assert_eq!(scale * 2f64.powi(schedule.grid_exponent(round).unwrap()), noise_std);
            assert_eq!(values.len(), N_FEATURES);
        }
    }
}

#[test]
fn algorithm_dual_step_adds_the_disagreement() {
    // (u-aaa): α_i ← α_i + η Σ_j (x̃_i − x̃_j), from α_i = 0.
    let world = private_world("edges:1-2,2-3,3-1,3-4", 4);
    let (mut agents, _) = world.agents(|i| 40 + i as u64);
    let mut duals = vec![[0.0; N_FEATURES]; 4];
    world.run(&mut agents, |_, agents| {
        for (i, dual) in duals.iter_mut().enumerate() {
            for &j in world.graph.neighbours(i) {
                let (own, other) = (agents[i].released().as_slice(), agents[j].released().as_slice());
                for c in 0..N_FEATURES {
                    dual[c] += world.calibration.penalty * (own[c] - other[c]);
                }
            }
            let found = agents[i].algorithm().dual().as_slice();
            assert!(distance(found, dual) <= 1e-12 * (1.0 + norm(dual)));
        }
    });
    assert!(duals.iter().all(|d| norm(d) > 0.0));
}

#[test]
fn algorithm_duals_of_an_edge_are_opposite_and_all_duals_sum_to_zero() {
    let world = private_world("small-world:4,0.4", 9);
    let (mut agents, _) = world.agents(|i| 40 + i as u64);
    world.run(&mut agents, |round, agents| {
        let mut sum = [0.0; N_FEATURES];
        let mut size = 0.0;
        for (i, agent) in agents.iter().enumerate() {
            let mut total = [0.0; N_FEATURES];
            for (slot, &j) in world.graph.neighbours(i).iter().enumerate() {
                let own = agent.algorithm().edge_duals()[slot].as_slice();
                let back = world.graph.neighbours(j).binary_search(&i).unwrap();
                let other = agents[j].algorithm().edge_duals()[back].as_slice();
                for c in 0..N_FEATURES {
                    assert_eq!(own[c].to_bits(), (-other[c]).to_bits(), "round {round}, edge {i}–{j}");
                    total[c] += own[c];
                }
            }
            let dual = agent.algorithm().dual().as_slice();
            assert!(distance(dual, &total) <= 1e-14 * (1.0 + norm(dual)), "α_i = Σ_j λ_ij");
            sum.iter_mut().zip(dual).for_each(|(s, d)| *s += d);
            size += norm(dual);
        }
        assert!(size > 0.0 && norm(&sum) <= 1e-14 * size, "round {round}: {:e}", norm(&sum));
    });
}

#[test]
fn algorithm_starts_from_zero_known_to_all() {
    let world = private_world("ring", 3);
    let (agents, _) = world.agents(|i| i as u64);
    for agent in &agents {
        assert_eq!(agent.released().as_slice(), [0.0; N_FEATURES]);
        assert_eq!(agent.algorithm().dual().as_slice(), [0.0; N_FEATURES]);
    }
}

#[test]
fn algorithm_outputs_the_last_release_and_the_smoothed_model() {
    let world = private_world("path", 4);
    let (mut agents, _) = world.agents(|i| 40 + i as u64);
    let mut averages = vec![[0.0; N_FEATURES]; 4];
    let mut last = vec![];
    world.run(&mut agents, |round, agents| {
        for (average, agent) in averages.iter_mut().zip(agents) {
            let weight = f64::from(round * round) / (1 + 4 + 9 + 16 + 25 + 36) as f64;
            average.iter_mut().zip(agent.released().as_slice()).for_each(|(a, x)| *a += weight * x);
        }
        last = agents.iter().map(|a| a.released().clone()).collect();
    });
    let mean: Vec<f64> = (0..N_FEATURES).map(|c| averages.iter().map(|a| a[c]).sum::<f64>() / 4.0).collect();
    let scattered = averages.iter().map(|a| distance(a, &mean)).fold(0.0, f64::max);
    assert_eq!(world.calibration.averaging_turns, 3, "from one end of the path to the other");
    for (i, agent) in agents.iter().enumerate() {
        let outcome = agent.outcome().unwrap();
        assert_eq!(outcome.last, last[i], "the paper's output is the last release");
        assert!(distance(outcome.smoothed.as_slice(), &mean) <= 1e-12 * (1.0 + norm(&mean)));
        assert_eq!(outcome.smoothed, agents[0].outcome().unwrap().smoothed, "all sites keep the same bits");
    }
    assert!(scattered > 0.0);
}

#[test]
fn algorithm_is_equivariant_under_renaming_agents() {
    let edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)];
    let renamed = [3, 0, 4, 1, 2];
    let spec = |name: &dyn Fn(usize) -> usize| {
        let text: Vec<String> =
            edges.iter().map(|&(i, j)| format!("{}-{}", name(i) + 1, name(j) + 1)).collect();
        graph(&format!("edges:{}", text.join(",")), 5)
    };
    let original = shards(5, 5);
    let mut permuted = original.clone();
    (0..5).for_each(|i| permuted[renamed[i]] = Arc::clone(&original[i]));
    let plan = PlanDraft { tolerance: Some(1e-9), ..draft(P_ADMM) };
    let one = World::new(spec(&|i| i), original, space(), plan.clone());
    let two = World::new(spec(&|i| renamed[i]), permuted, space(), plan);
    let trace = |world: &World, seed: &dyn Fn(usize) -> u64| {
        let (mut agents, _) = world.agents(seed);
        let mut trace: Vec<Vec<Vec<f64>>> = vec![];
        world.run(&mut agents, |_, agents| {
            trace.push(agents.iter().map(|a| a.released().as_slice().to_vec()).collect());
        });
        trace.push(agents.iter().map(|a| a.outcome().unwrap().smoothed.as_slice().to_vec()).collect());
        trace
    };
    // The noise goes with the agent, whatever its place.
    let before = |place: usize| renamed.iter().position(|&r| r == place).unwrap() as u64;
    let (first, second) = (trace(&one, &|i| i as u64), trace(&two, &before));
    for (k, (a, b)) in first.iter().zip(&second).enumerate() {
        for i in 0..5 {
            let apart = distance(&a[i], &b[renamed[i]]);
            assert!(apart <= 1e-7 * norm(&a[i]), "round {}, agent {i}: {apart:e}", k + 1);
        }
    }
}

#[test]
fn algorithm_uses_nothing_private_from_the_round_before() {
    // A shadow of each agent sees the same releases, forgets its solver every round and starts it from nonsense. What
    // it computes agrees with what the agent computed to the certificates' radius: nothing else survives the round.
    let world = private_world("ring", 4);
    let (mut agents, noise) = world.agents(|i| 40 + i as u64);
    let degree = |i: usize| world.graph.degree(i);
    let eta = world.calibration.penalty;
    let mut shadows: Vec<_> = (0..4).map(|i| ConsensusAdmm::new(eta, N_FEATURES, degree(i))).collect();
    let mut random = Random::new(77);
    world.run(&mut agents, |round, agents| {
        for (i, shadow) in shadows.iter_mut().enumerate() {
            let problem = world.problem(i);
            let calibration = &world.calibration.agents[i];
            let mut nonsense: Vec<f64> = random.normals(N_FEATURES).iter().map(|v| 30.0 * v).collect();
            let local = Local {
                problem: &problem,
                solver: &mut Solver::new(),
                warm_start: &mut nonsense,
                tolerance: calibration.tolerance,
            };
            let Computed::Point(certified) =
                shadow.compute(round, &Drawn::visible(round, vec![]), local).unwrap()
            else {
                panic!("these agents solve")
            };
            let x = unnoised(&world, i, round, &agents[i], &noise[i]);
            let step = 2f64.powi(calibration.noise.as_ref().unwrap().grid_exponent(round).unwrap());
            let allowed =
                2.0 * calibration.tolerance / calibration.modulus + step * (N_FEATURES as f64).sqrt();
            let apart = distance(&certified.point, &x);
            assert!(apart <= allowed, "round {round}, agent {i}: {apart:e} against {allowed:e}");
        }
        for (i, shadow) in shadows.iter_mut().enumerate() {
            let others: Vec<Arc<PublicVector>> =
                world.graph.neighbours(i).iter().map(|&j| Arc::new(agents[j].released().clone())).collect();
            shadow.finish_turn(round, Some(agents[i].released()), &others);
        }
    });
}

#[test]
fn an_edge_is_dropped_exactly() {
    // Five agents on a ring with a chord; the chord goes after three rounds, at both ends.
    let plan = PlanDraft { rounds: 700, tolerance: Some(1e-9), ..draft(ADMM) };
    let world = World::small("edges:1-2,2-3,3-4,4-5,5-1,1-3", 5, plan);
    let optimum = world.optimum();
    let (mut agents, _) = world.agents(|i| i as u64);
    for _ in 0..3 {
        world.exchange(&mut agents, |_, _| true);
    }
    let before: Vec<PublicVector> = agents[0].algorithm().edge_duals().to_vec();
    assert_eq!(world.graph.neighbours(0), [1, 2, 4]);
    agents[0].drop_neighbour(SiteIndex(2));
    agents[2].drop_neighbour(SiteIndex(0));
    let after = agents[0].algorithm();
    assert_eq!(after.edge_duals(), [before[0].clone(), before[2].clone()]);
    let mut remaining = PublicVector::zeros(N_FEATURES);
    remaining.add_scaled(1.0, &before[0]);
    remaining.add_scaled(1.0, &before[2]);
    assert_eq!(after.dual(), &remaining, "α_1 is the sum of the duals that are left");
    let mut sum = PublicVector::zeros(N_FEATURES);
    agents.iter().for_each(|a| sum.add_scaled(1.0, a.algorithm().dual()));
    assert!(norm(sum.as_slice()) < 1e-14, "Σ_i α_i = 0 still");
    assert!(norm(before[1].as_slice()) > 1e-6, "what was dropped was not zero");
    let left = |i: usize, j: usize| (i.min(j), i.max(j)) != (0, 2);
    while agents.iter().any(|a| a.outcome().is_none()) {
        world.exchange(&mut agents, left);
    }
    for (i, agent) in agents.iter().enumerate() {
        let found = distance(agent.released().as_slice(), &optimum);
        assert!(found < 1e-6, "agent {i}: {found:e} from the optimum of all five");
    }
}

// Privacy: Theorem 2, Theorem 3.

#[test]
fn theorem_2_every_round_is_charged_its_rho() {
    let world = private_world("ring", 3);
    let (mut agents, _) = world.agents(|i| i as u64);
    world.run(&mut agents, |round, agents| {
        assert!(agents.iter().all(|a| a.debits().len() == round as usize), "charged round by round");
    });
    for (i, agent) in agents.iter().enumerate() {
        let schedule = world.calibration.agents[i].noise.as_ref().unwrap().as_gaussian().unwrap();
        let curve = dynamic_curve(ZcdpRho::new(schedule.rho(1)).unwrap(), &world.plan.decay());
        for (k, debit) in agent.debits().iter().enumerate() {
            let Event::Gaussian { sensitivity, noise_std } = debit.event else { panic!("Gaussian noise") };
            assert_eq!((debit.round as usize, debit.site.as_str()), (k + 1, &*format!("site-{i}")));
            assert!(
                sensitivity >= 2.0 / world.shards[i].n_records() as f64 / world.calibration.agents[i].modulus
            );
            let expected = sensitivity * sensitivity / (2.0 * noise_std * noise_std);
            let rho = debit.event.rho().unwrap().value();
            assert!(rho >= expected * (1.0 - 1e-15) && rho <= expected * (1.0 + 1e-14));
            assert!((rho / curve[k] - 1.0).abs() < 1e-12, "the dynamic curve: ρ_k = ρ_1 R^(1−k)");
        }
    }
}

#[test]
fn theorem_3_charges_add_up_and_replaying_them_gives_the_reported_epsilon() {
    for (decay, accountant) in [(0.995, AccountantKind::Exact), (0.9, AccountantKind::Paper)] {
        let plan = PlanDraft { rounds: 20, decay, accountant, epsilon: 3.0, ..draft(P_ADMM) };
        let world = World::small("ring", 3, plan);
        let (mut agents, _) = world.agents(|i| i as u64);
        world.run(&mut agents, |_, _| {});
        for agent in &agents {
            let report = agent.privacy_report().unwrap();
            let mut exact = GdpAccountant::new();
            let mut paper = ZcdpAccountant::new(ZcdpConversion::Paper);
            for debit in agent.debits() {
                exact.compose(&debit.event).unwrap();
                paper.compose(&debit.event).unwrap();
            }
            let first = agent.debits()[0].event.rho().unwrap().value();
            let (k, r) = (20, decay);
            let closed = first * (1.0 - r.powi(k)) / (r.powi(k - 1) - r.powi(k));
            assert!((paper.rho().value() / closed - 1.0).abs() < 1e-10, "the sum is the closed form");
            let delta = Delta::new(report.delta).unwrap();
            let less = Delta::new(outward::sub_down(report.delta, report.delta_slack)).unwrap();
            assert_eq!(exact.epsilon(less).value(), report.epsilon_exact);
            assert_eq!(paper.epsilon(delta).value(), report.epsilon_paper);
            assert_eq!(paper.rho().value(), report.rho_total);
            let spent =
                if accountant == AccountantKind::Exact { report.epsilon_exact } else { report.epsilon_paper };
            assert!(spent <= 3.0 && spent > 3.0 * (1.0 - 1e-6), "the budget is met and used: {spent}");
            assert!(report.delta_slack > 0.0 && report.delta_slack <= 0.01 * report.delta);
        }
    }
}

#[test]
fn theorem_3_the_record_of_a_simulation_replays() {
    let plan = PlanDraft { rounds: 4, epsilon: 1.0, ..PlanDraft::default() };
    let (record, _) = simulate(setting(plan), adult(), &quiet).unwrap();
    let json = serde_json::to_string(&record).unwrap();
    let record: Record = serde_json::from_str(&json).unwrap();
    let privacy = record.privacy.as_ref().unwrap();
    assert_eq!(record.charges.len(), 5);
    let worst = |epsilon: &dyn Fn(ZcdpRho) -> f64| {
        let total = |rho: &[f64]| rho.iter().fold(0.0, |sum, &r| outward::add_up(sum, r));
        let of = |c: &padmm_sim::record::Charges| epsilon(ZcdpRho::new(total(&c.rho_per_round)).unwrap());
        record.charges.iter().map(of).fold(0.0, f64::max)
    };
    let delta = Delta::new(privacy.delta).unwrap();
    let less = Delta::new(outward::sub_down(privacy.delta, privacy.delta_slack)).unwrap();
    assert_eq!(worst(&|rho| gdp_epsilon(rho_to_mu(rho), less).value()), privacy.epsilon_exact);
    assert_eq!(worst(&|rho| paper_epsilon(rho, delta).value()), privacy.epsilon_paper);
    assert_eq!(record.runs[0].trace[3].epsilon_exact, Some(privacy.epsilon_exact), "the trace ends there");
    assert!(privacy.epsilon_exact <= 1.0);
}

// What a site keeps, and what a run is worth.

#[test]
fn smoothing_weights_are_squares_and_the_mean_is_that_of_the_sites() {
    assert_eq!([1, 2, 50].map(step::smoothing_weight), [1.0, 4.0, 2500.0]);
    let world = private_world("star", 4);
    let (mut agents, _) = world.agents(|i| i as u64);
    world.exchange(&mut agents, |_, _| true);
    let models: Vec<&PublicVector> = agents.iter().map(Agent::released).collect();
    let mean = step::mean(&models);
    for c in 0..N_FEATURES {
        let expected = models.iter().map(|m| m.as_slice()[c]).sum::<f64>() / 4.0;
        assert!((mean.as_slice()[c] - expected).abs() <= 1e-14 * (1.0 + expected.abs()));
    }
}

#[test]
fn at_epsilon_one_the_model_that_sites_keep_is_within_three_percent() {
    let plan = PlanDraft { epsilon: 1.0, ..PlanDraft::default() };
    let (record, model) = simulate(SimulationPlan { runs: 3, ..setting(plan) }, adult(), &quiet).unwrap();
    let (loss, best) = (record.summary.model_loss.mean, record.optimum.as_ref().unwrap().loss);
    assert!((best - 0.369708).abs() < 2e-6);
    assert!(loss / best < 1.03, "{loss} against {best}");
    assert!(loss > best - 0.02, "and not better than a model can be: {loss}");
    let privacy = record.privacy.unwrap();
    assert!(privacy.epsilon_exact <= 1.0 && privacy.epsilon_paper > 1.0);
    assert_eq!(model.values.len(), 104);
}
