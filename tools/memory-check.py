#!/usr/bin/env python3
"""The kernel's page cache beside ours, on the same calls.

`fullstroke serve` has a device in memory, nbdfuse makes a file of it, and a loop device
lets the kernel have it as a disk. Programs read and write that disk through the page
cache, and what the kernel reads and writes of it is counted in /sys/block. Then the same
calls, at the times at which they were made, go through our cache (the example `replay` of
crates/path/memory), whose memory is what the kernel was seen to hold, and whose device answers
in the time in which the kernel's did.

  zipf     a reader of single pages at random, some more often than others, under a
           memory limit (cgroup v1): pages found, and pages read from the disk
  scan     one that reads a hot part at random and a long part in order, again and again,
           under the same limit
  writer   one that writes at random at a steady rate for 85 s: when and how much is
           flushed (vm.dirty_expire_centisecs, vm.dirty_writeback_centisecs)
  fsync    one that writes at random and calls fsync now and then: pages written by each
  throttle one that writes at random as fast as it may, with vm.dirty_bytes and
           vm.dirty_background_bytes set low for as long: what is dirty, and how much it
           writes (the settings are the host's; left out where they cannot be set)

The kernel decides in part by luck: reclaim sees how long its lists are as they were up to
two seconds ago. So readers are run several times, and each run goes through our cache with
the two seconds begun at several times before it. Given are medians and ranges; a figure
fits if the median of ours is within 10 % of the kernel's or within the kernel's range.

Needs root, Linux, nbdfuse and losetup. The exit status is 1 if a figure does not fit, 2 if
something could not be run.
"""

import argparse
import array
import contextlib
import gc
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from checks import Impossible, needs, process, run, until

ROOT = Path(__file__).resolve().parent.parent
STACK = ROOT / "samples" / "live-check" / "memory.toml"

ALLOWED = 0.10
PAGE = 4096
MIB = 1 << 20
SAMPLE_S = 0.25
# Where nothing is written for so long, one flush ends and another begins.
QUIET_S = 1.0

MEMORY_LIMIT = 96 * MIB
# Default: that of the device. Larger ones make folios that two reads of `scan` use.
READ_AHEAD_KB = 128

# Default number of runs of the readers.
RUNS = 5
# How long before a run the two seconds of the kernel's statistics have begun
# (FLUSH_TIME of mm/memcontrol.c).
PHASES_S = (0.0, 0.5, 1.0, 1.5)

# The dirty limits while `throttle` runs, how long that is, and how long it takes at most
# until it is throttled evenly.
DIRTY_BYTES, DIRTY_BACKGROUND_BYTES = 128 * MIB, 64 * MIB
THROTTLE_S, SETTLED_S = 20, 10


@contextlib.contextmanager
def disk(program, folder, read_ahead_kb):
    """A block device over `fullstroke serve`, by its name in /dev."""
    socket, mount = folder / "nbd", folder / "mount"
    mount.mkdir()
    with process(program, "serve", STACK, "--no-delay", "--socket", socket):
        until("fullstroke serve", socket.exists)
        with process("nbdfuse", mount, f"nbd+unix:///?socket={socket}"):
            until("nbdfuse", (mount / "nbd").exists)
            # The loop device has no page cache of its own below it.
            loop = run("losetup", "--direct-io=on", "--find", "--show", mount / "nbd").strip()
            try:
                yield Disk(loop, read_ahead_kb)
            finally:
                run("losetup", "--detach", loop)
        until("the end of nbdfuse", lambda: not (mount / "nbd").exists())


class Disk:
    """A block device, and what the kernel says of it."""

    def __init__(self, path, read_ahead_kb):
        self.path = path
        self.read_ahead_kb = read_ahead_kb
        self.sys = Path("/sys/block") / Path(path).name
        (self.sys / "queue" / "read_ahead_kb").write_text(str(read_ahead_kb))

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


def sampled(read, samples, end):
    """Samples of seconds since the beginning and what `read` answers, until `end` is set."""
    begun = time.monotonic()
    while not end.wait(SAMPLE_S):
        samples.append((time.monotonic() - begun, read()))


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


