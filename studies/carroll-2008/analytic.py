"""C-6: what needs no simulation (sections 4.3.2 and 6.2, and the footnote of 5.1.1)."""

from claims import Row
from fullstroke import explain

CLAIM = "C-6"

# Requests, disks, and the probability in percent that some disk is idle, as printed.
IDLE = ((32, 8, 11), (8, 2, 1))

# Requests on 100 GiB in blocks of 16 KiB, and the percentage that bounds the
# chance of a merge from above, as printed.
MERGES = ((32, 0.01), (256, 0.6))


def rows(_laboratory):
    """The probabilities."""
    return [idle(*line) for line in IDLE] + [merge(*line) for line in MERGES]


def idle(requests, disks, published):
    """The chance that a disk has nothing to do: it must round to what is printed."""
    found = 100 * explain("idle-members", "--requests", str(requests), "--disks", str(disks))["any_idle_probability"]
    return Row(CLAIM, f"some of {disks} disks idle, {requests} requests", f"{published} %", f"{found:.3f} %",
               round(found) == published)


def merge(requests, published):
    """The chance of a merge, by the formula of the footnote."""
    found = explain("merge-chance", "--requests", str(requests), "--capacity", "100GiB", "--size", "16KiB")
    by_formula = 100 * found["probability_by_carrolls_formula"]
    adjacent = 100 * found["any_adjacent_probability"]
    obtained = f"{by_formula:.4f} % by his formula; {adjacent:.4f} % for any adjacent pair"
    return Row(CLAIM, f"a merge among {requests} requests on 100 GiB", f"less than {published} %", obtained,
               by_formula < published)
