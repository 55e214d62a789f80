#!/usr/bin/env python3
"""The kernel's elevators beside ours, on one served disk.

`fullstroke serve` has a slow disk, tools/fuse-bridge.py makes a file of it, and a loop device with
direct I/O lets the kernel have it as a disk of 8 commands. The same fio jobs run on that disk under
each elevator of the kernel, and in the simulation under the elevator of the same name, with three
seeds. Printed are requests a second and mean and 99th percentile of the response time, of the
kernel and of ours (mean of the seeds).

  readers    8 random readers of depth 4, and a sequential writer
  streams    a random reader and two sequential readers of depth 1
  depth      random reads and random writes of depth 64
  late       3 random readers, and a sequential writer that starts a second later
  starts     8 processes that start at once and read 4 MiB each, as the children of make do

--host-time measures the time of the host instead: the medians between block_bio_queue and
block_rq_issue, and between block_rq_complete and the next block_bio_queue, at depth 1.

Needs root, Linux, fio and losetup. The exit status is 1 if a share deviates by more than 5 % of
the total, 2 if something could not be run.
"""

import argparse
import contextlib
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from checks import Impossible, needs, process, run, until

ROOT = Path(__file__).resolve().parent.parent
STACK = ROOT / "samples" / "kernel-check" / "disk.toml"
DEPTH, REQUESTS = 8, 256
SEEDS = (1, 2, 3)
ALLOWED = 0.05
TRACING = Path("/sys/kernel/tracing")

GLOBAL = "[global]\nioengine=libaio\ndirect=1\ntime_based=1\nruntime={seconds}\nbs=4k\n"
JOBS = {
    "readers": "[readers]\nrw=randread\niodepth=4\nnumjobs=8\n"
               "[writer]\nrw=write\nbs=64k\niodepth=4\noffset=50%\n",
    "streams": "[random]\nrw=randread\n[first]\nrw=read\nbs=64k\noffset=20%\n"
               "[second]\nrw=read\nbs=64k\noffset=60%\n",
    "depth": "[reads]\nrw=randread\niodepth=64\n[writes]\nrw=randwrite\niodepth=64\n",
    "late": "[readers]\nrw=randread\niodepth=4\nnumjobs=3\n"
            "[writer]\nrw=write\nbs=64k\niodepth=4\noffset=50%\nstartdelay=1\n",
    "starts": "[starts]\nrw=randread\nbs=16k\nnumjobs=8\nsize=4m\noffset_increment=1g\n",
}


@contextlib.contextmanager
def disk(program, folder):
    """The name of a block device over `fullstroke serve`."""
    socket, file = folder / "nbd", folder / "disk"
    file.touch()
    with process(program, "serve", STACK, "--socket", socket):
        until("fullstroke serve", socket.exists)
        with process(sys.executable, ROOT / "tools" / "fuse-bridge.py", socket, file):
            until("the bridge", lambda: f" {file} fuse" in Path("/proc/mounts").read_text())
            loop = run("losetup", "--direct-io=on", "--find", "--show", file).strip()
            try:
                name = Path(loop).name
                queue = Path("/sys/block") / name / "queue"
                (queue / "scheduler").write_text("none")
                # The commands of the device keep this number under every elevator.
                (queue / "nr_requests").write_text(str(DEPTH))
                (queue / "rotational").write_text("1")
                (queue / "max_sectors_kb").write_text("512")
                yield name
            finally:
                run("losetup", "--detach", loop)


def groups(report):
    """By job: requests a second, mean and 99th percentile in ms."""
    found = {}
    for job in report["jobs"]:
        for kind in ("read", "write"):
            side = job[kind]
            if side["total_ios"]:
                # With the time in the submission, in which a process may be blocked.
                latency = side["lat_ns"]
                tail = latency.get("percentile", {}).get("99.000000", 0)
                found.setdefault(job["jobname"], []).append(
                    (side["iops"], latency["mean"] / 1e6, tail / 1e6))
    return {name: (sum(job[0] for job in jobs), statistics.mean(job[1] for job in jobs),
                   max(job[2] for job in jobs)) for name, jobs in found.items()}


def kernels(name, elevator, text, folder):
    scheduler = Path("/sys/block") / name / "queue" / "scheduler"
    # bfq remembers the rate of the device from job to job. A new elevator knows nothing.
    scheduler.write_text("none")
    scheduler.write_text(elevator)
    job = folder / "job.fio"
    head = f"[global]\nfilename=/dev/{name}\nlat_percentiles=1\nclat_percentiles=0"
    job.write_text(text.replace("[global]", head, 1))
    output = run("fio", "--output-format=json", job)
    return groups(json.loads(output[output.index("{"):]))


