//! One site of a network, on a machine of its own: who it is, what it agreed to, what it has spent, and how it talks to
//! its neighbours. The mathematics and the gate are those of the other crates; what runs here is the same agent that the
//! simulator runs.
//!
//! | question | module |
//! |---|---|
//! | who a site is, and how others know | [`identity`] |
//! | what the sites agreed to | [`contract`] |
//! | what a site has spent and released | [`ledger`] |
//! | a site at work | [`site`] |
//! | one site's side of a run, without sockets and clocks | [`session`] |
//! | what it writes down | [`journal`] |
//! | whether it can run, before anything is spent | [`doctor`] |
//! | what travels between two sites | [`frame`] |
//! | when a neighbour is dialled, and which frames are on their way to it | [`link`] |
//! | how it gets there | [`transport`], from the [`outbox`] of one site to the [`mailbox`] of another |
//! | what ends it from outside | [`signals`] |
//! | where a process may be killed in tests | [`fault`] |

#![warn(clippy::unwrap_used)]
// What is shown goes through the one place that makes it printable.
#![warn(clippy::print_stderr)]

pub mod clock;
pub mod contract;
pub mod doctor;
pub mod fault;
pub mod frame;
pub mod identity;
pub mod journal;
pub mod ledger;
pub mod link;
pub mod mailbox;
pub mod outbox;
pub mod session;
pub mod signals;
pub mod site;
pub mod transport;
