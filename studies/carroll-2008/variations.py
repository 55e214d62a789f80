"""One thing changed: what the claims that do not hold depend on."""

from dataclasses import dataclass, replace

import anticipation
import deadline_fixes
import random_readers
import sequential_readers

HEADINGS = ["changed", "claim", "what", "published", "as assumed", "with the change", "verdict then"]


@dataclass(frozen=True)
class Variation:
    """A change of stacks, and the rows of a claim that are looked at, by what their subjects contain."""

    title: str
    settings: tuple
    part: object
    subjects: tuple


LOOK = ("volume.drive_settings.queue.discipline=look",)
NO_READ_AHEAD = ("controller.read_ahead=0B",)
NEAREST = ("volume.read_policy=nearest-head",)
DEEP = ("host.queue_depth=32",)
# Enough for bandwidths.
SHORT = ("workload.duration=60s",)

CFQ = ("CFQ without idling",)
BEHIND_CONTROLLER = ("disk, controller", "RAID 0 (", "RAID 5 (")

VARIATIONS = (
    Variation("the disk takes 32 requests", DEEP, deadline_fixes.batch_count, ("bytes read",)),
    Variation("drives order by LOOK", LOOK, random_readers.rows, ("over CFQ", "AS above FIFO", "AS = AS")),
    Variation("drives order by LOOK", LOOK + SHORT, sequential_readers.rows, CFQ),
    Variation("no read-ahead by the controller", NO_READ_AHEAD + SHORT, sequential_readers.rows, CFQ),
    Variation("both", LOOK + NO_READ_AHEAD + SHORT, sequential_readers.rows, CFQ),
    Variation("no read-ahead by the controller", NO_READ_AHEAD, anticipation.rows, BEHIND_CONTROLLER),
    Variation("mirrors: the nearest arm reads", NEAREST, anticipation.rows, ("RAID 1+0 (",)),
)


class Changed:
    """A laboratory in which stacks have further settings."""

    def __init__(self, laboratory, settings):
        self.laboratory, self.settings = laboratory, settings

    def run(self, runs):
        """The results, by the run as it was asked for."""
        changed = {run: self.change(run) for run in runs}
        results = self.laboratory.run(changed.values())
        return {run: results[new] for run, new in changed.items()}

    def change(self, run):
        """The run with the settings that concern its stack."""
        return replace(run, settings=(*run.settings, *(key for key in self.settings if concerns(key, run))))


def concerns(key, run):
    """Whether a stack has what a key is about."""
    if key.startswith("controller."):
        return not run.stack.endswith("-host")
    if key.startswith("volume.read_policy"):
        return "volume.layout=raid10" in run.settings
    return True


def lines(laboratory):
    """One line for each row of a claim that a variation is about."""
    return [line for variation in VARIATIONS for line in compare(laboratory, variation)]


def compare(laboratory, variation):
    """The rows as they are, beside the rows as they become."""
    as_assumed = variation.part(laboratory)
    changed = variation.part(Changed(laboratory, variation.settings))
    return [
        [variation.title, *before.cells()[:4], after.obtained, after.cells()[-1]]
        for before, after in zip(as_assumed, changed)
        if any(subject in before.subject for subject in variation.subjects)
    ]
