"""Differentially private ADMM between sites that may not pool their records.

>>> import padmm
>>> result = padmm.simulate(dataset="heart", rounds=5, progress=None)
>>> result.privacy.epsilon_exact <= 5.0
True

Estimators (:class:`PrivateADMMClassifier`, :class:`PrivateADMMRegressor`) are scikit-learn's; scikit-learn is imported when
one of them is first used, and so are pandas, polars, matplotlib, networkx and onnx by what needs them. Nothing but numpy
has to be installed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from . import account, datasets
from ._errors import BudgetError, DataBoundsWarning, PadmmError, PrivacyWarning, SchemaError, TuningWarning
from ._graph import Graph
from ._model import Model
from ._padmm import Trace, __version__
from ._plan import Plan, algorithms
from ._privacy import Privacy, SitePrivacy
from ._schema import Schema, SchemaDraft
from ._simulate import Simulation, simulate

if TYPE_CHECKING:
    from . import plot
    from ._estimators import PrivateADMMClassifier, PrivateADMMRegressor

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
    "Schema",
    "SchemaDraft",
    "SchemaError",
    "Simulation",
    "SitePrivacy",
    "Trace",
    "TuningWarning",
    "__version__",
    "account",
    "algorithms",
    "datasets",
    "plot",
    "simulate",
]

# What needs a package that may not be there is imported when it is asked for.
_LATER = {"PrivateADMMClassifier": "_estimators", "PrivateADMMRegressor": "_estimators", "plot": "plot"}


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
