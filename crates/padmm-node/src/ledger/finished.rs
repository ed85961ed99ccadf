//! Which sites of a run have said that they have their model. It is kept so that a site which is started again after the end does not
//! wait for neighbours that have gone. It lies beside the chain: what is kept carries its own signature.

use super::error::LedgerError;
use super::site::SiteLedger;
use super::store::Batch;

/// A site's word that it has its model of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Hash of the run's contract, in hexadecimal digits.
    pub run: String,
    /// The site's name in the plan.
    pub sender: String,
    /// The frame, with the sender's signature.
    pub bytes: Vec<u8>,
}

impl SiteLedger {
    /// Keeps a site's signed word that it has its model of a run.
    pub fn keep_finished(&mut self, run: &str, sender: &str, bytes: &[u8]) -> Result<(), LedgerError> {
        let word = Finished { run: run.to_owned(), sender: sender.to_owned(), bytes: bytes.to_vec() };
        self.commit(&Batch { finished: &[word], ..Batch::default() }, None)
    }

    /// Who has said so of a run, with the words.
    pub fn finished(&self, run: &str) -> Result<Vec<(String, Vec<u8>)>, LedgerError> {
        let words = self.store.finished(run)?;
        Ok(words.into_iter().map(|word| (word.sender, word.bytes)).collect())
    }
}
