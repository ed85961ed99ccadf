//! An attack on the project's own guarantee, on the code that is shipped.
//!
//! A site promises that its releases hardly depend on any one record. Here an attacker plays its neighbour, knows everything but
//! one bit of one record, and guesses that bit from what it receives. If it is right more often than the promise allows, the
//! promise is broken. The records are made so that the guess is as easy as the promise permits (`canary.rs`), so a sound program
//! is measured at its claim and not far below it.
//!
//! | question | file |
//! |---|---|
//! | what is attacked: the shipped site, or a test double with a bug in it | `target` |
//! | which records and which plan make an attack as strong as the claim allows | `canary` |
//! | what the two possible records would have led to | `shadow` |
//! | one run with an attacker for a neighbour | `attack` |
//! | from guesses to a lower bound of epsilon | `bound`, on `binomial` and `normal` |
//! | whether the noise is what it is said to be | `whiteness` |
//! | one payload and one charge for each round, across restarts | `payload` |
//! | whether a neighbour's message can make a site stop, depending on records | `stopping` |
//! | whether neighbouring files are answered alike | `refusals` |
//! | all of it in one go, and what it comes to | `audit`, `verdict` |
//!
//! A lower bound is evidence, not proof: an attack that finds nothing shows that *this* attacker finds nothing.

#![warn(clippy::unwrap_used)]

mod attack;
mod audit;
mod binomial;
mod bits;
mod bound;
mod canary;
mod error;
mod normal;
mod payload;
mod refusals;
mod shadow;
mod stopping;
mod target;
mod verdict;
mod whiteness;

pub use attack::{Evidence, attack, replay};
pub use audit::{AuditRequest, audit};
pub use binomial::{clopper_pearson_lower, clopper_pearson_upper};
pub use bits::Bits;
pub use bound::{Bounds, Trial, bounds};
pub use canary::{Canary, CanaryRequest};
pub use error::AuditError;
pub use normal::{normal_distribution, normal_quantile};
pub use payload::one_payload;
pub use refusals::{Answer, NeighbouringFiles, neighbouring_files, refusals};
pub use shadow::Shadow;
pub use stopping::stopping;
pub use target::{Rows, Scene, Shipped, Subject, Target, assemble};
pub use verdict::{ACCUSING_CONFIDENCE, Check, Checks, Verdict};
pub use whiteness::{FALSE_ALARM, whiteness};
