//! The privacy core of padmm: sensitivity, noise, accounting and the gate through which every release passes.
//!
//! This crate is the audit target. It depends on no other crate of the project, it contains no `unsafe`, and every
//! function that a guarantee rests on states that guarantee and the direction in which it rounds. One concept, one file:
//!
//! | question | file |
//! |---|---|
//! | what is promised, to whom | `budget` |
//! | how far one record can move a model | `sensitivity` |
//! | what was done | `event` |
//! | from one privacy measure to another | `convert`, on `normal` and `outward` |
//! | how the noise fades over rounds | `decay` |
//! | how fine the release grid is, and what discreteness costs | `grid` |
//! | how much noise a budget asks for | `calibrate`, `calibrate_sums` |
//! | the noise of a run, and what it adds up to | `gaussian`, a `schedule` with a `report` |
//! | what people are told: numbers, and the promise in words | `words`, `promise` |
//! | where the randomness comes from | `sample` |
//! | how noise and value become integers on a grid | `mechanism` |
//! | what was spent | `ledger`; over several runs: `spending` |
//! | what may leave, and in which order | `gate`, and what others may do with it: `public` |
//!
//! The order of a release is fixed: *describe, debit, draw, compute, seal* (see [`Gate::release`]).

#![warn(clippy::unwrap_used)]

mod budget;
mod calibrate;
mod calibrate_sums;
mod convert;
mod decay;
mod error;
mod event;
mod gate;
mod gaussian;
mod grid;
mod ledger;
mod mechanism;
mod normal;
pub mod outward;
mod promise;
mod public;
mod report;
mod sample;
mod schedule;
mod sensitivity;
mod spending;
pub mod words;

pub use budget::{Adjacency, Budget, Delta, Epsilon, GdpMu, ZcdpRho, group_mu, group_rho};
pub use calibrate::{Conversion, NoiseRequest, check_features};
pub use calibrate_sums::SumRound;
pub use convert::{
    gdp_delta, gdp_epsilon, gdp_mu, paper_epsilon, paper_rho, renyi_epsilon_at, rho_to_mu,
    smallest_over_orders, zcdp_epsilon, zcdp_rho,
};
pub use decay::Decay;
pub use error::{PrivacyError, require};
pub use event::Event;
pub use gate::{Gate, Release};
pub use gaussian::NoiseSchedule;
pub use ledger::{Debit, Ledger, MemoryLedger};
pub use mechanism::{
    Certified, ClippedSum, Computed, Drawn, GridGaussian, Mechanism, Payload, RecordRows,
    RequiredCertificate, Terms, WhitenedRows, Workers,
};
pub use normal::{mills_ratio_down, mills_ratio_up};
pub use promise::{Promise, Stopping};
pub use public::PublicVector;
pub use report::{Compositions, ExactMethod, PrivacyReport, SpentEpsilon};
pub use sample::{NoiseSource, SecureNoise};
pub use schedule::{Premise, Schedule};
pub use sensitivity::{Sensitivity, SensitivityBasis, SensitivityInputs, require_count, require_positive};
pub use spending::Spending;
