#!/usr/bin/env python3
"""How often the race of `tune` finds the known least of 200 points, and Optuna with as many runs; what both cost.

    tools/tune-bench.py PROGRAM [SEEDS]

PROGRAM is the example tune_bench of fullstroke-lab. Optuna's TPE has its defaults, and for each seed as many
values as the race took. Four ways of giving them out are tried: each trial sees all parts; or only the first
eight; or an increasing number, under Optuna's own pruners. A point's parts are paid for once, however often TPE
comes back to it. Its answer is, as the race's, the best mean of the points that have seen most parts.
"""

import json
import statistics
import subprocess
import sys
import time

PARTS, FIRST, POINTS = 128, 8, 200
# A function, how many points the race begins with, its keys' numbers of values, whether they are in order.
TASKS = [
    ("unordered", 200, [200], False),
    ("valley", 200, [5, 5, 8], True),
    ("valley", 64, [5, 5, 8], True),
    ("valley", 24, [5, 5, 8], True),
]
# What Optuna is given: its pruner's name, and how many parts the trials of one have seen at each look.
WAYS = {
    "TPE, all parts a trial": ("NopPruner", [PARTS]),
    "TPE, eight parts a trial": ("NopPruner", [FIRST]),
    "TPE, median pruner": ("MedianPruner", [8, 16, 32, 64, 128]),
    "TPE, successive halving": ("SuccessiveHalvingPruner", [8, 16, 32, 64, 128]),
}


class Program:
    def __init__(self, path: str):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def tpe(optuna, program: Program, function: str, seed: int, shape: list[int], ordered: bool, budget: int, way) -> tuple[int, int]:
    """The point that Optuna finds with so many values, and the values that it took."""
    pruner, looks = way
    seen: dict[int, list[float]] = {}
    took = 0

    def objective(trial) -> float:
        nonlocal took
        point = 0
        for key, values in enumerate(shape):
            suggest = trial.suggest_int if ordered else lambda name, *_: trial.suggest_categorical(name, range(values))
            point = point * values + suggest(f"k{key}", 0, values - 1)
        known = seen.setdefault(point, [])
        for look in looks:
            more = min(look - len(known), budget - took)
            if more > 0:
                known += program.ask("values", function, seed, point, len(known), len(known) + more)
                took += more
            if len(known) < look:
                trial.study.stop()
                raise optuna.TrialPruned
            trial.report(statistics.fmean(known[:look]), look)
            if look < looks[-1] and trial.should_prune():
                raise optuna.TrialPruned
        return statistics.fmean(known[: looks[-1]])

    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(sampler=sampler, pruner=getattr(optuna.pruners, pruner)())
    # It may come back to what it knows for ever.
    study.optimize(objective, n_trials=3 * POINTS)
    most = max(map(len, seen.values()))
    return min((statistics.fmean(known), point) for point, known in seen.items() if len(known) == most)[1], took


def main() -> None:
    program, seeds = Program(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    try:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        versions = f"Optuna {optuna.__version__}"
    except ModuleNotFoundError:
        optuna, versions = None, "Optuna skipped: pip could not install it"
    print(f"{seeds} seeds; best point found, values taken of {POINTS * PARTS}; {versions}")
    for function, sample, shape, ordered in TASKS:
        print(f"{function}, the race begins with {sample}:")
        raced = [program.ask("race", function, sample, seed) for seed in range(seeds)]
        line("tune", [race["found"] == race["best"] for race in raced], [race["told"] for race in raced])
        for name, way in WAYS.items() if optuna else ():
            began = time.process_time()
            found = [
                tpe(optuna, program, function, seed, shape, ordered, race["told"], way) for seed, race in enumerate(raced)
            ]
            spent = time.process_time() - began
            right = [point == race["best"] for (point, _), race in zip(found, raced)]
            line(name, right, [took for _, took in found], f"{spent / seeds:.1f} s of Optuna's own a search")


def line(name: str, right: list[bool], took: list[int], more: str = "") -> None:
    share = 100 * statistics.fmean(took) / (POINTS * PARTS)
    print(f"  {name:<26} {sum(right):>3} of {len(right)} {share:>6.1f} %  {more}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
