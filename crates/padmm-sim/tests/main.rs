//! Simulations from outside: one program, which is linked once and whose tests run side by side.

mod advice;
mod algorithms;
mod capped;
#[path = "../../padmm-core/tests/common/mod.rs"]
mod common;
mod determinism;
mod measures;
mod newton;
mod paper;
mod same_bytes;
mod settings_reference;
mod splits;
