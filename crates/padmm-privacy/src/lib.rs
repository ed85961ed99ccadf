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
//! | what it costs, added up | `accountant`; pure mechanisms in `composition`, on `privacy_loss` and `renyi` |
//! | from one privacy measure to another | `convert`, on `normal` and `outward` |
//! | how the noise fades over rounds | `decay` |
//! | how fine the release grid is, and what discreteness costs | `grid` |
//! | how much noise a budget asks for | `calibrate`, `pure`, `gaussian_objective`, all of them a `schedule`, with a `report` |
//! | what people are told: numbers, and the promise in words | `words`, `promise` |
//! | where the randomness comes from | `sample` |
//! | how noise and value become integers on a grid | `mechanism` |
//! | what was spent | `ledger`; over several runs: `spending` |
//! | what may leave, and in which order | `gate`, and what others may do with it: `public` |
//!
//! The order of a release is fixed: *describe, debit, draw, compute, seal* (see [`Gate::release`]).

mod accountant;
mod budget;
mod calibrate;
mod composition;
mod convert;
mod decay;
mod error;
mod event;
mod gate;
mod gaussian_objective;
mod grid;
mod ledger;
mod mechanism;
mod normal;
pub mod outward;
mod privacy_loss;
mod promise;
mod public;
mod pure;
mod renyi;
mod report;
mod sample;
mod schedule;
mod sensitivity;
mod spending;
pub mod words;

pub use accountant::{
    Accountant, BasicAccountant, GdpAccountant, PureAccountant, RdpAccountant, ZcdpAccountant, ZcdpConversion,
};
pub use budget::{Adjacency, Budget, Delta, Epsilon, GdpMu, ZcdpRho, group_mu, group_rho};
pub use calibrate::{AccountantKind, NoiseRequest, NoiseSchedule};
pub use composition::{CompositionRule, Compositions, compose_pure, per_step_epsilon};
pub use convert::{
    gdp_delta, gdp_epsilon, gdp_mu, paper_epsilon, paper_rho, rho_to_mu, zcdp_epsilon, zcdp_rho,
};
pub use decay::{Decay, dynamic_curve};
pub use error::PrivacyError;
pub use event::Event;
pub use gate::{Gate, Release};
pub use gaussian_objective::{GaussianObjectiveRequest, GaussianObjectiveSchedule};
pub use ledger::{Debit, Ledger, MemoryLedger};
pub use mechanism::{
    Certified, Drawn, GammaOutput, GridGaussian, Mechanism, ObjectivePerturbation, Payload,
    RequiredCertificate, Unprotected,
};
pub use normal::{mills_ratio_down, mills_ratio_up};
pub use promise::{Promise, Stopping};
pub use public::{PeerRelease, Public};
pub use pure::{PureRequest, PureSchedule, PureStep, PureTarget};
pub use report::{ExactMethod, PrivacyReport, SpentEpsilon};
pub use sample::{NoiseSource, SecureNoise};
pub use schedule::Schedule;
pub use sensitivity::{ObjectiveInputs, Sensitivity, SensitivityBasis, SensitivityInputs, default_tolerance};
pub use spending::Spending;
