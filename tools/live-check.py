#!/usr/bin/env python3
"""One job under both clocks, and how fast the server is.

For every job file in samples/jobs and every stack of BOTH_CLOCKS: the job is simulated
(`fullstroke run --fio`) and run by fio itself against `fullstroke serve` on the same
stack; mean and 99th percentile of the completion latency stand side by side. Then the
speed of the server alone (--no-delay, bytes in memory) against nbdkit's memory plugin, in
alternating pairs, and how late answers leave while 64 drives work at once.

Marks are printed, and no failure: what a busy host measures says little. The exit status
is 1 only if something could not be run.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from checks import Impossible, needs, run

ROOT = Path(__file__).resolve().parent.parent
STACKS = ROOT / "samples" / "live-check"
JOBS = ROOT / "samples" / "jobs"
BOTH_CLOCKS = ["one-disk", "raid5"]

MEAN_MARK = 0.05
P99_MARK = 0.10
CPU_MARK_US = 3.5
LATENESS_MARK_US = 200.0

PAIRS = 5
PAIR_S = 4
SPEED_SIZE = "256m"
LATENESS_S = 15
PATIENCE_S = 60


def run_json(arguments):
    text = run(*arguments)
    # fio writes notes before its JSON.
    return json.loads(text[text.index("{"):])


def cpu_s(process):
    """Seconds of processor that a process has used: fields 14 and 15 of proc(5)."""
    stat = Path(f"/proc/{process}/stat").read_text()
    fields = stat[stat.rindex(")") + 2:].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """A server on a unix socket in `folder`."""

    def __init__(self, arguments, socket):
        self.socket = socket
        self.uri = f"nbd+unix:///?socket={socket}"
        self.process = subprocess.Popen([str(argument) for argument in arguments], text=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.wait_for_socket()

    def wait_for_socket(self):
        until = time.monotonic() + PATIENCE_S
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                raise Impossible(f"{' '.join(map(str, self.process.args))}: does not serve")
            time.sleep(0.01)

    def stop(self):
        """Asks it to end; what it printed."""
        self.process.terminate()
        try:
            return self.process.communicate(timeout=PATIENCE_S)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Impossible(f"{self.process.args[0]}: does not end")


@contextlib.contextmanager
def serving(arguments, socket):
    server = Server(arguments, socket)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def fullstroke_serve(program, stack, socket, *options):
    return [program, "serve", stack, "--json", "--socket", socket, *options]


def lateness(printed):
    """From the summary that follows the announcement."""
    decoder = json.JSONDecoder()
    _, end = decoder.raw_decode(printed)
    summary = decoder.raw_decode(printed[end:].lstrip())[0]
    return summary["exports"][0]["lateness"]


def job_for_nbd(text, uri):
    """The same job, run against a server. How a file would be opened is left out."""
    elsewhere = re.compile(r"^\s*(ioengine|direct|filename)\s*=")
    lines = [line for line in text.splitlines() if not elsewhere.match(line)]
    return "\n".join(["[global]", "ioengine=nbd", f"uri={uri}", *lines, ""])


def latencies(report):
    """Per job and direction: requests, mean and 99th percentile in ms."""
    found = {}
    for job in report["jobs"]:
        for direction in ("read", "write"):
            clat = job[direction]["clat_ns"]
            requests = job[direction]["total_ios"]
            if requests:
                p99 = clat["percentile"]["99.000000"]
                found[job["jobname"], direction] = (requests, clat["mean"] / 1e6, p99 / 1e6)
    return found


def mark(ratio, allowed):
    return "ok" if abs(ratio - 1) <= allowed else "OFF"


def both_clocks(program, folder):
    print(f"Both clocks: completion latency, ms; marks: mean within {MEAN_MARK:.0%}, p99 within {P99_MARK:.0%}\n")
    header = ["stack", "job", "", "requests", "mean sim", "live", "ratio", "", "p99 sim", "live", "ratio", "", "late us p50", "p99"]
    print(row(header))
    off = 0
    for stack in BOTH_CLOCKS:
        for job in sorted(JOBS.glob("*.fio")):
            off += one_case(program, folder, STACKS / f"{stack}.toml", job)
    print(f"\n{off} marks missed\n" if off else "\nall marks met\n")


def row(cells):
    widths = [9, 21, 5, 8, 9, 8, 6, 3, 9, 8, 6, 3, 11, 7]
    left = {0, 1, 2}
    return "  ".join(str(cell).ljust(width) if index in left else str(cell).rjust(width)
                     for index, (cell, width) in enumerate(zip(cells, widths)))


def one_case(program, folder, stack, job):
    """Runs a job both ways and prints its rows; how many marks were missed."""
    simulated = latencies(run_json([program, "run", stack, "--fio", job, "--output-format=fio-json"]))
    socket = folder / "nbd"
    with serving(fullstroke_serve(program, stack, socket), socket) as server:
        live_job = folder / job.name
        live_job.write_text(job_for_nbd(job.read_text(), server.uri))
        live = latencies(run_json(["fio", "--output-format=json", f"--aux-path={folder}", live_job]))
        late = lateness(server.stop())
    off = 0
    for key, (requests, mean, p99) in live.items():
        if key not in simulated:
            raise Impossible(f"{job}: {key} was not simulated; it has {sorted(simulated)}")
        _, mean_simulated, p99_simulated = simulated[key]
        ratios = mean / mean_simulated, p99 / p99_simulated
        marks = mark(ratios[0], MEAN_MARK), mark(ratios[1], P99_MARK)
        off += marks.count("OFF")
        print(row([stack.stem, key[0], key[1], requests,
                   f"{mean_simulated:.3f}", f"{mean:.3f}", f"{ratios[0]:.3f}", marks[0],
                   f"{p99_simulated:.3f}", f"{p99:.3f}", f"{ratios[1]:.3f}", marks[1],
                   f"{late['p50_us']:.0f}", f"{late['p99_us']:.0f}"]), flush=True)
    return off


def load(uri, mode, depth, seconds, size):
    return run_json(["fio", "--name=load", "--ioengine=nbd", f"--uri={uri}", f"--rw={mode}", "--bs=4k",
                     f"--iodepth={depth}", "--time_based", f"--runtime={seconds}", *size,
                     "--norandommap", "--output-format=json"])["jobs"][0]


def measured(server, mode):
    """I/Os a second, and microseconds of the server's processor time an I/O."""
    direction = "read" if mode == "randread" else "write"
    before = cpu_s(server.process.pid)
    found = load(server.uri, mode, 32, PAIR_S, [f"--size={SPEED_SIZE}"])[direction]
    return found["iops"], 1e6 * (cpu_s(server.process.pid) - before) / found["total_ios"]


