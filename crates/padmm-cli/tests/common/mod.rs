//! Runs the program of this package.

#[path = "../../../padmm-commands/tests/common/mod.rs"]
mod shared;

#[allow(unused_imports)]
pub(crate) use shared::*;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_padmm");
