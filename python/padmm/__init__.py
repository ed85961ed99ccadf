"""Differentially private ADMM between sites that may not pool their records.

>>> import padmm
>>> result = padmm.simulate(dataset="heart", rounds=5, progress=None)
>>> result.privacy.epsilon_exact <= 5.0
True

Estimators (:class:`PrivateADMMClassifier`, :class:`PrivateADMMRegressor`) are scikit-learn's. Nothing but numpy has to be
installed: scikit-learn, pandas, polars, matplotlib, networkx and onnx are imported by what needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ._errors import (
    BudgetError,
    DataBoundsWarning,
    PadmmError,
    PrivacyWarning,
    SchemaError,
    TuningWarning,
    WorthlessModelWarning,
)

if TYPE_CHECKING:
    from . import account, datasets, plot
    from ._estimators import PrivateADMMClassifier, PrivateADMMRegressor
    from ._graph import Graph
    from ._model import Model
    from ._padmm import Trace, __version__
    from ._plan import Plan, algorithms
    from ._privacy import Privacy, SitePrivacy
    from ._schema import Schema, SchemaDraft
    from ._simulate import Progress, Simulation, simulate

__all__ = [
    "BudgetError",
    "DataBoundsWarning",
    "Graph",
    "Model",
    "PadmmError",
    "Plan",
    "Privacy",
    "PrivacyWarning",
    "PrivateADMMClassifier",
    "PrivateADMMRegressor",
    "Progress",
    "Schema",
    "SchemaDraft",
    "SchemaError",
    "Simulation",
    "SitePrivacy",
    "Trace",
    "TuningWarning",
    "WorthlessModelWarning",
    "__version__",
    "account",
    "algorithms",
    "datasets",
    "plot",
    "simulate",
]

# Everything is imported when it is first asked for: a program that only needs the accountant waits for nothing else.
_LATER = {
    "Graph": "_graph",
    "Model": "_model",
    "Plan": "_plan",
    "Privacy": "_privacy",
    "PrivateADMMClassifier": "_estimators",
    "PrivateADMMRegressor": "_estimators",
    "Progress": "_simulate",
    "Schema": "_schema",
    "SchemaDraft": "_schema",
    "Simulation": "_simulate",
    "SitePrivacy": "_privacy",
    "Trace": "_padmm",
    "__version__": "_padmm",
    "account": "account",
    "algorithms": "_plan",
    "datasets": "datasets",
    "plot": "plot",
    "simulate": "_simulate",
}


def __getattr__(name: str) -> object:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'padmm' has no attribute {name!r}")
    loaded = importlib.import_module(f".{module}", __name__)
    value = loaded if module == name else getattr(loaded, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
