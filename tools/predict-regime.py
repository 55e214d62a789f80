#!/usr/bin/env python3
"""Where is the queueing model of `fullstroke predict` within 10 % of a simulation?

Draws stacks at random (drive, layout, size, share of reads, load, seed), asks for the model's and the
simulation's mean response and watts, and prints errors by what the regime bounds. Drives of HELD_OUT were
not looked at while the model and its bounds were made.

    tools/predict-regime.py [--points 300] [--seed 1] [--held-out] [--program PATH] [--save FILE]
"""

import argparse
import concurrent.futures
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KNOWN = [
    "seagate-ironwolf-8tb",
    "seagate-cheetah-15k7-450gb",
    "seagate-exos-x24-24tb",
    "maxtor-atlas-10k-v-73gb-c0k",
    "quantum-atlas-10k",
    "toshiba-mk8034gsx-80gb",
]
HELD_OUT = [
    "seagate-exos-x16-16tb",
    "seagate-exos-10e2400-2.4tb",
    "wd-red-plus-8tb",
    "hitachi-7k1000c-1tb",
    "fujitsu-mas3735nc",
    "hp-dg072a4951",
    "toshiba-mg10-20tb",
]
# Layout, drives, and member accesses of a read and of a small write.
LAYOUTS = [("jbod", 1), ("raid0", 4), ("raid0", 8), ("raid1", 2), ("raid10", 4), ("raid5", 5), ("raid5", 8), ("raid6", 6)]
WRITES = {"jbod": 1, "raid0": 1, "raid1": 2, "raid10": 2, "raid5": 4, "raid6": 6}
SIZES_KIB = [4, 16, 64, 256]
READS = [1.0, 0.67, 0.3, 0.0]
DISCIPLINES = ["satf", "satf", "fcfs", "look"]
REQUESTS = 20000


def point(draw, drives):
    layout, count = draw.choice(LAYOUTS)
    reads, size = draw.choice(READS), draw.choice(SIZES_KIB)
    parts = max(1, size // 64) if layout != "jbod" and layout != "raid1" else 1
    accesses = parts * (reads + (1 - reads) * WRITES[layout])
    busy = draw.uniform(0.05, 0.9)
    return {
        "drive": draw.choice(drives),
        "layout": layout,
        "drives": count,
        "size_kib": size,
        "reads": reads,
        "discipline": draw.choice(DISCIPLINES),
        "write_back": draw.choice([True, False]),
        "spindles": draw.choice(["together", "apart"]),
        "rate_per_s": busy * count / accesses / 0.011,
        "seed": draw.randrange(1, 10**6),
    }


def stack(at):
    chunk = "" if at["layout"] in ("jbod", "raid1") else 'chunk = "64KiB"\n'
    settings = f'queue = {{ discipline = "{at["discipline"]}" }}'
    return f"""seed = {at["seed"]}
[workload]
kind = "synthetic"
requests = {REQUESTS}
size = "{at["size_kib"]}KiB"
read_share = {at["reads"]}
arrivals = {{ process = "poisson", rate_per_s = {at["rate_per_s"]:.3f} }}
[volume]
layout = "{at["layout"]}"
{chunk}spindles = "{at["spindles"]}"
drives = {at["drives"]}
drive = "{at["drive"]}"
[volume.drive_settings]
{settings}
"""


def ask(program, at):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(stack(at))
        file.flush()
        command = [program, "predict", "--stack", file.name, "--json"]
        if not at["write_back"]:
            command += ["--set", "volume.drive_settings.buffer.write_back=false"]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode != 0 and not at["write_back"]:
            at["write_back"] = True
            return ask(program, at)
    if ran.returncode != 0:
        return {**at, "failed": ran.stderr.strip().splitlines()[0] if ran.stderr else "?"}
    answer = json.loads(ran.stdout)
    model, simulated = answer["model"], answer["simulated"]
    found = {bound["name"]: bound["found"] for bound in model["bounds"]}
    result = {**at, **found, "outside": model["outside"], "answered_us": model["answered_us"]}
    result["simulated_ms"] = simulated["response_ms_mean"]
    if model["response_ms"] is not None:
        result["model_ms"] = model["response_ms"]
        result["error"] = model["response_ms"] / simulated["response_ms_mean"] - 1
        if model["mean_w"] and simulated["mean_w"]:
            result["error_w"] = model["mean_w"] / simulated["mean_w"] - 1
    return result


def row(name, points, key="error"):
    errors = sorted(abs(point[key]) for point in points if key in point)
    if not errors:
        return
    within = sum(error <= 0.1 for error in errors) / len(errors)
    print(
        f"{name:38} {len(errors):5} {100 * statistics.median(errors):7.1f} {100 * errors[int(0.9 * (len(errors) - 1))]:7.1f}"
        f" {100 * errors[-1]:7.1f} {100 * within:7.0f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--program", default=os.path.join(ROOT, "target/release/fullstroke"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--save")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    points = [point(draw, HELD_OUT if arguments.held_out else KNOWN) for _ in range(arguments.points)]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda at: ask(arguments.program, at), points))
    if arguments.save:
        with open(arguments.save, "w") as file:
            json.dump(results, file, indent=1)
    for failed in [result for result in results if "failed" in result][:5]:
        print(failed["failed"], file=sys.stderr)
    answered = [result for result in results if "error" in result]
    inside = [result for result in answered if not result["outside"]]
    print(f"{'mean response':38} {'runs':>5} {'median':>7} {'90 %':>7} {'most':>7} {'≤ 10 %':>7}")
    row("all that is carried", answered)
    row("within the bounds", inside)
    for low, high in [(0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1)]:
        row(f"utilisation {low} to {high}", [r for r in answered if low <= r["utilisation"] < high])
    for key in ["layout", "size_kib", "reads", "discipline", "write_back", "spindles", "drive"]:
        for value in sorted({result[key] for result in answered}, key=str):
            row(f"within the bounds, {key} {value}", [r for r in inside if r[key] == value])
    print("watts")
    row("all that is carried", answered, "error_w")
    row("within the bounds", inside, "error_w")
    slowest = sorted(result["answered_us"] for result in answered)
    print(f"answered in {statistics.median(slowest):.0f} us, at most {slowest[-1]:.0f}")


if __name__ == "__main__":
    main()
