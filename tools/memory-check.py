#!/usr/bin/env python3
"""The kernel's page cache beside ours, on the same calls.

`fullstroke serve` has a device in memory, nbdfuse makes a file of it, and a loop device
lets the kernel have it as a disk. Programs read and write that disk through the page
cache, and what the kernel reads and writes of it is counted in /sys/block. Then the same
calls, at the times at which they were made, go through our cache (the example `replay` of
crates/memory), whose memory is what the kernel was seen to hold, and whose device answers
in the time in which the kernel's did.

  zipf     a reader of single pages at random, some more often than others, under a
           memory limit (cgroup v1): pages found, and pages read from the disk
  scan     one that reads a hot part at random and a long part in order, again and again,
           under the same limit
  writer   one that writes at random at a steady rate for 85 s: when and how much is
           flushed (vm.dirty_expire_centisecs, vm.dirty_writeback_centisecs)
  fsync    one that writes at random and calls fsync now and then: pages written by each

Needs root, Linux, nbdfuse and losetup. The exit status is 1 if a figure is not within
10 %, 2 if something could not be run.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from checks import Impossible, needs, run

ROOT = Path(__file__).resolve().parent.parent
STACK = ROOT / "samples" / "live-check" / "memory.toml"

ALLOWED = 0.10
PAGE = 4096
MIB = 1 << 20
PATIENCE_S = 60
SAMPLE_S = 0.25
# Where nothing is written for so long, one flush ends and another begins.
QUIET_S = 1.0

MEMORY_LIMIT = 96 * MIB
READ_AHEAD_KB = 128


def until(found, what):
    """What `found` answers as soon as it answers something."""
    end = time.monotonic() + PATIENCE_S
    while not (answer := found()):
        if time.monotonic() > end:
            raise Impossible(f"{what}: not in {PATIENCE_S} s")
        time.sleep(0.02)
    return answer


@contextlib.contextmanager
def process(*arguments):
    """A program in the background, which ends with the block."""
    program = subprocess.Popen([str(argument) for argument in arguments],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield program
    finally:
        program.terminate()
        try:
            program.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


@contextlib.contextmanager
def disk(program, folder):
    """A block device over `fullstroke serve`, by its name in /dev."""
    socket, mount = folder / "nbd", folder / "mount"
    mount.mkdir()
    with process(program, "serve", STACK, "--no-delay", "--socket", socket):
        until(socket.exists, "fullstroke serve")
        with process("nbdfuse", mount, f"nbd+unix:///?socket={socket}"):
            until((mount / "nbd").exists, "nbdfuse")
            # The loop device has no page cache of its own below it.
            loop = run("losetup", "--direct-io=on", "--find", "--show", mount / "nbd").strip()
            try:
                yield Disk(loop)
            finally:
                run("losetup", "--detach", loop)
        until(lambda: not (mount / "nbd").exists(), "nbdfuse ends")


class Disk:
    """A block device, and what the kernel says of it."""

    def __init__(self, path):
        self.path = path
        self.sys = Path("/sys/block") / Path(path).name
        (self.sys / "queue" / "read_ahead_kb").write_text(str(READ_AHEAD_KB))

    def request_kb(self):
        return int((self.sys / "queue" / "max_sectors_kb").read_text())

    @contextlib.contextmanager
    def opened(self):
        """Keeps it open. As the last one closes it the kernel writes what is dirty and drops
        all that it holds; its inode is clean then, which an fsync does not make it."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            yield
        finally:
            os.close(descriptor)

    def counts(self):
        """Requests, pages read and written, and milliseconds in which something was under
        way: the kernel's Documentation/block/stat.rst."""
        fields = [int(field) for field in (self.sys / "stat").read_text().split()]
        pages = lambda sectors: sectors * 512 // PAGE
        return {"requests": fields[0] + fields[4], "read": pages(fields[2]), "written": pages(fields[6]),
                "busy_ms": fields[9]}


