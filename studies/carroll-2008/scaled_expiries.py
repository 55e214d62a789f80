"""C-7: deadline's expiries scaled by the mean latency (section 6.4)."""

from arrays import PROPOSED, SCHEDULERS
from claims import ALIKE, Row, number, percent, span
from fullstroke import Run
from readers import EVERY_LOAD, SMALL, Readers

CLAIM = "C-7"

HIGHEST = EVERY_LOAD[-1]


def rows(laboratory):
    """The avalanche, and the bound."""
    names = ("deadline", "deadline, scaled", "SCAN", "FIFO")
    readers = Readers(laboratory, "random-readers", names, SMALL, EVERY_LOAD)
    return [no_fall(readers), gain(readers), bound(laboratory)]


def no_fall(readers):
    """It does not fall as the load grows."""
    lost = []
    for array in SMALL:
        peak = max(readers.bandwidth(array, "deadline, scaled", load).mean for load in EVERY_LOAD)
        lost.append(readers.bandwidth(array, "deadline, scaled", HIGHEST).mean / peak - 1)
    return Row(CLAIM, f"scaled, small arrays: bandwidth at {HIGHEST} processes against its peak", "no avalanche",
               span(lost, percent), all(share >= -ALIKE for share in lost))


def gain(readers):
    """It gives more than deadline, and as much as SCAN."""
    over = [readers.ratio(array, "deadline, scaled", "deadline", HIGHEST) - 1 for array in SMALL]
    scan = [readers.ratio(array, "deadline, scaled", "SCAN", HIGHEST) - 1 for array in SMALL]
    obtained = f"{span(over, percent)}; {span(scan, percent)} against SCAN"
    better = all(readers.is_better(array, "deadline, scaled", "deadline", HIGHEST) for array in SMALL)
    return Row(CLAIM, f"scaled over plain deadline at {HIGHEST} processes", "more", obtained, better)


def bound(laboratory):
    """At low load a request that is far from the head does not wait longer than it did."""
    names = ("deadline, scaled", "deadline", "SCAN")
    runs = {name: Run("low-load", (SCHEDULERS | PROPOSED)[name]) for name in names}
    results = laboratory.run(runs.values())
    longest = {name: results[run].group("random reader")["response_ms"]["max"] for name, run in runs.items()}
    obtained = ", ".join(f"{name} {number(time)} ms" for name, time in longest.items())
    return Row(CLAIM, "low load: longest latency of a random reader beside a sequential one", "bounded, and tighter",
               obtained, longest["deadline, scaled"] <= longest["deadline"] * (1 + ALIKE))
