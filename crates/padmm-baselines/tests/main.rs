//! The compared methods from outside: one program, which is linked once and whose tests run side by side.

mod accountants;
mod baselines;
mod composition;
mod errors;
mod objective;
mod schedules;
mod unprotected;
