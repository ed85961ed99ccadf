"""Python peers of the simulator: what a competent person writes with numpy, scipy and scikit-learn.

The benchmark `cargo bench -p padmm-sim --bench peers` starts this program with the folder that holds its data, writes one request
a line (JSON) to standard input and reads one answer a line from standard output. Only the work is timed: neither the
start of Python nor the reading of data.

The run is P-ADMM in the form of MATH section 2, with the noise of every release given, so that both programs solve the same
problems and must end with the same models:

    x_i <- argmin (1/n_i) sum ln(1 + exp(-z a'x)) + (curvature/2) |x|^2 + <linear, x>,  until the gradient's norm is at most tolerance_i
    linear = dual_i - penalty * sum_j (release_i + release_j),    curvature = 2 * penalty * degree + 2 * Lambda / N
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, norm
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits


class Shard:
    """One agent's records, dense or sparse, and its objective."""

    def __init__(self, a, labels, sparse):
        self.a = sp.csr_array(a) if sparse else np.ascontiguousarray(a)
        self.transposed = sp.csr_array(self.a.T) if sparse else self.a.T
        self.labels = labels
        self.n = len(labels)
        self.sparse = sparse

    def loss(self, margins):
        return np.logaddexp(0.0, -self.labels * margins).mean()

    def slopes(self, margins):
        """Derivatives of the mean loss by the margins, and the probabilities of error that they come from."""
        error = expit(-self.labels * margins)
        return error * self.labels * (-1.0 / self.n), error

    def hessian(self, weights):
        if self.sparse:
            return (self.transposed @ (sp.diags_array(weights) @ self.a)).toarray()
        root = self.a * np.sqrt(weights)[:, None]
        return root.T @ root  # numpy sees the symmetry and computes one half


def newton_cholesky(shard, linear, curvature, x, tolerance):
    """Damped Newton. The margins of the direction serve the line search, which then touches no record's features."""
    margins = shard.a @ x
    value = shard.loss(margins) + x @ (0.5 * curvature * x + linear)
    for _ in range(100):
        slopes, error = shard.slopes(margins)
        gradient = shard.transposed @ slopes + curvature * x + linear
        if norm(gradient) <= tolerance:
            break
        hessian = shard.hessian(error * (1.0 - error) / shard.n)
        hessian.flat[:: len(x) + 1] += curvature
        factor = cho_factor(hessian, overwrite_a=True, check_finite=False)
        direction = -cho_solve(factor, gradient, check_finite=False)
        change = shard.a @ direction
        descent, step = gradient @ direction, 1.0
        for _ in range(30):
            trial = x + step * direction
            trial_margins = margins + step * change
            trial_value = shard.loss(trial_margins) + trial @ (0.5 * curvature * trial + linear)
            if trial_value <= value + 1e-4 * step * descent + 1e-14 * abs(value):
                break
            step *= 0.5
        x, margins, value = trial, trial_margins, trial_value
    return x, 0


def scipy_minimize(method):
    """A method of scipy.optimize.minimize, stopped as soon as the gradient's norm allows, finished by Newton if it stalls."""

    def solve(shard, linear, curvature, x, tolerance):
        at = {}

        def value_and_gradient(x):
            margins = shard.a @ x
            slopes, error = shard.slopes(margins)
            gradient = shard.transposed @ slopes + curvature * x + linear
            at["weights"], at["norm"] = error * (1.0 - error) / shard.n, norm(gradient)
            return shard.loss(margins) + x @ (0.5 * curvature * x + linear), gradient

        def hessian_vector(x, v):
            return shard.transposed @ (at["weights"] * (shard.a @ v)) + curvature * v

        def stop(intermediate_result):
            if at["norm"] <= tolerance:
                raise StopIteration

        options = {
            "Newton-CG": {"xtol": 1e-14, "maxiter": 200},
            "trust-ncg": {"gtol": tolerance, "maxiter": 200},
            "L-BFGS-B": {"ftol": 0.0, "gtol": 0.0, "maxcor": 30, "maxiter": 2000, "maxfun": 4000},
        }[method]
        hessp = None if method == "L-BFGS-B" else hessian_vector
        callback = None if method == "trust-ncg" else stop
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = minimize(
                value_and_gradient, x, jac=True, method=method, hessp=hessp, callback=callback, options=options
            ).x
        # Values near the minimum agree to the last bit, and line searches by value then give up early.
        _, gradient = value_and_gradient(found)
        if norm(gradient) <= tolerance:
            return found, 0
        return newton_cholesky(shard, linear, curvature, found, tolerance)[0], 1

    return solve


