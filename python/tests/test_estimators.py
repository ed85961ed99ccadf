"""The estimators as scikit-learn's, and what is private about them."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import padmm
from padmm import PrivateADMMClassifier, PrivateADMMRegressor

# Checks of scikit-learn that contradict privacy, each with its reason. There are none: that accuracy on a few records is low is said by the
# tags `poor_score`, and that there are two classes by `multi_class`.
EXPECTED_FAILURES: dict[str, str] = {}


def expected(estimator):
    return EXPECTED_FAILURES


@pytest.mark.filterwarnings("ignore::padmm.PrivacyWarning")
@parametrize_with_checks([PrivateADMMClassifier(), PrivateADMMRegressor()], expected_failed_checks=expected)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def classifier(**parameters):
    return PrivateADMMClassifier(**{"bounds": (-1, 1), "random_state": 0, "rounds": 10, **parameters})


def test_learned_attributes(two_classes):
    X, y = two_classes
    model = classifier(rounds=50).fit(X, y)
    assert model.coef_.shape == (1, 3) and model.intercept_.shape == (1,)
    assert model.classes_.tolist() == [0, 1] and model.n_features_in_ == 3
    assert model.score(X, y) > 0.9
    spent = model.privacy_
    assert spent.valid and not spent.publishable and not spent.noise_is_secure
    assert 4.99 < spent.epsilon_exact <= 5.0 < spent.epsilon_paper
    assert [site.records for site in spent.sites] == [240] * 5
    assert all(4.99 < site.epsilon_exact <= 5.0 for site in spent.sites)
    assert len(model.trace_) == 50
    assert model.record_["setting"]["seed"] == 0


def test_coefficients_are_in_the_units_of_x(two_classes):
    X, y = two_classes
    # With a bound that no row reaches, the decision function is linear.
    model = classifier(norm_bound=10.0, bounds=([-1, -2, -3], [1, 2, 3])).fit(X, y)
    assert np.allclose(X @ model.coef_[0] + model.intercept_[0], model.decision_function(X), atol=1e-12)
    target = 3.0 * X[:, 0] + 7.0
    regressor = PrivateADMMRegressor(bounds=(-1, 1), target_bounds=(4, 10), norm_bound=10.0, random_state=0, rounds=10)
    regressor.fit(X, target)
    assert np.allclose(X @ regressor.coef_ + regressor.intercept_, regressor.predict(X), atol=1e-10)


def test_without_noise_the_fit_is_the_pooled_optimum(two_classes):
    X, y = two_classes
    model = classifier(algorithm="admm", rounds=400, norm_bound=10.0, regularization=1e-2, fit_intercept=False).fit(
        X, y
    )
    assert not model.privacy_.valid and "not private" in model.privacy_.caveats[0]
    # An independent solver of the same problem: mean loss over five equal sites plus R.
    unit = (X + 1) / 2
    strength = 1.0 / (2 * 1e-2 / 5 * len(X))
    oracle = LogisticRegression(C=strength, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(unit, y)
    assert np.allclose(model.coef_[0] * 2, oracle.coef_[0], rtol=1e-3, atol=1e-4)


def test_bounds_from_the_data_are_a_typed_warning_and_no_guarantee(two_classes):
    X, y = two_classes
    with pytest.warns(padmm.DataBoundsWarning, match="does not hold"):
        model = classifier(bounds=None).fit(X, y)
    assert model.privacy_.valid is False and "taken from the data" in model.privacy_.caveats[0]
    with pytest.warns(padmm.PrivacyWarning):
        regressor = PrivateADMMRegressor(bounds=(-1, 1), random_state=0, rounds=5).fit(X, X[:, 0])
    assert regressor.privacy_.valid is False, "the bounds of y were taken from the data"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert classifier().fit(X, y).privacy_.valid is True


def test_noise_without_a_seed_is_that_of_real_sites(two_classes):
    X, y = two_classes
    first, second = (classifier(random_state=None, rounds=3).fit(X, y) for _ in range(2))
    assert first.privacy_.publishable and first.privacy_.noise_is_secure
    assert not np.array_equal(first.coef_, second.coef_)
    assert np.array_equal(classifier().fit(X, y).coef_, classifier().fit(X, y).coef_)
    assert not np.array_equal(classifier().fit(X, y).coef_, classifier(random_state=1).fit(X, y).coef_)


def test_sites_are_an_array_or_a_column(two_classes):
    X, y = two_classes
    sites = np.repeat(["north", "south", "east"], [600, 400, 200])
    model = classifier(graph="ring").fit(X, y, sites=sites)
    assert [(s.site, s.records) for s in model.privacy_.sites] == [("north", 600), ("south", 400), ("east", 200)]
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(hospital=sites)
    for table in (frame, pl.from_pandas(frame)):
        by_column = classifier(graph="ring").fit(table, y, sites="hospital")
        assert np.array_equal(by_column.coef_, model.coef_)
        assert by_column.feature_names_in_.tolist() == ["a", "b", "c"]
    named = padmm.Graph.from_edges([("north", "south"), ("south", "east")])
    assert [s["degree"] for s in classifier(graph=named).fit(X, y, sites=sites).record_["setting"]["sites"]] == [
        1,
        2,
        1,
    ]
    with pytest.raises(ValueError, match="entries"):
        classifier().fit(X, y, sites=sites[:10])
    with pytest.raises(ValueError, match="names a column"):
        classifier().fit(X, y, sites="hospital")


def test_every_kind_of_input_gives_the_same_bits(two_classes):
    X, y = two_classes
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    expected_coef = classifier().fit(X, y).coef_
    names = ["a", "b", "c"]
    nullable = pd.DataFrame(X, columns=names).astype("Float64")
    inputs = [
        np.asfortranarray(X),
        X[::-1][::-1],
        scipy.sparse.csr_matrix(X),
        scipy.sparse.csr_array(X),
        scipy.sparse.coo_matrix(X),
        pd.DataFrame(X, columns=names),
        nullable,
        pl.DataFrame(X, schema=names),
        X.tolist(),
    ]
    for given in inputs:
        model = classifier().fit(given, y)
        assert np.array_equal(model.coef_, expected_coef), type(given)
        assert np.array_equal(model.decision_function(given), classifier().fit(X, y).decision_function(X))


def mixed(rows=600):
    rng = np.random.default_rng(3)
    age = rng.uniform(20, 90, rows).round()
    ward = rng.choice(["a", "b", "c"], rows)
    smoker = rng.random(rows) < 0.4
    y = (age > 55) ^ (smoker & (ward == "a"))
    return pd.DataFrame({"age": age, "ward": pd.Categorical(ward), "smoker": smoker}), y


def mixed_schema(**settings):
    frame, _ = mixed(10)
    draft = padmm.Schema.draft(frame.assign(y=True), label="y", bounds={"age": (0, 120)}, **settings)
    return draft.check()


def test_frames_with_categories_go_through_the_schema():
    frame, y = mixed()
    schema = mixed_schema()
    model = PrivateADMMClassifier(schema=schema, random_state=0, epsilon=20).fit(frame, y)
    assert schema.feature_names == ["age", "ward=a", "ward=b", "ward=c", "smoker=False", "smoker=True", "(intercept)"]
    assert model.coef_.shape == (1, 6) and model.privacy_.valid
    assert model.classes_.tolist() == [False, True] and model.score(frame, y) > 0.7
    polars = pl.from_pandas(frame)
    again = PrivateADMMClassifier(schema=schema, random_state=0, epsilon=20).fit(polars, y)
    assert np.array_equal(again.coef_, model.coef_)
    assert np.array_equal(again.predict(polars), model.predict(frame))
    with pytest.warns(padmm.DataBoundsWarning):
        drafted = PrivateADMMClassifier(random_state=0, epsilon=20).fit(frame, y)
    assert drafted.privacy_.valid is False


def test_missing_cells_follow_the_schema():
    frame, y = mixed()
    frame = frame.assign(age=frame["age"].astype("Int64"))
    frame.loc[3, "age"] = pd.NA
    frame.loc[5, "ward"] = None
    model = PrivateADMMClassifier(schema=mixed_schema(), random_state=0, rounds=5).fit(frame, y)
    assert model.record_["setting"]["records"]["dropped"] == 2
    with pytest.raises(ValueError, match="2 rows have missing values"):
        model.predict(frame)
    unknown = frame.assign(ward="z")
    with pytest.raises(padmm.SchemaError, match="row 2, column `ward`: the category is not one of"):
        PrivateADMMClassifier(schema=mixed_schema()).fit(unknown, y)


def test_searching_warns_that_it_spends_privacy(two_classes):
    X, y = two_classes
    search = GridSearchCV(classifier(), {"epsilon": [1.0, 5.0]}, cv=2)
    with pytest.warns(padmm.TuningWarning, match="together they spend more"):
        search.fit(X, y)
    assert search.best_params_["epsilon"] in (1.0, 5.0)
    assert "search" in search.best_estimator_.privacy_.caveats[0]
    with pytest.warns(padmm.TuningWarning):
        scores = cross_val_score(classifier(rounds=50), X, y, cv=3)
    assert scores.mean() > 0.85


def test_pipelines_clones_and_pickles(two_classes):
    X, y = two_classes
    pipeline = make_pipeline(FunctionTransformer(lambda v: v / 2), classifier(bounds=(-0.5, 0.5), rounds=50))
    assert pipeline.fit(X, y).score(X, y) > 0.9
    model = classifier().fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "coef_") and copy.get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.privacy_ == model.privacy_ and again.trace_.to_polars().equals(model.trace_.to_polars())


def test_the_rule_picks_what_is_left_open(two_classes):
    X, y = two_classes
    model = classifier(rounds=None).fit(X, y)
    assert (model.algorithm_, model.weights_) == ("consensus-newton", "records")
    assert model.get_params()["algorithm"] == "auto" and "algorithm" not in repr(model)
    assert model.n_iter_ == model.record_["setting"]["plan"]["rounds"] != 50
    sites = np.repeat(["large", "larger", "small", "tiny"], [580, 600, 12, 8])
    assert classifier().fit(X, y, sites=sites).weights_ == "damped"
    assert classifier(weights="sites").fit(X, y, sites=sites).weights_ == "sites"
    assert classifier(rounds=7).fit(X, y).n_iter_ == 7
    assert classifier(algorithm="p-admm", rounds=None).fit(X, y).n_iter_ == 50
    # Where consensus Newton is not defined, or somebody gives what only P-ADMM has a use for.
    for settings in ({"loss": "hinge"}, {"fit_intercept": False}, {"penalty": 0.1}, {"decay": 0.9}, {"slope_cap": 0.5}):
        assert classifier(**settings).fit(X, y).algorithm_ == "p-admm", settings
    with pytest.raises(ValueError, match="penalty_growth is not a setting of those that `auto` picks from"):
        classifier(penalty_growth=1.1).fit(X, y)
    with pytest.raises(ValueError, match="rounds is 1, but it must be at least 2: the first learns the metric"):
        classifier(rounds=1).fit(X, y)
    plan = padmm.Plan(algorithm="auto", weights="auto")
    assert (plan["algorithm"], plan["weights"], plan["rounds"]) == ("auto", "auto", 0)


def test_privacy_noise_is_in_the_units_of_the_coefficients(two_classes):
    X, y = two_classes
    model = classifier(bounds=([-1, -2, -3], [1, 2, 3])).fit(X, y)
    std, covariance = model.privacy_noise_std_, model.privacy_noise_covariance_
    assert std.shape == (4,) and covariance.shape == (4, 4)
    assert np.allclose(np.sqrt(np.diag(covariance)), std)
    # A draw of the encoded coefficients, put into the units of X as the coefficients are, has that spread.
    encoded = model.model_.privacy_noise_covariance
    draws = np.random.default_rng(1).multivariate_normal(np.zeros(4), encoded, 40_000)
    lower, span = np.array([-1, -2, -3]), np.array([2, 4, 6])
    weights = draws[:, :3] / span
    intercepts = draws[:, 3] - weights @ lower
    assert np.allclose(np.column_stack([weights, intercepts]).std(axis=0), std, rtol=0.02)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.privacy_noise_std_, std)
    assert np.array_equal(padmm.Model.from_json(model.model_.to_json()).to_sklearn().privacy_noise_std_, std)
    assert classifier(algorithm="p-admm", rounds=4).fit(X, y).privacy_noise_std_ is None


def test_all_algorithms_fit(two_classes):
    X, y = two_classes
    for about in padmm.algorithms():
        model = classifier(algorithm=about["name"], rounds=4).fit(X, y)
        assert model.privacy_.valid == about["is_private"], about["name"]
    for loss in ("hinge", "huberized-hinge"):
        model = classifier(loss=loss).fit(X, y)
        assert not hasattr(model, "predict_proba") and model.score(X, y) > 0.6


def skewed(n, seed=3):
    """Rows between 0 and 1 with a number whose spread grows with its mean, and a count."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 3))
    number = 10 + 4 * X[:, 0] + (0.5 + X[:, 1]) * rng.standard_normal(n)
    return X, number, rng.poisson(np.exp(0.2 + 1.5 * X[:, 0] - X[:, 2])).astype(float)


