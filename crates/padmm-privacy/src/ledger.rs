//! The ledger: what a site has spent, and, where it is durable, what exactly it released for that.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

use crate::error::PrivacyError;
use crate::event::Event;
use crate::mechanism::Payload;

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

/// A ledger in memory, for simulation and tests. It takes whatever can be described, the compared methods' events and releases without
/// noise included.
#[derive(Debug, Clone, Default)]
pub struct MemoryLedger {
    debits: Vec<Debit>,
    charged: BTreeSet<(String, String, u32)>,
}

impl MemoryLedger {
    /// A ledger without any charge.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Ledger for MemoryLedger {
    fn debit(&mut self, debit: &Debit) -> Result<(), PrivacyError> {
        if let Event::Gaussian { .. } = debit.event {
            debit.event.rho()?;
        }
        let key = (debit.run.clone(), debit.site.clone(), debit.round);
        if !self.charged.insert(key) {
            let Debit { run, site, round, .. } = debit.clone();
            return Err(PrivacyError::AlreadyCharged { run, site, round });
        }
        self.debits.push(debit.clone());
        Ok(())
    }

    fn debits(&self) -> &[Debit] {
        &self.debits
    }
}
