//! Random trouble from fixed seeds: sites are killed, paused and cut off while they work, and the run still ends as if nothing had been.
//! A failure names its seed.

use crate::common;

use std::sync::Arc;

use common::{Dice, Network, Outcome, Running, Shape, in_parallel, until};
use padmm_core::algorithm::{CONSENSUS_NEWTON, P_ADMM};
use padmm_lab::links::Links;
use padmm_node::contract::Silence;
use padmm_node::fault::Point;
use rustix::process::Signal;

/// By turns one that talks to neighbours only, and one whose releases are passed on.
const RINGS: [Shape; 2] = [RING, Shape { algorithm: CONSENSUS_NEWTON, ..RING }];
const RING: Shape = Shape { algorithm: P_ADMM, sites: 4, graph: "ring", rounds: 40, silence: Silence::Wait };
const SEEDS: u64 = 20;

/// One thing that happens to the network.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// A site is killed from outside; it is started again when its end is seen.
    Kill(usize),
    /// A site stops for a while.
    Pause(usize),
    /// Nothing gets through between two neighbours for a while.
    Cut((usize, usize)),
    /// A site is killed, and the process after it is killed at this fault point.
    KillTwice(usize, Point, usize),
}

/// What happens, and after how many rounds of the whole network.
fn schedule(seed: u64, links: &Links) -> Vec<(usize, Trouble)> {
    let mut dice = Dice::new(seed);
    let pairs = links.pairs();
    let total = RING.sites * RING.rounds as usize;
    let mut plan: Vec<(usize, Trouble)> = (0..4 + dice.below(4))
        .map(|_| {
            let (after, site) = (dice.below(total), dice.below(RING.sites));
            let trouble = match dice.below(4) {
                0 => Trouble::Kill(site),
                1 => Trouble::Pause(site),
                2 => Trouble::Cut(pairs[dice.below(pairs.len())]),
                _ => {
                    let point = Point::ALL[dice.below(Point::ALL.len())];
                    Trouble::KillTwice(site, point, 1 + dice.below(4))
                }
            };
            (after, trouble)
        })
        .collect();
    plan.sort_by_key(|step| step.0);
    plan
}

/// Rounds that all sites together have told of.
fn progress(network: &Network) -> usize {
    (0..network.sites.len()).map(|site| network.rounds_told(site)).sum()
}

/// Lets the others go on until they are stuck, or done with what they can do: many looks in a row that find nothing new. Nothing depends
/// on how long that takes.
fn until_stuck(network: &Network, running: &mut Running<'_>) {
    let (mut last, mut same) = (progress(network), 0);
    until("the network is stuck", || {
        running.tend();
        let now = progress(network);
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (same > 30).then_some(())
    });
}

fn run(seed: u64) -> Outcome {
    let (network, links) = Network::make_linked(RINGS[seed as usize % 2]);
    let mut running = Running::new(&network);
    running.start_all();
    for (after, trouble) in schedule(seed, &links) {
        until("the network comes so far", || {
            let is_over = running.tend();
            (is_over || progress(&network) >= after).then_some(())
        })
        .unwrap_or_else(|| panic!("the network did not come to {after} rounds before {trouble:?}"));
        match trouble {
            Trouble::Kill(site) => running.signal(site, Signal::KILL),
            Trouble::Pause(site) => {
                running.is_disturbed(site);
                running.signal(site, Signal::STOP);
                until_stuck(&network, &mut running);
                running.signal(site, Signal::CONT);
            }
            Trouble::Cut(pair) => {
                running.is_disturbed(pair.0);
                running.is_disturbed(pair.1);
                links.cut(pair, true);
                until_stuck(&network, &mut running);
                links.cut(pair, false);
            }
            Trouble::KillTwice(site, point, nth) => {
                if running.runs(site) {
                    running.signal(site, Signal::KILL);
                    running.wait(site);
                    running.is_disturbed(site);
                    running.start_with(site, &["--test-kill", &format!("{}:{nth}", point.name())]);
                }
            }
        }
    }
    running.finish();
    for pair in links.pairs() {
        assert!(links.forwarded(pair) > 0, "the link {pair:?} was not used");
    }
    network.outcome(&[])
}

#[test]
fn twenty_random_schedules_of_trouble_end_with_the_model_of_a_quiet_run() {
    let quiet = Arc::new(RINGS.map(Network::undisturbed));
    let job = |seed| -> (String, Box<dyn FnOnce() + Send>) {
        let quiet = Arc::clone(&quiet);
        (format!("seed {seed}"), Box::new(move || assert_eq!(run(seed), quiet[seed as usize % 2])))
    };
    in_parallel((1..=SEEDS).map(job).collect());
}

/// Two sites, and many rounds.
const PAIR: Shape = Shape { algorithm: P_ADMM, sites: 2, graph: "path", rounds: 200, silence: Silence::Wait };

#[test]
fn a_link_that_is_cut_before_the_start_lets_nothing_through() {
    let (network, links) = Network::make_linked(PAIR);
    links.cut((0, 1), true);
    let mut running = Running::new(&network);
    running.start_all();
    // Both have tried to reach each other for some seconds when they first say whom they wait for.
    running.wait_for(0, "waiting for east");
    running.wait_for(1, "waiting for north");
    assert_eq!(links.forwarded((0, 1)), 0);
    assert_eq!(progress(&network), 0);
    links.cut((0, 1), false);
    running.finish();
    network.outcome(&[]);
}

#[test]
fn a_link_that_is_cut_in_a_run_stops_it_until_it_is_mended() {
    let (network, links) = Network::make_linked(PAIR);
    let mut running = Running::new(&network);
    // While one of two sites is down the run stands still, so that the link is cut before its end however fast the sites are.
    running.start(0);
    running.start_with(1, &["--test-kill", "send-after:10"]);
    running.wait(1);
    links.cut((0, 1), true);
    running.start(1);
    running.wait_for(1, "waiting for north");
    let so_far = progress(&network);
    assert!((10..PAIR.rounds as usize).contains(&so_far), "the sites went on around the link: {so_far}");
    links.cut((0, 1), false);
    running.finish();
    network.outcome(&[]);
}
