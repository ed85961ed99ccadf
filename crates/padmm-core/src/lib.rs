//! The mathematics of private ADMM: data, losses, solvers, steps and agents. No I/O, no clock, no randomness
//! of its own.

pub mod account;
pub mod agent;
pub mod algorithm;
pub mod data;
pub mod evaluate;
pub mod graph;
mod kernel;
pub mod loss;
pub mod message;
pub mod metrics;
pub mod model;
pub mod objective;
pub mod plan;
pub mod regularizer;
pub mod schema;
pub mod solvable;
pub mod solver;
pub mod step;
pub mod terms;
pub mod theory;
mod vector;
