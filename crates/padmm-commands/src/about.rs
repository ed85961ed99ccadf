//! What `--help` says about each subcommand that two programs list.

/// `padmm-site site`, which `padmm site` hands over to.
pub const SITE: &str = "One site: make its keys and card, exchange cards, renew them, run a plan, see how it goes, fit its own model";
/// `padmm-site plan`, which `padmm plan` hands over to.
pub const PLAN: &str = "What sites agree to: make a plan, see what it costs, accept it, compare two";
/// `padmm-site ledger`, which `padmm ledger` hands over to.
pub const LEDGER: &str =
    "What a site has spent and released: show, verify or export it, or set the site's cap";
/// `padmm-site doctor`, which `padmm doctor` hands over to.
pub const DOCTOR: &str =
    "Whether a site can run, before anything is spent: home, disk, ledger, plan, network, records";
/// `padmm-site audit`, which `padmm audit` hands over to.
pub const AUDIT: &str = "Attack this program: whether its releases tell more about a record than is promised";
/// `padmm-relay`, which `padmm relay` hands over to.
pub const RELAY: &str =
    "Forward encrypted packets between sites that can only dial out, for the sites of given cards and plans";
/// `demo` of both programs; that of `padmm` compares with the simulator.
pub const DEMO: &str = "Try real sites out: several processes on this machine, with keys, plan, ledgers and an encrypted network";
/// About `account`, which both programs have.
pub const ACCOUNT: &str = "From noise to epsilon and back, without data";
/// About `advise`, which both programs have.
pub const ADVISE: &str =
    "What a network may be expected to come to, before anybody signs: from public facts, without records";
/// About `data`, which both programs have.
pub const DATA: &str = "List, describe or export the data sets that are built in";
/// About `schema`, which both programs have.
pub const SCHEMA: &str = "Draft a schema for a file, or check a file against one";
/// About `own`, which both programs have.
pub const OWN: &str =
    "Fit a model for use inside this site alone, from the joint model and the site's own records";
/// About `predict`, which both programs have.
pub const PREDICT: &str = "Apply a saved model to a file";
/// About `evaluate`, which both programs have.
pub const EVALUATE: &str = "Score a saved model on a file with labels";
