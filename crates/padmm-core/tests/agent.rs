//! The agent as a state machine: what it accepts, what it refuses, and that the order of delivery changes nothing.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use crate::common;

use padmm_baselines::PVP;
use padmm_core::algorithm::P_ADMM;
use std::sync::Arc;

use common::{N_FEATURES, Random, World, draft, graph, records, shards, space};
use padmm_core::agent::{Agent, AgentError, Outcome};
use padmm_core::calibration::{Calibration, CalibrationError, NetworkFacts};
use padmm_core::message::{Content, Incoming, Outgoing, SiteIndex, Turn};
use padmm_core::plan::PlanDraft;
use padmm_core::regularizer::Regularizer;
use padmm_privacy::{
    Debit, Gate, GridGaussian, Ledger, MemoryLedger, Payload, PrivacyError, PublicVector, RequiredCertificate,
};
use proptest::prelude::*;

fn world(text: &str, n_agents: usize) -> World {
    World::small(text, n_agents, draft(P_ADMM))
}

fn message(from: usize, turn: Turn, length: usize) -> Incoming {
    Incoming { from: SiteIndex(from), turn, vector: Arc::new(PublicVector::zeros(length)), state: None }
}

fn speak(agent: &mut Agent) -> Incoming {
    Incoming::from(&agent.poll_message().unwrap().expect("the agent owes a message"))
}

fn is_silent(agent: &mut Agent) -> bool {
    agent.poll_message().unwrap().is_none()
}

fn bits(outcome: &Outcome) -> Vec<u64> {
    outcome.last.as_slice().iter().chain(outcome.smoothed.as_slice()).map(|v| v.to_bits()).collect()
}

/// The run in lockstep, which every other order of delivery must repeat.
fn in_lockstep(world: &World) -> Vec<Vec<u64>> {
    let (mut agents, _) = world.agents(|i| i as u64);
    world.run(&mut agents, |_, _| {});
    agents.iter().map(|a| bits(&a.outcome().unwrap())).collect()
}

#[test]
fn an_agent_speaks_once_a_round_and_then_waits() {
    let world = world("path", 2);
    let (mut agents, _) = world.agents(|i| i as u64);
    let outgoing: Outgoing = agents[0].poll_message().unwrap().unwrap();
    assert_eq!((outgoing.from, outgoing.turn), (SiteIndex(0), Turn::model(1)));
    let Content::Model(release) = &outgoing.content else { panic!("a private round sends a release") };
    assert_eq!((release.site(), release.round()), ("site-0", 1));
    assert!(matches!(release.value(), Payload::Grid { .. }), "integers on the grid leave, nothing else");
    assert_eq!(release.value().to_vec(), agents[0].released().as_slice());
    assert!(is_silent(&mut agents[0]) && is_silent(&mut agents[0]));
    assert_eq!(agents[0].debits().len(), 1);
    assert!(agents[0].outcome().is_none());
}

#[test]
fn strangers_are_refused_and_change_nothing() {
    let world = world("path", 3);
    let (mut agents, _) = world.agents(|i| i as u64);
    for from in [2, 0, 17, usize::MAX] {
        let refused = agents[0].handle_message(&message(from, Turn::model(1), N_FEATURES));
        assert_eq!(refused, Err(AgentError::NotANeighbour { site: SiteIndex(0), from: SiteIndex(from) }));
    }
    agents[0].poll_message().unwrap();
    assert!(is_silent(&mut agents[0]), "a stranger's message does not finish a round");
}

#[test]
fn other_lengths_are_refused_and_change_nothing() {
    let world = world("path", 2);
    let (mut agents, _) = world.agents(|i| i as u64);
    agents[0].poll_message().unwrap();
    for found in [0, N_FEATURES - 1, N_FEATURES + 1] {
        let refused = agents[0].handle_message(&message(1, Turn::model(1), found));
        assert_eq!(refused, Err(AgentError::WrongLength { from: SiteIndex(1), found, expected: N_FEATURES }));
    }
    assert!(is_silent(&mut agents[0]));
    let genuine = speak(&mut agents[1]);
    agents[0].handle_message(&genuine).unwrap();
    assert!(!is_silent(&mut agents[0]), "the genuine message still counts");
}