class Packed:
    """Calls, so that a process that shares them writes to none of their pages: its own
    memory is to stay as it is while it makes them."""

    OPERATIONS = ["read", "write", "fsync"]

    def __init__(self, calls):
        self.at = array.array("d", (-1.0 if at is None else at for at, *_ in calls))
        self.operations = bytes(self.OPERATIONS.index(operation) for _, operation, *_ in calls)
        self.offsets = array.array("q", (offset for *_, offset, _ in calls))
        self.sizes = array.array("q", (size for *_, size in calls))
        self.made = array.array("d", bytes(8 * len(calls)))

    def log(self, path, marks, count):
        """Writes when each of the first was made, and the marks."""
        with open(path, "w") as lines:
            for number in range(count):
                if number in marks:
                    lines.write(f"{self.made[number]:.6f} mark\n")
                operation, size = self.OPERATIONS[self.operations[number]], self.sizes[number]
                lines.write(f"{self.made[number]:.6f} {operation}" + (f" {self.offsets[number]} {size}\n" if size else "\n"))


def make_calls(path, calls, marks, ready, end_s):
    """Makes the calls, for so many seconds at most, and notes when each was made; answers
    how many. `marks` says before which of them what is asked by `ready`, a pair of pipes."""
    device = os.open(path, os.O_RDWR)
    data = b"\7" * PAGE
    begun = time.monotonic()
    number = -1
    for number in range(len(calls.at)):
        if number in marks:
            os.write(ready[1], b"m")
            os.read(ready[0], 1)
        now = time.monotonic() - begun
        if now > end_s:
            break
        if calls.at[number] > now:
            time.sleep(calls.at[number] - now)
            now = time.monotonic() - begun
        calls.made[number] = now
        operation = calls.operations[number]
        if operation == 0:
            os.pread(device, calls.sizes[number], calls.offsets[number])
        elif operation == 1:
            os.pwrite(device, data, calls.offsets[number])
        else:
            os.fsync(device)
    else:
        number += 1
    # The last mark: all calls have been made.
    os.write(ready[1], b"m")
    os.read(ready[0], 1)
    os.close(device)
    return number


def by_kernel(disk, calls, marks, folder, group=None, sample=None, end_s=float("inf")):
    """Has a process of its own make the calls. Answers the counts of the disk before, at
    the marks and after, samples of what was written or of what `sample` answers, and the
    bytes that were held at the end."""
    calls = Packed(calls)
    there, back = os.pipe(), os.pipe()
    log = folder / "calls"
    counts = [disk.counts()]
    gc.freeze()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if group:
                (group.path / "cgroup.procs").write_text(str(os.getpid()))
            gc.disable()
            count = make_calls(disk.path, calls, marks, (back[0], there[1]), end_s)
            calls.log(log, marks, count)
            status = 0
        finally:
            os._exit(status)
    samples, end = [], threading.Event()
    sample = sample or (lambda: disk.counts()["written"])
    sampler = threading.Thread(target=sampled, args=(sample, samples, end))
    sampler.start()
    held = 0
    try:
        for _ in [*marks, "end"]:
            os.read(there[0], 1)
            counts.append(disk.counts())
            if group and len(counts) == len(marks) + 2:
                # To read it brings the kernel's statistics up to date: not before the end.
                held = group.cached()
            os.write(back[1], b"g")
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        end.set()
        sampler.join()
    for descriptor in (*there, *back):
        os.close(descriptor)
    if status != 0:
        raise Impossible("the program failed")
    return counts, samples, held


def by_us(replay, folder, keys, counts, begin_s=0.0):
    """The same calls through our cache, begun so late."""
    files = folder / "keys.json", folder / "calls"
    files[0].write_text(json.dumps(keys))
    busy_ms, requests = (counts[-1][key] - counts[0][key] for key in ("busy_ms", "requests"))
    return json.loads(run(replay, *files, 1000 * busy_ms / requests, begin_s))


class Table:
    """Rows of what, kernel's, ours and their ratio; how many are off."""

    def __init__(self):
        self.off = 0
        print(f"{'program':8}  {'figure':44}  {'kernel':>10}  {'ours':>10}  {'ratio':>6}")

    def rows(self, program, figure, kernel, ours, digits=0):
        """Of several runs: medians, and the ranges below them."""
        within = min(kernel) <= statistics.median(ours) <= max(kernel)
        self.row(program, figure, statistics.median(kernel), statistics.median(ours), digits, within)
        print(f"{'':8}  {'  from':44}  {min(kernel):10.{digits}f}  {min(ours):10.{digits}f}")
        print(f"{'':8}  {'  to':44}  {max(kernel):10.{digits}f}  {max(ours):10.{digits}f}", flush=True)

    def row(self, program, figure, kernel, ours, digits=0, within=False):
        ratio = ours / kernel if kernel else (1.0 if ours == 0 else float("inf"))
        fits = within or abs(ratio - 1) <= ALLOWED
        self.off += not fits
        print(f"{program:8}  {figure:44}  {kernel:10.{digits}f}  {ours:10.{digits}f}  {ratio:6.3f} {'ok' if fits else 'OFF'}", flush=True)

    def note(self, program, text):
        print(f"{program:8}  {text}", flush=True)


