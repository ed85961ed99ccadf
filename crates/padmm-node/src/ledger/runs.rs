//! A run in the ledger: its start, its charges and releases, its losses, its end.

use padmm_core::message::Turn;
use padmm_privacy::{Delta, Epsilon, Event, Payload, PrivacyError, Spending};

use super::chain::Digest;
use super::entry::{Entry, Forfeited, NeighbourLost, Released, RunFinished, RunStarted};
use super::error::LedgerError;
use super::site::SiteLedger;
use super::state::{Loss, RunState};
use crate::fault::{self, Point};

/// A release that a plan will make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedRelease {
    /// Counted from 1; the plan has at most one release for each.
    pub round: u32,
    /// What will be done to the data.
    pub event: Event,
    /// Integers of the release, one for each coefficient.
    pub n_features: usize,
    /// The grid's step is two to this power.
    pub exponent: i32,
}

/// A run that the site agreed to.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStart {
    /// Hash of the contract, in hexadecimal digits.
    pub run: String,
    /// What people call the plan; two runs may share it.
    pub plan_name: String,
    /// The site's name in the plan.
    pub site: String,
    /// Private rounds of the plan.
    pub rounds: u32,
    /// Every release that the plan makes of this site's data.
    pub planned: Vec<PlannedRelease>,
    /// What the whole run is planned to cost by itself.
    pub epsilon_exact: Epsilon,
    /// The delta at which `epsilon_exact` holds.
    pub delta: Delta,
    /// Where the noise comes from, in words.
    pub noise: String,
}

/// What the envelope of a release is made from.
#[derive(Debug)]
pub struct SealRequest<'a> {
    /// The round that was charged for it, counted from 1.
    pub round: u32,
    /// The integers that will leave, noise included.
    pub payload: &'a Payload,
    /// Position of the release in this ledger.
    pub seq: u64,
    /// Hash of the entry before it: a neighbour that keeps it can tell whether this ledger was ever replaced by an older copy.
    pub previous_head: Digest,
}

impl SiteLedger {
    /// Enters a run, or continues it if it was entered before.
    ///
    /// Refused if what was spent so far and every release of the run that is not charged yet would cross the cap together.
    pub fn start_run(&mut self, start: &RunStart) -> Result<(), LedgerError> {
        let entry = RunStarted {
            run: start.run.clone(),
            plan_name: start.plan_name.clone(),
            site: start.site.clone(),
            rounds: start.rounds,
            epsilon_exact: start.epsilon_exact,
            delta: start.delta,
            noise: start.noise.clone(),
        };
        self.check_run(start)?;
        if self.is_started(&start.run) {
            return Ok(());
        }
        let around = (Point::RunBeforeStart, Point::RunAfterStart);
        self.append(Entry::RunStarted(entry), None, Some(around))
    }

    /// Refuses a run that was entered otherwise before, and one whose releases that are not charged yet would cross the cap
    /// together with what was spent; writes nothing.
    pub fn check_run(&mut self, start: &RunStart) -> Result<(), LedgerError> {
        let known = self.state.run(&start.run);
        if let Some(known) = known {
            self.check_same(&known.start, start)?;
        }
        let is_charged = |round: u32| known.is_some_and(|run| run.charges.contains_key(&round));
        let rest: Vec<&PlannedRelease> = start.planned.iter().filter(|p| !is_charged(p.round)).collect();
        let other = if rest.len() < start.planned.len() { "other " } else { "" };
        let within = self.check_cap(&format!("the {other}{} releases of this run", rest.len()), rest)?;
        self.within_cap = Some(within);
        Ok(())
    }

    /// A run is one thing from its first process to its last: what was begun with noise of one kind is not finished with another.
    fn check_same(&self, known: &RunStarted, start: &RunStart) -> Result<(), LedgerError> {
        let (path, run) = (self.path.clone(), start.run.clone());
        let what = match known {
            k if k.site != start.site => "site",
            k if k.rounds != start.rounds => "number of rounds",
            k if (k.epsilon_exact, k.delta) != (start.epsilon_exact, start.delta) => "planned cost",
            k if k.noise != start.noise => {
                let (recorded, here) = (k.noise.clone(), start.noise.clone());
                return Err(LedgerError::OtherNoise { path, run, recorded, here });
            }
            _ => return Ok(()),
        };
        Err(LedgerError::RunDiffers { path, run, what })
    }

    /// Whether the run is in the ledger, finished or not.
    pub fn is_started(&self, run: &str) -> bool {
        self.state.run(run).is_some()
    }

