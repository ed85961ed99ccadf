//! Whether an agent stops must not depend on its records: hostile neighbours against pairs of agents whose records differ in one.
//!
//! A neighbour knows everything but one record, can compute what the site does with either of two records in its place, and may
//! send whatever the plan's grid holds. It must not find a message after which one of the two stops and the other does not.

use crate::common;

use padmm_core::algorithm::{DP_ADMM, LINEARIZED, P_ADMM, TOKEN};
use std::sync::Arc;

use common::{Random, World, draft, graph, random_record, records, space};
use padmm_core::agent::{Agent, AgentError, Phase};
use padmm_core::calibration::{Calibration, CalibrationError, NetworkFacts};
use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::loss::Loss;
use padmm_core::message::{Incoming, SiteIndex, Turn};
use padmm_core::plan::PlanDraft;
use padmm_core::regularizer::Regularizer;
use padmm_privacy::{MemoryLedger, Payload, Schedule, Stopping};

/// What a neighbour can see of one turn.
#[derive(Debug, PartialEq)]
enum Seen {
    Released,
    NotBegun,
    FailedAfterTheCharge(String),
    NotUsed,
}

/// One record of the first shard is replaced.
fn neighbouring(random: &mut Random, data: &Dataset) -> Dataset {
    let mut other = data.empty_like();
    let replaced = random.below(data.n_records());
    for (r, row) in data.rows().enumerate() {
        if r == replaced {
            let (numeric, hot, label) = random_record(random);
            // Often the worst: the same record with the other label.
            if random.below(2) == 0 {
                other.push(row.numeric, row.hot, -row.label);
            } else {
                other.push(&numeric, &hot, label);
            }
        } else {
            other.push_row(row);
        }
    }
    other
}

fn hostile(turn: u32, exponent: i32, direction: &[f64], size: f64) -> Incoming {
    let length = common::norm(direction).max(f64::MIN_POSITIVE);
    let on_grid = |d: &f64| {
        let integer = (size * d / length / 2f64.powi(exponent)).round();
        integer.clamp(-((1i64 << 53) - 1) as f64, ((1i64 << 53) - 1) as f64) as i64
    };
    let payload = Payload::Grid { exponent, values: direction.iter().map(on_grid).collect() };
    Incoming::decode(SiteIndex(1), Turn::model(turn), &payload).unwrap()
}

/// Lets the agent speak and hands it the neighbour's message.
fn turn(agent: &mut Agent, message: &Incoming) -> (Seen, usize) {
    let seen = match agent.poll_message() {
        Ok(_) => match agent.handle_message(message) {
            Ok(()) => Seen::Released,
            Err(AgentError::TooLong { .. }) => Seen::NotUsed,
            Err(error) => panic!("a message on the planned grid: {error}"),
        },
        Err(AgentError::TooLarge { .. }) => Seen::NotBegun,
        Err(error) => Seen::FailedAfterTheCharge(error.to_string()),
    };
    (seen, agent.debits().len())
}

fn pair(seed: u64, plan: PlanDraft, n: usize) -> [World; 2] {
    let mut random = Random::new(seed);
    let data = records(&mut random, n);
    let other = neighbouring(&mut random, &data);
    let peer = Arc::new(records(&mut random, n));
    [data, other].map(|own| {
        World::new(graph("complete", 2), vec![Arc::new(own), Arc::clone(&peer)], space(), plan.clone())
    })
}