#[test]
fn messages_that_cannot_be_on_their_way_yet_are_refused() {
    let world = world("path", 2);
    let (mut agents, _) = world.agents(|i| i as u64);
    let too_early = [Turn::model(3), Turn::model(u32::MAX), Turn::average(2)];
    for spoken in [false, true] {
        for turn in too_early {
            let refused = agents[0].handle_message(&message(1, turn, N_FEATURES));
            let (site, from, current) = (SiteIndex(0), SiteIndex(1), Turn::model(1));
            assert_eq!(refused, Err(AgentError::WrongTurn { site, from, turn, current }));
        }
        if !spoken {
            agents[0].poll_message().unwrap();
        }
    }
    assert!(is_silent(&mut agents[0]));
}

#[test]
fn the_first_message_of_a_round_counts_and_its_copies_do_not() {
    let world = world("path", 2);
    let (mut agents, _) = world.agents(|i| i as u64);
    let first = speak(&mut agents[1]);
    agents[0].handle_message(&first).unwrap();
    // The same again, and one that contradicts it: whoever is in the middle cannot replace what was accepted.
    agents[0].handle_message(&first).unwrap();
    agents[0].handle_message(&message(1, Turn::model(1), N_FEATURES)).unwrap();
    agents[0].poll_message().unwrap();
    let eta = world.calibration.penalty;
    let own = agents[0].released().as_slice();
    let expected: Vec<f64> = own.iter().zip(first.vector.as_slice()).map(|(a, b)| eta * (a - b)).collect();
    assert_eq!(agents[0].algorithm().dual().as_slice(), expected);
    // Late copies of a round that is over are ignored.
    agents[0].handle_message(&first).unwrap();
    assert_eq!(agents[0].algorithm().dual().as_slice(), expected);
    assert!(!is_silent(&mut agents[0]), "round 2 is owed");
    assert!(is_silent(&mut agents[0]), "and the late copy did not finish it");
}

#[test]
fn a_neighbour_may_be_one_round_ahead() {
    let world = world("path", 2);
    let expected = in_lockstep(&world);
    let (mut agents, _) = world.agents(|i| i as u64);
    let mut held: Option<Incoming> = None;
    // Agent 1 is always told at once; agent 0 hears round k + 1 before round k.
    loop {
        if let Ok(Some(said)) = agents[0].poll_message() {
            agents[1].handle_message(&Incoming::from(&said)).unwrap();
        }
        match agents[1].poll_message().unwrap() {
            Some(said) => {
                let said = Incoming::from(&said);
                agents[0].handle_message(&said).unwrap();
                match held.take() {
                    Some(earlier) => agents[0].handle_message(&earlier).unwrap(),
                    None => held = Some(said),
                }
            }
            None if agents.iter().all(|a| a.outcome().is_some()) => break,
            None => {}
        }
    }
    let found: Vec<_> = agents.iter().map(|a| bits(&a.outcome().unwrap())).collect();
    assert_eq!(found, expected);

    // And literally: round 2 arrives while round 1 is still awaited.
    let (mut agents, _) = world.agents(|i| i as u64);
    let one = speak(&mut agents[1]);
    let said = speak(&mut agents[0]);
    agents[1].handle_message(&said).unwrap();
    let two = speak(&mut agents[1]);
    assert_eq!((one.turn, two.turn), (Turn::model(1), Turn::model(2)));
    agents[0].handle_message(&two).unwrap();
    assert!(is_silent(&mut agents[0]), "round 2 does not stand in for round 1");
    agents[0].handle_message(&one).unwrap();
    assert_eq!(speak(&mut agents[0]).turn, Turn::model(2));
    assert_eq!(speak(&mut agents[0]).turn, Turn::model(3), "round 2 was waiting already");
}

