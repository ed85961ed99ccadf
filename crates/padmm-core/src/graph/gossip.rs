//! Plain averaging between neighbours, which brings every site to the network's mean.

use faer::Mat;

use super::Graph;
use super::public_seed::PublicSeed;
use super::spectrum::symmetric_eigenvalues;

/// Above so many agents the contraction comes from Krylov iterations, below from a dense eigensolver.
const DENSE_AGENTS: usize = 300;

/// The most Krylov iterations; each costs one gossip round and one orthogonalisation.
const MAX_ITERATIONS: usize = 1000;

/// The Metropolis weight `W_ij` — EQUATIONS §2 (b): `1 / (1 + max(d_i, d_j))` if `i` and `j` are neighbours, else zero.
///
/// The weights are symmetric and leave every agent a positive rest for itself, so repeated averaging converges
/// to the plain mean on every connected graph, and both ends of an edge compute the weight from two public
/// degrees.
pub fn metropolis_weight(graph: &Graph, i: usize, j: usize) -> f64 {
    if graph.has_edge(i, j) { edge_weight(graph, i, j) } else { 0.0 }
}

/// What agent `i` keeps of its own value: one less the weights of its neighbours.
pub fn metropolis_self_weight(graph: &Graph, i: usize) -> f64 {
    1.0 - graph.neighbours(i).iter().map(|&j| edge_weight(graph, i, j)).sum::<f64>()
}

/// The weight of a pair that is known to be an edge.
fn edge_weight(graph: &Graph, i: usize, j: usize) -> f64 {
    1.0 / (1.0 + graph.degree(i).max(graph.degree(j)) as f64)
}

/// By which factor one gossip round with Metropolis weights shrinks the distance to the mean, at worst.
///
/// It is the second largest absolute eigenvalue of the weight matrix. Up to 300 agents it comes from a dense
/// eigensolver. Beyond, from Lanczos' method (power iteration that keeps what it has seen), on the vectors that
/// sum to zero: a plain power iteration would need about a million rounds on a ring of a thousand. It
/// approaches the factor from below and stops when it no longer moves.
pub fn gossip_contraction(graph: &Graph) -> f64 {
    let n = graph.n_agents();
    if n == 1 {
        return 0.0;
    }
    if n > DENSE_AGENTS {
        return lanczos_contraction(graph);
    }
    let weights = Mat::from_fn(n, n, |i, j| {
        if i == j { metropolis_self_weight(graph, i) } else { metropolis_weight(graph, i, j) }
    });
    let values = symmetric_eigenvalues(&weights);
    // The last one is the 1 of the mean itself. What rounding leaves where a round averages exactly is zero.
    let factor = values[0].abs().max(values[n - 2].abs());
    if factor < 1e-12 { 0.0 } else { factor.min(1.0) }
}

/// The smallest number of gossip rounds after which disagreement has shrunk by `target`, at most `cap`.
///
/// `contraction` is what [`gossip_contraction`] gives. A target of one or more asks for no round; a target of
/// zero or less, or a contraction of one or more, can only be met by the cap.
pub fn gossip_rounds(contraction: f64, target: f64, cap: usize) -> usize {
    if target >= 1.0 {
        return 0;
    }
    if contraction <= 0.0 {
        return cap.min(1);
    }
    if target <= 0.0 || contraction >= 1.0 || contraction.is_nan() || target.is_nan() {
        return cap;
    }
    // The cast saturates, so a contraction next to one meets the cap.
    cap.min((target.ln() / contraction.ln()).ceil() as usize).max(cap.min(1))
}

/// The second largest absolute eigenvalue by Lanczos' method with full orthogonalisation.
fn lanczos_contraction(graph: &Graph) -> f64 {
    let n = graph.n_agents();
    let mut start = PublicSeed::new(n as u64);
    let mut vector: Vec<f64> = (0..n).map(|_| start.unit() - 0.5).collect();
    let mean = vec![1.0 / (n as f64).sqrt(); n];
    let mut basis = vec![mean];
    orthogonalise(&mut vector, &basis);
    normalise(&mut vector);
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    let mut found = 0.0;
    let mut next_look = 25;
    for step in 1..=MAX_ITERATIONS.min(n - 1) {
        let mut image = apply(graph, &vector);
        diagonal.push(dot(&image, &vector));
        basis.push(vector);
        // Twice is enough (Kahan and Parlett); the basis holds the mean as well, so it never comes back.
        orthogonalise(&mut image, &basis);
        orthogonalise(&mut image, &basis);
        let norm = normalise(&mut image);
        let exhausted = norm < 1e-13 || step == MAX_ITERATIONS.min(n - 1);
        if exhausted || step == next_look {
            let value = largest_absolute(&diagonal, &beside);
            let settled = 1.0 - value > 0.0 && (value - found) <= 1e-9 * (1.0 - value);
            found = value;
            if exhausted || settled {
                break;
            }
            next_look += next_look.div_ceil(2);
        }
        beside.push(norm);
        vector = image;
    }
    found.min(1.0)
}

/// Every agent moves towards its neighbours by the weights of their edges.
fn apply(graph: &Graph, values: &[f64]) -> Vec<f64> {
    (0..graph.n_agents())
        .map(|i| {
            let pull: f64 =
                graph.neighbours(i).iter().map(|&j| edge_weight(graph, i, j) * (values[j] - values[i])).sum();
            values[i] + pull
        })
        .collect()
}

/// The largest absolute eigenvalue of the tridiagonal matrix.
fn largest_absolute(diagonal: &[f64], beside: &[f64]) -> f64 {
    let matrix = Mat::from_fn(diagonal.len(), diagonal.len(), |i, j| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => beside[i.min(j)],
        _ => 0.0,
    });
    symmetric_eigenvalues(&matrix).into_iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Takes the parts along the orthonormal `basis` out of `vector`.
fn orthogonalise(vector: &mut [f64], basis: &[Vec<f64>]) {
    for direction in basis {
        let part = dot(vector, direction);
        vector.iter_mut().zip(direction).for_each(|(v, d)| *v -= part * d);
    }
}

/// Scales to norm one and returns the norm that was.
fn normalise(vector: &mut [f64]) -> f64 {
    let norm = dot(vector, vector).sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|v| *v /= norm);
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphSpec;

    #[test]
    fn both_methods_agree() {
        for text in ["ring", "star", "erdos-renyi:0.1", "grid", "regular:3", "complete"] {
            let graph = text.parse::<GraphSpec>().unwrap().build(120, &[], 5).unwrap();
            let (dense, sparse) = (gossip_contraction(&graph), lanczos_contraction(&graph));
            assert!((dense - sparse).abs() < 1e-9, "{text}: {dense} against {sparse}");
        }
    }
}
