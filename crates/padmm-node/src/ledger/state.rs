//! What follows from the entries: the cap, what was spent, and how far each run is.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_core::message::Turn;
use padmm_privacy::{Budget, Epsilon, Event, PrivacyError, Spending};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::FORMAT;
use super::chain::{Digest, StoredEntry};
use super::entry::{Entry, Forfeited, Opened, Released, RunStarted};
use super::error::LedgerError;

/// One round that was paid for.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    /// Number of the entry that charges it.
    pub seq: u64,
    /// What was done to the data.
    pub event: Event,
    /// Integers of the release, one for each coefficient.
    pub n_features: usize,
    /// The grid's step is two to this power.
    pub exponent: i32,
    /// Whether something left; otherwise the round is forfeited.
    pub is_released: bool,
}

/// A neighbour that a run continues without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The neighbour's name in the plan.
    pub neighbour: String,
    /// The first turn that is computed without it.
    pub turn: Turn,
}

/// What the entries say about one run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunState {
    /// What the site agreed to when the run began.
    pub start: RunStarted,
    /// When it began, in UTC to the second.
    pub started_at: String,
    /// When it was last written about.
    pub last_at: String,
    /// What was paid for, by round; forfeited rounds are among them.
    pub charges: BTreeMap<u32, Charge>,
    /// What all charges of the run cost together.
    pub spending: Spending,
    /// Bytes of all releases, each counted once however many neighbours got it.
    pub bytes: u64,
    /// Neighbours that were lost, in that order.
    pub losses: Vec<Loss>,
    /// Whether its end is in the ledger.
    pub is_finished: bool,
}

impl RunState {
    /// How many rounds have a release that left.
    pub fn n_released(&self) -> usize {
        self.charges.values().filter(|charge| charge.is_released).count()
    }

    /// Rounds that were paid for and in which nothing left.
    pub fn forfeited(&self) -> Vec<u32> {
        self.charges.iter().filter(|(_, charge)| !charge.is_released).map(|(&round, _)| round).collect()
    }
}

/// Everything that a ledger's entries amount to.
#[derive(Debug, Clone)]
pub struct State {
    path: PathBuf,
    opened: Opened,
    opened_at: String,
    genesis: Digest,
    /// Of all records that the ledger was ever about, the present ones last.
    fingerprints: Vec<String>,
    cap: Budget,
    spending: Spending,
    runs: BTreeMap<String, RunState>,
    /// Runs in the order of their start.
    order: Vec<String>,
}

impl State {
    /// The state after the first entry, which must be the opening.
    pub(super) fn begin(path: &Path, first: &StoredEntry) -> Result<Self, LedgerError> {
        let Entry::Opened(opened) = &first.entry else {
            let reason = "a ledger begins with its opening".to_owned();
            return Err(LedgerError::Senseless { path: path.to_owned(), seq: first.seq, reason });
        };
        if opened.format > FORMAT {
            let path = path.to_owned();
            return Err(LedgerError::NewerFormat { path, found: opened.format, known: FORMAT });
        }
        Ok(Self {
            path: path.to_owned(),
            genesis: first.hash,
            fingerprints: vec![opened.fingerprint.clone()],
            cap: opened.cap,
            opened: opened.clone(),
            opened_at: first.at.clone(),
            spending: Spending::default(),
            runs: BTreeMap::new(),
            order: Vec::new(),
        })
    }

    /// What the first entry says.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// When the ledger was opened, in UTC to the second.
    pub fn opened_at(&self) -> &str {
        &self.opened_at
    }

    /// The hash of the first entry: which ledger this is. A copy has the same one, whatever became of it since.
    pub fn genesis(&self) -> Digest {
        self.genesis
    }

    /// Keyed fingerprint of the records that the ledger is about now.
    pub fn fingerprint(&self) -> &str {
        self.fingerprints.last().expect("a ledger is opened with a fingerprint")
    }

    /// Whether the ledger is, or was at some time, about the records with this fingerprint.
    pub fn has_known(&self, fingerprint: &str) -> bool {
        self.fingerprints.iter().any(|known| known == fingerprint)
    }

    /// What all runs together may spend.
    pub fn cap(&self) -> Budget {
        self.cap
    }

    /// What all runs together have spent, forfeited rounds included.
    pub fn spending(&self) -> Spending {
        self.spending
    }

    /// The same as epsilon at the cap's delta.
    pub fn epsilon_spent(&self) -> Epsilon {
        self.spending.epsilon(self.cap.delta)
    }

    /// All runs, in the order of their start.
    pub fn runs(&self) -> impl Iterator<Item = &RunState> {
        self.order.iter().map(|run| &self.runs[run])
    }

    /// The run of this contract hash, if it was ever entered.
    pub fn run(&self, run: &str) -> Option<&RunState> {
        self.runs.get(run)
    }

