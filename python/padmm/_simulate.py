"""A whole network in one process."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import _padmm
from ._errors import WorthlessModelWarning
from ._graph import Graph
from ._model import Model
from ._optional import need
from ._plan import Plan
from ._privacy import Privacy, privacy_of
from ._schema import Schema


class Progress(NamedTuple):
    """How far a run is; what a progress callback gets."""

    done: int
    total: int
    average_loss: float | None
    epsilon: float | None


class Simulation:
    """What a simulation leaves: the record that the command writes to ``record.json``, and what follows from it."""

    def __init__(self, inner: _padmm.SimulationResult, *, data_bounds: bool = False) -> None:
        self._inner = inner
        self._traces: dict[bool, _padmm.Trace] = {}
        #: Setting, charges, every run and round, summary: the contents of ``record.json``.
        self.record: dict[str, Any] = json.loads(inner.record_json())
        secure = "operating system" in self.record["noise_source"]
        #: What was spent.
        self.privacy: Privacy = privacy_of(
            self.record, json.loads(inner.sites_json()), data_bounds=data_bounds, secure=secure
        )
        #: The first site's kept model of the first run.
        self.model: Model = Model(inner.model())

    @property
    def trace(self) -> _padmm.Trace:
        """One line for each run and round, as an Arrow stream that pandas, polars and pyarrow read without copying."""
        return self._trace(False)

    @property
    def reference_trace(self) -> _padmm.Trace:
        """The same of the run without noise; empty if there was none."""
        return self._trace(True)

    def _trace(self, reference: bool) -> _padmm.Trace:
        # Made once, so that whoever asks again looks at the same memory.
        if reference not in self._traces:
            self._traces[reference] = self._inner.trace(reference)
        return self._traces[reference]

    def to_pandas(self, *, reference: bool = False) -> Any:
        """The trace as a pandas frame."""
        return trace_to_pandas(self._trace(reference))

    def to_polars(self, *, reference: bool = False) -> Any:
        """The trace as a polars frame."""
        return trace_to_polars(self._trace(reference))

    @property
    def coefficients(self) -> np.ndarray:
        """The kept model in the order of the encoded columns."""
        return self._inner.coefficients()

    @property
    def seconds(self) -> float:
        """Wall time of the runs, without reading and preparing."""
        return self._inner.seconds

    @property
    def memory_bytes(self) -> int:
        """Bytes of the encoded records of all sites."""
        return self._inner.memory_bytes

    def trace_csv(self) -> str:
        """The text of ``trace.csv``."""
        return self._inner.trace_csv()

    @property
    def summary(self) -> dict[str, Any]:
        """Mean and standard deviation over runs."""
        found: dict[str, Any] = self.record["summary"]
        return found

    @property
    def excess_loss(self) -> float | None:
        """How far the kept model's loss is above the pooled optimum's, as a part of it; none of an estimator's fit, which does not look
        for the optimum. It leaves out the regulariser, so it can be below zero and flatters noisy models: see
        :attr:`excess_objective`."""
        return self._inner.excess_loss

    @property
    def excess_objective(self) -> float | None:
        """The same in what the run minimises, which nothing is below."""
        return self._inner.excess_objective

    @property
    def calibration(self) -> dict[str, float] | None:
        """Intercept and slope of a logistic regression of labels on margins, on the records that accuracy is measured on; 0 and 1 if
        margins are log-odds. None for regression, or if the classes do not overlap."""
        found: dict[str, float] | None = self.summary["calibration"]
        return found

    @property
    def majority_accuracy(self) -> float | None:
        """What always answering the larger class gives, on the same records; none for regression."""
        found: float | None = self.record["constant"]["accuracy"]
        return found

    def to_json(self) -> dict[str, Any]:
        """The object that ``padmm simulate --json`` prints."""
        record, summary = self.record, self.record["summary"]
        noise = record["runs"][0].get("privacy_noise")
        mean = lambda name: summary[name]["mean"] if summary[name] else None  # noqa: E731
        return {
            "algorithm": record["setting"]["plan"]["algorithm"],
            "agents": len(record["setting"]["sites"]),
            "rounds": record["setting"]["plan"]["rounds"],
            "runs": len(record["runs"]),
            "records": record["setting"]["records"],
            "features": record["setting"]["features"],
            "penalty": record["setting"]["penalty"],
            "weights": record["setting"]["plan"]["weights"],
            "privacy": record["privacy"],
            "average_loss": {
                **(summary["average_loss"] or {"mean": None, "std": None}),
                "per_round_mean": [m["mean"] for m in summary["average_loss_per_round"]],
            },
            "pooled_loss": summary["pooled_loss"],
            "model_loss": summary["model_loss"],
            "model_objective": summary["model_objective"],
            "optimum": record["optimum"] and {key: record["optimum"][key] for key in ("loss", "objective")},
            "accuracy": mean("accuracy"),
            "majority_accuracy": self.majority_accuracy,
            "auc": mean("auc"),
            "calibration": summary["calibration"],
            "evaluated_on": summary["evaluated_on"],
            "seconds": record["seconds"],
            **({} if noise is None else {"privacy_noise": noise}),
        }

    def warn_if_worthless(self, stacklevel: int = 2) -> None:
        """Warns if the kept model is no better than the same answer for everybody."""
        reason = self._inner.worthless()
        if reason is not None:
            warnings.warn(reason, WorthlessModelWarning, stacklevel=stacklevel)

    def __repr__(self) -> str:
        setting = self.record["setting"]
        epsilon = self.privacy.epsilon_exact
        spent = "no privacy" if epsilon is None else f"epsilon {_padmm.epsilon_text(epsilon)}"
        return (
            f"Simulation({setting['plan']['algorithm']} on {setting['dataset']}, {len(setting['sites'])} sites, "
            f"{spent}, loss {self.summary['model_loss']['mean']:.4f})"
        )


def simulate(
    plan: Plan | None = None,
    *,
    dataset: str | None = None,
    data: Any = None,
    schema: Schema | str | Path | None = None,
    reference: bool = True,
    rank_rounds: bool = True,
    progress: Any = None,
    threads: int | None = None,
    **settings: Any,
) -> Simulation:
    """Runs ``padmm simulate``: the same plan and seed give the same numbers, bit for bit.

    Records are a shipped set (``dataset="adult"`` or ``"heart"``), a file (``data="x.csv"``, ``schema="x.schema.toml"``) or a
    pandas or polars frame with a :class:`Schema`. Settings are those of :class:`Plan`; given here, they win over ``plan``.
    ``progress`` is a function of a :class:`Progress`, a ``tqdm`` bar or its class, or ``True`` for a bar. ``reference=False``
    leaves out the run without noise, ``rank_rounds=False`` accuracy and AUC of every round, which cost most.

    >>> result = simulate(dataset="heart", epsilon=2, rounds=10, reference=False)
    >>> result.privacy.valid, result.record["setting"]["sites"][0]["name"]
    (True, 'cleveland')
    >>> len(result.trace)
    10
    """
    plan = Plan(**settings) if plan is None else plan.with_(**settings) if settings else plan
    source: dict[str, Any] = {}
    by_site = dataset == "heart"
    if data is None:
        if schema is not None:
            raise ValueError("schema= goes with data=; a shipped data set brings its own schema")
        source["dataset"] = dataset
    elif dataset is not None:
        raise ValueError("the plan names both a dataset and a data file: keep one")
    elif isinstance(data, (str, Path)):
        if schema is None:
            raise ValueError(f"data={str(data)!r} needs schema=: `padmm schema draft {data}` drafts one")
        if isinstance(schema, Schema):
            source["encoded"], source["name"] = schema._inner.encode_file(str(data), "train"), str(data)
        else:
            source["data"], source["schema_file"] = str(data), str(schema)
        by_site = True
    else:
        if schema is None:
            raise ValueError("a frame needs a schema: Schema.draft(frame, label=...) drafts one from its dtypes")
        schema = schema if isinstance(schema, Schema) else Schema.from_toml(schema)
        source["encoded"], by_site = schema.encode(data), schema.site is not None
    given = plan.given
    named_sites = given.get("split") == "site" or (by_site and "agents" not in given and "split" not in given)
    plan = plan.with_(**graph_settings(given.get("graph"), named_sites, given.get("agents")))
    manner = manner_of(progress, threads=threads, measures=True, reference=reference, rank_rounds=rank_rounds)
    try:
        result = Simulation(_padmm.simulate(plan.json(), manner, **source))
    finally:
        close_bar(manner)
    result.warn_if_worthless(stacklevel=3)
    return result


def graph_settings(graph: Any, named_sites: bool, agents: int | None) -> dict[str, Any]:
    """A :class:`Graph` as settings. Where records are dealt, agents have no names of their own and take the graph's places."""
    if not isinstance(graph, Graph):
        return {}
    if named_sites:
        return {"graph": graph.spec}
    spec: Any = graph.spec
    if not isinstance(spec, str):
        spec = [[f"agent-{i + 1}", f"agent-{j + 1}"] for i, j in graph.edges]
    return {"graph": spec, "agents": graph.n_agents if agents is None else agents}


