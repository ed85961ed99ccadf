//! The methods that P-ADMM is compared with, and what only they need: pure and Rényi accounting, gamma-norm noise, noise on the
//! objective, no noise at all.
//!
//! Everything here makes its noise of doubles, so no guarantee is stated for the bytes that leave, and `padmm-node` does not link this
//! crate: that a real site cannot use such noise is a fact of the compiler. Algorithms with exact noise are in
//! [`padmm_core::algorithm`].
//!
//! ```
//! use padmm_baselines::{ALL, DVP};
//! use padmm_core::plan::PlanDraft;
//!
//! let plan = PlanDraft { algorithm: DVP, ..PlanDraft::default() }.check().unwrap();
//! assert!(!plan.settings().algorithm.runs_between_sites());
//! assert!(ALL.contains(&DVP));
//! ```

#![warn(clippy::unwrap_used)]

pub mod accounting;
mod admm;
mod dvp;
mod gaussian_objective;
mod m_admm;
pub mod mechanism;
mod pvp;
mod r_admm;

pub use admm::Admm;
pub use dvp::Dvp;
pub use gaussian_objective::GaussianObjective;
pub use m_admm::MAdmm;
pub use pvp::Pvp;
pub use r_admm::{MrAdmm, RAdmm};

use padmm_core::algorithm::{
    AlgorithmKind, CONSENSUS_NEWTON, DP_ADMM, LINEARIZED, P_ADMM, PRIVATE_GRADIENT, TOKEN,
};

/// P-ADMM's updates without noise and without any privacy: the reference.
pub const ADMM: AlgorithmKind = AlgorithmKind::new(&Admm);
/// Dual variable perturbation: noise inside the local problem.
pub const DVP: AlgorithmKind = AlgorithmKind::new(&Dvp);
/// Primal variable perturbation: noise on the minimiser.
pub const PVP: AlgorithmKind = AlgorithmKind::new(&Pvp);
/// DVP with penalties and noise rates that grow from round to round.
pub const M_ADMM: AlgorithmKind = AlgorithmKind::new(&MAdmm);
/// Recycled ADMM: DVP in odd rounds, and even rounds that cost nothing.
pub const R_ADMM: AlgorithmKind = AlgorithmKind::new(&RAdmm);
/// R-ADMM with penalties that grow from odd round to odd round.
pub const MR_ADMM: AlgorithmKind = AlgorithmKind::new(&MrAdmm);
/// DVP with Gaussian noise. Experimental: its proof is the project's own.
pub const GAUSSIAN_OBJECTIVE: AlgorithmKind = AlgorithmKind::new(&GaussianObjective);

/// Every algorithm that a simulation knows, in the order of listings. A new one is one file and a line here.
pub const ALL: [AlgorithmKind; 13] = [
    P_ADMM,
    CONSENSUS_NEWTON,
    PRIVATE_GRADIENT,
    ADMM,
    DVP,
    PVP,
    M_ADMM,
    R_ADMM,
    MR_ADMM,
    DP_ADMM,
    LINEARIZED,
    TOKEN,
    GAUSSIAN_OBJECTIVE,
];

macro_rules! by_value {
    ($($spec:ident => $kind:ident),*) => {$(
        impl From<$spec> for AlgorithmKind {
            fn from(_: $spec) -> Self {
                $kind
            }
        }
    )*};
}

by_value!(Admm => ADMM, Dvp => DVP, Pvp => PVP, MAdmm => M_ADMM, RAdmm => R_ADMM, MrAdmm => MR_ADMM);
by_value!(GaussianObjective => GAUSSIAN_OBJECTIVE);
