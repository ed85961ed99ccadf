//! Whole runs in one thread, with made-up time and a made-up network: what is lost, repeated, late, gone or back again.

use crate::common;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::network::*;
use padmm_core::algorithm::{AlgorithmKind, CONSENSUS_NEWTON, P_ADMM};
use padmm_core::message::{SiteIndex, Stage};
use padmm_node::contract;
use padmm_node::frame::Frame;
use padmm_node::ledger::SiteLedger;
use padmm_node::session::SessionError;
use padmm_node::transport::memory::Weather;
use padmm_privacy::Payload;

pub(crate) const ALL: [usize; 4] = [0, 1, 2, 3];

/// One that talks to neighbours only, and one whose releases are passed on to everybody.
pub(crate) const ALGORITHMS: [AlgorithmKind; 2] = [P_ADMM, CONSENSUS_NEWTON];

pub(crate) fn waiting() -> impl Iterator<Item = &'static Consortium> {
    static WAITING: OnceLock<[Consortium; 2]> = OnceLock::new();
    let wait = contract::Silence::Wait;
    WAITING.get_or_init(|| ALGORITHMS.map(|kind| Consortium::running(kind, 4, "ring", wait))).iter()
}

pub(crate) fn leaving() -> impl Iterator<Item = &'static Consortium> {
    static LEAVING: OnceLock<[Consortium; 2]> = OnceLock::new();
    LEAVING.get_or_init(|| ALGORITHMS.map(|kind| Consortium::running(kind, 4, "complete", LEAVE))).iter()
}

/// What must be true of those that went on together: the same model, to the bit, and opposite duals where there are any.
fn agree(run: &Run<'_>, sites: &[usize]) {
    if run.consortium.contract.plan().settings().algorithm == P_ADMM {
        run.check_duals(sites);
        for site in sites {
            let averaged = run.sites[site].session.agent().averaged_over().unwrap();
            assert!(sites.iter().all(|&other| averaged.contains(&SiteIndex(other))), "{averaged:?}");
        }
    }
    sites.iter().for_each(|site| assert_eq!(run.models[site], run.models[&sites[0]]));
}

type Ending = (BTreeMap<usize, Vec<u64>>, Vec<Vec<Payload>>);

pub(crate) fn undisturbed(consortium: &Consortium) -> Ending {
    let mut run = Run::with_all(consortium, Weather::default(), 0);
    run.until(|run| run.are_done(&ALL));
    let released = run.end();
    (run.models, released)
}

#[test]
fn fifty_schedules_of_loss_repeats_delays_and_restarts_end_as_the_undisturbed_run() {
    for consortium in waiting() {
        let (models, released) = undisturbed(consortium);
        let mut restarts = 0;
        for seed in 1..=50 {
            let weather = Weather { loss: 0.2, repeats: 0.2, longest_delay: Duration::from_millis(400) };
            let mut run = Run::with_all(consortium, weather, seed);
            // A site is killed every so often, and is back after a while.
            let (mut state, mut away) = (seed, None);
            while !run.are_done(&ALL) {
                assert!(run.now < LONG, "seed {seed}:\n{}", run.notes.lines.lock().unwrap().join("\n"));
                run.step();
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let dice = state >> 33;
                match away {
                    Some((site, until)) if until <= run.now => {
                        run.start(site);
                        away = None;
                    }
                    None if dice % 60 == 0 => {
                        let site = (dice / 60 % 4) as usize;
                        run.kill(site);
                        restarts += 1;
                        away = Some((site, run.now + Duration::from_millis(dice / 240 % 1500)));
                    }
                    _ => {}
                }
            }
            assert_eq!(run.models, models, "seed {seed}");
            assert_eq!(run.end(), released, "seed {seed}");
        }
        assert!(restarts > 100, "only {restarts} restarts");
    }
}

/// Averages reach everybody in one turn, whatever the graph, and all keep the mean of the same vectors in the same order.
#[test]
fn all_sites_keep_the_same_bits_after_one_turn_of_averaging() {
    for graph in ["ring", "path", "star"] {
        let consortium = Consortium::of(5, graph, contract::Silence::Wait);
        let mut run = Run::with_all(&consortium, Weather::default(), 1);
        run.until(|run| run.are_done(&[0, 1, 2, 3, 4]));
        (1..5).for_each(|site| assert_eq!(run.models[&site], run.models[&0], "{graph}"));
        let turns = run.notes.sent.lock().unwrap().keys().filter(|key| key.1.stage == Stage::Average).count();
        assert_eq!(turns, 5, "one message of each site");
        run.end();
    }
}

