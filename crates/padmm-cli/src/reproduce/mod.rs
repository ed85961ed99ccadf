//! The paper's figures, and some that it does not have: experiments, their records, their curves.

pub(crate) mod experiment;
pub(crate) mod figures;
pub(crate) mod penalties;
pub(crate) mod runs;
pub(crate) mod tune;
