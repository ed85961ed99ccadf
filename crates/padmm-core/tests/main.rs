//! The mathematics from outside: one program, which is linked once and whose tests run side by side.

mod advice;
mod agent;
mod architecture;
mod calibration;
mod common;
mod equations;
mod graph;
mod own;
mod sensitivity;
mod solver;
mod stopping;
mod theory;
