#!/usr/bin/env python3
"""How much sooner a sweep is done by two Dask workers of this machine than by one, beside what the machine itself gives.

Two processes share a machine's caches, memory and clock, and are rarely twice as fast as one. So the same runs are
also made by one and by two bare processes, without Dask, in the same minute; the workers' efficiency is their ratio over
that one. Where the machine has two processors, scheduler and sweep take theirs from the workers. Medians of three rounds.
`make bench` runs it with the module built for release, in the environment that `make python-check` has made.
"""

import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path

import distributed
import fullstroke

STACK = Path(__file__).parents[1] / "stacks/demo/raid5.toml"
RUNS = 60
ROUNDS = 3


def stacks(seeds: range) -> list[fullstroke.Stack]:
    return [fullstroke.Stack(STACK, "workload.to=300s", f"seed={seed}") for seed in seeds]


def sweep(client: distributed.Client) -> float:
    mine = stacks(range(RUNS))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        fullstroke.sweep(mine, folder, client=client)
        return time.perf_counter() - began


def of_workers(workers: int) -> float:
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            client.wait_for_workers(workers)
            fullstroke.sweep([STACK], tempfile.mkdtemp(), client=client)
            return sweep(client)


def bare(ready, seeds: range) -> None:
    mine = stacks(seeds)
    fullstroke.run(mine[0])
    ready.wait()
    for stack in mine:
        fullstroke.run(stack)


def of_processes(processes: int) -> float:
    spawning = multiprocessing.get_context("spawn")
    ready = spawning.Barrier(processes + 1)
    shares = [range(first, RUNS, processes) for first in range(processes)]
    each = [spawning.Process(target=bare, args=(ready, share)) for share in shares]
    for process in each:
        process.start()
    ready.wait()
    began = time.perf_counter()
    for process in each:
        process.join()
    if any(process.exitcode for process in each):
        raise SystemExit("a bare process failed")
    return time.perf_counter() - began


def main() -> None:
    rounds = [(of_workers(1), of_workers(2), of_processes(1), of_processes(2)) for _ in range(ROUNDS)]
    one, two, alone, both = (statistics.median(times) for times in zip(*rounds))
    dask = statistics.median(first / second for first, second, _, _ in rounds)
    machine = statistics.median(first / second for _, _, first, second in rounds)
    share = statistics.median((first / second) / (lone / pair) for first, second, lone, pair in rounds)
    print(f"sweep of {RUNS} runs, medians of {ROUNDS} rounds:")
    print(f"  Dask            one worker  {one:.1f} s, two {two:.1f} s: {dask:.2f} times as fast")
    print(f"  bare processes  one process {alone:.1f} s, two {both:.1f} s: {machine:.2f} times as fast, which is what this machine gives")
    print(f"  two workers have {100 * share:.0f} % of that")


if __name__ == "__main__":
    main()
