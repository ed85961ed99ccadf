//! The flags of `padmm plan new`: those settings that sites have to agree on.

use padmm_core::graph::GraphSpec;
use padmm_core::plan::PlanDraft;

use super::{GraphText, Settings};

/// What is computed, between whom, at which cost. The names and defaults are those of `padmm simulate`.
#[derive(clap::Args, Clone, Debug)]
pub struct PlanFlags {
    /// logistic, hinge, huberized-hinge or huber [default: logistic]
    #[arg(long, value_name = "NAME", help_heading = "Problem")]
    loss: Option<String>,
    /// Width of huber [default: 0.1] and huberized-hinge [default: 0.5]
    #[arg(long, value_name = "H", help_heading = "Problem", allow_negative_numbers = true)]
    loss_width: Option<f64>,
    /// none, l2, l1, elastic-net or group-lasso [default: l2]
    #[arg(long, value_name = "NAME", help_heading = "Problem")]
    regularizer: Option<String>,
    /// Strength Λ of the regulariser in R(x) = Λ‖x‖² (every site has R/N) [default: 0.001]
    #[arg(long, value_name = "L", help_heading = "Problem", allow_negative_numbers = true)]
    regularization: Option<f64>,
    /// Share of the L1 part in elastic-net [default: 0.5]
    #[arg(long, value_name = "A", help_heading = "Problem", allow_negative_numbers = true)]
    l1_ratio: Option<f64>,

    /// p-admm or linearized: the algorithms that sites can run between them [default: p-admm]
    #[arg(long, value_name = "NAME", help_heading = "Algorithm")]
    algorithm: Option<String>,
    /// ring, path, star, complete, grid, torus, erdos-renyi:P, geometric:R, small-world:K,BETA, regular:D or edges:a-b,b-c
    /// [default: complete]
    #[arg(long, value_name = "GRAPH", help_heading = "Algorithm")]
    graph: Option<GraphText>,
    /// ADMM penalty η [default: derived from public facts, and written into the plan]
    #[arg(long, value_name = "E", help_heading = "Algorithm", allow_negative_numbers = true)]
    penalty: Option<f64>,
    /// Private rounds K [default: 50]
    #[arg(long, value_name = "K", help_heading = "Algorithm", allow_negative_numbers = true)]
    rounds: Option<u32>,
    /// Solver tolerance as a part of 2B/n; it enters the sensitivity [default: 1e-6, hinge 1e-3]
    #[arg(long, value_name = "T", help_heading = "Algorithm", allow_negative_numbers = true)]
    tolerance: Option<f64>,
    /// Model that sites keep: smoothed or last [default: smoothed]
    #[arg(long, value_name = "WHICH", help_heading = "Algorithm")]
    output: Option<String>,

    /// Total privacy loss ε of every site [default: 5]
    #[arg(long, value_name = "E", help_heading = "Privacy", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// δ [default: 0.0001]
    #[arg(long, value_name = "D", help_heading = "Privacy", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Factor R of the noise variance from round to round [default: 0.995]
    #[arg(long, value_name = "R", help_heading = "Privacy", allow_negative_numbers = true)]
    decay: Option<f64>,
}

impl PlanFlags {
    /// The plan's own part.
    pub fn draft(&self) -> anyhow::Result<PlanDraft> {
        let flags = self.clone();
        Settings {
            loss: flags.loss,
            loss_width: flags.loss_width,
            regularizer: flags.regularizer,
            regularization: flags.regularization,
            l1_ratio: flags.l1_ratio,
            algorithm: flags.algorithm,
            penalty: flags.penalty,
            rounds: flags.rounds,
            tolerance: flags.tolerance,
            output: flags.output,
            epsilon: flags.epsilon,
            delta: flags.delta,
            decay: flags.decay,
            ..Settings::default()
        }
        .draft()
    }

    /// Who talks to whom.
    pub fn graph(&self) -> GraphSpec {
        self.graph.as_ref().map_or(GraphSpec::Complete, |graph| graph.0.clone())
    }
}
