//! Hostile and broken peers against sites that run P-ADMM.

mod attacks;

use padmm_core::algorithm::{AlgorithmKind, P_ADMM};

const ALGORITHM: AlgorithmKind = P_ADMM;
