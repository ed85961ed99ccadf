"""Reference values for the theory calculator, from numpy alone.

Written from the formulas of the paper's Theorems 4 and 5, with dense matrices and no closed form that the
calculator uses: the best gain comes from a scan over kappa_2, and kappa_3 is evaluated as printed.

    python make_theory.py > theory.json
"""

import json

import numpy as np


def ring(n):
    return [(i, (i + 1) % n) for i in range(n)]


def complete(n):
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def star(n):
    return [(0, i) for i in range(1, n)]


def nonzero(matrix):
    s = np.linalg.svd(matrix, compute_uv=False)
    s = s[s > 1e-9]
    return float(s.max()), float(s.min())


def evaluate(name, n, edges, mu, v, eta, decay, rounds, p, noise, norm, b, k2, k4, theta):
    a = np.zeros((n, n))
    for i, j in edges:
        a[i, j] = a[j, i] = 1.0
    d = np.diag(a.sum(1))
    plus, minus = d + a, d - a
    w, u = np.linalg.eigh(minus / 2)
    q = u @ np.diag(np.sqrt(np.clip(w, 0, None))) @ u.T
    pmax, pmin = nonzero(plus)
    _, mmin = nonzero(minus)
    w_half = np.sqrt(np.clip(w, 0, None))
    qmin = float(w_half[w_half > 1e-6].min())
    dmax, _ = nonzero(d)

    def zeta_at(k):
        return 2 * (k - 1) * mu * qmin**2 * pmin**2 / (k * v**2 * pmin**2 + 2 * mu * pmax**2)

    scan = max(zeta_at(k) for k in np.logspace(1e-3, 16, 20001))
    zeta = zeta_at(k2)
    out = dict(
        name=name, agents=n, edges=edges, strong_convexity=mu, smoothness=v, penalty=eta, decay=decay,
        rounds=rounds, features=p, noise=noise, model_norm=norm, split=b, gradient_weight=k2,
        noise_weight=k4, slack=theta, needed=pmax**2 / pmin**2, available=1 + scan,
    )
    if (1 - b) * (1 + zeta) * pmin**2 > pmax**2:
        h1 = b * (1 + zeta) * pmin**2 * (1 - 1 / k4) / (4 * b * pmin**2 * (1 - 1 / k4) + 16 * dmax**2)
        h2 = ((1 - b) * (1 + zeta) * pmin**2 - pmax**2) / (4 * pmax**2 + 4 * (1 - b) * pmin**2)
        assert 0 < theta < min(h1, h2), (name, h1, h2)
        k1 = 1 + 2 * mu * pmax**2 / (v**2 * pmin**2)
        k3 = np.sqrt((v**2 * pmin**2 + 2 * mu * pmax**2) / (theta * k1 * v**2 * pmin**2)) + 1
        s3 = (4 * zeta * k2 * dmax**2 / qmin**2
              + pmax**2 * (np.sqrt(zeta) + np.sqrt(2 * (k2 - 1) * qmin**2 / (theta * k1 * k2)))**2)
        s3 = s3 / ((1 - b) * (1 + zeta) * (1 + zeta - 4 * theta) * pmin**2) + b * (k4 - 1) / (1 - b)
        out.update(
            gain=zeta, slack_limit=min(h1, h2),
            contraction=(1 + 4 * theta) * pmax**2 / ((1 - b) * (1 + zeta - 4 * theta) * pmin**2),
            required_penalty=np.sqrt(k1 * k2 * (k3 - 1) * v**2 / (k3 * (k2 - 1) * qmin**2 * pmin**2)),
            dual_weight=4 / ((1 + 4 * theta) * pmax**2), noise_factor=s3,
        )

    # Theorem 5: x0 = 0 and a consensus optimum of the given norm, stacked by hand.
    direction = np.ones(p) / np.sqrt(p) * norm
    xstar = np.tile(direction, (n, 1))
    distance = float(np.sum(xstar * ((plus / 2) @ xstar)))
    var = np.array(noise)
    paper = eta / rounds * (distance + p * pmax**2 * var.sum() / (2 * mmin * (1 - decay)))
    dropped = sum(0.5 * p * float(np.trace(minus @ np.diag(var * decay**k))) for k in range(rounds)) * eta / rounds
    pull = np.linalg.inv(d) @ a
    cross = 0.0
    for k in range(rounds - 1):
        cov = np.diag(var * decay**k)
        cross += p * np.sqrt(np.trace(plus @ cov @ plus) * np.trace(pull @ cov @ pull.T))
    cross *= eta / rounds
    out.update(paper=paper, corrected=paper + dropped, rederived=eta / rounds * distance + cross + dropped)

    # Q x* = 0 and the trace of L_minus is that of 2 Q Q: the matrices are what they are said to be.
    assert np.allclose(q @ xstar, 0, atol=1e-9) and np.isclose(np.trace(minus), 2 * np.trace(q @ q))
    return out


