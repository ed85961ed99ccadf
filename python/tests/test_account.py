"""Accounting against dp_accounting: never below its optimistic bound, and within its own error."""

import numpy as np
import pytest

import padmm

common = pytest.importorskip("dp_accounting.pld.common")
pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")


def composed(multipliers, interval, pessimistic):
    """The privacy loss distribution of some Gaussian releases."""
    values, counts = np.unique(np.asarray(multipliers), return_counts=True)
    total = None
    for sigma, count in zip(values, counts, strict=True):
        one = pld.from_gaussian_mechanism(
            sigma, value_discretization_interval=interval, pessimistic_estimate=pessimistic, use_connect_dots=False
        )
        one = one.self_compose(int(count)) if count > 1 else one
        total = one if total is None else total.compose(one)
    return total


@pytest.mark.parametrize(
    ("multipliers", "delta"),
    [
        ([1.0], 1e-5),
        ([23.99] * 50, 1e-4),
        ([4.0] * 30, 1e-6),
        ([2.0, 3.0, 5.0, 8.0], 1e-5),
        ([0.7], 1e-3),
    ],
)
def test_gaussian_composition_lies_between_its_bounds(multipliers, delta):
    ours = padmm.account.compose(multipliers, delta).epsilon_exact
    interval = 1e-4
    low = composed(multipliers, interval, False).get_epsilon_for_delta(delta)
    high = composed(multipliers, interval, True).get_epsilon_for_delta(delta)
    assert low <= high
    assert ours >= low, "an epsilon is never below the true one"
    assert ours <= high + 1e-9, "and no looser than the pessimistic estimate"
    # The stated error: every release is rounded by at most one interval.
    assert high - low <= 2 * interval * len(multipliers) + 1e-6


def test_a_decaying_schedule_lies_between_its_bounds():
    account = padmm.account.calibrate(epsilon=2.0, delta=1e-5, rounds=12, decay=0.9)
    multipliers = account.noise_multiplier_first * 0.9 ** (0.5 * np.arange(12))
    low = composed(multipliers, 1e-3, False).get_epsilon_for_delta(1e-5)
    high = composed(multipliers, 1e-3, True).get_epsilon_for_delta(1e-5)
    assert low <= account.epsilon_exact <= high + 1e-9
    assert 1.999 < account.epsilon_exact <= 2.0


@pytest.mark.parametrize(("epsilon", "steps", "delta"), [(0.1, 50, 1e-5), (0.5, 10, 1e-4), (1.0, 1, 1e-6)])
def test_pure_composition_lies_between_its_bounds(epsilon, steps, delta):
    found = padmm.account.compose_pure([epsilon] * steps, delta)
    parameters = common.DifferentialPrivacyParameters(epsilon, 0)
    interval = 1e-4
    one = pld.from_privacy_parameters(parameters, value_discretization_interval=interval)
    high = one.self_compose(steps).get_epsilon_for_delta(delta)
    assert found.exact <= high + 1e-9
    # That library rounds every privacy loss up, by at most one interval a step.
    assert found.exact >= high - interval * steps - 1e-9
    assert found.best <= min(found.basic, found.zcdp, found.rdp, found.exact)


def test_what_a_fit_spends_is_what_the_library_says():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (400, 3))
    model = padmm.PrivateADMMClassifier(epsilon=3, rounds=10, decay=1.0, bounds=(0, 1), random_state=0)
    spent = model.fit(X, X[:, 0] > 0.5).privacy_
    for site in spent.sites:
        multiplier = site.noise_std_first / site.sensitivity
        low = composed([multiplier] * 10, 1e-4, False).get_epsilon_for_delta(1e-4)
        assert low <= site.epsilon_exact <= 3.0
        assert site.epsilon_exact - low < 2e-3


def test_conversions_invert_each_other_to_the_safe_side():
    for epsilon in (0.1, 1.0, 5.0, 20.0):
        mu = padmm.account.convert(epsilon=epsilon, delta=1e-5, to="mu")
        assert 0.999 * epsilon < padmm.account.convert(mu=mu, delta=1e-5, to="epsilon") <= epsilon
        rho = padmm.account.convert(epsilon=epsilon, delta=1e-5, to="rho")
        assert 0.99 * epsilon < padmm.account.convert(rho=rho, delta=1e-5, to="epsilon") <= epsilon
        assert padmm.account.convert(mu=mu, epsilon=epsilon, to="delta") <= 1e-5 * (1 + 1e-9)
    with pytest.raises(ValueError, match="no conversion"):
        padmm.account.convert(mu=1.0, to="rho")
    with pytest.raises(TypeError):
        padmm.account.convert(mu=1.0, rho=1.0, delta=0.1, to="epsilon")


def test_budgets_that_are_none():
    for wrong in ({"epsilon": 0}, {"epsilon": float("nan")}, {"delta": 1.0}, {"epsilon": 1e7}):
        with pytest.raises(padmm.BudgetError):
            padmm.account.calibrate(**wrong)
    with pytest.raises(padmm.BudgetError, match="do not go together"):
        padmm.account.calibrate(rounds=5000, decay=0.5)
    with pytest.raises(TypeError):
        padmm.account.spend(rho=1.0, rho_first=0.1)
