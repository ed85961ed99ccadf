"""Reference minimisers for every loss and regulariser, by an interior-point solver that shares nothing with ours.

    pip install cvxpy==1.9.3 clarabel numpy && python make.py > problems.json

Every problem is  (1/n) sum loss + R(x) + <linear, x> + quadratic/2 |x|^2  over the same 80 made-up records: three
numeric columns, two categorical ones (3 and 4 values) as ones, an intercept that R leaves out, rows cut to norm 1.5.
"""

import json

import cvxpy as cp
import numpy as np

rng = np.random.default_rng(20240917)
n, n_numeric, sizes, bound = 80, 3, [3, 4], 1.5
p = n_numeric + sum(sizes) + 1
numeric = rng.uniform(0, 1, (n, n_numeric)).round(6)
choice = np.stack([rng.integers(0, k, n) for k in sizes], axis=1)
hot = np.concatenate([n_numeric + choice[:, :1], n_numeric + sizes[0] + choice[:, 1:], np.full((n, 1), p - 1)], axis=1)
A = np.zeros((n, p))
A[:, :n_numeric] = numeric
A[np.arange(n)[:, None], hot] = 1.0
A *= np.minimum(1.0, bound / np.linalg.norm(A, axis=1))[:, None]
truth = rng.normal(0, 2, p)
sign = np.where(A @ truth + rng.normal(0, 0.7, n) > np.median(A @ truth), 1.0, -1.0)
value = (1 / (1 + np.exp(-A @ truth)) + rng.normal(0, 0.2, n)).round(6)
linear = rng.normal(0, 0.02, p).round(6)
quadratic = 0.03
groups = [[0], [1], [2], [3, 4, 5], [6, 7, 8, 9]]
penalized = list(range(p - 1))

losses = {
    "logistic": lambda t: cp.sum(cp.logistic(-cp.multiply(sign, t))),
    "hinge": lambda t: cp.sum(cp.pos(1 - cp.multiply(sign, t))),
    "huberized-hinge": None,
    "huber": lambda t: cp.sum(cp.huber(value - t, 0.15)) / 2,
    "squared": lambda t: cp.sum_squares(value - t) / 2,
}
regularizers = {
    "none": lambda x: 0,
    "l2": lambda x: 0.02 * cp.sum_squares(x[penalized]),
    "l1": lambda x: 0.02 * cp.norm1(x[penalized]),
    "elastic-net": lambda x: 0.02 * (0.6 * cp.norm1(x[penalized]) + 0.4 * cp.sum_squares(x[penalized])),
    "group-lasso": lambda x: 0.02 * sum(np.sqrt(len(g)) * cp.norm2(x[g]) for g in groups),
}

problems = []
for loss_name, loss in losses.items():
    for reg_name, reg in regularizers.items():
        x = cp.Variable(p)
        t = A @ x
        if loss_name == "huberized-hinge":
            # The rounded hinge is the Moreau envelope of the hinge, shifted by its width.
            width, u = 0.3, cp.Variable(n)
            total = cp.sum(cp.pos(u)) + cp.sum_squares(1 - cp.multiply(sign, t) + width - u) / (4 * width)
        else:
            total = loss(t)
        objective = total / n + reg(x) + linear @ x + quadratic / 2 * cp.sum_squares(x)
        problem = cp.Problem(cp.Minimize(objective))
        problem.solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13, max_iter=300, reduced_tol_gap_abs=1e-10
        )
        assert problem.status in ("optimal", "optimal_inaccurate"), (loss_name, reg_name, problem.status)
        problems.append({"loss": loss_name, "regularizer": reg_name, "value": float(problem.value), "x": x.value.tolist()})

print(
    json.dumps(
        {
            "numeric": numeric.tolist(),
            "hot": hot.tolist(),
            "sign": sign.tolist(),
            "value": value.tolist(),
            "norm_bound": bound,
            "linear": linear.tolist(),
            "quadratic": quadratic,
            "strength": 0.02,
            "l1_ratio": 0.6,
            "width_huberized_hinge": 0.3,
            "width_huber": 0.15,
            "problems": problems,
        }
    )
)
