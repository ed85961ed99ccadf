//! One file a subcommand: its arguments, and `run`.

pub mod account;
pub mod advise;
pub mod data;
pub mod evaluate;
pub mod own;
pub mod predict;
pub mod schema;

pub use padmm_core::schema::OWN_EYES;
