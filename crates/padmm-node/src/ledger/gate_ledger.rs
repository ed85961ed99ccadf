//! The site's ledger as the gate sees it.

use padmm_privacy::{Debit, Ledger, Payload, PrivacyError};
use std::sync::{Arc, Mutex, MutexGuard};

use super::error::LedgerError;
use super::runs::{PlannedRelease, RunStart, SealRequest};
use super::site::SiteLedger;

/// Makes the signed envelope of a release: the bytes that are stored and leave.
pub type Sealer = Box<dyn Fn(&SealRequest<'_>) -> Vec<u8> + Send>;

/// Gets the payload back from the bytes of an envelope, or says why not.
pub type Opener = Box<dyn Fn(&[u8]) -> Result<Payload, String> + Send>;

/// One run's view of a site's ledger.
///
/// A debit is a reservation in memory; the charge becomes durable together with the envelope, in one transaction, before the gate has
/// a release to hand out. A process that ends in between has released nothing and is charged nothing; a round that failed in a
/// process that continues stays charged there, and [`SiteLedger::forfeit`] makes that last.
pub struct GateLedger {
    ledger: Arc<Mutex<SiteLedger>>,
    run: String,
    site: String,
    planned: Vec<PlannedRelease>,
    debits: Vec<Debit>,
    seal: Sealer,
    open: Opener,
}

impl GateLedger {
    /// For a run that was started in the ledger, or will have been when the first round is charged.
    pub fn new(
        ledger: Arc<Mutex<SiteLedger>>,
        start: &RunStart,
        seal: Sealer,
        open: Opener,
    ) -> Result<Self, LedgerError> {
        let (run, site) = (start.run.clone(), start.site.clone());
        let debit = |(&round, charge): (&u32, &super::Charge)| Debit {
            run: run.clone(),
            site: site.clone(),
            round,
            event: charge.event,
        };
        let known = lock(&ledger)?.state().run(&run).map(|state| state.charges.iter().map(debit).collect());
        let debits = known.unwrap_or_default();
        Ok(Self { ledger, run, site, planned: start.planned.clone(), debits, seal, open })
    }

    /// The planned release that a debit is for.
    fn planned(&self, debit: &Debit) -> Result<&PlannedRelease, LedgerError> {
        let is_own = debit.run == self.run && debit.site == self.site;
        let fits = |p: &&PlannedRelease| is_own && p.round == debit.round && p.event == debit.event;
        let (run, round) = (debit.run.clone(), debit.round);
        self.planned.iter().find(fits).ok_or(LedgerError::NotPlanned { run, round })
    }

    fn stored(&self, run: &str, site: &str, round: u32) -> Result<Option<Payload>, LedgerError> {
        if run != self.run || site != self.site {
            return Ok(None);
        }
        let ledger = lock(&self.ledger)?;
        let Some(bytes) = ledger.release_bytes(run, round)? else { return Ok(None) };
        let charge = &ledger.state().run(run).expect("it has a release").charges[&round];
        let senseless = |reason: String| {
            let path = ledger.path().to_owned();
            LedgerError::Senseless { path, seq: charge.seq, reason }
        };
        let payload = (self.open)(&bytes).map_err(senseless)?;
        match &payload {
            Payload::Grid { exponent, values }
                if *exponent == charge.exponent && values.len() == charge.n_features =>
            {
                Ok(Some(payload))
            }
            _ => Err(senseless("its envelope holds another grid than its charge".to_owned())),
        }
    }

    /// The gate knows errors of privacy only, and this one carries the ledger's words.
    fn refuse(&self, error: LedgerError) -> PrivacyError {
        match error {
            LedgerError::Privacy(error) => error,
            LedgerError::AlreadyCharged { run, round, .. } => {
                PrivacyError::AlreadyCharged { run, site: self.site.clone(), round }
            }
            other => PrivacyError::LedgerFailed { reason: other.to_string() },
        }
    }
}

fn lock(ledger: &Arc<Mutex<SiteLedger>>) -> Result<MutexGuard<'_, SiteLedger>, LedgerError> {
    ledger.lock().map_err(|poisoned| LedgerError::Stopped { path: poisoned.get_ref().path().to_owned() })
}

impl Ledger for GateLedger {
    fn debit(&mut self, debit: &Debit) -> Result<(), PrivacyError> {
        let planned = *self.planned(debit).map_err(|error| self.refuse(error))?;
        lock(&self.ledger)
            .and_then(|mut ledger| ledger.reserve(&self.run, &planned))
            .map_err(|error| self.refuse(error))?;
        self.debits.push(debit.clone());
        Ok(())
    }

    fn record(&mut self, debit: &Debit, payload: &Payload) -> Result<(), PrivacyError> {
        self.planned(debit).map_err(|error| self.refuse(error))?;
        lock(&self.ledger)
            .and_then(|mut ledger| ledger.commit_release(&self.run, debit.round, payload, &*self.seal))
            .map_err(|error| self.refuse(error))
    }

    fn recorded(&self, run: &str, site: &str, round: u32) -> Result<Option<Payload>, PrivacyError> {
        self.stored(run, site, round).map_err(|error| self.refuse(error))
    }

    fn debits(&self) -> &[Debit] {
        &self.debits
    }
}
