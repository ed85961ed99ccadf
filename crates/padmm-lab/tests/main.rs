//! Real sites and made-up ones in trouble: one program, which is linked once and whose tests run side by side.

#![allow(clippy::duplicate_mod, reason = "the same attacks are made on two algorithms")]

mod common;
mod demo;
mod fault_points;
mod forks;
#[path = "hostile/main.rs"]
mod hostile;
#[path = "hostile_newton/main.rs"]
mod hostile_newton;
mod medium;
#[path = "relay/main.rs"]
mod relay;
mod schedules;
mod sim;
mod trouble;