#[test]
fn a_plan_that_waits_never_drops_a_site_and_says_who_is_missing_since_when() {
    for consortium in waiting() {
        let (models, released) = undisturbed(consortium);
        let mut run = Run::with_all(consortium, Weather::default(), 1);
        run.until(|run| run.round(DOGWOOD) >= 2);
        run.kill(DOGWOOD);
        run.for_as_long_as(seconds(600));
        for site in [0, 2] {
            let line = run.sites[&site].session.waiting_for(run.now).unwrap();
            assert!(line.contains("waiting for dogwood (silent for "), "{line}");
            let silent: u64 =
                line.split("silent for ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            assert!((590..=600).contains(&silent), "{line}");
            assert!(run.departures(site).is_empty());
        }
        assert!(run.notes.lines.lock().unwrap().iter().any(|l| l.contains("waiting for dogwood")));
        run.start(DOGWOOD);
        run.until(|run| run.are_done(&ALL));
        assert_eq!(run.models, models);
        assert_eq!(run.end(), released);
    }
}

#[test]
fn a_silent_site_is_left_by_all_and_the_others_finish_without_it() {
    for consortium in leaving() {
        let mut run = Run::with_all(consortium, Weather::default(), 1);
        run.until(|run| run.round(DOGWOOD) >= 3);
        run.kill(DOGWOOD);
        run.until(|run| run.are_done(&[0, 1, 2]));
        run.for_as_long_as(seconds(3));
        let departures = run.departures(0);
        assert_eq!(departures.len(), 3, "{departures:?}");
        for site in [0, 1, 2] {
            assert_eq!(run.departures(site), departures);
            assert!(departures.iter().any(|d| (d.reporter, d.lost) == (SiteIndex(site), SiteIndex(DOGWOOD))));
        }
        agree(&run, &[0, 1, 2]);
        let released = run.end();
        assert!(released[..3].iter().all(|r| r.len() == ROUNDS as usize));
    }
}

#[test]
fn a_site_that_comes_back_after_it_was_left_stops_and_releases_nothing_more() {
    for consortium in leaving() {
        let mut run = Run::with_all(consortium, Weather::default(), 2);
        run.until(|run| run.round(DOGWOOD) >= 3);
        run.kill(DOGWOOD);
        let before = run.released(DOGWOOD);
        run.until(|run| run.are_done(&[0, 1, 2]));
        run.start(DOGWOOD);
        run.until(|run| run.stopped.contains_key(&DOGWOOD));
        let error = &run.stopped[&DOGWOOD];
        assert!(matches!(error, SessionError::Alone { .. }), "{error}");
        assert!(error.to_string().contains("ash, birch, cedar"), "{error}");
        assert_eq!(run.end()[DOGWOOD], before);
    }
}

#[test]
fn a_site_that_hung_and_was_cut_off_stops_when_the_line_is_back() {
    for consortium in leaving() {
        let mut run = Run::with_all(consortium, Weather::default(), 3);
        run.until(|run| run.round(DOGWOOD) >= 3);
        run.hanging.insert(DOGWOOD);
        (0..3).for_each(|site| run.cut(site, DOGWOOD));
        run.until(|run| run.are_done(&[0, 1, 2]));
        (0..3).for_each(|site| run.mend(site, DOGWOOD));
        run.for_as_long_as(seconds(1));
        run.hanging.clear();
        run.until(|run| run.stopped.contains_key(&DOGWOOD));
        assert!(matches!(run.stopped[&DOGWOOD], SessionError::Alone { .. }));
        run.end();
    }
}

#[test]
fn both_parts_of_a_network_that_falls_apart_go_on() {
    for consortium in leaving() {
        let mut run = Run::with_all(consortium, Weather::default(), 4);
        run.until(|run| ALL.iter().all(|&i| run.round(i) >= 2));
        for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
            run.cut(a, b);
        }
        run.until(|run| run.are_done(&ALL));
        run.for_as_long_as(seconds(3));
        for part in [[0, 1], [2, 3]] {
            assert_eq!(run.departures(part[0]), run.departures(part[1]));
            assert_eq!(run.departures(part[0]).len(), 4);
            assert!(
                run.departures(part[0])
                    .iter()
                    .all(|d| part.contains(&d.reporter.0) && !part.contains(&d.lost.0))
            );
            agree(&run, &part);
        }
        run.end();
    }
}

#[test]
fn a_slow_site_that_gives_signs_of_life_is_never_left() {
    for consortium in leaving() {
        let (models, released) = undisturbed(consortium);
        let mut run = Run::with_all(consortium, Weather::default(), 5);
        run.until(|run| run.round(DOGWOOD) >= 2);
        run.hanging.insert(DOGWOOD);
        run.for_as_long_as(seconds(300));
        run.hanging.clear();
        run.until(|run| run.are_done(&ALL));
        assert!((0..4).all(|site| run.departures(site).is_empty()));
        assert_eq!(run.models, models);
        assert_eq!(run.end(), released);
    }
}

/// A site that is done and leaves for good is not waited for, where the plan says so, by one that still needs something of it.
#[test]
fn who_is_done_and_gone_is_left_by_one_that_is_not_done() {
    let consortium = Consortium::running(P_ADMM, 2, "path", LEAVE);
    let mut left_alone = 0;
    for seed in 0..24 {
        let mut run = Run::with_all(&consortium, Weather::default(), seed);
        run.until(|run| (0..2).all(|site| run.round(site) == ROUNDS - 1));
        // Its word that it is done may be all that arrives.
        run.network.set_weather(Weather { loss: 0.6, repeats: 0.1, longest_delay: seconds(1) });
        // In such weather some give each other up before.
        run.until(|run| run.are_done(&[0]) || run.are_done(&[1]) || run.stopped.len() == 2);
        let (gone, left) = if run.are_done(&[0]) { (0, 1) } else { (1, 0) };
        left_alone += u32::from(!run.are_done(&[left]) && !run.stopped.contains_key(&left));
        run.for_as_long_as(Duration::from_millis(200));
        run.kill(gone);
        run.until(|run| run.are_done(&[left]) || run.stopped.contains_key(&left));
        run.end();
    }
    assert!(left_alone >= 6, "of 24 sites only {left_alone} still needed something");
}

/// On a path a release goes through every site to the last one, is kept by each of them, and outlives the edge over which it came.
#[test]
fn releases_are_passed_on_along_a_path_and_survive_restarts() {
    let path = Consortium::running(CONSENSUS_NEWTON, 5, "path", contract::Silence::Wait);
    const PATH: [usize; 5] = [0, 1, 2, 3, 4];
    let mut run = Run::with_all(&path, Weather::default(), 1);
    run.until(|run| run.are_done(&PATH));
    let (models, released) = (run.models.clone(), run.end());
    PATH.iter().for_each(|site| assert_eq!(models[site], models[&0]));
    for seed in 1..=20 {
        let weather = Weather { loss: 0.3, repeats: 0.2, longest_delay: Duration::from_millis(300) };
        let mut run = Run::with_all(&path, weather, seed);
        for round in 1..=4 {
            let site = (seed as usize + round) % 5;
            run.until(|run| run.round(site) >= round as u32);
            run.kill(site);
            run.for_as_long_as(Duration::from_millis(100 * seed));
            run.start(site);
        }
        run.until(|run| run.are_done(&PATH));
        assert_eq!(run.models, models, "seed {seed}");
        assert_eq!(run.end(), released, "seed {seed}");
    }
}

/// In a ring the loss of an edge costs nobody anything, and that of a site only its own records.
#[test]
fn a_lost_edge_is_no_lost_site_where_releases_are_passed_on() {
    let ring = Consortium::running(CONSENSUS_NEWTON, 5, "ring", LEAVE);
    const RING: [usize; 5] = [0, 1, 2, 3, 4];
    let mut run = Run::with_all(&ring, Weather::default(), 1);
    run.until(|run| run.are_done(&RING));
    let (models, released) = (run.models.clone(), run.end());
    for seed in 1..=10 {
        let weather = Weather { loss: 0.1, repeats: 0.1, longest_delay: Duration::from_millis(200) };
        let mut run = Run::with_all(&ring, weather, seed);
        run.until(|run| run.round(0) >= 2);
        run.cut(1, 2);
        run.until(|run| run.are_done(&RING));
        assert!(!run.departures(0).is_empty(), "seed {seed}");
        assert_eq!(run.models, models, "seed {seed}");
        assert_eq!(run.end(), released, "seed {seed}");
        let mut run = Run::with_all(&ring, weather, seed);
        run.until(|run| run.round(0) >= 2);
        run.kill(DOGWOOD);
        let left = [0, 1, 2, 4];
        run.until(|run| run.are_done(&left));
        left.iter().for_each(|site| assert_eq!(run.models[site], run.models[&0], "seed {seed}"));
        assert_ne!(run.models[&0], models[&0], "seed {seed}");
        run.end();
    }
}

/// Whoever heard that its neighbours are done knows it after a restart, and does not wait for them when they have gone.
#[test]
fn a_finished_site_that_is_started_again_ends_by_itself() {
    for consortium in waiting() {
        let mut run = Run::with_all(consortium, Weather::default(), 1);
        run.until(|run| run.are_done(&ALL));
        run.until(|run| run.sites.values().all(|s| s.session.everybody_is_done(run.now)));
        ALL.iter().for_each(|&site| run.kill(site));
        run.start(0);
        run.step();
        assert!(!run.sites[&0].session.everybody_is_done(run.now), "a neighbour may wait for its word");
        run.for_as_long_as(seconds(15));
        assert!(run.sites[&0].session.everybody_is_done(run.now), "{:?}", run.notes.lines.lock().unwrap());
        // One that is there is told, and then nothing more is waited for.
        run.start(1);
        run.for_as_long_as(seconds(1));
        run.kill(0);
        run.start(0);
        run.for_as_long_as(seconds(1));
        assert!(!run.sites[&0].session.everybody_is_done(run.now), "the fourth site may still come");
        run.start(3);
        run.for_as_long_as(seconds(1));
        assert!(run.sites[&0].session.everybody_is_done(run.now), "both neighbours know");
        run.end();
    }
}

