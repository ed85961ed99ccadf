"""What a run costs, before it costs anything: from epsilon to noise, from noise to epsilon, round by round.

All numbers are rounded outward: an epsilon is never below the true one. They are those of ``padmm account``.

>>> from padmm import account
>>> plan = account.calibrate(epsilon=1, delta=1e-4, rounds=50, decay=0.995)
>>> plan.epsilon_exact <= 1, round(plan.noise_multiplier_first, 2)
(True, 23.98)
>>> account.compose([plan.noise_multiplier_first] * 50, delta=1e-4).epsilon_exact < 1
True
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _padmm

__all__ = [
    "Account",
    "Composition",
    "PureComposition",
    "calibrate",
    "compose",
    "compose_pure",
    "convert",
    "curve",
    "epsilon_text",
    "spend",
]


@dataclass(frozen=True)
class Account:
    """Noise and what it is worth. Multipliers are standard deviations over sensitivity."""

    epsilon_exact: float
    epsilon_paper: float
    delta: float
    delta_slack: float
    rho_total: float
    mu: float
    noise_multiplier_first: float
    noise_multiplier_last: float
    rounds: int
    decay: float
    grid_bits: int | None
    group_epsilon_exact: float
    group_epsilon_paper: float
    #: ``round``, ``rho``, ``rho_spent``, ``epsilon_exact`` and ``epsilon_paper`` after every round.
    curve: dict[str, np.ndarray] = field(repr=False)


@dataclass(frozen=True)
class Composition:
    """What some Gaussian releases cost together."""

    epsilon_exact: float
    epsilon_paper: float
    rho_total: float
    mu: float
    delta: float


@dataclass(frozen=True)
class PureComposition:
    """What some purely private releases cost together, by every composition theorem; ``basic`` holds at delta = 0."""

    best: float
    basic: float
    zcdp: float
    rdp: float
    exact: float
    delta: float


def _ask(question: str, value: float, **flags: Any) -> Account:
    flags = {"accountant": "exact", "features": None, "group_records": 1, "group_sites": 1, **flags}
    found = json.loads(_padmm.account(question, float(value), **flags))
    found["curve"] = {key: np.asarray(values) for key, values in found["curve"].items()}
    return Account(**found)


def calibrate(
    epsilon: float = 5.0,
    delta: float = 1e-4,
    *,
    rounds: int = 50,
    decay: float = 0.995,
    accountant: str = "exact",
    features: int | None = None,
    group_records: int = 1,
    group_sites: int = 1,
) -> Account:
    """The least noise for a budget.

    With ``features``, for releases of that length on a grid, as sites make them; without, for ideal Gaussian noise.
    ``group_records`` and ``group_sites`` say how many records one patient has at a site, and at how many sites.

    >>> calibrate(epsilon=0)
    Traceback (most recent call last):
    padmm._errors.BudgetError: --epsilon is 0, but it must be above 0 and at most 1e6
    """
    return _ask(
        "epsilon",
        epsilon,
        delta=delta,
        rounds=rounds,
        decay=decay,
        accountant=accountant,
        features=features,
        group_records=group_records,
        group_sites=group_sites,
    )


def spend(
    *,
    noise_multiplier: float | None = None,
    rho: float | None = None,
    rho_first: float | None = None,
    delta: float = 1e-4,
    rounds: int = 50,
    decay: float = 0.995,
    features: int | None = None,
    group_records: int = 1,
    group_sites: int = 1,
) -> Account:
    """What noise is worth, given as the first round's multiplier, as rho of all rounds, or as rho of the first.

    >>> round(spend(rho=0.5, rounds=1, decay=1).epsilon_exact, 3)
    3.804
    """
    asked = {"noise-multiplier": noise_multiplier, "rho": rho, "rho-first": rho_first}
    given = [(name, value) for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise TypeError("give exactly one of noise_multiplier, rho and rho_first")
    return _ask(
        *given[0],
        delta=delta,
        rounds=rounds,
        decay=decay,
        features=features,
        group_records=group_records,
        group_sites=group_sites,
    )


def compose(noise_multipliers: Sequence[float] | np.ndarray, delta: float = 1e-4) -> Composition:
    """What Gaussian releases with these noise multipliers cost together, in whatever order and however they adapt.

    >>> round(compose([10.0] * 4, delta=1e-5).mu, 3)
    0.2
    """
    multipliers = np.asarray(noise_multipliers, dtype=np.float64).ravel().tolist()
    return Composition(**json.loads(_padmm.compose_gaussian(multipliers, float(delta))))


def compose_pure(epsilons: Sequence[float] | np.ndarray, delta: float = 1e-4) -> PureComposition:
    """What purely private releases cost together.

    >>> found = compose_pure([0.1] * 50, delta=1e-5)
    >>> found.exact <= found.rdp <= found.basic
    True
    """
    values = np.asarray(epsilons, dtype=np.float64).ravel().tolist()
    return PureComposition(**json.loads(_padmm.compose_pure(values, float(delta))))


def curve(rho_first: float, *, rounds: int = 50, decay: float = 0.995, delta: float = 1e-4) -> dict[str, np.ndarray]:
    """The dynamic zCDP curve: what each round costs and what was spent after it, by both conversions.

    >>> found = curve(0.01, rounds=3, decay=0.5)
    >>> [round(float(rho), 4) for rho in found["rho"]]
    [0.01, 0.02, 0.04]
    """
    return spend(rho_first=rho_first, rounds=rounds, decay=decay, delta=delta).curve


def convert(
    *,
    to: str,
    rho: float | None = None,
    mu: float | None = None,
    epsilon: float | None = None,
    paper_epsilon: float | None = None,
    gaussian_rho: float | None = None,
    delta: float | None = None,
) -> float:
    """From one privacy measure to another; what is lost goes to the safe side.

    ``to`` is ``"epsilon"``, ``"paper-epsilon"``, ``"rho"``, ``"mu"`` or ``"delta"``. ``rho`` is a zCDP bound of any mechanism;
    ``gaussian_rho`` is one of composed Gaussian noise, which converts exactly. From ``mu`` to ``"delta"``, ``epsilon`` says at which
    epsilon.

    >>> round(convert(mu=1.0, delta=1e-5, to="epsilon"), 3)
    4.377
    >>> round(convert(paper_epsilon=1.0, delta=1e-4, to="rho"), 6)
    0.025763
    """
    asked = {"rho": rho, "mu": mu, "paper-epsilon": paper_epsilon, "gaussian-rho": gaussian_rho}
    given = [(name, value) for name, value in asked.items() if value is not None]
    if not given and epsilon is not None:
        given = [("epsilon", epsilon)]
    if len(given) != 1:
        raise TypeError("give exactly one of rho, mu, epsilon, paper_epsilon and gaussian_rho")
    return _padmm.convert(*given[0], to, delta, epsilon)


def epsilon_text(epsilon: float) -> str:
    """An epsilon as people should be told it: four decimals, and never below it, where rounding to the nearest is half the time.

    >>> epsilon_text(0.693701)
    '0.6938'
    """
    return _padmm.epsilon_text(epsilon)
