//! The communication graph: who exchanges models with whom.
//!
//! A [`Graph`] is connected, simple and undirected; nothing else can be built. [`GraphSpec`] is what a person
//! writes (`ring`, `erdos-renyi:0.4`, `edges:a-b,b-c`), [`Spectrum`] what the convergence theory asks of a
//! graph, and [`gossip_contraction`] how fast plain averaging over it forgets disagreement.
//!
//! The graph is public. The generator that draws the random families is seeded by the plan and has nothing to
//! do with privacy noise.

mod error;
mod family;
mod gossip;
mod parse;
mod public_seed;
mod spec;
mod spectrum;

pub use error::GraphError;
pub use public_seed::PublicSeed;

pub use gossip::{gossip_contraction, gossip_rounds, metropolis_self_weight, metropolis_weight};
pub use spec::{GraphSpec, default_names};
pub use spectrum::Spectrum;

use serde::{Deserialize, Serialize};

/// A connected, simple, undirected graph over agents `0..n_agents`.
///
/// A single agent without edges is allowed: a run of one site needs no neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "EdgeList", into = "EdgeList")]
pub struct Graph {
    /// Sorted neighbour lists, one for each agent.
    neighbours: Vec<Vec<usize>>,
}

/// The stored form of a [`Graph`]; reading it goes through [`Graph::from_edges`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct EdgeList {
    n_agents: usize,
    edges: Vec<(usize, usize)>,
}

impl TryFrom<EdgeList> for Graph {
    type Error = GraphError;

    fn try_from(list: EdgeList) -> Result<Self, GraphError> {
        Self::from_edges(list.n_agents, list.edges, &default_names(list.n_agents))
    }
}

impl From<Graph> for EdgeList {
    fn from(graph: Graph) -> Self {
        Self { n_agents: graph.n_agents(), edges: graph.edges().collect() }
    }
}

impl Graph {
    /// The graph with these edges, or the reason why it is not one that agents can run on.
    ///
    /// An edge that is listed twice, in either direction, counts once. `names` serves the error messages: one
    /// name for each agent.
    ///
    /// # Errors
    /// No agents, an edge to an agent that does not exist, a self-loop, or a graph that is not connected.
    pub fn from_edges(
        n_agents: usize,
        edges: impl IntoIterator<Item = (usize, usize)>,
        names: &[String],
    ) -> Result<Self, GraphError> {
        if n_agents == 0 {
            return Err(GraphError::NoAgents);
        }
        if names.len() != n_agents {
            return Err(GraphError::NamesDoNotMatch { n_agents, n_names: names.len() });
        }
        let mut neighbours = vec![Vec::new(); n_agents];
        for (i, j) in edges {
            if let Some(&agent) = [i, j].iter().find(|&&a| a >= n_agents) {
                return Err(GraphError::AgentOutOfRange { agent, n_agents });
            }
            if i == j {
                return Err(GraphError::SelfLoop { agent: names[i].clone() });
            }
            neighbours[i].push(j);
            neighbours[j].push(i);
        }
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        let groups = components(&neighbours);
        if groups.len() > 1 {
            let groups = groups.iter().map(|g| g.iter().map(|&i| names[i].clone()).collect()).collect();
            return Err(GraphError::NotConnected { groups });
        }
        Ok(Self { neighbours })
    }

    /// Agents in a circle.
    ///
    /// ```
    /// let graph = padmm_core::graph::Graph::ring(5)?;
    /// assert_eq!(graph.neighbours(0), [1, 4]);
    /// # Ok::<(), padmm_core::graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// No agents.
    pub fn ring(n_agents: usize) -> Result<Self, GraphError> {
        GraphSpec::Ring.build(n_agents, &[], 0)
    }

    /// A circle with one edge cut.
    ///
    /// # Errors
    /// No agents.
    pub fn path(n_agents: usize) -> Result<Self, GraphError> {
        GraphSpec::Path.build(n_agents, &[], 0)
    }

    /// The first agent in the middle, joined to all others.
    ///
    /// # Errors
    /// No agents.
    pub fn star(n_agents: usize) -> Result<Self, GraphError> {
        GraphSpec::Star.build(n_agents, &[], 0)
    }

