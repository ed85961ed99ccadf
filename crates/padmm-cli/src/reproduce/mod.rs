//! The paper's figures, and some that it does not have: experiments, their records, their curves.

pub mod experiment;
pub mod figures;
pub mod penalties;
pub mod runs;
pub mod tune;