def simulate(n, edges, eta, decay, rounds, std, runs):
    """E[f(mean of un-noised iterates) - f*] of P-ADMM on f_i(x) = (x - c_i)^2 / 2, and its standard error."""
    rng = np.random.default_rng(1)
    a = np.zeros((n, n))
    for i, j in edges:
        a[i, j] = a[j, i] = 1.0
    degree = a.sum(1)
    plus, minus = np.diag(degree) + a, np.diag(degree) - a
    c = np.linspace(-1, 1, n) + 0.3
    best = 0.5 * np.sum((c.mean() - c) ** 2)
    gaps = []
    for _ in range(runs):
        x, alpha, total = np.zeros(n), np.zeros(n), np.zeros(n)
        for k in range(rounds):
            clean = (c - alpha + eta * plus @ x) / (1 + 2 * eta * degree)
            x = clean + rng.normal(size=n) * std * decay ** (k / 2)
            alpha = alpha + eta * minus @ x
            total += clean
        gaps.append(0.5 * np.sum((total / rounds - c) ** 2) - best)
    gaps = np.array(gaps)
    return dict(agents=n, edges=edges, penalty=eta, decay=decay, rounds=rounds, std=std, model_norm=0.3,
                mean=float(gaps.mean()), error=float(gaps.std() / np.sqrt(runs)))


def main():
    cases = [
        evaluate("ring of five, logistic on Adult", 5, ring(5), 2e-4, 0.2504, 6e-4, 0.995, 50, 104,
                 [0.15] * 5, 5.0, 0.1, 100.0, 2.0, 0.01),
        evaluate("complete, feasible", 5, complete(5), 0.02, 0.05, 0.3, 0.6, 40, 3,
                 [0.1, 0.2, 0.3, 0.4, 0.5], 2.0, 0.2, 50.0, 3.0, 0.01),
        evaluate("ring of five, feasible by the letter", 5, ring(5), 0.0012, 0.0025, 0.01, 0.3, 10, 2,
                 [0.01] * 5, 1.0, 0.05, 1e6, 2.0, 1e-4),
        evaluate("star, unequal noise", 6, star(6), 0.01, 0.3, 0.05, 0.9, 30, 7,
                 [0.5, 0.1, 0.1, 0.2, 0.1, 0.3], 1.5, 0.1, 10.0, 2.0, 0.01),
    ]
    runs = [
        simulate(5, complete(5), 0.2, 0.95, 30, 0.5, 4000),
        simulate(5, ring(5), 0.2, 0.9, 20, 1.0, 4000),
        simulate(2, [(0, 1)], 0.5, 0.99, 25, 2.0, 4000),
        simulate(6, star(6), 0.1, 1.0, 40, 1.0, 4000),
    ]
    print(json.dumps(dict(cases=cases, simulated=runs), indent=1))


main()