def keys_of(disk, size, **others):
    keys = {"read_ahead_kb": disk.read_ahead_kb, "max_sectors_kb": disk.request_kb()}
    return {"size": size // PAGE * PAGE, "read_ahead": keys, **others}


def readers(name, calls, disk, replay, folder, table, runs):
    """Pages found and read, from the half of the calls on and in all."""
    half = len(calls) // 2
    asked = lambda some: sum(size for _, _, _, size in some) // PAGE
    spans = {"second half": (asked(calls[half:]), 1, 2), "all": (asked(calls), 0, 2)}
    kernel, ours, held = {span: [] for span in spans}, {span: [] for span in spans}, []
    others = {}
    for number in range(runs):
        with Group() as group, disk.opened():
            counts, samples, bytes_held = by_kernel(disk, calls, [half], folder, group)
        held.append(bytes_held / MIB)
        table.note(name, f"run {number + 1}: {samples[-1][0] if samples else 0.0:.1f} s, {held[-1]:.1f} MiB held")
        keys = keys_of(disk, bytes_held)
        answers = [by_us(replay, folder, keys, counts, phase)["marks"] for phase in PHASES_S]
        for span, (_, begin, end) in spans.items():
            kernel[span].append(counts[end]["read"] - counts[begin]["read"])
            ours[span] += [pages_read(marks, begin, end) for marks in answers]
        if number == 0:
            for policy in ["lru", "2q", "arc", "s3fifo"]:
                marks = by_us(replay, folder, {**keys, "replacement": policy}, counts)["marks"]
                others[policy] = pages_read(marks, 0, 2)
    for span, (pages, *_) in spans.items():
        found = lambda read: [100 * (1 - count / pages) for count in read]
        table.rows(name, f"pages found of 100, {span}", found(kernel[span]), found(ours[span]), 2)
        table.rows(name, f"pages read, {span}", kernel[span], ours[span])
    others = [f"{policy} {read}" for policy, read in others.items()]
    table.note(name, f"other policies would read in the first run, all: {', '.join(others)}")


def pages_read(marks, begin, end):
    """Pages that ours has had read from one mark to another; the beginning is the first."""
    marks = [{"misses": 0, "ahead": 0}, *marks]
    return sum(marks[end][key] - marks[begin][key] for key in ("misses", "ahead"))


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


def writers(name, calls, disk, replay, folder, table, _):
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


def throttle():
    """Single pages anywhere in 4 GiB, more of them than there is time for."""
    draw = random.Random(5)
    return [(None, "write", draw.randrange(4096 * MIB // PAGE) * PAGE, PAGE) for _ in range(800_000)]


class DirtyLimits:
    """The host's limits of dirty pages, low for as long as the block lasts."""

    KEYS = {"dirty_bytes": DIRTY_BYTES, "dirty_background_bytes": DIRTY_BACKGROUND_BYTES}
    # To set one of a pair clears the other: these are what bytes stand for otherwise.
    RATIOS = {"dirty_bytes": "dirty_ratio", "dirty_background_bytes": "dirty_background_ratio"}

    def __enter__(self):
        self.restore = []
        for key, wanted in self.KEYS.items():
            bytes_before = int(self.path(key).read_text())
            other = key if bytes_before else self.RATIOS[key]
            before = self.path(other).read_text()
            try:
                self.path(key).write_text(str(wanted))
            except OSError:
                self.__exit__()
                raise
            self.restore.append((other, before))
        return self

    def __exit__(self, *_):
        for key, before in self.restore:
            self.path(key).write_text(before)

    @staticmethod
    def path(key):
        return Path("/proc/sys/vm") / key


def dirty_of(device_numbers, debug):
    """Pages of a device that are dirty or being written (mm/backing-dev.c), and of the host."""
    stats = (debug / "bdi" / device_numbers / "stats").read_text().split()
    pages = lambda name: int(stats[stats.index(name) + 1]) * 1024 // PAGE
    host = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return pages("BdiWriteback:") + pages("BdiReclaimable:"), int(host["nr_dirty"]) + int(host["nr_writeback"])


@contextlib.contextmanager
def debug_files(folder):
    """Where debugfs is; mounted for as long if it is not."""
    usual = Path("/sys/kernel/debug")
    if (usual / "bdi").is_dir():
        yield usual
        return
    place = folder / "debug"
    place.mkdir()
    run("mount", "-t", "debugfs", "none", place)
    try:
        yield place
    finally:
        run("umount", place)


def throttled(name, calls, disk, replay, folder, table, _):
    """What is dirty while a writer is throttled, and its rate."""
    with contextlib.ExitStack() as stack:
        try:
            debug = stack.enter_context(debug_files(folder))
            stack.enter_context(disk.opened())
            stack.enter_context(DirtyLimits())
        except (OSError, Impossible) as reason:
            table.note(name, f"left out: the dirty limits cannot be set or seen ({reason})")
            return
        numbers = (disk.sys / "dev").read_text().strip()
        sample = lambda: (disk.counts()["written"], *dirty_of(numbers, debug))
        counts, samples, _ = by_kernel(disk, calls, [], folder, None, sample, THROTTLE_S)
    samples = [(at, written - counts[0]["written"], dirty, host) for at, (written, dirty, host) in samples]
    made = [float(line.split()[0]) for line in (folder / "calls").read_text().splitlines()]
    (folder / "calls").write_text("".join(f"0 write {offset} {size}\n" for _, _, offset, size in calls))
    size = 100 * DIRTY_BYTES // 20
    answer = by_us(replay, folder, keys_of(disk, size), counts)
    ours = [(at, dirty) for at, dirty, _ in answer["samples"] if at < THROTTLE_S]
    our_made = [(at, count) for at, _, count in answer["samples"] if at < THROTTLE_S]
    others = [host - dirty for _, _, dirty, host in samples]
    table.note(name, f"dirty of others meanwhile: {statistics.median(others):.0f} pages, {max(others)} at most")
    share = lambda some: [dirty for at, dirty in some if at >= SETTLED_S]
    kernel_dirty, our_dirty = share([(at, dirty) for at, _, dirty, _ in samples]), share(ours)
    table.row(name, "calls in the first 5 s", sum(at < 5 for at in made), at_second(our_made, 5))
    table.row(name, f"dirty from {SETTLED_S} s on, median, pages", statistics.median(kernel_dirty), statistics.median(our_dirty))
    table.row(name, f"dirty from {SETTLED_S} s on, at most, pages", max(kernel_dirty), max(our_dirty))
    rate = lambda end, begin: (end - begin) / (THROTTLE_S - SETTLED_S)
    table.row(name, f"calls a second from {SETTLED_S} s on", rate(len(made), sum(at < SETTLED_S for at in made)),
              rate(at_second(our_made, THROTTLE_S), at_second(our_made, SETTLED_S)))
    for second in range(0, THROTTLE_S, 2):
        near = min(samples, key=lambda sample: abs(sample[0] - second))
        table.note(name, f"at {second:2} s dirty: kernel {near[2]}, ours {at_second(ours, second)}")


def at_second(samples, second):
    """The last sample's value at a time."""
    return max(((at, value) for at, value in samples if at <= second), default=(0, 0))[1]


PROGRAMS = {"zipf": (zipf, readers), "scan": (scan, readers), "writer": (writer, writers), "fsync": (fsync, writers), "throttle": (throttle, throttled)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", choices=[[], *PROGRAMS], metavar="PROGRAM",
                        help=f"any of {', '.join(PROGRAMS)}; default all")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"number of runs of the readers; default {RUNS}")
    parser.add_argument("--read-ahead-kb", type=int, default=READ_AHEAD_KB,
                        help=f"read-ahead of the device; default {READ_AHEAD_KB}")
    release = ROOT / "target" / "release"
    parser.add_argument("--program", type=Path, default=release / "fullstroke",
                        help="fullstroke; default target/release/fullstroke")
    parser.add_argument("--replay", type=Path, default=release / "examples" / "replay",
                        help="the example of crates/path/memory; default target/release/examples/replay")
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
        with tempfile.TemporaryDirectory() as folder, disk(arguments.program, Path(folder), arguments.read_ahead_kb) as device:
            for name in arguments.programs or PROGRAMS:
                calls, compare = PROGRAMS[name]
                compare(name, calls(), device, arguments.replay, Path(folder), table, arguments.runs)
    except (Impossible, PermissionError) as reason:
        print(f"memory-check: {reason}", file=sys.stderr)
        return 2
    print(f"\n{table.off} figures do not fit" if table.off else "\nall figures fit")
    print(f"took {time.monotonic() - begun:.0f} s; load of this host at the end: {os.getloadavg()[0]:.1f}")
    return 1 if table.off else 0


if __name__ == "__main__":
    sys.exit(main())
