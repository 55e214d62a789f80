"""One thing changed: what the claims that do not hold depend on."""

from dataclasses import dataclass, replace

import anticipation
import deadline_fixes
import random_readers
import sequential_readers

HEADINGS = ["one thing changed", "claim", "what", "published", "as assumed", "changed", "verdict then"]


@dataclass(frozen=True)
class Variation:
    """A change of stacks, and the part of a claim that is looked at."""

    title: str
    settings: tuple
    part: object
    subject: str
    # Stacks without this in their settings are left as they are.
    only_with: str = ""


DRIVES_LOOK = ("volume.drive_settings.queue.discipline=look",)
NEAREST = ("volume.read_policy=nearest-head",)
WITHOUT = ("controller.read_ahead=0B",)
DEEP = ("host.queue_depth=32",)

VARIATIONS = (
    Variation("32 requests at a time for the disk", DEEP, deadline_fixes.batch_count, "bytes read"),
    Variation("drives order by LOOK", DRIVES_LOOK, random_readers.rows, "over CFQ"),
    Variation("drives order by LOOK", DRIVES_LOOK, random_readers.rows, "V(R) best"),
    Variation("drives order by LOOK", DRIVES_LOOK, sequential_readers.rows, "CFQ without idling"),
    Variation("drives order by LOOK", DRIVES_LOOK, sequential_readers.rows, "longest latency"),
    Variation("no read-ahead by the controller", WITHOUT, anticipation.rows, "RAID 0 (", "volume.layout"),
    Variation("no read-ahead by the controller", WITHOUT, anticipation.rows, "disk, controller", "volume.layout"),
    Variation("reads go to the mirror nearest by", NEAREST, anticipation.rows, "RAID 1+0 (", "volume.layout=raid10"),
)


class Changed:
    """A laboratory in which stacks have further settings."""

    def __init__(self, laboratory, variation):
        self.laboratory, self.variation = laboratory, variation

    def run(self, runs):
        """The results, by the run as it was asked for."""
        changed = {run: self.change(run) for run in runs}
        results = self.laboratory.run(changed.values())
        return {run: results[new] for run, new in changed.items()}

    def change(self, run):
        """The run with the further settings, if it is concerned."""
        if self.variation.only_with and not any(self.variation.only_with in key for key in run.settings):
            return run
        return replace(run, settings=(*run.settings, *self.variation.settings))


def lines(laboratory):
    """One line for each row of a claim that a variation is about."""
    return [line for variation in VARIATIONS for line in compare(laboratory, variation)]


def compare(laboratory, variation):
    """The rows as they are, beside the rows as they become."""
    as_assumed = variation.part(laboratory)
    changed = variation.part(Changed(laboratory, variation))
    return [
        [variation.title, before.claim, before.subject, before.published, before.obtained, after.obtained,
         after.cells()[-1]]
        for before, after in zip(as_assumed, changed)
        if variation.subject in before.subject
    ]
