//! Named points at which a test may kill the process: before and after everything that a crash could cut in two.
//!
//! In a program that installs no hook they do nothing.

use std::sync::OnceLock;

macro_rules! points {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// A place in the code where a process can end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Point {
            $($(#[$doc])* $variant,)*
        }

        impl Point {
            /// All of them.
            pub const ALL: &'static [Point] = &[$(Point::$variant,)*];

            /// Its name, for flags and logs.
            pub fn name(self) -> &'static str {
                match self {
                    $(Point::$variant => $name,)*
                }
            }
        }
    };
}

points! {
    /// The contract's run is about to be entered in the ledger.
    RunBeforeStart => "run-before-start",
    /// It has been.
    RunAfterStart => "run-after-start",
    /// A round is charged in memory and nothing is computed yet.
    ChargeReserved => "charge-reserved",
    /// A release is sealed; its transaction has not been committed.
    ReleaseBeforeCommit => "release-before-commit",
    /// The transaction has been committed; nothing has been sent.
    ReleaseAfterCommit => "release-after-commit",
    /// A release is committed, and its neighbours have not been told.
    AnnounceBefore => "announce-before",
    /// They have been told; the release waits for their receipts.
    AnnounceAfter => "announce-after",
    /// A neighbour's announcement is about to be committed.
    AnnouncedBeforeCommit => "announced-before-commit",
    /// It has been, and the neighbour has no receipt yet.
    AnnouncedAfterCommit => "announced-after-commit",
    /// The ledger's head is about to be written beside it.
    HeadBeforeWrite => "head-before-write",
    /// It has been.
    HeadAfterWrite => "head-after-write",
    /// Messages of neighbours are about to be committed without a release.
    ReceivedBeforeCommit => "received-before-commit",
    /// They have been.
    ReceivedAfterCommit => "received-after-commit",
    /// An envelope is about to be handed to the transport.
    SendBefore => "send-before",
    /// It has been handed over to some neighbours.
    SendBetween => "send-between",
    /// It has been handed over to all.
    SendAfter => "send-after",
    /// A neighbour's envelope has been taken in.
    Received => "received",
    /// The loss of a neighbour is about to be entered in the ledger.
    LossBeforeCommit => "loss-before-commit",
    /// It has been.
    LossAfterCommit => "loss-after-commit",
    /// The model is about to be written.
    ModelBeforeWrite => "model-before-write",
    /// It has been; the run is not yet marked as finished.
    ModelAfterWrite => "model-after-write",
    /// The run is marked as finished.
    Finished => "finished",
}

type Hook = Box<dyn Fn(Point) + Send + Sync>;
static HOOK: OnceLock<Hook> = OnceLock::new();

/// Calls `hook` at every point from now on. For test programs; the first hook stays.
pub fn install(hook: Hook) {
    let _ = HOOK.set(hook);
}

/// The process is at `point`.
pub fn at(point: Point) {
    if let Some(hook) = HOOK.get() {
        hook(point);
    }
}
