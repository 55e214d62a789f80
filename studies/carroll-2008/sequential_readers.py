"""C-4: readers of 1 MiB at random offsets (section 5.1.2, figure 5.2)."""

from arrays import SCHEDULERS
from claims import ALIKE, Row, is_alike, number, percent, span
from readers import ARRAYS, LARGE, LOADS, MEDIUM, SMALL, Readers

CLAIM = "C-4"

# "Under load": more than the disks and the host's queue hold.
LOADED = LOADS[-1]

DISKS, RAIDS = SMALL[:2], SMALL[2:] + MEDIUM + LARGE


def rows(laboratory):
    """The parts of the claim."""
    readers = Readers(laboratory, "sequential-readers", SCHEDULERS)
    return [
        near_the_top(readers),
        deadline_is_fifo(readers),
        longest_latency(readers),
        pauses(readers, LARGE, "8 disks: AS without pauses over AS", "about +5 %", 1),
        pauses(readers, DISKS, "one disk: AS without pauses over AS", "slightly less", -1),
    ]


def near_the_top(readers):
    """CFQ that does not idle is among the best; on RAID 0 V(R) is better."""
    striped = [array for array in ARRAYS if not array.title.startswith("RAID 0")]
    points = [(array, load) for array, load in readers.points(striped, above=32)]
    rivals = [name for name in SCHEDULERS if name != "deep FIFO"]
    behind = [
        readers.ratio(array, "CFQ, no pause", readers.best(array, rivals, load), load) - 1 for array, load in points
    ]
    near = sum(margin >= -ALIKE for margin in behind)
    obtained = f"within 5 % of it in {near} of {len(points)} cases; {span(behind, percent)}"
    return Row(CLAIM, "CFQ without idling against the best of depth 32 (RAID 0 aside)", "near the top", obtained,
               near == len(points))


def deadline_is_fifo(readers):
    """Nothing can be done in time, and so the order is that of arrival."""
    ratios = [
        readers.ratio(array, "deadline", other, LOADED) - 1 for array in ARRAYS for other in ("noop", "FIFO")
    ]
    return Row(CLAIM, f"deadline against noop and FIFO, {LOADED} processes", "the same", span(ratios, percent),
               all(is_alike(ratio + 1, 1) for ratio in ratios))


def longest_latency(readers):
    """Without expiries some requests wait long."""
    longest = {
        array: {name: readers.latency_ms(array, name, LOADED, "max") / 1000 for name in SCHEDULERS} for array in ARRAYS
    }
    on_top = [array for array, times in longest.items() if max(times, key=times.get) in ("SCAN", "SSTF")]
    seconds = [max(times["SCAN"], times["SSTF"]) for times in longest.values()]
    others = [max(time for name, time in times.items() if name not in ("SCAN", "SSTF")) for times in longest.values()]
    worst = max(one / other for one, other in zip(seconds, others))
    obtained = f"on {len(on_top)} of {len(ARRAYS)}; to {number(max(seconds))} s; up to {number(worst)} times the next"
    return Row(CLAIM, f"longest latency is SSTF's or SCAN's, {LOADED} processes", "on all; to 58 s; up to 7 times",
               obtained, len(on_top) == len(ARRAYS))


def pauses(readers, arrays, subject, published, sign):
    """What the pauses of AS cost or gain."""
    changes = [
        readers.ratio(array, "AS, no pause", "AS", load) - 1 for array, load in readers.points(arrays)
    ]
    mean = sum(changes) / len(changes)
    obtained = f"{percent(mean)} on average; {span(changes, percent)}"
    return Row(CLAIM, subject, published, obtained, sign * mean > 0)