/// Sends `rounds` messages of sizes that `size` draws, and says how many were used.
fn attack(seed: u64, worlds: &[World; 2], size: &mut dyn FnMut(&mut Random) -> f64) -> usize {
    let mut random = Random::new(seed ^ 0x5eed);
    // The noise is the same on both sides, as it would be for an attacker that computes both.
    let [mut one, mut two] = [0, 1].map(|k: usize| worlds[k].agent(0, seed, Box::new(MemoryLedger::new())).0);
    let schedule = worlds[0].calibration.agents[1].noise.as_ref().unwrap().as_gaussian().unwrap();
    let rounds = worlds[0].plan.settings().rounds;
    let mut used = 0;
    let mut direction = random.normals(common::N_FEATURES);
    for round in 1..=rounds {
        if random.below(3) > 0 {
            direction = random.normals(common::N_FEATURES);
        }
        let message = hostile(round, schedule.grid_exponent(round).unwrap(), &direction, size(&mut random));
        let (seen, other) = (turn(&mut one, &message), turn(&mut two, &message));
        assert_eq!(seen, other, "seed {seed}, round {round}: stop and charge tell the records apart");
        assert!(!matches!(seen.0, Seen::FailedAfterTheCharge(_)), "seed {seed}, round {round}: {seen:?}");
        match seen.0 {
            Seen::Released => used += 1,
            _ => break,
        }
    }
    used
}

fn plan(loss: Loss, regularizer: Regularizer) -> PlanDraft {
    PlanDraft { loss, regularizer, rounds: 8, penalty: Some(0.01), ..draft(P_ADMM) }
}

/// The attack of an independent audit: a model of a size at which rounding is about the tolerance. Before the public
/// judgement, one of two neighbouring data sets stopped and the other released, for sizes around 10⁶ to 10⁷.
#[test]
fn no_size_at_which_rounding_meets_the_tolerance_tells_two_records_apart() {
    for seed in 0..60 {
        let worlds = pair(seed, plan(Loss::Logistic, Regularizer::L2 { strength: 0.02 }), 40);
        for k in 0..24 {
            let exact = 10f64.powf(4.0 + f64::from(k) / 4.0);
            attack(seed, &worlds, &mut |_| exact);
        }
    }
}

/// A hundred thousand messages and more, of every size that a grid holds and most often of those at which the judgement turns.
#[test]
fn a_random_search_over_hostile_messages_finds_no_pair_that_stops_differently() {
    let kinds = [
        (Loss::Logistic, Regularizer::L2 { strength: 0.02 }),
        (Loss::Logistic, Regularizer::None),
        (Loss::Logistic, Regularizer::L1 { strength: 0.02 }),
        (Loss::HuberizedHinge { width: 0.5 }, Regularizer::ElasticNet { strength: 0.02, l1_ratio: 0.5 }),
        (Loss::HuberizedHinge { width: 0.05 }, Regularizer::None),
        (Loss::Quantile { level: 0.9, width: 0.05 }, Regularizer::L2 { strength: 0.02 }),
        (Loss::Poisson { cap: 12.0 }, Regularizer::L2 { strength: 0.02 }),
        (Loss::Logistic, Regularizer::GroupLasso { strength: 0.02 }),
        (Loss::Hinge, Regularizer::None),
        (Loss::Hinge, Regularizer::L2 { strength: 0.02 }),
    ];
    let (mut used, mut sent, mut seed) = (0, 0, 0);
    while sent < 100_000 {
        let (loss, regularizer) = kinds[seed as usize % kinds.len()];
        let worlds = pair(seed, plan(loss, regularizer), 5 + (seed as usize * 7) % 40);
        let limit = worlds[0].calibration.agents[0].solvability.unwrap().message_limit;
        for k in 0..12u64 {
            let near = k % 3 != 0;
            let mut size = |random: &mut Random| {
                let around = if near { limit } else { 1e4 };
                let spread = if near { 2.0 } else { 9.0 };
                around * 10f64.powf(spread * (random.unit() - 0.6))
            };
            let n = attack(1000 * seed + k, &worlds, &mut size);
            (used, sent) = (used + n, sent + n + 1);
        }
        seed += 1;
    }
    // The search is about rounds, not about messages that are thrown away.
    assert!(used > 50_000, "{used} of {sent} were used");
}