def sampled(disk, seconds, end):
    """Samples of seconds since the beginning and pages written, until `end` is set."""
    samples = []
    begun = time.monotonic()
    while not end.wait(SAMPLE_S):
        samples.append((time.monotonic() - begun, disk.counts()["written"]))
    seconds.extend(samples)


class Group:
    """A memory cgroup with a limit, below this process's own."""

    def __init__(self):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = [line.split(":", 2)[2] for line in lines if ":memory:" in line]
        root = Path("/sys/fs/cgroup/memory")
        if not own or not root.is_dir():
            raise Impossible("no memory controller of cgroup v1")
        self.path = root / own[0].lstrip("/") / f"fullstroke-{os.getpid()}"

    def __enter__(self):
        self.path.mkdir()
        (self.path / "memory.limit_in_bytes").write_text(str(MEMORY_LIMIT))
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            (self.path / "memory.force_empty").write_text("0")
        self.path.rmdir()

    def cached(self):
        """Bytes of page cache that it is charged with."""
        for line in (self.path / "memory.stat").read_text().splitlines():
            name, value = line.split()
            if name == "cache":
                return int(value)
        raise Impossible("memory.stat without cache")


# Programs: calls of (seconds since the beginning or None, operation, offset, bytes).

def zipf():
    """Pages of 256 MiB; a page's rank is a power of a uniform number, and ranks lie
    anywhere."""
    draw = random.Random(1)
    pages = 256 * MIB // PAGE
    places = list(range(pages))
    draw.shuffle(places)
    return [(None, "read", places[int(pages * draw.random() ** 3)] * PAGE, PAGE) for _ in range(250_000)]


