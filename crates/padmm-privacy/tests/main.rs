//! The audit target from outside: one program, which is linked once and whose tests run side by side.

mod calibrate;
mod common;
mod gate;
mod noise;
mod oracle;
mod paper;
mod sums;
mod whitened;
mod words;
