"""What ``fit`` is given, in the forms that people have it in."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _frames
from ._schema import Schema


def is_tuned() -> bool:
    """Whether a search or a cross-validation of scikit-learn calls: neither tells the estimator, so the stack has to."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection."):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def usable_names(given: Any, n: int) -> list[str]:
    """Names that a schema accepts: those of the frame where they are usable."""
    if given is None:
        return [f"x{j}" for j in range(n)]
    names = [str(name) for name in given]
    usable = all(name and name.strip() == name and name != "(intercept)" for name in names)
    return names if usable and len(set(names)) == n else [f"x{j}" for j in range(n)]


def unused_name(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name


def column_bounds(bounds: Any, X: Any, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray, bool]:
    """Lower and upper bounds of each column, and whether they are the data's own."""
    n = X.shape[1]
    if bounds is None:
        lower, upper = X.min(axis=0), X.max(axis=0)
        if hasattr(lower, "toarray"):
            lower, upper = lower.toarray().ravel(), upper.toarray().ravel()
        upper = np.where(lower < upper, upper, lower + np.maximum(1.0, np.abs(lower)))
        return np.asarray(lower), np.asarray(upper), True
    if isinstance(bounds, Mapping):
        absent = [name for name in names if name not in bounds]
        if absent:
            raise ValueError(f"`bounds` has no entry for column {absent[0]!r}: every column needs public bounds")
        pairs = np.array([bounds[name] for name in names], dtype=np.float64)
        lower, upper = pairs[:, 0], pairs[:, 1]
    else:
        try:
            lower, upper = bounds
            lower = np.broadcast_to(np.asarray(lower, dtype=np.float64), n)
            upper = np.broadcast_to(np.asarray(upper, dtype=np.float64), n)
        except (TypeError, ValueError) as problem:
            raise ValueError(
                f"`bounds` must be (lower, upper), each a number or {n} numbers, or a dict from column to (lower, upper)"
            ) from problem
    return lower, upper, False


def site_codes(sites: Any, rows: int) -> tuple[list[str], list[int]]:
    """Names of the sites in the order in which they appear, and each row's place among them."""
    cells = sites.to_list() if hasattr(sites, "to_list") else np.asarray(sites).tolist()
    if len(cells) != rows:
        raise ValueError(f"`sites` has {len(cells)} entries and X has {rows} rows")
    if any(cell is None or cell != cell for cell in cells):
        raise ValueError("`sites` has missing entries: every row needs a site")
    texts = [_frames.text_of(cell) for cell in cells]
    names = list(dict.fromkeys(texts))
    place = {name: i for i, name in enumerate(names)}
    return names, [place[text] for text in texts]


def without_column(X: Any, column: str) -> Any:
    if isinstance(X, Mapping):
        return {name: values for name, values in X.items() if name != column}
    return X.drop(columns=column) if _frames.is_pandas(X) else X.drop(column)


def by_name(X: Any, schema: Schema | None) -> dict[str, Any]:
    """Columns of an array by the names of the schema's columns."""
    names = [] if schema is None else [c["name"] for c in schema.to_dict()["columns"] if c["kind"] != "ignored"]
    values = np.asarray(X, dtype=object) if not hasattr(X, "dtype") else np.asarray(X)
    if values.ndim != 2 or values.shape[1] != len(names):
        raise ValueError(f"X needs the schema's {len(names)} columns: {', '.join(names)}")
    return {name: values[:, j] for j, name in enumerate(names)}