#[test]
fn the_algorithms_that_take_steps_and_tokens_stop_alike_too() {
    for algorithm in [LINEARIZED, DP_ADMM, TOKEN] {
        let graph_name = if algorithm == DP_ADMM { "star" } else { "complete" };
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let data = records(&mut random, 12);
            let other = neighbouring(&mut random, &data);
            let peer = Arc::new(records(&mut random, 12));
            let outcome = |own: Dataset| {
                let shards = vec![Arc::new(own), Arc::clone(&peer)];
                let draft = PlanDraft { loss: Loss::Logistic, ..draft(algorithm) };
                let world = World::new(graph(graph_name, 2), shards, space(), draft);
                let (mut agent, _) = world.agent(0, seed, Box::new(MemoryLedger::new()));
                let mut random = Random::new(!seed);
                let mut outcome = vec![];
                for _ in 0..40 {
                    let seen = match agent.poll_message() {
                        Ok(_) => "goes on",
                        Err(AgentError::TooLarge { .. }) => "stops",
                        Err(error) => panic!("{error}"),
                    };
                    outcome.push((seen, agent.debits().len()));
                    let Phase::Receiving(turn) = agent.phase() else { break };
                    let size = 10f64.powf(20.0 * random.unit() - 3.0);
                    let values = random.normals(common::N_FEATURES).iter().map(|v| v * size).collect();
                    let message = Incoming::decode(SiteIndex(1), turn, &Payload::Plain(values)).unwrap();
                    let used = agent.handle_message(&message).is_ok();
                    outcome.push((if used { "used" } else { "not used" }, agent.debits().len()));
                }
                outcome
            };
            assert_eq!(outcome(data), outcome(other), "{algorithm:?}, seed {seed}");
        }
    }
}

#[test]
fn a_refused_round_charges_nothing_and_says_that_it_was_public() {
    let worlds = pair(3, plan(Loss::Logistic, Regularizer::None), 20);
    let (mut agent, _) = worlds[0].agent(0, 3, Box::new(MemoryLedger::new()));
    let limit = worlds[0].calibration.agents[0].solvability.unwrap().message_limit;
    let exponent =
        |round| worlds[0].calibration.agents[1].noise.as_ref().unwrap().grid_exponent(round).unwrap();
    let mut round = 1;
    let error = loop {
        match agent.poll_message() {
            Ok(_) => {}
            Err(error) => break error,
        }
        // As long as is allowed, always in one direction: the dual adds up until a round is refused.
        let direction = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        agent.handle_message(&hostile(round, exponent(round), &direction, 0.99 * limit)).unwrap();
        round += 1;
        assert!(round <= 8, "no round was refused");
    };
    assert!(matches!(error, AgentError::TooLarge { .. }), "{error}");
    assert!(error.to_string().contains("any other records would have stopped it too"));
    assert_eq!(agent.debits().len(), round as usize - 1);
    // The agent stays where it is, and says the same again.
    assert_eq!(agent.poll_message().unwrap_err(), error);
    let too_long = hostile(round, exponent(round), &[1.0; 7], 2.1 * limit);
    assert!(matches!(agent.handle_message(&too_long), Err(AgentError::TooLong { .. })));
}

fn derive(plan: PlanDraft, n_records: &[usize]) -> Result<Calibration, CalibrationError> {
    let space = FeatureSpace::numeric(20);
    let graph = graph("complete", n_records.len());
    let network = NetworkFacts { graph: &graph, n_records, space: &space, norm_bound: 1.0 };
    let calibration = Calibration::derive(&plan.check().unwrap(), &network)?;
    calibration.check_solvable()?;
    Ok(calibration)
}

/// An organiser that asks for more than floating point can certify would make stopping hang on records.
#[test]
fn a_tolerance_at_the_edge_of_rounding_is_refused_when_the_plan_is_made() {
    let at = |tolerance| PlanDraft { tolerance: Some(tolerance), ..draft(P_ADMM) };
    let error = derive(at(1e-14), &[5000, 700]).unwrap_err();
    assert!(matches!(error, CalibrationError::Marginal { site: 1, n_records: 5000, .. }), "{error}");
    assert!(error.to_string().contains("`tolerance`"), "{error}");
    let fine = derive(at(1e-6), &[5000, 700]).unwrap();
    assert!(fine.agents.iter().all(|a| a.solvability.unwrap().planned.ratio <= 0.25));
}

