//! What must be so of links, whoever speaks over them.

use std::time::Duration;

use padmm_node::link::{ConnectionId, DEAD, SILENT};

use super::consortium::NAMES;
use super::invariant::Invariant;
use super::network::{Inner, Network, Plugged, ProcessId};

/// So long after everything works again, all are connected: a dead connection is noticed by its silence, and a call takes part of a second.
pub(super) const RECONNECTED: Duration = Duration::from_secs(5);
/// By then what neither end writes to is closed as well.
const TIDIED: Duration = RECONNECTED.saturating_add(DEAD);
/// Connections of two processes that both hold then: each may write to the one that it dialled.
const MOST_LIVE: usize = 2;
/// Calls to one neighbour: a few in quick succession, and from then on about two a second.
const FIRST_CALLS: f64 = 8.0;
const CALLS_A_SECOND: f64 = 3.0;

impl Network {
    /// What is so at any time.
    pub(super) fn check_links(&self) -> Result<(), Invariant> {
        let inner = self.lock();
        for process in inner.processes.values() {
            for (&other, end) in &process.ends {
                let (site, neighbour) = (NAMES[process.site], NAMES[other]);
                let time = inner.now.saturating_sub(end.since).as_secs_f64();
                if end.calls as f64 > FIRST_CALLS + CALLS_A_SECOND * time {
                    return Err(Invariant::NoStorm { site, neighbour, calls: end.calls });
                }
                let Some(active) = end.link.active() else { continue };
                let heard = end.heard.get(&active).copied().unwrap_or_default();
                let is_silent = inner.now.saturating_sub(heard) > SILENT;
                if is_silent && end.heard.values().any(|&other| other > heard) {
                    return Err(Invariant::LiveReplacesDead { site, neighbour });
                }
            }
        }
        Ok(())
    }

    /// What is so once nothing has been wrong for `calm`: between sites that have one process each.
    pub(super) fn check_settled(&self, calm: Duration) -> Result<(), Invariant> {
        let inner = self.lock();
        // A copy that has just gone was connected in its site's place.
        let age = |process: &Plugged| inner.now.saturating_sub(inner.changed[&process.site]).min(calm);
        let is_old = |process: &Plugged| age(process) > RECONNECTED;
        for (&id, process) in inner.processes.iter().filter(|(_, process)| is_old(process)) {
            for (&other, end) in &process.ends {
                let Some((there, theirs)) = inner.only_process(other).filter(|(_, p)| is_old(p)) else {
                    continue;
                };
                if inner.only_process(process.site).is_none() {
                    continue;
                }
                let (site, neighbour) = (NAMES[process.site], NAMES[other]);
                let held_there = &theirs.ends[&process.site].heard;
                let is_live =
                    |over: &ConnectionId| inner.links(*over, id, there) && held_there.contains_key(over);
                if !end.link.active().is_some_and(|active| is_live(&active)) {
                    return Err(Invariant::Reconnected { site, neighbour });
                }
                let live = end.heard.keys().filter(|over| is_live(over)).count();
                if live > MOST_LIVE && age(process).min(age(theirs)) > TIDIED {
                    return Err(Invariant::FewConnections { site, neighbour, live });
                }
            }
        }
        Ok(())
    }
}

impl Inner {
    fn only_process(&self, site: usize) -> Option<(ProcessId, &Plugged)> {
        let mut all = self.processes.iter().filter(|(_, process)| process.site == site);
        all.next().filter(|_| all.next().is_none()).map(|(&id, process)| (id, process))
    }

    /// Whether a connection is between these two and alive.
    fn links(&self, over: ConnectionId, a: ProcessId, b: ProcessId) -> bool {
        self.lines.get(&over).is_some_and(|line| {
            let ends = line.ends.map(|end| end.0);
            !line.is_severed && ends.contains(&a) && ends.contains(&b)
        })
    }
}
