"""Figures (needs matplotlib): every function draws into axes and gives them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._optional import need
from .account import Account

if TYPE_CHECKING:
    from ._graph import Graph
    from ._simulate import Simulation

__all__ = ["comparison", "convergence", "graph", "privacy"]

LABELS = {
    "average_loss": "average loss",
    "pooled_loss": "loss of the releases on all records",
    "smoothed_loss": "loss of the kept model",
    "accuracy": "accuracy",
    "auc": "AUC",
    "consensus_error": "distance from consensus",
    "distance_to_optimum": "distance from the optimum",
}


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    pyplot = need("matplotlib.pyplot", "padmm.plot", "plot")
    return pyplot.subplots(layout="constrained")[1]


def _by_round(trace: Any, column: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rounds, mean over runs, standard deviation over runs."""
    rounds = np.array(trace.column("round"))
    values = np.array(trace.column(column), dtype=float)
    at = np.unique(rounds)
    picked = [values[rounds == k] for k in at]
    return at, np.array([v.mean() for v in picked]), np.array([v.std() for v in picked])


def convergence(
    result: Simulation,
    *,
    measure: str = "smoothed_loss",
    reference: bool = True,
    label: str | None = None,
    ax: Any = None,
) -> Any:
    """A measure round by round: mean over runs, with their standard deviation as a band.

    >>> import matplotlib; matplotlib.use("agg")
    >>> import padmm
    >>> ax = padmm.plot.convergence(padmm.simulate(dataset="heart", rounds=5))
    >>> ax.get_xlabel()
    'round'
    """
    ax = _axes(ax)
    rounds, mean, std = _by_round(result.trace, measure)
    name = label or result.record["setting"]["plan"]["algorithm"]
    (line,) = ax.plot(rounds, mean, label=name)
    if std.any():
        ax.fill_between(rounds, mean - std, mean + std, alpha=0.2, color=line.get_color(), linewidth=0)
    if reference and len(result.reference_trace):
        ax.plot(*_by_round(result.reference_trace, measure)[:2], color="0.5", linestyle="--", label="without noise")
    if measure.endswith("loss"):
        optimum = result.record["optimum"]
        if optimum is not None:
            ax.axhline(optimum["loss"], color="0.7", linewidth=0.8, label="pooled optimum")
    ax.set_xlabel("round")
    ax.set_ylabel(LABELS.get(measure, measure))
    ax.legend()
    return ax


def privacy(what: Simulation | Account, *, ax: Any = None) -> Any:
    """What was spent after every round: exact, and by the paper's formula."""
    ax = _axes(ax)
    if isinstance(what, Account):
        rounds, exact, paper = (what.curve[key] for key in ("round", "epsilon_exact", "epsilon_paper"))
    else:
        rounds, exact, _ = _by_round(what.trace, "epsilon_exact")
        paper = _by_round(what.trace, "epsilon_paper")[1]
    ax.plot(rounds, exact, label="exact")
    ax.plot(rounds, paper, linestyle="--", label="by the paper's formula")
    ax.set_xlabel("round")
    ax.set_ylabel("epsilon spent")
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


def comparison(
    results: Mapping[str, Simulation] | Sequence[Simulation], *, measure: str = "smoothed_loss", ax: Any = None
) -> Any:
    """Several simulations in one figure, by name."""
    ax = _axes(ax)
    if not isinstance(results, Mapping):
        results = {r.record["setting"]["plan"]["algorithm"]: r for r in results}
    for name, result in results.items():
        convergence(result, measure=measure, reference=False, label=name, ax=ax)
    # Every simulation draws its pooled optimum; the legend names it once.
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    ax.legend(once.values(), once.keys())
    return ax


def graph(what: Graph, *, ax: Any = None) -> Any:
    """Sites on a circle, and who talks to whom."""
    ax = _axes(ax)
    angle = 2 * np.pi * np.arange(what.n_agents) / what.n_agents
    x, y = np.cos(angle), np.sin(angle)
    for i, j in what.edges:
        ax.plot([x[i], x[j]], [y[i], y[j]], color="0.7", linewidth=1, zorder=1)
    ax.scatter(x, y, s=60, zorder=2)
    for name, px, py in zip(what.names, x, y, strict=True):
        ax.annotate(name, (px, py), xytext=(6, 6), textcoords="offset points")
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax
