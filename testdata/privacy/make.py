"""Reference values for the conversions of padmm-privacy, in 60-digit arithmetic.

Run:  python make.py > gdp.json                            (needs mpmath)
      python make.py composition > composition.json

Inputs are exact doubles. Each truth t is written as the two doubles that enclose it, `below <= t <= above`, in shortest
decimal form, so that a test can say "never below the truth" without a rounding of its own.
"""

import itertools
import json
import math
import random
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
    write(out)


def loss_distribution(epsilons):
    """All 2^K sums of +-epsilon_k with their probabilities: the losses of K randomised responses, one by one."""
    atoms = []
    for signs in itertools.product((1, -1), repeat=len(epsilons)):
        loss, probability = mpf(0), mpf(1)
        for sign, e in zip(signs, epsilons):
            loss += sign * e
            probability *= 1 / (1 + mp.exp(-sign * e))
        atoms.append((loss, probability))
    return atoms


def equal_distribution(epsilon, k):
    """The same for k equal steps, by the binomial formula."""
    keep = 1 / (1 + mp.exp(-epsilon))
    return [((k - 2 * l) * epsilon, mp.binomial(k, l) * keep ** (k - l) * (1 - keep) ** l) for l in range(k + 1)]


def optimal_epsilon(atoms, delta):
    value = lambda e: sum(p * (1 - mp.exp(e - l)) for l, p in atoms if l > e)
    if value(mpf(0)) <= delta:
        return mpf(0)
    low, high = mpf(0), max(l for l, _ in atoms)
    for _ in range(110):
        middle = (low + high) / 2
        if value(middle) > delta:
            low = middle
        else:
            high = middle
    return high


def smallest_over_orders(divergence, delta, centre):
    """min over a of D_a + ln((a-1)/a) - (ln delta + ln a)/(a-1), by ternary search in ln(a-1)."""

    def value(t):
        a = 1 + mp.exp(t)
        return divergence(a) + mp.log((a - 1) / a) - (mp.log(delta) + mp.log(a)) / (a - 1)

    low, high = centre - 12, centre + 30
    for _ in range(160):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if value(left) < value(right):
            high = right
        else:
            low = left
    return max(mpf(0), value((low + high) / 2))


def pure_divergence(e, a):
    return mp.log((mp.exp(a * e) + mp.exp((1 - a) * e)) / (1 + mp.exp(e))) / (a - 1)


def objective_bound(shift, jacobian, a):
    return jacobian + a * shift**2 / 2 + mp.log(2 * mp.ncdf((a - 1) * shift)) / (a - 1)


class Minimiser:
    """The released minimiser of mean log(1 + exp(-u x)) + m x^2/2 + b x, b ~ N(0, std^2), on the line."""

    def __init__(self, records, modulus, std):
        self.records, self.modulus, self.std = records, modulus, std

    def density(self, x):
        n = len(self.records)
        gradient, curvature = self.modulus * x, self.modulus
        for u in self.records:
            sigmoid = 1 / (1 + mp.exp(u * x))
            gradient -= u * sigmoid / n
            curvature += u * u * sigmoid * (1 - sigmoid) / n
        return mp.npdf(gradient / self.std) / self.std * curvature


def compared(records, other, modulus, std):
    """True divergences of some orders and the true epsilon at some deltas, the larger of both directions."""
    first, second = Minimiser(records, modulus, std), Minimiser(other, modulus, std)
    # High orders look far into the tail: order 16 moves the mass by 16 shifts, at most 40 standard deviations here.
    cuts = [(2 + 60 * std) / modulus * mpf(i) / 40 for i in range(-40, 41)]
    reach = (1 + 14 * std) / modulus
    orders, deltas = (1.1, 1.5, 2.0, 4.0, 16.0), (1e-2, 1e-4)
    out = {"divergences": [], "epsilons": []}
    for a in orders:
        both = []
        for p, q in ((first, second), (second, first)):
            integral = mp.quad(lambda x: p.density(x) ** mpf(a) * q.density(x) ** (1 - mpf(a)), cuts)
            both.append(mp.log(integral) / (mpf(a) - 1))
        out["divergences"].append([repr(a), mp.nstr(max(both), 12)])
    for d in deltas:
        both = []
        for p, q in ((first, second), (second, first)):
            # The hockey-stick divergence on a fine fixed grid: plain sums are accurate enough for a one-sided check.
            points = [reach * (mpf(2 * i + 1) / 4000 - 1) for i in range(4000)]
            pairs = [(p.density(x), q.density(x)) for x in points]
            stick = lambda e: sum(max(f - mp.exp(e) * g, 0) for f, g in pairs) * reach / 2000
            low, high = mpf(0), mpf(20)
            for _ in range(26):
                middle = (low + high) / 2
                if stick(middle) > d:
                    low = middle
                else:
                    high = middle
            both.append(low)
        out["epsilons"].append([repr(d), mp.nstr(max(both), 7)])
    return out


