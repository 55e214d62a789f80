#!/usr/bin/env python3
"""Counts the processor instructions of a simulated request, and holds the counts to a table.

    tools/instructions.py PROGRAM            count every case and print a row for each
    tools/instructions.py PROGRAM --check    status 1 if a case needs more than 3 % above the table
    tools/instructions.py PROGRAM --write    write the table anew
    tools/instructions.py PROGRAM --build    build the program first, if the cases are counted here

Time varies with the machine and its load; the number of instructions does not. callgrind counts
each case twice, with few and with more requests. The difference, divided by the difference of the
requests, is the cost of a request; the start of the program drops out. The table is
bench/instructions.json. The table belongs to one compiler version and one build profile, because
another compiler makes other instructions: with another one the check is skipped, and says so.
A change that must cost more writes the table anew and says why in its commit. `make instructions`
builds and checks.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "bench" / "instructions.json"
ALLOWED = 1.03
# A function is named if its share of the growth is at least this.
NAMED_SHARE = 0.05

# A stack with hosts has no `--requests`. The number in such a file is set for each host.
HOSTS = {"stacks/bench/hosts-8.toml": 8, "stacks/bench/hosts-256.toml": 256}

# A third of the requests are writes, and the drive is idle between requests.
OPEN = ["--set", "workload.read_share=0.66", "--set", "workload.arrivals={process='poisson',rate_per_s=60}"]

# name: (arguments of `run`, few requests, more requests)
CASES = {
    "cheetah, closed, buffer": (["stacks/bench/closed-random-8k.toml"], 500, 2500),
    "cheetah, closed, no buffer": (["stacks/bench/closed-random-8k.toml", "--drive", "seagate-cheetah-9lp"], 500, 2500),
    "hp c3323a, closed": (
        ["stacks/bench/closed-random-8k.toml", "--drive", "samples/oracle/drives/hp_c3323a.toml"],
        500,
        2500,
    ),
    "atlas 10k, closed": (["stacks/bench/closed-random-8k.toml", "--drive", "quantum-atlas-10k"], 500, 2500),
    "cheetah, open": (["stacks/bench/closed-random-8k.toml", *OPEN], 500, 2500),
    "cheetah, open, no buffer": (
        ["stacks/bench/closed-random-8k.toml", "--drive", "seagate-cheetah-9lp", *OPEN],
        500,
        2500,
    ),
    "x24, closed, write cache": (
        ["stacks/bench/closed-random-8k.toml", "--drive", "x24", "--set", "workload.read_share=0.5"],
        500,
        2500,
    ),
    "satf, 32 outstanding": (["stacks/bench/closed-random-8k-satf.toml"], 500, 2500),
    "cfq, 256 processes": (["stacks/bench/cfq-256.toml"], 1000, 3000),
    "raid5 of 8 cheetahs": (["stacks/bench/raid5-open.toml"], 300, 1300),
    "raid6 of 8 x24": (["stacks/bench/raid6-24tb.toml"], 300, 1300),
    "raid10 of 8 x24": (["stacks/bench/raid6-24tb.toml", "--set", "volume.layout=raid10"], 300, 1300),
    "two arms": (["stacks/bench/closed-random-8k.toml", "--drive", "seagate-exos-2x18-18tb"], 500, 2500),
    "page cache": (["stacks/bench/page-cache.toml"], 500, 2500),
    "8 hosts above raid5": (["stacks/bench/hosts-8.toml"], 512, 4096),
    "256 hosts above raid5": (["stacks/bench/hosts-256.toml"], 512, 4096),
}


def count(program, arguments, requests):
    """Instructions in all, and by function."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, "run"]
        hosts = HOSTS.get(arguments[0])
        if hosts:
            text = (ROOT / arguments[0]).read_text()
            stack = pathlib.Path(folder, "hosts.toml")
            stack.write_text(re.sub(r"requests = \d+", f"requests = {requests // hosts}", text))
            command += [stack, "--json"]
        else:
            command += [*arguments, "--requests", str(requests), "--json"]
        # One environment for all, because its size moves the stack, and memmove's instructions with it.
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
        if run.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}\n{run.stderr}")
        listed = subprocess.run(["callgrind_annotate", "--threshold=100", out], capture_output=True, text=True).stdout
    total = int(re.search(r"([\d,]+) \(100.0%\)  PROGRAM TOTALS", listed).group(1).replace(",", ""))
    functions = {}
    for number, name in re.findall(r"^ *([\d,]+) \([ \d.]+%\)  (?:[^:\s]*|\?\?\?):(\S.*?)(?: \[[^\]]*\])?$", listed, re.M):
        # A closure and a recursion belong to their function.
        name = re.sub(r"'\d+$|::\{\{closure\}\}", "", name)
        functions[name] = functions.get(name, 0) + int(number.replace(",", ""))
    return total, functions


def per_request(program, case):
    arguments, few, more = CASES[case]
    (low, low_functions), (high, high_functions) = count(program, arguments, few), count(program, arguments, more)
    each = {
        name: round((high_functions[name] - low_functions.get(name, 0)) / (more - few), 1) for name in high_functions
    }
    total = (high - low) / (more - few)
    kept = {name: cost for name, cost in sorted(each.items(), key=lambda item: -item[1]) if cost > total / 200}
    return case, {"instructions": round(total), "functions": kept}


def compiler():
    return subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.strip()


def growth(old, new):
    """The functions that make most of what a case needs more."""
    grown = {name: cost - old["functions"].get(name, 0) for name, cost in new["functions"].items()}
    more = new["instructions"] - old["instructions"]
    return [f"{name} +{cost:.0f}" for name, cost in sorted(grown.items(), key=lambda i: -i[1]) if cost > NAMED_SHARE * more][:4]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--build", action="store_true")
    given = parser.parse_args()
    program = given.program.resolve()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed; instructions of a request are not counted")
        return
    profile = "release" if "release" in program.parts else "dev"
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    known = table.get(profile, {})
    if given.check and known.get("compiler") != compiler():
        print(f"skipped: the table of instructions is of {known.get('compiler')}, found {compiler()}")
        return
    if given.build:
        # The check comes before the build, because a release build takes minutes.
        release = ["--release"] if profile == "release" else []
        subprocess.run(["cargo", "build", "--quiet", "--package", "fullstroke", *release], cwd=ROOT, check=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(pool.map(lambda case: per_request(program, case), CASES))
    failed = []
    print(f"instructions a request ({profile} build)")
    for case, new in found.items():
        old = known.get("cases", {}).get(case)
        change = f"{100 * (new['instructions'] / old['instructions'] - 1):+.1f} %" if old else "new"
        print(f"  {case:<28}{new['instructions']:>10,}  {change:>8}")
        if old and new["instructions"] > ALLOWED * old["instructions"]:
            failed.append(f"{case}: {new['instructions']:,} instructions a request, {old['instructions']:,} in the table; most by {'; '.join(growth(old, new))}")
        elif given.check and not old:
            failed.append(f"{case}: not in the table")
    if given.write:
        table[profile] = {"compiler": compiler(), "cases": found}
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    if given.check and failed:
        sys.exit("more than 3 % above bench/instructions.json:\n" + "\n".join(failed))


if __name__ == "__main__":
    main()
