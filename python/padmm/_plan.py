"""What a run is: settings by name, checked by the same code as the command's flags."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import _padmm
from ._graph import Graph
from ._schema import Schema

# Declared once, in Rust, with the command's flags: the names with underscores. Where the records are is not part of a plan.
SETTINGS: tuple[str, ...] = tuple(setting["name"] for setting in json.loads(_padmm.settings()))
SOURCES = ("dataset", "data", "schema")


def settings_json(settings: Mapping[str, Any]) -> str:
    """Settings as the extension module reads them."""
    return json.dumps({key.replace("_", "-"): _plain(value) for key, value in settings.items() if value is not None})


def _plain(value: Any) -> Any:
    if isinstance(value, Graph):
        return value.spec
    # Numbers of numpy are not JSON.
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


class Plan(Mapping[str, Any]):
    """A checked plan: the settings of ``padmm simulate`` by the names of its flags, with underscores.

    >>> plan = Plan(epsilon=1, graph="ring", rounds=20)
    >>> plan["epsilon"], plan["decay"], plan["algorithm"]
    (1.0, 0.995, 'p-admm')
    >>> Plan(epsilon=-1)
    Traceback (most recent call last):
    padmm._errors.BudgetError: epsilon is -1, but it must be a positive number
    """

    def __init__(self, **settings: Any) -> None:
        unknown = [name for name in settings if name not in SETTINGS]
        if unknown:
            raise TypeError(f"unknown setting {unknown[0]!r}; the settings are {', '.join(SETTINGS)}")
        self._given = {name: value for name, value in settings.items() if value is not None}
        self._checked = json.loads(_padmm.check_settings(self.json()))

    @classmethod
    def from_toml(cls, source: str | Path) -> Plan:
        """A ``plan.toml``, by path or by its text.

        >>> Plan.from_toml("epsilon = 2\\nrounds = 10")["rounds"]
        10
        """
        text = str(source)
        if isinstance(source, Path) or ("=" not in text and "\n" not in text):
            text = Path(source).read_text(encoding="utf-8")
        table = json.loads(_padmm.settings_from_toml(text))
        places = [name for name in SOURCES if name in table]
        if places:
            raise ValueError(f"the plan says where the records are ({', '.join(places)}): give that to simulate()")
        return cls(**{key.replace("-", "_"): value for key, value in table.items()})

    def json(self) -> str:
        """What the extension module reads."""
        return settings_json(self._given)

    def with_(self, **settings: Any) -> Plan:
        """The same plan with some settings changed.

        >>> Plan(epsilon=1).with_(rounds=10)["rounds"]
        10
        """
        return Plan(**{**self._given, **settings})

    def to_toml(self) -> str:
        """The settings that were given, as a ``plan.toml`` that the command reads.

        >>> print(Plan(epsilon=1, graph="ring").to_toml(), end="")
        epsilon = 1
        graph = "ring"
        """
        pairs = json.loads(self.json())
        return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in pairs.items())

    def calibration(self, schema: Schema, n_records: list[int]) -> dict[str, Any]:
        """What follows from the plan and public facts before any record is touched: penalty, sensitivity, noise, ε.

        ``n_records`` has one number for each site.

        >>> schema = Schema.from_dict({"label": {"column": "y", "kind": "binary", "positive": [1], "negative": [0]},
        ...                            "columns": [{"name": "age", "kind": "numeric", "lower": 0, "upper": 120}]})
        >>> calibration = Plan(epsilon=1).calibration(schema, [500, 400, 300])
        >>> [site["privacy"]["epsilon_exact"] <= 1 for site in calibration["sites"]]
        [True, True, True]
        """
        found: dict[str, Any] = json.loads(_padmm.calibration(self.json(), schema._inner, [int(n) for n in n_records]))
        return found

    @property
    def given(self) -> dict[str, Any]:
        """What was given; everything else has its default."""
        return dict(self._given)

    def _settings(self) -> dict[str, Any]:
        plan = self._checked["plan"]
        settings = {key.replace("-", "_"): value for key, value in plan.items()}
        for name in ("graph", "seed", "runs"):
            settings[name] = self._checked[name]
        return settings

    def __getitem__(self, name: str) -> Any:
        return self._settings()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings())

    def __len__(self) -> int:
        return len(self._settings())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._checked == other._checked and self.json() == other.json()

    def __hash__(self) -> int:
        return hash(self.json())

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (self._given,))

    def __repr__(self) -> str:
        return f"Plan({', '.join(f'{name}={value!r}' for name, value in self._given.items())})"


def _restore(settings: dict[str, Any]) -> Plan:
    return Plan(**settings)


def algorithms() -> list[dict[str, Any]]:
    """Every algorithm that ``simulate`` knows: name, what it does, whether it is private, the graph that it needs.

    >>> [a["name"] for a in algorithms()][:3]
    ['p-admm', 'consensus-newton', 'private-gradient']
    """
    found: list[dict[str, Any]] = json.loads(_padmm.algorithms())
    return found
