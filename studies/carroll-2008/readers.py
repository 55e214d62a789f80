"""What C-3, C-4 and C-7 share: readers side by side, for each array, scheduler and load."""

from arrays import DISK_ON_CONTROLLER, DISK_ON_HOST, raid, settings
from fullstroke import Run

# Section 4.3.3 tests 32 to 256 processes in steps of 32.
EVERY_LOAD = tuple(range(32, 257, 32))
LOADS = (32, 64, 128, 256)

SMALL = (DISK_ON_HOST, DISK_ON_CONTROLLER, raid("raid10", 2))
MEDIUM = (raid("raid10", 4),)
LARGE = (raid("raid10", 8), raid("raid0", 8), raid("raid5", 8), raid("raid6", 8))
ARRAYS = SMALL + MEDIUM + LARGE


class Readers:
    """The results of one kind of reader."""

    def __init__(self, laboratory, stack, schedulers, arrays=ARRAYS, loads=LOADS):
        self.arrays, self.loads = arrays, loads
        self.runs = {
            (array, scheduler, load): Run(
                array.stack(stack), (*settings(array, scheduler), f"workload.processes[0].count={load}")
            )
            for array in arrays
            for scheduler in schedulers
            for load in loads
        }
        self.results = laboratory.run(self.runs.values())

    def bandwidth(self, array, scheduler, load):
        """All readers together, in MB/s."""
        return self.results[self.runs[array, scheduler, load]].value

    def ratio(self, array, one, other, load):
        """The bandwidth under one scheduler over that under another."""
        return self.bandwidth(array, one, load).mean / self.bandwidth(array, other, load).mean

    def ratio_of_loads(self, array, scheduler, one, other):
        """The bandwidth at one load over that at another."""
        return self.bandwidth(array, scheduler, one).mean / self.bandwidth(array, scheduler, other).mean

    def latency_ms(self, array, scheduler, load, what="mean"):
        """The readers' response time."""
        return self.results[self.runs[array, scheduler, load]].report["response_ms"][what]

    def is_better(self, array, one, other, load):
        """Whether the intervals leave no doubt that one scheduler gives more."""
        return (self.bandwidth(array, one, load) - self.bandwidth(array, other, load)).low > 0

    def best(self, array, schedulers, load):
        """The scheduler that gives most."""
        return max(schedulers, key=lambda scheduler: self.bandwidth(array, scheduler, load).mean)

    def points(self, arrays, above=0):
        """Arrays and loads, those with more than `above` processes."""
        return [(array, load) for array in arrays for load in self.loads if load > above]
