//! What is wrong on purpose. None of it is in the program: it is done to the disks, the transport or the setup of simulated sites.

use std::sync::Arc;
use std::time::SystemTime;

use padmm_core::data::Dataset;
use padmm_core::message::SiteIndex;
use padmm_node::frame::{Frame, is_request};
use padmm_node::ledger::{Opening, SiteLedger, Word};
use padmm_node::outbox::Bytes;
use padmm_node::site::{NoiseProvider, Site};
use padmm_node::transport::Transport;
use padmm_node::transport::memory::MemoryTransport;
use padmm_privacy::Budget;

use super::consortium::{DELTA, EPSILON};
use super::disk::SimulatedDisk;
use super::world::{Silent, World};

/// Something wrong on purpose, which the invariants must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Bug {
    /// Commits return before they are on the disk, so that releases leave before they are charged for good.
    LazyDisk,
    /// A crash takes the newest entry with it, and the round is drawn again.
    ForgetfulDisk,
    /// The head is written before its entry.
    HeadFirst,
    /// A crash takes the loss of a neighbour with it, and all that was written after it.
    ForgottenLoss,
    /// What neighbours show of a ledger is taken for proved.
    SkippedProof,
    /// Requests are repeated without waiting for an answer.
    Impatience,
    /// Every site finds everybody's word that it is ready, whether or not it was given.
    SkippedBarrier,
}

/// A transport on which requests are repeated at once.
pub(super) struct Impatient<'a>(pub(super) &'a MemoryTransport);

impl Transport for Impatient<'_> {
    fn send(&self, to: SiteIndex, frame: Bytes) {
        let copies = if is_request(&frame) { 100 } else { 1 };
        (0..copies).for_each(|_| self.0.send(to, Arc::clone(&frame)));
    }
}

impl World<'_> {
    /// Puts everybody else's word that it is ready on every disk.
    pub(super) fn forge_words(&self) {
        let setup = |(site, records): &(Site, Arc<Dataset>)| {
            let cap = Budget::new(2.0 * EPSILON, DELTA).expect("a budget");
            let opening = Opening { data_set: "records".to_owned(), fingerprint: "00".repeat(32), cap };
            let ledger =
                SiteLedger::begin_in(SimulatedDisk::path(), Box::new(SimulatedDisk::default()), opening);
            let ledger = ledger.expect("a simulated disk takes a ledger");
            let session = site.session(
                &NoiseProvider::real(),
                Arc::clone(records),
                ledger,
                Arc::new(Silent),
                SystemTime::now(),
            );
            session.expect("a site that was prepared has a session")
        };
        let setups: Vec<_> = self.consortium.sites.iter().map(setup).collect();
        let ready: Vec<_> = setups.iter().map(|setup| setup.outbox.ready()).collect();
        let accepted: Vec<_> = setups.iter().flat_map(|setup| setup.accepted.clone()).collect();
        for (setup, disk) in setups.iter().zip(&self.disks) {
            let me = setup.outbox.origin().sender;
            let others = ready.iter().copied().filter(|word| word.site != me);
            let (ready, accepted) = (others.collect(), accepted.clone());
            let hello =
                Frame::Hello { origin: setup.outbox.origin(), proof: false, shown: vec![], accepted, ready };
            disk.plant(Word { run: setup.start.run.clone(), bytes: setup.outbox.sign(&hello).to_vec() });
        }
    }
}
