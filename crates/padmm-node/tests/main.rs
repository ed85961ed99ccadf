//! One site from outside: one program, which is linked once and whose tests run side by side.

mod common;
mod contract;
mod identity;
#[path = "ledger/main.rs"]
mod ledger;
mod link;
mod own_model;
mod rollback;
mod session;
mod start;
mod which_ledger;
