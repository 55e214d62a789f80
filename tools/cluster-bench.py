#!/usr/bin/env python3
"""How much sooner a sweep is done by two Dask workers of this machine than by one; medians of three pairs.

`make bench` runs it with the environment that `make python-check` has made.
"""

import statistics
import tempfile
import time
from pathlib import Path

import distributed
import fullstroke

STACK = Path(__file__).parents[1] / "stacks/demo/raid5.toml"
RUNS = 100


def seconds(client: distributed.Client) -> float:
    stacks = [fullstroke.Stack(STACK, "workload.to=60s", f"seed={seed}") for seed in range(RUNS)]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        fullstroke.sweep(stacks, folder, client=client)
        return time.perf_counter() - began


def of_workers(workers: int) -> float:
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            client.wait_for_workers(workers)
            fullstroke.sweep([STACK], tempfile.mkdtemp(), client=client)
            return seconds(client)


def main() -> None:
    pairs = [(of_workers(1), of_workers(2)) for _ in range(3)]
    one, two = (statistics.median(times) for times in zip(*pairs))
    ratio = statistics.median(first / second for first, second in pairs)
    print(f"sweep of {RUNS} runs: one worker {one:.1f} s, two {two:.1f} s, {ratio:.2f} times as fast (medians of {len(pairs)})")


if __name__ == "__main__":
    main()
