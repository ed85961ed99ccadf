//! Eigenvalues of a graph's Laplacians, as the convergence theorems name them.

use faer::{Mat, Side};
use serde::Serialize;

use super::Graph;

/// The spectrum of a graph, in the notation of the paper's §IV.
///
/// ```text
/// L₊ = D + A,   L₋ = D − A,   M = ½(L₊ + L₋) = D,   Q = √(L₋/2)
/// φ_max, φ_min = largest and smallest non-zero singular value
/// ```
///
/// `D` holds the degrees, `A` is the adjacency matrix; `signless` are the eigenvalues of `L₊`, `signed` those of
/// `L₋`, both ascending. All four matrices are symmetric and positive semi-definite, so singular values are
/// eigenvalues. Which eigenvalues are zero is decided by the graph, not by a threshold: a connected graph has
/// one zero in `L₋`, and one in `L₊` if and only if it is bipartite. The maxima and minima of a single agent,
/// who has no edges, are zero.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spectrum {
    /// `N`, the order of all four matrices.
    pub n_agents: usize,
    /// Edges, each counted once.
    pub n_edges: usize,
    /// Whether `L₊` is singular, which is the case exactly for bipartite graphs.
    pub bipartite: bool,
    /// Eigenvalues of the signless Laplacian `L₊`, ascending.
    pub signless: Vec<f64>,
    /// Eigenvalues of the signed (usual) Laplacian `L₋`, ascending.
    pub signed: Vec<f64>,
    /// The second smallest eigenvalue of `L₋` (Fiedler): how well connected the graph is.
    pub algebraic_connectivity: f64,
    /// `φ_max(L₊)`, the largest of `signless`.
    pub signless_max: f64,
    /// `φ_min(L₊)`, the smallest that is not zero.
    pub signless_min: f64,
    /// `φ_max(L₋)`, the largest of `signed`.
    pub signed_max: f64,
    /// `φ_min(L₋)`, the smallest that is not zero; the same as the algebraic connectivity.
    pub signed_min: f64,
    /// `φ_max(Q)`, the root of half of `signed_max`.
    pub root_max: f64,
    /// `φ_min(Q)`, the smallest that is not zero.
    pub root_min: f64,
    /// `φ_max(M)`, the largest degree.
    pub degree_max: f64,
    /// `φ_min(M)`, the smallest degree.
    pub degree_min: f64,
}

impl Spectrum {
    /// The spectrum of `graph` by a dense symmetric eigensolver: cubic in the number of agents.
    pub fn of(graph: &Graph) -> Self {
        let bipartite = graph.is_bipartite();
        let mut signless = laplacian_eigenvalues(graph, 1.0);
        let mut signed = laplacian_eigenvalues(graph, -1.0);
        // These are zero exactly; the solver leaves rounding errors of either sign.
        signed[0] = 0.0;
        if bipartite {
            signless[0] = 0.0;
        }
        let last = graph.n_agents() - 1;
        let smallest_signed = signed[last.min(1)];
        let smallest_signless = signless[if bipartite { last.min(1) } else { 0 }];
        Self {
            n_agents: graph.n_agents(),
            n_edges: graph.n_edges(),
            bipartite,
            algebraic_connectivity: smallest_signed,
            signless_max: signless[last],
            signless_min: smallest_signless,
            signed_max: signed[last],
            signed_min: smallest_signed,
            root_max: (signed[last] / 2.0).sqrt(),
            root_min: (smallest_signed / 2.0).sqrt(),
            degree_max: graph.max_degree() as f64,
            degree_min: graph.min_degree() as f64,
            signless,
            signed,
        }
    }

    /// `φ_max²(L₊) / φ_min²(L₊)`: what `(1 − b)(1 + ζ)` must exceed in the paper's Theorem 4.
    ///
    /// One for a single agent, whose matrices are zero.
    pub fn signless_condition_squared(&self) -> f64 {
        if self.signless_min > 0.0 { (self.signless_max / self.signless_min).powi(2) } else { 1.0 }
    }
}

/// Ascending eigenvalues of `D + sign·A`, none below zero.
fn laplacian_eigenvalues(graph: &Graph, sign: f64) -> Vec<f64> {
    let laplacian = Mat::from_fn(graph.n_agents(), graph.n_agents(), |i, j| {
        if i == j {
            graph.degree(i) as f64
        } else if graph.has_edge(i, j) {
            sign
        } else {
            0.0
        }
    });
    symmetric_eigenvalues(&laplacian).into_iter().map(|value| value.max(0.0)).collect()
}

/// Ascending eigenvalues of a symmetric matrix.
pub(super) fn symmetric_eigenvalues(matrix: &Mat<f64>) -> Vec<f64> {
    let mut values = matrix
        .self_adjoint_eigenvalues(Side::Lower)
        .expect("the eigenvalues of a finite symmetric matrix converge");
    values.sort_by(f64::total_cmp);
    values
}
