"""scikit-learn estimators. This module imports scikit-learn; ``padmm`` imports it when an estimator is first used."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _frames, _padmm
from ._errors import TuningWarning
from ._inputs import by_name, column_bounds, is_tuned, site_codes, unused_name, usable_names, without_column
from ._model import Model, csr_parts
from ._optional import need
from ._plan import Plan
from ._schema import Schema, bounds_in, warn_data_bounds
from ._simulate import Simulation, close_bar, graph_settings, manner_of

need("sklearn", "an estimator", "sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # noqa: E402
from sklearn.utils import check_random_state  # noqa: E402
from sklearn.utils.metaestimators import available_if  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets, type_of_target  # noqa: E402
from sklearn.utils.validation import _check_y, check_is_fitted, validate_data  # noqa: E402

__all__ = ["PrivateADMMClassifier", "PrivateADMMRegressor"]

# Parameters that a plan has under the same name.
_OF_THE_PLAN = (
    "epsilon delta rounds decay algorithm penalty loss loss_width quantile_level slope_cap regularizer regularization l1_ratio "
    "accountant sensitivity output tolerance penalty_growth rate_growth even_damping relaxation "
    "model_bound weights"
).split()

_PARAMETERS = """
    Parameters
    ----------
    epsilon, delta : float
        What every site may spend on this fit.
    rounds : int, optional
        Private rounds; by the rule of an algorithm that has one, else 50.
    decay : float, optional
        Factor of the noise variance from round to round, 0.995 if it is not given; P-ADMM and its relatives only.
    algorithm : str
        One of ``padmm.algorithms()``, or ``auto``: what the documented rule picks from public facts (sites, their numbers of records,
        columns, budget, loss), as in ``padmm advise``. ``algorithm_`` tells what was used. With ``auto``, a ``penalty``, ``decay``,
        ``tolerance``, ``slope_cap`` or ``sensitivity='paper'`` picks P-ADMM, which has a use for it; settings of a single algorithm
        need that algorithm by name.
    graph : str or padmm.Graph, optional
        Who talks to whom; everybody with everybody unless the algorithm needs another graph.
    penalty : float, optional
        ADMM penalty; derived from public facts if it is not given.
    loss : str
        {losses}
    loss_width : float, optional
        Width of ``huber``, ``huberized-hinge`` and ``quantile``.
    quantile_level : float, optional
        Level of ``quantile``: the part of the labels that lies below the prediction; 0.5, the median, if it is not given.
    slope_cap : float, optional
        Caps a record's gradient at this length by capping the slope of its loss, in place of scaling its row down to ``norm_bound``.
        Rows then count as long as they are, and ``X @ coef_ + intercept_`` is the decision function within the bounds.
    regularizer : str
        ``none``, ``l2``, ``l1``, ``elastic-net`` or ``group-lasso``.
    regularization : float
        Its strength, shared by all sites.
    weights : str
        How much a site counts: ``records``, ``sites``, ``damped``, or ``auto``: by the same rule. ``weights_`` tells what was used.
    n_sites : int
        Sites that rows are dealt to if ``fit`` is given none.
    bounds : pair of numbers, pair of arrays, or dict, optional
        Public bounds of the columns: values outside are clipped. Without bounds and without a schema they are taken from the
        data, with a ``DataBoundsWarning``; then ``privacy_.valid`` is False.
    schema : padmm.Schema, optional
        What the columns of a frame mean, in place of ``bounds``.
    norm_bound : float
        Every encoded row is scaled down to this norm.
    fit_intercept : bool
        Adds a column of ones, which counts in the norm.
    random_state : int, RandomState or None
        None draws the noise as real sites do, from the operating system. A seed makes the fit repeatable, which is for
        simulation: whoever knows the seed can take the noise off again.
    noise : {{"auto", "seeded", "secure"}}
        Overrides what ``random_state`` implies.
    n_jobs : int, optional
        Threads; all cores if it is not given. Results do not depend on it.
    progress : callable or tqdm bar, optional
        Told of every round.
