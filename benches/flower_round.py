"""The round of a federated framework: consensus ADMM through a Flower server, five clients in processes of their own, on loopback.

Started by `padmm-bench` with the folder of the problem and one request (JSON). Each client keeps its dual variable and solves its
proximal problem by the same Newton method as the numpy program, to the same tolerance; the server averages. No noise, no privacy.
"""

import json
import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

logging.disable(logging.CRITICAL)
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"

import flwr
import numpy as np

import peers


class Site(flwr.client.NumPyClient):
    def __init__(self, shard, penalty, curvature, tolerance):
        self.shard, self.penalty, self.tolerance = shard, penalty, tolerance
        self.curvature = penalty + curvature
        self.x, self.dual = None, None

    def fit(self, parameters, config):
        (consensus,) = parameters
        if self.x is None:
            self.x, self.dual = np.zeros_like(consensus), np.zeros_like(consensus)
        else:
            self.dual = self.dual + self.x - consensus
        linear = self.penalty * (self.dual - consensus)
        self.x, _ = peers.newton_cholesky(self.shard, linear, self.curvature, self.x, self.tolerance)
        return [self.x + self.dual], self.shard.n, {}


class Timed(flwr.server.strategy.FedAvg):
    """FedAvg that notes when rounds begin."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.starts = []

    def configure_fit(self, *args, **kwargs):
        self.starts.append(time.perf_counter())
        return super().configure_fit(*args, **kwargs)


def client(folder, place, address):
    problem = peers.Problem(folder, sparse=False)
    meta = problem.meta
    penalty = 2.0 * meta["penalty"] * meta["degrees"][place]
    site = Site(problem.shards[place], penalty, meta["regularizer_curvature"], meta["tolerances"][place])
    with peers.threadpool_limits(1):
        flwr.client.start_client(server_address=address, client=site.to_client(), insecure=True)


def main():
    folder, request = Path(sys.argv[1]), json.loads(sys.argv[2])
    if "place" in request:
        return client(folder, request["place"], request["address"])
    meta = json.loads((folder / "meta.json").read_text())
    n_sites, p = len(meta["sizes"]), meta["n_features"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    start = lambda place: subprocess.Popen(
        [sys.executable, __file__, str(folder), json.dumps({"place": place, "address": address})],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    clients = [start(place) for place in range(n_sites)]
    strategy = Timed(
        fraction_fit=1.0,
        fraction_evaluate=0.0,
        min_fit_clients=n_sites,
        min_available_clients=n_sites,
        initial_parameters=flwr.common.ndarrays_to_parameters([np.zeros(p)]),
    )
    try:
        flwr.server.start_server(
            server_address=address,
            config=flwr.server.ServerConfig(num_rounds=request["rounds"]),
            strategy=strategy,
        )
    finally:
        for process in clients:
            process.terminate()
            process.wait()
    # The first round waits for the clients.
    rounds = [b - a for a, b in zip(strategy.starts[1:], strategy.starts[2:])]
    print(json.dumps({"seconds": min(rounds)}))


if __name__ == "__main__":
    main()