SOLVERS = {"newton-cholesky": newton_cholesky} | {
    method: scipy_minimize(method) for method in ("Newton-CG", "trust-ncg", "L-BFGS-B")
}


class Data:
    def __init__(self, folder):
        self.meta = json.loads((folder / "meta.json").read_text())
        p, sizes = self.meta["n_features"], self.meta["sizes"]
        agents, rounds = len(sizes), self.meta["rounds"]
        read = lambda name, shape: np.fromfile(folder / f"{name}.f64").reshape(shape)
        features, labels = read("features", (sum(sizes), p)), read("labels", -1)
        self.noise = read("noise", (rounds, agents, p))
        self.releases = read("releases", (rounds, agents, p))
        self.optimum = read("optimum", p)
        cuts = np.cumsum(sizes)[:-1]
        parts = list(zip(np.split(features, cuts), np.split(labels, cuts)))
        self.shards = {sparse: [Shard(a, z, sparse) for a, z in parts] for sparse in (False, True)}
        self.all = {sparse: Shard(features, labels, sparse) for sparse in (False, True)}


def metrics(data, sparse, releases):
    """What the simulator computes in every round."""
    shards, everything = data.shards[sparse], data.all[sparse]
    own = np.mean([s.loss(s.a @ x) for s, x in zip(shards, releases)])
    margins = [everything.a @ x for x in releases]
    positive = everything.labels > 0
    return {
        "average_loss": own,
        "pooled_loss": np.mean([everything.loss(t) for t in margins]),
        "accuracy": np.mean([np.mean((t > 0) == positive) for t in margins]),
        "auc": np.mean([roc_auc_score(positive, t) for t in margins]),
        "consensus_error": np.sqrt(np.mean(np.sum((releases - releases.mean(0)) ** 2, 1))),
        "distance_to_optimum": np.sqrt(np.mean(np.sum((releases - data.optimum) ** 2, 1))),
    }


def run(data, solver, sparse, rounds, with_metrics):
    """The first `rounds` rounds on the complete graph."""
    meta, shards = data.meta, data.shards[sparse]
    _, agents, p = data.noise.shape
    penalty, degree = meta["penalty"], agents - 1
    curvature = 2.0 * penalty * degree + meta["regularizer_curvature"]
    releases, duals, minimizers = np.zeros((agents, p)), np.zeros((agents, p)), np.zeros((agents, p))
    stalled, difference = 0, 0.0
    for k in range(rounds):
        # On the complete graph the sum over neighbours is the sum over all without oneself.
        total = releases.sum(0)
        linear = duals - penalty * (degree * releases + total - releases)
        for i, shard in enumerate(shards):
            minimizers[i], late = SOLVERS[solver](
                shard, linear[i], curvature, minimizers[i], meta["tolerances"][i]
            )
            stalled += late
        releases = minimizers + data.noise[k]
        duals = duals + penalty * (agents * releases - releases.sum(0))
        difference = max(difference, np.abs(releases - data.releases[k]).max())
        if with_metrics:
            metrics(data, sparse, releases)
    return {
        "stalled": stalled,
        "difference_any_round": difference,
        "difference_last": norm(releases - data.releases[k]) / norm(data.releases[k]),
    }


def scikit_learn(data, sparse, curvature, tolerance):
    """A cold fit of the first agent's records: mean loss + (curvature/2)|x|^2, which scikit-learn writes with C = 1/(n curvature)."""
    shard = data.shards[sparse][0]
    model = LogisticRegression(
        C=1.0 / (shard.n * curvature), solver="newton-cholesky", tol=tolerance, fit_intercept=False
    )
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(shard.a, shard.labels)
    seconds = time.perf_counter() - start
    x = model.coef_[0]
    slopes, _ = shard.slopes(shard.a @ x)
    residual = norm(shard.transposed @ slopes + curvature * x)
    return {
        "seconds": seconds,
        "coefficients": x.tolist(),
        "residual": residual,
        "iterations": int(model.n_iter_[0]),
        "warnings": [str(w.message) for w in said],
    }


def answer(data, request):
    with threadpool_limits(request.get("threads")):
        if request["what"] == "fit":
            return scikit_learn(data, request["sparse"], request["curvature"], request["tolerance"])
        start, start_cpu = time.perf_counter(), time.process_time()
        outcome = run(data, request["solver"], request["sparse"], request["rounds"], request["metrics"])
        cpu = time.process_time() - start_cpu
        return outcome | {"seconds": time.perf_counter() - start, "cpu_seconds": cpu}


def main():
    data = Data(Path(sys.argv[1]))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(data, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
