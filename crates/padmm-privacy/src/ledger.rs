//! The ledger: what a site has spent, and, where it is durable, what exactly it released for that.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use crate::budget::ZcdpRho;
use crate::error::PrivacyError;
use crate::event::Event;
use crate::mechanism::Payload;
use crate::outward::add_up;

/// One charge against one site's records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Debit {
    /// Which run spent it; one ledger may hold several.
    pub run: String,
    /// Whose records were used.
    pub site: String,
    /// Counted from 1; together with run and site it identifies the debit.
    pub round: u32,
    /// What is about to be done to the data.
    pub event: Event,
}

/// Where debits are kept.
///
/// Contract: [`Ledger::debit`] comes before anything is drawn or computed and refuses a second debit for the same run, site and
/// round. A debit is never taken back: a round that failed after it has been paid for. [`Ledger::record`] comes after the
/// seal and before the release exists; once it returns `Ok`, the charge and the payload are as durable as the
/// ledger makes anything, and both or neither are there after a crash.
pub trait Ledger: Send {
    /// Charges, or refuses and stays as it was.
    fn debit(&mut self, debit: &Debit) -> Result<(), PrivacyError>;

    /// Makes the charge of `debit` and what it paid for durable, together. Without it nothing is handed out. A ledger
    /// that does not outlive its process has nothing to do.
    fn record(&mut self, _debit: &Debit, _payload: &Payload) -> Result<(), PrivacyError> {
        Ok(())
    }

    /// What was recorded for this run, site and round, in this process or before it.
    fn recorded(&self, _run: &str, _site: &str, _round: u32) -> Result<Option<Payload>, PrivacyError> {
        Ok(None)
    }

    /// Everything recorded, for all runs and sites, oldest first.
    fn debits(&self) -> &[Debit];
}

/// A ledger in memory, for simulation and tests, with an optional cap on the sum of charges.
#[derive(Debug, Clone, Default)]
pub struct MemoryLedger {
    debits: Vec<Debit>,
    charged: BTreeSet<(String, String, u32)>,
    cap: Option<ZcdpRho>,
    spent: f64,
}

impl MemoryLedger {
    /// Records everything that can be described, releases without noise included.
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses what would bring the sum of charges, rounded up, above `cap`, and every release without noise.
    pub fn with_cap(cap: ZcdpRho) -> Self {
        Self { cap: Some(cap), ..Self::default() }
    }

    /// The sum with the new event, or why it may not be added.
    fn total_with(&self, event: &Event) -> Result<f64, PrivacyError> {
        match (event, self.cap) {
            (Event::NonPrivate, None) => Ok(self.spent),
            (Event::NonPrivate, Some(_)) => Err(PrivacyError::NotPrivate { by: "a ledger with a cap" }),
            (event, cap) => {
                let charge = event.rho()?.value();
                let total = add_up(self.spent, charge);
                match cap {
                    Some(cap) if total > cap.value() => {
                        Err(PrivacyError::BudgetExceeded { spent: self.spent, charge, cap: cap.value() })
                    }
                    _ => Ok(total),
                }
            }
        }
    }
}

impl Ledger for MemoryLedger {
    fn debit(&mut self, debit: &Debit) -> Result<(), PrivacyError> {
        let key = (debit.run.clone(), debit.site.clone(), debit.round);
        if self.charged.contains(&key) {
            let (run, site, round) = key;
            return Err(PrivacyError::AlreadyCharged { run, site, round });
        }
        self.spent = self.total_with(&debit.event)?;
        self.charged.insert(key);
        self.debits.push(debit.clone());
        Ok(())
    }

    fn debits(&self) -> &[Debit] {
        &self.debits
    }
}
