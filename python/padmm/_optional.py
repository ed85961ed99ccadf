"""Packages that may not be there."""

from __future__ import annotations

import importlib
from types import ModuleType


def need(name: str, why: str, extra: str | None = None) -> ModuleType:
    """The module, or an error that says what needs it and how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        package = {"sklearn": "scikit-learn"}.get(name.split(".")[0], name.split(".")[0])
        install = f"padmm[{extra}]" if extra else package
        raise ImportError(f"{why} needs {package}, which is not installed: pip install '{install}'") from problem
