//! The problem that sites solve together: records under a public schema, a loss, a regulariser, and the objective made of them.
//!
//! Rows of a table become a [`data::Dataset`] by [`schema`]; a [`loss::Loss`] and a [`regularizer::Regularizer`] make an
//! [`objective::Objective`] of it, which a [`crate::solver`] minimises.

pub mod data;
pub mod loss;
pub mod objective;
pub mod regularizer;
pub mod schema;
