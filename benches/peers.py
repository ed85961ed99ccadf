"""Python peers: what a competent person writes with numpy, scipy and scikit-learn.

`padmm-bench` starts this program once for each peer, with the folder that holds the problem and one request (JSON), and reads one
answer (JSON). Only the work is timed, neither the start of Python nor the reading of data; the peak of memory is the whole process's.

A run is one of the algorithms of MATH section 2 and BASELINES, with the noise of every round given, so that both programs solve the
same problems and must end with the same models. P-ADMM is

    x_i <- argmin (1/n_i) sum ln(1 + exp(-z a'x)) + (curvature_i/2) |x|^2 + <linear, x>,  until the gradient's norm is at most tolerance_i
    linear = dual_i - penalty * sum_j (release_i + release_j),    curvature_i = 2 * penalty * degree_i + 2 * Lambda / N
"""

import json
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve, norm
from scipy.optimize import minimize
from scipy.special import expit
from sklearn._loss.loss import HalfBinomialLoss
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._glm._newton_solver import NewtonCholeskySolver
from sklearn.linear_model._linear_loss import LinearModelLoss
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits


class Shard:
    """One agent's records, dense or sparse, and its objective."""

    def __init__(self, a, labels):
        self.a = a
        self.sparse = sp.issparse(a)
        self.transposed = sp.csr_array(a.T) if self.sparse else a.T
        self.labels = labels
        self.n = len(labels)

    def loss(self, margins):
        return np.logaddexp(0.0, -self.labels * margins).mean()

    def slopes(self, margins):
        """Derivatives of the mean loss by the margins, and the probabilities of error that they come from."""
        error = expit(-self.labels * margins)
        return error * self.labels * (-1.0 / self.n), error

    def gradient(self, x, curvature):
        slopes, _ = self.slopes(self.a @ x)
        return self.transposed @ slopes + curvature * x

    def gradient_norm(self, x, curvature, linear=0.0):
        return norm(self.gradient(x, curvature) + linear)

    def hessian(self, weights):
        if self.sparse:
            return (self.transposed @ (sp.diags_array(weights) @ self.a)).toarray()
        root = self.a * np.sqrt(weights)[:, None]
        return root.T @ root  # numpy sees the symmetry and computes one half


class Problem:
    """What the benchmark wrote: records as numbers, hot columns and a scale for each; everything else in meta.json."""

    def __init__(self, folder, sparse):
        self.folder = folder
        self.meta = json.loads((folder / "meta.json").read_text())
        self.p = p = self.meta["n_features"]
        sizes, n_numeric, n_hot = self.meta["sizes"], self.meta["n_numeric"], self.meta["n_hot"]
        n = sum(sizes)
        numeric = self.read("numeric").reshape(n, n_numeric)
        hot = np.fromfile(folder / "hot.u32", dtype=np.uint32).reshape(n, n_hot)
        scale, labels = self.read("scale"), self.read("labels")
        self.shards, start = [], 0
        for size in sizes:
            rows = slice(start, start + size)
            make = csr if sparse else dense
            self.shards.append(Shard(make(numeric[rows], hot[rows], scale[rows], p), labels[rows]))
            start += size

    def read(self, name):
        return np.fromfile(self.folder / f"{name}.f64")

    def by_round(self, name):
        return self.read(name).reshape(-1, len(self.shards), self.p)


def dense(numeric, hot, scale, p):
    a = np.zeros((len(scale), p))
    a[:, : numeric.shape[1]] = numeric * scale[:, None]
    np.put_along_axis(a, hot.astype(np.int64), scale[:, None], axis=1)
    return a


def csr(numeric, hot, scale, p):
    n, k = numeric.shape
    columns = np.hstack([np.tile(np.arange(k, dtype=np.int32), (n, 1)), hot.astype(np.int32)])
    values = np.hstack([numeric, np.ones(hot.shape)]) * scale[:, None]
    ends = np.arange(n + 1, dtype=np.int32) * columns.shape[1]
    return sp.csr_array((values.ravel(), columns.ravel(), ends), shape=(n, p))


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


def metrics(everything, shards, optimum, releases):
    """What the simulator computes in every round."""
    margins = [everything.a @ x for x in releases]
    positive = everything.labels > 0
    return {
        "average_loss": np.mean([s.loss(s.a @ x) for s, x in zip(shards, releases)]),
        "pooled_loss": np.mean([everything.loss(t) for t in margins]),
        "accuracy": np.mean([np.mean((t > 0) == positive) for t in margins]),
        "auc": np.mean([roc_auc_score(positive, t) for t in margins]),
        "consensus_error": np.sqrt(np.mean(np.sum((releases - releases.mean(0)) ** 2, 1))),
        "distance_to_optimum": np.sqrt(np.mean(np.sum((releases - optimum) ** 2, 1))),
    }


