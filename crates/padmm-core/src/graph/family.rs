//! The edges of each family of graphs.
//!
//! Every function returns pairs of agents; a pair may come twice, [`Graph::from_edges`](super::Graph::from_edges)
//! merges it. Whether the graph is connected is for the caller to see.

use super::public_seed::PublicSeed;

type Edges = Vec<(usize, usize)>;

/// A closed chain; two agents share one edge, one agent has none.
pub(super) fn ring(n: usize) -> Edges {
    let mut edges = path(n);
    if n > 2 {
        edges.push((0, n - 1));
    }
    edges
}

pub(super) fn path(n: usize) -> Edges {
    (1..n).map(|i| (i - 1, i)).collect()
}

/// Agent 0 is the middle.
pub(super) fn star(n: usize) -> Edges {
    (1..n).map(|i| (0, i)).collect()
}

pub(super) fn complete(n: usize) -> Edges {
    all_pairs(n).collect()
}

/// The rectangle `rows × columns = n` with `rows ≤ columns` that is nearest to a square.
pub(super) fn most_square(n: usize) -> (usize, usize) {
    let rows = (1..=n.isqrt()).rev().find(|r| n.is_multiple_of(*r)).unwrap_or(1);
    (rows, n / rows)
}

/// A grid, row by row; `wrapped` joins opposite sides.
pub(super) fn lattice((rows, columns): (usize, usize), wrapped: bool) -> Edges {
    let at = |r: usize, c: usize| r * columns + c;
    let mut edges = Vec::with_capacity(2 * rows * columns);
    for r in 0..rows {
        for c in 0..columns {
            if c + 1 < columns {
                edges.push((at(r, c), at(r, c + 1)));
            } else if wrapped && columns > 2 {
                edges.push((at(r, c), at(r, 0)));
            }
            if r + 1 < rows {
                edges.push((at(r, c), at(r + 1, c)));
            } else if wrapped && rows > 2 {
                edges.push((at(r, c), at(0, c)));
            }
        }
    }
    edges
}

/// Every pair with the given probability.
pub(super) fn erdos_renyi(n: usize, probability: f64, seed: &mut PublicSeed) -> Edges {
    all_pairs(n).filter(|_| seed.unit() < probability).collect()
}

/// Points drawn in the unit square, joined if they are at most `radius` apart.
pub(super) fn geometric(n: usize, radius: f64, seed: &mut PublicSeed) -> Edges {
    let points: Vec<(f64, f64)> = (0..n).map(|_| (seed.unit(), seed.unit())).collect();
    let near = |&(i, j): &(usize, usize)| {
        let (dx, dy) = (points[i].0 - points[j].0, points[i].1 - points[j].1);
        dx * dx + dy * dy <= radius * radius
    };
    all_pairs(n).filter(near).collect()
}

/// Watts and Strogatz (1998): the ring lattice of even `degree`, whose edges move their far end at random.
///
/// An edge whose near end is already joined to everybody stays where it is.
pub(super) fn small_world(n: usize, degree: usize, rewiring: f64, seed: &mut PublicSeed) -> Edges {
    let mut joined = Adjacency::new(n);
    let lattice = circulant(n, degree);
    for &(i, j) in &lattice {
        joined.insert(i, j);
    }
    for (i, j) in lattice {
        if seed.unit() >= rewiring || joined.degree[i] == n - 1 {
            continue;
        }
        let new = loop {
            let candidate = seed.below(n);
            if candidate != i && !joined.has(i, candidate) {
                break candidate;
            }
        };
        joined.remove(i, j);
        joined.insert(i, new);
    }
    joined.edges()
}

/// A random graph in which everybody has `degree` neighbours.
///
/// A circulant graph is stirred by double edge swaps `{a,b},{c,d} → {a,d},{c,b}`, which keep all degrees; those
/// that would make a loop or a double edge are skipped. With two neighbours each, the only connected graph is a
/// ring, so its agents are shuffled in place of a search for a connected draw.
pub(super) fn regular(n: usize, degree: usize, seed: &mut PublicSeed) -> Edges {
    if degree == 2 {
        let mut order: Vec<usize> = (0..n).collect();
        seed.shuffle(&mut order);
        return ring(n).into_iter().map(|(i, j)| (order[i], order[j])).collect();
    }
    let mut edges = circulant(n, degree);
    let mut joined = Adjacency::new(n);
    for &(i, j) in &edges {
        joined.insert(i, j);
    }
    for _ in 0..20 * edges.len() {
        let (first, second) = (seed.below(edges.len()), seed.below(edges.len()));
        let (a, b) = edges[first];
        let (mut c, mut d) = edges[second];
        if seed.next_u64() >> 63 == 1 {
            (c, d) = (d, c);
        }
        let distinct = a != c && a != d && b != c && b != d;
        if !distinct || joined.has(a, d) || joined.has(c, b) {
            continue;
        }
        joined.remove(a, b);
        joined.remove(c, d);
        joined.insert(a, d);
        joined.insert(c, b);
        edges[first] = (a, d);
        edges[second] = (c, b);
    }
    edges
}

/// Everybody joined to the `degree / 2` next on the ring, and for odd `degree` to the one opposite as well.
fn circulant(n: usize, degree: usize) -> Edges {
    let mut edges = Vec::with_capacity(n * degree / 2);
    for step in 1..=degree / 2 {
        edges.extend((0..n).map(|i| (i, (i + step) % n)));
    }
    if degree % 2 == 1 {
        edges.extend((0..n / 2).map(|i| (i, i + n / 2)));
    }
    edges
}

/// All pairs `i < j` in lexicographic order.
fn all_pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |i| (i + 1..n).map(move |j| (i, j)))
}

/// Which pairs are joined, as a table, with degrees.
struct Adjacency {
    n: usize,
    joined: Vec<bool>,
    degree: Vec<usize>,
}

impl Adjacency {
    fn new(n: usize) -> Self {
        Self { n, joined: vec![false; n * n], degree: vec![0; n] }
    }

    fn has(&self, i: usize, j: usize) -> bool {
        self.joined[i * self.n + j]
    }

    fn set(&mut self, i: usize, j: usize, value: bool) {
        debug_assert!(i != j && self.has(i, j) != value, "an edge is set or cleared once");
        self.joined[i * self.n + j] = value;
        self.joined[j * self.n + i] = value;
    }

    fn insert(&mut self, i: usize, j: usize) {
        self.set(i, j, true);
        self.degree[i] += 1;
        self.degree[j] += 1;
    }

    fn remove(&mut self, i: usize, j: usize) {
        self.set(i, j, false);
        self.degree[i] -= 1;
        self.degree[j] -= 1;
    }

    fn edges(&self) -> Edges {
        all_pairs(self.n).filter(|&(i, j)| self.has(i, j)).collect()
    }
}
