//! Whatever is done in whatever order: one payload a round, and the sum of what was spent.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Act {
    Start(u8),
    Release(u8, u32, i64),
    ReserveOnly(u8, u32),
    Forfeit(u8, u32),
    Receive(u8, u32, u8),
    CommitReceived,
    Lose(u8),
    Finish(u8),
    Cap(f64),
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    let (run, round) = (0..3u8, 1..=ROUNDS);
    prop_oneof![
        2 => run.clone().prop_map(Act::Start),
        6 => (run.clone(), round.clone(), -9..9i64).prop_map(|(r, k, v)| Act::Release(r, k, v)),
        1 => (run.clone(), round.clone()).prop_map(|(r, k)| Act::ReserveOnly(r, k)),
        1 => (run.clone(), round).prop_map(|(r, k)| Act::Forfeit(r, k)),
        2 => (run.clone(), 0..3u32, 0..2u8).prop_map(|(r, k, b)| Act::Receive(r, k, b)),
        1 => Just(Act::CommitReceived),
        1 => run.clone().prop_map(Act::Lose),
        1 => run.prop_map(Act::Finish),
        1 => (0.5..5.0f64).prop_map(Act::Cap),
        2 => Just(Act::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold(acts in proptest::collection::vec(act(), 1..40)) {
        let case = Case::empty();
        let mut ledger = Some(SiteLedger::create(&case.path(), opening(2.0)).unwrap());
        // What left, by run and round; and every charge in the order of writing.
        let mut left: BTreeMap<(String, u32), Vec<u8>> = BTreeMap::new();
        let mut charged: Vec<u32> = Vec::new();
        for act in acts {
            let open = ledger.as_mut().unwrap();
            let name = |run: u8| format!("run-{run}");
            match act {
                // Refusals are part of the game; the model only follows what succeeded.
                Act::Start(run) => drop(open.start_run(&run_start(&name(run)))),
                Act::Release(run, round, value) => {
                    if release(open, &name(run), round, value).is_ok() {
                        let bytes = open.release_bytes(&name(run), round).unwrap().unwrap();
                        prop_assert!(left.insert((name(run), round), bytes).is_none(), "a second payload");
                        prop_assert!(open.epsilon_spent().value() <= open.cap().epsilon.value());
                        charged.push(round);
                    }
                }
                Act::ReserveOnly(run, round) => drop(open.reserve(&name(run), &planned()[round as usize - 1])),
                Act::Forfeit(run, round) => {
                    if open.forfeit(&name(run), &planned()[round as usize - 1], "test").is_ok() {
                        charged.push(round);
                    }
                }
                Act::Receive(run, turn, byte) => {
                    let received = message(&name(run), "west", Turn::model(turn), &byte.to_string());
                    drop(open.stage_received(received));
                }
                Act::CommitReceived => open.commit_received().unwrap(),
                Act::Lose(run) => drop(open.lose_neighbour(&name(run), "west", Turn::model(1))),
                Act::Finish(run) => drop(open.finish_run(&name(run))),
                Act::Cap(epsilon) => open.change_cap(Budget::new(epsilon, 1e-5).unwrap()).unwrap(),
                Act::Reopen => {
                    let before = (open.head(), open.spending());
                    drop(ledger.take());
                    let again = reopened(&case.path());
                    prop_assert_eq!((again.head(), again.spending()), before);
                    ledger = Some(again);
                }
            }
            let open = ledger.as_ref().unwrap();
            let mut sum = Spending::default();
            for &round in &charged {
                let p = planned()[round as usize - 1];
                sum.add(&p.event, p.n_features, p.exponent).unwrap();
            }
            prop_assert_eq!(open.spending(), sum);
            for ((run, round), bytes) in &left {
                prop_assert_eq!(open.release_bytes(run, *round).unwrap(), Some(bytes.clone()));
            }
        }
        let verified = verify(&case.path()).unwrap();
        prop_assert_eq!((verified.releases, verified.releases + verified.forfeited), (left.len(), charged.len()));
    }
}
