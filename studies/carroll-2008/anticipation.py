"""C-5: where anticipation pays (sections 4.3.5 and 5.3, table 5.2)."""

from arrays import DISK_ON_CONTROLLER, DISK_ON_HOST, raid
from claims import ALIKE, Row, is_near, number
from fullstroke import Run

CLAIM = "C-5"

# Section 4.3.5, in microseconds; without 6, 10 and 20 ms.
THINK_US = (0, 100, 500, 1000, 2000, 4000, 8000)
LOADS = (1, 4, 16, 32, 64, 96, 128)

# Table 5.2: the largest think time at which anticipation pays, and the number
# of random readers at which it stops paying there.
WINDOWS = (
    (DISK_ON_HOST, 2000, 32),
    (DISK_ON_CONTROLLER, 2000, 22),
    (raid("raid10", 2), 1000, 35),
    (raid("raid0", 2), 1000, 28),
    (raid("raid0", 4), 1000, 28),
    (raid("raid5", 3), 1000, 12),
    (raid("raid10", 4), 500, 28),
    (raid("raid5", 5), 500, 10),
    (raid("raid10", 8), 100, 16),
    (raid("raid0", 8), 100, 4),
    (raid("raid5", 8), 100, 4),
)

NEVER_ABOVE_US = 2000


def run(array, think_us, load, pauses):
    """One sequential reader beside `load` random ones."""
    expire = () if pauses else ("host.antic_expire=0s",)
    keys = (f"workload.processes[0].think_time={think_us}us", f"workload.processes[1].count={load}")
    return Run(array.stack("anticipation"), (*array.settings, *expire, *keys))


class Gains:
    """What the pauses change in bandwidth, for each array, think time and load."""

    def __init__(self, laboratory):
        cells = [(array, think, load) for array, _, _ in WINDOWS for think in THINK_US for load in LOADS]
        both = {cell: (run(*cell, True), run(*cell, False)) for cell in cells}
        results = laboratory.run([one for pair in both.values() for one in pair])
        self.gains = {
            cell: (results[on].value - results[off].value, results[off].value) for cell, (on, off) in both.items()
        }

    def pays(self, array, think, load):
        """Whether the pauses give more: beyond the interval, and so that a graph would show it."""
        return self.gains[array, think, load][0].low > 0 and self.share(array, think, load) > ALIKE

    def share(self, array, think, load):
        """The gain, as a share of the bandwidth without pauses."""
        gain, without = self.gains[array, think, load]
        return gain.mean / without.mean

    def largest_think_us(self, array):
        """The largest think time at which they pay at some load; 0 if at none."""
        return max((think for think in THINK_US for load in LOADS if self.pays(array, think, load)), default=0)

    def stops_at(self, array, think):
        """The load at which both are equal: where the line behind the loads at which pauses pay crosses zero.

        The next load, if they are alike there; 0 if pauses never pay.
        """
        pays = [self.pays(array, think, load) for load in LOADS]
        if True not in pays:
            return 0
        first = pays.index(True)
        if False not in pays[first:]:
            return LOADS[-1]
        following = pays.index(False, first)
        last, beyond = LOADS[following - 1], LOADS[following]
        gain, loss = self.share(array, think, last), min(self.share(array, think, beyond), 0)
        return last + (beyond - last) * gain / (gain - loss)


def rows(laboratory):
    """Two rows for each array, and two for all."""
    gains = Gains(laboratory)
    windows = [row for line in WINDOWS for row in window(gains, *line)]
    return [*windows, never_above(gains), wrong_costs(gains)]


def window(gains, array, think_us, load):
    """The window of one array: how long a thought, and beside how many others."""
    think = gains.largest_think_us(array)
    stops = gains.stops_at(array, think_us)
    return [
        Row(CLAIM, f"{array.title}: largest think time at which anticipation pays", f"{think_us} µs",
            f"{think} µs" if think else "it never pays", is_near(think, think_us)),
        Row(CLAIM, f"{array.title}: random readers at which it stops paying, {think_us} µs", f"{load}",
            number(stops) if stops else "it never pays", is_near(stops, load)),
    ]


def never_above(gains):
    """Long thoughts are not worth waiting for."""
    longest = max(gains.largest_think_us(array) for array, _, _ in WINDOWS)
    return Row(CLAIM, "largest think time of all", "2000 µs", f"{longest} µs", longest <= NEVER_ABOVE_US)


def wrong_costs(gains):
    """Beyond the window arrays lose more than one disk."""
    worst = {
        array: min(gains.share(array, think, load) for think in THINK_US for load in LOADS) for array, _, _ in WINDOWS
    }
    disk = min(worst[DISK_ON_HOST], worst[DISK_ON_CONTROLLER])
    arrays = {array: share for array, share in worst.items() if array.drives > 1}
    least, most = max(arrays.values()), min(arrays.values())
    obtained = f"one disk {100 * disk:.0f} %, arrays {100 * least:.0f} to {100 * most:.0f} %"
    return Row(CLAIM, "largest loss by wrong anticipation", "more on arrays than on one disk", obtained,
               all(share < disk for share in arrays.values()))
