//! Why a ledger refuses: every message names the file and what to do.

use padmm_core::message::Turn;
use padmm_privacy::PrivacyError;
use padmm_privacy::words::{delta_text, epsilon_text};
use std::path::PathBuf;

/// Why a ledger was not opened, not believed or not written.
///
/// After any of these nothing is half written: an entry is in the ledger as a whole or not at all.
/// `path` is the ledger's file, `seq` the number of an entry, `run` the hash of a run's contract in
/// hexadecimal digits; entries and rounds are counted from 1.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "what is not said above is in the message of each variant")]
pub enum LedgerError {
    /// There is no file at the path.
    #[error("there is no ledger at {path}; check the path, or create the ledger first")]
    Missing { path: PathBuf },
    /// A new ledger was to be made where there is one.
    #[error(
        "there is a ledger at {path} already, and it is never overwritten, since it says what was spent; continue with it"
    )]
    AlreadyExists { path: PathBuf },
    /// A head file without its ledger.
    #[error(
        "{head} says that a ledger with {entries} entries was here, and it is gone; a new one would forget what was spent: \
         put the old ledger back"
    )]
    OrphanHead {
        /// The `.head` file beside the ledger.
        head: PathBuf,
        entries: u64,
    },
    /// Another process holds the ledger's lock.
    #[error(
        "another process uses the ledger {path} (it holds the lock {lock}); wait until it has ended, or end it"
    )]
    InUse { path: PathBuf, lock: PathBuf },
    /// A file that is something else.
    #[error("{path} is not a ledger ({reason}); check the path")]
    NotALedger { path: PathBuf, reason: String },
    /// The file or its folder cannot be written to.
    #[error("{path} or its folder can only be read; allow its owner to write there, and start again")]
    ReadOnly { path: PathBuf },
    /// No such folder, or no right to use it.
    #[error(
        "{path} cannot be opened ({reason}); check that its folder exists and that this user may write there"
    )]
    NoAccess { path: PathBuf, reason: String },
    /// Others than its owner could change what was spent.
    #[error("others than its owner may write to {path} (mode {mode:o}); take that right away with chmod 600")]
    OthersMayWrite { path: PathBuf, mode: u32 },
    /// There was no room for an entry, so nothing left.
    #[error("the disk with {path} is full: nothing was released; make room and start again")]
    Full { path: PathBuf },
    /// A file system without what a ledger needs.
    #[error("{path} cannot be kept safely on this file system ({reason}); move the ledger to a local disk")]
    UnsafePlace { path: PathBuf, reason: String },
    /// Any other failure of the disk or of SQLite.
    #[error(
        "the ledger {path} could not be read or written ({reason}); nothing was released; mend that and start again"
    )]
    Failed { path: PathBuf, reason: String },
    /// A write failed earlier in this process.
    #[error("the ledger {path} failed before and is not written any more by this process; start again")]
    Stopped { path: PathBuf },
    /// A newer program has written to the ledger.
    #[error("the ledger {path} has format {found} and this program knows up to {known}; use a newer program")]
    NewerFormat { path: PathBuf, found: u32, known: u32 },
    /// SQLite itself, or the length of the file, says that something is missing.
    #[error("the file {path} is cut or damaged ({reason}); put back a copy that is whole and as recent")]
    Damaged { path: PathBuf, reason: String },

    /// An entry with a wrong hash.
    #[error(
        "entry {seq} of {path} was changed: it does not have the hash that it was written with; do not trust it"
    )]
    Changed { path: PathBuf, seq: u64 },
    /// An entry was taken out of the middle.
    #[error("entry {seq} of {path} is missing, and later ones are there; do not trust the rest")]
    Gap { path: PathBuf, seq: u64 },
    /// An entry in a wrong place.
    #[error("entry {seq} of {path} is not where it was written: entries were reordered; do not trust them")]
    Reordered { path: PathBuf, seq: u64 },
    /// An entry whose own hash is right and whose link is not.
    #[error(
        "entry {seq} of {path} does not follow the entry before it: one of them was put in or replaced; do not trust them"
    )]
    Detached { path: PathBuf, seq: u64 },
    /// An entry of a kind that this program does not know.
    #[error(
        "entry {seq} of {path} has the unknown kind {kind:?}; use the program that wrote it, or a newer one"
    )]
    UnknownKind { path: PathBuf, seq: u64, kind: String },
    /// An entry with correct hashes that cannot stand where it stands.
    #[error("entry {seq} of {path} does not make sense ({reason}); do not trust the ledger")]
    Senseless { path: PathBuf, seq: u64, reason: String },
    /// Two charges or payloads for one round.
    #[error(
        "entry {seq} of {path} is a second payload or charge for round {round} of run {run}, after entry {first}; do not \
         trust the ledger"
    )]
    SecondPayload {
        path: PathBuf,
        seq: u64,
        /// The entry that charged the round before.
        first: u64,
        run: String,
        round: u32,
    },
    /// A payload of another length than its entry says.
    #[error("entry {seq} of {path} says that {stated} bytes left, and {found} are stored; do not trust it")]
    WrongLength { path: PathBuf, seq: u64, stated: u64, found: u64 },
    /// Entries are missing at the end.
    #[error(
        "the ledger {path} is truncated: it has {entries} entries, and its head file says that there were {head}; put back the \
         recent copy, or what was spent since is forgotten"
    )]
    Truncated { path: PathBuf, entries: u64, head: u64 },
    /// The head file belongs to another history.
    #[error(
        "entry {seq} of {path} is not the one that its head file names: this is another ledger, or it was rewritten; put \
         back the one that belongs to the head file"
    )]
    OtherHead { path: PathBuf, seq: u64 },
    /// The `.head` file beside the ledger is missing.
    #[error(
        "{head} is missing, so entries at the ledger's end may be missing too; put it back, or, if you are sure that the \
         {entries} entries are all, run `padmm-site ledger verify LEDGER --restore-head`, which notes it in the ledger"
    )]
    HeadMissing {
        /// The `.head` file beside the ledger.
        head: PathBuf,
        entries: u64,
    },
    /// A head file that is none.
    #[error(
        "{head} is not a ledger's head file; put back the right one, or remove it and, if you are sure that the ledger is \
         whole, run `padmm-site ledger verify LEDGER --restore-head`"
    )]
    HeadUnreadable {
        /// The `.head` file beside the ledger.
        head: PathBuf,
    },

    /// The run or the release would cost more than the site allows.
    #[error(
        "the site's cap forbids it: epsilon {} was spent so far, with {what} it would be {}, and the cap is \
         {cap} (all at delta {}); raise the cap with `padmm-site ledger cap`, or agree to a plan that costs less",
        epsilon_text(*spent),
        epsilon_text(*total),
        delta_text(*delta)
    )]
    CapReached {
        what: String,
        /// ε that was spent or reserved before.
        spent: f64,
        total: f64,
        /// The ε that the site allows.
        cap: f64,
        delta: f64,
    },
    /// A run that was never started.
    #[error("run {run} was not started in the ledger {path}; start it before anything else")]
    UnknownRun { path: PathBuf, run: String },
    /// A run that was started otherwise.
    #[error("run {run} was started in the ledger {path} with another {what}; a run never changes")]
    RunDiffers { path: PathBuf, run: String, what: &'static str },
    /// A run that was begun with noise from elsewhere.
    #[error(
        "run {run} was begun in the ledger {path} with this noise: {recorded}. This program has another: {here}. Nothing was \
         charged or sent. What a run promises rests on the noise of all its rounds, so it is finished by the program that began it, or \
         not at all: if that was a test build, count what it released as not protected, and make a new plan"
    )]
    OtherNoise {
        path: PathBuf,
        run: String,
        /// Where the run's noise came from so far.
        recorded: String,
        /// Where this process takes noise from.
        here: String,
    },
    /// The run's end is in the ledger.
    #[error("run {run} is finished in the ledger {path}; nothing is added to it")]
    RunOver { path: PathBuf, run: String },
    /// A second charge for a round.
    #[error("round {round} of run {run} was charged already in {path}; a round is released at most once")]
    AlreadyCharged { path: PathBuf, run: String, round: u32 },
    /// A release that the plan does not have.
    #[error("round {round} of run {run} has no release in its plan, or another one; nothing was charged")]
    NotPlanned { run: String, round: u32 },
    /// A release was to be written that nothing had paid for.
    #[error(
        "round {round} of run {run} was not charged before its release was to be written; nothing was released"
    )]
    NotCharged { run: String, round: u32 },
    /// A neighbour contradicts what it sent before.
    #[error(
        "{sender} sent two different messages for {turn} of run {run}; the first is kept, and the site \
         should be asked about the second"
    )]
    SecondMessage {
        run: String,
        /// The neighbour's name in the plan.
        sender: String,
        /// The turn that both are for.
        turn: Turn,
    },
    /// A payload or a charge that the privacy core refuses.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
}
