//! A site whose ledger is put back to an earlier state, in the middle of crashes and bad lines: whatever happens, what left for a
//! round is one payload. Every schedule is from a seed, which a failure names.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use common::network::*;
use padmm_core::algorithm::{AlgorithmKind, CONSENSUS_NEWTON, P_ADMM};
use padmm_core::message::{SiteIndex, Stage};
use padmm_node::contract;
use padmm_node::frame::{Announcement, Frame, Origin};
use padmm_node::identity::Home;
use padmm_node::ledger::SiteLedger;
use padmm_node::mailbox::NetworkEvent;
use padmm_node::session::SessionError;
use padmm_node::transport::memory::Weather;

const SITES: usize = 3;
/// The site whose ledger is put back.
const VICTIM: usize = 0;
const SCHEDULES: u64 = 200;
/// As many more, with less trouble: most of them come to their end.
const CALMER: u64 = 60;

fn triangle(algorithm: AlgorithmKind) -> &'static Consortium {
    static TRIANGLES: [OnceLock<Consortium>; 2] = [const { OnceLock::new() }; 2];
    let place = usize::from(algorithm == CONSENSUS_NEWTON);
    TRIANGLES[place]
        .get_or_init(|| Consortium::running(algorithm, SITES, "complete", contract::Silence::Wait))
}

/// Numbers from a seed, by splitmix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The files of a ledger: itself, its log if there is one, and its head.
fn files(ledger: &Path) -> [PathBuf; 3] {
    ["", "-wal", ".head"].map(|ending| PathBuf::from(format!("{}{ending}", ledger.display())))
}

/// Every file of a ledger, as bytes; files that are not there are not put back either.
fn copy_of(ledger: &Path) -> Vec<Option<Vec<u8>>> {
    files(ledger).iter().map(|file| std::fs::read(file).ok()).collect()
}

fn put_back(ledger: &Path, copy: &[Option<Vec<u8>>]) {
    let _ = std::fs::remove_file(format!("{}-shm", ledger.display()));
    for (file, bytes) in files(ledger).iter().zip(copy) {
        match bytes {
            Some(bytes) => std::fs::write(file, bytes).unwrap(),
            None => drop(std::fs::remove_file(file)),
        }
    }
}

/// What left, by whose it is and round, as bytes; what others passed on too.
type Wire = Arc<Mutex<BTreeMap<(usize, u32), BTreeSet<Vec<u8>>>>>;

fn watched(run: &Run<'_>) -> Wire {
    let wire = Wire::default();
    let seen = Arc::clone(&wire);
    run.network.watch(move |_, _, bytes| {
        let Ok(Frame::Model(model)) = Frame::decode(bytes) else { return };
        if model.turn.stage == Stage::Model {
            let place = (model.origin.sender.0, model.turn.number);
            seen.lock().unwrap().entry(place).or_default().insert(bytes.to_vec());
        }
    });
    wire
}

/// What a schedule came to.
#[derive(Default)]
struct Tally {
    /// Times that an earlier ledger was put back.
    rollbacks: u64,
    /// Whether the site noticed and stopped.
    stopped: bool,
    /// Whether everybody got its model.
    finished: bool,
    /// Rounds for which two different payloads left.
    doubled: Vec<(usize, u32)>,
}

/// Sites crash alone or all at once, and lose what is not committed; whenever the victim is down its ledger may be copied, or put
/// back from a copy. Its neighbours keep their disks.
///
/// In the calmer schedules crashes are rarer, and the ledger is put back twice at most.
fn schedule(algorithm: AlgorithmKind, seed: u64) -> Tally {
    let is_calmer = seed > SCHEDULES;
    let (one_in, most) = if is_calmer { (1200, (seed % 3)) } else { (120, u64::MAX) };
    let mut dice = Dice(seed);
    let weather = Weather { loss: 0.2, repeats: 0.2, longest_delay: Duration::from_millis(300) };
    let mut run = Run::with_all(triangle(algorithm), weather, seed);
    let wire = watched(&run);
    let mut tally = Tally::default();
    let mut copies: Vec<Vec<Option<Vec<u8>>>> = vec![];
    let mut away: BTreeMap<usize, Duration> = BTreeMap::new();
    let end = seconds(600);
    while run.now < end && run.stopped.is_empty() && !(away.is_empty() && run.are_done(&[0, 1, 2])) {
        run.step();
        let down: Vec<usize> = match dice.below(one_in) {
            0..2 => vec![dice.below(SITES as u64) as usize],
            2..4 => vec![VICTIM],
            4..6 => vec![0, 1, 2],
            _ => vec![],
        };
        for site in down {
            if run.sites.contains_key(&site) {
                run.kill(site);
                away.insert(site, run.now + Duration::from_millis(dice.below(1500)));
            }
            let ledger = run.ledger_path(VICTIM);
            if site == VICTIM && dice.one_in(2) {
                copies.push(copy_of(&ledger));
            } else if site == VICTIM && !copies.is_empty() && tally.rollbacks < most {
                put_back(&ledger, &copies[dice.below(copies.len() as u64) as usize]);
                tally.rollbacks += 1;
                // What is drawn again is not what was drawn before.
                run.seeds.insert(VICTIM, 1000 + tally.rollbacks);
            }
        }
        let back: Vec<usize> = away.iter().filter(|(_, until)| **until <= run.now).map(|b| *b.0).collect();
        for site in back {
            away.remove(&site);
            run.start(site);
        }
    }
    for (site, error) in &run.stopped {
        let found = matches!(error, SessionError::OldLedger { .. });
        assert!(*site == VICTIM && found, "seed {seed}: {} stopped: {error}", NAMES[*site]);
    }
    tally.stopped = !run.stopped.is_empty();
    tally.finished = run.are_done(&[0, 1, 2]);
    assert!(
        tally.stopped || tally.finished,
        "seed {seed}: the run neither ended nor stopped:\n{}",
        run.notes.lines.lock().unwrap().join("\n")
    );
    let wire = wire.lock().unwrap();
    tally.doubled = wire.iter().filter(|(_, payloads)| payloads.len() > 1).map(|(&place, _)| place).collect();
    tally
}

