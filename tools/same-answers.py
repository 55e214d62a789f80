#!/usr/bin/env python3
"""Holds two builds of fullstroke against each other: same requests, same answers.

    tools/same-answers.py OLD NEW [--requests N] [--only TEXT]

Each shipped stack, and each drive of the library under three loads, is run by both
programs. The request logs must be equal byte for byte, the JSON answers equal except
for wall-clock fields. Exit status 1 names every run that differs. A step that moves
code, renames or speeds up must not change an answer; this is the check.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Fields that depend on the machine and the moment, not on the simulation.
CLOCKS = {"wall_s", "requests_per_wall_s", "peak_rss_mb", "answered_us"}
LOADS = {
    "random": ["workload.read_share=0.6", "workload.size=8KiB", "workload.arrivals.outstanding=8"],
    "sequential": ["workload.addresses={pattern=\"sequential\"}", "workload.size=64KiB", "workload.arrivals.outstanding=2"],
    "writes": ["workload.read_share=0.0", "workload.size=4KiB", "workload.arrivals.outstanding=32"],
}


def without_clocks(value):
    if isinstance(value, dict):
        return {key: without_clocks(inner) for key, inner in value.items() if key not in CLOCKS}
    if isinstance(value, list):
        return [without_clocks(inner) for inner in value]
    return value


def answer(program, arguments, requests):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log.csv"
        plain = [program, "run", *arguments, "--json"]
        run = None
        # Not every kind of load can be cut to a number of requests, and not every run has a log.
        for more in (["--requests", str(requests), "--log", log], ["--requests", str(requests)], ["--log", log], []):
            run = subprocess.run([*plain, *more], cwd=ROOT, capture_output=True, text=True)
            if run.returncode == 0:
                break
        lines = log.read_bytes() if log.exists() else b""
        if run.returncode != 0:
            return ("error", run.stderr), lines
        return ("answer", without_clocks(json.loads(run.stdout))), lines


def differing(old, new, path=""):
    """The first places at which two answers differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differing(old.get(key), new.get(key), f"{path}.{key}")
    elif isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)) and len(old) == len(new):
        for place, (left, right) in enumerate(zip(old, new)):
            yield from differing(left, right, f"{path}[{place}]")
    elif old != new:
        yield f"{path}: {str(old)[:80]} became {str(new)[:80]}"


def runs(only):
    for stack in sorted(ROOT.glob("stacks/**/*.toml")):
        name = str(stack.relative_to(ROOT))
        # A stack without a workload waits for clients of `serve`.
        if "[workload" in stack.read_text() or "[[hosts" in stack.read_text():
            yield name, [name]
    for drive in sorted(ROOT.glob("drives/*.toml")):
        for load, settings in LOADS.items():
            given = ["stacks/bench/closed-random-8k.toml", "--drive", drive.stem]
            for setting in settings:
                given += ["--set", setting]
            yield f"{drive.stem}, {load}", given


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--only", default="", help="runs whose names contain this")
    given = parser.parse_args()
    programs = [given.old.resolve(), given.new.resolve()]
    todo = [(name, arguments) for name, arguments in runs(given.only) if given.only in name]

    def both(run):
        name, arguments = run
        return name, [answer(program, arguments, given.requests) for program in programs]

    failed = errors = 0
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for name, ((old, old_log), (new, new_log)) in pool.map(both, todo):
            places = list(differing(old, new))[:4]
            if old_log != new_log:
                places.append("the request logs differ")
            errors += old[0] == "error"
            if old[0] == "error":
                print(f"no answer: {name}: {old[1].strip()[:200]}")
            if places:
                failed += 1
                print(f"differs: {name}")
                for place in places:
                    print(f"    {place}")
    print(f"{len(todo) - failed - errors} equal, {failed} different, {errors} without an answer")
    sys.exit(1 if failed or errors else 0)


if __name__ == "__main__":
    main()
