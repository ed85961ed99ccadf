"""Who talks to whom."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _padmm
from ._optional import need

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the graph's Laplacians, as the convergence theory names them.

    ``signed`` are those of ``D - A``, ``signless`` those of ``D + A``, both ascending. ``gossip_contraction`` is the
    factor by which a round of plain averaging shrinks disagreement.
    """

    signed: tuple[float, ...]
    signless: tuple[float, ...]
    algebraic_connectivity: float
    bipartite: bool
    gossip_contraction: float


class Graph:
    """A connected graph over sites: a family by name, or edges.

    >>> ring = Graph.ring(5)
    >>> ring.n_agents, ring.degrees
    (5, [2, 2, 2, 2, 2])
    >>> round(Graph("complete", 4).spectrum().algebraic_connectivity, 6)
    4.0
    >>> Graph.from_edges([("bern", "basel"), ("basel", "zurich")]).names
    ['bern', 'basel', 'zurich']
    """

    def __init__(
        self,
        spec: str | Sequence[tuple[str, str]],
        n_agents: int,
        *,
        names: Sequence[str] | None = None,
        seed: int = 1,
    ) -> None:
        #: What a plan holds: a text such as ``"ring"``, or pairs of names.
        self.spec: str | list[list[str]] = spec if isinstance(spec, str) else [[str(a), str(b)] for a, b in spec]
        self.n_agents = int(n_agents)
        self.names = [str(name) for name in names] if names is not None else [str(i + 1) for i in range(n_agents)]
        self.seed = int(seed)
        #: Every edge once, as places in :attr:`names`.
        self.edges: list[tuple[int, int]] = _padmm.build_graph(
            json.dumps(self.spec), self.n_agents, self.names, self.seed
        )

    @classmethod
    def ring(cls, n_agents: int) -> Graph:
        """Everybody with the one before and the one after."""
        return cls("ring", n_agents)

    @classmethod
    def path(cls, n_agents: int) -> Graph:
        """A ring with one edge cut."""
        return cls("path", n_agents)

    @classmethod
    def star(cls, n_agents: int) -> Graph:
        """The first in the middle."""
        return cls("star", n_agents)

    @classmethod
    def complete(cls, n_agents: int) -> Graph:
        """Everybody with everybody."""
        return cls("complete", n_agents)

    @classmethod
    def grid(cls, rows: int, columns: int) -> Graph:
        """A rectangle."""
        return cls(f"grid:{rows}x{columns}", rows * columns)

    @classmethod
    def torus(cls, rows: int, columns: int) -> Graph:
        """A grid whose opposite sides are joined."""
        return cls(f"torus:{rows}x{columns}", rows * columns)

    @classmethod
    def erdos_renyi(cls, n_agents: int, probability: float, *, seed: int = 1) -> Graph:
        """Every pair with this probability, drawn again until the graph is connected."""
        return cls(f"erdos-renyi:{probability}", n_agents, seed=seed)

    @classmethod
    def geometric(cls, n_agents: int, radius: float, *, seed: int = 1) -> Graph:
        """Random points of the unit square, joined if near."""
        return cls(f"geometric:{radius}", n_agents, seed=seed)

    @classmethod
    def small_world(cls, n_agents: int, degree: int, rewiring: float, *, seed: int = 1) -> Graph:
        """Watts and Strogatz."""
        return cls(f"small-world:{degree},{rewiring}", n_agents, seed=seed)

    @classmethod
    def regular(cls, n_agents: int, degree: int, *, seed: int = 1) -> Graph:
        """A random graph in which everybody has ``degree`` neighbours."""
        return cls(f"regular:{degree}", n_agents, seed=seed)

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[Hashable, Hashable]], names: Sequence[Hashable] | None = None) -> Graph:
        """These edges by name; without ``names``, sites are in the order in which edges name them."""
        pairs = [(str(a), str(b)) for a, b in edges]
        if names is None:
            names = list(dict.fromkeys(name for pair in pairs for name in pair))
        return cls(pairs, len(names), names=[str(name) for name in names])

    @classmethod
    def from_networkx(cls, graph: networkx.Graph) -> Graph:
        """A graph of networkx; its nodes, as text, are the sites' names.

        >>> import networkx
        >>> Graph.from_networkx(networkx.cycle_graph(["a", "b", "c"])).degrees
        [2, 2, 2]
        """
        if graph.is_directed():
            raise ValueError("the graph is directed, but sites talk both ways: use graph.to_undirected()")
        return cls.from_edges(graph.edges(), list(graph.nodes()))

    def to_networkx(self) -> networkx.Graph:
        """The same graph for networkx."""
        networkx = need("networkx", "Graph.to_networkx")
        graph = networkx.Graph()
        graph.add_nodes_from(self.names)
        graph.add_edges_from((self.names[i], self.names[j]) for i, j in self.edges)
        return graph

    @property
    def degrees(self) -> list[int]:
        """Neighbours of each site."""
        degrees = [0] * self.n_agents
        for i, j in self.edges:
            degrees[i] += 1
            degrees[j] += 1
        return degrees

    def spectrum(self) -> Spectrum:
        """Eigenvalues; cubic in the number of sites."""
        found = json.loads(_padmm.graph_spectrum(self.n_agents, self.edges))
        spectrum = found["spectrum"]
        return Spectrum(
            signed=tuple(spectrum["signed"]),
            signless=tuple(spectrum["signless"]),
            algebraic_connectivity=spectrum["algebraic_connectivity"],
            bipartite=spectrum["bipartite"],
            gossip_contraction=found["gossip_contraction"],
        )

    def plot(self, ax: Any = None) -> Any:
        """Draws the sites on a circle; gives the matplotlib axes."""
        from . import plot

        return plot.graph(self, ax=ax)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and (self.names, self.edges) == (other.names, other.edges)

    def __hash__(self) -> int:
        return hash((tuple(self.names), tuple(self.edges)))

    def __repr__(self) -> str:
        shown = self.spec if isinstance(self.spec, str) else f"{len(self.edges)} edges"
        return f"Graph({shown!r}, {self.n_agents})"
