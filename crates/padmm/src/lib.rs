//! Differentially private ADMM between sites that may not pool their records.
//!
//! ```
//! use padmm::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let run = Simulation::new(datasets::adult()?)
//!     .graph(Graph::ring(5)?)
//!     .algorithm(PAdmm::default())
//!     .privacy(Budget::new(1.0, 1e-5)?)
//!     .seed(7)
//!     .run()?;
//! println!("{}\nloss {:.4}", run.privacy().statement(), run.loss());
//! # let folder = tempfile::tempdir()?;
//! # std::env::set_current_dir(&folder)?;
//! run.model().save("model.json")?;
//! # Ok(())
//! # }
//! ```
//!
//! | crate | what it is |
//! |---|---|
//! | [`privacy`] | sensitivity, noise, accounting, and the gate through which every release passes |
//! | [`core`] | the mathematics: problems, solvers, agents, algorithms, plans |
//! | [`baselines`] | the methods that P-ADMM is compared with |
//! | [`data`] | tables become records; shipped data sets |
//! | [`sim`] | all sites in one process |
//! | `node` | real sites, with the feature `network` |
//!
//! The folder `examples` has a program for each of: a matrix of one's own, accounting alone, a custom graph, a network in memory, a
//! gate by hand, and an algorithm of one's own.

#![warn(clippy::unwrap_used)]

pub use padmm_baselines as baselines;
pub use padmm_core as core;
pub use padmm_data as data;
#[cfg(feature = "network")]
pub use padmm_node as node;
pub use padmm_privacy as privacy;
pub use padmm_sim as sim;

/// What most programs need, in one `use padmm::prelude::*`.
pub mod prelude {
    pub use padmm_baselines::{Admm, Dvp, GaussianObjective, MAdmm, MrAdmm, Pvp, RAdmm};
    pub use padmm_core::algorithm::{DpAdmm, Linearized, PAdmm, Token};
    pub use padmm_core::graph::{Graph, GraphSpec};
    pub use padmm_core::loss::Loss;
    pub use padmm_core::model::Model;
    pub use padmm_core::regularizer::Regularizer;
    pub use padmm_core::schema::{Schema, SchemaDraft};
    pub use padmm_data::{Loaded, ModelFile, datasets};
    pub use padmm_privacy::{Budget, Delta, Epsilon};
    pub use padmm_sim::{Finished, Holdout, Simulation, Split};
}
