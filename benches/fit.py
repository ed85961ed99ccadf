"""A private fit among five sites beside scikit-learn's pooled one without privacy: the same records, the same process, in turns.

    pip install . scikit-learn
    python benches/fit.py [RECORDS COLUMNS TURNS]

Prints the wall time and processor time of each, in seconds, and the ratio of wall times.
"""

import statistics
import sys
import time

import numpy as np
import padmm
from sklearn.linear_model import LogisticRegression


def timed(fit):
    wall, cpu = time.perf_counter(), time.process_time()
    fit()
    return time.perf_counter() - wall, time.process_time() - cpu


def main():
    n, p, turns = map(int, sys.argv[1:4]) if len(sys.argv) == 4 else (1_000_000, 50, 5)
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (n, p))
    chance = 1 / (1 + np.exp(-(X - 0.5) @ rng.normal(size=p)))
    y = (rng.uniform(size=n) < chance).astype(int)
    private = padmm.PrivateADMMClassifier(epsilon=1, bounds=(0, 1), n_sites=5, random_state=0)
    pooled = LogisticRegression()
    ratios = []
    for _ in range(turns):
        ours, theirs = timed(lambda: private.fit(X, y)), timed(lambda: pooled.fit(X, y))
        ratios.append(ours[0] / theirs[0])
        print(f"padmm {ours[0]:.2f} ({ours[1]:.2f})  scikit-learn {theirs[0]:.2f} ({theirs[1]:.2f})  ratio {ratios[-1]:.2f}", flush=True)
    print(f"{private.algorithm_}, {n} records of {p} numbers: ratio {statistics.mean(ratios):.2f} on average")


if __name__ == "__main__":
    main()
