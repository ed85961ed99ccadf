//! A site that is killed anywhere goes on from there: nothing is released twice, nothing is charged twice, and the model is the one of a
//! run that nobody disturbed.

use crate::common;

use std::sync::{Arc, OnceLock};

use common::{Network, Outcome, Running, Shape, in_parallel};
use padmm_core::algorithm::{CONSENSUS_NEWTON, P_ADMM};
use padmm_node::contract::{LEAST_SILENCE, Silence};
use padmm_node::fault::Point;

/// Four sites that go on without one that is silent.
const LEAVING: Shape = Shape {
    algorithm: P_ADMM,
    sites: 4,
    graph: "complete",
    rounds: 8,
    silence: Silence::Leave { after_seconds: LEAST_SILENCE },
};

/// Four sites in a row whose releases are passed on.
const PASSING_ON: Shape = Shape { algorithm: CONSENSUS_NEWTON, ..PATH };

/// Four sites in a row.
const PATH: Shape = Shape { algorithm: P_ADMM, sites: 4, graph: "path", rounds: 8, silence: Silence::Wait };

/// The fourth site ends with a release of this round in its ledger that nobody got, so all others lose it in this round.
const LOST_AT: &str = "send-before:4";

fn is_loss(point: Point) -> bool {
    matches!(point, Point::LossBeforeCommit | Point::LossAfterCommit)
}

/// At which of its visits to a point a site is killed: the first, a later one if a run comes there again, and one after the last round
/// where models are averaged.
fn visits(point: Point) -> &'static [usize] {
    match point {
        Point::RunBeforeStart
        | Point::RunAfterStart
        | Point::ModelBeforeWrite
        | Point::ModelAfterWrite
        | Point::Finished
        | Point::LossBeforeCommit
        | Point::LossAfterCommit
        // Once, when everybody's average is there.
        | Point::ReceivedBeforeCommit
        | Point::ReceivedAfterCommit => &[1],
        Point::SendBefore | Point::SendBetween | Point::SendAfter => &[1, 3, 9],
        Point::Received => &[1, 3, 17],
        _ => &[1, 3],
    }
}

/// Messages are committed without a release only when models are averaged, and come over several edges only where some sites are no
/// neighbours.
fn shape(point: Point) -> Shape {
    match point {
        Point::ReceivedBeforeCommit | Point::ReceivedAfterCommit => PATH,
        _ => Shape::TRIANGLE,
    }
}

fn assert_was_killed(network: &Network, site: usize, point: Point) {
    let line = format!("killed at the fault point {}", point.name());
    assert!(network.log(site).contains(&line), "it was never there: {}", network.log(site));
}

/// One site is killed at the `nth` time that it is at `point`, and started again.
fn kill_and_go_on(shape: Shape, point: Point, nth: usize, victim: usize) -> Outcome {
    let network = Network::make(shape);
    let mut running = Running::new(&network);
    for site in 0..network.sites.len() {
        match site == victim {
            true => running.start_with(site, &["--test-kill", &format!("{}:{nth}", point.name())]),
            false => running.start(site),
        }
    }
    running.finish();
    assert_was_killed(&network, victim, point);
    network.outcome(&[])
}

/// The fourth site leaves for good; the first is killed at `point`, if there is one, while it takes note of that.
fn lose_a_site(point: Option<Point>) -> Outcome {
    let network = Network::make(LEAVING);
    let mut running = Running::new(&network);
    running.stays_away(3);
    let kill = point.map(|p| format!("{}:1", p.name()));
    let flags: Vec<&str> = kill.iter().flat_map(|k| ["--test-kill", k.as_str()]).collect();
    running.start_with(0, &flags);
    running.start(1);
    running.start(2);
    running.start_with(3, &["--test-kill", LOST_AT]);
    running.finish();
    if let Some(point) = point {
        assert_was_killed(&network, 0, point);
    }
    for site in 0..3 {
        let result = std::fs::read_to_string(network.run_file(site, "result.json")).unwrap();
        let name = &network.sites[site].name;
        assert!(result.contains(&format!("{name} went on without west from round 4")), "{result}");
        assert!(result.contains("\"west\": \"rounds 1 to 3"), "{result}");
    }
    network.outcome(&[3])
}

#[test]
fn a_site_killed_at_any_fault_point_goes_on_as_if_nothing_had_been() {
    let triangle = Arc::new(Network::undisturbed(Shape::TRIANGLE));
    let path = Arc::new(Network::undisturbed(PATH));
    let passing_on = Arc::new(Network::undisturbed(PASSING_ON));
    let without_one: Arc<OnceLock<Outcome>> = Arc::default();
    let mut jobs: Vec<(String, Box<dyn FnOnce() + Send>)> = vec![];
    // Those that wait for a silence take longest, and begin first.
    for &point in Point::ALL.iter().filter(|p| is_loss(**p)) {
        let expected = Arc::clone(&without_one);
        let work = move || {
            let found = lose_a_site(Some(point));
            assert_eq!(&found, expected.get_or_init(|| lose_a_site(None)));
        };
        jobs.push((point.name().to_owned(), Box::new(work)));
    }
    for (k, &point) in Point::ALL.iter().enumerate().filter(|(_, p)| !is_loss(**p)) {
        for &nth in visits(point) {
            let expected = Arc::clone(if shape(point).sites == PATH.sites { &path } else { &triangle });
            let work = move || assert_eq!(kill_and_go_on(shape(point), point, nth, (k + nth) % 3), *expected);
            jobs.push((format!("{}:{nth}", point.name()), Box::new(work)));
        }
        let (nth, expected) = (visits(point)[visits(point).len() / 2], Arc::clone(&passing_on));
        // Nothing is averaged, so nothing is committed without a release but at the end.
        let nth =
            if matches!(point, Point::ReceivedBeforeCommit | Point::ReceivedAfterCommit) { 1 } else { nth };
        let work = move || assert_eq!(kill_and_go_on(PASSING_ON, point, nth, 1 + k % 2), *expected);
        jobs.push((format!("{}:{nth}, passing on", point.name()), Box::new(work)));
    }
    in_parallel(jobs);
}
