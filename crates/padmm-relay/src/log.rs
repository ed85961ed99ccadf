//! The relay's log: who came and who left, on standard error.

use padmm_commands::terminal::warn;
use padmm_core::printable::printable;
use padmm_node::clock;
use padmm_node::site::utc;

/// One line, in which nothing that others wrote can begin another.
pub(crate) fn log(what: &str) {
    let now = clock::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    warn(&format!("{} relay: {}\n", utc(now), printable(what)));
}