#[test]
fn an_agent_that_is_done_ignores_what_comes_late() {
    let world = world("path", 2);
    let (mut agents, _) = world.agents(|i| i as u64);
    world.run(&mut agents, |_, _| {});
    let before = bits(&agents[0].outcome().unwrap());
    let debits = agents[0].debits().len();
    for turn in [Turn::model(1), Turn::model(6), Turn::average(1), Turn::average(99)] {
        agents[0].handle_message(&message(1, turn, N_FEATURES)).unwrap();
    }
    assert!(is_silent(&mut agents[0]));
    assert_eq!(bits(&agents[0].outcome().unwrap()), before);
    assert_eq!(
        (debits, agents[0].debits().len()),
        (6, 6),
        "the averaging is free, and nothing is charged afterwards"
    );
}

#[test]
fn an_unreachable_tolerance_releases_nothing_and_stays_charged() {
    // For noise that is exact this is decided before the charge: see tests/stopping.rs.
    let strict = PlanDraft { tolerance: Some(1e-14), ..draft(PVP) };
    let world = World::small("path", 2, strict);
    let (mut agents, remembered) = world.agents(|i| i as u64);
    let error = agents[0].poll_message().unwrap_err();
    let AgentError::ToleranceNotReached { round: 1, residual, tolerance } = error else {
        panic!("{error}");
    };
    assert!(residual > tolerance && tolerance == world.calibration.agents[0].tolerance);
    assert_eq!(agents[0].released().as_slice(), [0.0; N_FEATURES], "nothing left the agent");
    assert_eq!(agents[0].debits().len(), 1, "the debit was made before the solve and is not taken back");
    let drawn = remembered[0].lock().unwrap().len();
    assert!(drawn > 0);
    // The round is not tried again under the same charge.
    let again = agents[0].poll_message().unwrap_err();
    assert_eq!(again, AgentError::Privacy(PrivacyError::RoundOutOfOrder { expected: 2, found: 1 }));
    assert_eq!((agents[0].debits().len(), remembered[0].lock().unwrap().len()), (1, drawn));
}

/// A ledger with room for one charge.
struct OneRound(MemoryLedger);

impl Ledger for OneRound {
    fn debit(&mut self, debit: &Debit) -> Result<(), PrivacyError> {
        if self.debits().is_empty() {
            return self.0.debit(debit);
        }
        Err(PrivacyError::LedgerFailed { reason: "no room".into() })
    }

    fn debits(&self) -> &[Debit] {
        self.0.debits()
    }
}

#[test]
fn a_ledger_that_is_full_stops_the_agent_before_anything_is_drawn() {
    let world = world("path", 2);
    let (mut agent, remembered) = world.agent(0, 0, Box::new(OneRound(MemoryLedger::new())));
    agent.poll_message().unwrap();
    agent.handle_message(&message(1, Turn::model(1), N_FEATURES)).unwrap();
    let before = agent.released().clone();
    let error = agent.poll_message().unwrap_err();
    assert!(matches!(error, AgentError::Privacy(PrivacyError::LedgerFailed { .. })), "{error}");
    assert_eq!((agent.debits().len(), remembered.lock().unwrap().len()), (1, 1));
    assert_eq!(agent.released(), &before);
}

#[test]
fn a_gate_that_demands_more_than_the_solver_gives_refuses() {
    // The mechanism may demand a better certificate than the sensitivity was derived with; the seal then fails.
    let world = world("path", 2);
    let calibration = &world.calibration.agents[0];
    let required = RequiredCertificate { modulus: calibration.modulus, tolerance: 0.0 };
    let mechanism =
        GridGaussian::new(calibration.noise.as_ref().unwrap().as_gaussian().unwrap().clone(), required)
            .unwrap();
    let (noise, _) = common::RememberedNoise::new(1);
    let ledger = Box::new(MemoryLedger::new());
    let mut gate = Gate::new("test".into(), "site".into(), Box::new(mechanism), Box::new(noise), ledger);
    let certified =
        padmm_privacy::Certified { point: vec![0.0; N_FEATURES], residual: calibration.tolerance };
    let refused = gate.release::<_, AgentError>(1, |_| Ok(certified)).unwrap_err();
    assert_eq!(refused, AgentError::Privacy(PrivacyError::ResidualTooLarge { tolerance: 0.0 }));
}

