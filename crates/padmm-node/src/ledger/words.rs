//! Signed words of a run that a site must still know after a crash: that all were ready when it began, who has its model, who was
//! left behind. They lie beside the chain, because each carries its own signature; whoever reads them checks it again.

use super::error::LedgerError;
use super::site::SiteLedger;
use super::store::Batch;

/// One signed frame of a run, which is kept once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word {
    /// Hash of the run's contract, in hexadecimal digits.
    pub run: String,
    /// The frame, with its signature.
    pub bytes: Vec<u8>,
}

impl SiteLedger {
    /// Keeps a signed frame of a run. It is on the disk when this returns.
    pub fn keep_word(&mut self, run: &str, bytes: &[u8]) -> Result<(), LedgerError> {
        let word = Word { run: run.to_owned(), bytes: bytes.to_vec() };
        self.commit(&Batch { words: &[word], ..Batch::default() }, None)
    }

    /// The frames that are kept of a run.
    pub fn words(&self, run: &str) -> Result<Vec<Vec<u8>>, LedgerError> {
        self.store.words(run)
    }
}