def regressor(**settings):
    return PrivateADMMRegressor(**{"bounds": (0, 1), "norm_bound": 2.0, "random_state": 0, **settings})


@pytest.mark.parametrize("algorithm", ["consensus-newton", "private-gradient", "p-admm"])
def test_a_quantile_has_its_part_of_the_labels_below(algorithm):
    X, y, _ = skewed(6000)
    # P-ADMM needs more for so few records.
    epsilon = 100 if algorithm == "p-admm" else 5
    for level in (0.5, 0.9):
        model = regressor(
            loss="quantile", quantile_level=level, algorithm=algorithm, target_bounds=(5, 20), epsilon=epsilon
        ).fit(X, y)
        assert abs(np.mean(y < model.predict(X)) - level) < 0.06
        assert model.privacy_.valid and model.model_.loss.startswith("quantile (level")
    assert np.allclose(X @ model.coef_ + model.intercept_, model.predict(X))


def test_the_spread_of_a_quantile_is_seen_in_its_coefficients():
    X, y, _ = skewed(6000)
    of = lambda level: regressor(loss="quantile", quantile_level=level, target_bounds=(5, 20)).fit(X, y)  # noqa: E731
    # The second column moves no mean, and the quantiles apart.
    assert of(0.9).coef_[1] > of(0.5).coef_[1] + 0.5


