//! What the project is measured with: `padmm-bench` sets this program against its peers and against the machine, and
//! `padmm-lab sim` plays whole networks in a made-up world. `padmm-testbuild`, the command with repeatable noise and fault points,
//! is a binary of the same crate and uses nothing of this library. `links` is the network that tests and benchmarks put between
//! sites, and `homes` makes sites that benchmarks run.
//!
//! The crate is never published, and nothing that is shipped depends on it.

pub mod bench;
pub mod homes;
pub mod links;
pub mod sim;
