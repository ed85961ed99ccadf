//! Why a ledger refuses: every message names the file and what to do.

use padmm_core::message::Turn;
use padmm_privacy::PrivacyError;
use padmm_privacy::words::{delta_text, epsilon_text};
use std::path::PathBuf;

/// Why a ledger was not opened, not believed or not written.
///
/// After any of these nothing is half written: an entry is in the ledger as a whole or not at all.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LedgerError {
    /// There is no file at the path.
    #[error("there is no ledger at {path}; check the path, or create the ledger first")]
    Missing {
        /// The ledger's file.
        path: PathBuf,
    },
    /// A ledger would be overwritten.
    #[error(
        "there is a ledger at {path} already, and it is never overwritten, since it says what was spent; continue with it"
    )]
    AlreadyExists {
        /// The ledger's file.
        path: PathBuf,
    },
    /// A head file without its ledger.
    #[error(
        "{head} says that a ledger with {entries} entries was here, and it is gone; a new one would forget what was spent: \
         put the old ledger back"
    )]
    OrphanHead {
        /// The `.head` file beside the ledger.
        head: PathBuf,
        /// How many entries there are.
        entries: u64,
    },
    /// Locked by another process.
    #[error(
        "another process uses the ledger {path} (it holds the lock {lock}); wait until it has ended, or end it"
    )]
    InUse {
        /// The ledger's file.
        path: PathBuf,
        /// The lock file that the other process holds.
        lock: PathBuf,
    },
    /// A file that is something else.
    #[error("{path} is not a ledger ({reason}); check the path")]
    NotALedger {
        /// The ledger's file.
        path: PathBuf,
        /// As SQLite or the system reports it.
        reason: String,
    },
    /// No right to write.
    #[error("{path} or its folder can only be read; allow its owner to write there, and start again")]
    ReadOnly {
        /// The ledger's file.
        path: PathBuf,
    },
    /// No such folder, or no right to use it.
    #[error(
        "{path} cannot be opened ({reason}); check that its folder exists and that this user may write there"
    )]
    NoAccess {
        /// The ledger's file.
        path: PathBuf,
        /// As SQLite or the system reports it.
        reason: String,
    },
    /// Rights that are too wide.
    #[error("others than its owner may write to {path} (mode {mode:o}); take that right away with chmod 600")]
    OthersMayWrite {
        /// The ledger's file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The disk is full.
    #[error("the disk with {path} is full: nothing was released; make room and start again")]
    Full {
        /// The ledger's file.
        path: PathBuf,
    },
    /// A file system without what a ledger needs.
    #[error("{path} cannot be kept safely on this file system ({reason}); move the ledger to a local disk")]
    UnsafePlace {
        /// The ledger's file.
        path: PathBuf,
        /// As SQLite or the system reports it.
        reason: String,
    },
    /// Any other failure of the disk or of SQLite.
    #[error(
        "the ledger {path} could not be read or written ({reason}); nothing was released; mend that and start again"
    )]
    Failed {
        /// The ledger's file.
        path: PathBuf,
        /// As SQLite or the system reports it.
        reason: String,
    },
    /// A write failed earlier in this process.
    #[error("the ledger {path} failed before and is not written any more by this process; start again")]
    Stopped {
        /// The ledger's file.
        path: PathBuf,
    },
    /// Written by a newer program.
    #[error("the ledger {path} has format {found} and this program knows up to {known}; use a newer program")]
    NewerFormat {
        /// The ledger's file.
        path: PathBuf,
        /// What the file has.
        found: u32,
        /// The newest format that this program reads.
        known: u32,
    },
    /// What SQLite itself finds wrong.
    #[error("the file {path} is cut or damaged ({reason}); put back a copy that is whole and as recent")]
    Damaged {
        /// The ledger's file.
        path: PathBuf,
        /// As SQLite or the system reports it.
        reason: String,
    },

    /// An entry with a wrong hash.
    #[error(
        "entry {seq} of {path} was changed: it does not have the hash that it was written with; do not trust it"
    )]
    Changed {
        /// The ledger's file.
        path: PathBuf,
        /// Number of the entry, from 1.
        seq: u64,
    },
    /// An entry was taken out of the middle.
    #[error("entry {seq} of {path} is missing, and later ones are there; do not trust the rest")]
    Gap {
        /// The ledger's file.
        path: PathBuf,
        /// Number of the entry, from 1.
        seq: u64,
    },
    /// An entry in a wrong place.
    #[error("entry {seq} of {path} is not where it was written: entries were reordered; do not trust them")]
    Reordered {
        /// The ledger's file.
        path: PathBuf,
        /// Number of the entry, from 1.
        seq: u64,
    },
    /// An entry whose own hash is right and whose link is not.
    #[error(
        "entry {seq} of {path} does not follow the entry before it: one of them was put in or replaced; do not trust them"
    )]
    Detached {
        /// The ledger's file.
        path: PathBuf,
        /// Number of the entry, from 1.
        seq: u64,
    },
    /// An entry of a kind that this program does not know.
    #[error(
        "entry {seq} of {path} has the unknown kind {kind:?}; use the program that wrote it, or a newer one"
    )]
    UnknownKind {
        /// The ledger's file.
        path: PathBuf,
        /// Number of the entry, from 1.
        seq: u64,
        /// The kind that this program does not know.
        kind: String,
    },
    /// An entry with correct hashes that cannot stand where it stands.
    #[error("entry {seq} of {path} does not make sense ({reason}); do not trust the ledger")]
    Senseless {
        /// The ledger's file.
        path: PathBuf,
        /// Number of the entry, from 1.
        seq: u64,
        /// As SQLite or the system reports it.
        reason: String,
    },
    /// Two charges or payloads for one round.
    #[error(
        "entry {seq} of {path} is a second payload or charge for round {round} of run {run}, after entry {first}; do not \
         trust the ledger"
    )]
    SecondPayload {
        /// The ledger's file.
        path: PathBuf,
        /// Number of the entry, from 1.
        seq: u64,
        /// The entry that charged the round before.
        first: u64,
        /// Hash of the run's contract, in hexadecimal digits.
        run: String,
        /// Counted from 1.
        round: u32,
    },
    /// A payload of another length than its entry says.
    #[error("entry {seq} of {path} says that {stated} bytes left, and {found} are stored; do not trust it")]
    WrongLength {
        /// The ledger's file.
        path: PathBuf,
        /// Number of the entry, from 1.
        seq: u64,
        /// What the entry says.
        stated: u64,
        /// What the file has.
        found: u64,
    },
    /// Entries are missing at the end.
    #[error(
        "the ledger {path} is truncated: it has {entries} entries, and its head file says that there were {head}; put back the \
         recent copy, or what was spent since is forgotten"
    )]
    Truncated {
        /// The ledger's file.
        path: PathBuf,
        /// How many entries there are.
        entries: u64,
        /// How many the head file says.
        head: u64,
    },
    /// The head file belongs to another history.
    #[error(
        "entry {seq} of {path} is not the one that its head file names: this is another ledger, or it was rewritten; put \
         back the one that belongs to the head file"
    )]
    OtherHead {
        /// The ledger's file.
        path: PathBuf,
        /// Number of the entry, from 1.
        seq: u64,
    },
    /// The `.head` file beside the ledger is missing.
    #[error(
        "{head} is missing, so entries at the ledger's end may be missing too; put it back, or, if you are sure that the \
         {entries} entries are all, run `padmm ledger verify LEDGER --restore-head`, which notes it in the ledger"
    )]
    HeadMissing {
        /// The `.head` file beside the ledger.
        head: PathBuf,
        /// How many entries there are.
        entries: u64,
    },
    /// A head file that is none.
    #[error(
        "{head} is not a ledger's head file; put back the right one, or remove it and, if you are sure that the ledger is \
         whole, run `padmm ledger verify LEDGER --restore-head`"
    )]
    HeadUnreadable {
        /// The `.head` file beside the ledger.
        head: PathBuf,
    },

    /// More than the site's cap.
    #[error(
        "the site's cap forbids it: epsilon {} was spent so far, with {what} it would be {}, and the cap is \
         {cap} (all at delta {}); raise the cap with `padmm ledger cap`, or agree to a plan that costs less",
        epsilon_text(*spent),
        epsilon_text(*total),
        delta_text(*delta)
    )]
    CapReached {
        /// What it is about.
        what: String,
        /// ε that was spent or reserved before.
        spent: f64,
        /// What it would come to.
        total: f64,
        /// The ε that the site allows.
        cap: f64,
        /// The delta of all three.
        delta: f64,
    },
    /// A run that was never started.
    #[error("run {run} was not started in the ledger {path}; start it before anything else")]
    UnknownRun {
        /// The ledger's file.
        path: PathBuf,
        /// Hash of the run's contract, in hexadecimal digits.
        run: String,
    },
    /// A run that was started otherwise.
    #[error("run {run} was started in the ledger {path} with another {what}; a run never changes")]
    RunDiffers {
        /// The ledger's file.
        path: PathBuf,
        /// Hash of the run's contract, in hexadecimal digits.
        run: String,
        /// What it is about.
        what: &'static str,
    },
    /// A run that was begun with noise from elsewhere.
    #[error(
        "run {run} was begun in the ledger {path} with this noise: {recorded}. This program has another: {here}. Nothing was \
         charged or sent. What a run promises rests on the noise of all its rounds, so it is finished by the program that began it, or \
         not at all: if that was a test build, count what it released as not protected, and make a new plan"
    )]
    OtherNoise {
        /// The ledger's file.
        path: PathBuf,
        /// Hash of the run's contract, in hexadecimal digits.
        run: String,
        /// Where the run's noise came from so far.
        recorded: String,
        /// Where this process takes noise from.
        here: String,
    },
    /// A run that is finished.
    #[error("run {run} is finished in the ledger {path}; nothing is added to it")]
    RunOver {
        /// The ledger's file.
        path: PathBuf,
        /// Hash of the run's contract, in hexadecimal digits.
        run: String,
    },
    /// A second charge for a round.
    #[error("round {round} of run {run} was charged already in {path}; a round is released at most once")]
    AlreadyCharged {
        /// The ledger's file.
        path: PathBuf,
        /// Hash of the run's contract, in hexadecimal digits.
        run: String,
        /// Counted from 1.
        round: u32,
    },
    /// A release that the plan does not have.
    #[error("round {round} of run {run} has no release in its plan, or another one; nothing was charged")]
    NotPlanned {
        /// Hash of the run's contract, in hexadecimal digits.
        run: String,
        /// Counted from 1.
        round: u32,
    },
    /// A release without a charge.
    #[error(
        "round {round} of run {run} was not charged before its release was to be written; nothing was released"
    )]
    NotCharged {
        /// Hash of the run's contract, in hexadecimal digits.
        run: String,
        /// Counted from 1.
        round: u32,
    },
    /// A neighbour contradicts itself.
    #[error(
        "{sender} sent two different messages for {turn} of run {run}; the first is kept, and the site \
         should be asked about the second"
    )]
    SecondMessage {
        /// Hash of the run's contract, in hexadecimal digits.
        run: String,
        /// The neighbour's name in the plan.
        sender: String,
        /// The turn that both are for.
        turn: Turn,
    },
    /// Refused by the privacy core.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
}
