"""Tables of Python people as columns that the extension module reads in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: Numbers (NaN is missing), or codes (-1 is missing) and the texts that they stand for.
Column = Any


def is_pandas(table: Any) -> bool:
    """A pandas frame, told without importing pandas."""
    return type(table).__module__.split(".")[0] == "pandas" and hasattr(table, "columns")


def is_polars(table: Any) -> bool:
    """A polars frame, told without importing polars."""
    return type(table).__module__.split(".")[0] == "polars" and hasattr(table, "columns")


def is_frame(table: Any) -> bool:
    """Something with named columns."""
    return is_pandas(table) or is_polars(table) or (isinstance(table, Mapping) and not hasattr(table, "shape"))


def names_of(table: Any) -> list[str]:
    """Names of the columns."""
    return [str(name) for name in (table.keys() if isinstance(table, Mapping) else table.columns)]


def column_of(table: Any, name: str) -> Any:
    """A column by its name as text."""
    if is_pandas(table) and name not in table.columns:
        return table.iloc[:, names_of(table).index(name)]
    return table[name]


def without(table: Any, names: Sequence[str]) -> dict[str, Any]:
    """All columns but some."""
    return {name: column_of(table, name) for name in names_of(table) if name not in names}


def is_numeric(values: Any) -> bool:
    """Whether the dtype is one of numbers, truth values left out."""
    if _is_polars_series(values):
        return bool(values.dtype.is_numeric())
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    return kind in ("i", "u", "f") and not _is_categorical(values)


def is_boolean(values: Any) -> bool:
    """Whether the dtype is one of truth values."""
    if _is_polars_series(values):
        return str(values.dtype) == "Boolean"
    return getattr(getattr(values, "dtype", None), "kind", None) == "b"


def categories_of(values: Any) -> list[str] | None:
    """The categories that a dtype lists, as texts; none if it lists none."""
    if _is_polars_series(values):
        name = str(values.dtype).split("(")[0]
        return [text_of(v) for v in values.dtype.categories] if name == "Enum" else None
    return [text_of(v) for v in values.dtype.categories] if _is_categorical(values) else None


def texts_in(values: Any) -> list[str]:
    """The different texts of a column, sorted."""
    _, texts = coded(values)
    return sorted(texts)


def convert(values: Any, kind: str | None = None, listed: Sequence[str] = ()) -> Column:
    """A column for the encoder. ``kind`` and ``listed`` are what the schema says, which decides about truth values."""
    if isinstance(values, tuple):
        # Codes and texts already.
        return values
    if is_boolean(values):
        return _boolean(values, kind, listed)
    if is_numeric(values):
        return numbers(values)
    return coded(values)


def numbers(values: Any) -> np.ndarray:
    """Numbers as float64; what is missing is NaN. Not copied if it is that already."""
    if _is_polars_series(values):
        import polars

        return np.asarray(values.cast(polars.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(values, dtype=np.float64)


def coded(values: Any) -> tuple[np.ndarray, list[str]]:
    """Codes and texts."""
    if _is_polars_series(values):
        import polars

        texts = values.cast(polars.String)
        unique = texts.drop_nulls().unique(maintain_order=True)
        codes = texts.replace_strict(unique, polars.Series(range(len(unique)), dtype=polars.Int32), default=-1)
        return codes.fill_null(-1).to_numpy().astype(np.int32), unique.to_list()
    if _is_categorical(values):
        codes = getattr(values, "cat", values).codes
        # A list first: going through an index of texts one by one is slow.
        return np.asarray(codes, dtype=np.int32), [text_of(v) for v in values.dtype.categories.tolist()]
    if hasattr(values, "to_numpy") and type(values).__module__.split(".")[0] == "pandas":
        import pandas

        codes, unique = pandas.factorize(values)
        return np.asarray(codes, dtype=np.int32), [text_of(v) for v in unique]
    places: dict[str, int] = {}
    codes = np.empty(len(values), dtype=np.int32)
    for i, value in enumerate(np.asarray(values, dtype=object).tolist()):
        missing = value is None or value != value
        codes[i] = -1 if missing else places.setdefault(text_of(value), len(places))
    return codes, list(places)


def text_of(value: Any) -> str:
    """A value as a file would hold it."""
    if isinstance(value, (bool, np.bool_)):
        return "True" if value else "False"
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return str(value)


def _boolean(values: Any, kind: str | None, listed: Sequence[str]) -> Column:
    filled = values.cast(int) if _is_polars_series(values) else values
    measured = numbers(filled if _is_polars_series(values) else _as_float(values))
    if kind == "numeric":
        return measured
    # A truth value has several usual texts: the ones that the schema lists are meant.
    for texts in (["False", "True"], ["false", "true"], ["no", "yes"], ["0", "1"]):
        if not listed or any(text in listed for text in texts):
            return np.where(np.isnan(measured), -1, measured).astype(np.int32), texts
    return np.where(np.isnan(measured), -1, measured).astype(np.int32), ["False", "True"]


def _as_float(values: Any) -> Any:
    return values.astype("Float64") if hasattr(values, "to_numpy") else np.asarray(values, dtype=np.float64)


def _is_polars_series(values: Any) -> bool:
    return type(values).__module__.split(".")[0] == "polars"


def _is_categorical(values: Any) -> bool:
    return hasattr(getattr(values, "dtype", None), "categories")
