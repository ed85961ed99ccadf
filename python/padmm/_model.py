"""Models that sites trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from . import _frames, _padmm
from ._schema import Schema


class Model:
    """A model with its schema, as ``padmm`` writes it to ``model.json``.

    >>> import padmm
    >>> model = padmm.simulate(dataset="heart", rounds=5, reference=False).model
    >>> frame = padmm.datasets.load_heart_disease().data
    >>> scores = model.predict_proba(frame)
    >>> scores.shape
    (920, 2)
    """

    def __init__(self, inner: _padmm.Model) -> None:
        self._inner = inner

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """From a ``model.json``, or a site's ``own-model.json`` for use inside the site."""
        return cls(_padmm.Model.load(str(path)))

    @classmethod
    def from_json(cls, text: str) -> Model:
        """From the text of a ``model.json``."""
        return cls(_padmm.Model.from_json(text))

    def to_json(self) -> str:
        """The text of a ``model.json``."""
        return self._inner.to_json()

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Writes a ``model.json`` that ``padmm predict`` and ``padmm evaluate`` read."""
        self._inner.save(str(path), force)

    @property
    def schema(self) -> Schema:
        """What records must look like."""
        return Schema(self._inner.schema)

    @property
    def loss(self) -> str:
        """The loss that was minimised."""
        return self._inner.loss

    @property
    def is_classifier(self) -> bool:
        """Whether two classes are told apart."""
        return self._inner.classes is not None

    @property
    def is_count(self) -> bool:
        """Whether counts are predicted: the margin is the logarithm of the expected one."""
        return self.loss.startswith("poisson")

    @property
    def classes(self) -> tuple[str, str] | None:
        """What is predicted, the negative class first; none for regression."""
        return self._inner.classes

    @property
    def coefficients(self) -> dict[str, float]:
        """Coefficients by the names of the encoded columns."""
        return dict(zip(self._inner.schema.feature_names, self._inner.values().tolist(), strict=True))

    @property
    def algorithm(self) -> str:
        """The name of the algorithm that trained it."""
        found: str = json.loads(self.to_json())["provenance"]["algorithm"]
        return found

    @property
    def privacy_noise_std(self) -> np.ndarray | None:
        """Standard deviation that privacy noise, and nothing else, has put on each coefficient; None if the algorithm cannot tell."""
        noise = self._inner.privacy_noise()
        return None if noise is None else np.array(noise[0])

    @property
    def privacy_noise_covariance(self) -> np.ndarray | None:
        """The same of every two coefficients, for up to 200 of them."""
        noise = self._inner.privacy_noise()
        return None if noise is None or noise[1] is None else np.array(noise[1])

    @property
    def privacy(self) -> dict[str, Any] | None:
        """The run's statement about what was spent; none if it was not private."""
        found: dict[str, Any] | None = json.loads(self.to_json())["privacy"]
        return found

    @property
    def is_own(self) -> bool:
        """Whether it is a site's own model, computed from its records without noise: it must not leave the site."""
        return self._inner.is_own

    @property
    def comparison(self) -> dict[str, Any] | None:
        """Of a site's own model: own records alone, joint and combined, cross-validated, with intervals. For the site's own eyes."""
        found: dict[str, Any] | None = json.loads(self.to_json()).get("own", {}).get("comparison")
        return found

    def own(self, table: Any) -> Model:
        """The site's own model, from this joint one and the site's records: a frame with the schema's columns and the label.

        It is fitted without noise, for use inside the site, and marked: what would share it refuses it.

        >>> import padmm
        >>> heart = padmm.datasets.load_heart_disease()
        >>> joint = padmm.simulate(dataset="heart", rounds=5, reference=False).model
        >>> cleveland = heart.data.assign(num=heart.target)[heart.sites == "cleveland"]
        >>> own = joint.own(cleveland)
        >>> own.is_own, sorted(own.comparison)
        (True, ['combined', 'folds', 'gain', 'joint', 'own', 'records'])
        """
        known = [*self.schema.columns, self.schema.label["column"], self.schema.site]
        extra = [name for name in _frames.names_of(table) if name not in known]
        return Model(self._inner.fit_own(self.schema.encode(_frames.without(table, extra), "evaluate")))

    def decision_function(self, table: Any) -> np.ndarray:
        """The margin of each row: the model applied to its encoded form. A row that the schema drops has NaN."""
        if _frames.is_frame(table):
            known = [*self.schema.columns, self.schema.label["column"], self.schema.site]
            extra = [name for name in _frames.names_of(table) if name not in known]
            encoded = self.schema.encode(_frames.without(table, extra), "predict")
            kept = self._inner.margins_encoded(encoded)
            margins = np.full(len(next(iter(_frames.without(table, []).values()))), np.nan)
            margins[encoded.positions()] = kept
            return margins
        if hasattr(table, "tocsr"):
            return self._inner.margins_csr(*csr_parts(table), table.shape[1])
        values = np.asarray(table, dtype=np.float64)
        if values.ndim != 2:
            raise ValueError("expected a table: one row for each record")
        return self._inner.margins_dense(values)

    def predict_proba(self, table: Any) -> np.ndarray:
        """Probabilities of the negative and the positive class; the logistic loss only."""
        return self._probabilities(self.decision_function(table))

    def _probabilities(self, margins: np.ndarray) -> np.ndarray:
        positive = self._inner.probabilities(margins)
        if positive is None:
            raise ValueError(f"the loss '{self.loss}' gives no probabilities: use decision_function")
        return np.column_stack([1.0 - positive, positive])

    def predict(self, table: Any) -> np.ndarray:
        """Classes as the schema writes them, or numbers in the label's own unit, of counts the expected one. A row that the schema
        drops has none."""
        margins = self.decision_function(table)
        if self.classes is None:
            return self._numbers(margins)
        # A margin of exactly zero counts as negative, as in the accuracy.
        found = np.array(self.classes, dtype=object)[(margins > 0).astype(int)]
        found[np.isnan(margins)] = None
        return found

    def _numbers(self, margins: np.ndarray) -> np.ndarray:
        numbers = self._inner.numbers(margins)
        assert numbers is not None, "a classifier predicts no numbers"
        return numbers

    def to_sklearn(self) -> Any:
        """A fitted scikit-learn estimator that predicts the same: it takes frames with the schema's columns."""
        from . import _estimators

        return _estimators.from_model(self)

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """The model as an ONNX graph (needs ``onnx``); written to ``path`` if one is given."""
        from . import _onnx

        return _onnx.export(self, path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return (Model.from_json, (self.to_json(),))

    def __repr__(self) -> str:
        return f"Model({self.loss}, {len(self._inner.schema.feature_names)} coefficients)"


def csr_parts(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, column indices and row starts of a sparse matrix in compressed rows."""
    matrix = matrix.tocsr()
    return (
        np.asarray(matrix.data, dtype=np.float64),
        np.asarray(matrix.indices, dtype=np.int64),
        np.asarray(matrix.indptr, dtype=np.int64),
    )