@pytest.mark.parametrize("algorithm", ["consensus-newton", "private-gradient", "p-admm"])
def test_a_count_is_predicted_as_the_expected_one(algorithm):
    X, _, y = skewed(6000)
    model = regressor(loss="poisson", algorithm=algorithm, target_bounds=(0, 15)).fit(X, y)
    assert model.privacy_.valid
    linear = X @ model.coef_ + model.intercept_
    assert np.allclose(model.predict(X), np.minimum(np.exp(linear), 15))
    deviance = lambda mean: 2 * np.mean(np.where(y > 0, y * np.log(np.maximum(y, 1e-9) / mean), 0) - y + mean)  # noqa: E731
    least = deviance(np.exp(0.2 + 1.5 * X[:, 0] - X[:, 2]))
    constant = deviance(np.full(len(y), y.mean()))
    kept = (constant - deviance(model.predict(X))) / (constant - least)
    # What it keeps of the gain over a constant; gradients without a metric step by the cap, which is far above these counts.
    assert kept > {"consensus-newton": 0.95, "p-admm": 0.7, "private-gradient": 0.2}[algorithm], kept
    again = padmm.Model.from_json(model.model_.to_json()).to_sklearn()
    assert np.array_equal(again.predict(X), model.predict(X)) and again.loss == "poisson"
    if model.privacy_noise_std_ is not None:
        # In the unit of the coefficients, which are logarithms of counts.
        assert np.all(model.privacy_noise_std_ < 1)


