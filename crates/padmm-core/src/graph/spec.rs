//! What a person writes for a graph, and the graph that comes of it.

use super::error::nearest_name;
use super::family;
use super::public_seed::PublicSeed;
use super::{Graph, GraphError};

/// A graph as written in a plan or on the command line.
///
/// Text and value correspond: `ring`, `path`, `star`, `complete`, `grid` or `grid:RxC`, `torus` or `torus:RxC`,
/// `erdos-renyi:P`, `geometric:RADIUS`, `small-world:K,BETA`, `regular:D`, and `edges:a-b,b-c` by site name. A
/// plan in TOML may write the last one as an array of pairs, `[["a", "b"], ["b", "c"]]`, which also serves for
/// names that hold a comma; names that hold a hyphen are joined by two, `edges:long-beach--cleveland`.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphSpec {
    /// Every agent has the one before and the one after it.
    Ring,
    /// A ring with one edge cut.
    Path,
    /// The first agent in the middle, all others joined to it alone.
    Star,
    /// An edge between every two agents.
    Complete,
    /// A rectangle of agents, row by row, joined to the agents beside, above and below.
    Grid {
        /// Rows and columns; without them, the most square rectangle that holds all agents (a path if their
        /// number is prime).
        shape: Option<(usize, usize)>,
    },
    /// A grid whose opposite sides are joined. A side of one or two agents is not joined twice.
    Torus {
        /// Rows and columns; without them, as for a grid (a ring if the number of agents is prime).
        shape: Option<(usize, usize)>,
    },
    /// Every pair is joined with this probability, drawn again until the graph is connected.
    ErdosRenyi {
        /// Probability of an edge, in (0, 1].
        probability: f64,
    },
    /// Agents at random points of the unit square, joined if near, drawn again until the graph is connected.
    Geometric {
        /// The largest distance that is joined.
        radius: f64,
    },
    /// Watts–Strogatz: a ring with edges to the `degree` nearest agents, each edge moved at random with
    /// probability `rewiring`, drawn again until the graph is connected.
    SmallWorld {
        /// Neighbours of each agent before edges are moved; even.
        degree: usize,
        /// Probability that an edge is moved.
        rewiring: f64,
    },
    /// A random connected graph in which every agent has `degree` neighbours.
    Regular {
        /// How many neighbours each agent has.
        degree: usize,
    },
    /// These edges, by site name. An edge that is listed twice, in either direction, counts once.
    Edges(Vec<(String, String)>),
}

/// How many graphs of a random family are drawn before giving up.
const MAX_TRIES: usize = 1000;

impl GraphSpec {
    /// The graph over `n_agents` agents.
    ///
    /// `names` are the sites' names in the agents' order; without any (an empty slice) the agents are called
    /// `1` to `n`. `seed` is public and decides the random families; the others ignore it. The same arguments
    /// give the same graph for ever.
    ///
    /// # Errors
    /// Parameters that no graph over so many agents has, names that are unknown or repeated, a self-loop, or a
    /// graph that is not connected.
    pub fn build(&self, n_agents: usize, names: &[String], seed: u64) -> Result<Graph, GraphError> {
        if n_agents == 0 {
            return Err(GraphError::NoAgents);
        }
        let named;
        let names = if names.is_empty() {
            named = default_names(n_agents);
            &named
        } else {
            names
        };
        if names.len() != n_agents {
            return Err(GraphError::NamesDoNotMatch { n_agents, n_names: names.len() });
        }
        self.check(n_agents)?;
        let certain = |edges| Graph::from_edges(n_agents, edges, names);
        match *self {
            Self::Ring => certain(family::ring(n_agents)),
            Self::Path => certain(family::path(n_agents)),
            Self::Star => certain(family::star(n_agents)),
            Self::Complete => certain(family::complete(n_agents)),
            Self::Grid { shape } => {
                certain(family::lattice(shape.unwrap_or_else(|| family::most_square(n_agents)), false))
            }
            Self::Torus { shape } => {
                certain(family::lattice(shape.unwrap_or_else(|| family::most_square(n_agents)), true))
            }
            Self::ErdosRenyi { probability } => {
                self.redraw(n_agents, names, seed, |s| family::erdos_renyi(n_agents, probability, s))
            }
            Self::Geometric { radius } => {
                self.redraw(n_agents, names, seed, |s| family::geometric(n_agents, radius, s))
            }
            Self::SmallWorld { degree, rewiring } => {
                self.redraw(n_agents, names, seed, |s| family::small_world(n_agents, degree, rewiring, s))
            }
            Self::Regular { degree } => {
                self.redraw(n_agents, names, seed, |s| family::regular(n_agents, degree, s))
            }
            Self::Edges(ref pairs) => certain(resolve(pairs, names)?),
        }
    }