#[test]
fn no_schedule_of_crashes_lost_frames_and_ledgers_put_back_gives_two_payloads_for_a_round() {
    no_schedule_gives_two_payloads(P_ADMM);
}

#[test]
fn nor_does_one_where_releases_are_passed_on() {
    no_schedule_gives_two_payloads(CONSENSUS_NEWTON);
}

fn no_schedule_gives_two_payloads(algorithm: AlgorithmKind) {
    triangle(algorithm);
    // Most of the time the disk is waited for, so that some at once are faster; what each comes to is from its seed alone.
    let (next, tallies) = (AtomicU64::new(1), Mutex::new(vec![]));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > SCHEDULES + CALMER {
                        return;
                    }
                    let tally = schedule(algorithm, seed);
                    tallies.lock().unwrap().push((seed, tally));
                }
            });
        }
    });
    let mut tallies = tallies.into_inner().unwrap();
    tallies.sort_by_key(|(seed, _)| *seed);
    let doubled: Vec<String> = tallies
        .iter()
        .filter(|(_, t)| !t.doubled.is_empty())
        .map(|(seed, t)| format!("seed {seed}: {:?}", t.doubled))
        .collect();
    let rollbacks: u64 = tallies.iter().map(|(_, t)| t.rollbacks).sum();
    let stopped = tallies.iter().filter(|(_, t)| t.stopped).count();
    let finished = tallies.iter().filter(|(_, t)| t.finished).count();
    assert!(doubled.is_empty(), "{} schedules with two payloads:\n{}", doubled.len(), doubled.join("\n"));
    // Without these numbers the test would say little.
    assert!(rollbacks > 500 && stopped > 150 && finished > 30, "{rollbacks} {stopped} {finished}");
}

/// The newest ledger is set aside in the site's own folder of ledgers, and a backup is put in its place: the copy is the same ledger,
/// so that its entries prove nothing, and the neighbours' memory stops the site.
#[test]
fn a_copy_of_the_newest_ledger_in_the_folder_does_not_answer_for_a_backup() {
    for algorithm in [P_ADMM, CONSENSUS_NEWTON] {
        a_copy_does_not_answer_for_a_backup(algorithm);
    }
}

fn a_copy_does_not_answer_for_a_backup(algorithm: AlgorithmKind) {
    // Homes of its own: what lies in their folders of ledgers is seen by all runs of a consortium.
    let triangle = Consortium::running(algorithm, SITES, "complete", contract::Silence::Wait);
    let mut run = Run::with_all(&triangle, Weather::default(), 1);
    let wire = watched(&run);
    run.until(|run| run.round(VICTIM) >= 2);
    run.kill(VICTIM);
    let ledger = run.ledger_path(VICTIM);
    let backup = copy_of(&ledger);
    run.start(VICTIM);
    run.until(|run| run.are_done(&[0, 1, 2]));
    run.kill(VICTIM);
    let aside = run.consortium.sites[VICTIM].0.folder().join("../../ledgers/newest.ledger");
    put_back(&aside, &copy_of(&ledger));
    put_back(&ledger, &backup);
    run.seeds.insert(VICTIM, 99);
    run.start(VICTIM);
    run.for_as_long_as(seconds(30));
    std::fs::remove_file(&aside).unwrap();
    let doubled = wire.lock().unwrap().values().filter(|payloads| payloads.len() > 1).count();
    assert_eq!(doubled, 0, "rounds left a second time");
    let error = run.stopped.get(&VICTIM).expect("the neighbours know of later releases");
    assert!(matches!(error, SessionError::OldLedger { .. }), "{error}");
}