def ours(program, elevator, text, folder):
    job, stack = folder / "ours.fio", folder / "ours.toml"
    job.write_text(text)
    stack.write_text(f'[workload]\nkind = "fio"\npath = "{job}"\n[host]\nelevator = "{elevator}"\n'
                     # A loop device reserves no command before a request leaves the elevator.
                     f"queue_depth = {DEPTH}\nbudget = false\n"
                     + (f"nr_requests = {REQUESTS}\n" if elevator != "none" else "")
                     + STACK.read_text()[STACK.read_text().index("[volume]"):])
    seeds = []
    for seed in SEEDS:
        table = False
        found = {}
        for line in run(program, "run", stack, "--seed", seed).splitlines():
            words = line.replace(",", "").split()
            table |= line.startswith("job ")
            if table and len(words) > 8 and words[2] in ("read", "write"):
                found.setdefault(words[0], []).append(
                    (float(words[4]), float(words[6]), float(words[8])))
        seeds.append({name: (sum(job[0] for job in jobs),
                             statistics.mean(job[1] for job in jobs),
                             max(job[2] for job in jobs)) for name, jobs in found.items()})
    return {name: tuple(statistics.mean(seed[name][at] for seed in seeds) for at in range(3))
            for name in seeds[0]}


def compare(program, server, elevators, names, seconds):
    misses = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        with disk(server, folder) as name:
            print("| job | elevator | process | IOPS kernel | ours | mean ms kernel | ours "
                  "| p99 ms kernel | ours |")
            print("|---|---|---|---|---|---|---|---|---|")
            for job in names:
                text = GLOBAL.format(seconds=seconds) + JOBS[job]
                if job == "starts":
                    text = text.replace("time_based=1\n", "")
                for elevator in elevators:
                    real = kernels(name, elevator, text, folder)
                    model = ours(program, elevator, text, folder)
                    total = sum(row[0] for row in real.values())
                    for process_name, row in real.items():
                        other = model.get(process_name, (0, 0, 0))
                        miss = abs(row[0] - other[0]) > ALLOWED * total
                        misses += miss
                        print(f"| {job} | {elevator} | {process_name} | {row[0]:.1f} "
                              f"| {other[0]:.1f}{' !' if miss else ''} | {row[1]:.1f} "
                              f"| {other[1]:.1f} | {row[2]:.0f} | {other[2]:.0f} |", flush=True)
    return misses


def host_time(program):
    events = ("block_bio_queue", "block_rq_issue", "block_rq_complete")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        with disk(program, folder) as name:
            (Path("/sys/block") / name / "queue" / "scheduler").write_text("mq-deadline")
            (TRACING / "trace").write_text("")
            for event in events:
                (TRACING / "events" / "block" / event / "enable").write_text("1")
            try:
                run("fio", "--name=x", f"--filename=/dev/{name}", "--ioengine=psync", "--direct=1",
                    "--rw=randread", "--bs=4k", "--time_based", "--runtime=10")
                lines = (TRACING / "trace").read_text().splitlines()
            finally:
                for event in events:
                    (TRACING / "events" / "block" / event / "enable").write_text("0")
    number = f"7,{name.removeprefix('loop')} R"
    times = {"submission": [], "completion": []}
    queued = completed = None
    for line in lines:
        match = re.search(r"(\d+\.\d+): (block_\w+): " + number, line)
        if not match:
            continue
        at, event = float(match[1]) * 1e6, match[2]
        if event == "block_bio_queue":
            if completed is not None:
                times["completion"].append(at - completed)
            queued = at
        elif event == "block_rq_issue" and queued is not None:
            times["submission"].append(at - queued)
        elif event == "block_rq_complete":
            completed = at
    for name, found in times.items():
        if not found:
            raise Impossible("the kernel's block events (tracefs)")
        print(f"{name}: median {statistics.median(found):.0f} us of {len(found)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "target" / "release" / "fullstroke")
    parser.add_argument("--server", help="the program that serves; default: --program")
    parser.add_argument("--elevators", default="none,mq-deadline,kyber,bfq")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--host-time", action="store_true")
    arguments = parser.parse_args()
    server = arguments.server or arguments.program
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        print("kernel-check: skipped; needs Linux and root")
        return 0
    for file in ("/dev/fuse", "/dev/loop-control"):
        if not Path(file).exists():
            print(f"kernel-check: skipped; needs {file}")
            return 0
    try:
        needs("fio", "losetup")
        with contextlib.suppress(OSError):
            # Other work of this machine would make answers late.
            Path("/proc/self/autogroup").write_text("-20")
        if arguments.host_time:
            if not (TRACING / "trace").exists():
                run("mount", "-t", "tracefs", "nodev", TRACING)
            host_time(server)
            return 0
        start = time.monotonic()
        misses = compare(arguments.program, server, arguments.elevators.split(","),
                         arguments.jobs.split(","), arguments.seconds)
        print(f"{misses} shares deviate by more than {ALLOWED:.0%} of the total; "
              f"{time.monotonic() - start:.0f} s")
        return 1 if misses else 0
    except Impossible as reason:
        print(f"kernel-check: {reason}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