def composition():
    out = {"pure_equal": [], "pure_unequal": [], "pure_rdp": [], "objective_rdp": [], "objective_true": []}
    mp.dps = 40
    deltas = (1e-9, 1e-5, 1e-4, 1e-2, 0.3)
    for e in (1e-3, 0.02, 0.1, 0.5, 2.0, 9.0):
        for k in (1, 2, 10, 50, 200):
            atoms = equal_distribution(mpf(e), k)
            centre = mp.log(mp.log(1000) / (k * mpf(e) ** 2)) / 2
            for d in deltas:
                row = {"epsilons": [repr(e)], "count": k, "delta": repr(d)}
                out["pure_equal"].append({**row, **enclose(optimal_epsilon(atoms, mpf(d)))})
                if d in (1e-9, 1e-4):
                    rdp = smallest_over_orders(lambda a: k * pure_divergence(mpf(e), a), mpf(d), centre)
                    out["pure_rdp"].append({**row, **enclose(rdp)})
    draw = random.Random(1)
    for k in (2, 3, 5, 7, 8):
        for size in (0.05, 0.5, 2.0):
            epsilons = [size * (0.2 + draw.random()) for _ in range(k)]
            atoms = loss_distribution([mpf(e) for e in epsilons])
            for d in deltas[1:]:
                row = {"epsilons": [repr(e) for e in epsilons], "count": 1, "delta": repr(d)}
                out["pure_unequal"].append({**row, **enclose(optimal_epsilon(atoms, mpf(d)))})
            centre = mp.log(mp.log(10000) / sum(mpf(e) ** 2 for e in epsilons)) / 2
            rdp = smallest_over_orders(lambda a: sum(pure_divergence(mpf(e), a) for e in epsilons), mpf(1e-4), centre)
            out["pure_rdp"].append({"epsilons": [repr(e) for e in epsilons], "count": 1, "delta": repr(1e-4), **enclose(rdp)})
    for s in (1e-3, 0.05, 0.4, 3.0):
        for j in (1e-6, 6.8e-3, 0.5):
            for k in (1, 50):
                centre = mp.log(mp.log(10000) / (k * mpf(s) ** 2)) / 2
                t = smallest_over_orders(lambda a: k * objective_bound(mpf(s), mpf(j), a), mpf(1e-4), centre)
                row = {"shift": repr(s), "jacobian": repr(j), "count": k, "delta": repr(1e-4)}
                out["objective_rdp"].append({**row, **enclose(t)})
    mp.dps = 16
    for records, other in (((1, 1), (-1, 1)), ((1, -0.5, 0.3), (-1, -0.5, 0.3)), ((0, 0.2), (1, 0.2)), ((1,), (-1,))):
        for modulus, std in ((0.1, 0.8), (1.0, 0.4)):
            row = {"records": len(records), "modulus": repr(modulus), "noise_std": repr(std)}
            exact = [[mpf(u) for u in side] for side in (records, other)]
            out["objective_true"].append({**row, **compared(*exact, mpf(modulus), mpf(std))})
    write(out)


def write(out):
    # One row a line keeps the file readable and its differences small.
    parts = [f' "{k}": [\n  ' + ",\n  ".join(json.dumps(row) for row in rows) + "\n ]" for k, rows in out.items()]
    sys.stdout.write("{\n" + ",\n".join(parts) + "\n}\n")


composition() if sys.argv[1:] == ["composition"] else main()
