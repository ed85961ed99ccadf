//! Named points at which a test may kill the process: before and after everything that a crash could cut in two.
//!
//! In a program that installs no hook they do nothing.

use std::sync::OnceLock;

use strum::{IntoStaticStr, VariantArray};

/// A place in the code where a process can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Point {
    /// The contract's run is about to be entered in the ledger.
    RunBeforeStart,
    /// The run has been entered; nothing is charged yet.
    RunAfterStart,
    /// A round is charged in memory and nothing is computed yet.
    ChargeReserved,
    /// A release is sealed; its transaction has not been committed.
    ReleaseBeforeCommit,
    /// The transaction has been committed; nothing has been sent.
    ReleaseAfterCommit,
    /// A release is committed, and its neighbours have not been told.
    AnnounceBefore,
    /// They have been told; the release waits for their receipts.
    AnnounceAfter,
    /// A neighbour's announcement is about to be committed.
    AnnouncedBeforeCommit,
    /// It has been, and the neighbour has no receipt yet.
    AnnouncedAfterCommit,
    /// The ledger's head is about to be written beside it.
    HeadBeforeWrite,
    /// The head file agrees with the ledger again.
    HeadAfterWrite,
    /// Messages of neighbours are about to be committed without a release.
    ReceivedBeforeCommit,
    /// They are on the disk, and the next turn has not begun.
    ReceivedAfterCommit,
    /// An envelope is about to be handed to the transport.
    SendBefore,
    /// It has been handed over to some neighbours and not to others.
    SendBetween,
    /// It has been handed over to every neighbour that is left.
    SendAfter,
    /// A neighbour's envelope has been accepted, and is in memory only.
    Received,
    /// The loss of a neighbour is about to be entered in the ledger.
    LossBeforeCommit,
    /// The loss is entered, and nobody has been told.
    LossAfterCommit,
    /// The model is about to be written.
    ModelBeforeWrite,
    /// It has been; the run is not yet marked as finished.
    ModelAfterWrite,
    /// The end of the run is in the ledger.
    Finished,
}

impl Point {
    /// Every point, in the order in which a run first comes to them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// In kebab case, for flags and logs: `release-after-commit`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

type Hook = Box<dyn Fn(Point) + Send + Sync>;
static HOOK: OnceLock<Hook> = OnceLock::new();

/// Calls `hook` at every point from now on. For test programs; the first hook stays.
pub fn install(hook: Hook) {
    let _ = HOOK.set(hook);
}

/// Calls the installed hook, which may not return; without one, does nothing.
pub fn at(point: Point) {
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
}
