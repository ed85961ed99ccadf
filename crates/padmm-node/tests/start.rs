//! Before the first round: who is waited for, who is left behind, and what outlives a crash.

use std::time::Duration;

use crate::common;

use common::network::*;
use padmm_core::message::Turn;
use padmm_node::contract;
use padmm_node::ledger::SiteLedger;
use padmm_node::session::SessionError;
use padmm_node::transport::memory::Weather;

use crate::session::{ALGORITHMS, ALL, leaving, undisturbed, waiting};

/// On a path the first site hears of the last one's word from those between.
#[test]
fn a_run_starts_only_with_every_sites_word() {
    for kind in ALGORITHMS {
        starts_with_every_word(&Consortium::running(kind, 4, "path", contract::Silence::Wait));
    }
}

fn starts_with_every_word(path: &Consortium) {
    let mut run = Run::new(path, Weather::default(), 6);
    (0..DOGWOOD).for_each(|site| run.start(site));
    run.for_as_long_as(seconds(60));
    assert!(run.sites.values().all(|s| !s.session.is_started()));
    let line = |site: usize| run.sites[&site].session.waiting_for(run.now).unwrap();
    assert_eq!(line(0), "before the start: waiting for the signature of dogwood on this plan");
    assert!(line(2).starts_with("before round 1: waiting for dogwood (silent for "), "{}", line(2));
    run.start(DOGWOOD);
    run.until(|run| run.are_done(&ALL));
    run.end();
}

/// Where the plan says so, a site that never comes is left behind before the first round, by all alike, also by those that are not
/// its neighbours; when it comes later it stops, and nothing was charged to it.
#[test]
fn a_run_starts_without_a_site_that_never_comes() {
    for (kind, graph) in ALGORITHMS.into_iter().flat_map(|kind| [(kind, "path"), (kind, "complete")]) {
        let consortium = Consortium::running(kind, 4, graph, LEAVE);
        let mut run = Run::new(&consortium, Weather::default(), 6);
        run.start(0);
        run.for_as_long_as(seconds(60));
        assert!(run.departures(0).is_empty(), "a site that hears nobody waits");
        run.start(1);
        run.start(2);
        run.for_as_long_as(seconds(8));
        assert!(run.sites.values().all(|s| !s.session.is_started()), "the time of the plan is not over");
        run.until(|run| run.are_done(&[0, 1, 2]));
        agree_all(&run, &[0, 1, 2]);
        run.start(DOGWOOD);
        run.until(|run| run.stopped.contains_key(&DOGWOOD));
        let error = &run.stopped[&DOGWOOD];
        assert!(matches!(error, SessionError::LeftBehind { .. }), "{error}");
        assert!(run.end()[DOGWOOD].is_empty());
    }
}

/// Also if the greeting of those that have begun without it comes, and their word that they have does not.
#[test]
fn who_was_left_behind_never_begins_whatever_is_lost_on_the_way() {
    for (kind, seed) in ALGORITHMS.into_iter().flat_map(|kind| (0..8).map(move |seed| (kind, seed))) {
        let consortium = Consortium::running(kind, 4, "path", LEAVE);
        let weather = Weather { loss: 0.5, repeats: 0.1, longest_delay: Duration::from_millis(400) };
        let mut run = Run::new(&consortium, weather, seed);
        (0..DOGWOOD).for_each(|site| run.start(site));
        run.until(|run| run.are_done(&[0, 1, 2]));
        run.start(DOGWOOD);
        run.until(|run| run.stopped.contains_key(&DOGWOOD));
        let error = &run.stopped[&DOGWOOD];
        assert!(matches!(error, SessionError::LeftBehind { .. }), "seed {seed}: {error}");
        assert!(run.end()[DOGWOOD].is_empty(), "seed {seed}: nothing was charged to it");
    }
}

/// All know of the same departures, and none of them is of one of these sites.
fn agree_all(run: &Run<'_>, sites: &[usize]) {
    for site in sites {
        assert_eq!(run.departures(*site), run.departures(sites[0]));
        assert!(run.departures(*site).iter().all(|d| d.lost.0 == DOGWOOD && d.turn == Turn::model(1)));
    }
}

/// What was given up before the start stays given up after a crash: nobody is told two things.
#[test]
fn who_was_left_before_the_start_stays_so_after_a_crash() {
    for kind in ALGORITHMS {
        let consortium = Consortium::running(kind, 4, "ring", LEAVE);
        let mut run = Run::new(&consortium, Weather::default(), 6);
        (0..DOGWOOD).for_each(|site| run.start(site));
        run.until(|run| (0..DOGWOOD).all(|site| !run.departures(site).is_empty()));
        let told = run.departures(0);
        (0..DOGWOOD).for_each(|site| run.kill(site));
        (0..4).for_each(|site| run.start(site));
        run.until(|run| run.stopped.contains_key(&DOGWOOD) && run.are_done(&[0, 1, 2]));
        assert!(matches!(run.stopped[&DOGWOOD], SessionError::LeftBehind { .. }));
        assert!(told.is_subset(&run.departures(0)));
        assert!(run.departures(0).iter().all(|d| d.lost.0 == DOGWOOD && d.turn == Turn::model(1)));
        run.end();
    }
}

