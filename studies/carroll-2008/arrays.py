"""Carroll's arrays and schedulers, as settings of a stack."""

from dataclasses import dataclass

# Table 4.5.
STRIPE_UNIT_KIB = {"raid0": 128, "raid10": 128, "raid5": 64, "raid6": 16}

TITLES = {"raid0": "RAID 0", "raid10": "RAID 1+0", "raid5": "RAID 5", "raid6": "RAID 6"}


@dataclass(frozen=True)
class Array:
    """A volume: on the host's own adapter, or behind the controller."""

    title: str
    on_host: bool = False
    settings: tuple = ()
    drives: int = 1

    def stack(self, name):
        """The stack's file, without its ending."""
        return f"{name}-host" if self.on_host else name

    @property
    def deepest(self):
        """Requests that the hardware takes at once (section 4.3.2)."""
        return 64 if self.on_host else 512


def raid(layout, drives):
    """An array behind the controller."""
    chunk = f"{STRIPE_UNIT_KIB[layout]}KiB"
    settings = (f"volume.layout={layout}", f"volume.drives={drives}", f"volume.chunk={chunk}")
    return Array(f"{TITLES[layout]} ({drives})", settings=settings, drives=drives)


DISK_ON_HOST = Array("one disk, host", on_host=True)
# Section 4.3.1: a RAID 0 of one disk.
DISK_ON_CONTROLLER = Array("one disk, controller", settings=raid("raid0", 1).settings)

# SCAN and SSTF are V(R) without expiries (section 5.1.2).
NO_EXPIRY = ("host.elevator=v-r", "host.sync_expire=0s", "host.async_expire=0s")

SCHEDULERS = {
    "noop": ("host.elevator=noop",),
    "FIFO": ("host.elevator=fifo",),
    "deep FIFO": ("host.elevator=fifo",),
    "deadline": ("host.elevator=deadline",),
    "SCAN": (*NO_EXPIRY, "host.rev_penalty=0"),
    "SSTF": (*NO_EXPIRY, "host.rev_penalty=1"),
    "AS": ("host.elevator=anticipatory",),
    "AS, no pause": ("host.elevator=anticipatory", "host.antic_expire=0s"),
    "CFQ": ("host.elevator=cfq", "host.queueing_detection_bug=true"),
    "CFQ, no pause": ("host.elevator=cfq", "host.queueing_detection_bug=true", "host.slice_idle=0s"),
}


# Section 6.4 proposes it; it took no part in the benchmarks.
PROPOSED = {"deadline, scaled": ("host.elevator=deadline", "host.scale_expiries=true")}


def settings(array, scheduler):
    """The keys of the stack file that make an array and a scheduler."""
    depth = (f"host.queue_depth={array.deepest}",) if scheduler == "deep FIFO" else ()
    return (*array.settings, *(SCHEDULERS | PROPOSED)[scheduler], *depth)