class Network:
    """All agents' vectors, one row each, and what the algorithms share."""

    def __init__(self, problem, solver):
        self.meta, self.shards, self.solver = problem.meta, problem.shards, SOLVERS[solver]
        self.n, self.p, self.penalty = len(self.shards), problem.p, self.meta["penalty"]
        self.noise, self.objective_noise = problem.by_round("noise"), problem.by_round("objective_noise")
        edges = tuple(zip(*self.meta["edges"]))
        neighbours = sp.csr_array(([1.0] * len(self.meta["edges"]), edges), shape=(self.n, self.n))
        self.neighbours = neighbours + neighbours.T
        self.degree = self.neighbours.sum(1)[:, None]
        self.ridge = self.meta["regularizer_curvature"]
        self.releases, self.duals, self.minimizers, self.models = (np.zeros((self.n, self.p)) for _ in range(4))
        self.stalled = 0

    def solve(self, i, linear, curvature):
        self.minimizers[i], late = self.solver(
            self.shards[i], linear, curvature, self.minimizers[i], self.meta["tolerances"][i]
        )
        self.stalled += late

    def solve_all(self, k, penalty):
        pull = self.degree * self.releases + self.neighbours @ self.releases
        linear = self.duals - penalty * pull + self.objective_noise[k]
        curvature = 2.0 * penalty * self.degree[:, 0] + self.ridge + np.array(self.meta["ridges"])
        for i in range(self.n):
            self.solve(i, linear[i], curvature[i])

    def gradients(self, at):
        return np.stack([shard.gradient(x, self.ridge) for shard, x in zip(self.shards, at)])

    def ascend(self, penalty):
        self.duals = self.duals + penalty * (self.degree * self.releases - self.neighbours @ self.releases)


def consensus(net, k):
    """P-ADMM, ADMM, PVP (noise on the output or none), DVP, M-ADMM, Gaussian objective perturbation (noise on the objective)."""
    net.solve_all(k, net.penalty * net.meta["growth"] ** k)
    net.releases = net.models = net.minimizers + net.noise[k]
    net.ascend(net.penalty)