def test_counts_are_refused_where_they_mean_nothing(two_classes):
    X, _, y = skewed(600)
    with pytest.raises(ValueError, match="label's bounds in the schema are 1 and 15: set the label's `lower` to 0"):
        regressor(loss="poisson", target_bounds=(1, 15)).fit(X, y)
    with pytest.raises(ValueError, match="needs numeric labels"):
        classifier(loss="poisson").fit(*two_classes)
    with pytest.raises(ValueError, match="quantile_level is 1, but it must be between 0 and 1"):
        regressor(loss="quantile", quantile_level=1.0, target_bounds=(0, 15)).fit(X, y)
    with pytest.warns(padmm.DataBoundsWarning):
        model = regressor(loss="poisson").fit(X, y + 1)
    assert model.model_.schema.label["lower"] == 0


def test_errors_are_value_errors_with_the_commands_words(two_classes):
    X, y = two_classes
    with pytest.raises(padmm.BudgetError, match="epsilon is 0, but it must be a positive number"):
        classifier(epsilon=0).fit(X, y)
    with pytest.raises(ValueError, match="graph|no family called"):
        classifier(graph="nonsense").fit(X, y)
    with pytest.raises(ValueError, match="agents=5000 cannot share 1200 training records"):
        classifier(n_sites=5000).fit(X, y)
    with pytest.raises(ValueError, match="the loss 'squared' has no bound"):
        PrivateADMMRegressor(loss="squared", bounds=(-1, 1), target_bounds=(0, 1)).fit(X, y)
    with pytest.raises(ValueError, match="needs numeric labels|needs binary labels"):
        classifier(loss="huber").fit(X, y)
    with pytest.raises(ValueError, match="`lower` below `upper`"):
        classifier(bounds=(1, 1)).fit(X, y)
    with pytest.raises(ValueError, match="no entry for column"):
        classifier(bounds={"a": (0, 1)}).fit(X, y)
    with pytest.raises(ValueError, match="Only binary classification"):
        classifier().fit(X, np.arange(len(X)) % 3)