def scan():
    """Of ten reads nine are of a page of the first 48 MiB at random, one is of the next 64
    KiB of the 128 MiB behind them."""
    draw = random.Random(2)
    hot, long, piece = 48 * MIB, 128 * MIB, 64 << 10
    calls = []
    for number in range(12_000):
        calls += [(None, "read", draw.randrange(hot // PAGE) * PAGE, PAGE) for _ in range(9)]
        calls.append((None, "read", hot + number * piece % long, piece))
    return calls


def writer():
    """4 MiB a second for 85 s, in single pages anywhere in 512 MiB: two flushes, and the third
    is not near."""
    draw = random.Random(3)
    rate, pages = 4 * MIB // PAGE, 512 * MIB // PAGE
    return [(number / rate, "write", draw.randrange(pages) * PAGE, PAGE) for number in range(85 * rate)]


def fsync():
    """2 MiB a second for 60 s, in single pages anywhere in 16 MiB, and an fsync every 7 s."""
    draw = random.Random(4)
    rate, pages = 2 * MIB // PAGE, 16 * MIB // PAGE
    calls = []
    for number in range(60 * rate):
        calls.append((number / rate, "write", draw.randrange(pages) * PAGE, PAGE))
        if number % (7 * rate) == 7 * rate - 1:
            calls.append((number / rate, "fsync", 0, 0))
    return calls


def make_calls(path, calls, marks, ready, log):
    """Makes the calls; writes when each was made. `marks` says before which of them what
    is asked by `ready`, a pair of pipes."""
    device = os.open(path, os.O_RDWR)
    data = b"\7" * PAGE
    begun = time.monotonic()
    with open(log, "w") as lines:
        for number, (at, operation, offset, size) in enumerate(calls):
            if number in marks:
                lines.write(f"{time.monotonic() - begun:.6f} mark\n")
                os.write(ready[1], b"m")
                os.read(ready[0], 1)
            now = time.monotonic() - begun
            if at is not None and at > now:
                time.sleep(at - now)
                now = time.monotonic() - begun
            if operation == "read":
                os.pread(device, size, offset)
            elif operation == "write":
                os.pwrite(device, data, offset)
            else:
                os.fsync(device)
            lines.write(f"{now:.6f} {operation}" + (f" {offset} {size}\n" if size else "\n"))
    os.close(device)


def by_kernel(disk, calls, marks, folder, group=None):
    """Has a process of its own make the calls. Answers the counts of the disk before, at
    the marks and after, samples of what was written, and the bytes that were held."""
    there, back = os.pipe(), os.pipe()
    log = folder / "calls"
    counts = [disk.counts()]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if group:
                (group.path / "cgroup.procs").write_text(str(os.getpid()))
            make_calls(disk.path, calls, marks, (back[0], there[1]), log)
            status = 0
        finally:
            os._exit(status)
    samples, end = [], threading.Event()
    sampler = threading.Thread(target=sampled, args=(disk, samples, end))
    sampler.start()
    held = 0
    try:
        for _ in marks:
            os.read(there[0], 1)
            counts.append(disk.counts())
            held = group.cached() if group else 0
            os.write(back[1], b"g")
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        end.set()
        sampler.join()
    counts.append(disk.counts())
    if group:
        held = (held + group.cached()) // 2
    for descriptor in (*there, *back):
        os.close(descriptor)
    if status != 0:
        raise Impossible("the program failed")
    return counts, samples, held


def by_us(replay, folder, keys, counts):
    """The same calls through our cache."""
    files = folder / "keys.json", folder / "calls"
    files[0].write_text(json.dumps(keys))
    busy_ms, requests = (counts[-1][key] - counts[0][key] for key in ("busy_ms", "requests"))
    return json.loads(run(replay, *files, 1000 * busy_ms / requests))


class Table:
    """Rows of what, kernel's, ours and their ratio; how many are off."""

    def __init__(self):
        self.off = 0
        print(f"{'program':8}  {'figure':44}  {'kernel':>10}  {'ours':>10}  {'ratio':>6}")

    def row(self, program, figure, kernel, ours, digits=0):
        ratio = ours / kernel if kernel else (1.0 if ours == 0 else float("inf"))
        fits = abs(ratio - 1) <= ALLOWED
        self.off += not fits
        print(f"{program:8}  {figure:44}  {kernel:10.{digits}f}  {ours:10.{digits}f}  {ratio:6.3f} {'ok' if fits else 'OFF'}", flush=True)

    def note(self, program, text):
        print(f"{program:8}  {text}", flush=True)


def keys_of(disk, size, **others):
    keys = {"read_ahead_kb": READ_AHEAD_KB, "max_sectors_kb": disk.request_kb()}
    return {"size": size // PAGE * PAGE, "read_ahead": keys, **others}


def readers(name, calls, disk, replay, folder, table):
    """Pages found and read, from the half of the calls on and in all."""
    half = len(calls) // 2
    with Group() as group:
        with disk.opened():
            counts, _, held = by_kernel(disk, calls, [half], folder, group)
    asked = lambda some: sum(size for _, _, _, size in some) // PAGE
    spans = [("second half", asked(calls[half:]), 1, 2), ("all", asked(calls), 0, 2)]
    answers = {}
    for policy in ["lru2", "lru", "2q", "arc", "s3fifo"]:
        answers[policy] = by_us(replay, folder, keys_of(disk, held, replacement=policy), counts)["marks"]
    table.note(name, f"the kernel holds {held / MIB:.1f} MiB")
    for span, pages, begin, end in spans:
        read = counts[end]["read"] - counts[begin]["read"]
        marks = [{"misses": 0, "ahead": 0}, *answers["lru2"]]
        ours = sum(marks[end][key] - marks[begin][key] for key in ("misses", "ahead"))
        table.row(name, f"pages found of 100, {span}", 100 * (1 - read / pages), 100 * (1 - ours / pages), 2)
        table.row(name, f"pages read, {span}", read, ours)
    others = [f"{policy} {marks[-1]['misses'] + marks[-1]['ahead']}" for policy, marks in answers.items() if policy != "lru2"]
    table.note(name, f"other policies would read, all: {', '.join(others)}")


def flushes(samples):
    """From (seconds, pages so far): (when it began, pages) of each flush."""
    found = []
    last, before = None, samples[0][1]
    for seconds, pages in samples[1:]:
        if pages > before:
            if last is None or seconds - last > QUIET_S:
                found.append([seconds, 0])
            found[-1][1] += pages - before
            last = seconds
        before = pages
    return found


def pairs(kernel, model):
    """Flushes that begin near each other; None where there is no other."""
    kernel, model, found = list(kernel), list(model), []
    while kernel or model:
        theirs, our = kernel[0] if kernel else None, model[0] if model else None
        if theirs and our and abs(theirs[0] - our[0]) <= max(QUIET_S, ALLOWED * theirs[0]):
            found.append((kernel.pop(0), model.pop(0)))
        elif our is None or (theirs and theirs[0] < our[0]):
            found.append((kernel.pop(0), None))
        else:
            found.append((None, model.pop(0)))
    return found


def cumulative(written):
    """As the kernel's is sampled."""
    samples, total = [(0.0, 0)], 0
    for seconds, pages in sorted(written):
        total += pages
        samples.append((seconds, total))
    return samples


def writers(name, calls, disk, replay, folder, table):
    """When flushes begin, and of how many pages they are."""
    with disk.opened():
        counts, samples, _ = by_kernel(disk, calls, [], folder)
    ours = by_us(replay, folder, keys_of(disk, 8 << 30), counts)
    kernel, model = flushes([(0.0, counts[0]["written"]), *samples]), flushes(cumulative(ours["written"]))
    for number, (theirs, our) in enumerate(pairs(kernel, model), 1):
        if theirs and our:
            table.row(name, f"flush {number} begins, s", theirs[0], our[0], 2)
        else:
            table.note(name, f"flush {number} begins at {(theirs or our)[0]:.2f} s, {'ours' if our else 'the kernel'} only")
        table.row(name, f"flush {number}, pages", theirs[1] if theirs else 0, our[1] if our else 0)
    last = counts[-1]["written"] - counts[0]["written"]
    table.row(name, "pages written, all", last, sum(pages for _, pages in ours["written"]))


PROGRAMS = {"zipf": (zipf, readers), "scan": (scan, readers), "writer": (writer, writers), "fsync": (fsync, writers)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", choices=[[], *PROGRAMS], metavar="PROGRAM",
                        help=f"any of {', '.join(PROGRAMS)}; all unless said")
    release = ROOT / "target" / "release"
    parser.add_argument("--program", type=Path, default=release / "fullstroke",
                        help="fullstroke; target/release/fullstroke unless said")
    parser.add_argument("--replay", type=Path, default=release / "examples" / "replay",
                        help="the example of crates/memory; target/release/examples/replay unless said")
    arguments = parser.parse_args()
    # Leaves through the doors: no device stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    begun = time.monotonic()
    try:
        needs(arguments.program, arguments.replay, "nbdfuse", "losetup")
        if os.geteuid() != 0:
            raise Impossible("needs root: it makes a block device and a cgroup")
        print(f"Linux {os.uname().release}; load of this host at the beginning: {os.getloadavg()[0]:.1f}\n", flush=True)
        table = Table()
        with tempfile.TemporaryDirectory() as folder, disk(arguments.program, Path(folder)) as device:
            for name in arguments.programs or PROGRAMS:
                calls, compare = PROGRAMS[name]
                compare(name, calls(), device, arguments.replay, Path(folder), table)
    except (Impossible, PermissionError) as reason:
        print(f"memory-check: {reason}", file=sys.stderr)
        return 2
    print(f"\n{table.off} figures are not within {ALLOWED:.0%}" if table.off else f"\nall figures are within {ALLOWED:.0%}")
    print(f"took {time.monotonic() - begun:.0f} s; load of this host at the end: {os.getloadavg()[0]:.1f}")
    return 1 if table.off else 0


if __name__ == "__main__":
    sys.exit(main())