def speed(program, folder):
    print(f"Speed: --no-delay, bytes in memory, fio 4 KiB at depth 32, {PAIRS} alternating pairs of {PAIR_S} s, medians")
    print(f"marks: at least nbdkit's I/Os a second, at most {CPU_MARK_US} us of the server's processor time a request\n")
    print(f"{'':10}  {'fullstroke':>12}  {'nbdkit':>12}  {'ratio':>6}       {'us/request':>12}  {'nbdkit':>8}")
    ours_at, theirs_at = folder / "ours", folder / "theirs"
    ours = fullstroke_serve(program, STACKS / "memory.toml", ours_at, "--no-delay")
    theirs = ["nbdkit", "--foreground", "--exit-with-parent", "--unix", theirs_at, "memory", "size=1G"]
    with serving(ours, ours_at) as ours, serving(theirs, theirs_at) as theirs:
        for server in (ours, theirs):
            # Memory that is there already: what is measured is the serving.
            run("fio", "--name=fill", "--ioengine=nbd", f"--uri={server.uri}", "--rw=write", "--bs=1m",
                f"--size={SPEED_SIZE}", "--output-format=json")
        for mode in ("randread", "randwrite"):
            pairs = [(measured(ours, mode), measured(theirs, mode)) for _ in range(PAIRS)]
            report_speed(mode, pairs)
    print()


def report_speed(mode, pairs):
    ours, theirs = zip(*pairs)
    median = lambda values, index: statistics.median(value[index] for value in values)
    ratio = statistics.median(our[0] / their[0] for our, their in pairs)
    cpu = median(ours, 1)
    print(f"{mode:10}  {median(ours, 0):12,.0f}  {median(theirs, 0):12,.0f}  {ratio:6.2f} {'ok' if ratio >= 1 else 'OFF':>3}"
          f"  {cpu:12.2f} {'ok' if cpu <= CPU_MARK_US else 'OFF':>3}  {median(theirs, 1):8.2f}", flush=True)


def many(program, folder):
    print(f"Lateness: 64 drives, 4 KiB random reads, {LATENESS_S} s; mark: p99 at most {LATENESS_MARK_US:.0f} us\n")
    print(f"{'in flight':>10}  {'requests':>9}  {'p50 us':>7}  {'p99 us':>7}       {'p99.9 us':>8}  {'max us':>8}")
    socket = folder / "many"
    for depth in (64, 256):
        with serving(fullstroke_serve(program, STACKS / "many.toml", socket), socket) as server:
            load(server.uri, "randread", depth, LATENESS_S, [])
            late = lateness(server.stop())
        fits = "ok" if late["p99_us"] <= LATENESS_MARK_US else "OFF"
        print(f"{depth:10}  {late['count']:9}  {late['p50_us']:7.0f}  {late['p99_us']:7.0f} {fits:>3}"
              f"  {late['p999_us']:8.0f}  {late['max_us']:8.0f}", flush=True)
    print()


PARTS = {"both-clocks": both_clocks, "speed": speed, "lateness": many}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART",
                        help=f"any of {', '.join(PARTS)}; default all")
    parser.add_argument("--nice", type=int, default=0, metavar="LEVEL",
                        help="run servers and fio at this niceness; below 0 (root) on a host that has other things to do")
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "fullstroke",
                        help="fullstroke; default target/release/fullstroke")
    arguments = parser.parse_args()
    # Leaves through the doors: no server and no fio stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    begun = time.monotonic()
    try:
        needs(arguments.program, "fio", "nbdkit")
        os.nice(arguments.nice)
        print(f"{os.cpu_count()} processors; load of this host at the beginning: {os.getloadavg()[0]:.1f}\n", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            for part in arguments.parts or PARTS:
                PARTS[part](arguments.program, Path(folder))
    except (Impossible, PermissionError) as reason:
        print(f"live-check: {reason}", file=sys.stderr)
        return 1
    print(f"took {time.monotonic() - begun:.0f} s; load of this host at the end: {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