def recycled(net, k):
    """R-ADMM and MR-ADMM: every second round uses no records."""
    penalty = net.penalty * net.meta["growth"] ** (k // 2)
    if k % 2 == 0:
        net.before = net.releases
        net.solve_all(k, penalty)
        net.releases = net.minimizers.copy()
        net.ascend(penalty)
    else:
        factor = penalty / (2.0 * penalty * net.degree + net.meta["even_damping"] * net.penalty)
        pull = net.degree * net.before + net.neighbours @ (net.before - 2.0 * net.releases)
        net.releases = net.releases - factor * pull
    net.models = net.releases


def linearized(net, k):
    """One gradient in place of a solve."""
    inverse_step = np.array(net.meta["inverse_steps"])
    pull = net.penalty * (net.degree * net.releases + net.neighbours @ net.releases)
    center = pull + inverse_step * net.releases - net.duals - net.gradients(net.releases)
    net.releases = net.models = center / (2.0 * net.penalty * net.degree + inverse_step) + net.noise[k]
    net.ascend(net.penalty)


def star(net, k):
    """DP-ADMM: the same with a server; `duals` are the y_i and every model is the server's."""
    inverse_step = np.array(net.meta["inverse_steps"])[:, k : k + 1]
    center = net.penalty * net.models + net.duals + inverse_step * net.releases - net.gradients(net.releases)
    net.releases = center / (net.penalty + inverse_step) + net.noise[k]
    net.models = np.tile((net.releases - net.duals / net.penalty).mean(0), (net.n, 1))
    net.duals = net.duals - net.penalty * (net.releases - net.models)


def token(net, k):
    """A token that walks; `duals` are the u_i, `releases` holds its own value, and models are what the visited last saw."""
    weight, factor = 2.0 * net.penalty * (net.n - 1), 2.0 * net.meta["relaxation"]
    shrink = 1.0 / (1.0 + net.ridge / weight)
    walk = net.meta["walk"]
    carried = net.releases[0]
    for step in range(k * net.n, (k + 1) * net.n):
        i, z = walk[step], shrink * carried
        net.solve(i, -weight * (2.0 * z - net.duals[i]), weight)
        change = factor * (net.minimizers[i] + net.noise[k, i] - z)
        net.duals[i] += change
        carried = carried + change / net.n
        seen = [i, walk[step + 1]] if step + 1 < len(walk) else range(net.n)
        net.models[seen] = shrink * carried
    net.releases[0] = carried


ROUNDS = {
    "r-admm": recycled,
    "mr-admm": recycled,
    "linearized": linearized,
    "dp-admm": star,
    "token": token,
}


def run(problem, solver, rounds, with_metrics):
    """The first `rounds` rounds, plainly."""
    net = Network(problem, solver)
    one_round = ROUNDS.get(problem.meta["algorithm"], consensus)
    for k in range(rounds):
        one_round(net, k)
        if with_metrics:
            metrics(problem.everything, problem.shards, problem.optimum, net.models)
    return net.stalled, net.models


def repeated_run(problem, request):
    rounds = request["rounds"]
    if request["metrics"]:
        stack = sp.vstack if problem.shards[0].sparse else np.vstack
        problem.everything = Shard(
            stack([s.a for s in problem.shards]), np.concatenate([s.labels for s in problem.shards])
        )
        problem.optimum = problem.read("optimum")
    seconds, (stalled, models) = timed(
        lambda: run(problem, request["solver"], rounds, request["metrics"]), request["repeat"]
    )
    expected = problem.by_round("releases")[rounds - 1]
    return {
        "seconds": seconds,
        "stalled": stalled,
        "difference": norm(models - expected) / norm(expected),
    }


def cold_fit(problem, request):
    """scikit-learn from zero on the first agent's records: mean loss + (curvature/2)|x|^2, which it writes with C = 1/(n curvature).

    Each solver has its own idea of a tolerance; the loosest that brings the gradient's norm down to the one asked for is used.
    """
    shard, curvature, wanted = problem.shards[0], request["curvature"], request["tolerance"]

    def fit(tolerance):
        model = LogisticRegression(
            C=1.0 / (shard.n * curvature),
            solver=request["solver"],
            tol=tolerance,
            max_iter=10_000,
            fit_intercept=False,
        )
        return model.fit(shard.a, shard.labels).coef_[0]

    tolerance = {"newton-cholesky": 1e-7, "lbfgs": 1e-8, "liblinear": 1e-4}[request["solver"]]
    while True:
        x = fit(tolerance)
        reached = shard.gradient_norm(x, curvature)
        if reached <= wanted or tolerance < 1e-16:
            break
        tolerance /= 10.0**0.5
    seconds, x = timed(lambda: fit(tolerance), request["repeat"])
    return {
        "seconds": seconds,
        "gradient_norm": reached,
        "solved": bool(reached <= wanted),
        "coefficients": x.tolist(),
    }


class WithLinearTerm(LinearModelLoss):
    """scikit-learn's logistic loss with the linear term that ADMM adds, for its own solvers."""

    def __init__(self, linear):
        super().__init__(HalfBinomialLoss(), fit_intercept=False)
        self.linear = linear

    def loss(self, coef, *args, **kwargs):
        return super().loss(coef, *args, **kwargs) + self.linear @ coef

    def loss_gradient(self, coef, *args, **kwargs):
        value, gradient = super().loss_gradient(coef, *args, **kwargs)
        return value + self.linear @ coef, gradient + self.linear

    def gradient_hessian(self, coef, *args, **kwargs):
        gradient, hessian, warning = super().gradient_hessian(coef, *args, **kwargs)
        gradient += self.linear  # in place: the solver has given this array
        return gradient, hessian, warning


def warm_solves(problem, request):
    """scikit-learn's solvers on the first agent's problem of one round after another, each from where the last one ended."""
    shard, curvature, wanted = problem.shards[0], request["curvature"], request["tolerance"]
    linear = problem.read("linear").reshape(-1, problem.p)
    target = (shard.labels > 0).astype(np.float64)
    start = problem.read("warm_start")

    def one(term, x, tolerance):
        loss = WithLinearTerm(term)
        if request["solver"] == "newton-cholesky":
            solver = NewtonCholeskySolver(
                coef=x.copy(),
                linear_loss=loss,
                l2_reg_strength=curvature,
                tol=tolerance,
                max_iter=1000,
                n_threads=request["threads"],
            )
            return solver.solve(X=shard.a, y=target, sample_weight=None)
        # As scikit-learn's lbfgs calls scipy.
        return minimize(
            loss.loss_gradient,
            x,
            method="L-BFGS-B",
            jac=True,
            args=(shard.a, target, None, curvature, request["threads"]),
            options={"maxiter": 10_000, "maxls": 50, "gtol": tolerance, "ftol": 64 * np.finfo(float).eps},
        ).x

    def solve_rounds(terms, tolerance):
        points = [start]
        for term in terms:
            points.append(one(term, points[-1], tolerance))
        return points[1:]

    def largest_norm(points):
        return max(shard.gradient_norm(x, curvature, term) for x, term in zip(points, linear))

    # What brings the first rounds there; of all rounds it is checked below.
    tolerance = wanted
    while largest_norm(solve_rounds(linear[:4], tolerance)) > wanted and tolerance > 1e-14:
        tolerance /= 10.0**0.5
    seconds, points = timed(lambda: solve_rounds(linear, tolerance), request["repeat"])
    x, reached = points[-1], largest_norm(points)
    return {
        "seconds": seconds,
        "gradient_norm": reached,
        # A round in between may be a little short of it; the next starts from there all the same.
        "solved": bool(reached <= 3.0 * wanted),
        "coefficients": x.tolist(),
    }


def timed(work, repeat):
    """The best of some times, and the last result. What takes very long is repeated less often."""
    seconds = []
    while len(seconds) < repeat and sum(seconds) < 15.0:
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def main():
    folder, request = Path(sys.argv[1]), json.loads(sys.argv[2])
    warnings.simplefilter("ignore")
    problem = Problem(folder, request["sparse"])
    work = {"run": repeated_run, "cold": cold_fit, "warm": warm_solves}[request["what"]]
    with threadpool_limits(request["threads"]):
        answer = work(problem, request)
    answer["peak_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
