//! The mathematics of private ADMM: data, losses, solvers, steps and agents. No I/O, no clock, no randomness
//! of its own.

#![warn(clippy::unwrap_used)]

pub mod account;
pub mod advice;
pub mod agent;
pub mod algorithm;
pub mod calibration;
mod elementary;
pub mod evaluate;
pub mod graph;
mod kernel;
mod matrix;
pub mod message;
pub mod metrics;
pub mod model;
pub mod own;
pub mod plan;
pub mod printable;
pub mod privacy_noise;
pub mod problem;
pub mod settings;
pub mod solvable;
pub mod solver;
pub mod step;
pub mod theory;
pub mod vector;

pub use problem::{data, loss, objective, regularizer, schema};
