"""The data sets that are built in: nothing is downloaded."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _padmm
from ._optional import need
from ._schema import Schema

__all__ = ["Dataset", "load_adult", "load_heart_disease"]


@dataclass(frozen=True)
class Dataset:
    """A table with its label, its sites and its schema."""

    #: The columns but label and site: a pandas or polars frame, or a dictionary of numpy arrays.
    data: Any = field(repr=False)
    #: The label: 0 or 1.
    target: np.ndarray = field(repr=False)
    #: The site of each row, if there are sites.
    sites: np.ndarray | None = field(repr=False)
    #: Everything in one frame, the label in its own words.
    frame: Any = field(repr=False)
    schema: Schema
    name: str
    title: str
    licence: str
    citation: str = field(repr=False)
    description: str = field(repr=False)


def load_adult(*, backend: str = "auto") -> Dataset:
    """Adult (census income): 48,842 records, of which 45,222 are complete.

    >>> adult = load_adult()
    >>> len(adult.target), int(adult.target.sum())
    (48842, 11687)
    """
    return _load("adult", backend)


def load_heart_disease(*, backend: str = "auto") -> Dataset:
    """Heart Disease: 920 patients of four hospitals.

    >>> heart = load_heart_disease()
    >>> sorted(set(heart.sites))
    ['cleveland', 'hungary', 'switzerland', 'va']
    """
    return _load("heart", backend)


def _load(name: str, backend: str) -> Dataset:
    about = json.loads(_padmm.shipped(name))
    schema = Schema.from_toml(about["schema_toml"])
    header, coded = _padmm.shipped_table(name)
    columns = dict(zip(header, coded, strict=True))
    label = about["label"]["column"]
    codes, texts = columns[label]
    positive = np.array([text.strip() in about["label"]["positive"] for text in texts])
    site = schema.site
    sites = np.array(columns[site][1], dtype=object)[columns[site][0]] if site else None
    frame_of, subset = _backend(backend)
    numeric = {c["name"] for c in schema.to_dict()["columns"] if c["kind"] == "numeric"}
    frame = frame_of(columns, numeric)
    left_out = [label, *([site] if site else [])]
    return Dataset(
        data=subset(frame, [column for column in header if column not in left_out]),
        target=positive[codes].astype(np.int64),
        sites=sites,
        frame=frame,
        schema=schema,
        name=name,
        title=about["title"],
        licence=about["licence"],
        citation=about["citation"],
        description=about["description"],
    )


def _backend(name: str) -> tuple[Any, Any]:
    """How columns become a frame, and how some of its columns are chosen."""
    if name == "auto":
        try:
            import pandas as _  # noqa: F401

            name = "pandas"
        except ImportError:
            name = "numpy"
    if name == "pandas":
        pandas = need("pandas", "backend='pandas'", "pandas")

        def frame_of(columns: dict[str, Any], numeric: set[str]) -> Any:
            def column(key: str, codes: np.ndarray, texts: list[str]) -> Any:
                if key in numeric:
                    return _numbers(codes, texts)
                return pandas.Categorical.from_codes(_without_gaps(codes, texts), [t for t in texts if t != "?"])

            return pandas.DataFrame({key: column(key, *coded) for key, coded in columns.items()})

        return frame_of, lambda frame, names: frame[names]
    if name == "polars":
        polars = need("polars", "backend='polars'", "polars")

        def frame_of(columns: dict[str, Any], numeric: set[str]) -> Any:
            def column(key: str, codes: np.ndarray, texts: list[str]) -> Any:
                if key in numeric:
                    return polars.Series(_numbers(codes, texts), nan_to_null=True)
                cells = [None if text == "?" else text for text in texts]
                enum = polars.Enum([text for text in texts if text != "?"])
                return polars.Series([cells[code] for code in codes.tolist()], dtype=enum)

            return polars.DataFrame({key: column(key, *coded) for key, coded in columns.items()})

        return frame_of, lambda frame, names: frame.select(names)
    if name == "numpy":

        def frame_of(columns: dict[str, Any], numeric: set[str]) -> Any:
            def column(key: str, codes: np.ndarray, texts: list[str]) -> Any:
                cells = np.array([None if text == "?" else text for text in texts], dtype=object)
                return _numbers(codes, texts) if key in numeric else cells[codes]

            return {key: column(key, *coded) for key, coded in columns.items()}

        return frame_of, lambda frame, names: {name: frame[name] for name in names}
    raise ValueError(f"backend {name!r} is not known: use 'auto', 'pandas', 'polars' or 'numpy'")


def _numbers(codes: np.ndarray, texts: list[str]) -> np.ndarray:
    """Numbers of a column; what is missing is NaN."""
    return np.array([np.nan if text in ("?", "") else float(text) for text in texts])[codes]


def _without_gaps(codes: np.ndarray, texts: list[str]) -> np.ndarray:
    """Codes into the texts without "?", which becomes -1."""
    place, places = 0, np.empty(len(texts), dtype=np.int32)
    for i, text in enumerate(texts):
        places[i] = -1 if text == "?" else place
        place += text != "?"
    return places[codes]