def test_with_capped_slopes_coefficients_give_the_decision_function(two_classes):
    X, y = two_classes
    scaled = classifier(rounds=10).fit(X, y)
    capped = classifier(rounds=10, slope_cap=0.5).fit(X, y)
    linear = lambda model: X @ model.coef_[0] + model.intercept_[0]  # noqa: E731
    assert np.allclose(linear(capped), capped.decision_function(X), atol=1e-10)
    assert not np.allclose(linear(scaled), scaled.decision_function(X), atol=1e-3)
    with pytest.raises(ValueError, match="slope_cap"):
        classifier(slope_cap=-1.0).fit(X, y)


def test_a_model_that_a_constant_beats_warns(two_classes):
    X, y = two_classes
    with pytest.warns(padmm.WorthlessModelWarning, match="no better than the same answer for everybody"):
        model = classifier(algorithm="p-admm", epsilon=1e-3, rounds=4).fit(X, y)
    assert model.record_["summary"]["model_loss"]["mean"] >= model.record_["constant"]["loss"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", padmm.WorthlessModelWarning)
        good = padmm.simulate(dataset="heart", algorithm="admm", rounds=60)
    assert good.excess_objective > 0 and good.majority_accuracy < good.summary["accuracy"]["mean"]
    assert good.calibration["slope"] > 0
