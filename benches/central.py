"""Differential privacy with all records in one place: diffprivlib's logistic regression (objective perturbation, pure epsilon).

Started by `padmm-bench` with the folder of the problem and one request (JSON): for each epsilon, the loss of some models.
"""

import json
import statistics
import sys
import warnings
from pathlib import Path

import numpy as np
from diffprivlib.models import LogisticRegression


def main():
    folder, request = Path(sys.argv[1]), json.loads(sys.argv[2])
    warnings.simplefilter("ignore")
    meta = json.loads((folder / "meta.json").read_text())
    n, p = sum(meta["sizes"]), meta["n_features"]
    read = lambda name: np.fromfile(folder / f"{name}.f64")
    numeric, labels, scale = read("numeric").reshape(n, -1), read("labels"), read("scale")
    hot = np.fromfile(folder / "hot.u32", dtype=np.uint32).reshape(n, -1).astype(np.int64)
    features = np.zeros((n, p))
    features[:, : numeric.shape[1]] = numeric * scale[:, None]
    np.put_along_axis(features, hot, scale[:, None], axis=1)
    answer = []
    for epsilon in request["epsilons"]:
        losses = []
        for seed in range(request["repeat"]):
            model = LogisticRegression(
                epsilon=epsilon,
                data_norm=request["norm_bound"],
                C=1.0 / (n * meta["regularizer_curvature"]),
                fit_intercept=False,
                tol=1e-8,
                max_iter=10_000,
                random_state=seed,
            ).fit(features, labels)
            losses.append(np.logaddexp(0.0, -labels * (features @ model.coef_[0])).mean())
        answer.append(
            {"epsilon": epsilon, "loss": statistics.mean(losses), "deviation": statistics.stdev(losses)}
        )
    print(json.dumps({"central": answer}))


if __name__ == "__main__":
    main()
