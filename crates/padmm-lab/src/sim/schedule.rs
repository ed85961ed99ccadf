//! What happens in a world, and when: made from a seed, printed, and made shorter.

use std::fmt;
use std::time::Duration;

use padmm_core::graph::PublicSeed;
use padmm_node::transport::memory::Weather;

use super::disk::DiskFault;
use super::invariant::Invariant;

/// Numbers from a seed.
pub(super) struct Dice(PublicSeed);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(PublicSeed::new(seed))
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.below(most))
    }
}

/// Something that happens to a world. Sites are counted modulo how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    /// The site's process ends after it has passed so many fault points, as by a power cut, and comes back later.
    Crash { site: usize, points: u64, away: Duration, keeps_head: bool },
    /// All processes end at once.
    CrashAll { away: Duration },
    /// The site's first process comes late.
    Late { site: usize, time: Duration },
    /// The line between a site and one of its neighbours.
    Cut { site: usize, neighbour: usize, time: Duration },
    /// The same in one direction: what the neighbour sends does not arrive, and neither end is told.
    Deaf { site: usize, neighbour: usize, time: Duration },
    /// The site's process does nothing, while its network answers.
    Hang { site: usize, time: Duration },
    /// The site's disk, after so many commits; somebody mends it later and starts the site again.
    Disk { site: usize, fault: DiskFault, commits: u32, time: Duration },
    /// A copy of the site's ledger is made.
    Copy { site: usize },
    /// The site's process ends, and its ledger is replaced by the copy.
    PutBack { site: usize, away: Duration },
    /// The connections between a site and one of its neighbours die, and neither end is told.
    Sever { site: usize, neighbour: usize },
    /// The site gets another address for a while: its connections die, and nobody finds it.
    Move { site: usize, time: Duration },
    /// A copy of the site's home is made, and comes up elsewhere beside the site, for a while or for good.
    Clone { site: usize, after: Duration, time: Option<Duration> },
    /// Frames travel differently from now on.
    Weather { weather: Weather },
}

/// A seed, and what it makes happen.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub(super) seed: u64,
    /// Which of the consortia.
    pub(super) shape: usize,
    pub(super) events: Vec<(Duration, Trouble)>,
}

/// The same for links alone, which have no end.
const LINKS_TROUBLED: u64 = 60_000;
/// Troubles begin in so much of simulated time: about what an undisturbed run takes.
const TROUBLED: u64 = 4_000;

impl Schedule {
    /// The schedule of a seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let shape = dice.below(u64::MAX) as usize;
        let has_rollbacks = dice.chance(3);
        let n = 2 + dice.below(9);
        let mut events: Vec<(Duration, Trouble)> =
            (0..n).map(|_| (dice.millis(TROUBLED), trouble(&mut dice, has_rollbacks))).collect();
        if dice.chance(4) {
            events.push((dice.millis(TROUBLED), copied_home(&mut dice)));
        }
        if dice.chance(5) {
            let site = dice.below(1 << 16) as usize;
            events.push((Duration::ZERO, Trouble::Late { site, time: dice.millis(20_000) }));
        }
        // Most networks are bad from the beginning.
        if !dice.chance(4) {
            events.push((Duration::ZERO, weather(&mut dice)));
        }
        events.sort_by_key(|(at, _)| *at);
        Self { seed, shape, events }
    }

    /// The schedule of a seed for links alone.
    pub(super) fn of_links(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let shape = dice.below(u64::MAX) as usize;
        let n = 2 + dice.below(24);
        let mut events: Vec<(Duration, Trouble)> =
            (0..n).map(|_| (dice.millis(LINKS_TROUBLED), trouble_of_links(&mut dice))).collect();
        events.sort_by_key(|(at, _)| *at);
        Self { seed, shape, events }
    }

    /// The shortest schedule that is found by leaving out events one by one, for as long as it still breaks something, and what it breaks.
    pub(super) fn shrunk(&self, breaks: impl Fn(&Self) -> Option<Invariant>) -> (Self, Invariant) {
        let mut best = self.clone();
        let mut found = breaks(self).expect("a schedule that is made shorter breaks something");
        let mut place = 0;
        while place < best.events.len() {
            let mut tried = best.clone();
            tried.events.remove(place);
            match breaks(&tried) {
                Some(other) => (best, found) = (tried, other),
                None => place += 1,
            }
        }
        (best, found)
    }
}

fn weather(dice: &mut Dice) -> Trouble {
    let (loss, repeats) = (dice.below(30) as f64 / 100.0, dice.below(30) as f64 / 100.0);
    Trouble::Weather { weather: Weather { loss, repeats, longest_delay: dice.millis(300) } }
}

/// A copy of a home is there at once or later, when the site has gone on; most are there for a while.
fn copied_home(dice: &mut Dice) -> Trouble {
    let (site, is_at_once, is_for_good) = (dice.below(1 << 16) as usize, dice.chance(2), dice.chance(3));
    let after = if is_at_once { Duration::ZERO } else { dice.millis(5_000) };
    let time = dice.millis(20_000);
    Trouble::Clone { site, after, time: (!is_for_good).then_some(time) }
}

fn trouble_of_links(dice: &mut Dice) -> Trouble {
    let (site, neighbour) = (dice.below(1 << 16) as usize, dice.below(1 << 16) as usize);
    match dice.below(9) {
        0..2 => Trouble::Crash { site, points: 0, away: dice.millis(20_000), keeps_head: true },
        2 => Trouble::CrashAll { away: dice.millis(3_000) },
        3 => Trouble::Cut { site, neighbour, time: dice.millis(30_000) },
        4 => Trouble::Deaf { site, neighbour, time: dice.millis(30_000) },
        5 => Trouble::Sever { site, neighbour },
        6 => Trouble::Move { site, time: dice.millis(30_000) },
        7 => copied_home(dice),
        _ => weather(dice),
    }
}

fn trouble(dice: &mut Dice, has_rollbacks: bool) -> Trouble {
    let site = dice.below(1 << 16) as usize;
    match dice.below(if has_rollbacks { 14 } else { 11 }) {
        0..4 => Trouble::Crash {
            site,
            points: dice.below(40),
            away: dice.millis(3_000),
            keeps_head: dice.chance(2),
        },
        4 => Trouble::CrashAll { away: dice.millis(3_000) },
        5 => {
            let (neighbour, time) = (dice.below(1 << 16) as usize, dice.millis(20_000));
            match dice.chance(2) {
                true => Trouble::Cut { site, neighbour, time },
                false => Trouble::Deaf { site, neighbour, time },
            }
        }
        6 => Trouble::Hang { site, time: dice.millis(20_000) },
        7..9 => {
            let fault = [DiskFault::Full, DiskFault::Lost, DiskFault::KeptAfterAll][dice.below(3) as usize];
            Trouble::Disk { site, fault, commits: dice.below(12) as u32, time: dice.millis(5_000) }
        }
        9 => weather(dice),
        10 => match dice.chance(2) {
            true => Trouble::Sever { site, neighbour: dice.below(1 << 16) as usize },
            false => Trouble::Move { site, time: dice.millis(20_000) },
        },
        11 => Trouble::Copy { site: 0 },
        // One site's ledgers are copied and put back, so that copies are there to be put back.
        _ => Trouble::PutBack { site: 0, away: dice.millis(3_000) },
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = self.events.iter().map(|(at, what)| format!("{} ms {what:?}", at.as_millis()));
        write!(f, "{}", events.collect::<Vec<_>>().join("; "))
    }
}
