"""What a table means, written down in public before anybody looks at a record."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _frames, _padmm
from ._errors import DataBoundsWarning


class Schema:
    """Bounds of numbers, values of categories, the label, the site column: all of it public.

    >>> schema = Schema.from_dict({
    ...     "intercept": True,
    ...     "label": {"column": "ill", "kind": "binary", "positive": ["yes"], "negative": ["no"]},
    ...     "columns": [
    ...         {"name": "age", "kind": "numeric", "lower": 18, "upper": 100},
    ...         {"name": "sex", "kind": "categorical", "values": ["f", "m"]},
    ...     ],
    ... })
    >>> schema.feature_names
    ['age', 'sex=f', 'sex=m', '(intercept)']
    """

    def __init__(self, inner: _padmm.Schema) -> None:
        self._inner = inner
        self._dict: dict[str, Any] = json.loads(inner.to_json())

    @classmethod
    def from_dict(cls, schema: Mapping[str, Any]) -> Schema:
        """From the keys of a ``schema.toml``."""
        return cls(_padmm.Schema.from_json(json.dumps(_plain(schema))))

    @classmethod
    def from_toml(cls, source: str | Path) -> Schema:
        """A ``schema.toml``, by path or by its text."""
        if isinstance(source, Path) or "\n" not in source:
            return cls(_padmm.Schema.read(str(source)))
        return cls(_padmm.Schema.from_toml(source, "schema"))

    @classmethod
    def draft(
        cls,
        frame: Any,
        *,
        label: str,
        site: str | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        values: Mapping[str, Sequence[Any]] | None = None,
        positive: Sequence[Any] | Any = None,
        negative: Sequence[Any] | Any = None,
        **settings: Any,
    ) -> SchemaDraft:
        """A draft from a frame's dtypes: no record is read. What a dtype does not say has to be given, or filled in later.

        >>> import pandas
        >>> frame = pandas.DataFrame({"age": [31, 62], "ward": pandas.Categorical(["a", "b"]), "ill": [True, False]})
        >>> draft = Schema.draft(frame, label="ill")
        >>> draft.missing
        ['age: lower and upper']
        >>> draft.set("age", lower=0, upper=120).check().feature_names
        ['age', 'ward=a', 'ward=b', '(intercept)']
        """
        bounds, values = bounds or {}, values or {}
        columns: list[dict[str, Any]] = []
        label_draft: dict[str, Any] = {"column": label}
        for name in _frames.names_of(frame):
            data = _frames.column_of(frame, name)
            listed = values.get(name, _frames.categories_of(data))
            if name == label:
                label_draft.update(_label(data, listed, bounds.get(name), positive, negative))
            elif name == site:
                continue
            elif name in bounds or (_frames.is_numeric(data) and name not in values):
                lower, upper = bounds.get(name, (None, None))
                columns.append({"name": name, "kind": "numeric", "lower": lower, "upper": upper})
            else:
                if listed is None and _frames.is_boolean(data):
                    listed = ["False", "True"]
                texts = None if listed is None else [_frames.text_of(v) for v in listed]
                columns.append({"name": name, "kind": "categorical", "values": texts})
        draft = {"intercept": True, **settings, "label": label_draft, "columns": columns}
        if site is not None:
            draft["site"] = {"column": site}
        return SchemaDraft(draft)

    @classmethod
    def from_data(cls, frame: Any, *, label: str, site: str | None = None, **settings: Any) -> Schema:
        """A schema whose bounds and categories are those of the records. It warns: such a schema leaks, and no guarantee holds.

        >>> import pandas, warnings
        >>> frame = pandas.DataFrame({"age": [31.0, 62.0], "ill": ["yes", "no"]})
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     schema = Schema.from_data(frame, label="ill")
        >>> caught[0].category.__name__
        'DataBoundsWarning'
        """
        draft = cls.draft(frame, label=label, site=site, **settings)
        for column in draft["columns"]:
            data = _frames.column_of(frame, column["name"])
            if column["kind"] == "numeric" and column["lower"] is None:
                column["lower"], column["upper"] = bounds_in(_frames.numbers(data))
            elif column["kind"] == "categorical" and column["values"] is None:
                column["values"] = _frames.texts_in(data)
        target = draft["label"]
        data = _frames.column_of(frame, label)
        if target.get("kind") == "binary" and not target.get("positive"):
            texts = _frames.texts_in(data)
            if len(texts) != 2:
                raise ValueError(f"the label column `{label}` has {len(texts)} values, and a classifier needs two")
            target["negative"], target["positive"] = [texts[0]], [texts[1]]
        elif target.get("kind") == "numeric" and target.get("lower") is None:
            target["lower"], target["upper"] = bounds_in(_frames.numbers(data))
        warn_data_bounds(stacklevel=3)
        return draft.check()

    def to_dict(self) -> dict[str, Any]:
        """The keys of a ``schema.toml``."""
        found: dict[str, Any] = json.loads(self._inner.to_json())
        return found

    def to_toml(self) -> str:
        """The text of a ``schema.toml`` that the command reads."""
        return _toml(self._dict)

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded columns."""
        return self._inner.feature_names

    @property
    def label(self) -> dict[str, Any]:
        """The label as the schema describes it."""
        return dict(self._dict["label"])

    @property
    def site(self) -> str | None:
        """The site column, if there is one."""
        site = self._dict.get("site")
        return site["column"] if site else None

    @property
    def columns(self) -> list[str]:
        """All other columns, in order."""
        return [column["name"] for column in self._dict["columns"]]

    @property
    def norm_bound(self) -> float:
        """The bound on every encoded row's norm."""
        return float(self._dict["norm_bound"])

    def with_(self, **settings: Any) -> Schema:
        """The same schema with some of its keys changed."""
        return Schema.from_dict({**self.to_dict(), **settings})

    def encode(self, table: Any, purpose: str = "train") -> _padmm.Encoded:
        """Encodes a frame, or a dictionary of columns, as the command encodes a file of the same cells."""
        header = _frames.names_of(table)
        kinds = {column["name"]: column for column in self._dict["columns"]}
        label = self._dict["label"]
        listed = [_frames.text_of(v) for v in label.get("positive", []) + label.get("negative", [])]
        kinds[label["column"]] = {"kind": "numeric" if label["kind"] == "numeric" else "categorical", "values": listed}
        columns = []
        for name in header:
            known = kinds.get(name, {})
            values = [_frames.text_of(v) for v in known.get("values") or []]
            columns.append(_frames.convert(_frames.column_of(table, name), known.get("kind"), values))
        return self._inner.encode(header, columns, purpose)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._inner == other._inner

    def __hash__(self) -> int:
        return hash(self._inner.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return (Schema.from_dict, (self._dict,))

    def __repr__(self) -> str:
        return (
            f"Schema({len(self.columns)} columns, label {self.label['column']!r}, {len(self.feature_names)} features)"
        )


class SchemaDraft(dict[str, Any]):
    """A schema with gaps: a dictionary with the keys of a ``schema.toml``."""

    @property
    def missing(self) -> list[str]:
        """What has to be filled in, from public knowledge."""
        gaps = []
        for column in self["columns"]:
            if column.get("kind") == "numeric" and column.get("lower") is None:
                gaps.append(f"{column['name']}: lower and upper")
            if column.get("kind") == "categorical" and not column.get("values"):
                gaps.append(f"{column['name']}: values")
        label = self["label"]
        if label.get("kind") == "binary" and not label.get("positive"):
            gaps.append(f"{label['column']}: positive and negative")
        if label.get("kind") == "numeric" and label.get("lower") is None:
            gaps.append(f"{label['column']}: lower and upper")
        return gaps

    def set(self, column: str, **keys: Any) -> SchemaDraft:
        """Fills in keys of one column, or of the label; gives the draft again."""
        known = [*self["columns"], {**self["label"], "name": self["label"]["column"]}]
        if column not in [c["name"] for c in known]:
            raise ValueError(f"there is no column `{column}` in the draft")
        for entry in [self["label"]] if column == self["label"]["column"] else self["columns"]:
            if entry.get("name", column) == column:
                entry.update(keys)
        return self

    def check(self) -> Schema:
        """The checked schema."""
        return Schema.from_dict(self)

    def to_toml(self) -> str:
        """The text of a ``schema.toml``; gaps are left out."""
        return _toml(_plain(self))


def bounds_in(values: np.ndarray) -> tuple[float, float]:
    """Smallest and largest number, kept apart where they are equal."""
    finite = values[np.isfinite(values)]
    lower, upper = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return (lower, upper) if lower < upper else (lower, lower + max(1.0, abs(lower)))


def warn_data_bounds(stacklevel: int = 2) -> None:
    """Says what bounds from data cost."""
    warnings.warn(
        "bounds or categories are taken from the data, so the stated guarantee does not hold: give public `bounds` or a"
        " `schema`",
        DataBoundsWarning,
        stacklevel=stacklevel + 1,
    )


def _label(data: Any, listed: Any, bounds: Any, positive: Any, negative: Any) -> dict[str, Any]:
    as_list = lambda v: list(v) if isinstance(v, (list, tuple, set)) else [v]  # noqa: E731
    if positive is not None and negative is not None:
        return {"kind": "binary", "positive": as_list(positive), "negative": as_list(negative)}
    if _frames.is_boolean(data):
        return {"kind": "binary", "positive": ["True"], "negative": ["False"]}
    if listed is not None and len(listed) == 2:
        return {"kind": "binary", "negative": [listed[0]], "positive": [listed[1]]}
    if _frames.is_numeric(data):
        lower, upper = bounds if bounds is not None else (None, None)
        return {"kind": "numeric", "lower": lower, "upper": upper}
    return {"kind": "binary"}


def _plain(value: Any) -> Any:
    """What JSON can hold; gaps are left out, truth values in lists become texts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(v) for key, v in value.items() if v is not None}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_frames.text_of(v) if isinstance(v, (bool, np.bool_)) else _plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _toml(schema: Mapping[str, Any]) -> str:
    """TOML of the schema's shape: settings, one table for the label and the site, one for each column."""

    def lines(table: Mapping[str, Any]) -> str:
        return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items())

    settings = {key: value for key, value in schema.items() if not isinstance(value, dict) and key != "columns"}
    text = lines(settings)
    for name in ("label", "site"):
        if schema.get(name):
            text += f"\n[{name}]\n{lines(schema[name])}"
    for column in schema.get("columns", []):
        text += f"\n[[columns]]\n{lines(column)}"
    return text
