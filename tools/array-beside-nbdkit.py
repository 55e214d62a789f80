#!/usr/bin/env python3
"""`fullstroke array` beside `nbdkit file`, where disks decide.

Four drives are served by `fullstroke serve` at speed 1, shown as files by nbdfuse and as
block devices by loop devices with direct I/O; arrays are made of them, and fio loads each
array, and nbdkit on one of the same devices, over NBD. Rates are of bytes over the time
that fio takes, its start and its last flush included. A block device's pages
leave the cache when it is closed, so that nobody reads what the host still has; of what
nbdkit writes the cache takes as much as it likes until the flush at the end.

Needs root (loop devices, /dev/fuse), fio, nbdkit, nbdfuse and losetup (tools/clients.sh).
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from checks import Impossible, block_device, needs, run, until

MEMBERS = 4
JOBS = {
    "1 MiB reads in order": ["--rw=read", "--bs=1m", "--iodepth=8", "--size=256m"],
    "1 MiB writes in order": ["--rw=write", "--bs=1m", "--iodepth=8", "--size=256m", "--end_fsync=1"],
    "4 KiB reads at random": ["--rw=randread", "--bs=4k", "--iodepth=16", "--size=900m", "--io_size=8m"],
    "4 KiB writes at random": ["--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=900m", "--io_size=8m",
                               "--end_fsync=1"],
    "4 KiB writes at random, each flushed": ["--rw=randwrite", "--bs=4k", "--iodepth=1", "--size=900m",
                                             "--io_size=1m", "--fsync=1"],
}


@contextlib.contextmanager
def started(arguments, socket):
    process = subprocess.Popen([str(one) for one in arguments], stdout=subprocess.DEVNULL)
    try:
        until(arguments[0], socket.exists)
        yield process
    finally:
        process.terminate()
        process.wait()
        socket.unlink(missing_ok=True)


def disk(stack_socket, name, folder):
    """A served drive as a block device."""
    return block_device(f"nbd+unix:///{name}?socket={stack_socket}", folder / f"shown-{name}")


def load(job, socket):
    """Requests a second, MB a second and mean response in ms."""
    began = time.monotonic()
    text = run("fio", "--name=x", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", "--randseed=7",
               "--output-format=json", *JOBS[job])
    seconds = time.monotonic() - began
    report = json.loads(text[text.index("{"):])["jobs"][0]
    if report["error"]:
        raise Impossible(f"fio: error {report['error']} in {job}")
    side = report["read" if "read" in job else "write"]
    return side["total_ios"] / seconds, side["io_bytes"] / seconds / 1e6, side["clat_ns"]["mean"] / 1e6


@contextlib.contextmanager
def array(program, layout, devices, folder):
    socket, made = folder / f"{layout}.sock", folder / f"{layout}.made"
    keys = [] if layout == "jbod" else ["--chunk", "64KiB"]
    if not made.exists():
        run(program, "array", "create", layout, *devices, "--layout", layout, *keys, "--member-size", "1GiB",
            "--force")
        made.touch()
    with started([program, "array", "assemble", *devices, "--socket", socket], socket):
        # Parity is filled in first.
        until("parity", lambda: json.loads(run(program, "array", "status", "--json", socket))["state"] == "whole")
        yield socket
        run(program, "array", "stop", socket)


@contextlib.contextmanager
def nbdkit(device, folder):
    socket = folder / "nbdkit.sock"
    with started(["nbdkit", "--foreground", "--unix", socket, "file", device], socket):
        yield socket


def measure(arguments, folder):
    stacks = []
    for index in range(MEMBERS):
        stack = folder / f"d{index}.toml"
        stack.write_text(f'title = "disk {index}"\nseed = {index}\n\n[volume]\ndrive = "{arguments.drive}"\n')
        stacks.append(stack)
    socket = folder / "drives.sock"
    with contextlib.ExitStack() as opened:
        opened.enter_context(started([arguments.program, "serve", *stacks, "--socket", socket], socket))
        devices = [opened.enter_context(disk(socket, f"d{index}", folder)) for index in range(MEMBERS)]
        targets = {"nbdkit, one disk": lambda: nbdkit(devices[0], folder)}
        if "jbod" in arguments.layouts:
            targets["array, the same disk (jbod)"] = lambda: array(arguments.program, "jbod", devices[:1], folder)
        for layout in (one for one in arguments.layouts if one != "jbod"):
            targets[f"array, {layout} of {MEMBERS}"] = (
                lambda layout=layout: array(arguments.program, layout, devices, folder))
        print("| load | target | requests/s | MB/s | mean ms |\n|---|---|---:|---:|---:|")
        for target, open_target in targets.items():
            for job in JOBS:
                with open_target() as where:
                    rate, mb, mean = load(job, where)
                print(f"| {job} | {target} | {rate:.0f} | {mb:.1f} | {mean:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=Path("target/release/fullstroke"))
    parser.add_argument("--drive", default="seagate-cheetah-15k7")
    parser.add_argument("--layouts", nargs="+", default=["jbod", "raid0", "raid5"])
    arguments = parser.parse_args()
    try:
        needs("fio", "nbdkit", "nbdfuse", "fusermount3", "losetup")
        with tempfile.TemporaryDirectory() as folder:
            measure(arguments, Path(folder))
    except Impossible as why:
        print(why, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