    /// Everybody with everybody.
    ///
    /// # Errors
    /// No agents.
    pub fn complete(n_agents: usize) -> Result<Self, GraphError> {
        GraphSpec::Complete.build(n_agents, &[], 0)
    }

    /// These edges between agents that are counted from 0.
    ///
    /// # Errors
    /// An edge to an agent that does not exist, a self-loop, or a graph that is not connected.
    pub fn of_edges(
        n_agents: usize,
        edges: impl IntoIterator<Item = (usize, usize)>,
    ) -> Result<Self, GraphError> {
        Self::from_edges(n_agents, edges, &default_names(n_agents))
    }

    /// How many agents there are, at least one.
    pub fn n_agents(&self) -> usize {
        self.neighbours.len()
    }

    /// How many edges there are, each counted once.
    pub fn n_edges(&self) -> usize {
        self.neighbours.iter().map(Vec::len).sum::<usize>() / 2
    }

    /// The neighbours of agent `i`, in ascending order, without `i` itself.
    ///
    /// # Panics
    /// If there is no agent `i`.
    pub fn neighbours(&self, i: usize) -> &[usize] {
        &self.neighbours[i]
    }

    /// How many neighbours agent `i` has.
    ///
    /// # Panics
    /// If there is no agent `i`.
    pub fn degree(&self, i: usize) -> usize {
        self.neighbours[i].len()
    }

    /// The degrees of all agents, in their order.
    pub fn degrees(&self) -> Vec<usize> {
        self.neighbours.iter().map(Vec::len).collect()
    }

    /// Most neighbours that any agent has.
    pub fn max_degree(&self) -> usize {
        self.neighbours.iter().map(Vec::len).max().expect("a graph has at least one agent")
    }

    /// The smallest degree; zero only for a single agent.
    pub fn min_degree(&self) -> usize {
        self.neighbours.iter().map(Vec::len).min().expect("a graph has at least one agent")
    }

    /// Every edge once, as `(i, j)` with `i < j`, in lexicographic order.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.neighbours
            .iter()
            .enumerate()
            .flat_map(|(i, list)| list.iter().copied().filter(move |&j| i < j).map(move |j| (i, j)))
    }

    /// Whether agents `i` and `j` are neighbours.
    pub fn has_edge(&self, i: usize, j: usize) -> bool {
        self.neighbours.get(i).is_some_and(|list| list.binary_search(&j).is_ok())
    }

    /// The most edges that lie between two agents: how often a message is passed on until everybody has it.
    pub fn diameter(&self) -> usize {
        (0..self.n_agents()).map(|i| self.farthest(i)).max().unwrap_or(0)
    }

    /// How many edges lie between agent `i` and the one that is farthest away.
    fn farthest(&self, i: usize) -> usize {
        let mut distance = vec![usize::MAX; self.n_agents()];
        distance[i] = 0;
        let mut found = vec![i];
        let mut next = 0;
        while let Some(&at) = found.get(next) {
            for &j in self.neighbours(at) {
                if distance[j] == usize::MAX {
                    distance[j] = distance[at] + 1;
                    found.push(j);
                }
            }
            next += 1;
        }
        distance[found[found.len() - 1]]
    }

    /// Whether the agents fall into two groups with edges only between them (no odd cycle).
    ///
    /// It decides whether the signless Laplacian is singular: for a connected graph it is, exactly when the
    /// graph is bipartite.
    pub fn is_bipartite(&self) -> bool {
        let mut side = vec![None; self.n_agents()];
        side[0] = Some(false);
        let mut pending = vec![0];
        while let Some(i) = pending.pop() {
            for &j in self.neighbours(i) {
                match side[j] {
                    None => {
                        side[j] = side[i].map(|s: bool| !s);
                        pending.push(j);
                    }
                    other if other == side[i] => return false,
                    _ => {}
                }
            }
        }
        true
    }
}

/// The connected components, each sorted, ordered by their smallest agent.
fn components(neighbours: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut seen = vec![false; neighbours.len()];
    let mut groups = Vec::new();
    for start in 0..neighbours.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut group = vec![start];
        let mut next = 0;
        while next < group.len() {
            for &j in &neighbours[group[next]] {
                if !seen[j] {
                    seen[j] = true;
                    group.push(j);
                }
            }
            next += 1;
        }
        group.sort_unstable();
        groups.push(group);
    }
    groups
}