"""


@dataclass(kw_only=True, eq=False, repr=False)
class _PrivateADMM(BaseEstimator):
    """What both estimators share."""

    # scikit-learn reads parameters off the constructor, which is made of these.
    epsilon: float = 5.0
    delta: float = 1e-4
    rounds: int | None = None
    decay: float | None = None
    algorithm: str = "auto"
    graph: Any = None
    penalty: float | None = None
    loss: str = "logistic"
    loss_width: float | None = None
    quantile_level: float | None = None
    slope_cap: float | None = None
    regularizer: str = "l2"
    regularization: float = 1e-3
    l1_ratio: float | None = None
    accountant: str = "exact"
    sensitivity: str = "record"
    output: str = "smoothed"
    tolerance: float | None = None
    penalty_growth: float | None = None
    rate_growth: float | None = None
    even_damping: float | None = None
    relaxation: float | None = None
    model_bound: float | None = None
    weights: str = "auto"
    n_sites: int = 5
    split: str = "even"
    bounds: Any = None
    schema: Schema | None = None
    norm_bound: float = 1.0
    fit_intercept: bool = True
    random_state: Any = None
    noise: str = "auto"
    n_jobs: int | None = None
    progress: Any = None

    # -- settings

    def _plan(self, by_site: bool) -> Plan:
        settings = {name: getattr(self, name) for name in _OF_THE_PLAN}
        graph = {"graph": self.graph, **graph_settings(self.graph, by_site, None)}
        dealt = {"split": "site"} if by_site else {"split": self.split, "agents": self.n_sites}
        seed, noise = self._randomness()
        # A graph knows its size; the number of sites of the default does not contradict it.
        return Plan(**{**settings, **dealt, **graph, "seed": seed, "noise": noise})

    def _randomness(self) -> tuple[int, str]:
        secure = self.random_state is None
        noise = ("secure" if secure else "seeded") if self.noise == "auto" else self.noise
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state), noise
        return int(check_random_state(self.random_state).randint(2**31 - 1)), noise

    def _manner(self) -> dict[str, Any]:
        return manner_of(self.progress, threads=self.n_jobs, measures=False, reference=False, rank_rounds=False)

    # -- fitting

    def _is_table(self, X: Any) -> bool:
        """Whether columns have to be encoded by name: a schema says so, or there are columns that are not numbers."""
        if self.schema is not None:
            return _frames.is_frame(X) or not self.schema._inner.is_matrix
        if not _frames.is_frame(X) or isinstance(X, Mapping):
            return _frames.is_frame(X)
        columns = (_frames.column_of(X, name) for name in _frames.names_of(X))
        return not all(_frames.is_numeric(column) or _frames.is_boolean(column) for column in columns)

    def _fit(self, X: Any, y: Any, sites: Any) -> Simulation:
        tuning = is_tuned()
        if isinstance(sites, str):
            if not _frames.is_frame(X) or sites not in _frames.names_of(X):
                raise ValueError(f"sites={sites!r} names a column, and X has none of that name")
            column = sites
            sites = _frames.column_of(X, column)
            X = without_column(X, column)
        if self._is_table(X):
            simulation = self._fit_table(X, y, sites)
        else:
            simulation = self._fit_matrix(X, y, sites)
        simulation.warn_if_worthless(stacklevel=5)
        privacy = simulation.privacy
        if tuning:
            warnings.warn(
                "this model is one of several that a search or cross-validation trains on the same records: together they spend"
                " more than each of them states. Tune on public or synthetic data, or count all fits",
                TuningWarning,
                stacklevel=4,
            )
            note = "other models were trained on the same records by a search or cross-validation; this counts one"
            privacy = replace(privacy, caveats=(note, *privacy.caveats))
        #: What was spent: exact, by the paper's formula, and by site.
        self.privacy_ = privacy
        #: What each round has spent, a line each, as an Arrow stream; ``trace_.to_pandas()``, ``trace_.to_polars()``.
        self.trace_ = simulation.trace
        self.model_ = simulation.model
        self.record_ = simulation.record
        plan = simulation.record["setting"]["plan"]
        #: What was used, by name: what was asked for, or what the rule picked.
        self.algorithm_, self.weights_ = plan["algorithm"], plan["weights"]
        self.n_iter_ = int(plan["rounds"])
        self._set_coefficients()
        return simulation

    def _fit_matrix(self, X: Any, y: Any, sites: Any) -> Simulation:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=not self._is_classifier, ensure_min_samples=2
        )
        labels, label = self._matrix_labels(y)
        data_bounds = False
        if self.schema is None:
            names = usable_names(getattr(self, "feature_names_in_", None), X.shape[1])
            lower, upper, from_data = column_bounds(self.bounds, X, names)
            data_bounds = from_data or self._label_from_data
            schema = Schema.from_dict(
                {
                    "norm_bound": self.norm_bound,
                    "intercept": bool(self.fit_intercept),
                    "label": label(names),
                    "columns": [
                        {"name": name, "kind": "numeric", "lower": lo, "upper": hi}
                        for name, lo, hi in zip(names, lower, upper, strict=True)
                    ],
                }
            )
        else:
            schema = self.schema
        if data_bounds:
            warn_data_bounds(stacklevel=4)
        coded_sites = None if sites is None else site_codes(sites, X.shape[0])
        plan = self._plan(coded_sites is not None)
        manner = self._manner()
        try:
            if hasattr(X, "indptr"):
                inner = _padmm.fit_csr(
                    plan.json(), manner, schema._inner, csr_parts(X), X.shape[1], labels, coded_sites
                )
            else:
                inner = _padmm.fit_dense(plan.json(), manner, schema._inner, X, labels, coded_sites)
        finally:
            close_bar(manner)
        return Simulation(inner, data_bounds=data_bounds)

    def _fit_table(self, X: Any, y: Any, sites: Any) -> Simulation:
        if y is None and self.schema is not None and self.schema.label["column"] in _frames.names_of(X):
            y = _frames.column_of(X, self.schema.label["column"])
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        table = X if _frames.is_frame(X) else by_name(X, self.schema)
        schema, data_bounds = self.schema, False
        label = schema.label["column"] if schema is not None else unused_name("y", _frames.names_of(table))
        table = _frames.without(table, [label])
        features = list(table)
        rows = len(next(iter(table.values())))
        y = _check_y(y, multi_output=False, y_numeric=not self._is_classifier)
        if len(y) != rows:
            raise ValueError(f"X has {rows} rows and y has {len(y)}")
        if schema is None:
            limits = dict(self.bounds) if isinstance(self.bounds, Mapping) else None
            schema = Schema.from_data(
                {**table, label: y},
                label=label,
                bounds=limits,
                norm_bound=self.norm_bound,
                intercept=bool(self.fit_intercept),
            )
            data_bounds = True
        table[label] = self._table_labels(y, schema)
        if schema.site is not None and schema.site not in table:
            if sites is None:
                raise ValueError(f"the schema has a site column `{schema.site}`: X needs it, or give `sites`")
            table[schema.site] = sites
            sites = None
        for name in schema.to_dict()["columns"]:
            if name["kind"] == "ignored" and name["name"] not in table:
                table[name["name"]] = np.full(rows, np.nan)
        encoded = schema.encode(table)
        by_site = schema.site is not None
        if sites is not None:
            names, codes = site_codes(sites, rows)
            encoded, by_site = encoded.with_sites(codes, names), True
        in_schema = schema.site if schema.site in features else None
        features = [name for name in features if name != in_schema]
        self.n_features_in_ = len(features)
        self.feature_names_in_ = np.asarray(features, dtype=object)
        plan = self._plan(by_site)
        manner = self._manner()
        try:
            inner = _padmm.simulate(plan.json(), manner, encoded=encoded, name="X")
        finally:
            close_bar(manner)
        return Simulation(inner, data_bounds=data_bounds)

    def _set_coefficients(self) -> None:
        """Coefficients in the units of X where columns are numbers, else of the encoded columns.

        Within the bounds and the norm bound, ``X @ coef_ + intercept_`` is the decision function; a longer row is scaled down
        as a whole, which leaves the sign. With ``slope_cap`` no row is scaled down.
        """
        schema = self.model_.schema
        values = np.array(list(self.model_.coefficients.values()))
        names = schema.feature_names
        intercept = values[-1] if names[-1] == "(intercept)" else 0.0
        weights = values[: len(values) - 1] if names[-1] == "(intercept)" else values
        lower, span = np.zeros(len(weights)), np.ones(len(weights))
        if schema._inner.is_matrix:
            columns = schema.to_dict()["columns"]
            lower = np.array([c["lower"] for c in columns])
            span = np.array([c["upper"] for c in columns]) - lower
            weights = weights / span
            intercept = intercept - float(weights @ lower)
        self._set_linear(weights, float(intercept), schema)
        self._set_privacy_noise(lower, span, self._label_span(schema))

    def _label_span(self, schema: Schema) -> float:
        return 1.0

    def _set_privacy_noise(self, lower: np.ndarray, span: np.ndarray, unit: float) -> None:
        """What privacy noise has put on ``coef_`` and, last, ``intercept_``, in their units."""
        #: Standard deviation of each of ``coef_`` and, last, of ``intercept_``; None if the algorithm cannot tell. The intercept's is
        #: NaN where it hangs on covariances that a model of more than 200 coefficients does not carry.
        self.privacy_noise_std_: np.ndarray | None = None
        #: Their covariance; None beyond 200 coefficients too.
        self.privacy_noise_covariance_: np.ndarray | None = None
        std, covariance = self.model_.privacy_noise_std, self.model_.privacy_noise_covariance
        if std is None:
            return
        # Coefficients in the units of X from those of the encoded columns, among which the intercept is the last, if there is one.
        m = len(span)
        units = np.zeros((m + 1, len(std)))
        units[range(m), range(m)] = unit / span
        units[m, :m] = -unit * lower / span
        units[m, m:] = unit
        if covariance is not None:
            self.privacy_noise_covariance_ = units @ covariance @ units.T
            self.privacy_noise_std_ = np.sqrt(np.diag(self.privacy_noise_covariance_))
        else:
            of_intercept = np.nan if lower.any() else unit * float(std[m:].sum())
            self.privacy_noise_std_ = np.append(std[:m] * unit / span, of_intercept)

    # -- predicting

    def _margins(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "model_")
        # The schema that was fitted with decides how X is read, whatever the parameter says now.
        if not self.model_.schema._inner.is_matrix or (isinstance(X, Mapping) and _frames.is_frame(X)):
            table = X if _frames.is_frame(X) else by_name(X, self.model_.schema)
            margins = self.model_.decision_function(table)
            if np.isnan(margins).any():
                raise ValueError(
                    f"{np.isnan(margins).sum()} rows have missing values, and the schema drops such records: leave them out, or"
                    ' fill them from public constants (missing = "fill")'
                )
            return margins
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return self.model_.decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class PrivateADMMClassifier(ClassifierMixin, _PrivateADMM):
    """A linear classifier that sites train together without showing their records to each other.

    Learned: ``coef_``, ``intercept_``, ``classes_``, ``n_features_in_``, ``feature_names_in_``, ``algorithm_`` and ``weights_`` (what
    was used), ``privacy_`` (what was spent, exact and by the paper's formula, by site), ``privacy_noise_std_`` and
    ``privacy_noise_covariance_`` (what privacy noise has put on coefficients and intercept, where the algorithm can tell), ``trace_``
    (every round), ``model_`` (what ``padmm predict`` reads) and ``record_``.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (2000, 2))
    >>> y = np.where(X[:, 0] > 0, "ill", "well")
    >>> model = PrivateADMMClassifier(epsilon=3, bounds=(-1, 1), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.privacy_.valid, model.privacy_.epsilon_exact <= 3
    (True, True, True)
    """

    _is_classifier = True
    _label_from_data = False

    def fit(self, X: Any, y: Any, sites: Any = None) -> PrivateADMMClassifier:
        """Trains on rows of ``X`` with labels ``y``; ``sites`` names each row's site, or a column of ``X`` that does."""
        self._fit(X, y, sites)
        return self

    def _matrix_labels(self, y: np.ndarray) -> tuple[np.ndarray, Any]:
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"the classifier needs two classes, but y contains one class: {self.classes_[0]!r}")
        texts = [_frames.text_of(value) for value in self.classes_]
        if self.schema is not None:
            known = self.schema.label
            if texts[0] in [_frames.text_of(v) for v in known.get("positive", [])]:
                self.classes_, codes = self.classes_[::-1], 1 - codes

        def label(names: Sequence[str]) -> dict[str, Any]:
            column = unused_name("y", names)
            return {"column": column, "kind": "binary", "negative": [texts[0]], "positive": [texts[1]]}

        return codes * 2.0 - 1.0, label

    def _table_labels(self, y: np.ndarray, schema: Schema) -> Any:
        """Labels in the schema's words. A label of 0 and 1, or of truth values, means the negative and the positive class."""
        label = schema.label
        if label["kind"] != "binary":
            raise ValueError(f"loss={self.loss!r} needs binary labels, but the schema's label is numeric")
        words = {side: [_frames.text_of(v) for v in label[side]] for side in ("negative", "positive")}
        values, codes = np.unique(y, return_inverse=True)
        texts = [_frames.text_of(value) for value in values]
        listed = words["negative"] + words["positive"]
        if not all(text in listed for text in texts) and np.isin(values, [0, 1]).all():
            self.classes_ = values if len(values) == 2 else np.array([0, 1])
            texts = [words["positive" if value else "negative"][0] for value in values]
            return codes.astype(np.int32), texts
        found = []
        for side in ("negative", "positive"):
            own = [value for value, text in zip(values, texts, strict=True) if text in words[side]]
            found.append(own[0] if own else words[side][0])
        self.classes_ = np.array(found) if values.dtype.kind != "O" else np.array(found, dtype=object)
        return codes.astype(np.int32), texts

    def _set_linear(self, weights: np.ndarray, intercept: float, schema: Schema) -> None:
        self.coef_ = weights.reshape(1, -1)
        self.intercept_ = np.array([intercept])

    def decision_function(self, X: Any) -> np.ndarray:
        """Positive for ``classes_[1]``."""
        return self._margins(X)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        # A margin of exactly zero counts as negative, as in the command.
        margins = self._margins(X)
        return self.classes_[(margins > 0).astype(int)]

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of both classes; the logistic loss only."""
        margins = self._margins(X)
        return self.model_._probabilities(margins)

    @available_if(lambda self: self.loss == "logistic")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Their logarithms."""
        margins = self._margins(X)
        return np.column_stack([-np.logaddexp(0.0, margins), -np.logaddexp(0.0, -margins)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Noise for a few hundred records costs accuracy; that is what privacy means there.
        tags.classifier_tags.poor_score = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateADMMRegressor(RegressorMixin, _PrivateADMM):
    """Regression that sites train together without showing their records to each other: of means, of quantiles or of counts.

    ``target_bounds`` are public bounds of ``y``; values outside are clipped. Without them they are taken from the data, with a
    ``DataBoundsWarning``. Counts (``loss='poisson'``) go from 0 up to the upper bound; there ``coef_`` and ``intercept_`` give the
    logarithm of the expected count, and ``predict`` the expected count, at most the upper bound. Learned attributes are those of
    :class:`PrivateADMMClassifier`, without ``classes_``.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (3000, 2))
    >>> y = 2 * X[:, 0] + 1
    >>> model = PrivateADMMRegressor(bounds=(0, 1), target_bounds=(1, 3), norm_bound=2, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.5), model.privacy_.valid
    (True, True)
    """

    _is_classifier = False

    target_bounds: tuple[float, float] | None = None
    loss: str = "huber"

    def fit(self, X: Any, y: Any, sites: Any = None) -> PrivateADMMRegressor:
        """Trains on rows of ``X`` with numbers ``y``; ``sites`` names each row's site, or a column of ``X`` that does."""
        self._fit(X, y, sites)
        return self

    @property
    def _label_from_data(self) -> bool:
        return self.target_bounds is None and self.schema is None

    def _matrix_labels(self, y: np.ndarray) -> tuple[np.ndarray, Any]:
        if self.schema is not None:
            known = self.schema.label
            lower, upper = known.get("lower", 0.0), known.get("upper", 1.0)
        else:
            lower, upper = bounds_in(y) if self.target_bounds is None else map(float, self.target_bounds)
            if self.target_bounds is None and self.loss == "poisson":
                # Counts start at zero, whether or not one of them is.
                lower, upper = 0.0, max(upper, 1.0)

        def label(names: Sequence[str]) -> dict[str, Any]:
            return {"column": unused_name("y", names), "kind": "numeric", "lower": lower, "upper": upper}

        return np.clip((np.asarray(y, dtype=np.float64) - lower) / (upper - lower), 0.0, 1.0), label

    def _table_labels(self, y: np.ndarray, schema: Schema) -> np.ndarray:
        if schema.label["kind"] != "numeric":
            raise ValueError(f"loss={self.loss!r} needs numeric labels, but the schema's label is binary")
        return np.asarray(y, dtype=np.float64)

    def _label_span(self, schema: Schema) -> float:
        # Margins of counts are logarithms, whatever the bounds are.
        return 1.0 if self.model_.is_count else float(schema.label["upper"] - schema.label["lower"])

    def _set_linear(self, weights: np.ndarray, intercept: float, schema: Schema) -> None:
        lower = 0.0 if self.model_.is_count else schema.label["lower"]
        self.coef_ = weights * self._label_span(schema)
        self.intercept_ = lower + intercept * self._label_span(schema)

    def predict(self, X: Any) -> np.ndarray:
        """Numbers in the unit of ``y``: of counts the expected one."""
        margins = self._margins(X)
        return self.model_._numbers(margins)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Noise for a few hundred records costs accuracy; that is what privacy means there.
        tags.regressor_tags.poor_score = True
        return tags


PrivateADMMClassifier.__doc__ = (PrivateADMMClassifier.__doc__ or "") + _PARAMETERS.format(
    losses="``logistic``, ``hinge`` or ``huberized-hinge``."
)
PrivateADMMRegressor.__doc__ = (PrivateADMMRegressor.__doc__ or "") + _PARAMETERS.format(
    losses="``huber``, ``quantile`` or ``poisson``; without privacy (``algorithm='admm'``) also ``squared``."
)


def from_model(model: Model) -> Any:
    """An estimator that predicts as ``model`` does."""
    estimator: Any
    loss = model.loss.split(" ")[0]
    if model.is_classifier:
        estimator = PrivateADMMClassifier(schema=model.schema, loss=loss)
        estimator.classes_ = np.array(model.classes, dtype=object)
    else:
        estimator = PrivateADMMRegressor(schema=model.schema, loss=loss)
    kept = [c["name"] for c in model.schema.to_dict()["columns"] if c["kind"] != "ignored"]
    estimator.n_features_in_ = len(kept)
    estimator.feature_names_in_ = np.asarray(kept, dtype=object)
    estimator.model_ = model
    estimator.algorithm_ = model.algorithm
    estimator._set_coefficients()
    return estimator