class _Bar:
    """Moves a bar of tqdm's kind."""

    def __init__(self, bar: Any, *, own: bool) -> None:
        self.bar, self.own, self.done = bar, own, 0

    def __call__(self, progress: Progress) -> None:
        self.bar.total = progress.total
        self.bar.update(progress.done - self.done)
        self.done = progress.done
        if hasattr(self.bar, "set_postfix"):
            spent = {} if progress.epsilon is None else {"epsilon": _padmm.epsilon_text(progress.epsilon)}
            loss = {} if progress.average_loss is None else {"loss": f"{progress.average_loss:.4f}"}
            self.bar.set_postfix({**loss, **spent})


def manner_of(progress: Any, **others: Any) -> dict[str, Any]:
    """How the extension module is to run."""
    told: Callable[[Progress], Any] | None
    if progress is None or progress is False:
        told = None
    elif progress is True:
        told = _Bar(need("tqdm.auto", "progress=True").tqdm(unit="round"), own=True)
    elif isinstance(progress, type):
        told = _Bar(progress(), own=True)
    elif hasattr(progress, "update"):
        told = _Bar(progress, own=False)
    elif callable(progress):
        told = progress
    else:
        raise TypeError("progress must be a function, a tqdm bar, True or None")
    call = None if told is None else (lambda *numbers, told=told: told(Progress(*numbers)))
    return {"progress": call, "bar": told, **others}


def close_bar(manner: Mapping[str, Any]) -> None:
    """Closes a bar that was opened here."""
    bar = manner["bar"]
    if isinstance(bar, _Bar) and bar.own and hasattr(bar.bar, "close"):
        bar.bar.close()


def trace_to_pandas(trace: _padmm.Trace) -> Any:
    """A pandas frame; through Arrow without copying if pyarrow is there."""
    pandas = need("pandas", "to_pandas", "pandas")
    try:
        import pyarrow
    except ImportError:
        # Without pyarrow pandas cannot read Arrow, and the columns are built from numbers.
        columns = {name: trace.column(name) for name in trace.columns if name != "algorithm"}
        return pandas.DataFrame(columns)
    return pyarrow.table(trace).to_pandas(split_blocks=True)


def trace_to_polars(trace: _padmm.Trace) -> Any:
    """A polars frame, through Arrow without copying."""
    return need("polars", "to_polars", "polars").DataFrame(trace)