/// Those that come too late for the others and hear each other begin by themselves. They cannot ask a far site for its key: it comes with
/// the greeting of the one that tells them.
#[test]
fn late_sites_that_hear_each_other_begin_by_themselves() {
    for kind in ALGORITHMS {
        let consortium = Consortium::running(kind, 4, "ring", LEAVE);
        let mut run = Run::new(&consortium, Weather::default(), 6);
        [0, DOGWOOD].into_iter().for_each(|site| run.start(site));
        run.until(|run| run.are_done(&[0, DOGWOOD]));
        [1, 2].into_iter().for_each(|site| run.start(site));
        run.until(|run| run.are_done(&[1, 2]));
        assert_eq!(run.models[&1], run.models[&2]);
        assert_eq!(run.models[&0], run.models[&DOGWOOD]);
        assert!(run.end().iter().all(|released| released.len() == ROUNDS as usize));
    }
}

/// The plan's time runs for each neighbour from the moment at which the first one is heard, and again after this site was alone.
#[test]
fn a_site_that_was_cut_off_before_the_start_gives_nobody_up_when_it_is_back() {
    for consortium in leaving() {
        let (models, released) = undisturbed(consortium);
        let mut run = Run::new(consortium, Weather::default(), 9);
        (0..DOGWOOD).for_each(|site| run.start(site));
        run.for_as_long_as(seconds(1));
        (1..4).for_each(|site| run.cut(0, site));
        run.cut(1, 2);
        run.for_as_long_as(seconds(60));
        assert!((0..DOGWOOD).all(|site| run.departures(site).is_empty()));
        run.mend(0, 1);
        run.for_as_long_as(seconds(5));
        [(0, 2), (0, 3), (1, 2)].into_iter().for_each(|(a, b)| run.mend(a, b));
        run.start(DOGWOOD);
        run.until(|run| run.are_done(&ALL));
        assert_eq!(run.models, models);
        assert_eq!(run.end(), released);
    }
}

/// A word that somebody changed beside the ledger is not believed: it is heard again from those whose word it is.
#[test]
fn words_that_were_changed_on_the_disk_are_not_believed() {
    for consortium in waiting() {
        let (models, _) = undisturbed(consortium);
        let hash = consortium.contract.hash().to_string();
        let mut run = Run::with_all(consortium, Weather::default(), 1);
        run.until(|run| run.sites.values().all(|s| s.session.is_started()));
        run.kill(0);
        let mut ledger = SiteLedger::open(&run.ledger_path(0)).unwrap();
        let word = ledger.words(&hash).unwrap().remove(0);
        for place in [word.len() - 1, word.len() / 2] {
            let mut changed = word.clone();
            changed[place] ^= 1;
            ledger.keep_word(&hash, &changed).unwrap();
        }
        ledger.keep_word(&hash, b"nothing that was ever said").unwrap();
        drop(ledger);
        run.start(0);
        let refused =
            run.notes.lines.lock().unwrap().iter().filter(|l| l.contains("not what its signature")).count();
        assert_eq!(refused, 3);
        run.until(|run| run.are_done(&ALL));
        assert_eq!(run.models, models);
        run.end();
    }
}

/// One edge of a ring never works. Whoever has no part in it hears all its own neighbours, and still nobody begins: each waits for
/// every site's word that all its edges work.
#[test]
fn an_edge_that_never_works_costs_nobody_anything_and_is_named() {
    const RING: [usize; 5] = [0, 1, 2, 3, 4];
    let ring = Consortium::of(5, "ring", contract::Silence::Wait);
    let mut run = Run::new(&ring, Weather::default(), 8);
    run.cut(0, 1);
    RING.iter().for_each(|&site| run.start(site));
    run.for_as_long_as(seconds(120));
    let hash = ring.contract.hash().to_string();
    let charged_at = |&site: &usize| {
        let view = SiteLedger::read(&run.ledger_path(site)).unwrap();
        view.state().run(&hash).map_or(0, |run| run.charges.len())
    };
    let charged: Vec<usize> = RING.iter().map(charged_at).collect();
    assert_eq!(charged, [0; 5], "rounds that were charged");
    assert!(run.sites.values().all(|s| !s.session.is_started()));
    for (site, edge) in [(0, "ash-birch"), (1, "birch-ash")] {
        let line = run.sites[&site].session.waiting_for(run.now).unwrap();
        assert!(line.contains(&format!("nothing has come over the edge {edge}")), "{line}");
    }
    for site in 2..5 {
        let line = run.sites[&site].session.waiting_for(run.now).unwrap();
        assert!(line.contains("waiting for ash, birch to report that all their edges work"), "{line}");
    }
    let lines = run.notes.lines.lock().unwrap().join("\n");
    assert!(lines.contains("ash: before round 1: waiting for birch"), "{lines}");
    // What was said before a restart is heard again from others, and when the edge works the run starts.
    run.kill(3);
    run.for_as_long_as(seconds(5));
    run.start(3);
    run.mend(0, 1);
    run.until(|run| run.are_done(&RING));
    run.end();
}

/// A site that has begun and is started again still gives its word to one that has not.
#[test]
fn a_site_that_was_ready_says_so_after_a_restart() {
    let path = ALGORITHMS.map(|kind| Consortium::running(kind, 3, "path", contract::Silence::Wait));
    for (path, seed) in path.iter().flat_map(|path| (1..=20).map(move |seed| (path, seed))) {
        let weather = Weather { loss: 0.5, repeats: 0.1, longest_delay: Duration::from_millis(300) };
        let mut run = Run::with_all(path, weather, seed);
        run.until(|run| run.sites.values().any(|s| s.session.is_started()));
        let begun: Vec<usize> = (0..3).filter(|site| run.sites[site].session.is_started()).collect();
        for site in begun {
            run.kill(site);
            run.start(site);
        }
        run.until(|run| run.are_done(&[0, 1, 2]));
        run.end();
    }
}
