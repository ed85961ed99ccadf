//! The simulator finds what is wrong on purpose, and nothing else.

use std::time::Duration;

use clap::ValueEnum;
use padmm_lab::sim::{Bug, Extent, Layer, Report, run};

/// So many schedules, however long they take.
fn play(layer: Layer, schedules: u64, bug: Option<Bug>) -> Report {
    let extent = Extent { layer, seed: 1, time: Duration::from_secs(3600), schedules, threads: 2 };
    run(extent, bug, |_| ())
}

#[test]
fn every_invariant_holds() {
    let report = play(Layer::Sites, 600, None);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    // Without these the schedules would say little.
    assert!(report.crashes > 400 && report.disk_faults > 20 && report.departures > 20, "{report:?}");
    assert!(report.rollbacks > 20 && report.as_if_quiet > 150, "{report:?}");
    assert!(report.copied_homes > 50, "{report:?}");
}

#[test]
fn links_alone_are_connected_again_and_do_not_dial_in_storms() {
    let report = play(Layer::Links, 400, None);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert!(report.crashes > 400 && report.copied_homes > 200, "{report:?}");
    let bug = Some(Bug::ClonePromoted);
    assert!(!play(Layer::Links, 400, bug).violations.is_empty(), "{bug:?} was not found in links alone");
}

#[test]
fn planted_bugs_are_found() {
    for bug in Bug::value_variants() {
        let report = play(Layer::Sites, 2_000, Some(*bug));
        assert!(!report.violations.is_empty(), "{bug:?} was not found in {} schedules", report.schedules);
        // These two show without any trouble, and a schedule is made as short as it can be.
        let needs_none = matches!(bug, Bug::SendBeforeCommit | Bug::BarrierSkipped);
        assert!(report.violations.iter().all(|found| !found.schedule.is_empty() || needs_none), "{bug:?}");
    }
}

#[test]
fn a_seed_brings_its_violation_back() {
    let first = play(Layer::Sites, 2_000, Some(Bug::RedrawAfterCrash));
    let found = &first.violations[0];
    let extent = Extent {
        layer: Layer::Sites,
        seed: found.seed,
        time: Duration::from_secs(3600),
        schedules: 1,
        threads: 1,
    };
    let again = run(extent, Some(Bug::RedrawAfterCrash), |_| ());
    assert_eq!(again.violations[0].invariant, found.invariant);
    assert_eq!(again.violations[0].schedule, found.schedule);
}