    /// Refuses what would cross the cap together with everything written and reserved. Exactly the cap is allowed.
    fn check_cap<'a>(
        &self,
        what: &str,
        releases: impl IntoIterator<Item = &'a PlannedRelease>,
    ) -> Result<Spending, LedgerError> {
        let add = |spending: &mut Spending, r: &PlannedRelease| -> Result<(), PrivacyError> {
            spending.add(&r.event, r.n_features, r.exponent)
        };
        let mut spending = self.spending();
        for release in self.reserved.values() {
            add(&mut spending, release)?;
        }
        let cap = self.cap();
        let before = spending;
        for release in releases {
            add(&mut spending, release)?;
        }
        // Epsilon grows with what is spent, and finding it takes a while: a part of what was found to fit, fits.
        if self.within_cap.is_some_and(|within| spending.is_at_most(&within)) {
            return Ok(spending);
        }
        let total = spending.epsilon(cap.delta).value();
        if total <= cap.epsilon.value() {
            return Ok(spending);
        }
        let spent = before.epsilon(cap.delta).value();
        let (cap, delta) = (cap.epsilon.value(), cap.delta.value());
        Err(LedgerError::CapReached { what: what.to_owned(), spent, total, cap, delta })
    }

    /// The run, if entries may be added to it.
    fn running(&self, run: &str) -> Result<&RunState, LedgerError> {
        match self.state.run(run) {
            None => Err(LedgerError::UnknownRun { path: self.path.clone(), run: run.to_owned() }),
            Some(state) if state.is_finished => {
                Err(LedgerError::RunOver { path: self.path.clone(), run: run.to_owned() })
            }
            Some(state) => Ok(state),
        }
    }

    /// Charges a round in memory. The charge is written with the release; a process that ends before has released nothing.
    pub fn reserve(&mut self, run: &str, release: &PlannedRelease) -> Result<(), LedgerError> {
        self.may_write()?;
        let round = release.round;
        let key = (run.to_owned(), round);
        if self.running(run)?.charges.contains_key(&round) || self.reserved.contains_key(&key) {
            return Err(LedgerError::AlreadyCharged { path: self.path.clone(), run: run.to_owned(), round });
        }
        self.check_cap(&format!("round {round} of this run"), [release])?;
        self.reserved.insert(key, *release);
        fault::at(Point::ChargeReserved);
        Ok(())
    }

    /// Writes a release that was reserved, with its charge and all staged messages, in one transaction. The bytes may leave when it
    /// returns.
    pub fn commit_release(
        &mut self,
        run: &str,
        round: u32,
        payload: &Payload,
        seal: &dyn Fn(&SealRequest<'_>) -> Vec<u8>,
    ) -> Result<(), LedgerError> {
        self.may_write()?;
        let key = (run.to_owned(), round);
        let site = self.running(run)?.start.site.clone();
        let Some(reserved) = self.reserved.get(&key).copied() else {
            return Err(LedgerError::NotCharged { run: run.to_owned(), round });
        };
        let as_planned = |exponent: i32, n: usize| exponent == reserved.exponent && n == reserved.n_features;
        match payload {
            Payload::Plain(_) => return Err(PrivacyError::NotGaussian { by: "a site's ledger" }.into()),
            Payload::Grid { exponent, values } if as_planned(*exponent, values.len()) => {}
            Payload::Grid { .. } => return Err(LedgerError::NotPlanned { run: run.to_owned(), round }),
        }
        let request = SealRequest { round, payload, seq: self.head.seq + 1, previous_head: self.head.hash };
        let bytes = seal(&request);
        let entry = Released {
            run: run.to_owned(),
            site,
            round,
            event: reserved.event,
            rho: reserved.event.rho()?,
            n_features: reserved.n_features,
            exponent: reserved.exponent,
            bytes: bytes.len() as u64,
        };
        let around = (Point::ReleaseBeforeCommit, Point::ReleaseAfterCommit);
        self.append(Entry::Released(entry), Some(bytes), Some(around))?;
        self.reserved.remove(&key);
        Ok(())
    }

    /// Charges a round permanently in which nothing leaves.
    pub fn forfeit(&mut self, run: &str, release: &PlannedRelease, reason: &str) -> Result<(), LedgerError> {
        let round = release.round;
        let state = self.running(run)?;
        if state.charges.contains_key(&round) {
            return Err(LedgerError::AlreadyCharged { path: self.path.clone(), run: run.to_owned(), round });
        }
        let entry = Forfeited {
            run: run.to_owned(),
            site: state.start.site.clone(),
            round,
            event: release.event,
            rho: release.event.rho()?,
            n_features: release.n_features,
            exponent: release.exponent,
            reason: reason.to_owned(),
        };
        self.append(Entry::Forfeited(entry), None, None)?;
        self.reserved.remove(&(run.to_owned(), round));
        Ok(())
    }

    /// Charges permanently what was reserved for a round that then failed; nothing if nothing was.
    pub fn forfeit_reserved(&mut self, run: &str, round: u32, reason: &str) -> Result<(), LedgerError> {
        match self.reserved.get(&(run.to_owned(), round)).copied() {
            Some(release) if !self.is_stopped => self.forfeit(run, &release, reason),
            _ => Ok(()),
        }
    }

    /// Notes that the run continues without a site, or that the mean at its end is formed without it. A loss that is known already is not
    /// written again.
    pub fn lose_neighbour(&mut self, run: &str, neighbour: &str, turn: Turn) -> Result<(), LedgerError> {
        if self
            .running(run)?
            .losses
            .iter()
            .any(|loss| loss.neighbour == neighbour && loss.turn.stage == turn.stage)
        {
            return Ok(());
        }
        let (stage, number) = (turn.stage.number(), turn.number);
        let lost =
            NeighbourLost { run: run.to_owned(), neighbour: neighbour.to_owned(), stage, turn: number };
        let around = (Point::LossBeforeCommit, Point::LossAfterCommit);
        self.append(Entry::NeighbourLost(lost), None, Some(around))
    }

    /// Neighbours that a run lost, in order.
    pub fn losses(&self, run: &str) -> &[Loss] {
        self.state.run(run).map_or(&[], |run| &run.losses)
    }

    /// Notes the end of a run, once.
    pub fn finish_run(&mut self, run: &str) -> Result<(), LedgerError> {
        if self.is_finished(run) {
            return Ok(());
        }
        let delta = self.cap().delta;
        let epsilon_exact = self.running(run)?.spending.epsilon(delta);
        let finished = RunFinished { run: run.to_owned(), epsilon_exact, delta };
        self.append(Entry::RunFinished(finished), None, None)?;
        fault::at(Point::Finished);
        Ok(())
    }

    /// Whether the end of a run is written.
    pub fn is_finished(&self, run: &str) -> bool {
        self.state.run(run).is_some_and(|run| run.is_finished)
    }
}
