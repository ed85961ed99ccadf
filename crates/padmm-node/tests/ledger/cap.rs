//! The site's cap: before a run, in a round, and exactly at the boundary.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use super::*;

/// Epsilon of the first `rounds` rounds of the plan at the cap's delta.
fn cost(rounds: usize) -> f64 {
    let mut spending = Spending::default();
    for p in &planned()[..rounds] {
        spending.add(&p.event, p.n_features, p.exponent).unwrap();
    }
    spending.epsilon(Delta::new(1e-5).unwrap()).value()
}

#[test]
fn a_plan_that_costs_exactly_the_cap_is_allowed_and_one_bit_more_is_not() {
    let exact = cost(ROUNDS as usize);
    let mut ledger = SiteLedger::in_memory(opening(exact)).unwrap();
    ledger.start_run(&run_start("run-a")).unwrap();
    for round in 1..=ROUNDS {
        release(&mut ledger, "run-a", round, 1).unwrap();
    }
    assert_eq!(ledger.epsilon_spent().value(), exact);
    let mut ledger = SiteLedger::in_memory(opening(exact.next_down())).unwrap();
    let error = ledger.start_run(&run_start("run-a")).unwrap_err();
    assert!(matches!(error, LedgerError::CapReached { spent: 0.0, .. }), "{error}");
    let text = error.to_string();
    // What is spent is shown rounded up, the cap as it is.
    let cap = format!("the cap is {} ", exact.next_down());
    for needle in ["spent so far", "the 4 releases", "padmm-site ledger cap", "it would be 1.0000", &cap] {
        assert!(text.contains(needle), "{needle} is not in: {text}");
    }
    assert_eq!(ledger.head().seq, 1, "nothing was written");
}

#[test]
fn the_plan_s_own_budget_fits_a_cap_of_the_same_size() {
    let mut ledger = SiteLedger::in_memory(opening(1.0)).unwrap();
    ledger.start_run(&run_start("run-a")).unwrap();
}

#[test]
fn what_earlier_runs_spent_counts_and_what_this_run_spent_is_not_counted_twice() {
    let case = Case::empty();
    let mut ledger = SiteLedger::create(&case.path(), opening(cost(4))).unwrap();
    ledger.start_run(&run_start("run-a")).unwrap();
    release(&mut ledger, "run-a", 1, 1).unwrap();
    drop(ledger);
    let mut ledger = reopened(&case.path());
    ledger.start_run(&run_start("run-a")).unwrap();
    let error = ledger.start_run(&run_start("run-b")).unwrap_err();
    assert!(matches!(error, LedgerError::CapReached { spent, .. } if spent == cost(1)), "{error}");
    ledger.change_cap(Budget::new(10.0, 1e-5).unwrap()).unwrap();
    ledger.start_run(&run_start("run-b")).unwrap();
}

#[test]
fn a_round_is_refused_too_and_a_reservation_counts() {
    let mut ledger = SiteLedger::in_memory(opening(10.0)).unwrap();
    ledger.start_run(&run_start("run-a")).unwrap();
    ledger.start_run(&run_start("run-b")).unwrap();
    ledger.change_cap(Budget::new(cost(2), 1e-5).unwrap()).unwrap();
    release(&mut ledger, "run-a", 1, 1).unwrap();
    ledger.reserve("run-b", &planned()[0]).unwrap();
    let twice = ledger.reserve("run-b", &planned()[0]).unwrap_err();
    assert!(matches!(twice, LedgerError::AlreadyCharged { .. }), "{twice}");
    // The second round costs more than the first, so two first rounds fit and nothing else does.
    let error = ledger.reserve("run-a", &planned()[1]).unwrap_err();
    assert!(matches!(error, LedgerError::CapReached { .. }), "{error}");
    assert!(error.to_string().contains("round 2"), "{error}");
}

#[test]
fn a_cap_below_what_was_spent_forbids_the_rest() {
    let mut ledger = SiteLedger::in_memory(opening(10.0)).unwrap();
    ledger.start_run(&run_start("run-a")).unwrap();
    release(&mut ledger, "run-a", 1, 1).unwrap();
    ledger.change_cap(Budget::new(cost(1) / 2.0, 1e-5).unwrap()).unwrap();
    assert!(matches!(release(&mut ledger, "run-a", 2, 1), Err(LedgerError::CapReached { .. })));
    assert!(matches!(ledger.start_run(&run_start("run-a")), Err(LedgerError::CapReached { .. })));
    ledger.finish_run("run-a").unwrap();
}

#[test]
fn forfeited_rounds_are_paid_for() {
    let mut ledger = SiteLedger::in_memory(opening(10.0)).unwrap();
    ledger.start_run(&run_start("run-a")).unwrap();
    ledger.reserve("run-a", &planned()[0]).unwrap();
    ledger.forfeit("run-a", &planned()[0], "not converged").unwrap();
    assert_eq!(ledger.epsilon_spent().value(), cost(1));
    release(&mut ledger, "run-a", 2, 1).unwrap();
    assert_eq!(ledger.epsilon_spent().value(), cost(2));
}