    /// Whether the public seed has any influence.
    pub fn is_random(&self) -> bool {
        matches!(
            self,
            Self::ErdosRenyi { .. } | Self::Geometric { .. } | Self::SmallWorld { .. } | Self::Regular { .. }
        )
    }

    /// Draws until a graph is connected, at most [`MAX_TRIES`] times.
    fn redraw(
        &self,
        n_agents: usize,
        names: &[String],
        seed: u64,
        mut draw: impl FnMut(&mut PublicSeed) -> Vec<(usize, usize)>,
    ) -> Result<Graph, GraphError> {
        let mut stream = PublicSeed::new(seed);
        for _ in 0..MAX_TRIES {
            match Graph::from_edges(n_agents, draw(&mut stream), names) {
                Err(GraphError::NotConnected { .. }) => {}
                built => return built,
            }
        }
        let n = n_agents as f64;
        let advice = match self {
            Self::ErdosRenyi { .. } => {
                format!("raise the probability; connected draws are common from about {:.3}", n.ln() / n)
            }
            Self::Geometric { .. } => format!(
                "raise the radius; connected draws are common from about {:.3}",
                (2.0 * n.ln() / (std::f64::consts::PI * n)).sqrt()
            ),
            _ => "raise the degree, or take another seed".to_owned(),
        };
        Err(GraphError::NoConnectedDraw { graph: self.to_string(), n_agents, seed, tries: MAX_TRIES, advice })
    }

    /// Whether a graph with these parameters exists over so many agents.
    fn check(&self, n_agents: usize) -> Result<(), GraphError> {
        let fail = |reason: String| Err(GraphError::Impossible { graph: self.to_string(), n_agents, reason });
        match *self {
            Self::Grid { shape: Some((rows, columns)) } | Self::Torus { shape: Some((rows, columns)) }
                if rows.checked_mul(columns) != Some(n_agents) =>
            {
                let (r, c) = family::most_square(n_agents);
                fail(format!("{rows} × {columns} is not {n_agents}; {r}x{c} would do"))
            }
            Self::ErdosRenyi { probability } if !(probability > 0.0 && probability <= 1.0) => {
                fail("the probability of an edge must be above 0 and at most 1".to_owned())
            }
            Self::Geometric { radius } if !(radius > 0.0 && radius.is_finite()) => {
                fail("the radius must be a positive number; the square has side 1".to_owned())
            }
            Self::SmallWorld { degree, .. } if degree % 2 == 1 || degree == 0 || degree >= n_agents => {
                fail(format!("K must be even, at least 2 and below {n_agents}"))
            }
            Self::SmallWorld { rewiring, .. } if !(0.0..=1.0).contains(&rewiring) => {
                fail("BETA is a probability, between 0 and 1".to_owned())
            }
            Self::Regular { degree } if degree >= n_agents => {
                fail(format!("an agent has at most {} neighbours", n_agents - 1))
            }
            Self::Regular { degree } if degree * n_agents % 2 == 1 => fail(format!(
                "{n_agents} agents times {degree} neighbours is odd, and every edge has two ends; make one of them even"
            )),
            Self::Regular { degree } if degree < 2 && n_agents > degree + 1 => {
                fail("with fewer than 2 neighbours each the agents cannot be connected".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// The names of agents that were given none: `1` to `n`.
pub fn default_names(n_agents: usize) -> Vec<String> {
    (1..=n_agents).map(|i| i.to_string()).collect()
}

/// Pairs of names as pairs of agents.
fn resolve(pairs: &[(String, String)], names: &[String]) -> Result<Vec<(usize, usize)>, GraphError> {
    let mut sorted: Vec<(&str, usize)> = names.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|w| w[0].0 == w[1].0) {
        return Err(GraphError::RepeatedName { name: twice[0].0.to_owned() });
    }
    let find = |name: &String| match sorted.binary_search_by_key(&name.as_str(), |&(n, _)| n) {
        Ok(at) => Ok(sorted[at].1),
        Err(_) => Err(GraphError::UnknownSite {
            name: name.clone(),
            known: names.to_vec(),
            suggestion: nearest_name(name, names),
        }),
    };
    pairs.iter().map(|(a, b)| Ok((find(a)?, find(b)?))).collect()
}
