"""C-3: readers of 16 KiB at random (section 5.1.1, figure 5.1)."""

from arrays import SCHEDULERS
from claims import ALIKE, NEAR, Row, is_alike, percent, span
from readers import ARRAYS, EVERY_LOAD, LARGE, LOADS, MEDIUM, SMALL, Readers

CLAIM = "C-3"

# "2 to 15 times worse".
IDLING_LEAST, IDLING_MOST = 2, 15

# Where deadline begins to fall, and where it has become FIFO.
FALLS_FROM_MS, FIFO_FROM_MS = 250, 500

# With more processes than this the host has something to order.
DEPTH = 32


def rows(laboratory):
    """The parts of the claim."""
    readers = Readers(laboratory, "random-readers", SCHEDULERS)
    return [
        alike(readers, "noop", "FIFO"),
        reordering(readers),
        alike(readers, "SSTF", "SCAN"),
        first_on_arrays(readers),
        first_on_disks(readers),
        idling(readers),
        alike(readers, "AS", "AS, no pause"),
        *avalanche(laboratory, readers),
    ]


def alike(readers, one, other):
    """Two schedulers that are the same."""
    ratios = [readers.ratio(array, one, other, load) for array, load in readers.points(ARRAYS)]
    holds = all(is_alike(ratio, 1) for ratio in ratios)
    obtained = f"{span([ratio - 1 for ratio in ratios], percent)} in bandwidth"
    return Row(CLAIM, f"{one} = {other}", "practically identical", obtained, holds)


def reordering(readers):
    """Reordering schedulers give more than noop and FIFO."""
    points = [
        (array, scheduler, load)
        for array, load in readers.points(ARRAYS, above=DEPTH)
        for scheduler in ("SCAN", "SSTF", "AS")
    ]
    better = [point for point in points if readers.is_better(point[0], point[1], "FIFO", point[2])]
    gains = [readers.ratio(array, scheduler, "FIFO", load) - 1 for array, scheduler, load in points]
    obtained = f"in {len(better)} of {len(points)} cases beyond the interval; {span(gains, percent)}"
    return Row(CLAIM, "SCAN, SSTF and AS above FIFO beyond 32 processes", "always", obtained,
               len(better) == len(points))


def first_on_arrays(readers):
    """FIFO with the hardware's whole queue is best on arrays."""
    points = readers.points(MEDIUM + LARGE + SMALL[2:], above=DEPTH)
    others = [scheduler for scheduler in SCHEDULERS if scheduler != "deep FIFO"]
    margins = [
        readers.ratio(array, "deep FIFO", readers.best(array, others, load), load) - 1 for array, load in points
    ]
    first = sum(margin > 0 for margin in margins)
    obtained = f"in {first} of {len(points)} cases; {span(margins, percent)} to the best other"
    return Row(CLAIM, "arrays: deep-queue FIFO best", "always, clearly", obtained, first == len(points))


def first_on_disks(readers):
    """V(R) is best on one disk; deep FIFO ends at 64 processes."""
    points = readers.points(SMALL[:2], above=64)
    found = [readers.best(array, SCHEDULERS, load) for array, load in points]
    first = sum(name in ("SCAN", "SSTF") for name in found)
    growth = [readers.ratio_of_loads(array, "deep FIFO", LOADS[-1], 64) - 1 for array in SMALL[:2]]
    obtained = f"in {first} of {len(points)} cases (else {names(found)}); {span(growth, percent)} from 64 to 256"
    holds = first == len(points) and all(gain <= ALIKE for gain in growth)
    return Row(CLAIM, "one disk: V(R) best beyond 64 processes, where deep FIFO scales no more", "generally",
               obtained, holds)


def names(found):
    """The schedulers that came first in V(R)'s place."""
    others = sorted({name for name in found if name not in ("SCAN", "SSTF")})
    return ", ".join(others) or "none"


def idling(readers):
    """CFQ with its idle window gives a fraction."""
    others = [scheduler for scheduler in SCHEDULERS if scheduler != "CFQ"]
    ratios = [
        readers.ratio(array, other, "CFQ", load) for array, load in readers.points(ARRAYS) for other in others
    ]
    holds = min(ratios) >= IDLING_LEAST * (1 - NEAR) and max(ratios) <= IDLING_MOST * (1 + NEAR)
    return Row(CLAIM, "all others over CFQ with its idle window", "2 to 15 times", span(ratios), holds)


def avalanche(laboratory, readers):
    """Deadline falls when expiries can not be met."""
    small = Readers(laboratory, "random-readers", ("deadline", "FIFO"), SMALL, EVERY_LOAD)
    return [falls(small), meets_fifo(small), scales(readers)]


def falls(small):
    """From which mean latency on deadline gives less."""
    peaks = []
    for array in small.arrays:
        peak = max(small.loads, key=lambda load: small.bandwidth(array, "deadline", load).mean)
        lost = small.ratio_of_loads(array, "deadline", small.loads[-1], peak) - 1
        peaks.append((small.latency_ms(array, "deadline", peak), lost))
    latencies = [latency for latency, _ in peaks]
    holds = all(abs(latency - FALLS_FROM_MS) <= NEAR * FALLS_FROM_MS and lost < -ALIKE for latency, lost in peaks)
    obtained = f"peaks at {span(latencies)} ms, then {span([lost for _, lost in peaks], percent)}"
    return Row(CLAIM, "small arrays: mean latency from which deadline scales negatively", "about 250 ms", obtained,
               holds)


def meets_fifo(small):
    """From which mean latency on deadline is FIFO."""
    ratios = [
        small.ratio(array, "deadline", "FIFO", load) - 1
        for array, load in small.points(small.arrays)
        if small.latency_ms(array, "deadline", load) >= FIFO_FROM_MS
    ]
    obtained = f"{span(ratios, percent)} to FIFO" if ratios else "never that long"
    holds = bool(ratios) and all(abs(ratio) <= ALIKE for ratio in ratios)
    return Row(CLAIM, "small arrays: deadline where its mean latency is 500 ms or more", "as FIFO", obtained, holds)


def scales(readers):
    """On large arrays there is no such fall."""
    gains = [readers.ratio_of_loads(array, "deadline", LOADS[-1], DEPTH) - 1 for array in LARGE]
    return Row(CLAIM, "8 disks: deadline, from 32 to 256 processes", "grows", span(gains, percent),
               min(gains) > 0)
