"""Reference values for the conversions of padmm-privacy, in 60-digit arithmetic.

Run:  python make.py > gdp.json      (needs mpmath)

Inputs are exact doubles. Each truth t is written as the two doubles that enclose it, `below <= t <= above`, in shortest
decimal form, so that a test can say "never below the truth" without a rounding of its own.
"""

import json
import math
import sys

from mpmath import mp, mpf

mp.dps = 60


def enclose(t):
    near = float(t)
    below = near if mpf(near) <= t else math.nextafter(near, -math.inf)
    above = near if mpf(near) >= t else math.nextafter(near, math.inf)
    return {"below": repr(below), "above": repr(above)}


def upper_tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def gdp_delta(mu, eps):
    return upper_tail(eps / mu - mu / 2) - mp.exp(eps) * upper_tail(eps / mu + mu / 2)


def root(f, low, high):
    """Bisection: f(low) and f(high) have different signs."""
    sign_low = f(low) > 0
    for _ in range(40):
        middle = (low + high) / 2
        if (f(middle) > 0) == sign_low:
            low = middle
        else:
            high = middle
    return mp.findroot(f, (low, high), solver="anderson", tol=mpf(10) ** -80, maxsteps=60)


def gdp_epsilon(mu, delta):
    if gdp_delta(mu, mpf(0)) <= delta:
        return mpf(0)
    rho = mu * mu / 2
    high = rho + 2 * mp.sqrt(rho * mp.log(1 / delta))
    return root(lambda e: mp.log(gdp_delta(mu, e) / delta), mpf(0), high)


def gdp_mu(eps, delta):
    f = lambda m: mp.log(gdp_delta(m, eps) / delta)
    low = mp.sqrt(eps + mp.log(1 / delta)) - mp.sqrt(mp.log(1 / delta))
    high = low * 2
    while f(high) < 0:
        high *= 2
    return root(f, low, high)


def zcdp_epsilon(rho, delta):
    """min over a of a rho + (ln(1/delta) + a ln(1-1/a) - ln(a-1))/(a-1), by the root of its derivative in a."""
    value = lambda a: a * rho + (mp.log(1 / delta) + a * mp.log(1 - 1 / a) - mp.log(a - 1)) / (a - 1)
    # Derivative times (a-1)^2: rho (a-1)^2 - ln(1/delta) + ln(a-1) - ... ; taken numerically on a log scale.
    slope = lambda t: mp.diff(lambda s: value(1 + mp.exp(s)), t)
    centre = mp.log(mp.log(1 / delta) / rho) / 2
    low, high = centre - 10, centre + 10
    for _ in range(70):
        middle = (low + high) / 2
        if slope(middle) < 0:
            low = middle
        else:
            high = middle
    return max(mpf(0), value(1 + mp.exp((low + high) / 2)))


def zcdp_rho(eps, delta):
    low, high = mpf(0), eps + 1
    while zcdp_epsilon(high, delta) < eps:
        high *= 2
    low = high / mpf(2) ** 60
    for _ in range(75):
        middle = mp.sqrt(low * high)
        if zcdp_epsilon(middle, delta) > eps:
            high = middle
        else:
            low = middle
    return low


def log_grid(low, high, n):
    return [float(low * (high / low) ** (i / (n - 1))) for i in range(n)]


def main():
    deltas = log_grid(1e-12, 0.5, 12)
    epsilons = log_grid(1e-3, 50.0, 16)
    far = [(e, d) for e in (1e-6, 1e-4, 200.0, 700.0) for d in (1e-15, 1e-12, 1e-5, 0.5)]
    named = [(e, d) for e in (1.0, 5.0, 10.0) for d in (1e-4, 1e-5)]
    out = {"mills": [], "gdp_mu": [], "gdp_epsilon": [], "gdp_delta": [], "zcdp_epsilon": [], "zcdp_rho": [], "paper": []}
    for i in range(240):
        x = 12.0 * i / 239 if i < 200 else 12.0 * 10 ** ((i - 199) / 8.0)
        t = mp.erfc(mpf(x) / mp.sqrt(2)) / 2 / (mp.exp(-mpf(x) ** 2 / 2) / mp.sqrt(2 * mp.pi)) if x < 1e3 else None
        if t is None:
            s = mpf(x)
            t = (1 - 1 / s**2 + 3 / s**4 - 15 / s**6 + 105 / s**8 - 945 / s**10 + 10395 / s**12) / s
        out["mills"].append({"x": repr(x), **enclose(t)})
    for e, d in [(e, d) for e in epsilons for d in deltas] + far + named:
        row = {"epsilon": repr(e), "delta": repr(d)}
        out["gdp_mu"].append({**row, **enclose(gdp_mu(mpf(e), mpf(d)))})
        length = mp.log(1 / mpf(d))
        out["paper"].append({**row, **enclose((mp.sqrt(mpf(e) + length) - mp.sqrt(length)) ** 2)})
    for m in log_grid(1e-3, 30.0, 14):
        for d in deltas:
            out["gdp_epsilon"].append({"mu": repr(m), "delta": repr(d), **enclose(gdp_epsilon(mpf(m), mpf(d)))})
        for e in epsilons[::3]:
            t = gdp_delta(mpf(m), mpf(e))
            if t > mpf(10) ** -300:
                out["gdp_delta"].append({"mu": repr(m), "epsilon": repr(e), **enclose(t)})
    mp.dps = 30
    for r in log_grid(1e-8, 300.0, 12):
        for d in deltas[::2]:
            out["zcdp_epsilon"].append({"rho": repr(r), "delta": repr(d), **enclose(zcdp_epsilon(mpf(r), mpf(d)))})
    mp.dps = 25
    for e, d in [(1.0, 1e-4), (5.0, 1e-4), (10.0, 1e-4), (40.0, 1e-6), (0.1, 1e-8)]:
        out["zcdp_rho"].append({"epsilon": repr(e), "delta": repr(d), **enclose(zcdp_rho(mpf(e), mpf(d)))})
    # One row a line keeps the file readable and its differences small.
    parts = [f' "{k}": [\n  ' + ",\n  ".join(json.dumps(row) for row in rows) + "\n ]" for k, rows in out.items()]
    sys.stdout.write("{\n" + ",\n".join(parts) + "\n}\n")


main()
