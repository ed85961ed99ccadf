//! The same against sites that run consensus Newton, where releases are passed on.

#[path = "../hostile/attacks.rs"]
mod attacks;

use padmm_core::algorithm::{AlgorithmKind, CONSENSUS_NEWTON};

const ALGORITHM: AlgorithmKind = CONSENSUS_NEWTON;