#[test]
fn one_site_alone_runs_if_its_problem_is_strongly_convex() {
    let world = world("ring", 1);
    let (mut agents, _) = world.agents(|i| i as u64);
    world.run(&mut agents, |_, _| {});
    assert!(agents[0].outcome().is_some());
    assert_eq!(agents[0].algorithm().dual().as_slice(), [0.0; N_FEATURES]);

    // Without a neighbour and without strong convexity there is no modulus, hence no sensitivity.
    let plan = PlanDraft { regularizer: Regularizer::None, ..draft(P_ADMM) }.check().unwrap();
    let (graph, space) = (graph("ring", 1), space());
    let network = NetworkFacts { graph: &graph, n_records: &[40], space: &space, norm_bound: 1.0 };
    let error = Calibration::derive(&plan, &network).unwrap_err();
    assert!(
        matches!(error, CalibrationError::Privacy(PrivacyError::OutOfRange { name: "modulus", .. })),
        "{error}"
    );
}

#[test]
fn dropping_the_last_awaited_neighbour_finishes_the_round() {
    let world = world("star", 3);
    let (mut agents, _) = world.agents(|i| i as u64);
    let from_two = speak(&mut agents[2]);
    agents[0].poll_message().unwrap();
    agents[0].handle_message(&from_two).unwrap();
    assert!(is_silent(&mut agents[0]), "site 1 is awaited");
    agents[0].drop_neighbour(SiteIndex(1));
    assert_eq!(agents[0].algorithm().edge_duals().len(), 1);
    assert_eq!(agents[0].algorithm().dual(), &agents[0].algorithm().edge_duals()[0]);
    assert_eq!(speak(&mut agents[0]).turn, Turn::model(2));
    // From now on it is a stranger; and dropping it twice, or somebody else, does nothing.
    let late = agents[0].handle_message(&message(1, Turn::model(1), N_FEATURES));
    assert_eq!(late, Err(AgentError::NotANeighbour { site: SiteIndex(0), from: SiteIndex(1) }));
    agents[0].drop_neighbour(SiteIndex(1));
    agents[0].drop_neighbour(SiteIndex(99));
    assert_eq!(agents[0].algorithm().edge_duals().len(), 1);
}

#[test]
fn a_message_that_waits_survives_the_loss_of_another_neighbour() {
    // Round 2 of site 2 is here early; site 1 leaves; the early message must not count for round 1.
    let world = world("star", 3);
    let (mut agents, _) = world.agents(|i| i as u64);
    let hub = speak(&mut agents[0]);
    let one = speak(&mut agents[2]);
    agents[2].handle_message(&hub).unwrap();
    let two = speak(&mut agents[2]);
    agents[0].handle_message(&two).unwrap();
    agents[0].drop_neighbour(SiteIndex(1));
    assert!(is_silent(&mut agents[0]));
    agents[0].handle_message(&one).unwrap();
    assert_eq!(speak(&mut agents[0]).turn, Turn::model(2));
    assert_eq!(speak(&mut agents[0]).turn, Turn::model(3));
}

