//! The program `padmm`: one program, which is linked once and whose tests run side by side.

mod account;
mod bad_input;
mod common;
mod handover;
mod reproduce;
mod simulate;
