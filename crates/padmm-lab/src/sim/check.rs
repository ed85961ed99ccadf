//! What is looked at in a world: when a site begins, and when all is over.

use std::collections::{BTreeMap, BTreeSet};

use padmm_core::message::SiteIndex;
use padmm_node::ledger::SiteLedger;

use super::consortium::{EPSILON, NAMES};
use super::disk::SimulatedDisk;
use super::invariant::Invariant;
use super::process::Process;
use super::world::{Machine, Tally, World};

/// How often a byte may be sent on average. Of a thousand schedules the worst came to 2.8.
const MOST_COPIES: f64 = 6.0;

impl World<'_> {
    /// Whoever begins does so when all others are ready, or known to be left behind.
    pub(super) fn check_start(&mut self, machine: usize) -> Result<(), Invariant> {
        let Some(Process { session, .. }) = self.processes.get(&machine) else { return Ok(()) };
        let site = self.machines[machine].site;
        if session.is_started() && self.begun.insert(site) {
            let left: BTreeSet<usize> = session.departures().iter().map(|d| d.lost.0).collect();
            let wire = self.wire.lock();
            let is_missing =
                |&other: &usize| other != site && !wire.ready.contains(&other) && !left.contains(&other);
            if let Some(missing) = (0..self.n_sites()).find(is_missing) {
                return Err(Invariant::AllWereReady { site: NAMES[site], missing: NAMES[missing] });
            }
        }
        Ok(())
    }

    pub(super) fn check_end(mut self, quiet: &BTreeMap<usize, Vec<u64>>) -> Result<Tally, Invariant> {
        let departed: BTreeMap<usize, Vec<usize>> = self
            .processes
            .range(..self.n_sites())
            .map(|(&site, process)| {
                let own = process.session.departures().into_iter().filter(|d| d.reporter.0 == site);
                (site, own.map(|d| d.lost.0).collect())
            })
            .collect();
        // A site and its copy have given up what each of them missed.
        let is_one = |site: &usize| departed.contains_key(site) && !self.has_copy(*site);
        for (a, lost) in departed.iter().filter(|(a, _)| is_one(a)).map(|(&a, lost)| (a, lost)) {
            for &b in lost.iter().filter(|b| is_one(b)) {
                // A site that has its model has no edge left to give up, but it knows.
                let knows = self.processes[&b]
                    .session
                    .departures()
                    .iter()
                    .any(|d| (d.reporter.0, d.lost.0) == (a, b));
                if !knows && !departed[&b].contains(&a) {
                    return Err(Invariant::SameDepartures { site: NAMES[a] });
                }
            }
        }
        self.check_duals(&departed)?;
        self.check_models()?;
        self.tally.departures = departed.values().map(|lost| lost.len() as u64).sum();
        self.tally.copies = self.wire.copies();
        if self.tally.copies > MOST_COPIES {
            return Err(Invariant::FewCopies { copies: self.tally.copies });
        }
        self.tally.disk_faults = self.machines.iter().map(|machine| machine.disk.n_faults()).sum();
        self.processes.clear();
        for Machine { site, disk, .. } in &self.machines {
            let (site, Some(head)) = (*site, disk.head()) else { continue };
            let ledger = SiteLedger::open_in(SimulatedDisk::path(), Box::new(disk.clone()), head)
                .map_err(|e| Invariant::Continues { site: NAMES[site], error: e.to_string() })?;
            let epsilon = ledger.epsilon_spent().value();
            if epsilon > EPSILON {
                return Err(Invariant::WithinBudget { site: NAMES[site], epsilon });
            }
        }
        let is_old = !self.put_back.is_empty() || self.machines.len() > self.n_sites();
        let is_like_quiet = !is_old && self.stopped.is_empty() && self.tally.departures == 0;
        if is_like_quiet {
            for (site, model) in &self.models {
                if quiet.get(site) != Some(model) {
                    return Err(Invariant::AsIfQuiet { site: NAMES[*site] });
                }
            }
            self.tally.is_as_if_quiet = true;
        }
        Ok(self.tally)
    }

    /// Those that averaged over the same sites have the same model, to the bit, a site and its copy included.
    fn check_models(&self) -> Result<(), Invariant> {
        let mut known: BTreeMap<Vec<SiteIndex>, usize> = BTreeMap::new();
        for (&machine, model) in &self.models {
            let Some(process) = self.processes.get(&machine) else { continue };
            // One whose old ledger was put back may have begun again.
            let Some(over) = process.session.outcome().and(process.session.agent().averaged_over()) else {
                continue;
            };
            let first = *known.entry(over).or_insert(machine);
            if self.models[&first] != *model {
                return Err(Invariant::SameModel { site: self.name(first), other: self.name(machine) });
            }
        }
        Ok(())
    }

    fn check_duals(&self, departed: &BTreeMap<usize, Vec<usize>>) -> Result<(), Invariant> {
        let left = |site: usize| -> Vec<usize> {
            let all = self.consortium.contract.neighbours(site).iter().copied();
            all.filter(|other| !departed.get(&site).is_some_and(|lost| lost.contains(other))).collect()
        };
        let dual = |a: usize, b: usize| -> Option<Vec<f64>> {
            // Of sites that are at the end; one whose old ledger was put back may have begun again.
            let session = &self.processes.get(&a)?.session;
            session.outcome()?;
            let duals = session.agent().algorithm().edge_duals();
            let place = left(a).iter().position(|&other| other == b)?;
            duals.get(place).map(|dual| dual.as_slice().to_vec())
        };
        let pairs = (0..self.n_sites()).flat_map(|a| left(a).into_iter().map(move |b| (a, b)));
        for (a, b) in pairs.filter(|(a, b)| a < b) {
            let (Some(one), Some(other)) = (dual(a, b), dual(b, a)) else { continue };
            if one.iter().zip(&other).any(|(x, y)| (x + y).abs() > 0.0) {
                return Err(Invariant::OppositeDuals { site: NAMES[a], neighbour: NAMES[b] });
            }
        }
        Ok(())
    }
}