#[test]
fn every_error_says_who_and_what() {
    let (site, from, current) = (SiteIndex(4), SiteIndex(7), Turn::model(3));
    let cases = [
        (AgentError::NotANeighbour { site, from }, "site 7"),
        (
            AgentError::WrongTurn { site, from, turn: Turn::model(9), current },
            "sent turn 9 while site 4 is in turn 3",
        ),
        (AgentError::WrongTurn { site, from, turn: Turn::average(2), current }, "averaging turn 2"),
        (AgentError::WrongLength { from, found: 5, expected: 6 }, "5 coefficients"),
        (
            AgentError::ToleranceNotReached { round: 2, residual: 1e-3, tolerance: 1e-6 },
            "nothing was released",
        ),
        (AgentError::Privacy(PrivacyError::NotFinite), "not finite"),
    ];
    for (error, needle) in cases {
        assert!(error.to_string().contains(needle), "{error}");
    }
}

/// Drives agents in an order drawn from `seed`: any agent that owes a message may speak, any message that is under way
/// may arrive, some of them twice.
fn in_random_order(world: &World, seed: u64) -> Vec<Vec<u64>> {
    let (mut agents, _) = world.agents(|i| i as u64);
    let mut random = Random::new(seed);
    let mut under_way: Vec<(usize, Incoming)> = vec![];
    while agents.iter().any(|a| a.outcome().is_none()) {
        if under_way.is_empty() || random.unit() < 0.3 {
            let i = random.below(agents.len());
            if let Some(said) = agents[i].poll_message().unwrap() {
                let recipients: Vec<usize> =
                    (0..agents.len()).filter(|&j| said.is_for(SiteIndex(j), &world.graph)).collect();
                let said = Incoming::from(&said);
                for j in recipients {
                    under_way.push((j, said.clone()));
                    if random.unit() < 0.2 {
                        under_way.push((j, said.clone()));
                    }
                }
            }
        } else {
            let (to, said) = under_way.swap_remove(random.below(under_way.len()));
            agents[to].handle_message(&said).unwrap();
        }
    }
    agents.iter().map(|a| bits(&a.outcome().unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_order_of_delivery_changes_no_bit(seed: u64, pick in 0usize..4) {
        let (text, n) = [("ring", 5), ("star", 4), ("complete", 4), ("edges:1-2,2-3,3-1,3-4", 4)][pick];
        let mut plan = draft(P_ADMM);
        plan.rounds = 4;
        let world = World::small(text, n, plan);
        prop_assert_eq!(in_random_order(&world, seed), in_lockstep(&world));
    }

    #[test]
    fn nothing_that_arrives_makes_an_agent_panic(
        messages in prop::collection::vec((0usize..4, any::<bool>(), 0u32..9, 5usize..9, any::<bool>()), 0..60)
    ) {
        let world = World::new(graph("ring", 3), shards(1, 3), space(), draft(P_ADMM));
        let (mut agent, _) = world.agent(0, 1, Box::new(MemoryLedger::new()));
        for (from, average, round, length, poll) in messages {
            let turn = if average { Turn::average(round) } else { Turn::model(round) };
            let _ = agent.handle_message(&message(from, turn, length));
            if poll {
                agent.poll_message().unwrap();
            }
        }
        prop_assert!(agent.debits().len() <= 6);
    }
}

#[test]
fn what_peers_send_is_decoded_with_checks() {
    let grid = Payload::Grid { exponent: -3, values: vec![8, -4] };
    let heard = Incoming::decode(SiteIndex(1), Turn::model(2), &grid).unwrap();
    assert_eq!((heard.from, heard.turn), (SiteIndex(1), Turn::model(2)));
    assert_eq!(heard.vector.as_slice(), [1.0, -0.5]);
    for bad in [
        Payload::Plain(vec![f64::NAN]),
        Payload::Plain(vec![f64::INFINITY]),
        Payload::Grid { exponent: 0, values: vec![1 << 53] },
        Payload::Grid { exponent: 5000, values: vec![1] },
    ] {
        assert!(Incoming::decode(SiteIndex(1), Turn::model(1), &bad).is_err());
    }
}

#[test]
fn debug_prints_show_no_record() {
    let mut random = Random::new(3);
    let data = records(&mut random, 12);
    assert_eq!(format!("{data:?}"), "Dataset(12 records × 7 features)");
}
