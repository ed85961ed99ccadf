//! The mathematics of private ADMM: data, losses, solvers, steps and agents. No I/O, no clock, no randomness
//! of its own.

pub mod data;
