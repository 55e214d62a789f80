"""Runs stacks with fullstroke and hands back what it reports."""

import json
import math
import os
import pathlib
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = os.environ.get("FULLSTROKE") or str(HERE.parents[1] / "target/release/fullstroke")


@dataclass(frozen=True)
class Value:
    """A number and half the width of its 95 % interval (not a number where none can be claimed)."""

    mean: float
    half_width: float

    def __sub__(self, other):
        return Value(self.mean - other.mean, math.hypot(self.half_width, other.half_width))

    def over(self, other):
        """The quotient; the relative widths are taken as small and independent."""
        quotient = self.mean / other.mean
        relative = math.hypot(self.half_width / self.mean, other.half_width / other.mean)
        return Value(quotient, abs(quotient) * relative)

    @property
    def low(self):
        """The lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self):
        """The upper end of the interval."""
        return self.mean + self.half_width


@dataclass(frozen=True)
class Run:
    """One stack with some of its keys replaced."""

    stack: str
    settings: tuple = ()
    metric: str = "mb_per_s"

    def arguments(self):
        """The command line."""
        sets = [word for setting in self.settings for word in ("--set", setting)]
        stack = str(HERE / "stacks" / f"{self.stack}.toml")
        return [PROGRAM, "compare", stack, "--by", self.metric, "--json", "--jobs", "1", *sets]


@dataclass(frozen=True)
class Result:
    """What came out of a run: its metric, and the whole report."""

    value: Value
    report: dict

    def group(self, name):
        """The report on the processes of one name."""
        return next(group for group in self.report["groups"] if group["name"] == name)


def call(arguments):
    """What a command prints as JSON. Ends the program if the command fails."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit(f"{arguments[0]}: not found; run `make studies`, or name the program in FULLSTROKE")
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def explain(*arguments):
    """What `fullstroke explain` answers."""
    return call([PROGRAM, "explain", *arguments, "--json"])


class Laboratory:
    """Runs many stacks, each once, as many at a time as there are `jobs`."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.results = {}

    def run(self, runs):
        """The results of `runs`, by run."""
        new = [run for run in dict.fromkeys(runs) if run not in self.results]
        with ThreadPoolExecutor(self.jobs) as pool:
            self.results.update(zip(new, pool.map(measure, new)))
        return {run: self.results[run] for run in runs}


def measure(run):
    """Runs one stack."""
    candidate = call(run.arguments())["candidates"][0]
    half_width = candidate["ci95_half_width"]
    value = Value(candidate["value"], math.nan if half_width is None else half_width)
    return Result(value, candidate["report"])


def over_seeds(results):
    """The mean over runs that differ in their seeds, with the interval of Student's t."""
    values = [result if isinstance(result, float) else result.value.mean for result in results]
    count = len(values)
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    # Two-sided 95 % points for 4, 9 and 19 degrees of freedom.
    student = {5: 2.776, 10: 2.262, 20: 2.093}[count]
    return Value(mean, student * math.sqrt(variance / count))