/// A site that was killed before it heard that a neighbour is done hears it from another one, after the first has gone.
#[test]
fn the_word_that_a_site_is_done_is_passed_on_to_its_neighbours() {
    let triangle = Consortium::of(3, "complete", contract::Silence::Wait);
    let hash = triangle.contract.hash().to_string();
    let mut tried = 0;
    for seed in 1..=20 {
        let weather = Weather { longest_delay: Duration::from_millis(300), ..Weather::default() };
        let mut run = Run::with_all(&triangle, weather, seed);
        run.until(|run| run.are_done(&[0]));
        run.kill(0);
        let ledger = SiteLedger::open(&run.ledger_path(0)).unwrap();
        let is_birchs = |word: &Vec<u8>| matches!(Frame::decode(word), Ok(Frame::Status { origin, .. }) if origin.sender.0 == 1);
        let has_heard = ledger.words(&hash).unwrap().iter().any(is_birchs);
        drop(ledger);
        run.for_as_long_as(seconds(3));
        if has_heard || !run.are_done(&[1, 2]) {
            continue;
        }
        run.for_as_long_as(seconds(3));
        run.kill(1);
        run.start(0);
        // Its own time for farewells is not over, so it was told.
        run.until(|run| run.sites[&2].session.everybody_is_done(run.now));
        run.for_as_long_as(seconds(12));
        assert!(run.sites[&0].session.everybody_is_done(run.now), "seed {seed}");
        run.end();
        tried += 1;
    }
    assert!(tried >= 3, "only {tried} seeds led there");
}

/// The list of what left cannot be written at any site from its third round on: whoever has something to send stops, with nothing sent
/// and at most that one release charged. With room again, all continue to the same models.
#[test]
fn what_cannot_be_written_down_does_not_leave_and_a_restart_goes_on() {
    for consortium in waiting() {
        let (models, _) = undisturbed(consortium);
        let mut run = Run::with_all(consortium, Weather::default(), 0);
        run.until(|run| run.round(0) == 2);
        run.notes.is_full.store(true, Ordering::Relaxed);
        let left = run.notes.sent.lock().unwrap().clone();
        run.until(|run| !run.stopped.is_empty());
        run.for_as_long_as(seconds(60));
        assert_eq!(*run.notes.sent.lock().unwrap(), left, "something left that nobody wrote down");
        let stopped: Vec<usize> = run.stopped.keys().copied().collect();
        for site in &stopped {
            let error = &run.stopped[site];
            assert!(matches!(error, SessionError::Egress(_)), "{error}");
            assert!(error.to_string().contains("egress.csv (no room), so nothing more leaves"), "{error}");
            let rounds =
                left.keys().filter(|(whose, turn)| whose == site && turn.stage == Stage::Model).count();
            assert!(run.released(*site).len() <= rounds + 1, "it went on to another round");
        }
        run.notes.is_full.store(false, Ordering::Relaxed);
        stopped.into_iter().for_each(|site| run.start(site));
        run.until(|run| run.are_done(&ALL));
        assert_eq!(run.models, models);
    }
}

/// Whoever reads the log knows whom to call about what: where a neighbour was looked for, and whether it has signed.
#[test]
fn a_neighbour_that_never_came_is_named_with_its_address_and_its_word() {
    let consortium = waiting().next().unwrap();
    let mut run = Run::new(consortium, Weather::default(), 0);
    [0, 1, 2].into_iter().for_each(|site| run.start(site));
    run.for_as_long_as(seconds(20));
    let lines = run.notes.lines.lock().unwrap().join("\n");
    assert!(
        lines.contains("dogwood (silent for 20 s: not reached at 127.0.0.1:4; its signature on the plan is not known here) "),
        "{lines}"
    );
    let status = run.sites[&0].session.status(run.now);
    assert!(!status.is_started && status.place == "before the start", "{status:?}");
    let neighbours: Vec<usize> = status.peers.iter().map(|peer| peer.site.0).collect();
    assert_eq!(neighbours, consortium.contract.neighbours(0));
    for peer in &status.peers {
        let is_there = peer.site.0 != DOGWOOD;
        assert_eq!((peer.silent.is_some(), peer.is_awaited), (is_there, !is_there), "{peer:?}");
    }
}
