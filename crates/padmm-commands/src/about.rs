//! What `--help` says about each subcommand that `padmm` lists and another program does.

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
