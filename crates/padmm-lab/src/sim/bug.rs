//! What is wrong on purpose. None of it is in the program: it is done to the disks, the transport or the setup of simulated sites.

use std::sync::Arc;
use std::time::SystemTime;

use padmm_core::data::Dataset;
use padmm_node::frame::Frame;
use padmm_node::ledger::{Opening, SiteLedger, Word};
use padmm_node::site::{NoiseProvider, Site};
use padmm_privacy::Budget;

use super::consortium::{DELTA, EPSILON};
use super::disk::SimulatedDisk;
use super::process::Silent;
use super::world::World;

/// Something wrong on purpose, which the invariants must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Bug {
    /// Commits return before they are on the disk, so that releases leave before they are charged for good.
    SendBeforeCommit,
    /// The head is written before its entry.
    HeadBeforeCommit,
    /// A crash takes the newest entry with it, and the round is drawn again.
    RedrawAfterCrash,
    /// A site that continues after a crash has forgotten that it left a neighbour, and all that was written after that.
    LossForgottenInReplay,
    /// What neighbours show of a ledger is taken for proved.
    RollbackProofSkipped,
    /// Requests are repeated without waiting for an answer.
    RequestWithoutBackOff,
    /// Every site finds everybody's word that it is ready, whether or not it was given.
    BarrierSkipped,
    /// The connection that came last is written to for ever, though it may be that of a copy that is gone.
    ClonePromoted,
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
        for (setup, machine) in setups.iter().zip(&self.machines) {
            let me = setup.outbox.origin().sender;
            let others = ready.iter().copied().filter(|word| word.site != me);
            let (ready, accepted) = (others.collect(), accepted.clone());
            let hello =
                Frame::Hello { origin: setup.outbox.origin(), proof: false, shown: vec![], accepted, ready };
            machine
                .disk
                .plant(Word { run: setup.start.run.clone(), bytes: setup.outbox.sign(&hello).to_vec() });
        }
    }
}
