//! Why a site does not run, or stops.

use std::path::PathBuf;

use padmm_privacy::PrivacyError;

use crate::contract::ContractError;
use crate::identity::IdentityError;
use crate::ledger::LedgerError;
use crate::session::SessionError;
use crate::transport::quic::TransportError;

/// Why a site does not run, or stops.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum SiteError {
    /// The site's folder, keys, cards or certificates.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The plan, or an acceptance of it.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// The file of records could not be read or encoded.
    #[error(transparent)]
    Data(#[from] padmm_data::DataError),
    /// The ledger could not be opened or written, or its cap is reached.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The socket or the network thread could not be had.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The session of the run stopped.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A number of the plan that the privacy core does not accept.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// The plan was not accepted here.
    #[error("{site} has not accepted a plan named {run}{accepted}: read the plan with `padmm-site plan check PLAN.toml` and accept it with `padmm-site plan accept PLAN.toml --home {home} --cards DIR`", home = home.display())]
    NotAccepted {
        /// This site's name in the plan.
        site: String,
        run: String,
        /// The folder of the site's keys and configuration.
        home: PathBuf,
        /// The plans that it has accepted, in words; or nothing.
        accepted: String,
    },
    /// Other records than the plan says.
    #[error("{file} has {found} rows and the plan says {planned} records for {site}: every row is a record, whatever it says, and the noise follows from their number, so it must be the same. Make a new plan, or bring back the file that was planned with", file = file.display())]
    Records {
        file: PathBuf,
        /// This site's name in the plan.
        site: String,
        found: usize,
        planned: usize,
    },
    /// The plan's loss is for the other kind of label.
    #[error("the plan's loss, {loss}, does not fit the label of its schema")]
    Label {
        /// By the name that plans use.
        loss: String,
    },
    /// The plan's algorithm adds no noise.
    #[error("the plan has no noise: a site releases nothing that is not protected")]
    NoNoise,
    /// Which ledger these records belong to is not clear.
    #[error("{0}")]
    WhichLedger(String),
    /// One ledger and a copy of it.
    #[error("{first} and {second} begin with the same entry: one is a copy of the other, and what left since is charged in only one of them. Find the newest with `padmm-site ledger verify`, keep that one under its own name, and move the other, with its .head file, out of the folder; never continue from an older one", first = first.display(), second = second.display())]
    CopiedLedger {
        /// The first in the order of their names.
        first: PathBuf,
        second: PathBuf,
    },
    /// Two ledgers of the same records.
    #[error("{first} and {second} are both of the same records, by their fingerprint: what was spent is spread over the two, and neither says how much it is. Nothing may leave; count both as spent together, and ask whoever made the second", first = first.display(), second = second.display())]
    TwoLedgers {
        /// The first in the order of their names.
        first: PathBuf,
        second: PathBuf,
    },
    /// A run that was begun with other records.
    #[error("this run was begun in the ledger {ledger}, and the records in {file} have another: a run is on one set of records from its first round to its last. Bring back the records that it was begun with, or make a new plan", ledger = ledger.display(), file = file.display())]
    RunElsewhere { file: PathBuf, ledger: PathBuf },
    /// The cap in the configuration is not the ledger's.
    #[error("site.toml allows epsilon = {config} at delta = {config_delta}, and the ledger {ledger} has epsilon = {recorded} at delta = {recorded_delta}: the ledger decides. Change it on purpose with `padmm-site ledger cap {ledger} --epsilon {config} --delta {config_delta}`, or correct site.toml", ledger = ledger.display())]
    Cap { config: f64, config_delta: f64, recorded: f64, recorded_delta: f64, ledger: PathBuf },
    /// There is no model to make one's own of.
    #[error("the run {run} has no model yet: {folder} holds no model.json. `padmm-site site run` writes it when the run comes to its end", folder = folder.display())]
    NoModel { run: String, folder: PathBuf },
    /// A file of results cannot be written.
    #[error("{path} cannot be written ({reason}); nothing is lost, start again when it can be", path = path.display())]
    Output { path: PathBuf, reason: String },
}
