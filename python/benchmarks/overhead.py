"""What Python costs: ``fit`` on Adult against the simulator on the same, already encoded records; and memory for a large matrix.

    python python/benchmarks/overhead.py            # time
    python python/benchmarks/overhead.py --memory   # 1,000,000 x 100, takes some GB

Runs alternate, so that other programs on the machine disturb both alike; the smallest and the median of each are printed, and
the processor time of all threads, which other programs disturb least.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

import padmm
from padmm import PrivateADMMClassifier, _padmm

MANNER = {"progress": None, "threads": None, "measures": False, "reference": False, "rank_rounds": False}


def importing() -> None:
    """How long ``import padmm`` takes in a new process."""
    code = "import time; t = time.perf_counter(); import padmm; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", code]
    times = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(10)]
    print(f"import padmm: {1e3 * min(times):.0f} ms at best")


def overhead(repeats: int) -> None:
    """Alternates fits and simulations."""
    adult = padmm.datasets.load_adult()
    encoded = adult.schema.encode(adult.frame)
    plan = padmm.Plan(agents=5, split="even", seed=1)
    jobs = {
        "fit": lambda: PrivateADMMClassifier(schema=adult.schema, random_state=1).fit(adult.data, adult.target),
        "simulator, encoded records": lambda: _padmm.simulate(plan.json(), MANNER, encoded=encoded),
        "simulator, reading its records": lambda: _padmm.simulate(plan.json(), MANNER, dataset="adult"),
    }
    times: dict[str, list[float]] = {name: [] for name in jobs}
    busy: dict[str, list[float]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(repeats):
        for name, job in jobs.items():
            start, start_busy = time.perf_counter(), time.process_time()
            job()
            times[name].append(time.perf_counter() - start)
            busy[name].append(time.process_time() - start_busy)
    for name in jobs:
        best, median, cpu = min(times[name]), statistics.median(times[name]), statistics.median(busy[name])
        by_median = statistics.median(times["fit"]) / median
        by_cpu = statistics.median(busy["fit"]) / cpu
        print(
            f"{name:32} {1e3 * best:7.1f} ms at best, median {1e3 * median:7.1f}, processor {1e3 * cpu:7.1f};"
            f" fit takes {min(times['fit']) / best:.3f} of it at best, {by_median:.3f} by medians, {by_cpu:.3f} by processor time"
        )


def memory() -> None:
    """Peak memory of a fit, in sizes of the matrix."""

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    rng = np.random.default_rng(0)
    small = rng.random((2000, 100))
    PrivateADMMClassifier(bounds=(0, 1), random_state=0, rounds=2).fit(small, small[:, 0] > 0.5)
    X = rng.random((1_000_000, 100))
    y = X[:, 0] > 0.5
    before, start = peak(), time.perf_counter()
    PrivateADMMClassifier(bounds=(0, 1), random_state=0, rounds=2).fit(X, y)
    print(
        f"1,000,000 x 100, two rounds: {time.perf_counter() - start:.1f} s, peak grew by {(peak() - before) / X.nbytes:.2f} of X"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--repeats", type=int, default=25)
    arguments = parser.parse_args()
    if arguments.memory:
        memory()
    else:
        importing()
        overhead(arguments.repeats)