    /// Adds an entry, or says why it cannot stand here and stays as it was.
    pub(super) fn apply(&mut self, stored: &StoredEntry) -> Result<(), LedgerError> {
        let change = self.check(stored.seq, &stored.entry, stored.payload.as_deref())?;
        let at = || stored.at.clone();
        match &stored.entry {
            Entry::Opened(_) | Entry::HeadRestored(_) => {}
            Entry::DataChanged(data) => self.fingerprints.push(data.fingerprint.clone()),
            Entry::CapChanged(cap) => self.cap = cap.to,
            Entry::RunStarted(start) => {
                self.order.push(start.run.clone());
                let run = RunState {
                    start: start.clone(),
                    started_at: at(),
                    last_at: at(),
                    charges: BTreeMap::new(),
                    spending: Spending::default(),
                    bytes: 0,
                    losses: Vec::new(),
                    is_finished: false,
                };
                self.runs.insert(start.run.clone(), run);
            }
            Entry::Released(Released { run, round, bytes, .. }) => {
                self.charge(run, *round, change, at());
                self.known(run).bytes += bytes;
            }
            Entry::Forfeited(Forfeited { run, round, .. }) => self.charge(run, *round, change, at()),
            Entry::NeighbourLost(lost) => {
                let turn = lost.turn().expect("a loss in no stage of a run was refused");
                let loss = Loss { neighbour: lost.neighbour.clone(), turn };
                let run = self.known(&lost.run);
                run.losses.push(loss);
                run.last_at = at();
            }
            Entry::RunFinished(finished) => {
                let run = self.known(&finished.run);
                run.is_finished = true;
                run.last_at = at();
            }
        }
        Ok(())
    }

    fn known(&mut self, run: &str) -> &mut RunState {
        self.runs.get_mut(run).expect("an entry about an unknown run was refused")
    }

    fn charge(&mut self, run: &str, round: u32, change: Option<(Charge, Spending, Spending)>, at: String) {
        let (charge, total, of_run) = change.expect("a charge was checked");
        self.spending = total;
        let run = self.known(run);
        run.spending = of_run;
        run.charges.insert(round, charge);
        run.last_at = at;
    }

    /// Whether an entry may stand at `seq`; for a charge, what it changes.
    pub(super) fn check(
        &self,
        seq: u64,
        entry: &Entry,
        payload: Option<&[u8]>,
    ) -> Result<Option<(Charge, Spending, Spending)>, LedgerError> {
        let path = || self.path.clone();
        let senseless =
            |reason: &str| Err(LedgerError::Senseless { path: path(), seq, reason: reason.to_owned() });
        if payload.is_some() != matches!(entry, Entry::Released(_)) {
            return senseless("releases have a payload, and nothing else has");
        }
        let run = match entry {
            Entry::Opened(_) if seq == 1 => return Ok(None),
            Entry::Opened(_) => return senseless("a ledger is opened once"),
            Entry::DataChanged(_) | Entry::HeadRestored(_) => return Ok(None),
            Entry::CapChanged(cap) if cap.from == self.cap => return Ok(None),
            Entry::CapChanged(_) => return senseless("it names another cap than the one before it"),
            Entry::RunStarted(start) if self.runs.contains_key(&start.run) => {
                return senseless("the run was started before");
            }
            Entry::RunStarted(_) => return Ok(None),
            Entry::Released(Released { run, .. }) | Entry::Forfeited(Forfeited { run, .. }) => run,
            Entry::NeighbourLost(lost) => &lost.run,
            Entry::RunFinished(finished) => &finished.run,
        };
        let Some(state) = self.runs.get(run) else { return senseless("its run was never started") };
        if state.is_finished {
            return senseless("its run was finished before");
        }
        match entry {
            Entry::Released(r) => {
                let found = payload.map_or(0, |bytes| bytes.len() as u64);
                if r.bytes != found {
                    return Err(LedgerError::WrongLength { path: path(), seq, stated: r.bytes, found });
                }
                let Released { event, n_features, exponent, .. } = *r;
                let charge = Charge { seq, event, n_features, exponent, is_released: true };
                self.check_charge(state, &r.site, r.round, r.rho.value(), charge).map(Some)
            }
            Entry::Forfeited(f) => {
                let Forfeited { event, n_features, exponent, .. } = *f;
                let charge = Charge { seq, event, n_features, exponent, is_released: false };
                self.check_charge(state, &f.site, f.round, f.rho.value(), charge).map(Some)
            }
            Entry::NeighbourLost(lost) if lost.turn().is_none() => senseless("its stage is not one of a run"),
            _ => Ok(None),
        }
    }

    fn check_charge(
        &self,
        run: &RunState,
        site: &str,
        round: u32,
        rho: f64,
        charge: Charge,
    ) -> Result<(Charge, Spending, Spending), LedgerError> {
        let (path, seq) = (self.path.clone(), charge.seq);
        let senseless =
            |reason: &str| LedgerError::Senseless { path: path.clone(), seq, reason: reason.to_owned() };
        if let Some(first) = run.charges.get(&round) {
            let (run, first) = (run.start.run.clone(), first.seq);
            return Err(LedgerError::SecondPayload { path, seq, first, run, round });
        }
        if site != run.start.site {
            return Err(senseless("it names another site than its run"));
        }
        if round == 0 || round > run.start.rounds {
            return Err(senseless("its round is not one of its run"));
        }
        let add = |mut spending: Spending| -> Result<Spending, PrivacyError> {
            spending.add(&charge.event, charge.n_features, charge.exponent)?;
            Ok(spending)
        };
        let wrong = |error: PrivacyError| senseless(&error.to_string());
        let stated = charge.event.rho().map_err(wrong)?.value();
        if stated != rho {
            return Err(senseless("its charge is not that of what was done to the data"));
        }
        let (total, of_run) = (add(self.spending).map_err(wrong)?, add(run.spending).map_err(wrong)?);
        Ok((charge, total, of_run))
    }
}
