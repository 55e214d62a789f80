#!/usr/bin/env python3
"""Gaps between requests, by one thread that waits for its calls and by many.

*Pro-active storage systems* (2012), section 6.7, figures 29 and 30 (ledger P-46, P-47): a trace is replayed at its
own times where it was captured, and elsewhere; one thread that waits for each call is held against many. Two
arrays, RAID-5 of six drives and one drive, are served by `fullstroke serve` at speed 1, shown as files by nbdfuse
and as block devices by loop devices with direct I/O. The transactions of samples/pgbench.parquet, which were captured
elsewhere, are replayed on each by timing, by each way in turn, writes as reads. The log of their replay by load on an
array is a trace that was captured there, and is replayed in the same ways.

Needs root (loop devices, /dev/fuse), nbdfuse and losetup (tools/clients.sh).
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from checks import Impossible, block_device, needs, run, until

STACKS = {"raid5": "studies/pass-2012-replay/stacks/raid5.toml", "single": "studies/pass-2012-replay/stacks/single.toml"}
TRACE = "samples/pgbench.parquet"
WAYS = {
    "64 threads": ["--threads", "64"],
    "one thread, in batches": ["--threads", "1", "--batch"],
    "one thread": ["--threads", "1"],
    "io_uring": [],
}
SHARES = [0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99]


@contextlib.contextmanager
def device(program, stack, folder):
    """A served array as a block device."""
    socket = folder / "served.sock"
    server = subprocess.Popen([program, "serve", stack, "--socket", str(socket)], stdout=subprocess.DEVNULL)
    try:
        until("the server", socket.exists)
        with block_device(f"nbd+unix:///?socket={socket}", folder / "shown") as loop:
            yield loop
    finally:
        server.terminate()
        server.wait()


def replayed(program, trace, on, *how):
    arguments = ["replay", "--json", str(trace), "--on", on, "--beyond", "wrap", "--writes", "as-reads", *how]
    report = json.loads(run(program, *arguments))
    return report | {"load_average": os.getloadavg()[0]}


def show(where, way, report):
    seconds, outstanding = report["gap_seconds"], report["outstanding"]
    print(f"| {where} | {way} | {report['requests']} | {report['duration_s']:.1f} ({report['scheduled_s']:.1f}) "
          f"| {report['gap_error_us']:.1f} | {seconds['error_p50_us']:.1f} | {seconds['error_p90_us']:.1f} "
          f"| {seconds['least_us']:+.1f} to {seconds['most_us']:+.1f} | {report['issue_error_us']['p50']:.1f}, "
          f"{report['issue_error_us']['p99']:.1f} | {outstanding['mean']:.2f} ({outstanding['trace_mean']:.2f}) "
          f"| {report['load_average']:.1f} |", flush=True)


def show_gaps(where, reports):
    points = lambda report, key: {round(point["share"], 2): point[key] for point in report["gaps"]}
    print(f"\nGaps in us, {where}:\n\n| of 100 | " + " | ".join(f"{share * 100:.0f}" for share in SHARES) + " |")
    print("|---|" + "---:|" * len(SHARES))
    first = next(iter(reports.values()))
    rows = {"the trace": points(first, "trace_us")} | {way: points(one, "here_us") for way, one in reports.items()}
    for name, row in rows.items():
        print(f"| {name} | " + " | ".join(f"{row[share]:.0f}" for share in SHARES) + " |", flush=True)


def measure(arguments, folder):
    print("| where | way | requests | s (trace) | error of a second's mean gap, us | median | nine in ten | least to most "
          "| issue error us: median, 99 in 100 | outstanding (trace) | load average |")
    print("|---|---|---:|---|---:|---:|---:|---|---|---|---:|", flush=True)
    distributions, captured, written = [], {"elsewhere": TRACE}, {}
    limit = ["--requests", str(arguments.requests)] if arguments.requests else []
    for name in arguments.on:
        place = folder / name
        place.mkdir()
        with device(arguments.program, STACKS[name], place) as on:
            captured[name] = folder / f"{name}.parquet"
            report = replayed(arguments.program, TRACE, on, "--pace", "load", "--log", str(captured[name]), *limit)
            written[f"captured on {name}"] = report
            for origin, trace in captured.items():
                where = f"{origin} on {name}"
                reports = {}
                for way in arguments.way:
                    reports[way] = replayed(arguments.program, trace, on, *WAYS[way], *limit)
                    show(where, way, reports[way])
                    written[f"{where}, {way}"] = reports[way]
                distributions.append((where, reports))
    for where, reports in distributions:
        show_gaps(where, reports)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(written, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/fullstroke", help="the program")
    parser.add_argument("--requests", type=int, help="end after so many requests of the trace")
    parser.add_argument("--on", nargs="+", choices=list(STACKS), default=list(STACKS), help="the arrays, in turn")
    parser.add_argument("--way", nargs="+", choices=list(WAYS), default=list(WAYS), help="the ways, in turn")
    parser.add_argument("--json", help="write all reports to this file")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        raise Impossible("needs root (loop devices and /dev/fuse)")
    needs("nbdfuse", "losetup", "fusermount3")
    with tempfile.TemporaryDirectory() as folder:
        measure(arguments, Path(folder))


if __name__ == "__main__":
    try:
        main()
    except Impossible as reason:
        sys.exit(f"not measured: {reason}")