/// A greeting may come too early to show what its receiver's last process has announced, or go to a copy of its home. Whoever then
/// announces something else, or something earlier, is shown what is in writing: it would wait for a receipt for ever.
#[test]
fn a_site_that_announces_something_else_is_shown_what_its_neighbour_has_in_writing() {
    let consortium = Consortium::running(P_ADMM, 2, "path", contract::Silence::Wait);
    let mut run = Run::with_all(&consortium, Weather::default(), 1);
    // What it says is written by the test.
    run.hanging.insert(VICTIM);
    let shown = Arc::new(Mutex::new(vec![]));
    let seen = Arc::clone(&shown);
    run.network.watch(move |from, _, bytes| {
        if let (1, Ok(Frame::Hello { shown, .. })) = (from.0, Frame::decode(bytes)) {
            seen.lock().unwrap().extend(shown.iter().map(|bytes| bytes.to_vec()));
        }
    });
    let home = Home::open(&consortium.sites[VICTIM].0.folder().join("../..")).unwrap();
    let origin = Origin { plan: consortium.contract.hash().0, sender: SiteIndex(VICTIM) };
    let announce = |round: u32, digest: u8| {
        let (ledger, entry) = ([1; 32], 4 + u64::from(round));
        let new = Announcement { origin, round, ledger, entry, head: [2; 32], digest: [digest; 32] };
        Frame::Announce(new).encode(home.identity()).to_vec()
    };
    let mut hear = |bytes: Vec<u8>| -> Vec<Vec<u8>> {
        shown.lock().unwrap().clear();
        let (now, neighbour) = (run.now, run.sites.get_mut(&1).unwrap());
        let event = NetworkEvent::Frame { from: SiteIndex(VICTIM), bytes };
        neighbour.session.handle(now, event, &neighbour.transport).unwrap();
        run.for_as_long_as(seconds(1));
        std::mem::take(&mut *shown.lock().unwrap())
    };
    let first = announce(2, 10);
    assert!(hear(first.clone()).is_empty(), "it is news, and gets a receipt");
    for other in [announce(2, 11), announce(1, 12)] {
        let shown = hear(other);
        assert!(!shown.is_empty() && shown.iter().all(|bytes| *bytes == first), "{shown:?}");
    }
}

/// An older ledger may hold a neighbour's release and not its announcement: it was given again when it was asked for. The neighbour is
/// then shown the release itself, which it also knows from its own outbox.
#[test]
fn a_release_that_is_shown_as_proof_is_looked_at_though_it_is_known() {
    for algorithm in [P_ADMM, CONSENSUS_NEWTON] {
        let mut run = Run::with_all(triangle(algorithm), Weather::default(), 7);
        run.until(|run| run.round(VICTIM) >= 2);
        run.kill(VICTIM);
        let file = rusqlite::Connection::open(run.ledger_path(VICTIM)).unwrap();
        assert_eq!(file.execute("DELETE FROM announced", []).unwrap(), 2);
        file.close().unwrap();
        run.start(VICTIM);
        run.until(|run| run.are_done(&[0, 1, 2]));
        run.end();
    }
}

/// Of two sites that work and one that gives no receipts, a release that is in the ledger reaches nobody, not even who asks for it.
#[test]
fn a_release_leaves_to_nobody_before_every_neighbour_has_it_in_writing() {
    for algorithm in [P_ADMM, CONSENSUS_NEWTON] {
        a_release_waits_for_every_receipt(algorithm);
    }
}

fn a_release_waits_for_every_receipt(algorithm: AlgorithmKind) {
    let mut run = Run::with_all(triangle(algorithm), Weather::default(), 3);
    let wire = watched(&run);
    let left =
        |site: usize| wire.lock().unwrap().keys().filter(|k| k.0 == site).map(|k| k.1).max().unwrap_or(0);
    run.until(|_| left(2) >= 2);
    run.hanging.insert(2);
    run.for_as_long_as(seconds(60));
    let hash = run.consortium.contract.hash().to_string();
    let written = |run: &Run<'_>, site: usize| {
        let view = SiteLedger::read(&run.ledger_path(site)).unwrap();
        view.state().run(&hash).unwrap().n_released() as u32
    };
    let held_back: Vec<usize> = (0..2).filter(|&site| written(&run, site) == left(site) + 1).collect();
    assert!(!held_back.is_empty(), "no release was held back");
    let line = run.sites[&held_back[0]].session.waiting_for(run.now).unwrap();
    assert!(line.contains("has not left: waiting for cedar") && line.contains("to confirm it"), "{line}");
    // It is held back by a new process too.
    for &site in &held_back {
        let before = left(site);
        run.kill(site);
        run.start(site);
        run.for_as_long_as(seconds(60));
        assert_eq!(left(site), before, "{}", NAMES[site]);
    }
    run.hanging.clear();
    run.until(|run| run.are_done(&[0, 1, 2]));
    run.end();
}