/// The same with a corner so sharp that no tolerance helps; a merely sharp one is certified, but not by the solver that cannot fail.
#[test]
fn a_loss_with_a_sharp_corner_is_refused_or_says_that_its_solver_may_stall() {
    let with = |width| PlanDraft {
        loss: Loss::HuberizedHinge { width },
        penalty: None,
        epsilon: 1.0,
        ..draft(P_ADMM)
    };
    assert!(matches!(derive(with(1e-13), &[9000; 5]), Err(CalibrationError::Marginal { .. })));
    let stopping = |width| derive(with(width), &[9000; 5]).unwrap().agents[0].solvability.unwrap().stopping;
    assert_eq!(stopping(1e-4), Stopping::SolverMayStall);
    assert_eq!(stopping(0.5), Stopping::Public);
}

/// Defaults give way where rounding needs it and only there, and never promise less than they keep.
#[test]
fn default_tolerances_leave_room_for_rounding() {
    for loss in [Loss::Logistic, Loss::HuberizedHinge { width: 0.5 }, Loss::Hinge] {
        for n in [20, 300, 9_000, 200_000, 10_000_000] {
            // The hinge's certificate goes with the root of what rounding leaves: not for large sites.
            if loss == Loss::Hinge && n > 9_000 {
                continue;
            }
            for epsilon in [0.1, 1.0, 10.0] {
                let plan = PlanDraft { loss, penalty: None, epsilon, rounds: 50, ..draft(P_ADMM) };
                let calibration = derive(plan, &[n, n / 2, 20]).unwrap();
                for agent in &calibration.agents {
                    let solvability = agent.solvability.unwrap();
                    assert!(solvability.planned.ratio <= 0.125, "{loss}, {n} records: {solvability:?}");
                    let is_public = solvability.stopping == Stopping::Public;
                    assert_eq!(is_public, loss != Loss::Hinge, "{loss}, {n} records: {solvability:?}");
                    let usual = agent.tolerance * agent.n_records as f64 / 2.0;
                    let is_usual = |n: usize| n <= 9_000 && loss != Loss::Hinge && epsilon >= 1.0;
                    assert!(!is_usual(agent.n_records) || usual <= 1.000001e-6, "{loss}, {n}: {usual:e}");
                }
            }
        }
    }
}

/// A result that its grid cannot hold is refused before the charge, not found out after it.
#[test]
fn what_does_not_fit_the_grid_is_refused_before_the_charge() {
    // A large epsilon has a grid of forty bits below its noise, which then ends early.
    let plan = PlanDraft { epsilon: 29.0, delta: 1e-8, ..plan(Loss::Logistic, Regularizer::None) };
    let worlds = pair(9, plan, 10);
    let [own, theirs] =
        [0, 1].map(|i: usize| worlds[0].calibration.agents[i].noise.as_ref().unwrap().as_gaussian().unwrap());
    let holds = 2f64.powi(52 + own.grid_exponent(2).unwrap());
    let limit = worlds[0].calibration.agents[0].solvability.unwrap().message_limit;
    assert!(limit > 8.0 * holds, "the grid must be what ends first: {limit:e}, {holds:e}");
    let (mut agent, _) = worlds[0].agent(0, 9, Box::new(MemoryLedger::new()));
    agent.poll_message().unwrap();
    agent.handle_message(&hostile(1, theirs.grid_exponent(1).unwrap(), &[1.0; 7], 8.0 * holds)).unwrap();
    let error = agent.poll_message().unwrap_err();
    assert!(matches!(error, AgentError::TooLarge { round: 2, .. }), "{error}");
    assert_eq!(agent.debits().len(), 1);
}
